"""The pages of a store, as a real server answers for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from dbdyno.export.exchange import CONTENT_TYPE
from dbdyno.host import paths
from dbdyno.host.host_lock import Holder, LookBetweenBlocks
from dbdyno.prepare_run.estimate import counted_s
from dbdyno.prepare_run.stored_run import analysis_of, belongings_of
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.document import Document, Lines
from dbdyno.report.words.numbers import about_text
from dbdyno.serve.pages import StorePages, is_page, with_progress
from tests.analyse.factory import a_study, records_of
from tests.cli.trend_cases import keep
from tests.conftest import homes_in
from tests.export.exposed import samples
from tests.report.browser import needs_chromium
from tests.report.cases import analysed
from tests.report.look import WIDTHS, Look, look
from tests.serve.served import Visitor, serving
from tests.study_texts import STUDY

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Who looks at a store of five runs."""
    patch = pytest.MonkeyPatch()
    with homes_in(tmp_path_factory.mktemp("homes"), patch):
        for day in range(3):
            keep(f"fast-{day}", days_ago=9.0 - day, ratio=1.5)
        keep("slow", days_ago=2.0, ratio=0.5, finished=False)
        keep("hostile", STUDY.replace("Which synchronous?", HOSTILE), days_ago=1.0)
        with serving() as served:
            yield served.visitor
    patch.undo()


def test_the_list_has_every_run_with_its_answer_and_its_line(visitor: Visitor) -> None:
    page = visitor.ask("/").body
    assert re.findall(r'href="/run/([^"]+)"', page) == ["hostile", "slow", "fast-2", "fast-1", "fast-0"]
    assert page.count("<polyline") == 5 and page.count("unfinished</b>") == 1
    assert re.search(r'<option value="faster">faster \(4\)', page)
    assert "(gives up durability) helped" in page


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/run/fast-0", "(gives up durability) helped"),
        ("/run/slow", "Slower than the baseline in throughput:"),
        ("/trends", "3 finished runs"),
        ("/trend/fast-1", "over the last 3 runs"),
        ("/museum", "The museum"),
    ],
)
def test_each_page_says_what_the_verb_says(visitor: Visitor, path: str, words: str) -> None:
    answer = visitor.ask(path)
    assert answer.status == 200 and words in answer.body


def test_a_collector_gets_the_metrics_of_the_last_run(visitor: Visitor) -> None:
    collector = Visitor(visitor.port, visitor.token)
    answer = collector.ask("/metrics", Authorization=f"Bearer {visitor.token}")
    assert answer.status == 200 and answer.headers["content-type"] == CONTENT_TYPE
    found = samples(answer.body)
    assert found["dyno_trials", "measured", "baseline"] > 0
    assert any(name == "dyno_ratio" for name, *_ in found)
    assert 'run="hostile"' in answer.body
    assert collector.ask("/metrics", Authorization="Bearer wrong").status == 403
    assert collector.ask("/metrics").status == 403


def test_figures_are_drawn_by_the_library_of_the_server(visitor: Visitor) -> None:
    page = visitor.ask("/run/fast-0").body
    assert '<script src="/vega.js">' in page and "data-figure" in page
    library = visitor.ask("/vega.js")
    assert library.headers["content-type"].startswith("text/javascript") and "window.vega" in library.body


@pytest.mark.parametrize("path", ["/", "/run/hostile", "/trends", "/trend/hostile", "/museum"])
def test_text_from_a_study_is_no_markup(visitor: Visitor, path: str) -> None:
    page = visitor.ask(path).body
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page or path == "/museum"


@pytest.mark.parametrize("path", ["/run/nobody", "/trend/nobody"])
def test_a_run_that_is_not_there_is_a_page_that_says_so(visitor: Visitor, path: str) -> None:
    answer = visitor.ask(path)
    assert answer.status == 404 and "no run &#39;nobody&#39;" in answer.body and "dyno runs" in answer.body


@pytest.mark.parametrize(
    "path", ["/nothing", "/run/", "/run/a/b", "/../etc/passwd", "/live", "/events?page=/x"]
)
def test_what_is_no_page_is_not_found(visitor: Visitor, path: str) -> None:
    assert visitor.ask(path).status == 404


