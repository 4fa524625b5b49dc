"""A trial under perf: what is kept of its samples, and what is refused. `dyno profile` runs it for real."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dbdyno.errors import DynoError
from dbdyno.host import perf
from dbdyno.host.perf import PROBES_MOST_S, Sample, Sampler
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.trial import training
from tests.fakes import make_study, make_tally


@pytest.fixture(autouse=True)
def perf_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """These trials are not carried out, so that perf need not be installed."""
    monkeypatch.setattr(perf, "_perf", lambda: "perf")
    monkeypatch.setattr(perf, "_require_permission", lambda program: None)


def record(outcome: Outcome = Outcome.MEASURED, cause: str = "", remedy: str = "") -> Record:
    """A trial whose measured part begins 2 s from now and lasts 10 s."""
    now_unix_s = time.time()
    tally = make_tally(started_unix_s=now_unix_s, warmup_s=2.0, duration_s=10.0)
    return Record(
        run="r",
        trial=0,
        block=0,
        position=0,
        variant="baseline",
        levels={},
        host="h",
        started_unix_s=now_unix_s,
        finished_unix_s=now_unix_s + 1.0,
        outcome=outcome,
        cause=cause,
        remedy=remedy,
        phases=(PhaseRecord(name="load", tally=tally),),
    )


def test_samples_of_the_warm_up_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, made = time.monotonic(), record()
    frames = (("main", "server"),)

    def samples(self: Sampler) -> Iterator[Sample]:
        for weight, after_s in ((1, 1.0), (2, 3.0), (3, 11.0), (4, 13.0)):
            yield Sample(time_s=now_s + after_s, weight=weight, frames=frames)

    monkeypatch.setattr(Sampler, "samples", samples)
    found = training.sampled(lambda beside: made, embedded=False)
    assert found.samples == ((2, frames), (3, frames))
    assert found.variant == "baseline"


def test_a_trial_that_was_not_measured_has_no_profile() -> None:
    failed = record(Outcome.FAILED, cause="it would not start", remedy="see its log")
    with pytest.raises(DynoError, match="baseline could not be profiled: it would not start") as refused:
        training.sampled(lambda beside: failed, embedded=False)
    assert refused.value.hint == "see its log"


def test_the_warm_up_is_long_enough_for_the_probes() -> None:
    study = make_study(1, 2)
    assert training.with_time_to_probe(study).workload.warmup_s > PROBES_MOST_S
    long = study.but(workload=study.workload.but(warmup_s=600.0))
    assert training.with_time_to_probe(long) == long
