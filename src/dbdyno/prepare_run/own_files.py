"""A first study of configuration: one file of a user's, what differs between two, a server's own, or what
differs between the defaults of two versions.

A setting that one of two sides has alone is varied too: its other level is the engine's default, as a server
says it. A server starts with all that each side gives, and what it does not then have is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.analyse.engines import engines_compared
from dbdyno.analyse.found import DefaultChanged
from dbdyno.driver.passwords import conversation
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration, require_settings, without_secrets
from dbdyno.engines.engine import Engine, Proposal
from dbdyno.engines.facts import NoConfiguration
from dbdyno.engines.runtime import with_own_password
from dbdyno.engines.values import quantity
from dbdyno.errors import DynoError, UserError
from dbdyno.findings import configuration
from dbdyno.frozen import ENGINE_FACTOR, Configuration, Level, level_shown, level_text
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.layers.config import untaken
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.installation import Installation
from dbdyno.prepare_run.first_study import StudyOutline
from dbdyno.prepare_run.study_here import installation_of, located
from dbdyno.records.record import Record
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study
from dbdyno.study.designs import FACTORS_LEAST
from dbdyno.study.document import inline
from dbdyno.study.grammars import NAME_LENGTH_MAX
from dbdyno.study.nouns import Reference
from dbdyno.study.reader import unread
from dbdyno.study.tables import ENGINE
from dbdyno.study.trials import Variant
from dbdyno.trial.beside import defaults_here, not_in_effect

VARIED_MOST = 6
"""More factors than these have too many combinations for a first study."""
STARTS_S = 30.0
"""About how long the servers take that say what they make of two files, for those who wait."""


@dataclass(frozen=True)
class OwnFile:
    """A configuration file that was read, by the path that the user gave."""

    path: Path
    found: Configuration

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Split:
    """What becomes of each setting (by factor) that one of two files gives: its two levels, or that both mean
    the same, or why it is not varied."""

    varied: dict[str, tuple[Level, Level]] = field(default_factory=dict)
    alike: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedStudy:
    """A question, and what the user is told of the files that it came from."""

    question: StudyOutline
    told: tuple[str, ...] = ()
    then: str = ""


def of_file(reference: Reference, base: Path, folder: Path, memory_bytes: int) -> AskedStudy:
    """What helps beyond a file's settings."""
    engine, own = registry.engine(reference.engine), read(reference, base)
    settings = own.found.settings
    proposals = [_beyond(one, settings, engine) for one in engine.settings.proposals(memory_bytes)]
    question = StudyOutline(
        f"What helps {engine.title} beyond {base.name}?",
        _engine_table(reference, base, folder),
        "one-at-a-time",
        [one for one in proposals if len(one.levels) > 1],
    )
    return AskedStudy(question, tuple(configuration.lines(own.found)))


def between(reference: Reference, base: Path, other: Path, folder: Path, tell: Tell) -> AskedStudy:
    """What differs between two files. Starts servers on empty data. Raises UserError where nothing does."""
    engine, (left, right) = registry.engine(reference.engine), (read(reference, base), read(reference, other))
    installation = installation_of(reference)
    split = _split(engine, installation, left, right, tell)
    told = tuple(_told(split, left, right, engine, installation))
    if not split.varied:
        raise UserError(
            f"{base} and {other} set nothing differently that can be varied", "\n".join(told) or "name others"
        )
    factors = [Proposal(name, levels, "") for name, levels in split.varied.items()]
    variants = _variants(split, engine, installation, left.found.settings, right.name)
    question = StudyOutline(
        f"What makes the difference between {base.name} and {other.name}?",
        _engine_table(reference, base, folder),
        "list" if variants else _design(len(factors)),
        factors,
        [f"Not varied: {name}, because {why}." for name, why in split.left_out.items()],
        variants,
    )
    then = f"--settings (where {right.name} is faster: --good {right.name} --bad baseline)"
    return AskedStudy(question, told, then if len(factors) > VARIED_MOST else "")


