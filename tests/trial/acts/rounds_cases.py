"""What the tests of rounds share with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dbdyno.errors import EngineMissing
from dbdyno.frozen import Level
from dbdyno.host.journal import open_journal
from dbdyno.layers.setup import Running
from dbdyno.study.nouns import Reference
from dbdyno.study.soak import Act
from dbdyno.study.trials import NO_BLOCK, RESTARTS_FROM, Phase, Trial, Variant
from dbdyno.trial.acts import act_on
from dbdyno.trial.acts.endings import Acted
from dbdyno.trial.bench import Bench
from dbdyno.trial.prepare import prepare
from tests.needs import skipping_blocked
from tests.trials import alone_on_host, bench_of, study_of

LOSING: dict[str, dict[str, Level]] = {
    "sqlite": {"config.synchronous": "off", "config.journal_mode": "wal"},
    "firebird": {"config.forced_writes": False},
    "mariadb": {"config.innodb_flush_log_at_trx_commit": 0},
}


@contextmanager
def running(
    engine: str, levels: dict[str, Level], act: Act, optional: bool = False, version: str = ""
) -> Iterator[tuple[Running, Bench, ExitStack]]:
    """An engine that is up for an act, on a volume where the act needs one."""
    study = study_of(engine, levels)
    if version:
        study = study.but(engine=Reference(engine, version))
    trial = trial_of(levels, act, optional)
    with open_journal() as journal, journal.scope(), ExitStack() as undo:
        try:
            bench = bench_of(study, journal)
            up, _ = prepare(trial, bench, undo)
        except EngineMissing as missing:
            pytest.skip(f"{engine} cannot be had here: {missing.message}")
        yield up, bench, undo


def trial_of(levels: dict[str, Level], act: Act, optional: bool = False) -> Trial:
    """A trial with one round."""
    return Trial(
        index=RESTARTS_FROM,
        block=NO_BLOCK,
        position=0,
        variant=Variant(name="baseline", levels=levels),
        phases=(round_with(act, optional),),
    )


def round_with(act: Act, optional: bool = False) -> Phase:
    return Phase(name=act, duration_s=0.5, then=act, ledger=True, optional=optional)


def acted(engine: str, levels: dict[str, Level], *then: Act) -> list[Acted]:
    """What came of acts that followed one another; skips the test where this machine refuses one."""
    found: list[Acted] = []
    with alone_on_host(), skipping_blocked(), running(engine, levels, then[0]) as (up, bench, undo):
        for act in then:
            found.append(act_on(up, round_with(act), bench, undo))
            up = found[-1].running
    return found
