"""Text of servers, logs and other users goes through every verb in every form, and steers nothing."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from dbdyno.host.fingerprint import Host, Installed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.record import Check, Doubt, Evidence, Outcome, PhaseRecord, Reading, Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.cli.calls import called, dyno, piped
from tests.conftest import DYNO

FOREIGN_COLOUR = "\x1b[38;5;201m"
"""A colour that Dyno has no use for, so whoever meets it knows that data brought it."""
STEERING = (
    f"{FOREIGN_COLOUR}\x1b]0;pwned\x07\x1b]8;;http://evil.example\x07\x1bP1$q\x1b\\\x1b[2J\x9b31m\x85\x7f\r"
)
HIDDEN = "\u202eabc\u2066\u2028\u200f\ufffe\uffff\ufdd0\U0001fffe\x00"
TAGS = '<img src=x onerror=alert(1)></script><script>alert(1)</script>"><blink>'
MARKDOWN = "![i](http://evil.example/i.png) [l](javascript:alert(1)) a|b `c` **d** <http://evil.example>"
LONG = "long" * 5_000
HOSTILE = f"=1+1 {STEERING}{HIDDEN} {TAGS} {MARKDOWN}"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff\U0001fffe]"
)
BAR = r"\x1b\[\?25l(?:[━\w ,:%.-]|\x1b\[[0-9;]*m|\r\x1b\[2K)*\x1b\[\?25h\r?"
OWN = re.compile(rf"{BAR}|\x1b\[[0-9;]*m|\r +\r")
"""The bar of a step that takes long, Dyno's colours, and how `dyno load` takes its line back."""

TITLE = json.dumps(f"=1+1 {TAGS} {MARKDOWN}")
"""A study refuses characters that cannot be printed."""
STUDY = f"""
title  = {TITLE}
engine = "sqlite"
design = "factorial"
blocks = 6
[workload]
name     = "tpcb"
duration = "20s"
[factors]
"config.page_size" = [4096, 8192, 16384]
"""
FASTER, SLOWER = "config.page_size=8192", "config.page_size=16384"


def hostile(record: Record, run: str) -> Record:
    """The same record, with text from a server that wants to harm its reader."""
    reading = Reading(value=HOSTILE, source=HOSTILE)
    evidence = Evidence(
        factor="config.page_size",
        requested=HOSTILE,
        accepted=reading,
        effective=reading,
        exercised=reading,
        in_effect=True,
        idle=HOSTILE,
    )
    # Of one trial alone, because a table of twenty such lines is no harder and takes long.
    line = LONG if record.trial == 1 else ""
    check = Check(name=HOSTILE, holds=record.outcome is Outcome.MEASURED, detail=f"{HOSTILE}{line}")
    phases = tuple(
        phase.model_copy(update={"checks": (check,), "doubts": {Doubt.SERVER_LOG: HOSTILE}})
        for phase in record.phases or (PhaseRecord(name="load"),)
    )
    changes = {"run": run, "host": HOSTILE, "engine_version": HOSTILE, "evidence": (evidence,)}
    told = {"cause": record.cause and f"{HOSTILE}{line}", "remedy": record.cause and HOSTILE}
    return record.model_copy(
        update={**changes, **told, "phases": phases, "server_log": f"{HOSTILE}\n{HOSTILE}\n{line}"}
    )


