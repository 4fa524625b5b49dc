"""The builds that a study asks for: told before a run, made before its first trial, and what of them is
counted.

What looks at builds and makes them is imported where there are some: most studies ask for none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.engines import registry
from dbdyno.errors import Blocked, BuildFailed, DynoError, UserError
from dbdyno.host.callgrind import require_valgrind
from dbdyno.host.perf import counts
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.source.build import BuildSpecification, Foreseen
from dbdyno.records.binary import CodeBeside
from dbdyno.records.record import Record
from dbdyno.records.run import Counting
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import about_text, functions_text, plural
from dbdyno.study import Study
from dbdyno.study.designs import counted_variants, of_build, variants_of
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP
from dbdyno.trial.count import require_countable

if TYPE_CHECKING:
    from dbdyno.engines.built import Instrumented, Train
    from dbdyno.trial.correctness import GateQuestion


def counting_of(study: Study, budget_s: float | None = None) -> Counting | None:
    """None for a study that says what is counted, that compares no builds, or that times nothing."""
    if study.untimed:
        return None
    said = study.goal.counted is not None or study.goal.response == INSTRUCTIONS_PER_OP
    if said or len(wishes_of(study)) < 2:
        return None
    if not counts("instructions"):
        # They are read in the timed trials anyway, so they take no time.
        return Counting(by="counters")
    return counted_where_valgrind_runs(study, budget_s)


def counted_where_valgrind_runs(study: Study, budget_s: float | None = None) -> Counting:
    """In trials under Valgrind, or not at all where something forbids them."""
    why_not = _why_not(study, budget_s)
    return Counting(by="nothing", why_not=why_not) if why_not else Counting(by="valgrind")


def _why_not(study: Study, budget_s: float | None) -> str:
    """What forbids a trial of each build under Valgrind; empty where nothing does."""
    if budget_s is not None:
        return "a budget holds only for trials whose length is known"
    try:
        require_valgrind()
        require_countable(study)
    except Blocked as missing:
        return f"{missing.message}; {missing.hint}"
    except UserError as alike:
        return alike.message
    return ""


def why_counted(study: Study) -> str:
    """Why the study's trials are counted under Valgrind in place of timed; empty for other studies."""
    why = counts("instructions") if study.goal.response == INSTRUCTIONS_PER_OP else ""
    return f"trials are counted under Valgrind, with one client, and not timed: {why}" if why else ""


def counted_text(study: Study) -> str:
    """The trials whose work is counted beside the timed ones; empty where there are none."""
    counted = len(counted_variants(study))
    if not counted:
        return ""
    return (
        f"after the timed blocks, {numbers.plural(counted, 'trial')} under Valgrind, with one client: each "
        "variant's instructions are counted once"
    )


def with_counting(study: Study, counting: Counting | None) -> Study:
    """The study with what a run decided on that it leaves open."""
    if counting is None:
        return study
    goal = study.goal.but(counted=counting.by == "valgrind")
    return study.but(goal=goal)


def counting_text(counting: Counting | None, counted_s: float) -> str:
    """What a user is told of it; empty where the study itself says what is counted. `counted_s` is about what
    the trials under Valgrind take."""
    if counting is None:
        return ""
    told = {
        "counters": "each build's instructions are read from the CPU's counters in its timed trials",
        "valgrind": f"the counts take about {about_text(counted_s)}, and tell half a per cent where times do "
        "not; `counted = false` under [goal] leaves them out",
        "nothing": f"instructions are not counted: {counting.why_not}",
    }
    return told[counting.by]


NOT_YET = "not yet"
"""What the correctness gate found of a build that it did not ask."""
Trained = int | BuildFailed | OSError
"""What comes of a training: its transactions, or what went wrong."""
Ask = Callable[["Instrumented"], Trained]


def wishes_of(study: Study, of_reference: bool = False) -> dict[BuildSpecification, tuple[str, ...]]:
    """Each build that a study asks for, with the names of its variants. Of a reference its baseline runs
    alone."""
    variants = variants_of(study)[: 1 if of_reference else None]
    varied = {factor for variant in variants for factor in variant.levels}
    if not any(map(of_build, varied | study.settings.keys())):
        return {}
    from dbdyno.layers.build import variants_by_wish

    sharing = variants_by_wish(study, variants, LAYERS, registry.engine(study.engine.engine))
    return {wish: tuple(variant.name for variant in those) for wish, those in sharing.items()}


def builds_of(study: Study, reference: Study | None = None) -> tuple[Foreseen, ...]:
    """What is known before a run of its builds and of that of a reference's baseline, and of what the
    correctness gate will ask of them. Makes nothing."""
    wishes = wishes_of(study)
    found = _foreseen(study, wishes)
    if reference is not None:
        seen = {_place(study, wish) for wish in wishes}
        others = wishes_of(reference, of_reference=True)
        unseen = {wish: names for wish, names in others.items() if _place(reference, wish) not in seen}
        found += _foreseen(reference, unseen)
    return tuple(found)


