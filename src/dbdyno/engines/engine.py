"""What the rest of Dyno needs of an engine, by customer: obtaining, life, settings, counters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbdyno.driver.passwords import Ask as Ask
from dbdyno.engines.values import as_text, quantity, same_value
from dbdyno.records.record import Loss

if TYPE_CHECKING:
    from dbdyno.engines.cluster import Cluster
    from dbdyno.engines.facts import (
        ComparedBy,
        ConfigurationLine,
        GuestProgram,
        Production,
        ReadPlan,
        RowWords,
        SettingNeed,
        Shell,
    )
    from dbdyno.engines.runtime import Runtime
    from dbdyno.engines.server import Network
    from dbdyno.errors import DynoError
    from dbdyno.frozen import Level
    from dbdyno.host.cache import Tell
    from dbdyno.host.launch import Launch
    from dbdyno.obtain.cross import Platforms
    from dbdyno.obtain.installation import Installation, Offer
    from dbdyno.records.record import Reading
    from dbdyno.study.document import Value
    from dbdyno.study.nouns import Promise, Reference
    from dbdyno.user_data.dump import Dump


class Server(Protocol):
    """A running system under test."""

    @property
    def url(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The server's processes as they are now, parents first; empty for an embedded engine."""
        ...

    @property
    def ready_s(self) -> float:
        """Seconds from the start of the process until it answered."""
        ...

    @property
    def driver_environment(self) -> Mapping[str, str]:
        """What the load process must have in its environment; an embedded engine lives in that process."""
        ...

    @property
    def driver_folders(self) -> tuple[Path, ...]:
        """Where an embedded engine writes in the load process; none for a server of its own."""
        ...

    def alive(self) -> bool: ...

    def log(self) -> str:
        """The server's own log since its start, at most the last 64 KiB."""
        ...

    def log_problems(self) -> list[str]:
        """Lines of the log that make a trial doubtful: errors, corruption, crashes, refused settings."""
        ...

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops cleanly; raises ServerFailed when it had to be killed. Calling it twice is harmless."""
        ...

    def kill(self) -> None: ...


@contextmanager
def ending(server: Server, stop_s: float | None) -> Iterator[None]:
    """Stops a server within so many seconds once what is done with it is over. Kills it where that failed,
    and where no seconds are given."""
    try:
        yield
        if stop_s is None:
            server.kill()
        else:
            server.stop(stop_s)
    except BaseException:
        server.kill()
        raise


class Obtaining(Protocol):
    """Where an engine comes from. `dyno engines` and the start of a run ask."""

    def locate(self, reference: Reference) -> Installation:
        """Finds the installation that is named. Raises EngineMissing with the command that obtains it."""
        ...

    def offers(self) -> list[Offer]:
        """What of this engine is here, and what can be had, without asking the network."""
        ...

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """Obtains the engine. Raises UserError when this engine or version cannot be fetched."""
        ...


class Life(Protocol):
    """From nothing to a running server. The stage that prepares a trial asks."""

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        """Makes an empty data directory at `data`, which does not exist yet."""
        ...

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> Server:
        """Starts the server on `data` and waits until it answers. `runtime`, a short path, holds socket and
        log.

        Raises ServerFailed with the end of the log when it does not come up.
        """
        ...


@dataclass(frozen=True)
class HugePageSettings:
    """What puts an engine's cache on explicit huge pages: its own settings, and how many bytes of pages.

    `cache_bytes` of them are the cache itself, without what the engine adds.
    """

    settings: Mapping[str, Level]
    size_bytes: int
    cache_bytes: int


@dataclass(frozen=True)
class Refused:
    """A level that an engine does not take as it is: what it does instead, and what it takes."""

    reason: str
    takes: str = ""


def not_taken(content: Callable[[Mapping[str, Level]], bool], settings: Mapping[str, Level]) -> list[str]:
    """Which settings an engine does not take, where `content` says whether it takes some together. Those that
    depend on each other are judged together: a collation is one of its character set."""
    if content(settings):
        return []
    taken: dict[str, Level] = {}
    left = list(settings)
    alone = [name for name in left if content({name: settings[name]})]
    for name in (*alone, *left):
        if name not in taken and content({**taken, name: settings[name]}):
            taken[name] = settings[name]
    return [name for name in left if name not in taken]


@dataclass(frozen=True)
class Proposal:
    """A factor that a first study may begin with: its levels, the baseline's first, and what they trade."""

    name: str
    levels: tuple[Level, ...]
    why: str


@dataclass(frozen=True)
class Searchable:
    """A setting that a search may vary: what of it is searched, as a study reads it, and what it trades. The
    baseline is the server's default."""

    name: str
    space: Value
    why: str


