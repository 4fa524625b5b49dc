"""The museum across runs: what it takes up, how runs stand together, and what is chosen of it."""

from __future__ import annotations

import pytest

from dbdyno.analyse import Ending, analyse
from dbdyno.analyse.collection import Museum, chosen
from dbdyno.analyse.model import Verdict
from dbdyno.records.record import Evidence, Outcome, Record
from dbdyno.study import TWIN
from tests.analyse.builds import builds
from tests.analyse.collection_cases import CACHE, LEVEL, museum_of, ran
from tests.analyse.factory import (
    a_run,
    a_study,
    blocked,
    broken,
    ended,
    every_verdict,
    records_of,
)


def endings(museum: Museum) -> dict[str, set[str]]:
    return {
        ", ".join(piece.levels) or "baseline": {str(one.ending) for one in piece.occurrences}
        for piece in museum.pieces
    }


def idle(record: Record) -> Record:
    """A trial in which nothing used the cache."""
    evidence = Evidence(
        factor="config.page_cache", requested="64k", in_effect=True, idle="no page was read twice"
    )
    return record.but(evidence=(evidence,))


def test_a_level_that_was_slower_in_three_of_four_runs_is_one_piece() -> None:
    museum = museum_of([ran(1, 0.28), ran(3, 0.31), ran(2, 0.30), ran(4, 1.4)])
    (piece,) = museum.pieces
    assert (piece.engine, piece.levels, piece.runs) == ("firebird", {"config.page_cache": "64k"}, 4)
    assert [one.run for one in piece.ended(Ending.SLOWER)] == ["day-3", "day-2", "day-1"], "the latest first"
    ratios = [one.effect.ratio for one in piece.occurrences if one.effect]
    assert ratios == pytest.approx([0.31, 0.30, 0.28], rel=0.03)
    assert piece.elsewhere == {Verdict.FASTER: 1}
    assert piece.occurrences[0].against == {"config.page_cache": "2k"}


def test_every_verdict_but_a_gain_and_an_open_one_is_taken_up() -> None:
    study, records = every_verdict()
    analysis = analyse(study, a_run(study), records)
    found = {one.exhibit.variant: one for piece in museum_of([analysis]).pieces for one in piece.occurrences}
    kept_out = (None, Verdict.FASTER, Verdict.INCONCLUSIVE)
    assert set(found) == {result.name for result in analysis.variants if result.verdict not in kept_out}
    endings = {Ending.BROKEN, Ending.FAILED, Ending.BLOCKED, Ending.SLOWER}
    assert {one.ending for one in found.values()} >= endings
    capped = found["memory.huge_pages=always"]
    assert capped.exhibit.cause == "the server capped it at madvise"
    assert capped.exhibit.evidence[0].effective is not None and capped.exhibit.trials
    assert found["config.forced_writes=off"].exhibit.checks[0].name == "balances_equal"


def test_what_moved_beside_a_slower_level_is_named_without_latencies() -> None:
    (piece,) = museum_of([ran(1, 0.5)]).pieces
    counters = {cost.metric for cost in piece.occurrences[0].counters}
    assert "server_cpu_us_per_op" in counters and not counters & {"p50_ms", "p99_ms"}


def test_a_log_is_kept_of_a_failure_and_not_of_a_speed() -> None:
    failed = ran(
        1, change=lambda record: ended(Outcome.FAILED, "it died")(record).but(server_log="signal 11")
    )
    slower = ran(2, 0.5, change=lambda record: record.but(server_log="ready"))
    logs = {one.ending: one.log for piece in museum_of([failed, slower]).pieces for one in piece.occurrences}
    assert logs == {Ending.FAILED: "signal 11", Ending.SLOWER: ""}


def test_a_level_that_nothing_used_was_not_exercised() -> None:
    study = a_study(CACHE, blocks=12)
    records = [idle(record) for record in records_of(study, trial_sd=0.002)]
    (piece,) = museum_of([analyse(study, a_run(study), records)]).pieces
    assert piece.occurrences[0].ending is Ending.NOT_EXERCISED
    assert piece.occurrences[0].idle == "no page was read twice"


def test_a_broken_baseline_is_a_piece_of_its_study() -> None:
    study = a_study(CACHE)
    records = records_of(study, changes={"baseline": broken("account 118, history 117")})
    museum = museum_of([analyse(study, a_run(study), records)])
    assert endings(museum) == {"baseline": {"broken"}}


def test_a_baseline_and_its_twin_are_one_piece_that_broke_once() -> None:
    study = a_study(CACHE, aa=True)
    changes = {name: broken("account 118, history 117") for name in ("baseline", TWIN)}
    (piece,) = museum_of([analyse(study, a_run(study), records_of(study, changes=changes))]).pieces
    assert (piece.runs, [one.exhibit.variant for one in piece.occurrences]) == (1, ["baseline"])


def test_a_mistake_of_the_user_tells_nothing_of_a_level() -> None:
    def missing(record: Record) -> Record:
        failed = ended(Outcome.FAILED, "shop.toml: there is no such file")(record)
        return failed.but(mistaken=True)

    assert museum_of([ran(1, change=missing)]).pieces == ()
    assert museum_of([ran(1, change=ended(Outcome.FAILED, "it did not start"))]).pieces


def test_where_the_baseline_failed_no_failure_is_of_a_level() -> None:
    study = a_study(CACHE)
    failed = ended(Outcome.FAILED, "w.toml: there is no such file")
    records = records_of(study, changes={"baseline": failed, LEVEL: failed})
    assert museum_of([analyse(study, a_run(study), records)]).pieces == ()


def test_a_run_without_trials_adds_nothing() -> None:
    study = a_study(CACHE)
    museum = museum_of([analyse(study, a_run(study), [])], unread=["another"])
    assert museum == Museum(pieces=(), runs=1, unread=("another",))


def test_pieces_are_chosen_by_layer_and_by_ending() -> None:
    study, records = every_verdict()
    museum = museum_of([analyse(study, a_run(study), records)])
    assert set(endings(chosen(museum, layer="memory"))) == {"memory.allocator", "memory.huge_pages"}
    failed = chosen(museum, ending=Ending.FAILED)
    assert failed.pieces and all(one.ending is Ending.FAILED for p in failed.pieces for one in p.occurrences)
    assert chosen(museum, layer="cpu").pieces == ()


def test_blocked_in_one_run_and_slower_in_another_stand_in_one_piece() -> None:
    museum = museum_of([ran(1, 0.5), ran(2, change=blocked("config.page_cache", "64k", "2k"))])
    assert endings(museum) == {"config.page_cache": {"slower", "blocked"}}
    assert len(chosen(museum, ending=Ending.BLOCKED).pieces[0].occurrences) == 1


def test_an_inert_level_stands_in_the_museum_and_a_placebo_does_not() -> None:
    study, records = builds()
    museum = museum_of([analyse(study, a_run(study), records)])
    assert endings(museum)["build.flags"] == {"inert"}
    assert "build.layout" not in endings(museum)
    [piece] = chosen(museum, ending=Ending.INERT).pieces
    assert piece.occurrences[0].exhibit.cause.startswith("12,431 functions")