def _variants(
    split: Split,
    engine: Engine,
    installation: Installation | None,
    base: Mapping[str, Level],
    whole: str,
) -> dict[str, list[str]]:
    """The variants that are named one by one, with what they change: where combinations are too many, all of
    the other file at once; where settings need each other, these together as well."""
    names = list(split.varied)
    if len(names) > VARIED_MOST:
        return {whole: names}
    if installation is None:
        return {}
    first = {**base, **{name: levels[0] for name, levels in split.varied.items()}}
    together = [
        name
        for name, (_, level) in split.varied.items()
        if engine.settings.refused(installation, by_layer({**first, name: level})["config"])
    ]
    if len(together) < 2:
        return {}
    joint = " and ".join(map(_knob, together))[:NAME_LENGTH_MAX]
    each = {f"{_knob(name)} alone": [name] for name in names if name not in together}
    return {**each, joint: together, **({whole: names} if each else {})}


def place_of(reference: Reference, study: Path) -> Path:
    """Where a running server's settings are written beside a study. Raises UserError for an engine that is
    not studied while it runs."""
    registry.runtime_of(reference.engine)
    production = registry.engine(reference.engine).production
    return study.with_suffix(Path(production.file).suffix if production is not None else ".conf")


def written_by(url: str, reference: Reference, path: Path) -> Reference:
    """Writes what somebody has set on a running server as the engine's own configuration file, without its
    secrets. Returns the engine in the server's version. Raises DriverFailed where it does not answer."""
    engine, runtime = registry.engine(reference.engine), registry.runtime_of(reference.engine)
    with conversation(with_own_password(url)) as ask:
        version = runtime.identity(ask).version
        rows = ask(runtime.SET_SQL)
    settings: dict[str, Level] = {str(name): str(value) for name, value in sorted(rows, key=str)}
    assert engine.production is not None and engine.upgrading is not None, "it runs as a server"
    path.write_text(without_secrets(engine.production.written(settings)), encoding="utf-8")
    release = ".".join(map(str, engine.upgrading.series(version)))
    return Reference(reference.engine, reference.version or release)


def read(reference: Reference, path: Path) -> OwnFile:
    """Raises UserError for what no server takes, and for a file that gives a study nothing."""
    engine = registry.engine(reference.engine)
    try:
        found = read_configuration(engine, installation_of(reference), str(path), Path())
        return OwnFile(path, require_settings(found))
    except (OSError, ValueError) as error:
        hint = error.hint if isinstance(error, NoConfiguration) else "give the path of a configuration file"
        raise UserError(f"{path} cannot be read: {unread(error)}", hint) from None


def _beyond(proposal: Proposal, settings: Mapping[str, Level], engine: Engine) -> Proposal:
    """A proposal whose baseline is the level that a configuration file sets."""
    if proposal.name not in settings:
        return proposal
    own = settings[proposal.name]
    name = _knob(proposal.name)
    others = [level for level in proposal.levels if not engine.settings.same(name, level, level_text(own))]
    return Proposal(proposal.name, (own, *others), proposal.why)


def _knob(name: str) -> str:
    return name.removeprefix("config.")


def _design(factors: int) -> str:
    """All combinations explain a gap exactly, a fraction nearly."""
    return "factorial" if factors < FACTORS_LEAST else "fractional-factorial"


def _engine_table(reference: Reference, path: Path, folder: Path) -> str:
    """The path as the study names it: from its own folder where the file lies in there."""
    whole, within = path.resolve(), folder.resolve()
    place = str(whole.relative_to(within) if whole.is_relative_to(within) else whole)
    return inline([ENGINE.row("name", reference), ENGINE.row("configuration", place)])


def _split(
    engine: Engine, installation: Installation | None, left: OwnFile, right: OwnFile, tell: Tell
) -> Split:
    mine, theirs = left.found.settings, right.found.settings
    alone_in_one = mine.keys() ^ theirs.keys()
    split = Split()
    if alone_in_one and installation is None:
        missing = located(Reference(engine.name))
        hint = missing.hint if isinstance(missing, DynoError) else ""
        raise UserError(f"{engine.title} is not here to say its defaults, which the other file has", hint)
    with alone("dyno init", STARTS_S, tell=tell):
        defaults: Mapping[str, Level] = {}
        if installation is not None and alone_in_one:
            tell(f"{engine.title} {installation.version} starts, to say its defaults")
            defaults = defaults_here(engine, installation, [_knob(name) for name in alone_in_one])
        for name in dict.fromkeys((*mine, *theirs)):
            default = _spelt(defaults.get(_knob(name)), mine.get(name, theirs.get(name)))
            levels = mine.get(name, default), theirs.get(name, default)
            if levels[0] is None or levels[1] is None:
                split.left_out[name] = "the server does not say its default"
            elif _same(engine, name, levels[0], levels[1]):
                split.alike.add(name)
            else:
                split.varied[name] = (levels[0], levels[1])
        if installation is not None:
            tell(f"{engine.title} {installation.version} starts with all that each file gives")
            _leave_out(split, engine, installation, mine)
    return split


