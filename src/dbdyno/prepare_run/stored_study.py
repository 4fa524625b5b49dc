"""The study of a stored run, as it was when the run began, with what a calibration gave it; and the engine
and the application that the run measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.analyse.quantiles import blocks_least, claims, confidence_each
from dbdyno.engines import registry
from dbdyno.errors import EngineMissing, StudyError, UserError
from dbdyno.frozen import Configuration, Frozen, absent, level_text
from dbdyno.host.fingerprint import Installed
from dbdyno.obtain.installation import Installation
from dbdyno.prepare_run.building import with_counting
from dbdyno.prepare_run.study_here import catalogue, changed, others_of
from dbdyno.records.run import Brought, Run
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import day_text, plural
from dbdyno.study import SLICE_S, Arrangement, Design, Goal, Interval, Study, Workload, parse_study
from dbdyno.study.designs import variants_of
from dbdyno.study.differences import difference
from dbdyno.study.files import NamedFile, read_file
from dbdyno.study.nouns import ListedVariant, Reference

if TYPE_CHECKING:
    from dbdyno.calibrate.kept import Calibration
    from dbdyno.records.run import Calibrated


def taken(study: Study, found: Calibration | None, why_not: str) -> tuple[Calibrated | None, str]:
    """What a run of the study that begins now takes from a calibration of this host, and a sentence on it;
    empty where there is none. `why_not` says why one does not hold."""
    if found is None:
        again = "without it the study runs as it is; to calibrate anew: dyno calibrate STUDY"
        return None, f"the calibration is not used: {why_not}; {again}" if why_not else ""
    named = {
        "interval": _interval_for(study, found.interval),
        "slice_s": None if study.slice_s else found.used.slice_s,
    }
    used = found.used.but(**named)
    made = day_text(found.made_unix_s)
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    chosen = f"; slices: {numbers.seconds_text(used.slice_s)}" if beside and used.slice_s else ""
    chosen += f"; interval: {used.interval}" if used.interval else ""
    return used, f"calibrated on {made}: {found.best.arrangement.words}{chosen} (--no-calibration: without)"


def with_calibration(study: Study, used: Calibrated | None) -> Study:
    """The study with what a calibration found best, but for what it says itself."""
    if used is None:
        return study
    found = {
        "settings": {**used.settings, **study.settings},
        "slice_s": study.slice_s or used.slice_s,
        "goal": study.goal.but(interval=study.goal.interval or used.interval),
    }
    return study.but(**found)


def _interval_for(study: Study, suited: Interval) -> Interval | None:
    """The interval of a study that names none. One that its blocks are too few for would give no verdict, and
    signed-rank supposes as many baselines as candidates; a search has few blocks for each question."""
    if study.goal.interval is not None:
        return None
    if study.baselines_each > 1 or study.search is not None:
        return Interval.STUDENT
    candidates = sum(variant.candidate for variant in variants_of(study)[1:])
    each = confidence_each(study.goal.confidence, claims(study, candidates))
    return suited if study.blocks >= blocks_least(each, suited) else Interval.STUDENT


class PlannedFront(Frozen):
    """What would stand in front of the server: its name in the study, its title with its version, and how
    many workers serve requests. `digest` identifies it with all packages that it runs on. Where it is not on
    this machine, `missing` says what to do."""

    name: str
    title: str = ""
    digest: str = ""
    workers: int | None = absent(None)
    missing: str = absent("")


def planned_fronts(study: Study) -> tuple[PlannedFront, ...]:
    """What variants of the study would have in front of their server; nothing for most."""
    return tuple(_planned_front(kind, study) for kind in study.front_kinds)


def _planned_front(kind: str, study: Study) -> PlannedFront:
    # Here and below, because most loads go to their server.
    from dbdyno.applications.front import front_program, program_here, title_of

    program = front_program(kind, study.fronts)
    planned = PlannedFront(name=kind, workers=program.workers)
    try:
        found = program_here(kind, program)
    except EngineMissing as missing:
        return planned.but(missing=f"{missing.message}; {missing.hint}")
    return planned.but(title=title_of(found), digest=found.digest)


def study_of(run: Run) -> Study:
    """The study of a run as it was when the run began. Looks at no engine: none need be here."""
    study = asked_of(run)
    if run.of_logs:
        return study
    given: dict[str, object] = {
        "arrangement": run.arrangement or Arrangement.ONE_AFTER_THE_OTHER,
        "slice_s": run.slice_s or study.slice_s or SLICE_S,
    }
    if run.baselines_chosen is not None:
        given["baselines"] = run.baselines_chosen
    whole = changed(run.on_line(study), run.blocks, run.seed, run.duration_s).but(**given)
    return with_counting(with_calibration(whole, run.calibrated), run.counting_builds)


def asked_of(run: Run) -> Study:
    """What a run's study asks, with the configuration file as it was; of one that was brought, what its logs
    are compared by."""
    if run.of_logs is not None:
        return _of_logs(run, run.of_logs)
    folder = Path(run.study_folder or Path(run.study_path).parent)
    return asked_by(run.study_text, run.study_path, folder, run.configuration).but(files=run.files)


DRIVEN = {"pgbench": "postgresql"}
"""What a tool drives, where it is one engine alone; the outputs of others do not name it."""


def _of_logs(run: Run, brought: Brought) -> Study:
    """The study whose trials the logs are: variants without levels, because no log says what was set."""
    return Study(
        title=brought.title,
        engine=Reference(engine=DRIVEN.get(brought.tool, "")),
        design=Design.LIST,
        blocks=run.blocks,
        workload=Workload(
            name=brought.tool, clients=brought.clients, warmup_s=0.0, duration_s=brought.duration_s
        ),
        factors=(),
        variants=tuple(ListedVariant(name=name, levels={}) for name in brought.variants),
        goal=Goal(response=brought.response, margin=brought.margin, guards=()),
        path=run.study_path,
        text=run.study_text,
        digest=run.study_digest,
    )


def asked_by(text: str, path: str, folder: Path, configuration: Configuration | None) -> Study:
    """What the text of a study asks, with the engine's own file as it was. Looks at no engine and no file."""
    configure = (lambda *_: configuration) if configuration else None
    names = replace(catalogue(ask_engines=False), configure=configure, lone=True)
    return parse_study(text.encode(), names, path, folder)


