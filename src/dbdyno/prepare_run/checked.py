"""What can be found out about a study before its first trial: all its mistakes at once, each with its line.

The reader has judged the file. Here the study meets this host: its engine, the files of its workload, the
memory that its servers are allowed, its builds, and its statements on a server of the baseline that has its
tables. A variant is refused where levels exclude each other, this host lacks something, an engine does not
take a level, or a server does not start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dbdyno.driver.load import review
from dbdyno.engines import registry
from dbdyno.errors import (
    DriverFailed,
    EngineMissing,
    EngineUnobtainable,
    Mistake,
    RunLocked,
    ServerFailed,
    StudyError,
    UserError,
)
from dbdyno.frozen import ENGINE_FACTOR, Level, level_shown, level_text
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.host.room import memory_limit
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.config import taken_of
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import LAYERS, Refusal, foresee, lacking
from dbdyno.obtain.installation import Installation
from dbdyno.plan.arrangement import MEMORY_SHARE
from dbdyno.prepare_run.adapted import server_bytes
from dbdyno.prepare_run.building import builds_of
from dbdyno.prepare_run.running import refusals_of, settable
from dbdyno.prepare_run.study_here import data_of, engine_of, located, older_engines, same_engines, untaken_of
from dbdyno.records.amplification import NAMES
from dbdyno.report.words.numbers import plural
from dbdyno.study import BASELINE, Study
from dbdyno.study.designs import extremes_of
from dbdyno.study.document import parse_document
from dbdyno.study.nouns import STATEMENTS
from dbdyno.study.trials import Variant
from dbdyno.trial import beside
from dbdyno.trial.around_load import rows_unknown
from dbdyno.trial.beside import AskedStatements, not_in_effect
from dbdyno.trial.pristine import place_brought

if TYPE_CHECKING:
    from dbdyno.driver.load import Examined
    from dbdyno.errors import DynoError
    from dbdyno.obtain.source.build import Foreseen
    from dbdyno.study.nouns import Reference

START_S = 5.0
"""About how long a server takes that starts on empty data, for those who wait for this host."""


def levels_in(study: Study, variants: Sequence[Variant]) -> dict[str, dict[str, Level]]:
    """The levels of each variant by its name, those that hold for all included, as layers are asked about."""
    return {one.name: settable(study, {**study.settings, **one.levels}) for one in variants}


def blocked_of(study: Study, variants: Sequence[Variant], allowed: Allowed) -> tuple[Refusal, ...]:
    """The variants that will be blocked, and why. Starts nothing, and changes nothing."""
    levels, engines = levels_in(study, variants), partial(engine_of, study)
    excluded = foresee(levels, engines).blocked
    known = {name for one in excluded for name in one.variants}
    asked = {name: own for name, own in levels.items() if name not in known}
    here = lacking(asked, engines) if study.server is None else ()
    return (
        *excluded,
        *here,
        *untaken_of(study, variants, allowed),
        *refusals_of(study, tuple(variants)),
    )


def unstartable(study: Study, variants: Sequence[Variant], tell: Tell) -> Iterator[Refusal]:
    """The variants whose server does not start with all their settings together, or does not have them then.
    Starts one on empty data for each combination of settings."""
    asked: dict[tuple[str, tuple[tuple[str, str], ...]], list[Variant]] = {}
    for variant in variants if study.server is None else ():
        levels = {**study.settings, **variant.levels}
        config = by_layer(levels).get("config", {})
        key = tuple(sorted((name, level_text(level)) for name, level in config.items()))
        asked.setdefault((study.engine_of(levels).written, key), []).append(variant)
    with alone(f"the servers of {study.title}", START_S * len(asked), tell=tell):
        for (written, _), each in asked.items():
            levels = {**study.settings, **each[0].levels}
            found = located(study.engine_of(levels))
            if not isinstance(found, Installation):
                continue
            tell(f"{written} starts with the settings of {plural(len(each), 'variant')}")
            config = by_layer(levels).get("config", {})
            yield from _refusals(not_in_effect(engine_of(study, levels), found, config), config, each)


def _refusals(
    wrong: Mapping[str, str], config: Mapping[str, Level], variants: Sequence[Variant]
) -> Iterator[Refusal]:
    for name, why in wrong.items():
        yield Refusal(
            factor=f"config.{name}",
            reason=f"{name} = {level_shown(config[name])}: {why}",
            remedy="take another level, or another one beside it",
            variants=tuple(one.name for one in variants),
        )


OF_BUILDS = ("source.", "build.")


class StudyLines:
    """The lines of a study by the names of factors. 0 is the file as a whole."""

    def __init__(self, text: str) -> None:
        self._document = parse_document(text.encode())

    def of_engine(self) -> int:
        named = self._document.line(("engine", "name")) or self._document.line(("engine",))
        return self.of_factor(ENGINE_FACTOR) or named

    def of_data(self) -> int:
        """Where the study says what its data are."""
        keys = (("data", "dump"), ("data", "folder"), ("data",))
        return next((line for key in keys if (line := self._document.line(key))), 0)

    def of_goal(self, key: str) -> int:
        """Where a key of the goal stands."""
        return self._document.line(("goal", key))

    def of_act(self, name: str) -> int:
        """Where an act beside the load stands."""
        acts = self._document.values.get("meanwhile", ())
        return next(
            (
                self._document.line(("meanwhile", at))
                for at, act in enumerate(acts)
                if act.get("name") == name
            ),
            0,
        )

    def of_factor(self, name: str) -> int:
        """Where a factor, a setting or a knob of the workload stands. What a configuration file of the
        engine's sets stands where that is named."""
        for path, line in self._document.lines.items():
            section, *rest = path
            if section == "variants":
                rest = rest[1:]
            if section == "variants" and rest[:1] == ["levels"]:
                rest = rest[1:]
            if section in ("factors", "settings", "variants") and ".".join(map(str, rest)) == name:
                return line
            if section == "workload" and f"workload.{'.'.join(map(str, rest))}" == name:
                return line
        if name.startswith("config."):
            return self._document.line(("engine", "configuration"))
        return 0

    def of_build(self, levels: Mapping[str, Level], baseline: Mapping[str, Level]) -> int:
        """Where what a variant's build differs by from the baseline's stands, or else where the first of the
        factors does, or of the settings."""
        names = [name for name in levels if name.startswith(OF_BUILDS)]
        own = [name for name in names if levels[name] != baseline.get(name, levels[name])]
        varied = [name for name in names if name in baseline]
        return next(filter(None, map(self.of_factor, own + varied + names)), 0)


