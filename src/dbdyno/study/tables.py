"""The format of a study: the tables, every key in them, declared once; the keys at the top; and with them all
sections.

The reader, the JSON Schema, what Dyno writes itself and the tables of `docs/reference/study-format.md` follow
from these declarations. `excludes.py` says what does not go together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from dbdyno.driver.job import Arrivals, Isolation
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.study import excludes, grammars, pacing, values
from dbdyno.study.catalogue import Catalogue, WorkloadOffer
from dbdyno.study.front import FrontProgram, StopSignal
from dbdyno.study.grammars import (
    LEVEL,
    LEVELS,
    ONE_OR_MORE,
    Grammar,
    Schema,
    by_factor,
    by_name,
    duration,
    integer,
    list_of,
    one_of,
    or_list,
)
from dbdyno.study.keys import Key, StudySection
from dbdyno.study.nouns import (
    BASELINE,
    SLICE_S,
    Adjustment,
    Arrangement,
    Design,
    GivenData,
    Goal,
    Interval,
    Promise,
    RemoteDriver,
    Restarts,
    Search,
    ServerInUse,
    Study,
    Workload,
)
from dbdyno.study.phases import LoadPhase
from dbdyno.study.published import UNDATED, PublishedFigure
from dbdyno.study.ranges import Scale
from dbdyno.study.soak import OF_SOAKS, Act, Disturbance, Meanwhile, Soak

RESTARTS_MAX = 10_000
CLIENTS_MAX = 100_000
THREADS_MAX = 1_024
WORKERS_MAX = 1_024
RATES_LEAST, RATES_MOST = 4, 40
"""A search with fewer steps is a guess, and one with more learns nothing that blocks do not tell better."""
CUTS_OF_GUARD = 20
"""Power cuts of each variant where the guard `durable` alone asks for them."""
ENGINE_FORMS = 'write "mariadb@11.8", "mariadb:/usr/sbin/mariadbd" or "mariadb://USER@HOST/DATABASE"'
RANGE_FORMS = 'write { from = "64M", to = "8G", scale = "log" } or { levels = [BASELINE, OTHER] }'
CLIENTS = integer(1, CLIENTS_MAX)


UPGRADED = "upgraded"
"""What `data` is, where the workload makes rows in the baseline's engine, and the others take them over."""


def structured(schema: Any) -> Grammar[Any]:
    """What a rule of its own reads: a section, or a table with keys of the user's."""
    return Grammar(lambda value, _: value, schema)


def _name_one(names: grammars.Names) -> Callable[[Catalogue], str]:
    """The hint for a study that names none."""
    return lambda catalogue: f"name one: {', '.join(names(catalogue))}"


