"""What does not go together in a study and among the options of verbs: one row for each pair.

The reader, the JSON Schema, the verbs and two pages of `docs/reference` are made from this table. A name
is `[section]`, a key as in `images` or `goal.guards`, a factor, an option, or a verb. A value can follow it.
`GROUPS` has those that stand for several factors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import UserError

Place = tuple[str | int, ...]
Schema = dict[str, Any]
KEEP_ONE = "keep one of the two"


@dataclass(frozen=True)
class ExclusionReason:
    """Why two do not go together, and what to do: the second one is named first in a message, and has the
    line."""

    why: str
    remedy: str = KEEP_ONE


def _each(
    first: str, others: Iterable[str], why: str, remedy: str = KEEP_ONE
) -> dict[tuple[str, str], ExclusionReason]:
    return {(first, other): ExclusionReason(why, remedy) for other in others}


PLATFORM, MACHINE, NODES = "platform.architecture", "machine.reset", "cluster.nodes"
RUNNING, HOST_LEVELS, BUILDS = "a server that runs already", "levels of this host", "levels of builds"
TIMES_NOTHING = "a study of platforms times nothing, because the speed of an emulator says nothing"
ONE_PROCESS = "its clients are of one load process, and cannot be dealt out over nodes"
ONE_LAYOUT = "the data have one layout, which all blocks share"
LEDGER_HERE = "what clients were told is kept on the server's host, so that it outlives the server"
OTHER_DESIGN = "leave it out; a study of another design can have it"
STATEMENTS = "workload.name = statements"
SEARCH, REPLAY, DURABLE = "design = search", "workload.name = replay", "goal.guards = durable"

EXCLUDES: Mapping[tuple[str, str], ExclusionReason] = {
    ("[driver]", "[restarts]"): ExclusionReason(LEDGER_HERE),
    ("[driver]", "[soak]"): ExclusionReason(
        "the clients that misbehave in a soak are processes of this host"
    ),
    ("[driver]", DURABLE): ExclusionReason(LEDGER_HERE),
    ("[driver]", "cpu.driver"): ExclusionReason(
        "it binds the driver on this host, and the load comes from another one", "leave it out"
    ),
    ("memory.server", "fault.memory"): ExclusionReason("both are the limit of one control group"),
    (NODES, "[driver]"): ExclusionReason(
        "the nodes are on a network of their own, which no other host is on"
    ),
    **_each(
        "front.kind",
        ("[driver]", "[restarts]", "[soak]", NODES, STATEMENTS, MACHINE, PLATFORM, DURABLE),
        "it passes the load of this host on to one server",
        "leave it out, or ask it in a study of its own",
    ),
    ("workload.name = flexasync", "cluster.load = all"): ExclusionReason(
        ONE_PROCESS, 'write "cluster.load" = "one"'
    ),
    (REPLAY, "cluster.load = all"): ExclusionReason(ONE_PROCESS, 'write "cluster.load" = "one"'),
    ("data.dump", "images"): ExclusionReason(ONE_LAYOUT, "leave it out"),
    ("data.folder", "images"): ExclusionReason(ONE_LAYOUT, "leave it out"),
    ("data.dump", "data.folder"): ExclusionReason("each of the two is all of the data"),
    ("factors.engine", BUILDS): ExclusionReason(
        "a build takes the engine's place",
        "keep one of the two; a build that is there is a level by its path",
    ),
    (SEARCH, "factors.engine"): ExclusionReason(
        "a search tries levels of one engine",
        "search on each engine by itself, and compare the winners in a study of another design",
    ),
    (SEARCH, BUILDS): ExclusionReason(
        "each build takes minutes",
        "choose the build with a study of another design, and write it under [settings] here",
    ),
    **_each(
        SEARCH,
        ("[restarts]", DURABLE),
        "a search restarts no engine",
        "hold the winner against the baseline in a study of its own",
    ),
    **_each(
        SEARCH, ("aa", "baselines", "goal.counted"), "a search has one baseline, and times", OTHER_DESIGN
    ),
    **_each(
        SEARCH,
        ("--until", "--against", "--add-blocks"),
        "a search has its own end and its own verdict",
        "leave it out; --budget gives it more time",
    ),
    ("design = list", "[factors]"): ExclusionReason(
        "that design takes its levels from [[variants]]", "give every level there, or choose another design"
    ),
    ("goal.interval = signed-rank", "baselines > 1"): ExclusionReason(
        "one candidate over the mean of several is not as often large as small by chance",
        'keep one baseline, or write interval = "student" under [goal]',
    ),
    ("goal.response = instructions_per_op", "goal.counted"): ExclusionReason(
        "that response is counted in every block", "leave it out"
    ),
    **_each(
        "goal.promise",
        (f"workload.{key}" for key in ("rate_per_s", "arrivals", "schedule", "think_time")),
        "a search for a capacity chooses the rates",
        "leave it out",
    ),
    **_each(
        "goal.promise",
        (SEARCH, REPLAY, STATEMENTS, "goal.counted", "slice"),
        "a capacity is searched in steps at rates of their own",
        "ask for the capacity in a study of its own",
    ),
    **_each(
        "[[phases]]",
        (
            *("goal.promise", "[soak]", "[driver]", SEARCH, REPLAY, STATEMENTS, "slice"),
            *(f"workload.{key}" for key in ("ramp", "warmup", "schedule")),
            *(PLATFORM, MACHINE, "cluster.load = all", "[[meanwhile]]"),
        ),
        "its phases are the load, each in one piece",
        "leave it out, or ask it in a study of its own",
    ),
    ("goal.promise", "--budget"): ExclusionReason(
        "the length of a step belongs to the promise", "leave --budget out, and give --blocks"
    ),
    **_each(
        "[[meanwhile]]",
        (
            "[driver]",
            "[restarts]",
            "[soak]",
            "[search]",
            SEARCH,
            REPLAY,
            STATEMENTS,
            MACHINE,
            PLATFORM,
            DURABLE,
        ),
        "acts beside a load come once in each, at their moment",
        "leave it out, or ask it in a study of its own",
    ),
    **_each(
        "[[meanwhile]]",
        ("slice", "workload.schedule", "goal.promise", "goal.counted", "dyno soak", "dyno profile"),
        "one load in one piece shows what becomes of it",
        "leave it out",
    ),
    ("[[meanwhile]]", "--budget"): ExclusionReason(
        "the length of a load belongs to its acts", "leave --budget out, and give --blocks"
    ),
    **_each(
        REPLAY,
        (
            f"workload.{key}"
            for key in ("clients", "ramp", "rate_per_s", "arrivals", "schedule", "think_time")
        ),
        "the recording of a replay says it",
        "leave it out",
    ),
    **_each(
        STATEMENTS,
        (
            *(f"workload.{key}" for key in ("clients", "threads", "ramp", "warmup", "think_time")),
            *("workload.rate_per_s", "workload.arrivals", "workload.schedule"),
        ),
        "each statement is sent by itself, in rounds of which the first one warms up",
        "leave it out; rounds = 10 says how often",
    ),
    **_each(
        STATEMENTS,
        ("[soak]", "[restarts]", "slice"),
        "each statement is sent by itself",
        "leave it out, or take another workload",
    ),
    **_each(
        PLATFORM,
        ("aa", "baselines", "blocks", "images", "arrangement", "slice", "[goal]", "[soak]", "[search]"),
        TIMES_NOTHING,
        "leave it out",
    ),
    (PLATFORM, SEARCH): ExclusionReason(TIMES_NOTHING, "choose another design"),
    **_each(
        PLATFORM,
        (
            *("--against", "--blocks", "--budget", "--until"),
            *("dyno bisect", "dyno explain", "dyno matrix", "dyno profile", "dyno soak"),
        ),
        TIMES_NOTHING,
        "dyno run STUDY and dyno report RUN say what works",
    ),
    ("counted work", "--budget"): ExclusionReason(
        "it takes as long as its transactions", "leave --budget out, and give --blocks"
    ),
    **_each(
        PLATFORM,
        ("[driver]", "[data]"),
        "programs of other machines are asked for their own answers alone",
        "leave it out",
    ),
    **_each(PLATFORM, ("build.pgo", "build.bolt", "build.layout"), TIMES_NOTHING, "leave it out"),
    (PLATFORM, HOST_LEVELS): ExclusionReason(
        "programs of other machines run under emulation",
        "keep one of the two: other architectures take settings of the server and of the load, and builds",
    ),
    **_each(
        PLATFORM,
        ("restarts.power_cuts", "restarts.torn_pages", "restarts.flipped_bits"),
        "what a volume keeps says nothing of another machine's disks",
        "give kills and stops",
    ),
    (MACHINE, BUILDS): ExclusionReason("the guest starts packages", "leave it out"),
    **_each(
        MACHINE,
        ("restarts.kills", "restarts.stops"),
        "these act on a server of this host",
        "leave it out, or ask it of `platform.architecture` in a study of its own",
    ),
    **{
        (RUNNING, other): ExclusionReason(why, "leave it out, or name an installation as the engine")
        for other, why in {
            "[[meanwhile]]": "what it changes would stay",
            "front.kind": "what stands in front of it is not Dyno's",
            "[driver]": "a load comes from this host",
            "[data]": "its data are not put in place",
            "[restarts]": "it is not killed",
            "[soak]": "it is not soaked",
            "goal.promise": "a search for a capacity overloads it",
            "[search]": "a search is made on servers of Dyno's own",
            "images": "its data have the layout that they have",
            "[[phases]]": "they load and change data of Dyno's own",
            "engine.configuration": "it has read its configuration",
            DURABLE: "that guard cuts power, and such a server is not cut",
            "factors.engine": "a study is of one such server",
            "workload.cache = cold": "it is not restarted",
        }.items()
    },
    ("--budget", "--blocks"): ExclusionReason("a budget says how many blocks there are"),
    ("--budget", "--until"): ExclusionReason("each of the two ends the run"),
    ("--against", "--budget"): ExclusionReason(
        "a gate has as many blocks as the run that it is held against"
    ),
    ("--against", "--until"): ExclusionReason("a gate has as many blocks as the run that it is held against"),
    **_each(
        "--resume",
        (
            *("--again", "--against", "--bad", "--budget", "--clients", "--duration", "--fleet", "--good"),
            *("--settings", "--smoke", "--until", "--versions", "--engines", "--statements"),
        ),
        "a run goes on as it began",
    ),
    **_each(
        "--resume",
        ("--blocks", "--seed"),
        "a run goes on with the blocks and the seed that it began with",
        "leave it out; --add-blocks adds some to a run",
    ),
    **_each(
        "--fleet",
        ("--against", "--budget", "--live", "--otlp", "--suggest", "--until"),
        "the hosts of a fleet take blocks as they come",
    ),
    ("--resume", "--own"): ExclusionReason("a run goes on as it began"),
    **_each(
        "--ask",
        ("--budget", "--own", "--resume"),
        "Dyno's own search is handed out, and somebody else measures",
        "leave it out",
    ),
    ("--on", "--budget"): ExclusionReason("the other study says how long each is measured"),
    **_each("--suggest", ("--budget", "--on"), "a suggestion measures nothing"),
    ("--engines", "--settings"): ExclusionReason("a line goes over one kind of changes"),
    ("--versions", "--settings"): ExclusionReason("a line goes over one kind of changes"),
    ("--url", "--from"): ExclusionReason("each of the two is a whole configuration"),
    **_each("--study", ("--machine", "--platform"), "the study says what it needs"),
    ("--key", "--unsigned"): ExclusionReason("a folder is signed or not"),
    ("--json", "--format"): ExclusionReason("each of the two is a format"),
    ("--dump", "--folder"): ExclusionReason("each of the two is all of the data"),
}
OF_STUDIES = tuple(pair for pair in EXCLUDES if not any(name.startswith(("--", "dyno ")) for name in pair))
"""The pairs of which a study can have both."""


@dataclass(frozen=True)
class Factors:
    """Factors whose layer and knob match. Without `fixed` they are those that vary."""

    layer: str
    knob: str = ".+"
    fixed: bool = True

    @property
    def name(self) -> str:
        return rf"{self.layer}\.{self.knob}" if self.knob else self.layer

    @property
    def tables(self) -> tuple[str, ...]:
        return ("factors", "settings") if self.fixed else ("factors",)


SECTIONS = frozenset({"data", "engine", "goal", "restarts", "workload"})
"""Tables whose keys are named with a dot before them. Other names with a dot are factors."""
GROUPS: Mapping[str, Factors] = {
    HOST_LEVELS: Factors(
        r"(?!(build|config|engine|machine|platform|schema|source|statement|workload)\b)[^.]+"
    ),
    BUILDS: Factors("(build|source)"),
}
VALUED = re.compile(r"(.+) (=|>) (.+)")
OF_URL = r"^[a-z]+://"


def shown(name: str) -> str:
    """A name as a message says it."""
    if name.startswith(("[", "--")) or name in ("counted work", RUNNING, *GROUPS):
        return name
    return f"`{name.removeprefix('factors.')}`"


def clash(first: str, second: str, place: Place = ()) -> UserError:
    """The mistake of whoever has both; of several factors, the one at `place`."""
    reason = EXCLUDES[first, second]
    named = f"`{'.'.join(_name_at(place))}`" if place and second in GROUPS else shown(second)
    return UserError(f"{named} and {shown(first)} exclude each other: {reason.why}", reason.remedy)


def _name_at(place: Place) -> list[str]:
    """The full name of the factor that stands at a place."""
    return [str(part) for part in place[3 if place[0] == "variants" else 1 :]]


def clashes(document: Mapping[str, Any]) -> Iterator[tuple[Place, UserError]]:
    """What a study's document has that does not go together, each with the place of the second one."""
    found: dict[str, Place | None] = {}
    for pair in OF_STUDIES:
        for name in pair:
            if name not in found:
                found[name] = place_of(document, name)
        place = found[pair[1]]
        if found[pair[0]] is not None and place is not None:
            yield place, clash(*pair, place)