@dataclass(frozen=True)
class Where:
    """Another setting's levels that a risk needs. Where nothing sets it, it has the level `unset`."""

    setting: str
    levels: tuple[Level, ...]
    unset: Level

    def holds(self, settings: Mapping[str, Level]) -> bool:
        return _is_one(settings.get(self.setting, self.unset), self.levels)


@dataclass(frozen=True)
class Risk:
    """What a setting gives up at some of its levels, and what a power cut may then take along.

    The levels that `keeps` names give nothing up, and no list with a member of `members`. Where `loses` is
    given, its levels alone give something up, and lists that hold one of them. With `up_to` the level is a
    number (bytes, ms, or as it stands): from 1 to `up_to` it gives nothing up, above it the more, and the
    most below 1, which is no limit. `worse` are levels that give up more than the others that do. `where`
    says which level of another setting it takes.
    """

    promise: Promise
    keeps: tuple[Level, ...] = ()
    loss: Loss = Loss.NOTHING
    loses: tuple[Level, ...] = ()
    worse: tuple[Level, ...] = ()
    members: tuple[str, ...] = ()
    up_to: float | None = None
    where: Where | None = None

    def gives_up(self, level: Level, beside: Mapping[str, Level] | None = None) -> Promise | None:
        """What a level gives up beside the other settings; wherever they stand, where they are not known."""
        if beside is not None and self.where is not None and not self.where.holds(beside):
            return None
        return self.promise if self.degree(level) else None

    def degree(self, level: Level) -> float:
        """How much a level gives up, beside other levels of the same setting; 0 where it keeps all."""
        if self.loses:
            return float(_is_one(level, self.loses) or _has_one(level, self.loses))
        if _is_one(level, self.keeps) or _has_one(level, self.members):
            return 0.0
        if self.up_to is None:
            return 2.0 if _is_one(level, self.worse) else 1.0
        amount = quantity(as_text(level))
        if amount is None or amount[0] < 1:
            return math.inf
        return amount[0] if amount[0] > self.up_to else 0.0


def _is_one(level: Level, levels: tuple[Level, ...]) -> bool:
    return any(same_value(level, as_text(one)) for one in levels)


def _has_one(level: Level, members: tuple[Level, ...]) -> bool:
    held = {one.strip().lower() for one in as_text(level).split(",")}
    return bool(held & {as_text(member).lower() for member in members})


def risked(risks: Mapping[str, Risk], settings: Mapping[str, Level]) -> Loss:
    """What a power cut takes along at most where each setting is judged beside the others. One that is not
    given has its default, which keeps all."""
    return Loss.gravest(
        risk.loss
        for name, risk in risks.items()
        if name in settings and risk.gives_up(settings[name], settings)
    )