ENGINE = StudySection(
    "engine",
    (
        Key("name", grammars.reference(grammars.engines, "engine", ENGINE_FORMS, examples=True),
            "NAME, NAME@VERSION, NAME:/PATH/TO/SERVER or the URL of a server that runs already.",
            missing=_name_one(grammars.engines)),
        Key("configuration", grammars.ONE_TEXT,
            "The engine's own configuration file, from the study's folder: the base of every variant."),
    ),
    rules={"required": ["name"]},
)  # fmt: skip
FRONT = StudySection(
    "front",
    (
        Key("command", grammars.COMMAND, "The program with its arguments; no shell reads it.",
            field="command",
            missing=lambda _: 'write command = "/opt/odyssey/odyssey ${configuration}"'),
        Key("configuration", grammars.SEVERAL_TEXTS,
            "Its file, or several, from the study's folder, with `${...}` in them.", field="configuration"),
        Key("socket", grammars.ONE_TEXT, "Where it listens. Without it, on `${port}` of 127.0.0.1.",
            field="socket"),
        Key("setting", grammars.LINES, "How its file has a setting.", field="setting"),
        Key("show", grammars.ONE_TEXT, "What it is asked for the settings that it runs with.",
            "Its own levels need it, or `workers`.", "show"),
        Key("show_at", grammars.ONE_TEXT, "Where: a database of its own, or the path of a socket.",
            field="show_at"),
        Key("shares", grammars.TRUTH, "Whether clients share the server's sessions.",
            "All variants then send statements so that nothing stays behind.", "shares"),
        Key("stop", one_of(StopSignal), "The signal that asks it for a clean end.", field="stop"),
        Key("ready", grammars.REQUEST_LINE, "The request that it answers once it is up.",
            "With it, the load is requests, and not SQL.", "ready"),
        Key("prepare", list_of(grammars.COMMAND), "Commands that make its tables in an empty database.",
            field="prepare"),
        Key("packages", list_of(grammars.PACKAGE),
            "What a virtual environment of Python, `${environment}`, must hold.", field="packages"),
        Key("workers", integer(1, WORKERS_MAX),
            "Processes that serve requests. Each tells what it runs with.", field="workers"),
    ),
    'A program of your own in front of the server: `[front.NAME]`, and NAME is a level of `front.kind`.',
    FrontProgram,
    {"required": ["command"]},
)  # fmt: skip
SERVER = StudySection(
    "server",
    (
        Key("data", grammars.word_of(("own", "mine")),
            "A schema of Dyno's own, which is dropped, or the tables that are there, which are read.",
            "See [a server that runs](../guides/running-server.md).", "data"),
        Key("restart", grammars.ONE_TEXT, "The shell command that restarts the server.",
            "Without it, levels that the server reads at its start are blocked.", "restart"),
        Key("allow", list_of(one_of(Promise), unique=False, hint="write allow = [...]"),
            "What levels may give up for their speed. Without it, nothing.", field="allow"),
        Key("guard_p99", duration(0.001),
            "The run ends where statements of others pass this age in their 99th percentile.",
            "At two looks in a row, a second apart.", "guard_p99_s"),
        Key("guard_errors_per_s", grammars.RATE,
            "The run ends where the server counts more errors per second, at two looks in a row.",
            field="guard_errors_per_s"),
    ),
    "How a server that runs already is treated. For an engine that is a URL.",
    ServerInUse,
)  # fmt: skip
DRIVER = StudySection(
    "driver",
    (
        Key("host", grammars.HOSTS, "The host that the load comes from, as `ssh` knows it, or several that"
            " share it.", "See [Load from another host](../guides/another-host.md).", "hosts",
            missing=lambda _: 'write host = "load1", by which `ssh load1` reaches it'),
        Key("address", grammars.ADDRESS, "The address of this host at which the load reaches the server.",
            "The server listens there alone, and only during a trial.", "address",
            missing=lambda _: 'write address = "10.0.0.1": ip address shows those of this host'),
        Key("network", grammars.word_of(("private",)),
            "States that nobody else is on the network between the two.",
            "Give this or `tls`.", "network"),
        Key("tls", grammars.TRUTH, "Encrypts between load and server, with a certificate for each trial.",
            field="tls", default=False),
    ),
    "Where the load comes from. Without it, from this host.",
    RemoteDriver,
    {"required": ["host", "address"]},
)  # fmt: skip
DATA = StudySection(
    "data",
    (
        Key("dump", grammars.PATHS, "A dump as the engine's own tool writes it, or several in their order.",
            "The tools are `mariadb-dump`, `mysqldump`, `pg_dump`, `pg_dumpall` and `.dump` of `sqlite3`.",
            "dump"),
        Key("folder", grammars.ONE_TEXT,
            "The data folder of a server that was stopped cleanly; of an embedded engine, its file.",
            "The server was of this engine and version.", "folder"),
        Key("database", grammars.DATABASE, "The database that the load connects to.",
            otherwise="the only one of the data", field="database"),
        Key("setup", grammars.TRUTH,
            "Runs the setup, the tables and the finish of a script once the data are there.",
            "For the workload `script`: its `[setup]`, `[[tables]]` and `[finish]`.", "setup"),
        Key("upgraded", grammars.TRUTH,
            "The baseline's engine alone takes the data. Every other one takes over a copy of its.",
            "Needs engines as a factor. For rows that the workload makes, write `data = \"upgraded\"`.",
            default=False),
    ),
    "Data in the place of those that the workload makes. Paths count from the study's folder.",
    GivenData,
    {"oneOf": [{"required": ["dump"]}, {"required": ["folder"]}]},
)  # fmt: skip
WORKLOAD = StudySection(
    "workload",
    (
        Key("name", grammars.WORKLOAD_NAME, more="The [workload](workloads.md).",
            missing=_name_one(grammars.workloads)),
        Key("clients", CLIENTS, "Connections, each with one transaction at a time.", field="clients",
            varies=True, sweeps=True),
        Key("threads", integer(0, THREADS_MAX, f"At most {THREADS_MAX:,}"),
            "The driver's threads; 0: the driver chooses.", field="threads", varies=True),
        Key("rate_per_s", grammars.RATE, "Open loop: starts per second in all.",
            "Without it the loop is closed.", "rate_per_s", varies=True),
        Key("arrivals", grammars.word_of(get_args(Arrivals)), "Open loop: how starts are spread.",
            "Needs `rate_per_s`.", "arrivals", varies=True, tacit=True),
        Key("schedule", grammars.SCHEDULE,
            f"Open loop: the rate from the warm-up on: {pacing.SCHEDULE_FORMS}.",
            "Constant without it.", "schedule", varies=True),
        Key("think_time", grammars.THINK_TIME, f"Closed loop: {pacing.THINK_TIME_FORMS}.",
            'What a client waits between transactions: `"100ms"`, or `"exponential:100ms"` on average.',
            "think_time", varies=True),
        Key("ramp", duration(0.0), "Over how long connections are opened.", field="ramp_s"),
        Key("gather", grammars.word_of(("off", "on")),
            "Closed loop without pauses: the driver lets the server go first.",
            "See [the driver](../concepts/driver.md).", "gather"),
        Key("by_statement", grammars.TRUTH, "Times each kind of statement, for a table of the report.",
            "The same as [`--by-statement`](../guides/load.md#what-comes-out).", "by_statement"),
        Key("plans", grammars.TRUTH, "Asks after each load how the engine would execute its statements.",
            "See [plans](../guides/explaining/plans.md).", "plans"),
        Key("actual_rows", grammars.TRUTH, "Executes each read once more, so that its plan tells rows.",
            "After the first block's loads, on MariaDB and PostgreSQL, in a transaction that is rolled back."
            " No write is executed.", "actual_rows"),
        Key("isolation", grammars.word_of(get_args(Isolation)),
            "Of all transactions, on MariaDB, MySQL and PostgreSQL.", otherwise="the server's",
            field="isolation"),
        Key("storage_engine", grammars.WORD,
            "Of the tables that are made, on MariaDB, MySQL and PostgreSQL.",
            "A storage engine of MariaDB or MySQL, a table access method of PostgreSQL. Without it InnoDB, or"
            " the server's.", "storage_engine"),
        Key("connect_sql", grammars.SEVERAL_TEXTS,
            "What each connection begins with: a statement, or a list of them.",
            "So do those that make the data.", "sql"),
        Key("timeout", duration(0.001), "What a statement may take before the server ends it.",
            "On MariaDB, MySQL (reads), PostgreSQL and Firebird.", "timeout_s"),
        Key("warmup", duration(0.0), "Load before the measured part.", field="warmup_s"),
        Key("duration", duration(0.1), "The measured part of each trial.", field="duration_s"),
    ),
    "The load of every trial. A list makes a key a factor.",
    Workload,
)  # fmt: skip
KNOBS = {key.name: key for key in WORKLOAD.keys if key.varies}
"""The keys of [workload] that every workload has and that may be factors; its own options come on top."""
FIXED_KEYS = WORKLOAD.names - KNOBS.keys()
CHOSEN_KEYS = ("isolation", "storage_engine")
"""What each session has of its own, on engines that let it choose."""
RANGE = StudySection(
    "factors",
    (
        Key("from", grammars.ONE_LEVEL, 'The smallest level, in the unit that all have: 200, "64M".',
            'Also `0.5` or `"5min"`.', "low", missing=lambda _: RANGE_FORMS),
        Key("to", grammars.ONE_LEVEL, "The largest level.", 'Sizes may have two units: `"64M"` and `"8G"`.',
            "high", missing=lambda _: RANGE_FORMS),
        Key("scale", one_of(Scale),
            more='`"log"` has four steps to each doubling of a size, and ten to each power of ten of another'
            " number.", field="scale", default=Scale.LINEAR),
        Key("step", grammars.ONE_LEVEL, "The difference between two levels on the linear scale.",
            "Without it there are about 40 steps.", "step"),
        Key("baseline", grammars.ONE_LEVEL, "The baseline's level.", "It lies within the range.", "baseline",
            otherwise="`from`"),
        Key("levels", structured(lambda _: LEVELS),
            more="A list in the place of a range. Only `only_if` goes with it."),
        Key("only_if", structured(lambda catalogue: by_factor(ONE_OR_MORE, catalogue)),
            "Levels of earlier factors with which this one varies.",
            'For example `{ "config.log_bin" = "ON" }`. If another level is chosen, this factor keeps the'
            " baseline's."),
    ),
    rules={"anyOf": [{"required": ["from", "to"]}, {"required": ["levels"]}]},
)  # fmt: skip
"""A factor of a search that is written as a table. A table with one of these keys is a factor, no layer."""
VARIANT = StudySection(
    "variants",
    (
        Key("name", grammars.VARIANT_NAME),
        Key("levels", structured(lambda catalogue: by_factor(LEVEL, catalogue))),
    ),
    rules={"required": ["levels"]},
)  # fmt: skip
PHASE = StudySection(
    "phases",
    (
        Key("name", grammars.VARIANT_NAME, "What reports call it.", field="name",
            missing=lambda _: 'write name = "l.i0"'),
        Key("file", grammars.ONE_TEXT, "The script that is sent. Without it, the workload's.", field="file"),
        Key("duration", duration(0.1), "How long it lasts, at most with `operations`.", field="duration_s",
            otherwise="the workload's"),
        Key("clients", CLIENTS, "So many clients.", field="clients", otherwise="the workload's"),
        Key("rate_per_s", grammars.RATE, "Transactions per second in open loop.", field="rate_per_s"),
        Key("operations", integer(1, 10**9), "It ends after so many, or fails.", field="operations"),
        Key("beside", grammars.ONE_TEXT, "A script that as many more clients send.", field="beside"),
        Key("beside_rate_per_s", grammars.RATE, "Its transactions per second.", field="beside_rate_per_s"),
    ),
    "A load, which follows the one before it on the same server.",
    LoadPhase,
    {"required": ["name"]},
)  # fmt: skip
SEARCH = StudySection(
    "search",
    (
        Key("time", duration(60.0),
            "How long it takes, confirmation and elimination included; at least 60s.",
            "`dyno tune --budget` overrides it.", "time_s"),
        Key("allow", list_of(one_of(Promise), unique=False, hint="write allow = [...]"),
            "What levels may give up for their speed. Without it, nothing.", field="allow"),
        Key("constraints", list_of(grammars.CONSTRAINT, unique=False, hint="write constraints = [...]"),
            'Sums of levels that hold in every candidate: "config.A + 2 * config.B <= 6G".',
            "The baseline must meet them.", "constraints"),
        Key("bad_starts", grammars.percentage(1, 50),
            "The winner is started until less than this share of its starts can be bad.",
            "A bad one fails, or is no faster than the baseline. Needs time.", "bad_starts"),
    ),
    "For the design `search`.",
    Search,
)  # fmt: skip
ACTS = (
    Key("power_cuts", integer(0, RESTARTS_MAX, ""),
        "Power cuts of each variant, in the midst of a load, on volumes that Dyno makes.",
        f'With the guard `"durable"` and no `torn_pages`, {CUTS_OF_GUARD}. See'
        " [power cuts](../concepts/power-cuts.md).", "power_cuts"),
    Key("torn_pages", integer(0, RESTARTS_MAX, ""),
        "Power cuts after which half of each page that was on its way is on the device.", field="torn_pages"),
    Key("kills", integer(0, RESTARTS_MAX, ""), "Kills of the engine in the midst of a load.",
        "With `kill -9`.", "kills"),
    Key("stops", integer(0, RESTARTS_MAX, ""), "Clean stops, which are timed.", field="stops"),
    Key("flipped_bits", integer(0, RESTARTS_MAX, ""),
        "Clean stops after which one bit of a row is wrong: does the engine say so?", field="flipped_bits"),
    Key("nodes_killed", integer(0, RESTARTS_MAX, ""),
        "Kills of a node that the load does not go to, which is then started again.",
        "Like the next four it needs `cluster.nodes`: see [clusters](../guides/clusters.md).",
        "nodes_killed"),
    Key("nodes_paused", integer(0, RESTARTS_MAX, ""),
        "Such a node stands still for longer than the others wait for it.", field="nodes_paused"),
    Key("nodes_cut_off", integer(0, RESTARTS_MAX, ""),
        "Such a node is off the network for as long, which needs root.", field="nodes_cut_off"),
    Key("nodes_emptied", integer(0, RESTARTS_MAX, ""),
        "Such a node is stopped, and starts again without its data: it gets all of them from another node.",
        field="nodes_emptied"),
    Key("first_nodes_lost", integer(0, RESTARTS_MAX, ""),
        "Kills of the node that the load goes to. Another one takes its place, and the lost one rejoins.",
        field="first_nodes_lost"),
    Key("resets", integer(0, RESTARTS_MAX, ""), "Resets of an emulated machine.",
        "With `machine.reset`: see [resets](../guides/resets.md).", "resets"),
)  # fmt: skip
RESTARTS = StudySection(
    "restarts",
    (*ACTS, Key("load", duration(0.5), "How long the load goes on before each, on average.", field="load_s")),
    "How often each variant's engine is restarted beside the blocks, to see what "
    f"survives. With the guard `durable`, {CUTS_OF_GUARD} power cuts unless it says otherwise.",
    Restarts,
)  # fmt: skip
GOAL = StudySection(
    "goal",
    (
        Key("response", grammars.METRIC, more="The metric that is compared.", field="response"),
        Key("margin", grammars.percentage(0, 99), "Closer to the baseline than this counts as no effect.",
            field="margin"),
        Key("confidence", grammars.percentage(50, 99.99), "Of all intervals together.", field="confidence"),
        Key("interval", one_of(Interval, (Interval.STUDENT, Interval.SIGNED_RANK)),
            "How intervals are made: signed-rank is for hosts whose trials stall. Without it, what the host's"
            " calibration suggests, else student.", field="interval"),
        Key("adjust", one_of(Adjustment), "On a host that others use: other-cpu takes off each block what the"
            " CPU time of other processes explains, with the student interval. The report shows ratios with"
            " and without.", field="adjust"),
        Key("guards", grammars.GUARDS,
            'What a variant must keep to count: invariants, durable, "p99_ms <= 1.2x" ...', field="guards"),
        Key("promise", grammars.PROMISE,
            'What the response `capacity` is the highest rate for: "p99_ms <= 20, errors <= 0.1 %".',
            "Bounds on latencies (`mean_ms`, `p50_ms` to `p99_9_ms`, `max_ms`), and on `errors` and `retries`"
            " as shares.", "promise"),
        Key("rates", integer(RATES_LEAST, RATES_MOST),
            "How many rates each trial tries for it, each for `workload.duration`.", field="rates"),
        Key("counted", grammars.TRUTH,
            "Count each variant's instructions too: one more trial under Valgrind, after the timed blocks."
            " Without it builds are counted, where they can be, and nothing else.", field="counted"),
    ),
    noun=Goal,
)  # fmt: skip
BEFORE_ACT_LEAST_S = 5.0
"""Of fewer seconds nobody can say how they scatter."""
MEANWHILE = StudySection(
    "meanwhile",
    (
        Key("name", grammars.WORD, "What it is called. Levels of `meanwhile.NAME` take its text's place.",
            "An empty one does nothing.", "name", missing=lambda _: 'write name = "alter"'),
        Key("at", duration(BEFORE_ACT_LEAST_S), "When it begins, after the measured part of each load.",
            "The seconds before the first act are what the dip is held against.", "at_s",
            missing=lambda _: 'write at = "10s"'),
        Key("sql", grammars.ONE_TEXT, "Statements, with `;` between them, in a session of their own.",
            field="sql"),
        Key("command", grammars.ONE_TEXT, "Or a command; no shell reads it.",
            "See [meanwhile](../guides/meanwhile.md).", "command"),
    ),
    "What is done beside the load of each trial: a schema change, a backup.",
    Meanwhile,
    {"required": ["name", "at"]},
)  # fmt: skip
SOAK = StudySection(
    "soak",
    (
        Key("clients", grammars.ladder(CLIENTS), "The ladder: so many clients on each rung, a trial each.",
            field="clients"),
        Key("duration", duration(1.0), "The sustained load of each rung, which is judged for drift.",
            field="duration_s"),
        Key("opening", duration(1.0), "Over how long connections are opened gradually.", field="opening_s"),
        Key("disturb", list_of(one_of(Disturbance)), "Clients beside the load, one after the other.",
            "These clients misbehave, each kind in its own way.", "disturb", tacit=True),
        Key("beside", list_of(grammars.name_of(grammars.workloads)),
            "Other workloads at once, with tables of their own.",
            "They run one after the other, with their default options.", "beside"),
        Key("disturbed", duration(1.0), "How long each disturbance and each workload beside the load lasts.",
            field="disturbed_s"),
        Key("control", duration(0.0), "How long the server rests, as a control; 0s: not at all.",
            field="control_s"),
        Key("ends", list_of(one_of(Act, OF_SOAKS)), "What is done to the server at the end of each rung.",
            "In this order. The kill and both power cuts come under load, and the last one leaves halves of"
            " pages. The last two need `tpcb` or `tpcc`.", "ends", tacit=True),
        Key("horizon", duration(1.0), "For so long it must stand: growth is carried on as far as that.",
            field="horizon_s"),
        Key("rise", grammars.percentage(0.1, 100.0),
            "By how much of its level what is watched may grow within the horizon.", field="rise"),
    ),
    "How `dyno soak` carries the study out.",
    Soak,
)  # fmt: skip