OF_FILES = ("script", STATEMENTS, "lua")
"""Workloads whose statements are the user's own."""
STATEMENTS_S = 10.0
"""About how long a server takes that is asked once, for those who wait for this host."""


def require_sound(
    study: Study,
    tell: Tell,
    builds: Sequence[Foreseen] | None = None,
    *,
    allowed: Allowed = NOTHING_ALLOWED,
) -> tuple[str, ...]:
    """What was checked of a study's statements, and what was not and why, in sentences. Raises StudyError
    with every mistake. Whoever knows the study's `builds` already hands them in. Data that a study brings
    may take long to load: `tell` says so."""
    checks = _Checks(study, tell, builds, allowed=allowed)
    mistakes = [*checks.engine(), *checks.files(), *checks.memory(), *checks.builds(), *checks.baseline()]
    mistakes += [*checks.commands(), *checks.rows()]
    _require_none(study, [*mistakes, *checks.statements(startable=not mistakes)])
    return tuple(dict.fromkeys(checks.told))


def require_statements(study: Study, tell: Tell, allowed: Allowed) -> None:
    """Checks the statements that were not while another Dyno had this host, which this process has now.
    Raises StudyError like `require_sound`."""
    _require_none(study, list(_Checks(study, tell, has_host=True, allowed=allowed).statements()))


def _require_none(study: Study, mistakes: list[Mistake]) -> None:
    if mistakes:
        raise StudyError(study.path, list(dict.fromkeys(mistakes)))


def require_baseline_unblocked(study: Study, blocked: Sequence[Refusal]) -> None:
    """Raises StudyError where the baseline is among variants that are blocked."""
    _require_none(study, list(_of_baseline(study, blocked)))


def _of_baseline(study: Study, blocked: Sequence[Refusal]) -> Iterator[Mistake]:
    lines = StudyLines(study.text)
    for one in blocked:
        if BASELINE in one.variants:
            told = f"the baseline cannot be put into effect here: {one.reason}"
            yield Mistake(lines.of_factor(one.factor), told, one.remedy)


