"""A study that plays a recording: its path, its times, and what the recording says in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dbdyno.errors import StudyError, UserError
from dbdyno.study import Catalogue, Limits, Option, Study, WorkloadOffer
from dbdyno.study.reader import parse_study


@dataclass(frozen=True)
class Recorded:
    length_s: float = 60.0
    open_most: int = 7


def recorded(path: Path) -> Recorded:
    if path.name != "shop.replay":
        raise UserError(f"{path} is no recording", "make one")
    return Recorded()


SPEED = Option(name="speed", type="number_or", default=1.0, allowed=Limits(min=0.001, max=1000, word="max"))
CATALOGUE = Catalogue(
    engines=frozenset({"mariadb"}),
    choosing=frozenset(),
    workloads=(
        WorkloadOffer(name="replay", options=(Option(name="file", type="text", default=""), SPEED)),
        WorkloadOffer(name="tpcb"),
    ),
    layers={"config": lambda factor, engine: [], "workload": lambda factor, engine: []},
    metrics=frozenset({"throughput"}),
    recorded=recorded,
)


def read(rest: str, factors: str = '"config.a" = [1, 2]', catalogue: Catalogue = CATALOGUE) -> Study:
    text = f'engine = "mariadb"\n[workload]\nname = "replay"\n{rest}\n[factors]\n{factors}\n'
    return parse_study(text.encode(), catalogue, "/there/study.toml")


def mistakes(rest: str, factors: str = '"config.a" = [1, 2]') -> str:
    with pytest.raises(StudyError) as error:
        read(rest, factors)
    return "; ".join(f"line {mistake.line}: {mistake.message}" for mistake in error.value.mistakes)


def test_the_recording_says_how_long_a_trial_is_and_how_many_clients_it_has() -> None:
    workload = read('file = "shop.replay"').workload
    assert (workload.warmup_s, workload.duration_s, workload.clients) == (0.0, 60.0, 7)
    assert workload.options["file"] == "shop.replay", "it counts from the folder, wherever that is"


def test_a_part_of_it_can_be_measured() -> None:
    workload = read('file = "/logs/shop.replay"\nwarmup = "10s"\nduration = "20s"').workload
    assert (workload.warmup_s, workload.duration_s) == (10.0, 20.0)
    assert workload.options["file"] == "/logs/shop.replay"
    assert read('file = "shop.replay"\nwarmup = "10s"\nduration = "90s"').workload.duration_s == 50.0


def test_the_speed_can_be_a_factor() -> None:
    study = read('file = "shop.replay"', '"workload.speed" = [1, 2, "max"]')
    assert study.factors[0].levels == (1, 2, "max")
    for wrong in ('"fast"', "0", "true"):
        assert "speed" in mistakes(f'file = "shop.replay"\nspeed = {wrong}')


def test_what_the_recording_says_is_refused() -> None:
    for key in ("clients = 8", "rate_per_s = 5", 'think_time = "1s"', 'ramp = "1s"'):
        told = mistakes(f'file = "shop.replay"\n{key}')
        assert f"`workload.{key.split()[0]}` and `workload.name = replay` exclude" in told
    told = mistakes('file = "shop.replay"', '"workload.clients" = [1, 2]')
    assert "`workload.clients` and `workload.name = replay` exclude" in told
    assert "`file` cannot vary" in mistakes('file = ["a.replay", "b.replay"]')


def test_a_missing_recording_is_told_with_its_line() -> None:
    assert "has no recording" in mistakes("")
    assert "line 4: /there/other.replay is no recording" in mistakes('file = "other.replay"')
    assert "leaves nothing" in mistakes('file = "shop.replay"\nwarmup = "60s"')


def test_a_stored_study_is_read_without_its_recording() -> None:
    stored = replace(CATALOGUE, recorded=None)
    assert read('file = "gone.replay"', catalogue=stored).workload.name == "replay"
