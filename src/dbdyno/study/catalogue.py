"""What a study may name here: engines, workloads, layers, metrics; and what other tools call them.

The study reads no registry itself: who reads a study (`cli/`) makes the catalogue from the real ones, so that
the names a study may use are those that will run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from dbdyno.errors import Mistake
from dbdyno.frozen import Configuration, Level, absent
from dbdyno.study.files import NamedFile
from dbdyno.study.nouns import Factor, GivenData, Promise, Reference

FactorCheck = Callable[[Factor, Reference], list[Mistake]]
"""What a layer finds wrong with a factor on an engine. Lines are filled in by the reader."""

BesideCheck = Callable[[Factor, Mapping[str, Level], Reference], list[Mistake]]
"""The same for levels that stand beside the others of a variant."""


GivenCheck = Callable[[GivenData, Path, Reference, tuple[Factor, ...]], list[Mistake]]
"""What is wrong with the data that a study in a folder brings for an engine, beside the study's factors.
Lines are filled in by the reader."""


class Limits(BaseModel):
    """The smallest and the largest value of a numeric option, both allowed; `word` may stand in the place of
    one."""

    model_config = ConfigDict(frozen=True)
    min: int | float
    max: int | float
    word: str = absent("")


class Option(BaseModel):
    """One option of a workload, as the driver describes it. `allowed` is null where the type says it all;
    without `shapes_data`, data made with one value serve a run with any other. Where one that `reads_only` is
    on, no transaction writes; where one that `needs_procedures` is on, the server must have them.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    type: Literal["int", "float", "bool", "choice", "text", "number_or"]
    default: Level | None = None
    allowed: Limits | tuple[str, ...] | None = None
    help: str = ""
    shapes_data: bool = True
    reads_only: bool = False
    needs_procedures: bool = False

    @property
    def limits(self) -> Limits | None:
        return self.allowed if isinstance(self.allowed, Limits) else None

    @property
    def choices(self) -> tuple[str, ...]:
        return self.allowed if isinstance(self.allowed, tuple) else ()


class WorkloadOffer(BaseModel):
    """One workload that the driver offers."""

    model_config = ConfigDict(frozen=True)
    name: str
    description: str = ""
    options: tuple[Option, ...] = ()
    transactions: tuple[str, ...] = ()
    read_only: bool = False
    keeps_ledger: bool = False

    def option(self, name: str) -> Option | None:
        return next((option for option in self.options if option.name == name), None)


GivesUp = Callable[[str, Level, Reference], Promise | None]
"""What a level of a factor gives up on an engine; None where it keeps all."""

Configure = Callable[[str, Path, Reference], Configuration]
"""Reads the configuration file that a study in a folder names. Raises OSError or ValueError where it cannot
be read, or is none: the latter may have a `hint`."""


class RecordingFacts(Protocol):
    """What a study asks of a recording: how long it is, and how many sessions were open at a time."""

    @property
    def length_s(self) -> float: ...

    @property
    def open_most(self) -> int: ...


@dataclass(frozen=True)
class NamesFiles:
    """Which files a study in a folder names: by a workload with its options, and by a level of a factor."""

    of_workload: Callable[[str, Mapping[str, Level], Path], Iterable[NamedFile]]
    of_level: Callable[[str, Level, Path], Iterable[NamedFile]]


@dataclass(frozen=True)
class Catalogue:
    """The names that a study may use.

    `engines` are the engines' names; in those of `choosing` each session can have its own isolation level and
    storage engine, and workloads their procedures. `layers` maps each layer's name to its check; `metrics`
    are what a goal may name; `knobs` says of a factor which levels it takes, as far as that is known without
    an engine. What is wrong with a setting alone is judged again `beside` the others of a variant, because
    settings depend on each other. `configure` reads an engine's own configuration file, and `gives_up` says
    what a level gives up. `losing` names the settings with which an engine loses commits in a power cut.
    `fronts` are the programs that can pass SQL on, and `given` checks the data that a study brings. `files`
    says which files a study names; without it, none are read. `recorded` reads what a recording says of
    itself, and raises UserError for a file that is none. Those of `networked` can be loaded from another
    host, and in clusters of those of `each_writes` all nodes take writes. Those of `ends_statements` end one
    for its time. Those of `sessions` take others beside the load's. A `lone` study may have no factors,
    because its run is held against another.
    """

    engines: Set[str]
    choosing: Set[str]
    workloads: tuple[WorkloadOffer, ...]
    layers: Mapping[str, FactorCheck]
    metrics: frozenset[str]
    knobs: Mapping[str, str] = field(default_factory=dict)
    configure: Configure | None = None
    gives_up: GivesUp | None = None
    losing: Callable[[Reference], Mapping[str, Level]] | None = None
    fronts: Set[str] = frozenset()
    given: GivenCheck | None = None
    lone: bool = False
    files: NamesFiles | None = None
    recorded: Callable[[Path], RecordingFacts] | None = None
    networked: Set[str] = frozenset()
    each_writes: Set[str] = frozenset()
    ends_statements: Set[str] = frozenset()
    sessions: Set[str] = frozenset()
    beside: BesideCheck | None = None

    def workload(self, name: str) -> WorkloadOffer | None:
        return next((workload for workload in self.workloads if workload.name == name), None)


NOTHING = Catalogue(engines=frozenset(), choosing=frozenset(), workloads=(), layers={}, metrics=frozenset())
"""For values that are read outside of a study, and name nothing."""


def workload_offers(driver_json: str) -> tuple[WorkloadOffer, ...]:
    """Reads the JSON that the driver's `workloads()` gives."""
    return tuple(WorkloadOffer.model_validate(offer) for offer in json.loads(driver_json))


METRICS: Mapping[str, str] = {
    "tps": "throughput",
    "tpm": "throughput",
    "ops": "throughput",
    "ops_per_s": "throughput",
    "transactions_per_s": "throughput",
    "qps": "queries_per_s",
    "tpmc": "new_orders_per_minute",
    "nopm": "new_orders_per_minute",
    "latency": "mean_ms",
    "latency_avg": "mean_ms",
    "avg_ms": "mean_ms",
    "median_ms": "p50_ms",
    "p50": "p50_ms",
    "p90": "p90_ms",
    "p95": "p95_ms",
    "p99": "p99_ms",
    "p999": "p99_9_ms",
    "p99_9": "p99_9_ms",
    "cpu": "server_cpu_us_per_op",
}
WORKLOADS: Mapping[str, str] = {
    "pgbench": "tpcb",
    "tpc-b": "tpcb",
    "tpc_b": "tpcb",
    "tpc-c": "tpcc",
    "tpc_c": "tpcc",
    "hammerdb": "tpcc",
    "sysbench": "read_write",
    "oltp": "read_write",
    "ycsb": "ycsb_a",
    "workloada": "ycsb_a",
    "ann": "vector_search",
    "oltp_read_write": "read_write",
    "oltp_read_only": "read_only",
    "oltp_write_only": "write_only",
    "oltp_point_select": "point_select",
    "oltp_update_index": "update_index",
    "oltp_update_non_index": "update_non_index",
    "oltp_insert": "insert",
    "oltp_delete": "delete",
}
