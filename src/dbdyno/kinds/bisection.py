"""`dyno bisect`: from a study and two ends to a bisection that has begun, or that goes on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.build_check import pass_gate
from dbdyno.engines import registry
from dbdyno.engines.built import built
from dbdyno.errors import Blocked, BuildFailed, DiskFull, DynoError, UserError
from dbdyno.frozen import ENGINE_FACTOR, Level, level_shown, level_text
from dbdyno.host.cache import Tell
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import Beginning, KindOfRun, no_memory
from dbdyno.layers.build import wish_of
from dbdyno.obtain.brought import is_brought
from dbdyno.obtain.installation import Installation, is_below
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.obtain.source.commands import commits_between, uncommitted
from dbdyno.plan import Ask, bisect
from dbdyno.prepare_run.adapted import adapted, require_timed, seed_of
from dbdyno.prepare_run.begun import Begun, new_run, training_on
from dbdyno.prepare_run.building import counted_where_valgrind_runs, make_builds
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.stored_study import installed_of, study_of
from dbdyno.prepare_run.study_here import catalogue, located, others_of, same_engines, study_at
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import BisectionRun, Counting, Run
from dbdyno.report.words.numbers import plural
from dbdyno.run import Unwatched
from dbdyno.study import Study
from dbdyno.study.designs import of_build
from dbdyno.study.nouns import STATEMENTS, Factor, Reference
from dbdyno.study.trials import Along, Line, Point, Trial, on_line
from dbdyno.trial.bench import Bench

if TYPE_CHECKING:
    from dbdyno.analyse.bisect import Bisection
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told

ORIGIN, REVISION = "source.origin", "source.revision"
HASH = 12
"""So many digits of a commit's hash are its name."""
ABOUT_S = 1200.0
"""About how long a bisection takes, for those who wait for this host meanwhile."""
BLOCKS_MOST, STATEMENT_BLOCKS_MOST = 30, 12
"""How far a question goes on that cannot be decided. Of many statements there is always one that cannot."""


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
    engines: Path | None = None
    statements: bool = False


