"""Counted instructions in words: what was counted, how well it repeats, and what it is not."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console

from dbdyno.records.record import Counted, CountedFunction
from dbdyno.report import as_json, html, markdown, terminal
from dbdyno.report.parts import counted as part
from tests.analyse.test_counted import FAST, FAST_WORK, SLOW_WORK, analysed
from tests.cli.schemas import require_valid

BASELINE = Counted(
    operations=1000,
    per_op={"Ir": 1000.0, "D1mr": 7.0},
    repeats=(1000.0, 1001.0, 999.0),
    functions=(
        CountedFunction(
            name="0x00000000000ec7ce0", module="mariadbd", own={"Ir": 700.0, "D1mr": 7.0}, whole=900.0
        ),
        CountedFunction(name="evil\x1b[31m", module="mariadbd", own={"Ir": 300.0}, whole=300.0),
    ),
)
OTHER = BASELINE.model_copy(
    update={"per_op": {"Ir": 700.0, "D1mr": 7.0}, "functions": BASELINE.functions[:1], "repeats": (700.0,)}
)


def rendered(*each: part.Named) -> str:
    output = StringIO()
    part.render(each, Console(file=output, width=200))
    return output.getvalue()


def test_one_variant_shows_its_functions() -> None:
    text = rendered(("baseline", BASELINE))
    assert "baseline: 1,000 instructions per transaction." in text
    assert "3 counts of 1,000 transactions differ by up to 0.2 %." in text
    assert "0xec7ce0 in mariadbd" in text and "70 %" in text
    assert "Not counted: the kernel, waiting" in text and "AVX-512" in text
    assert "\x1b" not in text


def test_two_variants_show_their_difference() -> None:
    text = rendered(("fast", OTHER), ("baseline", BASELINE))
    assert "fast executes -300.0 instructions per transaction against baseline: -30 %." in text
    assert (
        "100 %" in text
        and "0xec7ce0" not in text.split("own instructions per transaction")[1].split("Per")[0]
    )


def test_what_was_simulated_is_shown_in_words() -> None:
    assert "first-level misses of reads" in rendered(("baseline", BASELINE))
    alone = BASELINE.model_copy(update={"per_op": {"Ir": 1000.0}})
    assert "Per transaction" not in rendered(("baseline", alone))


def test_the_document_is_json() -> None:
    text = part.document([("fast", OTHER), ("baseline", BASELINE)]).model_dump_json()
    require_valid("profile-counted", text)
    found = json.loads(text)
    assert [one["variant"] for one in found["counted"]] == ["fast", "baseline"]
    assert [one["change"] for one in found["changes"]] == [-300.0]
    assert "changes" not in part.document([("baseline", BASELINE)]).model_dump_json()


def shown(text: str) -> str:
    return " ".join(text.split())


def test_counts_stand_beside_the_timed_effects_in_every_form() -> None:
    analysis = analysed(("baseline", SLOW_WORK), (FAST, FAST_WORK))
    output = StringIO()
    terminal.render(analysis, Console(file=output, width=160), details=True)
    text = shown(output.getvalue())
    assert "Counted work variant instructions per op ratio repeats differ by throughput, ratio" in text
    assert f"{FAST} 70.00 0.7 1.4 % 1." in text
    assert "read 20.00 50.00 -30.00 100 %" in text
    assert f"| {FAST} | 70.00 | 0.7 | 1.4 % |" in markdown.render(analysis).replace("\\", "")
    page = html.render(analysis)
    assert "Counted work" in page and f"{FAST} against baseline" in page
    [_, fast] = json.loads(as_json.render(analysis))["counted"]
    assert (fast["instructions_per_op"], fast["ratio"], fast["told"]) == (70.0, 0.7, True)


def test_what_is_not_told_is_marked_and_what_was_not_counted_has_its_cause() -> None:
    table = part.beside_table(analysed(("baseline", SLOW_WORK), (FAST, SLOW_WORK)))
    assert [row[:3] for row in table.rows] == [("baseline", "100.0", "–"), (FAST, "100.0", "~1")]
    analysis = analysed(("baseline", SLOW_WORK), (FAST, None))
    assert part.beside_table(analysis).rows[1][1:4] == ("not counted", "–", "–")
    assert part.beside_notes(analysis)[0] == f"{FAST} was not counted: no answer under Valgrind."
