"""What a run will take: its time, by what trials of its engine took before or by a rule; its restarts, its
copies of the data, and every place that it writes to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from rich.text import Text

from dbdyno.calibrate.kept import load_of
from dbdyno.driver.tally import Tally
from dbdyno.engines import registry
from dbdyno.errors import DynoError
from dbdyno.frozen import Frozen, Level
from dbdyno.host import paths
from dbdyno.host.launch import SHARED_MEMORY, SHORT_LIVED, servers_text
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import HostChange
from dbdyno.layers.setup import LOOP_DEVICES, STAYS
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.prepare_run.building import why_counted
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.prepare_run.study_here import data_text, planned_data
from dbdyno.records.place import place_of_store
from dbdyno.records.record import Outcome
from dbdyno.records.run import Run
from dbdyno.report.words.numbers import about_text, clock_text, plural, seconds_text
from dbdyno.study import Study
from dbdyno.study.designs import (
    CONTROL_CUTS,
    acts_of,
    control_of,
    counted_variants,
    restart_trial_count,
    restarted,
    restarted_variants,
    trial_count,
    trials_in_all,
    variants_of,
)
from dbdyno.study.nouns import STATEMENTS
from dbdyno.study.soak import OF_CLUSTER, OF_POWER
from dbdyno.study.trials import SETTLE_S
from dbdyno.trial.pristine import IMAGES_ENOUGH, worth_s

if TYPE_CHECKING:
    from dbdyno.records.store import Store


def require_load_host(study: Study) -> None:
    """Raises UserError where this host cannot listen on the study's address, and DriverFailed where a load
    host is not reached or has no driver that runs."""
    if study.driver is None:
        return
    # Here, because most loads come from this host.
    from dbdyno.driver.remote.load import DriverOnHost
    from dbdyno.engines.server import free_port

    free_port(study.driver.address)
    for host in study.driver.hosts:
        DriverOnHost(host).close()


def load_host_lines(study: Study) -> Iterator[str]:
    """Where the load comes from, where that is another host."""
    if study.driver is None:
        return
    found = study.driver
    how = "encrypted" if found.tls else "on a network that the study states to be private"
    yield (
        f"the load comes from {found.hosts_text} over SSH; each server listens on {found.address} during its"
        f" trial, {how}, for an account with a random password"
    )


def images_text(study: Study, budget_s: float | None) -> str:
    """How many images of the pristine data pairs of blocks take in turn, as far as that is known before the
    first, and where they come from."""
    if planned := planned_data(study):
        return data_text(planned)
    if study.server is not None:
        return ""
    if study.search is not None:
        return "data: the confirmation makes copies of its own"
    if study.images is not None:
        images = min(study.images, math.ceil(study.blocks / 2))
        copies = plural(images, "copy", "copies")
        return f"data: {copies}, each made anew" if images > 1 else f"data: {copies}"
    limit = f"fewer if the others take longer than {seconds_text(worth_s(study, budget_s))} to make"
    return f"data: up to {IMAGES_ENOUGH} copies, each made anew; {limit}"


def restarts_text(study: Study) -> str:
    """Which restarts come before the blocks, under which load and how long they take; empty where none do."""
    if study.restarts is None:
        return ""
    counts = Counter(acts_of(study.restarts))
    each = ", ".join(plural(count, act.words) for act, count in counts.items())
    control = ""
    if control_of(study) is not None:
        control = ", and of a control that must lose; on volumes of Dyno's own, which needs root"
    size = f"{plural(restart_trial_count(study), 'trial')}, about {about_text(restarts_s(study))}"
    load = "" if study.in_guest else f", under {restarted(study).workload.name}"
    when = "no blocks, because nothing is timed" if study.untimed else "before the blocks"
    return f"{when}{load}: {each} of each variant{control}; {size}"


SERVER_OVERHEAD_S, EMBEDDED_OVERHEAD_S = 2.5, 0.5
COUNTED_S, EMBEDDED_COUNTED_S = 60.0, 15.0
"""About what a trial takes that is counted under Valgrind."""

ROUND_S = 3.0
"""About what a restart takes beside its load: mounting, recovery, and a look at all data."""
RESET_S = 20.0
"""About what a reset of an emulated machine takes, and its power on."""
NODE_ROUND_S = 10.0
"""What a round on a cluster's nodes takes on top: a node is away, comes back, and all rows are compared."""


UNKNOWN = "the first trial shows how long the rounds of these statements take"


@dataclass(frozen=True)
class EarlierTrials:
    """Seconds that each measured trial of one earlier run took, of the whole trial or beside its load."""

    took_s: tuple[float, ...] = ()
    of_other_data: bool = False

    @property
    def words(self) -> str:
        """What an estimate rests on."""
        if not self.took_s:
            return "by a rule of thumb"
        on = " on other data" if self.of_other_data else ""
        return f"by {plural(len(self.took_s), 'earlier trial')}{on}"