@dataclass
class _Checks:
    study: Study
    tell: Tell
    known_builds: Sequence[Foreseen] | None = None
    has_host: bool = False
    allowed: Allowed = NOTHING_ALLOWED

    def __post_init__(self) -> None:
        self.lines = StudyLines(self.study.text)
        self.told: list[str] = []

    def engine(self) -> Iterator[Mistake]:
        """Engines that are not there and cannot be had, or that are none, and levels that are one engine."""
        line = self.lines.of_engine()
        for found in map(located, self.study.engines):
            if isinstance(found, Installation):
                continue
            if isinstance(found, EngineUnobtainable) or not isinstance(found, EngineMissing):
                yield Mistake(line, found.message, found.hint)
        for same in same_engines(self.study):
            told = f"{' and '.join(same.levels)} are the same server: {same.origin}, digest {same.digest}"
            yield Mistake(line, told, "name another version; aa = true measures the baseline twice")

        for older in older_engines(self.study):
            first, later = older.versions
            yield Mistake(
                self.lines.of_data(),
                f"{older.levels[0]} is {older.title} {first}, and {older.levels[1]}, which is {later}, is"
                " older: a version does not take over data of a newer one",
                'name the oldest version first, or leave `data = "upgraded"` out',
            )

    def rows(self) -> Iterator[Mistake]:
        """Responses and guards that divide by bytes of rows, of an engine that does not tell of its rows."""
        line = self.lines.of_goal("response" if self.study.goal.response in NAMES else "guards")
        for variant in extremes_of(self.study):
            levels = {**self.study.settings, **variant.levels}
            if why := rows_unknown(self.study, engine_of(self.study, levels)):
                yield Mistake(line, why, "take another response or guard, or another engine")

    def commands(self) -> Iterator[Mistake]:
        """Commands beside the load that cannot be started here."""
        if not any(act.command for act in self.study.meanwhile):
            return
        # Here, because beside most loads nothing is done.
        from dbdyno.trial.acts.meanwhile import unstartable_commands

        for variant in extremes_of(self.study):
            levels = {**self.study.settings, **variant.levels}
            found = located(self.study.engine_of(levels))
            if isinstance(found, Installation):
                for act, wrong in unstartable_commands(self.study, levels, found):
                    line = self.lines.of_factor(act.factor) or self.lines.of_act(act.name)
                    yield Mistake(line, f"{act.name}: {wrong.message}", wrong.hint)

    def files(self) -> Iterator[Mistake]:
        """All that is wrong with the files of the workload."""
        line = self.lines.of_factor("workload.file") or self.lines.of_factor("workload.name")
        for options in self.options:
            for flaw in review(self.study.workload.name, options, self.study.folder).mistakes:
                yield Mistake(line, flaw.words, flaw.hint)

    def memory(self) -> Iterator[Mistake]:
        """Levels with which one server alone would be allowed more memory than there is."""
        limit_bytes, who = memory_limit()
        if self.study.server is not None:
            return
        for variant in extremes_of(self.study):
            levels = {**self.study.settings, **variant.levels}
            settings = engine_of(self.study, levels).settings
            needed_bytes = server_bytes(self.study, levels)
            if needed_bytes <= limit_bytes:
                continue
            config = by_layer(levels).get("config", {})
            without = {
                name: settings.memory_bytes({key: config[key] for key in config.keys() - {name}})
                for name in config
            }
            largest = min(without, key=without.__getitem__, default="")
            level = f"`config.{largest}` = {level_shown(config[largest])}" if largest else "the default"
            yield Mistake(
                self.lines.of_factor(f"config.{largest}"),
                f"with {level} a server may take about {needed_bytes >> 20:,} MiB of memory, and {who}"
                f" {limit_bytes >> 20:,} MiB",
                f"choose a level with which it takes at most {int(MEMORY_SHARE * limit_bytes) >> 20:,} MiB",
            )

    def builds(self) -> Iterator[Mistake]:
        """Builds that cannot be made here."""
        variants = {variant.name: variant.levels for variant in extremes_of(self.study)}
        lacking: dict[tuple[str, str], list[Foreseen]] = {}
        for build in builds_of(self.study) if self.known_builds is None else self.known_builds:
            if build.problem:
                lacking.setdefault((build.problem, build.remedy), []).append(build)
        for (problem, remedy), builds in lacking.items():
            # What one package brings is one mistake, however many builds need it.
            levels = variants.get(builds[0].variants[0], self.study.baseline)
            line = self.lines.of_build({**self.study.settings, **levels}, self.study.baseline)
            more = f" and {plural(len(builds) - 1, 'other')}" if builds[1:] else ""
            yield Mistake(line, f"the build {builds[0].words}{more} cannot be made: {problem}", remedy)

    def baseline(self) -> Iterator[Mistake]:
        """Why the baseline will be blocked here: without it nothing can be compared."""
        first = extremes_of(self.study)[0]
        if not self.study.untimed:
            yield from _of_baseline(self.study, blocked_of(self.study, (first,), self.allowed))

    def statements(self, startable: bool = True) -> Iterator[Mistake]:
        """What a server of the baseline refuses of the user's statements, on each engine of the study."""
        if self.study.server is not None:
            self.told += ["statements are judged by the server in the run"] if self.options else []
            return
        for options in self.options:
            own_sql = review(self.study.workload.name, options, self.study.folder).own_sql
            if own_sql and not self.study.applications:
                yield from self._statements(options, own_sql, startable)
            elif self.study.workload.name == "lua":
                self.told.append(f"the statements of {options['file']} are known in a run only")

    def _statements(self, options: Mapping[str, Level], own_sql: str, startable: bool) -> Iterator[Mistake]:
        # The data that later versions take over are not theirs before a run.
        taken_over = self.study.upgraded and self.study.data is not None
        for reference in self.study.engines[: 1 if taken_over else None]:
            yield from self._statements_on(reference, options, own_sql, startable)

    def _statements_on(
        self, reference: Reference, options: Mapping[str, Level], own_sql: str, startable: bool
    ) -> Iterator[Mistake]:
        found = located(reference)
        if not isinstance(found, Installation):
            self._untold(f"{found.message}; {found.hint}")
            return
        if not startable:
            return
        engine, levels = registry.engine(reference.engine), {**self.study.settings, **self.study.baseline}
        asked = AskedStatements(
            study=self.study,
            engine=engine,
            installation=found,
            settings=by_layer(taken_of(levels, LAYERS, engine, found)).get("config", {}),
            options=options,
            own_sql=own_sql,
            digests=tuple(one.sha256 for one in data_of(self.study, self.tell)),
            writable=tuple(sorted(self.allowed.paths)),
        )
        try:
            examined = self._examined(asked)
        except RunLocked as locked:
            self._untold(locked.message)
            return
        except (ServerFailed, DriverFailed) as failed:
            yield from self._not_asked(failed)
            return
        except UserError as refused:
            if self.study.data is None:
                raise
            yield Mistake(self.lines.of_data(), refused.message, refused.hint)
            return
        line = self.lines.of_factor("workload.file") or self.lines.of_factor("workload.name")
        for flaw in examined.refused:
            yield Mistake(line, flaw.words, flaw.hint)
        rest = f"; {plural(examined.left_out, 'other')} known in a run only" if examined.left_out else ""
        brought = self.study.data is not None
        copy = "a copy of the data that the study brings" if brought else "an empty copy of the schema"
        self.told.append(
            f"{asked.engine.title} {found.version} prepared {plural(examined.asked, 'statement')} of"
            f" {options['file'] or options['folder']} on {copy}{rest}"
        )

    def _examined(self, asked: AskedStatements) -> Examined:
        if (found := beside.kept(asked)) is not None:
            return found
        if self.has_host:
            return beside.examined(asked, place_brought, self.tell)
        # A server that starts would disturb whoever measures.
        with alone(f"the statements of {self.study.title}", STATEMENTS_S):
            return beside.examined(asked, place_brought, self.tell)

    def _not_asked(self, failed: DynoError) -> Iterator[Mistake]:
        """A baseline that does not start is a mistake where nothing but its settings makes it up."""
        layers = by_layer({**self.study.settings, **self.study.baseline}).keys()
        if layers <= {"config", "workload"}:
            told = f"the baseline's server, started to check the statements, failed: {failed.message}"
            yield Mistake(self.lines.of_engine(), told, failed.hint)
        else:
            self._untold(failed.message)

    def _untold(self, why: str) -> None:
        self.told.append(f"the statements were not checked, because {why}")

    @cached_property
    def options(self) -> list[dict[str, Level]]:
        """The options of each variant whose workload reads files of the user's, without repetition."""
        if self.study.workload.name not in OF_FILES:
            return []
        given, found = self.study.workload.options, list[dict[str, Level]]()
        for variant in extremes_of(self.study):
            levels = by_layer(variant.levels).get("workload", {})
            options = {name: levels.get(name, level) for name, level in given.items()}
            if options not in found:
                found.append(options)
        return found
