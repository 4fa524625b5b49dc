"""A server that ran before the run which studies it: what it is, how its settings are moved, and what became
of them."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.frozen import Frozen, absent


class Means(StrEnum):
    """How far a change of a setting reaches: Dyno's own sessions, the server at once, or the server after a
    restart."""

    SESSION = "session"
    SERVER = "server"
    RESTART = "restart"


class SettingWay(Frozen):
    """How a setting is moved on a server that runs, with the least right that does it.

    `does` are the statements in words. `right` is what the account needs, empty where it needs none, and
    `grant` the statement that gives it, where that is known. `now` is the value in force.
    Where there is no way, `refused` says why and `remedy` what would open one."""

    name: str
    means: Means = Means.SERVER
    does: str = ""
    right: str = ""
    grant: str = ""
    now: str = ""
    refused: str = ""
    remedy: str = ""


class ServerId(Frozen):
    """Which server answers, by what it says of itself. `facts` stay for as long as it is that server, and
    `started` is its last start, of which a clock that is set changes nothing. `history` tells it from the
    server that it is a copy of, until it is promoted."""

    facts: dict[str, str]
    started: str = ""
    history: str = ""

    def is_same(self, other: ServerId) -> bool:
        """Whether that is this server. One that was promoted in the midst has another history, and has not
        started again."""
        if self.facts != other.facts:
            return False
        return self.history == other.history or (self.started == other.started != "")

    @property
    def words(self) -> str:
        """It in a line."""
        words = {**self.facts, "history": self.history, "started": self.started if self.history else ""}
        return ", ".join(f"{name} {value}" for name, value in words.items() if value)


class Identity(Frozen):
    """What a server says of itself. `digest` tells it from every other server and version. `replica` says of
    whom it is one; empty where it is none. `others` is how many sessions there are that are not Dyno's."""

    version: str
    digest: str
    account: str
    replica: str = ""
    others: int = 0


class Moved(Frozen):
    """A setting of the whole server that a run moves. `line` is what stood for it where the server keeps its
    settings, None where nothing did. `before` was in force, and `after` was read once it was put back; None
    while it was not. `left` says why it was left as it is."""

    name: str
    does: str
    line: str | None = None
    before: str = ""
    after: str | None = None
    left: str = absent("")


class GuardSeen(Frozen):
    """What a guard saw of the server's own load, in so many looks: the largest 99th percentile of the ages of
    its statements (s) and the most errors per second. `stopped` says what ended the run; empty where nothing
    did."""

    looks: int = 0
    p99_s: float = 0.0
    errors_per_s: float = 0.0
    stopped: str = ""


class InUse(Frozen):
    """A server that ran already. `here` says that its processes were found on the host of the load. `ledger`
    is where old values stand for another machine, or why they stand on this one alone. `guard` are the words
    of what was watched; empty where nothing was.
    `others_moved` says which settings others changed while the run went on."""

    url: str
    identity: Identity
    here: bool
    data: str
    ways: tuple[SettingWay, ...]
    moved: tuple[Moved, ...] = absent(())
    ledger: str = ""
    guard: str = ""
    seen: GuardSeen | None = absent(None)
    others_moved: tuple[str, ...] = absent(())