def require(given: Mapping[str, object] | None = None, /, **options: object) -> None:
    """Raises UserError for the first two options that exclude each other. Those that were not given are None
    or False. `given` has names that Python keeps for itself, and others of the table, such as the verb or
    `design = search`."""
    named = {name for name, value in (given or {}).items() if value is not None and value is not False}
    named |= {
        f"--{name.replace('_', '-')}"
        for name, value in options.items()
        if value is not None and value is not False
    }
    for pair in EXCLUDES:
        if named.issuperset(pair):
            raise clash(*pair)


def place_of(document: Mapping[str, Any], name: str) -> Place | None:
    """Where a document has what a name of the table means; None where it has not."""
    name, relation, value = _parts(name)
    if name == RUNNING:
        return next(
            (
                place
                for place in (("engine",), ("engine", "name"))
                if re.match(OF_URL, str(_at(document, place)))
            ),
            None,
        )
    key = _key(name)
    if key and _holds(_at(document, key), relation, value):
        return key
    factors = _factors(name)
    return next(_where(document, factors, relation, value), None) if factors else None


def _parts(name: str) -> tuple[str, str, str]:
    found = VALUED.fullmatch(name)
    return (found[1], found[2], found[3]) if found else (name, "", "")


def _key(name: str) -> tuple[str, ...]:
    """The key that a name means; none for factors."""
    first, _, rest = name.strip("[]").partition(".")
    if name in GROUPS or (rest and first not in SECTIONS):
        return ()
    return (first, rest) if rest else (first,)


