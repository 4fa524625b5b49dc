"""What is done beside a load, on real servers: statements, commands, what fails, what is not done in time."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from dbdyno.engines import registry
from dbdyno.errors import Blocked, EngineMissing, UserError
from dbdyno.frozen import Level
from dbdyno.host.journal import open_journal
from dbdyno.records.record import Outcome, Record
from dbdyno.run import run_trial
from dbdyno.study import Factor
from dbdyno.study.nouns import Reference
from dbdyno.study.soak import Meanwhile
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.acts import meanwhile
from dbdyno.trial.acts.meanwhile import ActsBeside, place_of_server, shortened, statements_of
from tests.needs import needs_pgbouncer, skipping_blocked
from tests.trials import alone_on_host, bench_of, study_of

SECONDS = 4.0
HOLDER, WAITER = 7, 8
"""Sessions of a server."""
Carry = Callable[..., Record]


@pytest.fixture
def carried(homes_with_data: Path) -> Carry:
    """A trial of an engine with these acts beside a short load."""

    def carry_out(engine: str, *acts: Meanwhile, levels: dict[str, Level] | None = None) -> Record:
        study = study_of(engine, {})
        study = study.but(
            workload=study.workload.but(duration_s=SECONDS),
            meanwhile=acts,
            factors=tuple(Factor(name=name, levels=(level,)) for name, level in (levels or {}).items()),
        )
        variant = Variant(name="baseline", levels=dict(levels or {}))
        trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
        with open_journal() as journal:
            return run_trial(trial, bench_of(study, journal))

    return carry_out


def sql(text: str, name: str = "act", at_s: float = 1.0) -> Meanwhile:
    return Meanwhile(name=name, at_s=at_s, sql=text)


def test_an_act_that_begins_while_the_server_answers_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, homes: Path
) -> None:
    setup = SimpleNamespace(scratch=homes, engine=SimpleNamespace(locks=SimpleNamespace(blocked="{acts}")))
    running = SimpleNamespace(setup=setup, server=SimpleNamespace(url=""))
    with open_journal() as journal:
        beside = ActsBeside(cast(Any, running), [sql("SELECT pg_sleep(1)", "hold")], 0.0, journal)
    [going] = beside._going

    def ask(acts: str) -> list[tuple[object, ...]]:
        assert acts == "0"
        going.session, going.began_s = HOLDER, 0.0
        beside._over.set()
        return [(WAITER, "UPDATE t", HOLDER, "SELECT pg_sleep(1)", "t", 0)]

    monkeypatch.setattr(meanwhile, "conversation", lambda url: nullcontext(ask))
    beside._begun.set()
    beside._look_on()
    assert [(one.waiter, one.blocker) for one in beside._seen.told()] == [("UPDATE t", "hold")]


def test_statements_are_split_where_no_quote_holds_the_semicolon() -> None:
    assert statements_of("BEGIN; SELECT ';' ;; SELECT \"a;b\", `c;d`; ") == [
        "BEGIN",
        "SELECT ';'",
        'SELECT "a;b", `c;d`',
    ]
    assert shortened("UPDATE a SET b = 5\n WHERE c = 'x'") == "UPDATE a SET b = ? WHERE c = ?"


def test_a_server_is_found_by_its_socket_or_its_port() -> None:
    assert place_of_server("postgresql://dyno@localhost/db?socket=/run/x/.s.PGSQL.5432") == {
        "host": "/run/x",
        "port": "5432",
        "socket": "/run/x/.s.PGSQL.5432",
        "user": "dyno",
        "database": "db",
    }
    assert place_of_server("mysql://dyno@localhost/db?socket=/run/x/m.sock") == {
        "host": "localhost",
        "socket": "/run/x/m.sock",
        "user": "dyno",
        "database": "db",
    }
    assert place_of_server("mysql://dyno@10.0.0.1:3307/db")["port"] == "3307"
    assert place_of_server("sqlite:///data/file.db")["database"] == "/data/file.db"


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_a_statement_begins_at_its_moment_and_is_told_with_who_waited(carried: Carry, engine: str) -> None:
    lock = sql(
        "BEGIN; UPDATE pgbench_branches SET bbalance = bbalance; SELECT SLEEP(1.5); COMMIT"
        if engine == "mariadb"
        else "BEGIN; UPDATE pgbench_branches SET bbalance = bbalance; SELECT pg_sleep(1.5); COMMIT",
        "hold",
    )
    record = carried(engine, lock)
    assert record.outcome is Outcome.MEASURED, record.cause
    [phase] = record.phases
    [act] = phase.meanwhile
    assert phase.tally is not None and phase.tally.slices == ()
    assert act.done and not act.fault
    assert act.began_s is not None and 0.0 < act.began_s < SECONDS
    assert act.took_s >= 1.5
    assert any(one.blocker == "hold" and one.sessions for one in act.blocked), act.blocked


@pytest.mark.engine
def test_mysql_tells_what_a_schema_change_waits_for_and_who_waits_for_it(carried: Carry) -> None:
    try:
        registry.locate(Reference("mysql"))
    except EngineMissing as missing:
        pytest.skip(f"mysql cannot be had here: {missing.message}")
    reads = "SELECT COUNT(*) FROM pgbench_accounts WHERE aid < 9"
    held = sql(f"BEGIN; {reads}; SELECT SLEEP(2); COMMIT", "held", 0.5)
    change = sql("ALTER TABLE pgbench_accounts ADD COLUMN more INT", "change", 1.0)
    record = carried("mysql", held, change)
    assert record.outcome is Outcome.MEASURED, record.cause
    first, second = record.phases[0].meanwhile
    assert first.done and second.done and second.took_s > 1.0
    waits = {(one.waiter, one.blocker): one for one in first.blocked}
    behind = waits["change", "held"]
    assert behind.lock == "metadata lock: EXCLUSIVE" and not behind.inferred
    of_load = [one for one in first.blocked if one.waiter not in ("change", "held")]
    assert any(one.blocker == "change" and "pgbench_accounts" in one.waiter for one in of_load), first.blocked


@pytest.mark.engine
@needs_pgbouncer
def test_an_act_goes_to_the_server_behind_a_pooler_and_keeps_its_sessions_waiting(carried: Carry) -> None:
    levels: dict[str, Level] = {"front.kind": "pgbouncer", "front.default_pool_size": 1}
    lock = "BEGIN; LOCK TABLE pgbench_branches IN EXCLUSIVE MODE; SELECT pg_sleep(1.5); COMMIT"
    record = carried("postgresql", sql(lock, "hold"), levels=levels)
    assert record.outcome is Outcome.MEASURED, record.cause
    assert record.tally is not None and record.tally.operations > 0
    [act] = record.phases[0].meanwhile
    assert act.done and act.took_s >= 1.5
    # A look may meet the moment in which the act itself waits for the transaction that the load has begun.
    of_load = [one for one in act.blocked if one.waiter != "hold"]
    assert {one.blocker for one in of_load} == {"hold"}
    # PostgreSQL copies what all sessions do before it looks for what each waits for, so that the statement
    # may be the one before.
    assert all("on pgbench_branches" in one.lock and one.sessions == 1 for one in of_load), act.blocked
    assert any("pgbench_branches" in one.waiter for one in of_load), act.blocked


@pytest.mark.engine
def test_an_act_beside_a_cluster_is_done_on_the_first_node_and_all_agree(carried: Carry) -> None:
    levels: dict[str, Level] = {"cluster.nodes": 2, "cluster.kind": "semi-synchronous"}
    change = sql("CREATE TABLE copied AS SELECT * FROM pgbench_branches", "change")
    with alone_on_host(), skipping_blocked():
        record = carried("mariadb", change, levels=levels)
        if record.outcome is Outcome.BLOCKED:
            raise Blocked("cluster.nodes", record.cause, record.remedy)
    assert record.outcome is Outcome.MEASURED, record.cause
    [act] = record.phases[0].meanwhile
    assert act.done and not act.fault
    held = {check.name: check.holds for check in record.checks}
    assert held["nodes_together"] and held["node2_balances_equal"], held


@pytest.mark.engine
def test_what_is_not_done_when_the_load_ends_is_ended_and_told_as_at_least(carried: Carry) -> None:
    record = carried("postgresql", sql("SELECT pg_sleep(60)"), sql("SELECT 1", "later", 2.0))
    assert record.outcome is Outcome.MEASURED, record.cause
    slow, later = record.phases[0].meanwhile
    assert not slow.done and not slow.fault and 1.0 < slow.took_s < 60.0
    assert later.done
    assert record.tally is not None and record.tally.duration_s == pytest.approx(SECONDS, abs=1.0)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("act", "told"),
    [
        (sql("CREATE INDEX i ON nowhere (a)"), "nowhere"),
        (Meanwhile(name="act", at_s=1.0, command="sh -c 'echo no disk >&2; exit 3'"), "exit code 3: no disk"),
    ],
)
def test_what_fails_is_the_outcome_of_its_variant(carried: Carry, act: Meanwhile, told: str) -> None:
    record = carried("postgresql", act)
    assert record.outcome is Outcome.FAILED
    assert told in record.cause and record.remedy
    assert record.phases[0].tally is not None, "the load went on all the same"


@pytest.mark.engine
def test_a_level_takes_the_place_of_the_text_and_the_next_trial_begins_anew(carried: Carry) -> None:
    act = sql("SELECT 1")
    index: dict[str, Level] = {"meanwhile.act": "CREATE INDEX i ON pgbench_accounts (abalance)"}
    for _ in range(2):
        # The second one would fail where the first one's index was still there.
        record = carried("postgresql", act, levels=index)
        assert record.outcome is Outcome.MEASURED, record.cause
        assert record.phases[0].meanwhile[0].text == index["meanwhile.act"]
    assert carried("postgresql", act, levels={"meanwhile.act": "none"}).phases[0].meanwhile == ()


WRITES = "import os; open('made', 'wb').write(os.urandom(1 << 20)); os.sync(); sum(range(3_000_000))"


@pytest.mark.engine
def test_a_command_knows_the_server_and_is_told_with_what_it_took(carried: Carry, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.touch()
    python = shlex.quote(sys.executable)
    place = "${host} ${port} ${socket} ${user} ${database} ${folder} ${password_file}"
    script = f"{python} -c {shlex.quote(WRITES)} {place}"
    record = carried("postgresql", Meanwhile(name="backup", at_s=1.0, command=script))
    assert record.outcome is Outcome.MEASURED, record.cause
    [act] = record.phases[0].meanwhile
    assert act.done
    assert act.cpu_s is not None and act.cpu_s > 0.0
    assert act.written_bytes is not None and act.written_bytes >= 1 << 20


@pytest.mark.engine
def test_a_command_that_never_ends_goes_with_all_that_it_started(
    carried: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanwhile, "TERM_S", 0.2)
    seconds = f"6{os.getpid()}.25"
    stubborn = f"sh -c 'trap \"\" TERM; sleep {seconds} & sleep {seconds}'"
    record = carried("postgresql", Meanwhile(name="stuck", at_s=1.0, command=stubborn))
    assert record.outcome is Outcome.MEASURED, record.cause
    [act] = record.phases[0].meanwhile
    assert not act.done and act.took_s > 1.0
    left = [one for one in psutil.process_iter(["cmdline"]) if seconds in (one.info["cmdline"] or [])]
    for _ in range(50):
        left = [one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
        if not left:
            break
        time.sleep(0.1)
    assert not left


def test_a_name_that_stands_for_nothing_is_told() -> None:
    with pytest.raises(UserError) as wrong:
        meanwhile._words("pg_dump ${hots}", {"host": "x"})
    assert "[[meanwhile]]" in wrong.value.message
