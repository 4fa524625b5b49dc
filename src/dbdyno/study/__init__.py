"""The study: the question, declared. Read from TOML once, fully defaulted, frozen.

Only this package knows the file format. Every mistake in a file is found at once, with its line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.study import pacing
    from dbdyno.study.catalogue import Catalogue, FactorCheck, Limits, Option, WorkloadOffer, workload_offers
    from dbdyno.study.nouns import (
        ANSWERS,
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
    from dbdyno.study.reader import parse_study, read_study
    from dbdyno.study.tables import study_schema
else:
    OFFERED = ("Catalogue", "FactorCheck", "Limits", "Option", "WorkloadOffer", "workload_offers")
    HOMES = {
        **dict.fromkeys(OFFERED, "catalogue"),
        **dict.fromkeys(("parse_study", "read_study"), "reader"),
        "study_schema": "tables",
    }

    def __getattr__(name: str) -> object:
        """Imports what is asked for: a verb's help needs no noun, and records need nothing that reads."""
        if name not in __all__ or name == "pacing":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{HOMES.get(name, 'nouns')}"), name)
        globals()[name] = found
        return found


__all__ = [
    "ANSWERS",
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
