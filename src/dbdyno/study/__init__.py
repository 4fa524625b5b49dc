"""The study: the question, declared. Read from TOML once, fully defaulted, frozen.

Only this package knows the file format. Every mistake in a file is found at once, with its line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dbdyno.study.catalogue import Catalogue, FactorCheck, Limits, Option, WorkloadOffer, workload_offers
from dbdyno.study.nouns import (
    BASELINE,
    CANDIDATE,
    DURABLE,
    SLICE_S,
    TRIALS_MAX,
    TWIN,
    Arrangement,
    Design,
    Factor,
    Goal,
    Guard,
    Interval,
    ListedVariant,
    Restarts,
    Study,
    Workload,
)

if TYPE_CHECKING:
    from dbdyno.study import pacing
    from dbdyno.study.format import study_schema
    from dbdyno.study.reader import parse_study, read_study
else:

    def __getattr__(name: str) -> object:
        """Imports what reads a study when it is asked for: records and runs need its nouns alone."""
        homes = {"parse_study": "reader", "read_study": "reader", "study_schema": "format"}
        if name not in homes:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)


__all__ = [
    "BASELINE",
    "CANDIDATE",
    "DURABLE",
    "SLICE_S",
    "TRIALS_MAX",
    "TWIN",
    "Arrangement",
    "Catalogue",
    "Design",
    "Factor",
    "FactorCheck",
    "Goal",
    "Guard",
    "Interval",
    "Limits",
    "ListedVariant",
    "Option",
    "Restarts",
    "Study",
    "Workload",
    "WorkloadOffer",
    "pacing",
    "parse_study",
    "read_study",
    "study_schema",
    "workload_offers",
]
