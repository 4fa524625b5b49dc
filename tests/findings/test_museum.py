"""The museum across runs in each form."""

from __future__ import annotations

import csv
import io
import re

from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse.museum import Museum
from dbdyno.findings import museum
from dbdyno.report.document import Items
from dbdyno.report.renderers import html, markdown, terminal
from tests.analyse.collection_cases import museum_of, ran
from tests.findings.museum_cases import found
from tests.report.browser import Outline
from tests.report.cases import all_verdicts, file_systems, hostile, one_block
from tests.report.forms import on_terminal


def printed(shown: Museum, width: int = 110) -> str:
    text = on_terminal(lambda console: terminal.render(museum.document(shown), console), width)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def page_of(shown: Museum) -> str:
    return html.render(museum.document(shown))


def written(shown: Museum) -> str:
    return markdown.render(museum.document(shown))


def test_as_printed(snapshot: SnapshotAssertion) -> None:
    assert printed(found()) == snapshot


def test_ratios_of_several_runs_stand_in_one_line() -> None:
    text = " ".join(printed(found()).split())
    assert re.search(r"slower in 2 of 3 runs: 0\.\d+, 0\.\d+ in its other runs: faster in 1 ", text)


def test_of_many_runs_the_latest_are_told_one_by_one() -> None:
    many = museum_of([ran(day, 0.30 + 0.02 * day) for day in range(1, 10)])
    text = " ".join(printed(many).split())
    told = re.search(r"slower in 9 of 9 runs: ((?:0\.\d+, ){6})and 3 before from (0\.\d+) to (0\.\d+) ", text)
    assert told is not None and float(told[2]) < float(told[3]) < float(told[1].split(",")[5])
    assert text.count("evidence: dyno report") == 3 and "6 earlier runs: --format html shows all" in text
    assert page_of(many).count("evidence: dyno report") == 9


def test_the_page_and_markdown_say_what_the_terminal_says() -> None:
    page, text = page_of(found()), written(found())
    for told in (
        "slower in 2 of 3 runs",
        "the compiler was killed: it had no memory left",
        "install libjemalloc2",
    ):
        assert told in page and told in text
    tables = MarkdownIt("commonmark").enable("table").render(text)
    assert tables.count("<table>") == len(found().pieces)
    assert Outline(page).leads_out == []


def test_a_spreadsheet_reads_a_row_for_each_occurrence() -> None:
    rows = list(csv.DictReader(io.StringIO(museum.as_csv(found()))))
    assert len(rows) == sum(len(piece.occurrences) for piece in found().pieces)
    capped = next(row for row in rows if row["outcome"] == "blocked")
    assert capped["level"] == "memory.huge_pages = always" and capped["show"].startswith("dyno report ")
    assert "read back madvise" in capped["evidence"] and capped["ratio"] != capped["cause"]


def test_text_from_outside_steers_nothing() -> None:
    shown = museum_of([hostile()])
    page, text, table = page_of(shown), written(shown), museum.as_csv(shown)
    assert "<script>alert" not in page and "alert(1)" in page
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in rendered
    assert all("\x1b" not in each and "\u202e" not in each for each in (page, text, table, printed(shown)))


def test_an_empty_museum_says_so() -> None:
    empty = museum_of([])
    assert all(museum.EMPTY in text for text in (printed(empty), page_of(empty), written(empty)))


def items(title: str, sections: list[tuple[str, Items]]) -> Items:
    [found] = [one for name, one in sections if title in name]
    return found


def found_in(case: str) -> list[tuple[str, Items]]:
    analysis = {"all_verdicts": all_verdicts, "file_systems": file_systems, "one_block": one_block}[case]()
    sections = museum.sections(analysis)
    return [(one.title, part) for one in sections for part in one.body if isinstance(part, Items)]


def test_what_ended_alike_stands_together_with_its_remedy() -> None:
    [blocked] = items("museum", found_in("file_systems")).items
    assert blocked.mark.text == "⊘ blocked" and blocked.step == "it offers: none"
    assert str(blocked.about).count("storage.scheduler=bfq") == 8
    assert blocked.lines == ("loop0 offers no bfq",)


def test_a_warning_says_in_how_many_trials_of_which_variants_it_was_seen() -> None:
    driver, host = items("Warnings", found_in("all_verdicts")).items
    assert (driver.mark.text, host.mark.text) == ("! 6 trials", "! 6 trials")
    assert "driver was the limit" in str(driver.about) and "(config.page_size=32768)" in str(driver.about)
    assert host.step.startswith("measure on dedicated CPUs")
    assert all(one.small and one.small[0] for one in (driver, host))


def test_a_run_without_either_has_no_such_section() -> None:
    assert not [name for name, _ in found_in("one_block") if "museum" in name]
