"""From a document to a study, section by section. A mistake does not end the reading: all are found."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dbdyno.driver.job import Opening
from dbdyno.errors import Mistake, StudyError
from dbdyno.frozen import ENGINE_FACTOR, Configuration, Level, level_text
from dbdyno.passwords import without_passwords
from dbdyno.study import excludes, grammars, pacing, values
from dbdyno.study.catalogue import Catalogue
from dbdyno.study.designs import FACTORS_LEAST, FACTORS_MOST, size_of_design, variants_of
from dbdyno.study.differences import read_files
from dbdyno.study.document import Place, UnreadableStudy, parse_document, read_bytes
from dbdyno.study.files import folder_of
from dbdyno.study.meanwhile import read_meanwhile
from dbdyno.study.nodes import require_nodes
from dbdyno.study.nouns import (
    BASELINE,
    CAPACITY,
    DURABLE,
    KEEPS_LEDGER,
    TRIALS_MAX,
    Design,
    Factor,
    Goal,
    ListedVariant,
    Restarts,
    Study,
    Workload,
)
from dbdyno.study.published import PublishedFigure
from dbdyno.study.search import read_factor, read_known, read_search
from dbdyno.study.section import SectionReader
from dbdyno.study.sections import (
    read_data,
    read_driver,
    read_engines,
    read_fronts,
    read_phases,
    read_platforms,
    read_replay,
    read_server,
    read_soak,
    read_statements,
    read_upgraded,
    require_machine,
    require_no_application,
)
from dbdyno.study.tables import (
    ACTS,
    CHOSEN_KEYS,
    CUTS_OF_GUARD,
    ENGINE,
    FIXED_KEYS,
    GOAL,
    HOST,
    KNOBS,
    PUBLISHED,
    RANGE,
    RESTARTS,
    STUDY,
    VARIANT,
    WORKLOAD,
)
from dbdyno.study.trials import ACT_OF_METRIC, FULL_SPEED
from dbdyno.study.values import ValueFault, shown

MISTAKES_MAX = 100
Compared = tuple[tuple[Factor, ...], tuple[ListedVariant, ...]]


def read_study(path: str | Path, catalogue: Catalogue) -> Study:
    """Reads the study at `path`. Raises StudyError with all its mistakes."""
    try:
        content = read_bytes(Path(path))
    except UnreadableStudy as error:
        raise StudyError(str(path), error.mistakes) from None
    return parse_study(content, catalogue, str(path))


def parse_study(
    content: bytes, catalogue: Catalogue, path: str = "study", folder: Path | None = None
) -> Study:
    """Reads a study from its bytes; `path` is what messages call it, and its paths count from the `folder`:
    without one, from that of the path. Raises StudyError like `read_study`."""
    try:
        document = parse_document(content)
    except UnreadableStudy as error:
        raise StudyError(path, _at_most(error.mistakes)) from None
    reader = _Reader(document, catalogue, folder if folder is not None else folder_of(path))
    study = reader.judged(reader.study(path))
    if study is None:
        raise StudyError(path, _at_most(reader.mistakes))
    return study


def _at_most(mistakes: list[Mistake]) -> list[Mistake]:
    mistakes = sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))
    rest = mistakes[MISTAKES_MAX:]
    if not rest:
        return mistakes
    more = Mistake(rest[0].line, f"from here on {len(rest):,} more mistakes", "correct those above first")
    return [*mistakes[:MISTAKES_MAX], more]


class _Reader(SectionReader):
    def passwords(self) -> None:
        """Notes each line with a password: a run keeps the study's text, and reports and recipes show it."""
        for number, line in enumerate(self.document.text.split("\n"), 1):
            if without_passwords(line) != line:
                hint = "leave it out: whoever gets a run, a report or a recipe of this study would read it"
                self.mistakes.append(Mistake(number, "a URL on this line holds a password", hint))

    def study(self, path: str) -> Study | None:
        """The whole study, or None when there are mistakes."""
        if not self.document.values:
            self.note((), "the study is empty", "it needs an engine, a [workload] and [factors]")
            return None
        self.passwords()
        require_no_application(self)
        head = self.head(Path(path).stem)
        for place, both in excludes.clashes(self.document.values):
            self.note(place, both.message, both.hint)
        workload, lifted = self.workload()
        factors, variants = self.compared(head["design"], lifted, head["aa"])
        if workload is not None:
            workload = read_statements(self, read_replay(self, self.folder, workload, factors))
            self.pace(workload, factors)
        configuration = self.configuration()
        settings = self.settings({factor.name for factor in factors})
        settings = {**_beside(configuration, factors), **settings}
        self.judge_doubted(settings, factors, variants)
        head = {**read_platforms(self, head, factors, settings), "phases": read_phases(self, workload)}
        goal, soak = self.goal(), read_soak(self, workload)
        search, restarts = read_search(self, head["design"], factors), self.restarts(goal)
        require_nodes(self, restarts, workload, factors, settings)
        require_machine(self, restarts, factors, settings)
        fronts = read_fronts(self, workload, factors, settings)
        server, upgraded = read_server(self, factors, settings), read_upgraded(self, factors)
        driver, data = read_driver(self, workload, factors), read_data(self, self.folder, workload, factors)
        meanwhile = read_meanwhile(self, workload, factors, settings, goal)
        self.timed(goal, workload)
        price = self.section(HOST) if self.at(("host",)) is not None else {}
        self.fraction(head["design"], factors)
        self.limit(head, factors, len(variants))
        files = read_files(self, workload, factors, settings, head["phases"])
        if self.mistakes or self.engine is None or workload is None:
            return None
        return Study(
            **head,
            engine=self.engine,
            workload=_with_baseline(workload, factors),
            configuration=configuration,
            server=server,
            fronts=fronts,
            driver=driver,
            data=data,
            upgraded=upgraded,
            settings=settings,
            factors=factors,
            variants=variants,
            restarts=restarts,
            meanwhile=meanwhile,
            goal=goal,
            search=search,
            soak=soak,
            **price,
            path=path,
            place=str(self.folder),
            files=files,
            text=self.document.text,
            digest=self.document.digest,
        )

    def published(self) -> tuple[PublishedFigure, ...]:
        """What others published of the study's variants."""
        given = self.at((PUBLISHED.name,))
        if given is not None and not isinstance(given, list):
            told = f"`{PUBLISHED.name}` must be a list of tables, not {values.kind_text(given)}"
            self.note((PUBLISHED.name,), told, f"write [[{PUBLISHED.name}]] above each")
            return ()
        return tuple(filter(None, map(self.published_figure, range(len(given or ())))))

    def published_figure(self, index: int) -> PublishedFigure | None:
        """One of them; None where it is wrong."""
        place: Place = (PUBLISHED.name, index)
        known = len(self.mistakes)
        figure = self.section(PUBLISHED, place)
        low, high = figure.get("low"), figure.get("high")
        if len(self.mistakes) > known:
            return None
        if (low is None) != (high is None):
            self.note(place, "an interval has two ends", "give both `low` and `high`, or neither")
        elif low is not None and high is not None and not low <= figure["ratio"] <= high:
            self.note((*place, "ratio"), "the ratio lies outside of its own interval", "low <= ratio <= high")
        else:
            return PublishedFigure(**figure)
        return None

    def judged(self, study: Study | None) -> Study | None:
        """The study with what others published of its variants, once it is known as a whole; None when there
        are mistakes."""
        published = self.published()
        if study is None:
            return None
        self.procedures(study.workload, study.factors)
        names = [one.name for one in variants_of(study)] if published else []
        for index, figure in enumerate(published):
            for key, name in zip(("variant", "against"), figure.names, strict=True):
                if name not in names:
                    told = f"`{name}` is no variant of this study"
                    self.note((PUBLISHED.name, index, key), told, values.nearest(name, names))
            if figure.variant == figure.against:
                told = f"`{figure.variant}` is held against itself"
                self.note((PUBLISHED.name, index, "variant"), told, "name two variants")
        return None if self.mistakes else study.but(published=published)

    def head(self, title: str) -> dict[str, Any]:
        """The keys that stand in no table. The engines are kept apart: layers are asked about them."""
        given = self.section(STUDY)
        read_engines(self)
        default = {key.field: STUDY.default(key) for key in STUDY.keys if key.field}
        return {**default, "title": title, **given}

    def configuration(self) -> Configuration | None:
        """The engine's own configuration file, which stands by the study's folder."""
        if not isinstance(self.at(("engine",)), dict):
            return None
        self.table(("engine",), ENGINE.names)
        path: Place = ("engine", "configuration")
        name = self.value(ENGINE.key("configuration"), path)
        if not name or self.engine is None or self.catalogue.configure is None:
            return None
        try:
            return self.catalogue.configure(name, self.folder, self.engine)
        except (OSError, ValueError) as error:
            hint = getattr(error, "hint", f"its path counts from {self.folder}")
            self.note(path, f"{shown(name)} cannot be read: {unread(error)}", hint)
            return None

    def workload(self) -> tuple[Workload | None, list[Factor]]:
        """The workload, and a factor for each of its keys that holds a list."""
        named = WORKLOAD.key("name")
        if self.at(("workload",)) is None:
            self.note((), "there is no [workload]", named.missing(self.catalogue) if named.missing else "")
            return None, []
        name = self.value(named, ("workload", "name"))
        self.offer = self.catalogue.workload(name) if name is not None else None
        known = WORKLOAD.names | self.option_names()
        table = self.table(("workload",), known if self.offer else None)
        offered = self.offer.options if self.offer else ()
        options = {option.name: option.default for option in offered}
        knobs: dict[str, Any] = {}
        lifted = []
        for key in (key for key in table if key in known - FIXED_KEYS):
            path = ("workload", key)
            if self.varies(key, table[key]):
                lifted += self.factor(f"workload.{key}", table[key], path)
            elif (level := self.take(path, partial(self.knob, key))) is not None:
                (knobs if key in KNOBS else options)[key] = level
        given = self.given(WORKLOAD, ("workload",))
        return Workload(
            name=name or "",
            opening=self.opening({key: given.pop(key) for key in Opening.model_fields if key in given}),
            options={key: level for key, level in options.items() if level is not None},
            run_options=frozenset(option.name for option in offered if not option.shapes_data),
            **given,
            **knobs,
        ), lifted

    def opening(self, given: dict[str, Any]) -> Opening:
        """What each connection of the load begins with."""
        fixed = {one.engine for one in self.engines} - self.catalogue.choosing
        for key in (key for key in CHOSEN_KEYS if self.at(("workload", key)) is not None and fixed):
            message = f"`{key}` cannot be chosen with {', '.join(sorted(fixed))}"
            self.note(("workload", key), message, "leave it out")
        return Opening(**given)

    def procedures(self, workload: Workload, factors: tuple[Factor, ...]) -> None:
        """Whether every engine has the procedures that the load calls in some variant."""
        without = {one.engine for one in self.engines} - self.catalogue.choosing
        varied = {factor.name: factor.levels for factor in factors}
        for option in self.offer.options if self.offer is not None and without else ():
            name = f"workload.{option.name}"
            on = True in varied.get(name, (workload.options.get(option.name),))
            if option.needs_procedures and on:
                place: Place = ("factors", name) if self.at(("factors", name)) else ("workload", option.name)
                told = f"`{option.name}`: there are no procedures for {', '.join(sorted(without))}"
                self.note(place, told, "leave it out")

    def pace(self, workload: Workload, factors: tuple[Factor, ...]) -> None:
        """Whether what says when transactions start goes together, in every variant."""
        varied = {factor.knob: factor.levels for factor in factors if factor.layer == "workload"}
        fixed = {key: (getattr(workload, key),) for key in ("rate_per_s", "schedule", "think_time")}
        given = {key: varied.get(key, tuple(filter(None, levels))) for key, levels in fixed.items()}
        arrivals = self.at(("workload", "arrivals")) is not None or "arrivals" in varied
        found = pacing.clash(
            [pacing.schedule_form(text) for text in given["schedule"]],
            [float(rate) for rate in given["rate_per_s"]],
            arrivals=arrivals,
            think_time=bool(given["think_time"]),
            rate_key="`rate_per_s`",
        )
        if found:
            key, fault = found
            in_workload = self.at(("workload", key)) is not None
            path = ("workload", key) if in_workload else ("factors", f"workload.{key}")
            self.note(path, f"`{key}` {fault.message}", fault.hint)

    def compared(self, design: Design, lifted: list[Factor], aa: bool) -> Compared:
        """The factors in the order written and, for a `list` design, its variants."""
        if design is Design.LIST:
            for factor in lifted:
                hint = "give every level there, or choose another design"
                told = "the design `list` takes its levels from [[variants]]"
                self.note(("workload", factor.knob), told, hint)
            return read_variants(self)
        searched = design is Design.SEARCH
        if self.at(("variants",)) is not None and not searched:
            self.note(("variants",), f"the design `{design}` has no [[variants]]", 'write design = "list"')
        entries = self.flat(("factors",), RANGE.names)
        declared = [factor for entry in entries for factor in self.declared(*entry, searched)]
        for knob in (factor.knob for factor in declared if factor.layer == "workload"):
            if self.at(("workload", knob)) is not None:
                self.note(
                    ("workload", knob), f"`{knob}` is a factor under [factors] as well", "keep one of the two"
                )
        workload = self.at(("workload",))
        lists = isinstance(workload, dict) and any(self.varies(*entry) for entry in workload.items())
        # A soak needs nothing to compare, and neither does a gate.
        compares = not searched and self.at(("soak",)) is None and not self.catalogue.lone
        if not self.at(("factors",)) and not lists and not aa and compares:
            hint = (
                'write "config.NAME" = [BASELINE, OTHER] there; for the baseline against itself, aa = true;'
                " against that of another run, dyno run --against RUN"
            )
            self.note(("factors",), "there are no factors: nothing would be compared", hint)
        first = next((key for key in self.document.values if key in ("workload", "factors")), "")
        factors = tuple(lifted + declared if first == "workload" else declared + lifted)
        return factors, read_known(self, factors) if searched else ()

    def declared(self, name: str, value: Any, path: Place, searched: bool) -> list[Factor]:
        """A factor under [factors]: a list, or in a search a table too."""
        if not isinstance(value, dict):
            return self.factor(name, value, path)
        if searched:
            return read_factor(self, name, value, path)
        hint = 'write design = "search", or [BASELINE, OTHER, ...]'
        self.note(path, f"`{name}` is a range, which only the design `search` takes", hint)
        return []

    def settings(self, varied: set[str]) -> dict[str, Level]:
        """Levels that hold for every variant."""
        settings: dict[str, Level] = {}
        for name, value, path in self.flat(("settings",)):
            if name.startswith("workload."):
                self.note(path, f"`{name}` has no place in [settings]", "write it under [workload]")
            elif name == ENGINE_FACTOR:
                self.note(path, f"`{name}` has no place in [settings]", "write it at the top of the study")
            elif not self.factor_name(name, path):
                continue
            elif name in varied:
                self.note(path, f"`{name}` is a factor as well", "keep one of the two")
            elif isinstance(value, list):
                self.note(
                    path, f"`{name}` is a list", "a setting has one level; what varies stands under [factors]"
                )
            elif (level := self.level(name, value, path)) is not None:
                settings[name] = level
                self.layer_agrees(Factor(name=name, levels=(level,)), path)
        return settings

    def goal(self) -> Goal:
        """What is asked. A capacity and a promise belong together."""
        goal = Goal(**self.section(GOAL))
        if self.at(("goal", "response")) not in (None, goal.response):
            return goal
        asked, path = goal.response == CAPACITY, ("goal", "response")
        if asked and self.at(("goal", "promise")) is None:
            self.note(
                path,
                "`capacity` is the highest rate for a promise, and there is none",
                f"write promise = {values.PROMISE_FORMS}",
            )
        for key in ("promise", "rates"):
            if not asked and self.at(("goal", key)) is not None:
                told = f"`{key}` is for the response `{CAPACITY}`, and this one is `{goal.response}`"
                self.note(("goal", key), told, f'write response = "{CAPACITY}", or leave it out')
        if not asked and any(guard.metric == CAPACITY for guard in goal.guards):
            hint = f'write response = "{CAPACITY}" and a promise, or leave it out'
            self.note(("goal", "guards"), "`capacity` is known where it is the response alone", hint)
        return goal

    def restarts(self, goal: Goal) -> Restarts | None:
        """How often engines are restarted beside the blocks. The guard `durable` asks for power cuts by
        itself."""
        path: Place = ("restarts",)
        durable = any(guard.metric == DURABLE for guard in goal.guards)
        if self.at(path) is None and not durable:
            return None
        given = self.section(RESTARTS)
        if durable and not (given.get("power_cuts") or given.get("torn_pages")):
            given["power_cuts"] = CUTS_OF_GUARD
        acts = [key.name for key in ACTS]
        if not any(given.get(act) for act in acts):
            self.note(
                path, "nothing is to be restarted", f"give {' or '.join(acts)}: power_cuts = {CUTS_OF_GUARD}"
            )
        losing = self.catalogue.losing(self.engine) if self.catalogue.losing and self.engine else {}
        return Restarts(control={f"config.{name}": level for name, level in losing.items()}, **given)

    def timed(self, goal: Goal, workload: Workload | None) -> None:
        """Metrics of restarts need a load whose transactions are known one by one, and which lasts for longer
        than what it is to show."""
        if workload is None:
            return
        named = (goal.response, *(guard.metric for guard in goal.guards))
        asked = next((name for name in named if name in ACT_OF_METRIC), "")
        if asked and workload.name not in KEEPS_LEDGER:
            hint = f"take one that keeps a ledger: {', '.join(KEEPS_LEDGER)}"
            self.note(("workload", "name"), f"`{asked}` is not known under {workload.name}", hint)
        elif asked and not workload.keeps_ledger:
            told = f"`{asked}` is not known under {workload.name} that only reads"
            self.note(("workload", "select_only"), told, "leave it out")
        for guard in goal.guards:
            bound = None if guard.relative else guard.bound
            if guard.metric in FULL_SPEED and bound is not None and bound >= workload.duration_s:
                told = f"a load of {workload.duration_s:g} s cannot show whether {guard.text} holds"
                self.note(("goal", "guards"), told, "give a shorter time, or raise workload.duration")

    def fraction(self, design: Design, factors: tuple[Factor, ...]) -> None:
        """A fraction is made for two levels a factor, and for as many factors as its tables hold."""
        if design is not Design.FRACTIONAL or self.mistakes:
            return
        for factor in (factor for factor in factors if len(factor.levels) != 2):
            self.note(
                self.place_of(factor),
                f"`{factor.name}` has {len(factor.levels)} levels; the design `{design}` takes two of each",
                "keep the slow one and the fast one",
            )
        if not FACTORS_LEAST <= len(factors) <= FACTORS_MOST:
            fewer = len(factors) < FACTORS_LEAST
            self.note(
                ("design",),
                f"the design `{design}` is for {FACTORS_LEAST} to {FACTORS_MOST} factors, and here are"
                f" {len(factors)}",
                'write design = "factorial": all variants can be measured'
                if fewer
                else 'settle some first: design = "one-at-a-time" shows which do nothing',
            )

    def limit(self, head: dict[str, Any], factors: tuple[Factor, ...], listed: int) -> None:
        size = size_of_design(
            head["design"], factors, listed, head["blocks"], head["aa"], head["baselines"] or 1
        )
        if size.trials > TRIALS_MAX:
            place = ("design",) if self.at(("design",)) is not None else ("factors",)
            hint = f"at most {TRIALS_MAX:,} are allowed: fewer levels, fewer blocks, or another design"
            self.note(place, f"too many trials: {size.arithmetic}", hint)


