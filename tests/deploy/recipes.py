"""Recipes of runs that nobody measured, for tests alone."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.analyse import Analysis
from dbdyno.analyse.model import VariantResult
from dbdyno.deploy.deployment import Deployment
from dbdyno.deploy.made import chosen_variant, deployment_of
from dbdyno.engines.engine import Engine
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.study import Design
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import BASELINE, ListedVariant
from tests.analyse.factory import a_run, a_study, records_of

GAIN = 1.6
VERSIONS = {
    "mariadb": "11.8.6-MariaDB",
    "mysql": "9.7.4",
    "postgresql": "15.18 (Debian)",
    "firebird": "5.0.4",
}


def finished(
    factors: Mapping[str, tuple[Level, Level]],
    settings: Mapping[str, Level] | None = None,
    version: str = "11.8.6-MariaDB",
    gain: float = GAIN,
    design: Design = Design.LIST,
) -> tuple[Analysis, list[Record], VariantResult]:
    """A run whose last variant changes all factors, and gains so much."""
    listed = (
        ListedVariant(name=BASELINE, levels={name: levels[0] for name, levels in factors.items()}),
        ListedVariant(name="tuned", levels={name: levels[1] for name, levels in factors.items()}),
    )
    study = a_study(factors=factors, design=design).but(
        settings=dict(settings or {}), variants=listed if design is Design.LIST else ()
    )
    names = [variant.name for variant in variants_of(study)]
    records = [record.but(engine_version=version) for record in records_of(study, ratios={names[-1]: gain})]
    analysis = analyse(study, a_run(study), records)
    return analysis, records, next(each for each in analysis.variants if each.name == names[-1])


def recipe(
    engine: Engine,
    factors: Mapping[str, tuple[Level, Level]],
    settings: Mapping[str, Level] | None = None,
    version: str = "",
) -> Deployment:
    """The recipe of the variant that changes all factors, from the first level to the second."""
    version = version or VERSIONS.get(engine.name, "3.40.1")
    analysis, records, variant = finished(factors, settings, version)
    return deployment_of(analysis, records, chosen_variant(analysis, variant.name, False), engine)