HOST = StudySection(
    "host",
    (
        Key("price_per_hour", grammars.RATE, "What an hour of the host costs, in any money.",
            "The report tells transactions per unit of it.",
            "price_per_hour"),
    ),
    "What the host costs.",
)  # fmt: skip


PUBLISHED = StudySection(
    "published",
    (
        Key("variant", grammars.ONE_TEXT, "A variant, as `dyno plan` names it.", field="variant",
            missing=lambda _: "name a variant of the study, as `dyno plan` shows it"),
        Key("against", grammars.ONE_TEXT, "The variant that it is held against.", field="against"),
        Key("metric", grammars.METRIC, "What was measured.", field="metric", otherwise="the goal's response"),
        Key("ratio", grammars.RATIO, "The published ratio of the two.", field="ratio",
            missing=lambda _: "write the published figure of `variant` over that of `against`"),
        Key("low", grammars.RATIO, "The lower end of its interval, where the source has one.", field="low"),
        Key("high", grammars.RATIO, "The upper end.", field="high"),
        Key("source", grammars.ONE_TEXT, "Who published it, and where.", field="source",
            missing=lambda _: "say who published it, and where"),
        Key("year", integer(1970, 2999, ""), "When.", field="year", otherwise=UNDATED),
        Key("hardware", grammars.ONE_TEXT, "What it was measured on.", field="hardware",
            missing=lambda _: "say on what it was measured, or that the source does not"),
        Key("differs", grammars.ONE_TEXT, "What else differs from this study.", field="differs"),
    ),
    "A figure that others published of two variants of this study.",
    PublishedFigure,
    {"required": ["variant", "ratio", "source", "hardware"],
     "dependentRequired": {"low": ["high"], "high": ["low"]}},
)  # fmt: skip


