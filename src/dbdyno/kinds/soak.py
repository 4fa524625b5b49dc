"""`dyno soak`: from a study to a soak that has begun, or that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import UserError
from dbdyno.frozen import listed
from dbdyno.host.cache import Tell
from dbdyno.host.room import available_memory_bytes, require_descriptors
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import Beginning, KindOfRun, no_memory
from dbdyno.plan.blocks import next_rung, soak_expected_s
from dbdyno.prepare_run.adapted import require_timed, server_bytes
from dbdyno.prepare_run.begun import Begun, new_run
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.prepare_run.stored_study import measured_installation, study_of
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.run import SoakRun
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.study import Arrangement, Goal, Study
from dbdyno.study.designs import size_of_study
from dbdyno.study.front import FRONT_KIND
from dbdyno.study.sections import soak_of
from dbdyno.study.soak import Soak
from dbdyno.study.trials import GUESTS_SHARE

if TYPE_CHECKING:
    from dbdyno.analyse.soak import SoakResult
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told
    from dbdyno.records.record import Record

CLIENT_LEAST_BYTES = 64 << 10
"""Less than any server takes for a session: where not even that is there, the rung is not tried."""
DESCRIPTORS_BESIDE = 1_000
"""What a server opens beside its connections: tables, logs, libraries."""


def begin_soak(
    path: Path,
    smoke: bool,
    clients: tuple[int, ...] | None,
    duration_s: float | None,
    seed: int | None,
    allowed: Allowed,
    tell: Tell,
) -> Begun:
    """A soak that begins, before any of its trials."""
    read = require_timed(study_at(path, seed=seed, allowed=allowed), "dyno soak")
    for line in require_sound(read, tell, allowed=allowed):
        tell(line)
    engine = registry.engine(read.engine.engine)
    soak = _wanted(read, smoke, clients, duration_s, engine, tell)
    read = rung_by_rung(read, soak)
    installation = registry.locate(read.engine)
    require_clients(soak, read, engine)
    run = new_run(SoakRun, read, installation, tell, soak=soak)
    return Begun(read, run, installation)


def _wanted(
    study: Study,
    smoke: bool,
    clients: tuple[int, ...] | None,
    duration_s: float | None,
    engine: Engine,
    tell: Tell,
) -> Soak:
    """How a study is soaked, with what the command line changes."""
    soak = soak_of(study, smoke)
    if study.soak is None and not smoke and duration_s is None:
        ladder = listed([*map(str, clients or soak.clients)])
        loaded = f"{about_text(soak.duration_s)} of load with each of {ladder}"
        tell(
            f"the study has no [soak], so its defaults hold: {loaded} clients."
            " Shorter: --duration 5m, or --smoke for about two minutes"
        )
    given = {"clients": clients, "duration_s": duration_s}
    soak = soak.but(**{name: value for name, value in given.items() if value is not None})
    if engine.embedded:
        tell(f"{engine.title} lives in the load process, so no other clients disturb it")
        return soak.within_process()
    return soak


def rung_by_rung(study: Study, soak: Soak) -> Study:
    """The study as a soak carries it out: a block for each rung, one trial after the other, and no other
    trials. Raises UserError where it varies what the rungs give, or has something in front of the server,
    which would not follow that when it is started again."""
    if study.front_kinds:
        raise UserError(
            f"{study.front_kinds[0]} stands in front of the server, and a soak asks the server alone",
            f"leave `{FRONT_KIND}` out and take a workload of the server's",
        )
    if study.driver is not None:
        raise UserError(
            f"the load comes from {study.driver.hosts_text}, and a soak's clients are processes of this host",
            "leave [driver] out",
        )
    if any(factor.name == "workload.clients" for factor in study.factors):
        raise UserError(
            "workload.clients is a factor, and the ladder of a soak gives the clients",
            "write one number under [workload], and the ladder as `clients` under [soak]",
        )
    return study.but(
        blocks=len(soak.clients),
        arrangement=Arrangement.ONE_AFTER_THE_OTHER,
        images=study.images or 1,
        restarts=None,
        # How sure a drift must be. What else the goal asks is for runs, as is what is counted, not timed.
        goal=Goal(margin=study.goal.margin, confidence=study.goal.confidence, counted=False),
    )


def beginning_of_soak(begun: Begun) -> Beginning:
    """A soak that begins or goes on, with how long all rungs will take."""
    study, run = begun.study, begun.run
    assert isinstance(run, SoakRun), "the run is a soak"
    trials, takes_s = size_of_study(study).trials, soak_expected_s(run.soak, study, overhead_s(study))

    def lines(_kept: int, _now_unix_s: float) -> Sequence[str]:
        rungs = f"{plural(trials, 'rung')} (a rung is one number of clients)"
        return [f"{study.title}\nrun {run.run}: {rungs}, about {about_text(takes_s)}"]

    return Beginning(begun, takes_s, takes_s, lines, trials)


class Soaking(KindOfRun):
    """A soak has a rung in each block, and phases in each trial."""

    result = "soak"

    def goes_on(self, run: Any) -> Begun:
        study = rung_by_rung(study_of(run), run.soak)
        return Begun(study, run, measured_installation(study, run))

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        return partial(next_rung, run.soak)

    def found(self, study: Study, run: Any, records: Sequence[Record]) -> SoakResult:
        # Here and below, because a soak that begins has found nothing yet.
        from dbdyno.analyse.soak import soaked

        return soaked(study, run, records)

    def ends_with(self, found: SoakResult) -> tuple[str, str]:
        from dbdyno.analyse.soak import SoakVerdict

        # A soak that stands, and one that is open, end well.
        stops = {
            SoakVerdict.BROKEN: "broken",
            SoakVerdict.FAILED: "failed",
            SoakVerdict.BLOCKED: "failed",
            SoakVerdict.DRIFTS: "slower",
        }
        return stops.get(found.verdict, ""), found.verdict.value


SOAK = Soaking()


def require_clients(soak: Soak, study: Study, engine: Engine) -> None:
    """Raises UserError where this host cannot hold the clients of the highest rung, before anything runs."""
    clients = max(soak.clients)
    what = plural(clients, "client")
    if not engine.embedded:
        require_descriptors(round(clients * (1.0 + GUESTS_SHARE)) + DESCRIPTORS_BESIDE, what)
    needed_bytes = server_bytes(study, {**study.settings, **study.baseline}) + clients * CLIENT_LEAST_BYTES
    available_bytes = available_memory_bytes()
    if needed_bytes > available_bytes:
        raise UserError(
            f"{what} and the server's caches need at least {needed_bytes >> 20:,} MiB of memory, and"
            f" {available_bytes >> 20:,} MiB are available",
            "take fewer clients (--clients), or smaller caches",
        )