def keep(name: str, created_unix_s: float) -> Run:
    """A run in the store in which all that can come from outside is hostile."""
    changes = {
        "run": name,
        "study_path": f"{HOSTILE}.toml",
        "study_text": STUDY,
        "study_folder": f"/{HOSTILE}",
        "host": Host.model_validate({"name": HOSTILE, HOSTILE: HOSTILE}),
        "installation": Installed(engine="sqlite", version=HOSTILE, origin=HOSTILE, digest="d"),
        "dyno_version": HOSTILE,
        "created_unix_s": created_unix_s,
        "blocks": 6,
    }
    run = a_run(a_study()).model_copy(update=changes)
    failed = {SLOWER: ended(Outcome.FAILED, "it died")} if name == "second" else None
    with Store(store_url()) as store:
        store.add_run(run)
        for record in records_of(study_of(run), {FASTER: 1.5, SLOWER: 0.5}, failed):
            store.add_record(hostile(record, name))
        store.finish_run(name)
        store.note_run(name, HOSTILE)
    return run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two hostile runs, a study, and a log, in a folder."""
    from tests.conftest import homes_in

    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch, homes_in(folder, patch):
        patch.chdir(folder)
        keep("first", 1.0)
        keep("second", 2.0)
        (folder / "study.toml").write_text(STUDY)
        (folder / "log").write_bytes(f"transactions: {HOSTILE}\n".encode())
        import_hostile(folder)
        (folder / "load.toml").write_text(f'[[transactions]]\nname = "t"\nstatements = [{STATEMENT}]\n')
        libraries(folder)
        (folder / "load.sqlite").touch()
        yield folder


BROUGHT = HOSTILE.replace("\x00", "").replace("=", "")
STATEMENT = f'SELECT 1 FROM "{BROUGHT.replace(chr(34), "")}"'
STATEMENT = json.dumps(STATEMENT, ensure_ascii=False).replace("\x7f", "\\u007f")
"""As TOML. A server says in its error what it was asked for."""
SYMBOL = f"{FOREIGN_COLOUR}\x1b]0;pwned\x07\x9b31m\u202eabc{TAGS}{MARKDOWN}"
"""The name of a function: a linker takes any bytes but zeros."""


def import_hostile(folder: Path) -> None:
    """A run of logs, all of whose names come from whoever imported it."""
    for name, rate in (("old", 100), ("new", 150)):
        ends = [number * (1_000_000 // rate) for number in range(1, 8 * rate)]
        lines = [f"0 {n} 9000 0 {1_700_000_000 + end // 10**6} {end % 10**6}" for n, end in enumerate(ends)]
        (folder / f"pgbench_log.{name}").write_text("\n".join(lines) + "\n")
    sides = [f"{BROUGHT} {name}={folder / f'pgbench_log.{name}'}" for name in ("old", "new")]
    words = ["--title", BROUGHT, "--note", BROUGHT, "--name", "brought"]
    shown = on_terminal(["import", "pgbench", "--as", sides[0], "--as", sides[1], *words], folder)
    assert "1 repetition" in shown
    require_harmless(shown, own=True)


def libraries(folder: Path) -> None:
    """Two builds of a library, in which a function with a hostile name differs."""
    name = "z" * len(SYMBOL.encode())
    for value in (1, 2):
        place = folder / f"lib{value}.so"
        text = (
            f"int {name}(int x) {{ return x * {value * 12345} + {value}; }}\nint same(void) {{ return 7; }}\n"
        )
        command = ["cc", "-O1", "-shared", "-fPIC", "-x", "c", "-o", str(place), "-"]
        subprocess.run(command, input=text, text=True, check=True)
        place.write_bytes(place.read_bytes().replace(name.encode(), SYMBOL.encode()))


READING = [
    ["runs"],
    ["show", "first"],
    ["show", "second", "1"],
    ["report", "first"],
    ["report", "second", "--details"],
    ["compare", "first", "second"],
    ["gate", "second", "--against", "first"],
    ["trend", "first"],
    ["museum"],
    ["matrix", "first", "second"],
    ["explain", "first"],
    ["baseline", "list"],
    ["plan", "study.toml"],
    ["config"],
    ["report", "brought"],
    ["diff", "lib1.so", "lib2.so"],
]
"""Verbs that show what a store, a study or a host holds."""
JSON_TOO = [verb for verb in READING if "--details" not in verb]
REFUSING = [
    ["plan", HOSTILE.replace("\x00", "")],
    ["show", HOSTILE.replace("\x00", "")],
    ["diff", HOSTILE.replace("\x00", ""), "second"],
    ["profile", "second", "--variant", HOSTILE.replace("\x00", "")],
    ["recipe", "check", HOSTILE.replace("\x00", ""), "--url", HOSTILE.replace("\x00", "")],
    ["calibrate", HOSTILE.replace("\x00", "")],
    ["load", "run", "tpcb", "--url", HOSTILE.replace("\x00", "")],
    ["load", "run", HOSTILE.replace("\x00", "")],
    ["import", "sysbench", "log"],
    ["import", "pgbench", "--as", f"{HOSTILE.replace(chr(0), '')}=log"],
    ["runs", "name", "first", HOSTILE.replace("\x00", "")],
    ["compare", "first", "lone \udcff\udc9b surrogate"],
    [HOSTILE.replace("\x00", "")],
]


TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "150", "FORCE_COLOR": "1"}


@contextmanager
def terminal() -> Iterator[tuple[int, bytearray]]:
    """A terminal, and what it is shown, all of which is there once the terminal is closed."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def follow() -> None:
        with suppress(OSError):
            while part := os.read(ours, 1 << 16):
                shown.extend(part)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        yield theirs, shown
    finally:
        os.close(theirs)
        follower.join()
        os.close(ours)