BLOCKS_MAX = 10_000
IMAGES_MAX = 10
BASELINES_MAX = 100


def _engine(catalogue: Catalogue) -> Schema:
    return {"anyOf": [ENGINE.properties(catalogue)["name"], ENGINE.schema(catalogue)]}


def _data(catalogue: Catalogue) -> Schema:
    return {"anyOf": [{"const": UPGRADED}, DATA.schema(catalogue)]}


def _of_fronts(catalogue: Catalogue) -> Schema:
    return {"type": "object", "additionalProperties": FRONT.schema(catalogue)}


def _meanwhile(catalogue: Catalogue) -> Schema:
    return {"type": "array", "items": MEANWHILE.schema(catalogue)}


def _workload(catalogue: Catalogue) -> Schema:
    shared = {name: words for name, words in WORKLOAD.properties(catalogue).items() if name != "name"}
    offers = {offer.name: (offer.description, _options(offer, catalogue)) for offer in catalogue.workloads}
    return {**by_name(offers, shared), "description": WORKLOAD.about}


def _options(offer: WorkloadOffer, catalogue: Catalogue) -> Schema:
    """The keys that [workload] has for one workload alone."""
    return {
        option.name: {
            **or_list(grammars.of_option(option).schema(catalogue)),
            "description": option.help,
            **({} if option.default is None else {"default": option.default}),
        }
        for option in offer.options
    }


