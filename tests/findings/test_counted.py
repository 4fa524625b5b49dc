"""Counted instructions in words: what was counted, how well it repeats, and what it is not."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse, as_json
from dbdyno.findings import counted as part
from dbdyno.records.record import Counted, CountedFunction, Record
from dbdyno.records.run import Counting
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP
from tests.analyse.counted_cases import FAST, FAST_WORK, SLOW_WORK, analysed
from tests.analyse.factory import a_run, a_study, changed, records_of
from tests.cli.schemas import require_valid
from tests.report.forms import as_markdown, as_page, print_report
from tests.report.shown import printed

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
    return printed(part.document(each), width=200)


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
    text = part.model([("fast", OTHER), ("baseline", BASELINE)]).model_dump_json()
    require_valid("profile-counted", text)
    found = json.loads(text)
    assert [one["variant"] for one in found["counted"]] == ["fast", "baseline"]
    assert [one["change"] for one in found["changes"]] == [-300.0]
    assert "changes" not in part.model([("baseline", BASELINE)]).model_dump_json()


def shown(text: str) -> str:
    return " ".join(text.split())


def test_counts_stand_beside_the_timed_effects_in_every_form() -> None:
    analysis = analysed(("baseline", SLOW_WORK), (FAST, FAST_WORK))
    output = StringIO()
    print_report(analysis, Console(file=output, width=160), details=True)
    text = shown(output.getvalue())
    assert "Counted work variant instructions per op ratio repeats differ by throughput, ratio" in text
    assert f"{FAST} 70.00 0.7 1.4 % 1." in text
    assert "read 20.00 50.00 -30.00 100 %" in text
    assert f"| {FAST} | 70.00 | 0.7 | 1.4 % |" in as_markdown(analysis).replace("\\", "")
    page = as_page(analysis)
    assert "Counted work" in page and f"{FAST} against baseline" in page
    [_, fast] = json.loads(as_json.render(analysis))["counted"]
    assert (fast["instructions_per_op"], fast["told"]) == (70.0, True)
    assert fast["ratio"] == analysis.counted[1].ratio


def test_what_is_not_told_is_marked_and_what_was_not_counted_has_its_cause() -> None:
    table = part.beside_table(analysed(("baseline", SLOW_WORK), (FAST, SLOW_WORK)))
    assert [row[:3] for row in table.rows] == [("baseline", "100.0", "–"), (FAST, "100.0", "~1")]
    analysis = analysed(("baseline", SLOW_WORK), (FAST, None))
    assert part.beside_table(analysis).rows[1][1:4] == ("not counted", "–", "–")
    assert part.beside_notes(analysis)[0] == f"{FAST} was not counted: no answer under Valgrind."


def counting(by: Counting, per_op: float | None = None) -> Analysis:
    """Of a run that counts builds so. With `per_op` the CPU's counters saw so many instructions, and twice as
    many in the baseline."""
    study = a_study()
    run = a_run(study).model_copy(update={"counting": by})
    records = records_of(study)
    if per_op is not None:
        records = [with_instructions(record, per_op * (2 - (record.variant == FAST))) for record in records]
    return analyse(study, run, records)


def with_instructions(record: Record, per_op: float) -> Record:
    observation, tally = record.observation, record.tally
    assert observation is not None and tally is not None
    totals = {**observation.totals, "instructions": per_op * tally.operations}
    return changed(record, observation=observation.model_copy(update={"totals": totals}))


def in_every_form(analysis: Analysis) -> list[str]:
    output = StringIO()
    print_report(analysis, Console(file=output, width=160), details=True)
    return [
        shown(text.replace("\\", ""))
        for text in (output.getvalue(), as_markdown(analysis), as_page(analysis))
    ]


def test_why_builds_are_not_counted_is_told_in_every_form() -> None:
    analysis = counting(Counting(by="nothing", why_not="valgrind is not on this machine"))
    for text in in_every_form(analysis):
        assert "Instructions are not counted: valgrind is not on this machine." in text
    assert json.loads(as_json.render(analysis))["run"]["counting"]["by"] == "nothing"


def test_what_the_cpu_counts_stands_beside_the_timed_effects() -> None:
    analysis = counting(Counting(by="counters"), 5000.0)
    [table] = part.beside_tables(analysis)
    assert [row[:3] for row in table.rows] == [
        ("baseline", "10,000", "–"),
        (FAST, "5,000", "0.500 (0.500 – 0.500)"),
    ]
    for text in in_every_form(analysis):
        assert "Counted work" in text and "Read from the CPU's counters" in text.replace("&#39;", "'")
    cost = analysis.candidates[0].cost(INSTRUCTIONS_PER_OP)
    assert cost is not None and abs(cost.ratio - 0.5) < 1e-9


def test_what_no_run_counts_is_told_of_no_run() -> None:
    plain = counting(Counting(by="valgrind"))
    assert not part.has_beside(plain)
    study = a_study()
    with_counters = [with_instructions(record, 5000.0) for record in records_of(study)]
    assert analyse(study, a_run(study), with_counters).candidates[0].cost(INSTRUCTIONS_PER_OP) is None
