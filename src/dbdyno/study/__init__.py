"""The study: the question, declared. Read from TOML once, fully defaulted, frozen.

Only this package knows the file format. Every mistake in a file is found at once, with its line.
"""

from dbdyno.study import pacing
from dbdyno.study.catalogue import Catalogue, FactorCheck, Limits, Option, WorkloadOffer, workload_offers
from dbdyno.study.nouns import (
    BASELINE,
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
    Size,
    Study,
    Workload,
)
from dbdyno.study.reader import parse_study, read_study
from dbdyno.study.schema import study_schema

__all__ = [
    "BASELINE",
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
    "Size",
    "Study",
    "Workload",
    "WorkloadOffer",
    "pacing",
    "parse_study",
    "read_study",
    "study_schema",
    "workload_offers",
]