def on_terminal(arguments: list[str], folder: Path) -> str:
    """What a call shows on a terminal that has colours."""
    with terminal() as (line, shown), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in TERMINAL.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", os.fdopen(line, closefd=False))
        code = called(arguments, *(os.fdopen(line, "w", closefd=False) for _ in range(2)))
    assert code in range(9), shown.decode()
    return shown.decode().replace("\r\n", "\n")


def on_terminal_of_its_own(arguments: list[str], folder: Path) -> str:
    """The same of a process."""
    with terminal() as (line, shown):
        command, environment = [*DYNO, *arguments], {**os.environ, **TERMINAL}
        done = subprocess.run(command, stdin=line, stdout=line, stderr=line, cwd=folder, env=environment)
    assert done.returncode in range(9), shown.decode()
    return shown.decode().replace("\r\n", "\n")


def require_harmless(shown: str, own: bool = False) -> None:
    assert shown
    assert FOREIGN_COLOUR not in shown
    found = FORBIDDEN.search(OWN.sub("", shown) if own else shown)
    assert found is None, repr(shown[max(found.start() - 60, 0) : found.end() + 20])
    assert "Dyno failed" not in shown


@pytest.mark.parametrize("arguments", [*READING, *REFUSING], ids=lambda words: " ".join(words)[:24])
def test_no_terminal_is_steered(stored: Path, arguments: list[str]) -> None:
    require_harmless(on_terminal(arguments, stored), own=True)


@pytest.mark.parametrize("number", [2, 4, -2, -1])
def test_no_terminal_is_steered_by_a_process(stored: Path, number: int) -> None:
    """What a process alone has: words as the system hands them over, and streams of its own."""
    shown = on_terminal_of_its_own([*READING, *REFUSING][number], stored)
    require_harmless(shown, own=True)
    within = on_terminal([*READING, *REFUSING][number], stored)
    assert OWN.sub("", shown) == OWN.sub("", within), "the other tests see what a user sees"


def test_what_a_server_says_to_a_load_steers_no_terminal(stored: Path) -> None:
    url = f"sqlite://{stored / 'load.sqlite'}"
    shown = on_terminal_of_its_own(["load", "run", "load.toml", "--url", url, "--time", "1"], stored)
    assert "no such table" in shown and "pwned" in shown
    require_harmless(shown, own=True)


@pytest.mark.parametrize("arguments", READING, ids=lambda words: " ".join(words)[:24])
def test_what_is_piped_steers_nothing(stored: Path, arguments: list[str]) -> None:
    _, output, errors = piped(arguments)
    assert output or errors
    require_piped(output)
    require_piped(errors)


