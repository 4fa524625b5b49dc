"""What a study will do to the host is told from its levels alone."""

from __future__ import annotations

from dbdyno.engines.facts import Need
from dbdyno.frozen import Level
from dbdyno.layers.foresight import foresee
from dbdyno.layers.knob import ROOT, Scope
from tests.fakes import FakeEngine

THP = "/sys/kernel/mm/transparent_hugepage/enabled := always"


def test_equal_deeds_stand_in_one_row_with_their_variants() -> None:
    variants: dict[str, dict[str, Level]] = {
        "baseline": {"memory.thp": "never", "config.speed": 1},
        "always": {"memory.thp": "always", "config.speed": 1},
        "fast": {"memory.thp": "always", "config.speed": 2},
    }
    (change,) = foresee(variants, lambda _: FakeEngine().engine).host
    assert (change.factor, change.does, change.needs) == ("memory.thp", THP, ROOT)
    assert (change.after, change.scope) == ("restored after each trial", Scope.HOST)
    assert change.variants == ("always", "fast")


def test_variants_that_no_host_can_run_are_named_with_the_reason() -> None:
    variants: dict[str, dict[str, Level]] = {
        "baseline": {"cpu.driver": "all"},
        "one": {"cpu.driver": "0"},
        "other": {"cpu.driver": "1"},
    }
    foresight = foresee(variants, lambda _: FakeEngine(embedded=True).engine)
    (refusal,) = foresight.blocked
    assert refusal.variants == ("one", "other")
    assert "share their CPUs" in refusal.reason and refusal.remedy
    assert foresight.host == ()


def test_a_study_of_settings_does_nothing_to_the_host() -> None:
    foresight = foresee(
        {"baseline": {"config.speed": 1, "workload.clients": 8}}, lambda _: FakeEngine().engine
    )
    assert not foresight.host and not foresight.blocked


def test_a_setting_that_cannot_matter_is_named_with_its_variants() -> None:
    need = Need(("page",), "speed", off=("1",), unset="1", why="so no page is read")
    variants: dict[str, dict[str, Level]] = {
        "baseline": {"config.page": 4},
        "large": {"config.page": 8},
        "fast": {"config.page": 4, "config.speed": 2},
    }
    (idle,) = foresee(variants, lambda _: FakeEngine(NEEDS=(need,)).engine).idle
    assert idle.factor == "config.page"
    assert idle.variants == ("baseline", "large")
    assert idle.reason == "speed is 1, so no page is read"