def _settings(catalogue: Catalogue) -> Schema:
    return {**by_factor(LEVEL, catalogue), "description": "Levels that hold for every variant."}


def _factors(catalogue: Catalogue) -> Schema:
    words = "What is varied: layer.knob = [BASELINE, OTHER, ...], or a range."
    return {**by_factor({"anyOf": [LEVELS, RANGE.schema(catalogue)]}, catalogue), "description": words}


def _variants(catalogue: Catalogue) -> Schema:
    return {
        "type": "array",
        "description": f"For the design `list`: two or more, of which the first is named `{BASELINE}`, or "
        "not at all. For a search: what its best candidates are held against.",
        "items": VARIANT.schema(catalogue),
    }


def _several(section: StudySection, catalogue: Catalogue) -> Schema:
    return {"type": "array", "description": section.about, "items": section.schema(catalogue)}


STUDY = StudySection(
    "",
    (
        Key("engine", structured(_engine), more="Which server, as a text or a table: see below. Where engines"
            " are a factor, the baseline's, which may be left out.",
            missing=ENGINE.key("name").missing),
        Key("title", grammars.ONE_TEXT, "The question in one line.", otherwise="the file's name",
            field="title"),
        Key("design", one_of(Design), "Which combinations of levels are compared.", "See below.", "design"),
        Key("blocks", integer(1, BLOCKS_MAX), "How often every variant is measured: the unit of inference.",
            field="blocks"),
        Key("seed", integer(0, values.INT_MAX, "0 to 2^63 - 1"), "Draws the order of the trials.",
            otherwise="each run draws a seed", field="seed"),
        Key("aa", grammars.TRUTH, "Measure the baseline twice: the two must not be called different.",
            "The report says how often they were.", "aa"),
        Key("baselines", integer(1, BASELINES_MAX),
            "How often each block measures the baseline; variants are compared with the mean.",
            'More than one excludes `interval = "signed-rank"`.', "baselines",
            otherwise="one; with `--budget` what narrows intervals most, about the root of the number of "
            "candidates"),
        Key("arrangement", one_of(Arrangement),
            "Whether all servers of a block run at once and the load goes round them in slices, "
            "or each trial runs by itself.", "See [slices](../concepts/verdicts.md#slices).", "arrangement",
            otherwise="side by side where that can be"),
        Key("slice", duration(0.1),
            "About how long a slice is measured. Without it, as long as the host's calibration "
            f"found best, else {SLICE_S:g}s, and longer where the first warm-ups show that a client would "
            "end fewer than two transactions in one.",
            "Every variant has an even number of them in each block.",
            "slice_s"),
        Key("images", integer(1, IMAGES_MAX),
            "How many images of the pristine data pairs of blocks take in turn.",
            "Making the further ones costs little where they take at most 5 % of the time that the run's "
            "loads take, and all images 8 GiB.",
            "images", otherwise="six where that costs little beside the run, else two, else one"),
        Key("server", structured(SERVER.schema)),
        Key("front", structured(_of_fronts)),
        Key("driver", structured(DRIVER.schema)),
        Key("data", structured(_data)),
        Key("workload", structured(_workload)),
        Key("phases", structured(lambda catalogue: _several(PHASE, catalogue))),
        Key("settings", structured(_settings)),
        Key("factors", structured(_factors)),
        Key("variants", structured(_variants)),
        Key("search", structured(SEARCH.schema)),
        Key("restarts", structured(RESTARTS.schema)),
        Key("meanwhile", structured(_meanwhile)),
        Key("goal", structured(GOAL.schema)),
        Key("soak", structured(SOAK.schema)),
        Key("host", structured(HOST.schema)),
        Key("published", structured(lambda catalogue: _several(PUBLISHED, catalogue))),
    ),
    noun=Study,
    rules={
        "required": ["workload"],
        # Where engines are a factor, the first level is the study's.
        "anyOf": [
            {"required": ["engine"]},
            {"required": ["factors"], "properties": {"factors": {"required": [ENGINE_FACTOR]}}},
            {"required": ["variants"]},
        ],
        **excludes.rules(),
    },
)  # fmt: skip
HOMES = (STUDY, WORKLOAD, DATA, GOAL, SEARCH)
"""Sections whose keys are often written elsewhere by mistake."""


def study_schema(catalogue: Catalogue) -> Schema:
    """The schema (draft 2020-12) of a study that may use the names of `catalogue`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study for Dyno",
        **STUDY.schema(catalogue),
    }