def test_what_a_process_pipes_steers_nothing(stored: Path) -> None:
    said = subprocess.run([*DYNO, "report", "second", "1"], cwd=stored, capture_output=True)
    require_piped(said.stdout)
    require_piped(said.stderr)


def require_piped(shown: bytes) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown.decode())


@pytest.mark.parametrize("arguments", JSON_TOO, ids=lambda words: " ".join(words)[:24])
def test_json_shows_codes_and_holds_the_text(stored: Path, arguments: list[str]) -> None:
    said = dyno(*arguments, "--json").stdout
    require_harmless(said)
    document = json.loads(said)
    if arguments[0] in ("runs", "show"):
        assert any(HOSTILE in text for text in _texts(document)), "a program reads what was kept"


def _texts(document: object) -> list[str]:
    if isinstance(document, dict):
        return [text for pair in document.items() for one in pair for text in _texts(one)]
    if isinstance(document, list):
        return [text for one in document for text in _texts(one)]
    return [document] if isinstance(document, str) else []


OF_PAGES = ("report", "compare", "gate", "trend", "museum", "matrix", "explain", "diff")
PAGES = [verb for verb in READING if verb[0] in OF_PAGES]


@pytest.mark.parametrize("arguments", PAGES, ids=lambda words: " ".join(words)[:24])
def test_no_page_holds_a_tag_of_others(stored: Path, arguments: list[str]) -> None:
    page = dyno(*arguments, "--format", "html").stdout
    # Vega's own script knows such letters and tags.
    shown = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    require_harmless(shown)
    for figure in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        require_harmless(figure)
    assert "<script>alert" not in page
    assert "<img" not in shown and "<blink" not in shown


@pytest.mark.parametrize("arguments", PAGES, ids=lambda words: " ".join(words)[:24])
def test_markdown_shows_no_picture_and_no_link_of_others(stored: Path, arguments: list[str]) -> None:
    require_harmless_markdown(dyno(*arguments, "--format", "markdown").stdout)


def require_harmless_markdown(text: str) -> None:
    require_harmless(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token in [*tokens, *(child for block in tokens for child in block.children or ())]:
        assert token.type not in ("image", "link_open"), token
        if token.type.startswith("html"):
            assert "<img" not in token.content and "<script" not in token.content, token.content


def test_a_recipe_shows_no_picture_and_no_link_of_others(stored: Path) -> None:
    said = dyno("recipe", "first", "--variant", FASTER, "--output", str(stored / "recipe"))
    assert said.returncode == 0, said.stderr
    require_harmless_markdown((stored / "recipe/EVIDENCE.md").read_text())
    require_harmless(on_terminal(["recipe", "first", "--output", str(stored / "again")], stored), own=True)


@pytest.mark.parametrize("arguments", [PAGES[0], PAGES[3]], ids=["report", "gate"])
def test_junit_is_xml(stored: Path, arguments: list[str]) -> None:
    said = dyno(*arguments, "--format", "junit").stdout
    ElementTree.fromstring(said)
    require_harmless(said)


def test_no_cell_is_a_formula(stored: Path) -> None:
    assert dyno("export", "second", "--csv", str(stored / "csv")).returncode == 0
    texts = [(stored / "csv/trials.csv").read_text(), dyno("museum", "--format", "csv").stdout]
    for text in texts:
        require_harmless(text)
        rows = list(csv.reader(text.splitlines()))
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1
        cells = [cell for row in rows for cell in row]
        steering = [cell for cell in cells if re.match(r"[=+\-@\t\r]", cell)]
        assert not [cell for cell in steering if not re.fullmatch(r"-[\d.e-]+", cell)]
    assert any(cell.startswith("'=1+1") for row in csv.reader(texts[0].splitlines()) for cell in row)