def _spelt(default: Level | None, beside: Level | None) -> Level | None:
    """A default in mebibytes where the level beside it is a size with a unit, and where that is exact."""
    size = quantity(level_text(beside)) if beside is not None else None
    if size is None or size[1] != "bytes" or default is None or not level_text(default).isdigit():
        return default
    whole, rest = divmod(int(level_text(default)), 2**20)
    return f"{whole}M" if whole and not rest else default


def _same(engine: Engine, name: str, one: Level, other: Level) -> bool:
    same = engine.settings.same
    return same(_knob(name), one, level_text(other)) or same(_knob(name), other, level_text(one))


def _leave_out(split: Split, engine: Engine, installation: Installation, base: Mapping[str, Level]) -> None:
    """Takes out what a server with all of one end does not have."""
    for end in (0, 1):
        whole = {**base, **{name: levels[end] for name, levels in split.varied.items()}}
        asked = {_knob(name): level for name, level in whole.items()}
        for knob, why in not_in_effect(engine, installation, asked).items():
            name = f"config.{knob}"
            split.varied.pop(name, None)
            split.alike.discard(name)
            split.left_out.setdefault(name, f"at {level_shown(asked[knob])} {why}")


def _told(
    split: Split, left: OwnFile, right: OwnFile, engine: Engine, installation: Installation | None
) -> Iterator[str]:
    """What of each file is varied, and what is not and why. The counts add up to the lines of the file."""
    for file in (left, right):
        given = file.found.settings.keys()
        counts = [
            (len(given & split.varied.keys()), "varied"),
            (len(given & split.alike), "alike in both, or the default"),
            (len(given & split.left_out.keys()), "not varied"),
            (len(file.found.not_taken), "not taken"),
        ]
        if file.found.lines is not None:
            counts.append((file.found.lines.again, "said again later"))
            counts.append((file.found.lines.silent, "empty, comments, heads and includes"))
        lines = plural(sum(count for count, _ in counts), "line")
        yield f"{file.name}: {lines}: {', '.join(f'{count:,} {what}' for count, what in counts if count)}"
        for place, text, reason in configuration.rows(file.found):
            yield f"  not taken: {place}: {text}: {reason}"
    version = f" {installation.version}" if installation is not None else ""
    for name, (mine, theirs) in split.varied.items():
        alone = [file.name for file in (left, right) if name in file.found.settings]
        default = f" (in {alone[0]} alone: the other is the default of {engine.title}{version})"
        levels = f"{level_shown(mine)} -> {level_shown(theirs)}"
        yield f"  varied: {_knob(name)}: {levels}{default if len(alone) == 1 else ''}"
    for name, why in split.left_out.items():
        yield f"  not varied: {_knob(name)}: {why}"
    yield f"  alike: {', '.join(sorted(map(_knob, split.alike))) or 'nothing'}"


NEW_ALONE = "the old version has no such setting"
OLD_ALONE = "the new version has no such setting"


@dataclass(frozen=True)
class OldDefaults:
    """Settings (by factor) with the defaults of the old version and of the new one, and why others are left
    out, by their names."""

    old: dict[str, Level]
    new: dict[str, Level]
    left_out: dict[str, str]


@dataclass(frozen=True)
class _Side:
    """A version, and the levels that it is to take."""

    engine: Engine
    installation: Installation
    levels: tuple[dict[str, Level], ...]


