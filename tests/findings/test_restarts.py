"""The table of what each variant gains and loses."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.findings import restarts
from dbdyno.findings import restarts as part
from dbdyno.records.record import Clustered, Loss, Recovery
from dbdyno.study.designs import CONTROL
from dbdyno.study.soak import Act
from tests.analyse.restarts_cases import CONTROLLED, FAST, LOST, analysed, kept, record_of
from tests.report.forms import as_markdown, as_page


def two_variants() -> Analysis:
    baseline = record_of(0, "baseline", *[kept(full_speed_s=0.2)] * 20)
    torn = kept(act=Act.TEAR, torn_pages=0)
    return analysed(baseline, record_of(1, FAST, LOST, kept(), torn), CONTROLLED)


def test_each_act_of_a_variant_has_a_row_with_what_is_gained_and_lost() -> None:
    rows = part.rows(two_variants())
    assert [row[0] for row in rows] == ["baseline", FAST, FAST, CONTROL]
    assert rows[0][1:] == (
        "–", "nothing", "power cut", "20", "0", "0", "–", "0", "1.500", "0.2000"
    )  # fmt: skip
    assert rows[1][2:9] == ("late commits", "power cut", "2", "1", "7", "12.50", "0")
    assert rows[1][1].startswith(("1.9", "2.0"))
    assert rows[2][3] == "torn-page cut"


def test_notes_say_what_is_proved_and_how_well() -> None:
    notes = part.notes(two_variants())
    assert notes[0] == part.METHOD
    assert "The control must lose, and did: 7 of 100 acknowledged transactions in 1 of 1 power cut." in notes
    [bound] = [note for note in notes if note.startswith("baseline: none of 20 power cuts")]
    assert "95 % confidence" in bound
    assert f"{FAST}: no page was on its way in any of 1 torn-page cut, so none was torn." in notes


def test_speed_stands_beside_what_was_lost_for_it() -> None:
    [told] = [note for note in part.notes(two_variants()) if note.startswith("Speed against loss")]
    assert "baseline (1.000 times, nothing lost in 20 power cuts)" in told
    assert f"{FAST} (" in told
    assert "at most 7 transactions lost in one of 3 power cuts, the oldest 12.50 ms old" in told
    nothing_lost = part.notes(analysed(record_of(0, "baseline", kept()), CONTROLLED))
    assert not any(note.startswith("Speed against loss") for note in nothing_lost)
    damaged = kept(permits=Loss.DATA, damage="it did not start")
    notes = part.notes(analysed(record_of(1, FAST, damaged), CONTROLLED))
    assert any("the data damaged after 1 of 1 power cut" in note for note in notes)


def test_a_control_that_lost_nothing_is_not_said_to_have_lost() -> None:
    damaged = record_of(9, CONTROL, kept(permits=Loss.DATA, damage="it did not start"))
    notes = part.notes(analysed(record_of(1, FAST, kept()), damaged))
    assert "The control must lose, and did: its data were damaged in 1 of 1 power cut." in notes
    spared = record_of(9, CONTROL, kept(permits=Loss.DATA))
    notes = part.notes(analysed(record_of(1, FAST, LOST), spared))
    assert any(note.startswith("The control lost nothing in 1 power cut, but another") for note in notes)


def test_cuts_that_prove_nothing_say_so() -> None:
    notes = part.notes(analysed(record_of(1, FAST, kept())))
    assert any(note.startswith("That nothing was lost proves nothing: no setup was tried") for note in notes)


def test_what_is_not_permitted_and_what_is_missing_is_told() -> None:
    fault = LOST.model_copy(update={"permits": Loss.NOTHING})
    stop = kept(act=Act.STOP, stop_s=0.25)
    notes = part.notes(analysed(record_of(1, FAST, fault, stop, cause=""), CONTROLLED))
    assert any("its settings do not permit this: after a power cut, 7 of 100" in note for note in notes)
    assert f"{FAST}: a clean stop took 0.2500 s." in notes


def test_every_form_of_the_report_has_the_table() -> None:
    analysis = two_variants()
    assert part.TITLE in as_markdown(analysis)
    assert part.TITLE in as_page(analysis)
    assert part.TITLE not in as_markdown(analysed())


def test_what_an_engine_makes_of_flipped_bits_is_told() -> None:
    flips = [kept(act=Act.FLIP, told=told, stop_s=0.25) for told in (True, True, False, None)]
    notes = part.notes(analysed(record_of(0, "baseline", *flips[:2]), record_of(1, FAST, *flips)))
    assert "baseline: the engine told of 2 of 2 flipped bits." in notes
    assert (
        f"{FAST}: the engine told of 2 of 4 flipped bits; of 1 it handed out another row and said nothing;"
        " 1 it did not read."
    ) in notes
    assert not any("clean stop took" in note for note in notes)


def struck(act: Act, rejoin_s: float, **found: Any) -> Recovery:
    node = Clustered(struck="node2", rejoin_s=rejoin_s, transfer="streaming", silent_s=rejoin_s, looks=10)
    return kept(act=act, **{"cluster": node, **found})


def rounds() -> Analysis:
    first = Clustered(
        struck="node1", rejoin_s=2.0, transfer="base backup", replaced_s=1.5, looks=5, stale=3, stale_ms=8.0
    )
    lost = kept(act=Act.FIRST_LOST, permits=Loss.COMMITS, lost=7, lost_ms=12.5, cluster=first)
    left_out = Recovery(act=Act.NODE_CUT, blocked="there is no other node")
    killed = [struck(Act.NODE_KILL, seconds) for seconds in (0.5, 1.5, 1.0)]
    return analysed(record_of(0, "baseline", left_out), record_of(1, FAST, *killed, lost))


def test_each_act_on_nodes_has_a_row_with_the_spread_of_its_rounds() -> None:
    killed, lost = part.cluster_rows(rounds())
    assert killed[2:7] == ("killed node", "3", "300", "0", "3 of 3")
    assert killed[7:] == ("1.000 (0.5000 to 1.500)", "–", "1.000 (0.5000 to 1.500)", "streaming", "0 of 30")
    assert lost[2:7] == ("lost first node", "1", "100", "7 in 1 round", "1 of 1")
    assert lost[8:] == ("1.500 (1.500 to 1.500)", "2.000 (2.000 to 2.000)", "base backup", "3 of 5")


def test_what_was_left_out_has_no_row_and_no_other_table_has_one() -> None:
    analysis = rounds()
    assert "baseline" not in [row[0] for row in part.cluster_rows(analysis)]
    assert restarts.rows(analysis) == []
    page = as_markdown(analysis)
    assert part.CLUSTER_TITLE in page and restarts.TITLE not in page


def test_how_long_a_donor_stood_still_is_told() -> None:
    given = Clustered(struck="node2", rejoin_s=9.0, transfer="SST", donor="node3", donor_still_s=2.5)
    page = as_markdown(analysed(record_of(1, FAST, kept(act=Act.NODE_EMPTY, cluster=given))))
    assert "emptied node: the node that gave another one all its data came no further for at most 2.5" in page


def test_nodes_that_differ_are_counted_and_told() -> None:
    differing = struck(Act.NODE_KILL, 1.0, damage="nodes_equal: node3 holds t: 1 rows")
    [row] = part.cluster_rows(analysed(record_of(1, FAST, differing)))
    assert row[6] == "0 of 1"


def test_a_loss_that_is_permitted_is_told_with_its_age() -> None:
    page = as_markdown(rounds())
    assert "its settings permit that the first node takes commits along" in page
    assert "the oldest stale read came 8.000 ms after the client was told" in page