def _foreseen(study: Study, wishes: Mapping[BuildSpecification, tuple[str, ...]]) -> list[Foreseen]:
    """What is known of these builds of a study, and of what the gate found of them."""
    if not wishes:
        return []
    from dbdyno.engines.built import foreseen
    from dbdyno.trial.correctness import asked_of_each, gate_expected_s

    engine = registry.engine(study.engine.engine)
    found = [foreseen(engine, wish, study.folder, names) for wish, names in wishes.items()]
    variants = {variant.name: variant for variant in variants_of(study)}
    reference = found[0].name if study.workload.name == VECTOR_SEARCH else ""
    gate_s = gate_expected_s(engine.name)
    each = [asked_of_each(study, [variants[name] for name in one.variants], reference) for one in found]
    return [_with_gate(build, asked, gate_s) for build, asked in zip(found, each, strict=True)]


def _with_gate(build: Foreseen, each: Sequence[GateQuestion], gate_s: float) -> Foreseen:
    """A build with what the correctness gate found of it, or with the time that it will take. The gate can
    ask under `each` of its variants."""
    if build.problem:
        return build
    from dbdyno.trial.correctness import kept

    all_found = [kept(build.name, asked) for asked in each] if build.there else []
    ran = next((found for found in all_found if found is not None and not found.unable), None)
    if ran is None:
        return build.but(gate=NOT_YET, gate_s=gate_s)
    return build.but(gate=ran.words)


def _place(study: Study, wish: BuildSpecification) -> tuple[str, Path, BuildSpecification]:
    """What tells a build from others before it is made."""
    return study.engine.engine, study.folder, wish


def builds_lines(builds: tuple[Foreseen, ...]) -> list[str]:
    """Which are there, which will be made, and which cannot be."""
    if not builds:
        return []
    missing_s = sum(one.expected_s for one in builds)
    there = sum(one.there for one in builds)
    left = f"; about {about_text(missing_s)} for the others" if missing_s else ""
    lines = [f"{plural(len(builds), 'build')}, {there} of them there{left}", *map(_line, builds)]
    # Builds share a trainer, and all its options take lines.
    lines += [
        f"  trained by {trainer}" for trainer in dict.fromkeys(one.trainer for one in builds if one.trainer)
    ]
    gate_s = sum(one.gate_s for one in builds)
    if gate_s:
        asked = sum(one.gate == NOT_YET for one in builds)
        lines.append(f"correctness gate: {plural(asked, 'build')} to ask, about {about_text(gate_s)}")
    return lines


def _line(build: Foreseen) -> str:
    if build.problem:
        return f"  {build.words}: cannot be made: {build.problem}; {build.remedy}"
    if build.there:
        return f"  {build.words}: there; correctness gate: {build.gate}"
    trained = ", trained before the first trial" if build.trainer else ""
    return f"  {build.words}: about {about_text(build.expected_s)}{trained}"


def make_builds(
    study: Study,
    wishes: Mapping[BuildSpecification, tuple[str, ...]],
    train: Train,
    tell: Callable[[str], None],
    earlier: Callable[[], Sequence[Record]] = tuple,
    made_one: Callable[[BuildSpecification], None] = lambda _: None,
) -> None:
    """Makes and trains builds of a study, and compares each with the baseline's, if that is among them. One
    that cannot be made is told, and its trials then end with the same cause; one that is the same file as
    another is told too. `made_one` is called with each that is there, as soon as it is: a later one may take
    an hour, and may be of no use.

    Raises UserError where `earlier` records of the run are of other builds, and what `made_one` raises.
    """
    if not wishes:
        return
    from dbdyno.engines.built import built

    engine = registry.engine(study.engine.engine)
    measured = _keys(earlier())
    if not measured:
        # A run that goes on may first find that its baseline is another build now.
        _make_side_by_side(study, wishes, train, tell)
    files: dict[str, BuildSpecification] = {}
    causes: dict[str, BuildSpecification] = {}
    for wish, names in wishes.items():
        try:
            made = built(engine, wish, study.folder, tell, train)
        except DynoError as error:
            cause = "; ".join(filter(None, [error.message, error.hint]))
            first = causes.setdefault(cause, wish)
            tell(f"{wish.words}: {cause if first is wish else f'the same cause as {first.words}'}")
            continue
        if made.account.network:
            tell(f"{wish.words}: its build could reach the network, because `unshare` is refused here")
        key, same = made.account.key, files.setdefault(made.installation.digest, wish)
        if same != wish:
            tell(f"{wish.words}: the same file as {same.words}, byte for byte")
        for name in names:
            _require_same(name, measured, key)
        if code := _beside_baseline(study, wish, wishes, tell):
            tell(f"{wish.words}: {functions_text(code)} functions differ from the baseline's")
        made_one(wish)


