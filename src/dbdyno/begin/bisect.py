"""`dyno bisect`: from a study and two ends to a bisection that has begun, or that goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dbdyno.begin.adapted import adapted, seed_of
from dbdyno.begin.begun import Begun, new_run, training_on
from dbdyno.begin.building import make_builds
from dbdyno.begin.catalogue import catalogue
from dbdyno.begin.checked import require_sound
from dbdyno.begin.counting import counted_where_valgrind_runs
from dbdyno.begin.engines import others_of
from dbdyno.begin.line_of_versions import line_of_versions
from dbdyno.begin.stored_study import installed_of, measured_installation, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.begin.timed import require_timed
from dbdyno.build_check import pass_gate
from dbdyno.engines import registry
from dbdyno.engines.built import built
from dbdyno.errors import Blocked, BuildFailed, DiskFull, UserError
from dbdyno.frozen import Level, level_text
from dbdyno.host.allowed import Allowed
from dbdyno.host.cache import Tell
from dbdyno.layers.wishes import wish_of
from dbdyno.obtain.source.history import commits_between, uncommitted
from dbdyno.obtain.source.wish import BuildWish
from dbdyno.plan import Ask
from dbdyno.records.record import Record
from dbdyno.records.run import BisectionRun, Counting, Run
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study
from dbdyno.study.line import Along, Line, Point, on_line
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench

ORIGIN, REVISION = "source.origin", "source.revision"
HASH = 12
"""So many digits of a commit's hash are its name."""
BLOCKS_MOST = 30
"""How far a question goes on that cannot be decided."""


@dataclass(frozen=True)
class BisectOptions:
    """What a user may say of a bisection of the study at `path`."""

    path: Path
    good: str | None
    bad: str | None
    along: Along
    blocks: int | None
    seed: int | None
    allowed: Allowed


@dataclass(frozen=True)
class BegunBisection(Begun):
    """A bisection that has begun."""

    run: BisectionRun