def _factors(name: str) -> Factors | None:
    """The factors that a name means; None for a key that cannot vary."""
    if name in GROUPS:
        return GROUPS[name]
    first, _, rest = name.partition(".")
    if not rest or first in SECTIONS - {"workload"}:
        return None
    if first != "factors":
        return Factors(first, rest)
    layer, _, knob = rest.partition(".")
    return Factors(layer, knob, fixed=False)


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document.get(part) if isinstance(document, dict) else None
    return document


def _holds(found: Any, relation: str, value: str) -> bool:
    """Whether a value is what a row means; without a relation, whether it asks for anything."""
    if relation == ">":
        return isinstance(found, int) and not isinstance(found, bool) and found > int(value)
    if relation == "=":
        return found == value or (isinstance(found, list) and value in found)
    return found is not None and found is not False and (isinstance(found, bool) or found != 0)


def _where(document: Mapping[str, Any], factors: Factors, relation: str, value: str) -> Iterator[Place]:
    """The places of the factors that match, however deep the dots of their names go."""
    wanted = re.compile(factors.name)
    tables: list[tuple[Place, Any]] = [((name,), document.get(name)) for name in factors.tables]
    listed = document.get("variants")
    for index, variant in enumerate(listed if isinstance(listed, list) else ()):
        tables.append((("variants", index, "levels"), _at(variant, ("levels",))))
    waiting = [("", *table) for table in reversed(tables)]
    while waiting:
        name, place, found = waiting.pop()
        if name and wanted.fullmatch(name) and (not relation or _holds(found, relation, value)):
            yield place
        elif isinstance(found, dict):
            inside = reversed(found.items())
            waiting += [(f"{name}.{key}" if name else key, (*place, key), inner) for key, inner in inside]