@dataclass(frozen=True)
class RunEstimate:
    """What a run takes: `trials_s` all its trials, with the `again` of a reference that takes turns with it,
    and `builds_s` the builds before them. `seen` is what it rests on. Of trials that are `unknown` it is the
    most that their loads may take."""

    trials_s: float
    seen: EarlierTrials
    again: int = 0
    builds_s: float = 0.0
    unknown: bool = False

    @property
    def whole_s(self) -> float:
        return self.builds_s + self.trials_s


def run_estimate(store: Store, study: Study, again: int = 0, builds_s: float = 0.0) -> RunEstimate:
    """By the median of what measured trials of the engine's latest run took beside their load; of statements,
    whose rounds take as long as they take, by what whole trials of them took. The `again` trials of a
    reference are taken to be as long as the study's."""
    trials = trial_count(study) + again
    if study.workload.name == STATEMENTS:
        seen_s = rounds_seen_s(store, study)
        timed_s = trials * fmean(seen_s) if seen_s else expected_duration_s(trials, study, overhead_s(study))
        return RunEstimate(timed_s, EarlierTrials(tuple(seen_s)), again, builds_s, unknown=not seen_s)
    beside_s, seen = beside_load_s(store, study)
    timed_s = expected_duration_s(trials, study, beside_s)
    return RunEstimate(timed_s + beside_blocks_s(study), seen, again, builds_s)


def rounds_seen_s(store: Store | None, study: Study) -> list[float]:
    """What each measured trial of the latest run of the same statements took, as often sent to this engine;
    none where no run did so."""
    for summary in store.runs() if store is not None else ():
        run = summary.run
        if run.installation.engine != study.engine.engine or Outcome.MEASURED not in summary.outcomes:
            continue
        with suppress(DynoError, OSError):
            if not run.one_load or load_of(study_of(run)) != load_of(study):
                continue
            records = store.readable_records(run.run) if store is not None else ()
            if seen_s := [one.took_s for one in records if one.outcome is Outcome.MEASURED and one.tally]:
                return seen_s
    return []


def overhead_s(study: Study) -> float:
    """Seconds that a trial is taken to need beside its load: restoring the data, starting, checking,
    stopping. As seen on two cores; what it really takes is in every record."""
    if why_counted(study):
        return COUNTED_S
    embedded = registry.engine(study.engine.engine).embedded
    return EMBEDDED_OVERHEAD_S if embedded else SERVER_OVERHEAD_S


RUNS_READ_MOST = 50
"""So many of the engine's latest runs are read at most, to find one on the same data."""


def beside_load_s(store: Store | None, study: Study) -> tuple[float, EarlierTrials]:
    """Seconds that a trial takes beside its load, and what they rest on: trials of the engine's latest run on
    the same data, or else of its latest run at all, or else a rule. A plan may have no store."""
    seen = _seen_beside_load(store, study) if store is not None else EarlierTrials()
    return median(seen.took_s) if seen.took_s else overhead_s(study), seen


def _seen_beside_load(store: Store, study: Study) -> EarlierTrials:
    of_engine = (
        summary.run
        for summary in store.runs()
        if summary.run.installation.engine == study.engine.engine
        and summary.run.one_load
        and Outcome.MEASURED in summary.outcomes
    )
    runs = list(islice(of_engine, RUNS_READ_MOST))
    alike = ((run, False) for run in runs if _had_data_of(study, run))
    for run, of_other_data in chain(alike, ((run, True) for run in runs)):
        if took_s := _beside_load_s(store, run):
            return EarlierTrials(took_s, of_other_data)
    return EarlierTrials()


def _beside_load_s(store: Store, run: Run) -> tuple[float, ...]:
    """Of each trial whose speed was measured: what is counted takes its own time."""
    return tuple(
        max(0.0, record.beside_load_s - _settling_s(record.tally))
        for record in store.readable_records(run.run)
        if record.outcome is Outcome.MEASURED
        and record.tally is not None
        # Beside the rounds that are timed, statements are sent as often again.
        and record.tally.workload != STATEMENTS
    )


def _had_data_of(study: Study, run: Run) -> bool:
    """Whether a run had the workload of the study, with all that shapes its data."""
    with suppress(DynoError, OSError):
        return _data_of(study_of(run)) == _data_of(study)
    return False


def _data_of(study: Study) -> tuple[str, dict[str, Level]]:
    load = study.workload
    return load.name, {name: level for name, level in load.options.items() if name not in load.run_options}


def beside_blocks_s(study: Study) -> float:
    """About what the trials take that stand beside the timed blocks."""
    return counted_s(study) + restarts_s(study)


def counted_s(study: Study) -> float:
    """About what the trials take whose work is counted beside the timed ones."""
    if not (variants := counted_variants(study)):
        return 0.0
    embedded = registry.engine(study.engine.engine).embedded
    return (EMBEDDED_COUNTED_S if embedded else COUNTED_S) * len(variants)