def begin_bisection(options: BisectOptions, tell: Tell) -> BegunBisection:
    """A bisection that begins, before any of its trials. Raises UserError for ends between which there is no
    line, and StudyError with all mistakes of the study."""
    names = replace(catalogue(allowed=options.allowed), lone=True)
    read = study_at(options.path, options.blocks or BLOCKS_MOST, options.seed, names=names)
    require_timed(read, "dyno bisect")
    line = line_of(read, options, tell)
    # What is to be known before a run shows at its ends and in its middle: all others are alike.
    shown = on_line(read, line, (0, line.last // 2, line.last))
    # A version between the ends that cannot be asked is skipped, and is no mistake of the study.
    asked = on_line(read, line, (0, line.last)) if line.along is Along.VERSIONS else shown
    for told in require_sound(asked, tell, allowed=options.allowed):
        tell(told)
    counting = _counting(shown, line)
    here = adapted(shown)
    study = here.study.but(seed=seed_of(here.study))
    installation = registry.locate(study.engine)
    run = new_run(BisectionRun, study, installation, tell, line=line, counting=counting)
    others = {level: installed_of(other) for level, other in others_of(on_line(read, line)).items()}
    run = run.but(calibrated=here.calibrated, engines=others)
    return BegunBisection(study_of(run), run, installation)


def _counting(study: Study, line: Line) -> Counting:
    if line.along is Along.SETTINGS:
        return Counting(by="nothing", why_not="settings change more than what is executed")
    if line.along is Along.VERSIONS:
        return Counting(by="nothing", why_not="versions change more than what is executed")
    return counted_where_valgrind_runs(study)


def bisection_gone_on_with(run: Run) -> BegunBisection:
    """A bisection that goes on, as it was begun."""
    assert isinstance(run, BisectionRun), "the run is a bisection"
    study = study_of(run)
    return BegunBisection(study, run, measured_installation(study, run))


def line_of(study: Study, options: BisectOptions, tell: Tell) -> Line:
    """The line between the ends that a user names."""
    if options.along is Along.SETTINGS:
        return _line_of_settings(study, options.good, options.bad)
    if options.along is Along.VERSIONS:
        return line_of_versions(study, options.good, options.bad)
    if options.good is None or options.bad is None:
        raise UserError(
            "a bisection needs two ends",
            "--good REV --bad REV, two commits of source.origin; or --settings or --versions for those of the"
            " study",
        )
    return _line_of_commits(study, options.good, options.bad, tell)


def _line_of_commits(study: Study, good: str, bad: str, tell: Tell) -> Line:
    fixed = {**study.settings, **study.baseline}
    origin = level_text(fixed.get(ORIGIN, ""))
    if not origin or origin.startswith("debian"):
        raise UserError(
            f"{study.path} names no git repository to take commits from",
            f'write {ORIGIN} = "FOLDER", the folder of a clone, under [settings]',
        )
    repository = study.folder / Path(origin).expanduser()
    commits = commits_between(repository, good, bad)
    if changed := uncommitted(repository):
        tell(f"{plural(changed, 'file')} of {repository} may differ from what is committed: left out")
    points = [
        Point(name=one.hash[:HASH], title=one.title, levels={REVISION: one.hash}, touched=one.touched)
        for one in commits
    ]
    return Line(along=Along.COMMITS, source=str(repository), points=tuple(points))


def _line_of_settings(study: Study, good: str | None, bad: str | None) -> Line:
    """From the good levels to the bad ones, one factor after the other: each point keeps the changes of those
    before it. So the middle asks about half of all changes at once."""
    if study.search is not None or not study.factors:
        raise UserError(
            f"{study.path} has no two configurations to go between",
            "give each of [factors] two levels, the good one first; or two [[variants]] and --good, --bad",
        )
    first, last = _ends_of_settings(study, good, bad)
    changed = [name for name in first if first[name] != last[name]]
    if not changed:
        raise UserError("the two ends have the same levels", "name two that differ")
    levels = {name: first[name] for name in changed}
    points = [Point(name="good", title="all of the good end", levels=levels)]
    for number, name in enumerate(changed, 1):
        levels = {**levels, name: last[name]}
        title = f"{name}: {level_text(first[name])} -> {level_text(last[name])}"
        points.append(Point(name=f"{number}:{name}", title=title, levels=levels))
    return Line(along=Along.SETTINGS, source=study.path, points=tuple(points))


def _ends_of_settings(
    study: Study, good: str | None, bad: str | None
) -> tuple[dict[str, Level], dict[str, Level]]:
    """The levels of all factors at both ends: of variants that are named, else each factor's first and
    last."""
    listed = {one.name: one.levels for one in study.variants}
    for name in filter(None, (good, bad)):
        if name not in listed:
            known = f"there are: {', '.join(listed)}" if listed else "the study lists no [[variants]]"
            raise UserError(f"no variant is called {name}", known)
    first = {**study.baseline, **(listed[good] if good else {})}
    ends = {factor.name: factor.levels[-1] for factor in study.factors}
    return first, {**first, **(listed[bad] if bad else ends)}


def built_before(ask: Ask, bench: Bench, tell: Tell) -> Ask:
    """The same answers. The builds of the trials that come next are made before any of them, so that no
    compiler runs beside a load, and pass the correctness gate. One that cannot be made is told, and its trial
    then ends with that cause. Raises DynoError where the disk is full, because that says nothing of a
    commit."""
    seen: set[BuildWish] = set()

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        trials = ask(study, run, records)
        wishes: dict[BuildWish, tuple[str, ...]] = {}
        for trial in trials:
            wish = wish_of(study, trial.variant.levels, bench.layers, bench.engine)
            if wish is not None and wish not in seen:
                wishes[wish] = (*wishes.get(wish, ()), trial.variant.name)
        _make(bench, wishes, tell)
        seen.update(wishes)
        return trials

    return asked


def _make(bench: Bench, wishes: Mapping[BuildWish, tuple[str, ...]], tell: Tell) -> None:
    train = training_on(bench, tell)
    make_builds(bench.study, wishes, train, tell, made_one=partial(pass_gate, bench, tell))
    for wish in wishes:
        try:
            built(bench.engine, wish, bench.study.folder, tell, train)
        except DiskFull:
            raise
        except (BuildFailed, Blocked, UserError):
            # It was told, and is a finding of that commit.
            continue
