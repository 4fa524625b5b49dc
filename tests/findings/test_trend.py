"""What is said of a trend: only what the runs can tell, and nothing that could steer a terminal or a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.analyse import Axis
from dbdyno.analyse.trend import Omission, Trend, TrendRun, run_of_trend, trend
from dbdyno.findings import trend as words
from dbdyno.records.circumstances import Circumstance
from dbdyno.report.renderers import html, markdown
from tests.analyse.trend_cases import STUDY, VARIANT, a_commit, a_trend_run, analysed, followed
from tests.report.browser import DARK, LIGHT, TELL_THE_WIDTH, Outline, browse, needs_chromium
from tests.report.forms import over_days
from tests.report.shown import packed_in, printed


def said(values: list[float], changed_at: int | None = None) -> str:
    found = followed(values, changed_at)
    return " ".join([words.headline(found), *words.sentences(found, found.variants[0])])


def by_commits(values: list[float]) -> Trend:
    """A run of each commit, in an order of their days that is not that of the commits."""
    runs = [
        a_trend_run((5 * number) % len(values), value, commit=a_commit(number))
        for number, value in enumerate(values)
    ]
    return trend(STUDY, runs, {}, Axis.COMMIT)


def test_runs_stand_by_their_commits() -> None:
    found = by_commits([1.5] * 11)
    assert [run.commit for run in found.runs] == [a_commit(number) for number in range(11)]
    table = words.runs_table(found)
    place = [column.head for column in table.columns].index("commit")
    assert [row[place] for row in table.rows][:2] == ["000000000000"] * 2
    assert words.commit_text(a_trend_run(1, 1.5, commit=a_commit(1, changed=2))).endswith(" and changes")


def test_runs_stand_by_the_versions_of_their_engines() -> None:
    runs = [a_trend_run(day, 1.5).but(engine=f"firebird 5.{minor}") for day, minor in enumerate((10, 9, 2))]
    found = trend(STUDY, runs, {}, Axis.VERSION)
    assert [run.engine for run in found.runs] == ["firebird 5.2", "firebird 5.9", "firebird 5.10"]


def test_a_change_for_the_worse_names_the_command_that_finds_its_commit() -> None:
    values = [level + 0.01 * (number % 3) for level in (1.5, 1.2) for number in range(8)]
    found = by_commits(values)
    [change] = found.variants[0].change_points
    good, bad = (
        next(run.commit for run in found.runs if run.run == name) for name in (change.before, change.after)
    )
    assert (good, bad) == (a_commit(6), a_commit(9)), "each one run farther out"
    text = " ".join(words.sentences(found, found.variants[0]))
    ends = f"--good {a_commit(6).hash[:12]} --bad {a_commit(9).hash[:12]}"
    assert "commit changed there" in text
    assert f"Which commit did it: dyno bisect {STUDY.path} {ends}" in text
    better = by_commits([1.0 / value for value in values])
    assert better.variants[0].change_points
    assert "bisect" not in " ".join(words.sentences(better, better.variants[0]))


def test_a_change_of_unknown_commits_names_no_command() -> None:
    found = stepped()
    assert found.variants[0].change_points
    assert "bisect" not in " ".join(words.sentences(found, found.variants[0]))


def test_one_run_that_fell_stands_out_and_is_no_trend() -> None:
    text = said([1.5, 1.51, 1.49, 1.5, 1.1])
    assert "The last run stands out" in text and "no trend" in text
    assert "regress" not in text and "moved:" not in text


def test_a_shift_with_another_engine_has_no_cause() -> None:
    text = said([1.5, 1.51, 1.49, 1.2, 1.21, 1.19], changed_at=3)
    assert "Moved: config.page_cache=64k" in text
    assert "From run 4 on (engine changed) the ratio moved" in text and "cause is not told" in text


def test_too_few_runs_are_said_to_be_too_few() -> None:
    assert "Too few runs: it takes 3" in said([1.5, 1.2])
    assert "too few runs to say, 2 before and 1 after" in said([1.5, 1.5, 1.2], changed_at=2)


def test_runs_that_do_not_differ_are_said_not_to() -> None:
    text = said([1.5, 1.51, 1.49, 1.5, 1.5, 1.5, 1.51])
    assert "No ratio moved, as far as these runs can tell." in text
    assert "The last run does not stand out" in text


def stepped() -> Trend:
    """Six runs at one ratio, and six at another."""
    return followed([level + 0.004 * (day % 3) for level in (1.5, 1.2) for day in range(6)])


def test_a_change_point_is_told_with_its_size_and_its_chance() -> None:
    found = stepped()
    [change] = found.variants[0].change_points
    assert (change.first, change.runs, change.changed) == ("run-6", (6, 6), ())
    assert change.ratio == pytest.approx(0.8, rel=0.01) and change.p <= 0.05
    text = " ".join(words.sentences(found, found.variants[0]))
    assert "Change point at run 7: 0.8 times the ratio before it, 6 runs over 6 (p = 0." in text
    assert "nothing known changed there" in text


def test_a_change_point_where_something_changed_says_what() -> None:
    found = followed([1.5, 1.51, 1.49, 1.5, 1.51, 1.2, 1.21, 1.19, 1.2, 1.21], changed_at=5)
    [change] = found.variants[0].change_points
    assert change.changed == (Circumstance.ENGINE,)
    assert "engine changed there" in " ".join(words.sentences(found, found.variants[0]))


def test_a_change_point_in_the_middle_is_the_headline() -> None:
    found = followed([level + 0.004 * (day % 3) for level in (1.2, 1.5, 1.2) for day in range(8)])
    assert len(found.variants[0].change_points) == 2
    assert words.headline(found).startswith("Changed: config.page_cache=64k from run 17 on.")


def test_a_change_within_the_margin_is_no_headline() -> None:
    found = followed([level + 0.0004 * (day % 3) for level in (1.5, 1.51, 1.5) for day in range(8)])
    assert found.variants[0].change_points
    assert "Changed" not in words.headline(found)
    assert "which is within the margin" in " ".join(words.sentences(found, found.variants[0]))


def test_every_form_shows_a_change_point() -> None:
    found = stepped()
    document = words.document(found)
    for text in (printed(document), markdown.render(document)):
        assert "Change point at run 7" in " ".join(text.split())
    even = words.document(followed([1.5] * 12))
    drawn = [str(packed_in(html.render(one))) for one in (document, even)]
    assert ["change point at" in figures for figures in drawn] == [True, False]
    assert '"change_points":[{"first":"run-6"' in found.model_dump_json()


def test_every_reason_to_leave_a_run_out_has_its_words() -> None:
    text = words.omitted(dict.fromkeys(Omission, 1))
    assert text.count("1 run ") == len(Omission) and "{" not in text


def heads(found: Trend) -> list[str]:
    return [column.head for column in words.runs_table(found).columns]


def test_what_all_runs_share_stands_once_and_what_differs_in_a_column() -> None:
    same = followed([1.5, 1.5])
    assert words.shared(same) == "firebird 5.0.4 · bench-1"
    assert heads(same) == ["#", "began", "run", "baseline, per s"]
    other = a_trend_run(2, 1.5, {Circumstance.HOST: "bench-2, 8 x EPYC"}).model_copy(
        update={"host": "bench-2"}
    )
    two = trend(STUDY, [*same.runs, other], {})
    assert heads(two)[-2:] == ["host", "changed"]
    assert list(words.runs_table(two).rows[-1][-2:]) == ["bench-2", "host: bench-2, 8 x EPYC"]


def test_the_baselines_speed_is_shown_with_a_warning() -> None:
    runs: list[TrendRun] = [
        run_of_trend(analysed(f"run-{day}", created_unix_s=1e9 + day)) for day in range(3)
    ]
    found = trend(STUDY, runs, {})
    assert re.fullmatch(r"\d,\d+ \(\d,\d+ – \d,\d+\)", str(words.runs_table(found).rows[0][3]))
    assert "Speeds of different days compare badly" in next(words.notes(found))
    assert "varied by" in next(words.notes(found))


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_a_terminal_of_any_width_shows_every_ratio(width: int) -> None:
    text = printed(words.document(over_days()), width)
    assert max(map(len, text.splitlines())) <= width
    assert "×1.50" in text.replace("\n", "") and "\x1b" not in text


def test_hostile_notes_make_no_element() -> None:
    report = words.document(over_days())
    outline = Outline(html.render(report))
    figures = sum("data-figure" in attributes for _, attributes in outline.elements)
    assert figures == 2 and outline.count("script") == 2
    assert outline.leads_out == []
    assert not re.search(r"(?<!\\)<script", markdown.render(report))
    assert VARIANT in outline.shown


@needs_chromium
@pytest.mark.parametrize(("width", "theme"), [(420, LIGHT), (800, DARK), (1200, LIGHT)])
def test_a_browser_draws_the_page_within_its_width(width: int, theme: str, tmp_path: Path) -> None:
    path = tmp_path / "trend.html"
    before, _, after = html.render(words.document(over_days())).rpartition("</body>")
    path.write_text(f"{before}{TELL_THE_WIDTH}{after}", encoding="utf-8")
    done = browse(path, tmp_path, theme, f"--window-size={width},900", "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    outline = Outline(done.stdout)
    assert outline.count("svg") == 2 and "could not be drawn" not in outline.shown
    drawn = [attributes.get("aria-roledescription") for _, attributes in outline.elements]
    assert drawn.count("point") == 8 + 9, "a dot for each ratio, and one for each speed"
    told = re.search(r"<title>(\d+) of (\d+)</title>", done.stdout)
    assert told is not None and int(told[1]) <= int(told[2])
