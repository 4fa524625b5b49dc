"""Every case in every form. `python -m tests.report.forms FOLDER` writes them all as files, and
`python -m tests.report.forms --since REVISION` prints what differs from a revision of the tree."""

from __future__ import annotations

import difflib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from rich.console import Console

import dbdyno
from dbdyno.analyse import Analysis
from dbdyno.analyse.compare import compare
from dbdyno.analyse.trend import Omission, Trend, trend
from dbdyno.findings import as_json
from dbdyno.findings import compare as compare_report
from dbdyno.findings import gate as gate_report
from dbdyno.findings import profile as profile_report
from dbdyno.findings import run as run_report
from dbdyno.findings import trend as trend_report
from dbdyno.layers.registry import related_factors
from dbdyno.records.circumstances import Circumstance
from dbdyno.report.document import Document, Section
from dbdyno.report.renderers import html as page_of
from dbdyno.report.renderers import markdown as markdown_of
from dbdyno.report.renderers import terminal
from tests.analyse.compare_cases import a_host, analysed
from tests.analyse.frontier_cases import found
from tests.analyse.trend_cases import STUDY, a_trend_run
from tests.conftest import once_in_session
from tests.report.cases import CASES, HOSTILE, fraction_of_seven, masked
from tests.report.figures.flame_cases import FAST, SLOW
from tests.report.figures.gate_cases import GATE

Printed = Callable[[Console], None]


def with_frontier() -> Analysis:
    return CASES["one_block"]().model_copy(update={"frontier": found()})


ANALYSES: dict[str, Callable[[], Analysis]] = {
    **CASES,
    "fraction_of_seven": fraction_of_seven,
    "with_frontier": with_frontier,
}


def on_terminal(show: Printed, width: int = 100, colour: bool = False) -> str:
    file = io.StringIO()
    show(Console(file=file, width=width, force_terminal=colour, color_system="truecolor" if colour else None))
    return file.getvalue()


def print_report(analysis: Analysis, console: Console, details: bool = False) -> None:
    """The report of a run on a terminal."""
    terminal.render(run_report.document(analysis), console, details)


def as_page(analysis: Analysis) -> str:
    """The same as a page."""
    return page_of.render(run_report.document(analysis))


@cache
def page_of_case(case: str) -> str:
    """The page of a case, which is drawn once for all tests that look at it, in whichever worker."""
    return once_in_session(f"page-{case}.html", lambda: as_page(CASES[case]()))


def as_markdown(analysis: Analysis) -> str:
    """The same as Markdown."""
    return markdown_of.render(run_report.document(analysis))


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Sections by themselves, with all details."""
    terminal.render(Document("", (), tuple(sections), titled=False), console, details=True)


def without_vega(text: str) -> str:
    """A page without what lies packed in it: others' code that draws its figures."""
    return re.sub(r'(?<=id="packed">)[^<]*', "", text)


def forms_of(case: str) -> dict[str, str]:
    """The text of each form, by the ending of its file."""
    if case == "comparison":
        return _comparison()
    if case == "profiles":
        return _profiles()
    if case == "trend":
        return _trend()
    if case == "gate":
        return _gate()
    analysis = ANALYSES[case]()
    return {
        "80.txt": on_terminal(lambda console: print_report(analysis, console, details=True), width=80),
        "120.ansi": on_terminal(
            lambda console: print_report(analysis, console, details=True), width=120, colour=True
        ),
        "html": without_vega(as_page(analysis)),
        "md": as_markdown(analysis),
        "json": as_json.render(analysis),
    }


def _comparison() -> dict[str, str]:
    sides = analysed(a_host(4)), analysed(a_host(8, 3300.0, thp="never"), speed=2.2, seed=2)
    two = compare([sides[0]], [sides[1]], related=related_factors())
    return _of_document(compare_report.document(two))


def _of_document(report: Document) -> dict[str, str]:
    return {
        "txt": on_terminal(lambda console: terminal.render(report, console)),
        "html": without_vega(page_of.render(report)),
        "md": markdown_of.render(report),
    }


def _profiles() -> dict[str, str]:
    one = profile_report.document([SLOW], "A study", embedded=False)
    two = profile_report.document([SLOW, FAST], "A study", embedded=True)
    return {**_of_document(two), "one.txt": _of_document(one)["txt"]}


def over_days() -> Trend:
    """Nine runs: another engine from the fourth on, and one run that fell."""
    newer = {Circumstance.ENGINE: "firebird 5.0.5, build 0123abcd"}
    values = (1.5, 1.51, 1.49, 1.3, 1.31, None, 1.29, 1.3, 1.05)
    runs = [
        a_trend_run(day, value, newer if day > 2 else None, note=HOSTILE if day == 8 else "")
        for day, value in enumerate(values)
    ]
    return trend(STUDY, runs, {Omission.UNFINISHED: 1, Omission.CHANGED: 2})


def _trend() -> dict[str, str]:
    report = trend_report.document(over_days())
    narrow = on_terminal(lambda console: terminal.render(report, console), width=60)
    return {"60.txt": narrow, **_of_document(report)}


def _gate() -> dict[str, str]:
    return _of_document(gate_report.document(GATE))


ALL = (*ANALYSES, "comparison", "profiles", "trend", "gate")


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for case in ALL:
        for ending, text in forms_of(case).items():
            (folder / f"{case}.{ending}").write_text(masked(text), encoding="utf-8")


def since(revision: str) -> Iterator[str]:
    """What differs from the forms of a revision, as lines of a unified difference."""
    with tempfile.TemporaryDirectory(prefix="dyno-forms-") as kept:
        folder = Path(kept)
        tree = folder / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], check=True)
        try:
            # The driver is the same: it lays out no report.
            for driver in Path(dbdyno.__file__).parent.glob("driver/_driver*.so"):
                (tree / "src" / "dbdyno" / "driver" / driver.name).symlink_to(driver)
            environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
            command = [sys.executable, "-m", "tests.report.forms", str(folder / "before")]
            subprocess.run(command, cwd=tree, env=environment, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True)
        write(folder / "now")
        names = {path.name for when in ("before", "now") for path in (folder / when).iterdir()}
        for name in sorted(names):
            before, now = (_lines(folder / when / name) for when in ("before", "now"))
            yield from difflib.unified_diff(before, now, f"before/{name}", f"now/{name}", lineterm="")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


if __name__ == "__main__":
    if sys.argv[1] == "--since":
        print("\n".join(since(sys.argv[2])))
    else:
        write(Path(sys.argv[1]))
