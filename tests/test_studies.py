"""The studies that come with Dyno can be read by the Dyno that they come with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from dbdyno.cli.catalogue import catalogue
from dbdyno.plan.blocks import make_plan
from dbdyno.plan.order import Order
from dbdyno.study import read_study, study_schema
from dbdyno.study.designs import trial_count

FOLDER = Path(__file__).parent.parent / "studies"
STUDIES = sorted(FOLDER.glob("*.toml"))


def test_the_quickstart_is_among_them() -> None:
    assert FOLDER / "quickstart.toml" in STUDIES


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_can_be_read_and_planned(path: Path) -> None:
    names = catalogue(ask_engines=False)
    study = read_study(path, names)
    assert len(make_plan(study, Order(seed=1)).trials) == study.size.trials == trial_count(study)
    jsonschema.Draft202012Validator(study_schema(names)).validate(tomllib.loads(path.read_text()))
