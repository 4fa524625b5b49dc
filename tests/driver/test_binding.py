"""The binding: what a callback raises while the driver works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job


class Stumbled(Exception):
    """Raised by a callback."""


def stumble(text: str) -> bool:
    raise Stumbled(text)


def interrupt(text: str) -> bool:
    raise KeyboardInterrupt


@pytest.fixture
def job(tmp_path: Path) -> Job:
    one = Job(url=f"sqlite://{tmp_path}/rows?synchronous=off", workload="tpcb", duration_s=120.0)
    _driver.prepare(one.model_dump_json())
    return one


def test_what_a_callback_raises_ends_the_run_and_is_raised(job: Job) -> None:
    with pytest.raises(Stumbled, match='"second":0'):
        _driver.run(job.model_dump_json(), on_second=stumble)
    with pytest.raises(Stumbled, match="acknowledged"):
        _driver.run(job.but(slices=3).model_dump_json(), next_slice=stumble)


def test_an_interrupt_in_a_callback_leaves_what_was_counted(job: Job) -> None:
    for told in (
        _driver.run(job.model_dump_json(), on_second=interrupt),
        _driver.run(job.but(slices=3, warmup_s=0.1).model_dump_json(), next_slice=interrupt),
    ):
        assert json.loads(told)["interrupted"]