def unread(error: OSError | ValueError) -> str:
    """Why a configuration file cannot be read, or is none."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is not a text in UTF-8" if isinstance(error, UnicodeError) else str(error)


def _beside(configuration: Configuration | None, factors: tuple[Factor, ...]) -> dict[str, Level]:
    """What a configuration file gives every variant: all but what the study varies."""
    varied = {factor.name for factor in factors}
    given = configuration.settings if configuration else {}
    return {name: level for name, level in given.items() if name not in varied}


def _with_baseline(workload: Workload, factors: tuple[Factor, ...]) -> Workload:
    """The workload with the baseline's level of each of its keys that is a factor."""
    varied = {factor.knob: factor.baseline for factor in factors if factor.layer == "workload"}
    options = {key: level for key, level in varied.items() if key not in KNOBS}
    knobs = {key: level for key, level in varied.items() if key in KNOBS}
    return workload.but(**knobs, options={**workload.options, **options})


def read_variants(reader: SectionReader) -> tuple[tuple[Factor, ...], tuple[ListedVariant, ...]]:
    """Reads [[variants]]. The first is the baseline and gives every factor; the others change some."""
    given = reader.at(("variants",))
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given) or len(given) < 2:
        reader.note(
            ("variants",),
            "the design `list` needs two or more [[variants]]",
            'each has a name and levels: [[variants]], name = "...", levels = { "config.NAME" = ... }',
        )
        return (), ()
    if len(given) > TRIALS_MAX:
        reader.note(
            ("variants",),
            f"{len(given):,} variants are too many",
            f"at most {TRIALS_MAX:,} trials are allowed",
        )
        return (), ()
    before = len(reader.mistakes)
    own = [_variant(reader, index) for index in range(len(given))]
    complete = tuple(ListedVariant(name=one.name, levels=own[0].levels | one.levels) for one in own)
    if len(reader.mistakes) == before:
        _note_left_open(reader, own)
        _note_repeated(reader, complete)
    sound = len(reader.mistakes) == before
    factors = [factor for name in own[0].levels for factor in _factor(reader, name, own[0], complete, sound)]
    return tuple(factors), complete