def old_defaults(
    study: Study, records: Sequence[Record], slow: Variant, fast: Variant, tell: Tell
) -> OldDefaults:
    """Those of two variants that differ in their versions alone. Starts servers of both. Raises UserError
    where they differ otherwise, where the records tell no defaults, or where none can be set."""
    level = _require_versions(study, slow, fast)
    compared = engines_compared(_between(study, slow, fast), records)
    beside = next((one for one in compared.defaults if one.level == level), None) if compared else None
    if beside is None:
        raise UserError(
            "the run does not hold the defaults of both versions", "measure a first block of both of them"
        )
    given = {*study.settings, *study.baseline}
    changed = [one for one in beside.changed if f"config.{one.name}" not in given]
    found = OldDefaults({}, {}, {})
    engine, old, new = _engine(study, slow), _here(study, slow), _here(study, fast)
    for one in changed:
        _add(found, one, engine)
    for installation in (new, old):
        _without(found, _untaken(found, engine, installation))
    tell("servers of both versions start with the defaults of each, to see whether they have them")
    for side in (_Side(engine, new, (found.old, found.new)), _Side(engine, old, (found.old,))):
        for levels in side.levels:
            settings = {name.removeprefix("config."): one for name, one in levels.items()}
            _without(found, not_in_effect(side.engine, side.installation, settings))
    if not found.old:
        raise UserError(
            f"none of {len(changed)} changed defaults can be set on both versions",
            "their gap is that of the version alone",
        )
    return found


def _require_versions(study: Study, slow: Variant, fast: Variant) -> str:
    """The level of the new version. Raises UserError where something else differs."""
    differing = [name for name, level in slow.levels.items() if fast.levels[name] != level]
    engines = [study.engine_of(one.levels) for one in (slow, fast)]
    if differing != [ENGINE_FACTOR] or engines[0].engine != engines[1].engine:
        raise UserError(
            f"{slow.name} and {fast.name} do not differ in the version alone",
            "name two variants with --from and --to that differ in `engine`, and are of one product",
        )
    return engines[1].written


def _between(study: Study, slow: Variant, fast: Variant) -> Study:
    """The study as if it had these two engines, the old one first."""
    levels = (slow.levels[ENGINE_FACTOR], fast.levels[ENGINE_FACTOR])
    factors = [one.but(levels=levels) if one.name == ENGINE_FACTOR else one for one in study.factors]
    return study.but(engine=study.engine_of(slow.levels), factors=tuple(factors))


def _engine(study: Study, variant: Variant) -> Engine:
    return registry.engine(study.engine_of(variant.levels).engine)


def _here(study: Study, variant: Variant) -> Installation:
    found = located(study.engine_of(variant.levels))
    if isinstance(found, DynoError):
        raise found
    return found


def _add(found: OldDefaults, one: DefaultChanged, engine: Engine) -> None:
    if one.before is None or one.after is None:
        found.left_out[one.name] = NEW_ALONE if one.before is None else OLD_ALONE
        return
    before, after = _shared(one.before, one.after)
    if before == after:
        found.left_out[one.name] = "what differs are members that one version lacks"
        return
    as_level = engine.compared.level if engine.compared is not None else str
    found.old[f"config.{one.name}"], found.new[f"config.{one.name}"] = as_level(before), as_level(after)


def _shared(before: str, after: str) -> tuple[str, str]:
    """Of two lists of `name=value` the members alone that both have and that differ; other values whole."""
    own, other = _members(before), _members(after)
    if own is None or other is None:
        return before, after
    names = [name for name in own if name in other and own[name] != other[name]]
    return _joined(own, names), _joined(other, names)


def _joined(members: Mapping[str, str], names: Sequence[str]) -> str:
    return ",".join(f"{name}={members[name]}" for name in names)


def _members(value: str) -> Mapping[str, str] | None:
    pairs = [part.partition("=") for part in value.split(",")]
    return {name: held for name, _, held in pairs} if all(sign for _, sign, _ in pairs) else None


def _untaken(found: OldDefaults, engine: Engine, installation: Installation) -> dict[str, str]:
    refused = {}
    for name in found.old:
        for level in (found.old[name], found.new[name]):
            for why in untaken({name: level}, LAYERS, engine, installation):
                refused[name.removeprefix("config.")] = why.message.removeprefix(f"{name}: ")
    return refused


def _without(found: OldDefaults, refused: Mapping[str, str]) -> None:
    for name, reason in refused.items():
        found.left_out[name] = reason
        found.old.pop(f"config.{name}", None)
        found.new.pop(f"config.{name}", None)


def left_out_lines(found: OldDefaults) -> Iterator[str]:
    """A sentence for each reason, with the settings that it keeps out."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(found.left_out.items()):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"left out, because {reason}: {', '.join(names)}"


def levels_line(found: OldDefaults) -> Iterator[str]:
    """A line for each setting that the study varies."""
    for name, level in found.old.items():
        yield f"{name.removeprefix('config.')}: {level_shown(level)} -> {level_shown(found.new[name])}"
