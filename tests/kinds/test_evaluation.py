"""What an evaluation answers, asks and refuses, on surfaces that are known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from dbdyno.findings.searched import analyse_search
from dbdyno.frozen import Frozen, Level
from dbdyno.kinds.evaluation import Dialogue, end_line, hand_out
from dbdyno.records.record import Record
from dbdyno.records.run import EvaluationRun, of_kind
from dbdyno.report.words.search import sentences
from dbdyno.study import BASELINE, Study
from dbdyno.study.grammars import constraint
from dbdyno.study.nouns import Search
from dbdyno.study.trials import Purpose
from tests.searches import SPEED, Surface, a_search, listed, measured, ranged, two_changes_help

Line = dict[str, Any]
LOG = {"levels": {"config.log": 1}}
POOL = {"levels": {"config.pool": 4}}


def evaluated(
    *asked: object,
    surface: Surface = two_changes_help,
    own: bool = False,
    budget_s: float = 5000.0,
    study: Study | None = None,
    begun: Sequence[Record] = (),
    trials: int = 10**6,
) -> tuple[list[Line], list[Record], EvaluationRun]:
    """What is said to these lines, and the records of the trials, of which there are at most so many more."""
    drawn, run = a_search(budget_s=budget_s, seed=5)
    study = study or drawn
    evaluation = of_kind(EvaluationRun, run, own=own, budget_s=budget_s)
    said: list[Line] = []
    lines = (one if isinstance(one, str) else json.dumps(one) for one in asked)
    dialogue = Dialogue(lines, lambda line: said.append(json.loads(line.model_dump_json())), lambda _: 0)
    records = list(begun)
    while len(records) - len(begun) < trials and (following := dialogue.ask(study, evaluation, records)):
        records += [measured(trial, run, surface) for trial in following]
    return said, records[: len(begun) + trials], evaluation


def variants_of(records: Iterable[Record], purpose: Purpose) -> list[set[str]]:
    """The variants of each block for a purpose."""
    blocks: dict[int, set[str]] = {}
    for record in records:
        if record.purpose is purpose:
            blocks.setdefault(record.block, set()).add(record.variant)
    return list(blocks.values())


def test_the_first_line_states_budget_floor_seed_and_space() -> None:
    [opening], records, _ = evaluated()
    assert (opening["line"], opening["version"], opening["seed"]) == ("opening", 1, 5)
    assert opening["budget_s"] == 5000.0 and 0.0 < opening["left_s"] < 5000.0 - opening["reserved_s"]
    assert [one["name"] for one in opening["factors"]] == ["config.pool", "config.log", "config.io"]
    assert opening["factors"][0]["ordered"] and opening["factors"][0]["levels"] == list(range(16))
    logs = [math.log(value["baseline"] / value["baseline-twin"]) for value in floor_values(records)]
    assert opening["floor"]["log_sd"] == pytest.approx(math.sqrt(sum(one**2 for one in logs) / len(logs)))
    assert opening["floor"]["ratio"] > math.exp(opening["floor"]["log_sd"])


def floor_values(records: Sequence[Record]) -> list[dict[str, float]]:
    """The speeds of each block of the noise floor, by variant."""
    blocks: dict[int, dict[str, float]] = {}
    for record in records:
        if record.purpose is Purpose.FLOOR and record.tally is not None:
            blocks.setdefault(record.block, {})[record.variant] = record.tally.throughput_per_s
    return list(blocks.values())


def test_levels_are_answered_beside_the_baseline_with_an_interval_of_the_floor() -> None:
    [_, answer, *_], records, _ = evaluated({**LOG, "id": "mine"})
    assert variants_of(records, Purpose.SEARCH) == [{BASELINE, "candidate-1"}]
    assert (answer["line"], answer["number"], answer["id"]) == ("answer", 1, "mine")
    assert answer["levels"] == {"config.pool": 0, "config.log": 1, "config.io": 0}
    ratio = answer["ratio"]
    assert ratio["value"] == pytest.approx(answer["response"] / answer["baseline"])
    assert ratio["low"] < math.exp(0.3) < ratio["high"] and ratio["rests_on"] == "floor"
    assert answer["worth"] == pytest.approx(math.log(ratio["value"]))
    assert answer["cost_s"] == pytest.approx(20.0) and answer["outcome"] == "measured"


def test_many_blocks_narrow_the_interval_and_rest_on_themselves() -> None:
    [_, one, two, many, *_], records, _ = evaluated(LOG, LOG, {**LOG, "blocks": 6})
    assert [answer["ratio"]["blocks"] for answer in (one, two, many)] == [1, 2, 8]
    assert [answer["ratio"]["rests_on"] for answer in (one, two, many)] == ["floor", "floor", "blocks"]
    width = [answer["ratio"]["high"] / answer["ratio"]["low"] for answer in (one, two)]
    assert width[1] == pytest.approx(width[0] ** (1 / math.sqrt(2.0)))
    assert many["cost_s"] == pytest.approx(6 * one["cost_s"])
    assert len(variants_of(records, Purpose.SEARCH)) == 8


@pytest.mark.parametrize(
    ("line", "why", "hint"),
    [
        ("{", "this line is no JSON", "write"),
        ("[" * 5000, "this line is no JSON", "write"),
        ([1], "no object of JSON", "write"),
        ({"id": 7}, "no object `levels`", "write"),
        ({"levels": {"config.pol": 4}}, "the study varies no config.pol", "did you mean config.pool?"),
        ({"levels": {"zzz": 4}}, "the study varies no zzz", "config.pool, config.log, config.io"),
        ({"levels": {"config.pool": 99}}, "config.pool has no level 99", "nearest of its 16 levels: 15, 14"),
        ({"levels": {"config.log": True}}, "config.log has no level true", "its levels: 0, 1"),
        ({"levels": {"config.log": [1]}}, "config.log has no level [1]", "its levels: 0, 1"),
        ({**LOG, "blocks": 0}, "`blocks` is 0", "from 1 to 50"),
    ],
)  # fmt: skip
def test_a_wrong_line_gets_one_answer_and_ends_nothing(line: object, why: str, hint: str) -> None:
    said, records, _ = evaluated(line, LOG)
    assert [one["line"] for one in said] == ["opening", "refused", "answer"]
    assert why in said[1]["why"] and hint in said[1]["hint"] and said[1]["number"] == 1
    assert said[1]["id"] == (line.get("id") if isinstance(line, dict) else None)
    assert len(variants_of(records, Purpose.SEARCH)) == 1


def test_a_level_may_be_written_as_text_or_as_another_number() -> None:
    said, _, _ = evaluated({"levels": {"config.pool": "4"}}, {"levels": {"config.pool": 4.0}})
    assert [one["variant"] for one in said[1:]] == ["candidate-1", "candidate-1"]


def test_what_fails_is_answered_with_the_reason_and_has_no_worth() -> None:
    said, _, _ = evaluated(POOL, surface=lambda levels: None if levels["config.pool"] else 0.0)
    assert said[1]["outcome"] == "failed" and said[1]["why"] == "the server did not start"
    assert said[1]["ratio"] is None and said[1]["worth"] is None


def test_levels_that_break_a_constraint_are_not_measured() -> None:
    study, _ = a_search()
    limited = study.but(search=Search(constraints=(constraint("config.pool + config.io <= 3"),)))
    said, records, _ = evaluated(POOL, LOG, study=limited)
    assert said[1]["outcome"] == "not measured" and "config.pool + config.io" in said[1]["why"]
    assert said[2]["outcome"] == "measured" and len(variants_of(records, Purpose.SEARCH)) == 1


def test_the_budget_ends_what_is_asked_and_leaves_time_to_confirm() -> None:
    said, records, run = evaluated(*[LOG] * 20, budget_s=600.0)
    outcomes = [one["outcome"] for one in said[1:]]
    assert outcomes[0] == "measured" and outcomes[-1] == "not measured"
    assert "s are left for what is asked" in said[-1]["why"]
    assert variants_of(records, Purpose.CONFIRMATION) == [{BASELINE, "candidate-1"}] * 6
    assert sum(record.took_s for record in records) <= run.budget_s


def test_a_run_that_goes_on_answers_the_same_and_measures_nothing_again() -> None:
    asked = (LOG, POOL, LOG, {"levels": {"config.io": 3}})
    whole, records, _ = evaluated(*asked)
    floor = 8
    for kept in (floor + 2, floor + 3, floor + 4, floor + 5, len(records) - 3):
        said, after, _ = evaluated(*asked, begun=records[:kept])
        again, unlike = [dict(one) for one in said[1:]], [dict(one) for one in whole[1:]]
        there = min(4, (kept - floor) // 2)
        assert [one["kept"] for one in again] == [number < there for number in range(4)]
        for one, other in zip(again[:there], unlike, strict=False):
            assert (one["ratio"], one["cost_s"]) == (other["ratio"], other["cost_s"])
        torn = kept == floor + 2 * there + 1
        assert len(variants_of(after, Purpose.SEARCH)) == 4 + torn
        assert len({record.trial for record in after}) == len(after)


def test_nothing_is_asked_any_more_once_the_best_are_measured_again() -> None:
    _, records, _ = evaluated(LOG)
    said, after, _ = evaluated(LOG, POOL, begun=records[:-3])
    assert [one["outcome"] for one in said[1:]] == ["measured", "not measured"]
    assert "measured again" in said[2]["why"]
    assert len(after) == len(records)


def test_own_search_has_as_much_time_and_both_are_judged_in_the_same_blocks() -> None:
    _, records, run = evaluated(*({"levels": {"config.io": step}} for step in range(1, 8)), own=True)
    searched = variants_of(records, Purpose.SEARCH)
    assert sum(any(name.startswith("own-") for name in block) for block in searched) == len(searched) / 2
    blocks = variants_of(records, Purpose.CONFIRMATION)
    assert len(blocks) == 6 and all(block == blocks[0] for block in blocks)
    study, _ = a_search(seed=5)
    found = analyse_search(study, run, records)
    assert found.search is not None
    assert {one.side for one in found.search.judged} >= {"theirs", "own"}
    last = end_line(found)
    assert last.winner is not None and last.winner.startswith("own-")
    theirs = [one for one in last.judged if one.side != "own"]
    assert not any(one.holds for one in theirs)
    assert f"0 of {len(theirs)} of the best hold" in last.why
    assert any(f"0 of {len(theirs)} of theirs hold" in sentence for sentence in sentences(found.search))


def proposed(*told: object, before: Sequence[object] = (), times: int = 1) -> list[Line]:
    """What Dyno's own search asks for, as it is told these results."""
    study, _ = a_search()
    said: list[Line] = []

    def say(line: Frozen) -> None:
        said.append(json.loads(line.model_dump_json()))

    written = [one if isinstance(one, str) else json.dumps(one) for one in told]
    hand_out(study, 1, [json.dumps(one) for one in before], written * times, say)
    return said