class _Own(NamedTuple):
    """What one of [[variants]] gives itself, and where each level stands."""

    name: str
    levels: dict[str, Level]
    places: dict[str, Place]


def _variant(reader: SectionReader, index: int) -> _Own:
    path: Place = ("variants", index)
    reader.table(path, VARIANT.names)
    place = (*path, "name")
    if index == 0:
        name = reader.take(place, _baseline_name) or BASELINE
    else:
        hint = "every variant but the first needs one"
        name = reader.need(place, grammars.VARIANT_NAME, hint) or str(index)
    own = _Own(name, {}, {})
    for factor, value, where in reader.flat((*path, "levels")):
        if reader.factor_name(factor, where) and (level := reader.level(factor, value, where)) is not None:
            own.levels[factor], own.places[factor] = level, where
    return own


def _baseline_name(value: Any) -> str:
    if value != BASELINE:
        raise ValueFault(
            f"the first variant is the baseline, not {shown(value)}", f'write name = "{BASELINE}", or none'
        )
    return BASELINE


def _factor(
    reader: SectionReader, name: str, baseline: _Own, variants: tuple[ListedVariant, ...], sound: bool
) -> list[Factor]:
    """The factor that the variants' levels of `name` make up, in the order in which they appear."""
    path = baseline.places[name]
    levels: dict[str, Level] = {}
    for variant in variants:
        levels.setdefault(level_text(variant.levels[name]), variant.levels[name])
    if len(levels) < 2:
        if sound:
            reader.note(path, f"`{name}` is the same in every variant", "write it under [settings]")
        return []
    factor = Factor(name=name, levels=tuple(levels.values()))
    return [factor] if reader.layer_agrees(factor, path) else []


