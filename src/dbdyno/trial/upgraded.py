"""Data that a version takes over from the study's first one, in its own way, timed; and the sums of rows that
show what came of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.engines.upgrade import STOP_S, not_taken_over
from dbdyno.errors import Blocked, ServerFailed
from dbdyno.frozen import ENGINE_FACTOR, Frozen, Level
from dbdyno.host.clone import clone_tree
from dbdyno.layers.setup import Setup
from dbdyno.obtain.installation import Installation
from dbdyno.trial.bench import Bench, OnEngine
from dbdyno.trial.beside import launch_of, loading, runtime_of, serving
from dbdyno.trial.rows import rows_of


class Upgrade(Frozen):
    """How data were taken over, in words, and the seconds from the clean stop of the old version to that of
    the new one, copying left out."""

    by: str
    seconds: float


@dataclass(frozen=True)
class Takeover:
    """A setup whose data are taken over: from whom, and with which settings fixed when they were made."""

    first: OnEngine
    setup: Setup
    creation: Mapping[str, Level]
    bench: Bench

    @property
    def shape(self) -> dict[str, str]:
        """What shapes the data beside those that are taken over."""
        return {"upgraded": self.setup.engine.name, "installation": self.setup.data_maker.digest}

    def carry_out(self, source: Path, data: Path) -> Upgrade:
        """Puts a copy of the first version's data at `data`, and has them taken over. Raises Blocked where
        they cannot be."""
        old, new = self.first.installation, self.setup.data_maker
        refused = not_taken_over(self.first.engine, old, self.setup.engine, new)
        upgrading = self.setup.engine.upgrading
        if refused is not None or upgrading is None:
            raise refused or _failed(old, new, f"{self.setup.engine.title} has no way for it")
        self.bench.tell(f"{self.setup.engine.title} {new.version} takes over data of {old.version}")
        clone_tree(source, data)
        runtime = runtime_of(self.setup, self.bench, "u")
        began = time.monotonic()
        try:
            by = upgrading.take_over(old, new, data, runtime, self.creation)
        except ServerFailed as failed:
            raise _failed(old, new, failed.message) from failed
        return Upgrade(by=by, seconds=round(time.monotonic() - began, 3))


def rows_text(data: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench) -> str:
    """The checksums over all tables of data that the setup's own version reads; empty where the engine cannot
    be asked for them. What its server writes into the data stays there."""
    if setup.engine.compared is None:
        return ""
    runtime = runtime_of(setup, bench, "r")
    with (
        serving(setup, data, runtime, creation, STOP_S) as server,
        loading(bench, server, launch_of(setup)) as load,
    ):
        return "; ".join(table.text for table in rows_of(load, server.url, setup.engine.compared))


def _failed(old: Installation, new: Installation, reason: str) -> Blocked:
    return Blocked(
        ENGINE_FACTOR,
        f"{new.engine} {new.version} could not take over the data of {old.version}: {reason}",
        "take the versions between them one after the other, or let each make its own data",
    )
