"""A catalogue for tests: small, but of every shape that the real one has."""

from __future__ import annotations

import json
from dataclasses import replace

from dbdyno.errors import Mistake
from dbdyno.records.metrics import METRICS
from dbdyno.study import Catalogue, Factor, workload_offers
from dbdyno.study.catalogue import Option
from dbdyno.study.nouns import Reference

WORKLOADS = [
    {
        "name": "tpcb",
        "description": "pgbench's",
        "options": [
            {
                "name": "scale",
                "type": "int",
                "default": 1,
                "allowed": {"min": 1, "max": 100_000},
                "help": "branches",
            },
            {
                "name": "variant",
                "type": "choice",
                "default": "full",
                "allowed": ["full", "N", "S"],
                "help": "",
            },
        ],
        "transactions": ["tpcb"],
        "read_only": False,
    },
    {
        "name": "point_select",
        "description": "one row by key",
        "options": [
            {
                "name": "table_size",
                "type": "int",
                "default": 10_000,
                "allowed": {"min": 1, "max": 2**40},
                "help": "",
            },
            {
                "name": "exponent",
                "type": "float",
                "default": 0.8,
                "allowed": {"min": 0, "max": 5},
                "help": "",
            },
            {"name": "prepared", "type": "bool", "default": True, "allowed": None, "help": ""},
            {"name": "note", "type": "text", "default": "", "allowed": None, "help": ""},
        ],
        "transactions": ["point_select"],
        "read_only": True,
    },
]


def _config(factor: Factor, engine: Reference) -> list[Mistake]:
    if factor.knob == "no_such_setting":
        return [Mistake(0, f"{engine.engine} has no setting `{factor.knob}`", "did you mean `such_setting`?")]
    return []


def _anything(factor: Factor, engine: Reference) -> list[Mistake]:
    return []


def that_may_only_read(catalogue: Catalogue) -> Catalogue:
    """The catalogue with workloads that can be told to write nothing."""
    only_reads = Option(name="select_only", type="bool", default=False)
    offers = tuple(
        offer.model_copy(update={"options": (*offer.options, only_reads)}) for offer in catalogue.workloads
    )
    return replace(catalogue, workloads=offers)


CATALOGUE = Catalogue(
    engines=frozenset({"mariadb", "firebird", "postgresql"}),
    choosing=frozenset({"mariadb", "postgresql"}),
    workloads=workload_offers(json.dumps(WORKLOADS)),
    layers={"config": _config, "workload": _anything, "storage": _anything},
    metrics=frozenset(METRICS),
)