class Settings(Protocol):
    """What can be set, and what is set. The config and memory layers ask, and the making of pristine data."""

    CREATION: frozenset[str]
    """Settings fixed when the data are made (page size): each combination needs pristine data of its own."""
    LOADING: Mapping[str, Level]
    """How the server runs while pristine data are made: with room and in haste. Nothing of it stays in
    them.
    """
    LOGGED: Mapping[str, Level]
    """How the server writes each statement of a client, with its rows, to its own log, or to a file of the
    data folder that is called `statements.log`; empty where it cannot."""
    DURABLE: Mapping[str, tuple[Level, ...]]
    """The levels of settings with which a commit outlives the server's sudden end. The first is taken where a
    study has another."""
    RISKS: Mapping[str, Risk]
    """Settings of which some levels give up durability, integrity or security. `permits` goes by them."""
    LOSING: Mapping[str, Level]
    """Settings under which a power cut must take commits along: who finds none lost has cut no power."""
    NEEDS: Sequence[SettingNeed]
    """Which settings cannot matter without another one."""
    CONFINED: Mapping[str, tuple[str, ...]]
    """Settings that run programs or open files of the host without naming a path, with the only levels that
    do not."""

    def proposals(self, memory_bytes: int) -> tuple[Proposal, ...]:
        """Factors that a first study may begin with where so much memory is available. Those with a level
        that gives something up come last."""
        ...

    def searchable(self, memory_bytes: int) -> tuple[Searchable, ...]:
        """What a search may vary where so much memory is available, without a level that gives anything
        up."""
        ...

    def names(self, installation: Installation) -> frozenset[str]:
        """The names of every setting that this installation knows, as a study writes them after `config.`."""
        ...

    def configured(self, text: str, installation: Installation | None) -> list[ConfigurationLine]:
        """The lines of the engine's own configuration file that say something, by the names that an
        installation knows; None where there is none to ask. Raises NoConfiguration for a text that the
        server would refuse as a whole.
        """
        ...

    def refused(self, installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
        """Those of the settings, known by name, whose levels this installation does not take beside the
        others. No server starts, and nothing is written.
        """
        ...

    def read(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        """What the live server says of each setting, in a study's units. Unknown names are left out."""
        ...

    def same(self, name: str, requested: Level, effective: str) -> bool:
        """Whether a value read back means what was requested (`1G` and 1073741824, `ON` and true)."""
        ...

    def permits(self, settings: Mapping[str, Level]) -> Loss:
        """What a power cut takes along at most, by the engine's own word. A setting that is not given has its
        default."""
        ...

    def page_bytes(self, settings: Mapping[str, Level]) -> int:
        """The pages in which the engine writes its data."""
        ...

    def memory_bytes(self, settings: Mapping[str, Level]) -> int:
        """About how much memory a server takes with these settings: its cache, and a base for the rest."""
        ...

    def huge_pages(self, settings: Mapping[str, Level], page_bytes: int) -> HugePageSettings | None:
        """How to put the cache that `settings` ask for on such pages; None when the engine cannot."""
        ...


Asked = Callable[[str, str], list[list[str | float | None]]]
"""The rows that a statement has at a URL."""


class Taking(Protocol):
    """Data that a user brings: how the engine knows them, and how it takes them. All raise UserError for data
    that it cannot take."""

    def writes(self, dump: Dump) -> bool:
        """Whether a tool of this engine wrote the dump."""
        ...

    def require_dump(self, installation: Installation, dump: Dump) -> None:
        """What loads the dump is here."""
        ...

    def require_folder(self, version: str, source: Path) -> None:
        """The folder is one of this engine, of the version's format, and was stopped cleanly, as far as it
        says so itself. Without a version its format is not looked at."""
        ...

    def load(
        self, installation: Installation, server: Server, data: Path, dump: Dump, database: str, tell: Tell
    ) -> list[str]:
        """Loads a dump into a server that runs on `data`: into `database`, where the dump names none. What
        was done beyond its statements, in sentences."""
        ...

    def bring_in(self, installation: Installation, source: Path, data: Path) -> None:
        """Makes `data` a data directory with a copy of the folder, under a configuration of Dyno's."""
        ...

    def adopt(self, installation: Installation, data: Path) -> AbstractContextManager[Mapping[str, Level]]:
        """Gives Dyno's account access to data that came with accounts of their own. The settings are those
        that the first start has, within."""
        ...

    def require_recovered(self, log: str) -> None:
        """The log of the first start tells of no recovery from a crash."""
        ...

    def databases(self, url: str, asked: Asked) -> list[str]:
        """The databases with tables, sorted; one empty name for an engine whose URL names the file."""
        ...

    def settle(self, url: str, asked: Asked) -> list[str]:
        """Has data that were just brought in ready for a load. What was done, in sentences."""
        ...


class Upgrading(Protocol):
    """How a version takes over data that an older version of the engine made, as its own documentation says
    it is done."""

    def series(self, version: str) -> tuple[int, ...]:
        """What of a version names the format of its data. A version takes over data of its own series, and of
        those before it."""
        ...

    def lacking(self, old: Installation, new: Installation) -> DynoError | None:
        """Why data cannot be taken over with what is here; None where they can. No server starts."""
        ...

    def take_over(
        self, old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
    ) -> str:
        """Makes of a data directory of `old`, whose server was stopped cleanly, one of `new`, which is
        stopped cleanly as well. `runtime` is a short path, and `creation` are the settings fixed when the
        data were made. Returns what was done, in words. Raises ServerFailed where a server or a tool of the
        engine fails."""
        ...


class Counters(Protocol):
    """What the engine counts by itself. The observer and the proof of a knob's use ask."""

    CACHE_MISSES: str
    """The counter that tells what the caches of an index of vectors miss; empty where none does."""

    def status(self, ask: Ask) -> dict[str, float]:
        """The engine's own counters, by the engine's own names."""
        ...

    def held(self, ask: Ask) -> dict[str, float]:
        """What the engine says that it holds, by the names of `records/metrics.py`; without those that it
        does not tell."""
        ...

    def sampled(self, ask: Ask) -> dict[str, float]:
        """Those counters of `status` that `view` tells of, cheaply enough for each second of a load."""
        ...

    def waits(self, ask: Ask) -> dict[str, float]:
        """How many sessions that are not idle are at what now, the one that asks left out, by the engine's
        own names; empty where it does not say."""
        ...

    def view(self, gained: Mapping[str, float]) -> dict[str, float]:
        """What the engine itself says of where time went: of the counters' gains those that tell, by a title
        with its unit.
        """
        ...

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        """What the counters show of a setting's use during the load; None when no counter tells."""
        ...

    def unmoved(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
        """That no counter of a setting moved during the load, so that its level could not matter; empty where
        one moved, or where they do not see all of its use.
        """
        ...


@dataclass(frozen=True)
class UnderValgrind:
    """What counting an engine's instructions must know of it.

    `settings` are those without which the engine does not run under Valgrind. `owns` says, of a function's
    source file and object file, whether the function is the engine's: it is asked of embedded engines alone.
    """

    settings: Mapping[str, Level] = field(default_factory=dict)
    owns: Callable[[str, str], bool] = lambda _file, _object: True


@dataclass(frozen=True)
class VectorWords:
    """An engine's SQL for vectors. `value` makes one of a list of numbers `{text}`. `euclidean` and `cosine`
    are distances of `{one}` and `{other}`. `table` are the statements that make a table `{table}`, with the
    columns `id` and `v` for vectors of `{dimensions}`, and an index of the Euclidean distance."""

    value: str
    euclidean: str
    cosine: str
    table: tuple[str, ...]


@dataclass(frozen=True)
class IndexWords:
    """How an engine is asked for indexes: `found` counts those of the name `{name}`, and `size` gives the
    bytes of the database; empty where none are told."""

    found: str
    size: str = ""


@dataclass(frozen=True)
class LockViews:
    """How an engine with sessions is asked who waits for whom. `own` gives the number of a session, which a
    session that is told `end` with that `{session}` ends. `blocked` has a row for each session that waits
    and each that it waits for: number and statement of the one, number and statement of the other, the
    lock, and whether the other is `inferred` (1) or told. `{acts}` are the numbers of sessions that act."""

    own: str
    end: str
    blocked: str


@dataclass(frozen=True)
class StatementMeter:
    """How an engine is asked what one statement reads and spills. `counters` gives names and numbers of a
    session, right before and after it. A statement behind `explain` is executed, and says it itself. `read`
    gives the lines of what was gained, or of that answer, each by a title with its unit."""

    read: Callable[[Sequence[Sequence[str | float | None]]], Mapping[str, float]]
    counters: str = ""
    explain: str = ""


@dataclass(frozen=True)
class Engine:
    """One engine: its names, and its four parts. Each part is a module of the engine's folder, or stands in
    one, and holds no state.

    `embedded` engines run inside the load process and have no process of their own. `raw_file` is the one
    file of the data directory that may be a block device instead; empty when none may. `recipe` is the file
    that says how the engine is built from its source. `dual` is the table that a SELECT of constants must
    name, where it must name one, and `double` the type of double precision as a CAST names it.
    From the version `compensates_from` on its sums of doubles keep what rounding cuts off. One that
    `holds_infinity` gives it for what is too large, and others an error.
    `sessions_choose` says that each session can have its own isolation level and storage engine.
    `plans` reads the plan that the driver has asked for; without it no plan is asked for.
    Without `vectors` no build's index of vectors is asked, and without a `production` no recipe can be
    written for it. `taking` takes the data that a study brings; without it none can be brought. By `compared`
    it is held against another version of itself, or another engine. By `upgrading` a version takes over the
    data of an older one; without it none does. By `network` another host reaches its server; without it none
    does. By `runtime` a server that runs already is studied. By `clusters` several servers are one, by
    their kind, the first where a study names none; without them an engine has one node. By `platforms` it is
    had for other architectures, and `machine_sql` is answered with the machine that the server was built for.
    An embedded one is asked there by its `shell`. In an emulated machine it is asked as its `guest` says. A
    session that is told `statement_timeout`, with the time as `{s}` or `{ms}`, has longer ones ended; empty
    where none has. By `indexes` it is asked for those that a variant has, and by `meter` what a statement
    reads. By `rows` it is asked how many changed, how long they are, and what they take up. By `locks` it is
    asked who waits for whom; one that lives in the load process has none.
    """

    name: str
    title: str
    embedded: bool
    obtaining: Obtaining
    life: Life
    settings: Settings
    counters: Counters
    taking: Taking | None = None
    raw_file: str = ""
    recipe: Path | None = None
    dual: str = ""
    double: str = "DOUBLE PRECISION"
    compensates_from: tuple[int, ...] | None = None
    holds_infinity: bool = False
    vectors: VectorWords | None = None
    sessions_choose: bool = True
    under_valgrind: UnderValgrind = UnderValgrind()
    plans: ReadPlan | None = None
    production: Production | None = None
    compared: ComparedBy | None = None
    upgrading: Upgrading | None = None
    network: Network | None = None
    runtime: Runtime | None = None
    platforms: Platforms | None = None
    machine_sql: str = ""
    shell: Shell | None = None
    guest: GuestProgram | None = None
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    statement_timeout: str = ""
    meter: StatementMeter | None = None
    indexes: IndexWords | None = None
    rows: RowWords | None = None
    locks: LockViews | None = None

    def compensates(self, version: str) -> bool:
        """Whether sums of doubles keep what rounding cuts off, in a version of the engine."""
        if self.compensates_from is None:
            return False
        return tuple(map(int, re.findall(r"\d+", version))) >= self.compensates_from