def _make_side_by_side(
    study: Study,
    wishes: Mapping[BuildSpecification, tuple[str, ...]],
    train: Train,
    tell: Callable[[str], None],
) -> None:
    """Makes the builds that keep one CPU busy each, as many at a time as there are CPUs, and compares each
    with the baseline's where that is there. A fork makes a build, and this process trains it, because trials
    share the host: one trains at a time. What it executes does not depend on the builds beside it, because a
    training is so many transactions, and their keys are drawn from a seed."""
    from dbdyno.engines.built import foreseen, recipe_of
    from dbdyno.host import process
    from dbdyno.obtain.source import making

    engine, folder = registry.engine(study.engine.engine), study.folder
    alone = [
        wish
        for wish in wishes
        if not (seen := foreseen(engine, wish, folder, ())).there
        and not seen.problem
        and not recipe_of(engine, wish, folder).is_parallel
    ]
    if len(alone) > 1:
        _fetch_sources(study, alone, tell)
        # The baseline's is compared with all others, and those that are trained take longest. Placebos are
        # linked of objects that the baseline's has made by then.
        rest = sorted(alone[1:], key=lambda wish: (not wish.trainers, wish.seed is not None))
        in_order = [alone[0], *rest]
        against = _baselines(study, wishes)
        tasks = [partial(_make_in_fork, study, wish, against, tell) for wish in in_order]
        at_a_time = len(os.sched_getaffinity(0))
        for failures in process.carry_out(tasks, at_a_time, partial(_trained, train)):
            making.note_failures(failures or {})


def _fetch_sources(study: Study, wishes: Iterable[BuildSpecification], tell: Callable[[str], None]) -> None:
    """Fetches the sources of builds that will be made at once, and prepares those that several of them share,
    because one of them would wait for another."""
    from dbdyno.engines.built import materials_of, prepare_source

    engine = registry.engine(study.engine.engine)
    sharing: dict[tuple[str, ...], list[BuildSpecification]] = {}
    for wish in wishes:
        sharing.setdefault(wish.prepared_from, []).append(wish)
    for first, *others in sharing.values():
        with suppress(DynoError):
            get = prepare_source if others else materials_of
            get(engine, first, study.folder, tell)


def _make_in_fork(
    study: Study,
    wish: BuildSpecification,
    against: BuildSpecification | None,
    tell: Callable[[str], None],
    ask: Ask,
) -> dict[str, BuildFailed]:
    """Makes a build that another process trains when it is asked. Returns the builds that failed, by key."""
    from dbdyno.engines.built import built, code_beside, foreseen
    from dbdyno.obtain.source import making

    engine, folder = registry.engine(study.engine.engine), study.folder
    with suppress(DynoError):
        built(engine, wish, folder, tell, partial(_train_by_asking, ask))
        if against is not None and against != wish and foreseen(engine, against, folder, ()).there:
            # What it finds is kept with the build.
            code_beside(engine, wish, against, folder)
    return making.failures()


def _train_by_asking(ask: Ask, instrumented: Instrumented) -> int:
    trained = ask(instrumented)
    if isinstance(trained, int):
        return trained
    raise trained


def _trained(train: Train, instrumented: Instrumented) -> Trained:
    """What the fork that asked for a training gets to know of it."""
    try:
        return train(instrumented)
    except (BuildFailed, OSError) as failed:
        return failed
    except DynoError as failed:
        return BuildFailed(failed.message, failed.hint)


def _beside_baseline(
    study: Study,
    wish: BuildSpecification,
    wishes: Mapping[BuildSpecification, tuple[str, ...]],
    tell: Callable[[str], None],
) -> CodeBeside | None:
    """How a build that is there differs from the baseline's; None for the baseline's own."""
    from dbdyno.engines.built import code_beside

    engine, baseline = registry.engine(study.engine.engine), _baselines(study, wishes)
    if baseline is None or baseline == wish:
        return None
    return code_beside(engine, wish, baseline, study.folder, tell)


def _baselines(
    study: Study, wishes: Mapping[BuildSpecification, tuple[str, ...]]
) -> BuildSpecification | None:
    """The build of a study's baseline; None where that is the installed engine."""
    name = variants_of(study)[0].name
    return next((wish for wish, names in wishes.items() if name in names), None)


def require_baseline_build(study: Study, records: Sequence[Record], tell: Callable[[str], None]) -> None:
    """Raises UserError where the baseline would be another build now than in these records of a run. Makes
    no build, but fetches a source that is not here."""
    from dbdyno.engines.built import kept_key

    engine = registry.engine(study.engine.engine)
    for wish, names in wishes_of(study, of_reference=True).items():
        key = kept_key(engine, wish, study.folder, tell)
        for name in names:
            _require_same(name, _keys(records), key)


def _keys(records: Sequence[Record]) -> dict[str, str]:
    """The build of each variant, by its key."""
    from dbdyno.layers.source import key_in

    return {record.variant: key for record in records if (key := key_in(record.evidence))}


def _require_same(name: str, measured: Mapping[str, str], key: str) -> None:
    if measured.get(name, key) != key:
        raise UserError(
            f"{name} was measured as build {measured[name]}, and is build {key} now",
            "put the source, the recipe and the compiler back as they were, or start a new run",
        )
