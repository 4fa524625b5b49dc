"""A guard stops a run where the server's own load passes a bound, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from dbdyno.engines.postgresql import running
from dbdyno.engines.runtime import LoadOfOthers
from dbdyno.study.nouns import ServerInUse
from dbdyno.trial.running.switch import SettingsSwitch, SwitchGuard, words_of


class Watched:
    """A server whose own load is these looks, one after the other."""

    def __init__(self, looks: Sequence[LoadOfOthers]) -> None:
        left = list(looks)
        self.runtime: Any = SimpleNamespace(of_others=lambda _: left.pop(0))
        self.ask, self.ledger, self.stopped = None, None, ""

    def stop(self, why: str) -> None:
        self.stopped = why


def after(server: ServerInUse, *looks: LoadOfOthers) -> tuple[SwitchGuard, Watched]:
    watched = Watched(looks)
    guard = SwitchGuard(cast(SettingsSwitch, watched), server, "run")
    for _ in looks:
        guard.look()
    return guard, watched


QUICK, SLOW = LoadOfOthers((0.001,), 0.0), LoadOfOthers((0.001, 3.0), 0.0)
BOUND = ServerInUse(guard_p99_s=0.5)


def test_two_looks_in_a_row_over_the_bound_stop_a_run() -> None:
    guard, watched = after(BOUND, QUICK, SLOW)
    assert (watched.stopped, guard.seen.p99_s) == ("", 3.0)
    guard, watched = after(BOUND, QUICK, SLOW, SLOW)
    assert "reached an age of 3.000 s, and 0.5 s are allowed" in watched.stopped
    assert guard.seen.stopped in watched.stopped


def test_an_idle_server_and_a_quick_one_stop_nothing() -> None:
    for look in (LoadOfOthers((), 0.0), QUICK):
        assert after(BOUND, *[look] * 20)[1].stopped == ""


def test_one_slow_statement_of_hundreds_is_within_the_percentile() -> None:
    many = LoadOfOthers((0.001,) * 200, 0.0)
    with_one = LoadOfOthers((*(0.001,) * 200, 3.0), 0.0)
    assert after(BOUND, many, with_one, with_one, with_one)[1].stopped == ""


def test_errors_are_counted_by_what_is_gained() -> None:
    server = ServerInUse(guard_errors_per_s=1.0)
    assert after(server, *[LoadOfOthers((), 1e6)] * 5)[1].stopped == ""
    rising = [LoadOfOthers((), 1e6 * look) for look in range(4)]
    assert "errors per second, and 1 are allowed" in after(server, *rising)[1].stopped


def test_what_is_watched_is_said_with_where_it_is_read() -> None:
    told = words_of(ServerInUse(guard_p99_s=0.5, guard_errors_per_s=2.0), running)
    assert "at most 0.5 s (pg_stat_activity" in told
    assert "at most 2 errors per second (pg_stat_database" in told
    assert words_of(ServerInUse(), running) == ""