def begin_bisection(options: BisectOptions, tell: Tell) -> Begun:
    """A bisection that begins, before any of its trials. Raises UserError for ends between which there is no
    line, and StudyError with all mistakes of the study."""
    names = replace(catalogue(allowed=options.allowed), lone=True)
    blocks = options.blocks or (STATEMENT_BLOCKS_MOST if options.statements else BLOCKS_MOST)
    read = study_at(options.path, blocks, options.seed, names=names)
    require_timed(read, "dyno bisect")
    if options.statements and read.workload.name != STATEMENTS:
        raise UserError(
            f"--statements places each statement, and {read.path} has the workload `{read.workload.name}`",
            'write name = "statements" under [workload], with a folder of .sql files',
        )
    if options.engines is not None:
        read = with_engines(read, options.engines, tell)
    line = line_of(read, options, tell)
    # What is to be known before a run shows at its ends and in its middle: all others are alike.
    shown = on_line(read, line, (0, line.last // 2, line.last))
    # A version between the ends that cannot be asked is skipped, and is no mistake of the study.
    asked = on_line(read, line, (0, line.last)) if line.along is Along.VERSIONS else shown
    for told in require_sound(asked, tell, allowed=options.allowed):
        tell(told)
    counting = _counting(shown, line, options.statements)
    here = adapted(shown)
    study = here.study.but(seed=seed_of(here.study))
    installation = registry.locate(study.engine)
    run = new_run(BisectionRun, study, installation, tell, line=line, counting=counting)
    run = run.but(statements=options.statements)
    others = {level: installed_of(other) for level, other in others_of(on_line(read, line)).items()}
    run = run.but(calibrated=here.calibrated, engines=others)
    return Begun(study_of(run), run, installation)


def _counting(study: Study, line: Line, statements: bool) -> Counting:
    if statements:
        return Counting(by="nothing", why_not="each statement is placed by its own time")
    if line.along is Along.SETTINGS:
        return Counting(by="nothing", why_not="settings change more than what is executed")
    if line.along is Along.VERSIONS:
        return Counting(by="nothing", why_not="versions change more than what is executed")
    return counted_where_valgrind_runs(study)


def beginning_of_bisection(begun: Begun) -> Beginning:
    """A bisection that begins or goes on."""
    study, run = begun.study, begun.run
    assert isinstance(run, BisectionRun), "the run is a bisection"
    lines = [f"{study.title}\nrun {run.run}: {plural(run.line.last, 'step')} between the ends"]
    if run.counting.why_not:
        lines.append(f"instructions are not counted: {run.counting.why_not}")
    return Beginning(begun, ABOUT_S, ABOUT_S, lambda _kept, _now_unix_s: lines)


class Bisecting(KindOfRun):
    """A bisection probes points of a line. Which builds it needs, its records say."""

    result = "bisect"
    knows_builds = False

    def counts(self, begun: Begun, tell: Tell) -> bool:
        run = begun.run
        assert isinstance(run, BisectionRun), "the run is a bisection"
        return run.counting.by == "valgrind"

    def at_bench(self, bench: Bench) -> Bench:
        return bench

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        return lambda study, _, records: bisect.ask(study, run, records)

    def before(self, ask: Ask, bench: Bench, tell: Tell) -> Ask:
        return built_before(ask, bench, tell)

    def progress(self, study: Study, run: Any, say: Callable[[str], None]) -> Unwatched:
        return Questions(study, run, say)

    def found(self, study: Study, run: Any, records: Sequence[Record]) -> Bisection:
        # Here and below, because a bisection that begins has found nothing yet.
        if run.statements:
            from dbdyno.analyse.bisect_statements import statements_bisected

            return statements_bisected(study, run, records)
        from dbdyno.analyse.bisect import bisected

        return bisected(study, run, records)


BISECTION = Bisecting()


class Questions(Unwatched):
    """A line when the bisection asks another question, with how far it is, and one for what is skipped."""

    def __init__(self, study: Study, run: BisectionRun, say: Callable[[str], None]) -> None:
        self._study = study
        self._run = run
        self._say = say
        self._said = ""

    def seen(self, records: Sequence[Record]) -> None:
        """The bisection looks for what it needs next, with these records."""
        from dbdyno.analyse.bisect import BisectionEvidence, course_of
        from dbdyno.findings.bisect import statements_text, way_text

        if self._run.statements:
            from dbdyno.analyse.bisect_statements import courses_of

            told = statements_text(self._run.line, courses_of(self._study, self._run, records))
        else:
            told = way_text(self._run.line, course_of(BisectionEvidence(self._study, self._run, records)))
        if told != self._said:
            self._say(told)
            self._said = told

    def trial_ended(self, record: Record) -> None:
        if record.outcome is not Outcome.MEASURED:
            self._say(f"  {record.variant}: {record.outcome.value}: {record.cause}")

    def say(self, line: str) -> None:
        self._say(line)


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
        title = f"{name}: {level_shown(first[name])} -> {level_shown(last[name])}"
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
    seen: set[BuildSpecification] = set()

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        trials = ask(study, run, records)
        wishes: dict[BuildSpecification, tuple[str, ...]] = {}
        for trial in trials:
            wish = wish_of(study, trial.variant.levels, bench.layers, bench.engine)
            if wish is not None and wish not in seen:
                wishes[wish] = (*wishes.get(wish, ()), trial.variant.name)
        _make(bench, wishes, tell)
        seen.update(wishes)
        return trials

    return asked


def _make(bench: Bench, wishes: Mapping[BuildSpecification, tuple[str, ...]], tell: Tell) -> None:
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


def with_engines(study: Study, folder: Path, tell: Tell) -> Study:
    """The study with the engines that a folder holds as its versions, the oldest first: a vendor's tarballs,
    images, and servers. Tells what of it is none of its engine. Raises UserError without two of them."""
    if not folder.is_dir():
        raise UserError(
            f"{folder} is no folder", "--engines FOLDER, with a tarball or an image of each version"
        )
    found = sorted(_engines_in(study, folder, tell), key=cmp_to_key(_by_version))
    if len(found) < 2:
        title = registry.engine(study.engine.engine).title
        raise UserError(
            f"{folder} holds {plural(len(found), 'version')} of {title}, and a line needs two",
            "put a vendor's tarball, or an image as `docker save` writes it, of each version there",
        )
    levels = tuple(reference.written for reference, _ in found)
    others = tuple(factor for factor in study.factors if factor.name != ENGINE_FACTOR)
    engine = Factor(name=ENGINE_FACTOR, levels=levels)
    return study.but(engine=found[0][0], factors=(engine, *others))


def _engines_in(study: Study, folder: Path, tell: Tell) -> Iterator[tuple[Reference, Installation]]:
    for path in sorted(folder.iterdir()):
        reference = Reference(engine=study.engine.engine, path=str(path.absolute()))
        if path.name.startswith(".") or not (is_brought(path) or os.access(path, os.X_OK)):
            continue
        here = located(reference)
        if isinstance(here, DynoError):
            tell(f"{path.name} is left out: {here.message}")
        else:
            yield reference, here


def _by_version(one: tuple[Reference, Installation], other: tuple[Reference, Installation]) -> int:
    return is_below(other[1].version, one[1].version) - is_below(one[1].version, other[1].version)


def line_of_versions(study: Study, good: str | None, bad: str | None) -> Line:
    """The versions in the order of their levels, or those from one that is named to another one. Raises
    UserError where they are no line: of several products, not rising, two of one server, or not here."""
    _require_released(study)
    references = _between(study, good, bad)
    _require_one_product(references)
    installations = _here(references)
    names = _names(references, installations)
    _require_rising(references, installations)
    points = [
        Point(
            name=name,
            title=f"{registry.engine(reference.engine).title} {here.version}",
            levels={ENGINE_FACTOR: reference.written},
        )
        for name, reference, here in zip(names, references, installations, strict=True)
    ]
    line = Line(along=Along.VERSIONS, points=tuple(points))
    _require_distinct(on_line(study, line))
    return line


def _names(references: Sequence[Reference], installations: Sequence[Installation]) -> list[str]:
    """Each one's version, or, where several have that one, what tells their paths apart."""
    versions = [one.version or here.version for one, here in zip(references, installations, strict=True)]
    count = Counter(versions)
    paths = [one.place if one.path else Path() for one in references]
    folder = os.path.commonpath([str(path.parent) for path in paths if path.name] or ["/"])
    apart = [
        str(path.relative_to(folder)) if path.name else one.written
        for path, one in zip(paths, references, strict=True)
    ]
    return [version if count[version] == 1 else name for version, name in zip(versions, apart, strict=True)]


def _require_released(study: Study) -> None:
    built = next(filter(of_build, {**study.settings, **study.baseline}), None)
    if built is not None:
        raise UserError(
            f"{study.path} builds its engine (`{built}`), and --versions goes over released versions",
            "--good REV --bad REV goes over the commits of source.origin",
        )
    if len(study.engines) < 2:
        raise UserError(
            f"{study.path} has no two versions to go between",
            f'list them under [factors], the good one first: {ENGINE_FACTOR} = ["NAME@OLD", ..., "NAME@NEW"]',
        )


def _between(study: Study, good: str | None, bad: str | None) -> Sequence[Reference]:
    """The engines of the study from the good end to the bad one, both included."""
    first = 0 if good is None else _place(study.engines, good)
    last = len(study.engines) - 1 if bad is None else _place(study.engines, bad)
    ends = f"{study.engines[first].written} and {study.engines[last].written}"
    if first == last:
        raise UserError(f"the two ends are the same version: {study.engines[first].written}", "name two")
    if first > last:
        raise UserError(
            f"the ends {ends} are exchanged: the good one stands later among the levels",
            "--good names the version that is fast enough, and --bad a later one that is slower",
        )
    return study.engines[first : last + 1]


def _place(engines: Sequence[Reference], named: str) -> int:
    for place, one in enumerate(engines):
        if named and named in (one.written, one.version, one.path):
            return place
    known = ", ".join(one.written for one in engines)
    raise UserError(f"no level of `{ENGINE_FACTOR}` is {named}", f"there are: {known}")


def _require_one_product(references: Sequence[Reference]) -> None:
    if len(products := dict.fromkeys(one.engine for one in references)) > 1:
        raise UserError(
            f"the levels of `{ENGINE_FACTOR}` are of several products: {', '.join(products)}",
            "a line has the versions of one product; `dyno run` compares products side by side",
        )


def _here(references: Sequence[Reference]) -> list[Installation]:
    """All of them on this host. Raises UserError with what is not here and how each can be obtained."""
    found = [located(one) for one in references]
    if missing := [one for one in found if isinstance(one, DynoError)]:
        hints = dict.fromkeys(one.hint for one in missing)
        raise UserError("; ".join(one.message for one in missing), "; ".join(hints))
    return [one for one in found if isinstance(one, Installation)]


def _require_rising(references: Sequence[Reference], installations: Sequence[Installation]) -> None:
    """Builds of one version that are named by their paths may follow one another in any order."""
    for (one, here), (later, there) in pairwise(zip(references, installations, strict=True)):
        if is_below(there.version, here.version):
            raise UserError(
                f"the versions do not rise: {one.written} is {here.version}, and {later.written} after it is"
                f" {there.version}",
                f"list the levels of `{ENGINE_FACTOR}` from the oldest version to the newest one",
            )


def _require_distinct(study: Study) -> None:
    for same in same_engines(study):
        raise UserError(
            f"{' and '.join(same.levels)} are the same server: {same.origin}", "name each version once"
        )
