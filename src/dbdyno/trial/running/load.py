"""A load that has its turn on a server which runs already: its levels are in force whenever it works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dbdyno.driver.job import Job
from dbdyno.driver.load import Explained, Invariant, Load, Prepared
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Level
from dbdyno.trial.running.switch import Switch


class LoadInTurn:
    """A load that moves the server's settings to its own `levels` before each stretch of work."""

    def __init__(self, load: Load, switch: Switch, levels: Mapping[str, Level]) -> None:
        self._load, self._switch, self._levels = load, switch, levels

    @property
    def process_id(self) -> int:
        return self._load.process_id

    @property
    def told(self) -> Acknowledged | None:
        return self._load.told

    def prepare(self, job: Job) -> Prepared:
        with self._in_turn():
            return self._load.prepare(job)

    def run(self, job: Job) -> Tally:
        with self._in_turn():
            return self._load.run(job)

    def begin(self, job: Job) -> Tally | None:
        with self._in_turn():
            return self._load.begin(job)

    def go_on(self) -> Tally | None:
        with self._in_turn():
            return self._load.go_on()

    def end(self) -> Tally:
        with self._unless_stopped():
            return self._load.end()

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        with self._in_turn():
            return self._load.check(job, acknowledged)

    def explain(self, job: Job) -> Explained:
        with self._in_turn():
            return self._load.explain(job)

    def query(self, url: str, sql: str) -> list[list[str | float | None]]:
        with self._unless_stopped():
            return self._load.query(url, sql)

    def close(self) -> None:
        self._load.close()

    def kill(self) -> None:
        self._load.kill()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        self._switch.take_turn(self._levels, anew=False)
        with self._unless_stopped():
            yield

    @contextmanager
    def _unless_stopped(self) -> Iterator[None]:
        """Says that the run was stopped, where the load process was ended for that."""
        try:
            yield
        except DriverFailed:
            self._switch.require_going()
            raise