def is_of(run: Run, study: Study) -> bool:
    """Whether a run is of this study by what it asks; its file may be spelled otherwise."""
    if run.study_digest == study.digest and run.configuration == study.configuration:
        return True
    with suppress(StudyError):
        return asked_of(run).meaning == study.meaning
    return False


def require_one_data(left: Run, right: Run) -> None:
    """Raises UserError where the studies of two runs brought other data. Their paths may differ."""
    ours, theirs = ([data.sha256 for data in run.data] for run in (left, right))
    if ours != theirs:
        named = (
            ", ".join(f"{Path(data.path).name} {data.sha256[:12]}" for data in run.data) or "none"
            for run in (left, right)
        )
        raise UserError(
            f"{left.run} and {right.run} had other data of their users': {' -> '.join(named)}",
            "measure both with the same [data]",
        )


def require_kept(run: Run) -> None:
    """Raises UserError where a file that a run's study refers to is not as it was when the run began."""
    for file in run.files or ():
        try:
            now = read_file(NamedFile(file.kind, file.place), Path())
        except OSError as error:
            found = f"{file.place} cannot be read now: {error.strerror}"
        else:
            changed = difference([file], [now.but(path=file.path)])
            found = f"{file.place} has changed since: {changed}" if now.digest != file.digest else ""
        if found:
            raise UserError(
                f"run {run.run} cannot go on as it began, because {found}",
                f"put the file back, or begin a new run from what was kept: dyno run --again {run.run}",
            )