def searcher(surface: Callable[[Mapping[str, Level]], float | None], asked: int) -> list[Line]:
    """A whole search by asking and telling."""
    results: list[Line] = []
    for _ in range(asked):
        levels = proposed(before=results)[-1]["levels"]
        true = surface(levels)
        results.append(
            {"levels": levels, **({"why": "crash"} if true is None else {"ratio": math.exp(true)})}
        )
    return results


def test_own_search_finds_by_asking_and_telling_what_helps() -> None:
    results = searcher(two_changes_help, 25)
    best = max(results, key=lambda one: one["ratio"])
    assert best["ratio"] == pytest.approx(math.exp(1.3)), "both changes, of 256 points"


def test_levels_that_failed_are_not_proposed_again() -> None:
    results = searcher(lambda levels: None if levels["config.log"] else 0.0, 12)
    failed = [json.dumps(one["levels"]) for one in results if "why" in one]
    assert failed and len(failed) == len(set(failed))


def test_a_wrong_result_is_refused_and_the_candidate_stays() -> None:
    said = proposed("{", {"levels": {}}, {"levels": {}, "ratio": -1}, {**LOG, "ratio": 1.5})
    assert [one["line"] for one in said] == ["candidate", "refused", "refused", "refused", "candidate"]
    assert "neither a `ratio` above 0 nor a `why`" in said[2]["why"]


def test_answers_of_an_evaluation_are_results() -> None:
    said, _, _ = evaluated(LOG, POOL, {"levels": {"config.io": 7}})
    again = proposed(before=said)
    assert [one["line"] for one in again] == ["candidate"]
    assert again[0]["levels"] not in [one["levels"] for one in said[1:]]
    assert again == proposed(before=[{"levels": one["levels"], "ratio": one["ratio"]} for one in said[1:]])


def test_a_space_that_is_exhausted_is_told() -> None:
    study, _ = a_search(listed("config.log", 2), ranged("config.io", 2))
    said: list[Any] = []
    results = [json.dumps({"levels": {"config.log": log, "config.io": io}, "ratio": 1.0 - log / 9 - io / 9})
               for log in (0, 1) for io in (0, 1)]  # fmt: skip
    hand_out(study, 1, results, [], said.append)
    assert said[-1].line == "end" and "nothing of the space is left" in said[-1].why


def test_speeds_are_those_of_the_surface() -> None:
    said, _, _ = evaluated(POOL)
    assert said[1]["baseline"] == pytest.approx(SPEED, rel=0.3)