def rules() -> Schema:
    """What the JSON Schema of a study says of the table, at its root."""
    names = dict.fromkeys(name for pair in OF_STUDIES for name in pair)
    return {
        "$defs": {_defined(name): _present(name) for name in names},
        "allOf": [
            {
                "not": {"allOf": [{"$ref": f"#/$defs/{_defined(name)}"} for name in pair]},
                "description": clash(*pair).message,
            }
            for pair in OF_STUDIES
        ],
    }


def _defined(name: str) -> str:
    """A name as a part of an address."""
    return re.sub(r"\W+", "-", name).strip("-")


def _present(name: str) -> Schema:
    """That a document has what a name means."""
    name, relation, value = _parts(name)
    if name == RUNNING:
        url: Schema = {"type": "string", "pattern": OF_URL}
        return {"anyOf": [_inside(("engine",), url), _inside(("engine", "name"), url)]}
    same: Schema = {"anyOf": [{"const": value}, {"type": "array", "contains": {"const": value}}]}
    asked: Schema = {"not": {"enum": [False, 0]}}
    if relation == ">":
        asked = {"type": "integer", "exclusiveMinimum": int(value)}
    key, factors = _key(name), _factors(name)
    found = [_inside(key, same if relation == "=" else asked)] if key else []
    if factors:
        found += _varied(factors, same if relation else {})
    return found[0] if len(found) == 1 else {"anyOf": found}


