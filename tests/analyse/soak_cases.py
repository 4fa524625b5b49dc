"""What the tests of soak share with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.soak import SoakResult, soaked
from dbdyno.records.record import Limit, PhaseRecord, Record, Recovery, Watched
from dbdyno.records.run import SoakRun, of_kind
from dbdyno.study.soak import Act, Soak
from dbdyno.study.trials import CONTROL, SUSTAINED
from tests.analyse.factory import STARTED_UNIX_S, a_run, a_study, records_of
from tests.fakes import make_tally

SECONDS = 200


RATE_PER_S = 5_000.0


STUDY = a_study(blocks=1)


OTHER = "config.page_cache=64k"


RUN = of_kind(SoakRun, a_run(STUDY), soak=Soak(clients=(8,), control_s=SECONDS, rise=0.05))


Values = npt.NDArray[np.float64]


Grows = Callable[[Values], Values]


def watched(series: Mapping[str, Grows], started_unix_s: float) -> Watched:
    time = np.arange(float(SECONDS))
    noise = np.random.default_rng(3).normal(0.0, 2_000.0, SECONDS)
    return Watched(
        started_unix_s=started_unix_s,
        seconds=tuple(time.tolist()),
        series={name: tuple((grow(time) + noise).tolist()) for name, grow in series.items()},
        limits={"private_bytes": Limit(most=8e9, source="the host's memory")},
    )


def flat(time: Values) -> Values:
    return np.full_like(time, 1e9)


def leaking(bytes_per_query: float) -> Grows:
    return lambda time: 1e9 + bytes_per_query * RATE_PER_S * time


def filling(time: Values) -> Values:
    return 1e9 + 5e8 * (1.0 - np.exp(-time / 60.0))


def rung(record: Record, grows: Grows, at_rest: Grows | None = flat) -> Record:
    """The record of a trial whose private memory grew so."""
    tally = make_tally(
        started_unix_s=STARTED_UNIX_S, duration_s=float(SECONDS), operations=round(RATE_PER_S * SECONDS)
    )
    phases = [
        PhaseRecord(
            name=SUSTAINED, clients=8, tally=tally, watched=watched({"private_bytes": grows}, STARTED_UNIX_S)
        )
    ]
    if at_rest is not None:
        resting = watched({"private_bytes": at_rest}, STARTED_UNIX_S + SECONDS)
        phases.append(PhaseRecord(name=CONTROL, clients=8, watched=resting))
    stop = Recovery(act=Act.STOP, stop_s=1.5, ready_s=0.5)
    phases.append(PhaseRecord(name="stop", clients=8, recovery=stop))
    return record.but(phases=tuple(phases), started_unix_s=STARTED_UNIX_S)


def a_soak(**by_variant: tuple[Grows, Grows | None]) -> SoakResult:
    """A soak of one rung whose baseline, and whose other variant, grew so."""
    records = records_of(STUDY)
    made = [rung(record, *by_variant.get(_short(record), (flat, flat))) for record in records]
    return soaked(STUDY, RUN, made)


def _short(record: Record) -> str:
    return "other" if record.variant == OTHER else "baseline"