def _note_left_open(reader: SectionReader, own: list[_Own]) -> None:
    """Notes levels of factors for which the baseline gives none."""
    for variant in own:
        for factor in sorted(variant.levels.keys() - own[0].levels.keys()):
            reader.note(
                variant.places[factor],
                f"`{variant.name}` sets `{factor}`, which the baseline does not",
                f"the first variant gives every factor: add `{factor}` to its levels",
            )


def _note_repeated(reader: SectionReader, variants: tuple[ListedVariant, ...]) -> None:
    """Notes variants with the name or the levels of an earlier one."""
    names: dict[str, int] = {}
    named: dict[tuple[tuple[str, str], ...], str] = {}
    for index, variant in enumerate(variants):
        path: Place = ("variants", index)
        levels = tuple(sorted((name, level_text(level)) for name, level in variant.levels.items()))
        if variant.name in names:
            line = reader.document.line(("variants", names[variant.name]))
            reader.note(
                (*path, "name"),
                f"the variant `{variant.name}` is given twice: first on line {line}",
                "rename one",
            )
        elif levels in named:
            other = named[levels]
            reader.note(
                path, f"`{variant.name}` has the same levels as `{other}`", "aa = true repeats the baseline"
            )
        names.setdefault(variant.name, index)
        named.setdefault(levels, variant.name)
