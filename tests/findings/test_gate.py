"""What a gate says beside its verdict: what was compared, and what to do next."""

from __future__ import annotations

import shlex

import pytest

from dbdyno.analyse.gate import FalseAlarms, Gate, GateWay
from dbdyno.analyse.model import Reason, Verdict
from dbdyno.findings import gate as words
from dbdyno.report.renderers import html
from tests.report.browser import Outline
from tests.report.cases import HOSTILE
from tests.report.figures.gate_cases import GATE
from tests.report.shown import in_every_form


def judged(verdict: Verdict, reason: Reason | None = None, way: GateWay = GateWay.SIDE_BY_SIDE) -> Gate:
    result = GATE.result.model_copy(update={"verdict": verdict, "reason": reason})
    return GATE.model_copy(update={"result": result, "way": way})


@pytest.mark.parametrize(
    ("gate", "command"),
    [
        (judged(Verdict.SLOWER), "dyno report now --details"),
        (judged(Verdict.NO_EFFECT), "dyno baseline set main now"),
        (judged(Verdict.BROKEN), "dyno report now --trials"),
        (judged(Verdict.INCONCLUSIVE, Reason.SPREAD), "--resume now --add-blocks 6"),
        (judged(Verdict.INCONCLUSIVE, Reason.SPREAD, GateWay.STORED), "--against main"),
        (judged(Verdict.INCONCLUSIVE, Reason.GUARD), "dyno report now --trials"),
    ],
)
def test_each_verdict_names_the_next_command_in_every_form(gate: Gate, command: str) -> None:
    assert command in next(words.next_steps(gate))
    shown = in_every_form(words.document(gate), width=200)
    assert all(command in text.replace("\\", "") for text in shown)


def test_more_blocks_are_not_asked_of_images_that_differ() -> None:
    gate = judged(Verdict.INCONCLUSIVE, Reason.SPREAD)
    assert gate.result.effect is not None
    result = gate.result.but(effect=gate.result.effect.but(images=6))
    step = next(words.next_steps(gate.but(result=result)))
    assert "`images = 10`" in step and "--add-blocks" not in step


def test_a_path_with_a_space_is_one_argument_of_a_command() -> None:
    gate = judged(Verdict.INCONCLUSIVE, Reason.SPREAD, GateWay.STORED)
    run = gate.run.model_copy(update={"study_path": "my studies/it's.toml"})
    step = next(words.next_steps(gate.model_copy(update={"run": run})))
    command = step.partition(": ")[2]
    assert shlex.split(command)[:3] == ["dyno", "run", "my studies/it's.toml"]


def test_more_false_alarms_than_promised_are_followed_by_advice() -> None:
    alarms = FalseAlarms(comparisons=20, called=9, promised=0.05, share_low=0.23, share_high=0.68)
    noisy = GATE.model_copy(update={"alarms": alarms})
    assert any("dyno calibrate" in step for step in words.next_steps(noisy))
    assert not any("dyno calibrate" in step for step in words.next_steps(GATE))


def test_both_sides_are_named_and_what_differs_is_marked() -> None:
    run = GATE.run.but(installation={"engine": "mariadb", "version": "11.8.2"})
    gate = GATE.model_copy(update={"run": run})
    rows = {name: (theirs, ours) for name, theirs, ours in words.sides(gate)}
    assert rows["run"] == ("first", "now") and rows["engine"][1] == "mariadb 11.8.2"
    marked = [
        attributes for tag, attributes in Outline(html.render(words.document(gate))).elements if tag == "tr"
    ]
    assert sum(attributes.get("class") == "differs" for attributes in marked) == sum(
        theirs != ours for theirs, ours in rows.values()
    )


def test_hostile_names_make_no_element() -> None:
    gate = GATE.model_copy(update={"against": HOSTILE})
    outline = Outline(html.render(words.document(gate)))
    assert outline.count("script") == 1
    assert outline.leads_out == []