def require_measured(run: Run) -> None:
    """Raises UserError for a run that was brought: no trial of it can be repeated here."""
    if run.of_logs is not None:
        raise UserError(
            f"run {run.run} was made of logs of {run.of_logs.tool}, so Dyno has no setup to measure again",
            "`report`, `compare`, `show` and `export` read such a run",
        )


def require_speeds(run: Run) -> None:
    """Raises UserError for a soak, whose trials are no repetitions of each other, and for a bisection, which
    leaves most of its line out."""
    if not run.compares:
        why, hint = run.no_speeds
        raise UserError(f"run {run.run} is {run.words}, which {why}", hint)


def measured_installation(study: Study, run: Run) -> Installation:
    """The engine of the baseline that a run measured. Raises UserError when there is another in its place
    now, or in that of an engine which it was compared with."""
    require_measured(run)
    require_kept(run)
    installation = registry.locate(study.engine)
    _require_measured_engine(run, run.installation, installation)
    for level, other in others_of(study).items():
        _require_measured_engine(run, run.engines.get(level, Installed()), other)
    kept, now = run.installation.application, application_of(study)
    if kept != now:
        raise UserError(
            f"run {run.run} measured {kept}; now there is {now}",
            "restore that application, or start a new run",
        )
    return installation


def _require_measured_engine(run: Run, kept: Installed, now: Installation) -> None:
    if now.digest != kept.digest:
        raise UserError(
            f"run {run.run} measured {kept.origin}; now there is {now.origin}",
            "restore that engine, or start a new run",
        )


def application_of(study: Study) -> str | None:
    """What stands in front of a study's server, with what identifies all that it runs on; None where nothing
    does. A program that is not here blocks its own variants. Raises EngineMissing for an application, without
    which there would be no trial."""
    for kind in study.applications:
        from dbdyno.applications.front import program_here

        program_here(kind, study.fronts[kind])
    found = [f"{one.title} ({one.digest})" for one in planned_fronts(study) if not one.missing]
    return "; ".join(found) or None


def front_lines(study: Study) -> Iterator[str]:
    """A line for each program that variants have in front of the server, with what follows for all."""
    for planned in planned_fronts(study):
        from dbdyno.applications.front import front_program

        told = f"{planned.title} ({planned.digest})"
        if planned.missing:
            told = f"{planned.name}, which is not here: {planned.missing}"
        workers = f", {plural(planned.workers, 'worker')}" if planned.workers and not planned.missing else ""
        spoken = registry.engine(study.engine.engine).production
        way = spoken.pooled_statements if spoken else ""
        follows = f"; its clients share sessions, so every variant has `statements={way}`"
        shares = front_program(planned.name, study.fronts).shares
        yield f"in front: {told}{workers}{follows if shares else ''}"


def acts_lines(study: Study) -> Iterator[str]:
    """A line for each act beside the load, with what varies of it."""
    for act in study.meanwhile:
        varied = [one for one in study.factors if one.name == act.factor]
        texts = [level_text(level) for one in varied for level in one.levels]
        told = " | ".join(texts) or level_text(study.settings.get(act.factor, act.text))
        yield f"beside the load, after {numbers.seconds_text(act.at_s)}: {act.name}: {told}"


def published_lines(study: Study) -> Iterator[str]:
    """A line for each figure that others published of the study's variants."""
    for one in study.published:
        two_ends = one.low is not None and one.high is not None
        interval = f" ({numbers.between_text(one.low or 0.0, one.high or 0.0)})" if two_ends else ""
        metric = f" of {one.metric}" if one.metric else ""
        yield (
            f"published: {one.variant} over {one.against}{metric} {numbers.ratio_text(one.ratio)}{interval}"
            f" by {one.source_text}, on {one.hardware}{f'; {one.differs}' if one.differs else ''}"
        )


def installed_of(installation: Installation, application: str | None = None) -> Installed:
    """What a run keeps of the engine that it measures."""
    own = {name: getattr(installation, name) for name in ("engine", "version", "origin", "digest")}
    beside = {"application": application} if application else {}
    return Installed(**own, **installation.facts, **beside)
