"""Both languages are held to one shape: what the driver's own test wrote is read and written back here.

`crates/driver/src/border.rs` writes an example of all that crosses the border, with every field. A field that
one side alone knows fails one of the two tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.driver.load import Invariant, Prepared
from dbdyno.driver.tally import Acknowledged, StoredTally, Tally
from dbdyno.frozen import Frozen

EXAMPLES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "crates" / "driver" / "tests" / "border.json").read_text(encoding="utf-8")
)
TYPES: dict[str, type[Frozen]] = {
    "jobs": Job,
    "tallies": Tally,
    "acknowledged": Acknowledged,
    "invariants": Invariant,
}


def test_every_kind_of_example_has_its_type() -> None:
    assert EXAMPLES.keys() == TYPES.keys()


@pytest.mark.parametrize(
    ("kind", "example"), [(kind, each) for kind, all in EXAMPLES.items() for each in all]
)
def test_an_example_is_read_and_written_back_as_it_is(kind: str, example: dict[str, Any]) -> None:
    read = TYPES[kind].model_validate_json(json.dumps(example), strict=True)
    assert read.model_dump(mode="json") == example


@pytest.mark.parametrize("kind", TYPES)
def test_a_field_that_one_side_alone_knows_is_refused(kind: str) -> None:
    with pytest.raises(ValidationError):
        TYPES[kind].model_validate({**EXAMPLES[kind][0], "another": 1})


def test_both_sides_have_the_same_defaults() -> None:
    least = EXAMPLES["jobs"][-1]
    assert Job(url=least["url"], workload=least["workload"]).model_dump(mode="json") == least


def test_the_compiled_driver_gives_the_tally_of_these_types(tmp_path: Path) -> None:
    job = Job(url=f"sqlite:///{tmp_path}/rows", workload="tpcb", duration_s=0.2)
    prepared = Prepared.model_validate_json(_driver.prepare(job.model_dump_json()), strict=True)
    assert prepared.rows > 100_000
    tally = Tally.model_validate_json(_driver.run(job.model_dump_json()), strict=True)
    assert (tally.workload, tally.clients) == ("tpcb", 1)
    assert tally.by_client is not None
    assert tally.by_client.least == tally.by_client.most == pytest.approx(tally.work)
    assert tally.operations - 1 < tally.work < tally.operations + 1
    assert (tally.failed, tally.failed_share) == (0, 0.0)
    checks = json.loads(_driver.check(job.model_dump_json(), Acknowledged.by([tally]).model_dump_json()))
    assert all(Invariant.model_validate(check).holds for check in checks)


def test_an_interrupt_that_meets_the_display_ends_the_run(tmp_path: Path) -> None:
    """A signal is raised wherever Python runs, which may be what shows the seconds."""
    job = Job(url=f"sqlite:///{tmp_path}/rows", workload="tpcb", duration_s=3600)
    _driver.prepare(job.model_dump_json())

    def show(_second: str) -> None:
        raise KeyboardInterrupt

    assert Tally.model_validate_json(_driver.run(job.model_dump_json(), show), strict=True).interrupted


def test_acknowledged_counts_are_added_over_runs() -> None:
    tally = Tally.model_validate(EXAMPLES["tallies"][0])
    # The clock was set back between the two.
    set_back = {"started_unix_s": tally.started_unix_s - 3600, "start": {"history": 99}}
    later = tally.model_copy(update=set_back)
    assert Acknowledged.by([tally, later]) == Acknowledged(
        acknowledged=24, unknown=26, by_transaction={"tpcb": 24}, start={"history": 15}
    )
    assert Acknowledged.by([later]).start == {"history": 99}
    assert Acknowledged.by([tally]).plus(Acknowledged.by([later])) == Acknowledged.by([tally, later])
    assert Acknowledged().plus(Acknowledged.by([tally])) == Acknowledged.by([tally])


def test_a_stored_tally_of_another_version_is_read() -> None:
    example = EXAMPLES["tallies"][0]
    later = {"recall", "unfinished", "phases", "start", "by_statement"}
    once = {name: example[name] for name in example.keys() - later}
    tally = TypeAdapter[Tally](StoredTally).validate_python({**once, "no_longer_counted": 3})
    assert (tally.recall, tally.unfinished, tally.phases, tally.start) == (None, 0, (), {})
    assert tally.by_statement == {}
    assert tally.operations == example["operations"]


def test_what_older_drivers_counted_whole_keeps_its_rate() -> None:
    example = EXAMPLES["tallies"][0]
    counted = {"operations": 4, "acknowledged": 12, "latency_us": example["latency_us"]}
    once = {name: example[name] for name in example.keys() - {"failed_latency_us", "failed_histogram"}}
    once |= {"by_transaction": {"tpcb": counted}, "duration_s": 2.0, "throughput_per_s": 2.0}
    once |= {"slices": [{"started_unix_s": 1.5, "duration_s": 0.5, "operations": 4}]}
    once |= {"errors": {"1213 deadlock": 9, "1062 duplicate": 2}, "retries": 9}
    tally = TypeAdapter[Tally](StoredTally).validate_python(once)
    rates = (
        tally.throughput_per_s,
        tally.by_transaction["tpcb"].throughput_per_s,
        tally.slices[0].throughput_per_s,
    )
    assert rates == (2.0, 2.0, 8.0)
    assert (tally.work, tally.failed_latency_us, tally.failed) == (4.0, None, 2)