def restarts_s(study: Study) -> float:
    """About what the trials take in which engines are restarted."""
    if study.restarts is None:
        return 0.0
    rounds = len(acts_of(study.restarts)) * len(restarted_variants(study))
    rounds += CONTROL_CUTS if control_of(study) is not None else 0
    resets = study.restarts.resets * len(restarted_variants(study))
    on_nodes = sum(act in OF_CLUSTER for act in acts_of(study.restarts)) * len(restarted_variants(study))
    rounds_s = rounds * (study.restarts.load_s + ROUND_S) + on_nodes * NODE_ROUND_S + resets * RESET_S
    return restart_trial_count(study) * overhead_s(study) + rounds_s


def header_of_run(study: Study, run: Run, found: RunEstimate, kept: int, now_unix_s: float) -> str:
    """What begins: the study, the run, its size, and when it will end by the estimate."""
    trials = trials_in_all(study)
    whole = trials + found.again
    left_s = found.builds_s + found.trials_s * (whole - kept) / whole
    until = clock_text(now_unix_s + left_s)
    ends = f"about {about_text(left_s)}, until {until} (an estimate {found.seen.words})"
    variants = plural(len(variants_of(study)), "variant")
    size = variants if study.untimed else f"{variants}, {plural(study.blocks, 'block')}"
    done = f", {kept} of them kept" if kept else ""
    done += f" and {found.again} of the reference" if found.again else ""
    return (
        f"{study.title}\n"
        f"run {run.run}: {size}, {plural(trials, 'trial')}{done}; {UNKNOWN if found.unknown else ends}"
    )


def _settling_s(tally: Tally) -> float:
    """Seconds before a trial's slices, which `Phase.takes_s` holds as well."""
    return SETTLE_S * len(tally.slices)


CLEARED = "removed after each trial"
KEPT = "kept"
ENDS = "removed when the run ends"


class Write(Frozen):
    """A place with all below it: a path, in which `*` stands for anything, or a database. `what` says what is
    written there, `after` what becomes of it."""

    place: str
    what: str
    after: str


def writes_of(
    study: Study, changes: tuple[HostChange, ...], store: str, allowed: Allowed
) -> tuple[Write, ...]:
    """All places that a run of the study writes to, with the store at a URL. Makes no folder."""
    return tuple(dict.fromkeys(_writes(study, changes, store, allowed)))


def _writes(study: Study, changes: tuple[HostChange, ...], store: str, allowed: Allowed) -> Iterator[Write]:
    yield Write(place=place_of_store(store), what="the store: each trial's record", after=KEPT)
    yield Write(place=str(paths.data_place()), what="reports", after=KEPT)
    cache = paths.cache_place()
    yield Write(
        place=str(cache / "trials"), what="each trial's data, and the mount of its volume", after=CLEARED
    )
    yield Write(place=str(cache), what="pristine data, builds, fetched engines", after="kept: dyno cache")
    for link in _links(cache):
        yield Write(place=str(link.resolve()), what=f"what {link} leads to", after="kept: dyno cache")
    yield Write(place=str(paths.runtime_place()), what="sockets and logs of running servers", after=CLEARED)
    yield Write(
        place=str(paths.state_place()), what="records that wait for the store", after="kept until then"
    )
    yield Write(place=str(paths.host_place()), what="the journal that restores this host", after=ENDS)
    for folder in SHORT_LIVED:
        yield Write(place=str(folder), what="what programs keep for a moment", after=ENDS)
    yield Write(place=str(SHARED_MEMORY), what="memory that a server's processes share", after=CLEARED)
    for change in changes:
        for place in change.places:
            yield Write(place=place, what=change.factor, after=change.after)
    if _cuts_power(study) and not any(LOOP_DEVICES in change.places for change in changes):
        what = "volumes whose power is cut, where Dyno has the right to make them"
        yield Write(place=LOOP_DEVICES, what=what, after=CLEARED)
    if study.server is not None:
        what = "settings that levels move, schemas whose names begin with dyno_"
        yield Write(place=study.engine.url, what=what, after="put back, or dropped")
    for path in sorted(allowed.paths):
        yield Write(place=str(path), what="what levels of config write there (--allow-path)", after=STAYS)


def _links(cache: Path) -> list[Path]:
    """The folders of the cache that a user moved to another place."""
    try:
        return sorted(path for path in cache.iterdir() if path.is_symlink())
    except OSError:
        return []


def _cuts_power(study: Study) -> bool:
    restarts, soak = study.restarts, study.soak
    by_restarts = restarts is not None and bool(restarts.power_cuts or restarts.torn_pages)
    return by_restarts or (soak is not None and bool(OF_POWER & set(soak.ends)))


def writes_lines(writes: tuple[Write, ...]) -> Iterator[Text]:
    """The places as the terminal shows them, one a line."""
    yield Text("written by its trials", style="bold")
    home = str(Path.home())
    for one in writes:
        place = one.place.replace(home, "~", 1) if one.place.startswith(f"{home}/") else one.place
        yield Text(f"  {place}: {one.what}; {one.after}")
    yield Text(servers_text())