def _inside(place: tuple[str, ...], value: Schema) -> Schema:
    """That an object has a value at a place."""
    for name in reversed(place):
        value = {"type": "object", "required": [name], "properties": {name: value}}
    return value


def _varied(factors: Factors, level: Schema) -> list[Schema]:
    """That factors which match stand in one of the tables that may hold them."""
    here = [_some(f"^{factors.name}$", level)]
    if factors.knob:
        here.append(_some(f"^{factors.layer}$", _some(f"^{factors.knob}$", level)))
    table: Schema = {"anyOf": here}
    variant = _inside(("levels",), table)
    return [
        *(_inside((name,), table) for name in factors.tables),
        _inside(("variants",), {"type": "array", "contains": variant}),
    ]


def _some(name: str, value: Schema) -> Schema:
    """That an object has a property of such a name with such a value."""
    return {"type": "object", "not": {"patternProperties": {name: {"not": value}}}}


def page(*, options: bool = False) -> list[str]:
    """The table of a study's reference, or that of options alone. Pairs that share one side and the reason
    are one row."""
    seconds: dict[tuple[str, str], list[str]] = {}
    for (first, second), reason in EXCLUDES.items():
        if first.startswith("--") is options:
            seconds.setdefault((first, reason.why), []).append(shown(second))
    rows: dict[tuple[str, str], list[str]] = {}
    for (first, why), others in seconds.items():
        this = "`engine = URL`" if first == RUNNING else shown(first)
        rows.setdefault((", ".join(others), why), []).append(this)
    told = (f"| {', '.join(these)} | {others} | {why} |" for (others, why), these in rows.items())
    return ["| this | does not go with | because |", "|---|---|---|", *told]
