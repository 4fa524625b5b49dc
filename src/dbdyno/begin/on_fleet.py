"""A run on a fleet: what its controller asks hosts, what a host makes of that, and the run as it is there.

A host has nothing of a study but what the run keeps: its text and files. So it lays them out in a folder of
its own, and looks for engine and data where it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dbdyno import __version__
from dbdyno.begin.adapted import adapted
from dbdyno.begin.again import study_again
from dbdyno.begin.begun import Begun
from dbdyno.begin.building import builds_of, wishes_of
from dbdyno.begin.checked import require_sound
from dbdyno.begin.run import Beginning
from dbdyno.begin.stored_study import application_of, installed_of, measured_installation, study_of
from dbdyno.engines import registry
from dbdyno.engines.built import materials_of
from dbdyno.errors import DynoError, UserError
from dbdyno.fleet.parts import Answer, BuildThere
from dbdyno.host.allowed import Allowed
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import fingerprint
from dbdyno.obtain.source.instructions import require_instructions
from dbdyno.obtain.source.wish import BuildWish
from dbdyno.plan.blocks import require_few_enough
from dbdyno.records.run import BLOCKS_IN_PAIR, ComparisonRun, FleetHost, Run
from dbdyno.study import Arrangement, Study

NATIVE = "`native` means another CPU there: name one that all hosts know, such as build.march = x86-64-v3"


def draft_of(beginning: Beginning, tell: Tell) -> ComparisonRun:
    """The run about which hosts are asked; its blocks are those of each host. Raises UserError for what a
    fleet cannot carry out."""
    begun = beginning.begun
    run, study = begun.run, begun.study
    if not isinstance(run, ComparisonRun):
        raise UserError("a search is carried out on one host", "leave --fleet out")
    if study.of_platforms or study.restarts is not None:
        what = "a study of platforms" if study.of_platforms else "a study with [restarts]"
        raise UserError(f"{what} is carried out on one host", "leave --fleet out: its answer has no speed")
    blocks = -(-study.blocks // BLOCKS_IN_PAIR) * BLOCKS_IN_PAIR
    if blocks != study.blocks:
        tell(f"each host takes {blocks} blocks, because the blocks of a pair belong together")
    return run.but(blocks=blocks)


def answer_of(run: Run, name: str, allowed: Allowed, tell: Tell) -> Answer:
    """What this host, by its name in the fleet, makes of a run about which it is asked. Raises StudyError
    with all that is in the way here, and UserError."""
    study = study_again(run, run.run, run.blocks, run.seed, allowed)
    for line in require_sound(study, tell, builds_of(study), allowed=allowed):
        tell(line)
    found = adapted(study, calibration=False)
    installed = installed_of(registry.locate(study.engine), application_of(study))
    return Answer(
        host=FleetHost(name=name, host=fingerprint(), installation=installed),
        arrangement=found.study.arrangement or Arrangement.ONE_AFTER_THE_OTHER,
        why=found.arranged.why,
        machine=os.uname().machine,
        builds=tuple(_build_there(study, wish, tell) for wish in wishes_of(study)),
    )


def _build_there(study: Study, wish: BuildWish, tell: Tell) -> BuildThere:
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


def run_on(draft: ComparisonRun, answers: Sequence[Answer], tell: Tell) -> ComparisonRun:
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


def _require_same_builds(one: Answer, other: Answer, tell: Tell) -> None:
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
    if run.dyno_version != __version__:
        raise UserError(
            f"run {run.run} began with Dyno {run.dyno_version}, and this is Dyno {__version__}",
            "install the Dyno that began it, and start the worker again; or begin a new run",
        )
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
