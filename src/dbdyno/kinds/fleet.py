"""A run on a fleet: what its controller asks hosts, what a host makes of that, and the run as it is there.

A host has nothing of a study but what the run keeps: its text and files. So it lays them out in a folder of
its own, and looks for engine and data where it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dbdyno.build_check import is_answered, pass_gate
from dbdyno.engines import registry
from dbdyno.engines.built import Train, built, forget_failures, materials_of
from dbdyno.errors import BuildFailed, DiskFull, DynoError, UserError
from dbdyno.fleet import kept_builds
from dbdyno.fleet.kept_builds import PIECE_BYTES, Failure, KeptBuild, Maker
from dbdyno.fleet.parts import BuildThere, HostAnswer
from dbdyno.fleet.session import Session, of_run
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.host.writers import Allowed
from dbdyno.kinds.comparison import study_again
from dbdyno.kinds.kind import Beginning
from dbdyno.obtain.source import making, packed
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.obtain.source.making import Materials
from dbdyno.obtain.source.packed import Damaged
from dbdyno.obtain.source.profile import require_instructions
from dbdyno.plan.blocks import require_few_enough
from dbdyno.prepare_run.adapted import adapted
from dbdyno.prepare_run.begun import Begun, bench_of, own_dyno, require_same_dyno, training_on
from dbdyno.prepare_run.building import builds_of, make_builds, wishes_of
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.stored_study import application_of, installed_of, measured_installation, study_of
from dbdyno.records.metrics import bytes_text
from dbdyno.records.record import Record
from dbdyno.records.run import BLOCKS_IN_PAIR, ComparisonRun, FleetHost, Run
from dbdyno.study import Arrangement, Study
from dbdyno.trial import correctness
from dbdyno.trial.bench import Bench
from dbdyno.trial.correctness import build_at_bench

NATIVE = "`native` means another CPU there: name one that all hosts know, such as build.march = x86-64-v3"


def draft_of(beginning: Beginning, tell: Tell) -> ComparisonRun:
    """The run about which hosts are asked; its blocks are those of each host. Raises UserError for what a
    fleet cannot carry out."""
    begun = beginning.begun
    run, study = begun.run, begun.study
    if not isinstance(run, ComparisonRun):
        raise UserError("a search is carried out on one host", "leave --fleet out")
    if study.untimed or study.restarts is not None:
        what = "a study of platforms" if study.untimed else "a study with [restarts]"
        raise UserError(f"{what} is carried out on one host", "leave --fleet out: its answer has no speed")
    blocks = -(-study.blocks // BLOCKS_IN_PAIR) * BLOCKS_IN_PAIR
    if blocks != study.blocks:
        tell(f"each host takes {blocks} blocks, because the blocks of a pair belong together")
    return run.but(blocks=blocks)


def answer_of(run: Run, name: str, allowed: Allowed, tell: Tell) -> HostAnswer:
    """What this host, by its name in the fleet, makes of a run about which it is asked. Raises StudyError
    with all that is in the way here, and UserError."""
    study = study_again(run, run.run, run.blocks, run.seed, allowed)
    for line in require_sound(study, tell, builds_of(study), allowed=allowed):
        tell(line)
    found = adapted(study, calibration=False)
    installed = installed_of(registry.locate(study.engine), application_of(study))
    return HostAnswer(
        host=FleetHost(name=name, host=fingerprint(), installation=installed),
        arrangement=found.study.arrangement or Arrangement.ONE_AFTER_THE_OTHER,
        why=found.arranged.why,
        machine=os.uname().machine,
        builds=tuple(_build_there(study, wish, tell) for wish in wishes_of(study)),
    )


def _build_there(study: Study, wish: BuildSpecification, tell: Tell) -> BuildThere:
    """A build as this host would make it. Its source is fetched, because the key depends on it. Raises
    UserError where this host lacks what it takes, or its CPU what the build would use."""
    try:
        materials = materials_of(registry.engine(study.engine.engine), wish, study.folder, tell)
    except DynoError as error:
        raise UserError(f"{wish.words}: {error.message}", error.hint) from None
    require_instructions(materials.toolchain, materials.flags, wish.words)
    build = materials.build
    return BuildThere(
        words=wish.words,
        name=build.name,
        source=build.source[:12],
        compiler=f"{materials.toolchain.version} ({build.toolchain[:12]})",
        target=build.target,
    )


def run_on(draft: ComparisonRun, answers: Sequence[HostAnswer], tell: Tell) -> ComparisonRun:
    """The run on the hosts that answered. Their trials follow one another where one host needs that, because
    hosts are compared. Raises UserError where engines differ, and for too many trials."""
    first = answers[0].host
    for each in answers:
        ours, theirs = first.installation, each.host.installation
        if (ours.engine, ours.version) != (theirs.engine, theirs.version):
            found = f"{each.host.name} has {theirs.engine} {theirs.version}"
            told = f"host {first.name} has {ours.engine} {ours.version}, {found}"
            raise UserError(told, "hosts are compared by one version: fetch the same on both")
        _require_same_builds(answers[0], each, tell)
    alone = [one for one in answers if one.arrangement is Arrangement.ONE_AFTER_THE_OTHER]
    if alone and draft.arrangement is Arrangement.SIDE_BY_SIDE:
        tell(f"trials follow one another on all hosts, because on {alone[0].host.name} {alone[0].why}")
    run = draft.but(
        fleet=tuple(one.host for one in answers),
        blocks=draft.blocks * len(answers),
        host=first.host,
        installation=first.installation,
        arrangement=Arrangement.ONE_AFTER_THE_OTHER if alone else draft.arrangement,
    )
    require_few_enough(study_of(run))
    return run


def _require_same_builds(one: HostAnswer, other: HostAnswer, tell: Tell) -> None:
    """Raises UserError where two hosts would not make the same builds of a study, with the first cause. Says
    where they run other systems, because what one makes may lack a library on the other."""
    names = one.host.name, other.host.name
    runs = [answer.host.host.system or "" for answer in (one, other)]
    systems = f"host {names[0]} runs {runs[0]}, host {names[1]} runs {runs[1]}" if runs[0] != runs[1] else ""
    for ours, theirs in zip(one.builds, other.builds, strict=True):
        if ours.name != theirs.name:
            told, hint = _why_other(ours, theirs, (one.machine, other.machine), names)
            told = "; ".join(filter(None, [told, systems]))
            raise UserError(f"one build is one file on all hosts, and {ours.words} is not: {told}", hint)
    if systems and one.builds:
        tell(f"{systems}; a build that one of them makes must also start on the other")


def _why_other(
    ours: BuildThere, theirs: BuildThere, machines: tuple[str, str], names: tuple[str, str]
) -> tuple[str, str]:
    """Why two hosts would make other builds, and what to do."""
    kinds = (
        ("", *machines, "take hosts of one architecture"),
        ("a source with digest ", ours.source, theirs.source, "put the same source on all hosts"),
        ("", ours.compiler, theirs.compiler, "install the same compiler on all hosts"),
        ("for `native` ", " ".join(ours.target), " ".join(theirs.target), NATIVE),
    )
    for what, left, right, hint in kinds:
        if left != right:
            return f"host {names[0]} has {what}{left}, host {names[1]} has {what}{right}", hint
    told = f"host {names[0]} would make {ours.name}, host {names[1]} {theirs.name}"
    return told, "look for another linker, recipe or BOLT there"


def begun_here(run: Run, name: str, allowed: Allowed) -> Begun:
    """A run of a fleet as the host of that name carries it out. Raises UserError where Dyno, the engine or a
    file is not what it was when the host answered."""
    require_same_dyno(run, own_dyno())
    own = next(one for one in run.fleet if one.name == name)
    laid_out = study_again(run, run.run, run.blocks, run.seed, allowed)
    here = run.but(
        study_folder=str(laid_out.folder),
        files=laid_out.files,
        host=own.host,
        installation=own.installation,
    )
    study: Study = study_of(here)
    return Begun(study, here, measured_installation(study, here))


WAIT_S = 10.0
"""So long the server lets a host wait for another one, before that looks whether the run goes on."""
PACKED = "packed.tar.xz"


@dataclass(frozen=True)
class Depot:
    """The builds of a fleet's store, for one run on one host that holds the lease `fence`. The `session` is
    none that others use, because a lock is waited for in it. `goes_on` says whether nobody has withdrawn the
    run."""

    session: Session
    run: str
    host: str
    fence: int
    tell: Tell
    goes_on: Callable[[], bool]

    def begins(self, what: str, words: str) -> None:
        """Says to other hosts, and to who follows the run, what this one begins under a lock."""
        kept_builds.begin(self.session, what, words)
        self.session.tell(of_run(self.run))

    def holding(self, what: str, then: Callable[[], None], waiting: bool) -> bool:
        """Does something under the lock of `what` is made. False where another host makes it and nobody is
        `waiting`, and where the run was withdrawn meanwhile."""
        maker = Maker(run=self.run, host=self.host, fence=self.fence, words="")
        told: Maker | None = None
        while True:
            with kept_builds.made_by(self.session, what, maker, WAIT_S if waiting else 0.0) as is_mine:
                if is_mine:
                    then()
                    return True
            if not waiting or not self.goes_on():
                return False
            other = kept_builds.maker_of(self.session, what)
            if other is not None and other.words and other != told:
                self.tell(f"host {other.host} is at work: {other.words}; waiting until it is done")
                told = other
            if kept_builds.end_stopped(self.session, what):
                self.tell(f"{what} was made by a host whose lease is over; another one makes it now")


def builds_handed_on(
    begun: Begun, depot: Depot, allowed: Allowed, earlier: Callable[[], Sequence[Record]]
) -> bool:
    """Has this host hold all builds of a run, and each of them pass the gate on one host. False where the run
    was withdrawn meanwhile.

    Raises UserError for a build that this host cannot run, and where it is another file than the one that the
    run's other hosts measure; BaselineFailed where that of the baseline does not pass; and Unavailable.
    """
    study, wishes = begun.study, wishes_of(begun.study)
    if not wishes:
        return True
    forget_failures()
    with open_journal() as journal:
        bench = replace(bench_of(begun, journal, None, allowed), tell=depot.tell)
        train = training_on(bench, depot.tell)
        if not _hold_all(bench, list(wishes), train, depot):
            return False
        make_builds(study, wishes, train, depot.tell, earlier, partial(_pass_gate_once, bench, depot))
    return depot.goes_on()


def _hold_all(bench: Bench, wishes: list[BuildSpecification], train: Train, depot: Depot) -> bool:
    """What another host makes is left for later, so that hosts share the work. False where the run was
    withdrawn meanwhile."""
    left = wishes
    while left:
        still = [wish for wish in left if not _hold(bench, wish, train, depot, waiting=False)]
        if len(still) == len(left) and not _hold(bench, still[0], train, depot, waiting=True):
            return False
        left = still
    return True


def _hold(bench: Bench, wish: BuildSpecification, train: Train, depot: Depot, waiting: bool) -> bool:
    """Has this host hold a build, or know that it cannot be made. False like `Depot.holding`."""
    try:
        materials = materials_of(bench.engine, wish, bench.study.folder, depot.tell)
    except DynoError:
        # Its trials end with that cause, as on one host.
        return True
    name = materials.build.name
    if _taken(bench, materials, depot, removing=False):
        return True

    def make() -> None:
        if not _taken(bench, materials, depot, removing=True) and not _known_to_fail(materials, depot):
            _make(bench, wish, materials, train, depot)

    return depot.holding(name, make, waiting)


def _taken(bench: Bench, materials: Materials, depot: Depot, removing: bool) -> bool:
    """Whether this host holds a build as the store has it, after it took it where that was needed. One that
    is damaged is told and removed where `removing`, under the lock of its name."""
    build = materials.build
    kept = kept_builds.kept(depot.session, build.name)
    if kept is None:
        return False
    _require_same_content(kept, depot)
    if making.is_made(build):
        if packed.content_of(making.folder_of(build.name)) == kept.content:
            return True
        depot.tell(f"{materials.title}: what this host has of that name is another file, and is dropped")
    try:
        making.taken_over(build.name, partial(_fill, materials, kept, depot), depot.tell)
    except Damaged as damaged:
        if removing:
            depot.tell(f"{materials.title}: the store's copy is damaged: {damaged.message}; {damaged.hint}")
            kept_builds.remove(depot.session, build.name)
        return False
    size = bytes_text(kept.packed_bytes)
    depot.tell(f"{materials.title}: taken from the store, {size}; made on host {kept.host}")
    return True


def _fill(materials: Materials, kept: KeptBuild, depot: Depot, folder: Path) -> tuple[str, str]:
    """Puts a build of the store into a folder, once it is the one that was packed and runs here."""
    file = folder / PACKED
    packed.written(kept_builds.pieces_of(depot.session, kept.name), file, kept.sha256)
    packed.unpacked(file, folder)
    file.unlink()
    if packed.content_of(folder) != kept.content:
        raise Damaged("it holds other files than it should", "it is made again")
    prefix, recipe = folder / making.PREFIX, materials.recipe
    what = f"{materials.title}, which host {kept.host} made"
    program = (prefix / recipe.program).resolve()
    packed.require_runs(program, recipe.environment_in(prefix), depot.host, what)
    return materials.title, f"{materials.source.title}, made on host {kept.host}"


def _known_to_fail(materials: Materials, depot: Depot) -> bool:
    """Whether another host could not make a build; then its trials end with that cause here too."""
    failure = kept_builds.failure_of(depot.session, depot.run, materials.build.name)
    if failure is None:
        return False
    told = f"on host {failure.host}: {failure.message}"
    making.note_failures({materials.build.key: BuildFailed(told, failure.hint, failure.log)})
    return True


def _make(bench: Bench, wish: BuildSpecification, materials: Materials, train: Train, depot: Depot) -> None:
    """Makes a build, or takes the one that is here, and keeps it in the store. What speaks against the build
    itself is noted for the other hosts."""
    name = materials.build.name
    if not making.is_made(materials.build):
        depot.begins(name, f"building {materials.title}")
    try:
        made = built(bench.engine, wish, bench.study.folder, depot.tell, train)
    except BuildFailed as failed:
        if not isinstance(failed, DiskFull):
            failure = Failure(host=depot.host, message=failed.message, hint=failed.hint, log=failed.log)
            kept_builds.note_failure(depot.session, depot.run, name, failure)
        return
    except DynoError:
        # The host lacks something, which its trials tell. Another one may have it.
        return
    folder = making.folder_of(name)
    host = making.note_host(folder, depot.host).made_on
    with cache.shelf("builds").making(f"{name}-packed") as work:
        found = packed.pack(folder, work / PACKED)
        kept = KeptBuild(
            name=name,
            host=host,
            words=made.wish.words,
            content=packed.content_of(folder),
            sha256=found.sha256,
            packed_bytes=found.size_bytes,
        )
        _require_same_content(kept, depot)
        with (work / PACKED).open("rb") as file:
            kept_builds.keep(depot.session, kept, iter(lambda: file.read(PIECE_BYTES), b""))
    depot.tell(f"{materials.title}: kept in the store for the other hosts, {bytes_text(kept.packed_bytes)}")


def _require_same_content(kept: KeptBuild, depot: Depot) -> None:
    """Raises UserError where a run has measured another file under the name of a build."""
    if kept_builds.content_for(depot.session, depot.run, kept) != kept.content:
        raise UserError(
            f"{kept.words} is another file now, made on host {kept.host}, than run {depot.run} began with",
            "one build is one file on all hosts of a run: start a new run",
        )


def _pass_gate_once(bench: Bench, depot: Depot, wish: BuildSpecification) -> None:
    """Has a build pass the gate, unless it did so on another host. Raises BaselineFailed like `pass_gate`."""
    try:
        name = build_at_bench(bench, wish).name
        content = packed.content_of(making.folder_of(name))
        _take_gates(name, content, depot)
        answered = is_answered(bench, wish)
    except UserError:
        raise
    except DynoError:
        # It cannot be built, and its trials end with the same cause.
        return
    ask, gate = partial(pass_gate, bench, depot.tell, wish), f"gate of {name}"
    if answered:
        ask()
        return

    def ask_and_keep() -> None:
        _take_gates(name, content, depot)
        if not is_answered(bench, wish):
            depot.begins(gate, f"the correctness gate of {wish.words}")
        try:
            ask()
        finally:
            for asked, document in correctness.documents_of(name).items():
                kept_builds.note_gate(depot.session, name, content, asked, document)

    depot.holding(gate, ask_and_keep, waiting=True)


def _take_gates(name: str, content: str, depot: Depot) -> None:
    """Puts what the gate found on other hosts of the same files beside the build here."""
    for asked, document in kept_builds.gates_of(depot.session, name, content).items():
        correctness.keep_document(name, asked, document)