@pytest.fixture(scope="module")
def looked(visitor: Visitor, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Look]:
    """What a browser finds wrong with the pages that only a server has."""
    found = {}
    for path in ("/", "/trends"):
        # It is looked at in a file, which nobody serves, so nobody can be followed.
        page = visitor.ask(path).body.replace("new EventSource", "new EventTarget; new String")
        found[path] = look(page, tmp_path_factory.mktemp("look"))
    return found


@needs_chromium
@pytest.mark.parametrize("path", ["/", "/trends"])
def test_a_browser_finds_nothing_wrong(looked: dict[str, Look], path: str) -> None:
    found = looked[path]
    assert found.complaints == ()
    for width in WIDTHS:
        faults = found.faults[width]
        assert (faults.wide, faults.scrolled, faults.cut, faults.pale) == ((), (), (), ())


def test_a_store_without_a_run_says_what_to_do(homes: Path) -> None:
    with serving() as served:
        assert "No run yet." in served.visitor.ask("/").body
        assert "No finished run yet." in served.visitor.ask("/trends").body


@pytest.mark.parametrize("counted", [False, True])
def test_after_the_blocks_the_counts_are_left(counted: bool) -> None:
    study = a_study(blocks=2)
    study = study.but(goal=study.goal.but(counted=counted))
    records = records_of(study)
    began, ended = records[0].started_unix_s, max(record.finished_unix_s for record in records)
    live = Holder(1, 1, 0, study.title, began - 1.0, ended, "")
    report = Document(title=study.title, answer=(), sections=())
    page = with_progress(report, analysed(study, records), live, ended)
    lines = page.sections[0].body[0]
    assert isinstance(lines, Lines)
    told = " ".join(map(str, lines.lines))
    assert "4 of 4 trials have ended" in told
    left = f"About {about_text(counted_s(study))} are left" if counted else "It is about to end."
    assert left in told


def test_a_run_leads_to_all_that_belongs_to_it(homes: Path) -> None:
    """Each link opens, a page among the reports has those that lie there, and nothing else is told."""
    keep("before", days_ago=3.0)
    keep("base", days_ago=2.0)
    keep("reference-later", days_ago=1.0)
    keep("later", days_ago=1.0, reference="reference-later", against="base")
    paths.reports_place().mkdir(parents=True)
    flames = paths.reports_place() / f"base{paths.PROFILE}baseline{paths.AGAINST}config.synchronous=OFF.html"
    flames.write_text("<p>boxes</p>")
    paths.page_of_run("later").write_text("<p>its page</p>")
    pages = StorePages(store_url())
    with LookBetweenBlocks() as look:
        led = {name: linked(pages.draw(f"/run/{name}", look).body) for name in ("base", "later")}
        drawn = {path: pages.draw(path, look) for paths_of in led.values() for path in paths_of}
    assert led["base"] == [
        f"/profile/{quote(flames.name)}", "/run/later", "/trend/base", "/compare/before/base", "/recipe/base",
    ]  # fmt: skip
    assert led["later"][:2] == ["/run/reference-later", "/run/base"]
    assert {path: page.status for path, page in drawn.items() if page.status != 200} == {}
    assert all(map(is_page, drawn)) and b"boxes" in drawn[led["base"][0]].body
    with Store(store_url()) as store:
        found = belongings_of(store, analysis_of(store, store.run("base")), ())
    assert [one.page for one in found if one.page] == [quote(flames.name), "later.html"]


def linked(body: bytes) -> list[str]:
    """Where the part of a page leads that says what belongs to its run."""
    part = body.decode().partition("<caption>What belongs to this run")[2].partition("</table>")[0]
    return re.findall(r'<a href="([^"]+)"', part)


@pytest.mark.parametrize("name", ["nothing", "../dyno.sqlite", "..%2Fa-profile-b.html", "a-profile-b.html"])
def test_no_other_file_is_shown_as_a_flame_graph(homes: Path, name: str) -> None:
    with LookBetweenBlocks() as look:
        assert StorePages(store_url()).draw(f"/profile/{name}", look).status == 404


def test_a_run_to_which_nothing_belongs_says_nothing(homes: Path) -> None:
    keep("alone", ratio=0.5)
    with LookBetweenBlocks() as look:
        assert "What belongs" not in StorePages(store_url()).draw("/run/alone", look).body.decode()
