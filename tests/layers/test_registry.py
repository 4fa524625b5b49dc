"""What the knobs say of themselves: documentation, related keys of the fingerprint, what a level asks for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbdyno.engines.facts import SettingNeed
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.host.fingerprint import fingerprint
from dbdyno.layers.knob import ROOT, Knob, Scope
from dbdyno.layers.layer import ask, by_layer
from dbdyno.layers.registry import KNOBS, LAYERS, foresee, related_factors
from dbdyno.layers.setup import RequestedChange
from tests.fakes import FakeEngine
from tests.layers.registry_cases import LEVELS

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "layers.md"


def plain(markdown: str) -> str:
    return markdown.replace("`", "").strip()


def documented() -> dict[str, list[str]]:
    """The rows of the documentation's tables, by knob."""
    lines = [
        line
        for line in DOCUMENTATION.read_text().splitlines()
        if re.match(r"\| `(\w+\.\w+|engine)` \|", line)
    ]
    rows = [[plain(cell) for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_the_documentation_tells_each_knob_as_it_is() -> None:
    told = documented()
    assert list(told) == list(KNOBS)
    for name, knob in KNOBS.items():
        needs = (knob.needs or "nothing").replace("nothing", "–") + {"server": "", "host": " (host)"}[
            knob.scope
        ]
        assert told[name] == [knob.levels, knob.effect, knob.proof, needs]


def test_related_keys_are_keys_of_the_fingerprint(homes: Path) -> None:
    host = fingerprint().model_dump()
    known = {f"{part}.{key}" for part in ("cpu", "memory", "data") for key in host[part]} | set(host)
    assert set(related_factors()) <= known


def test_a_knob_that_the_fingerprint_relates_to_is_found_by_its_key() -> None:
    related = related_factors()
    assert related["cpu.numa_nodes"] == ("cpu.node",)
    assert set(related["cpu.usable_cores"]) == {"workload.clients", "cpu.server", "cpu.driver", "cpu.quota"}


@pytest.mark.parametrize("knob", KNOBS.values(), ids=lambda knob: knob.name)
def test_each_knob_takes_its_levels_and_no_nonsense(knob: Knob) -> None:
    assert all(knob.takes(level) for level in LEVELS[knob.name])
    assert not knob.takes("no; such level")


@contextmanager
def watched() -> Iterator[list[str]]:
    """What Python is asked to do outside its own memory, by the interpreter's audit events."""
    seen: list[str] = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)


_watchers: list[list[str]] = []


def _note(event: str, _arguments: tuple[Any, ...]) -> None:
    if event.startswith(("open", "os.", "subprocess.", "shutil.", "socket.", "fcntl.", "ctypes.")):
        for seen in _watchers:
            seen.append(event)


sys.addaudithook(_note)


def test_the_watch_sees_a_file_that_is_read() -> None:
    with watched() as seen:
        DOCUMENTATION.read_text()
    assert "open" in seen


@pytest.mark.parametrize("factor", KNOBS)
def test_asking_touches_nothing(factor: str) -> None:
    with watched() as seen:
        for level in LEVELS[factor]:
            for request in ask(by_layer({factor: level}), LAYERS, FakeEngine().engine):
                request.change()
    assert seen == []


@pytest.mark.parametrize("factor", KNOBS)
def test_what_touches_the_host_says_so_under_its_own_name_and_right(factor: str) -> None:
    """A knob of the host's has a level that does something to it, and each change needs a right."""
    found = [request.change() for level in LEVELS[factor] for request in requests(factor, level)]
    changes = [change for change in found if change is not None]
    assert changes or KNOBS[factor].scope is Scope.SERVER
    assert bool(changes) == bool(KNOBS[factor].needs)
    assert {change.factor for change in changes} <= {factor}
    assert all(change.places for change in changes if ":=" in change.does or "control group" in change.does)


def requests(factor: str, level: Level) -> tuple[Any, ...]:
    return ask(by_layer({factor: level}), LAYERS, FakeEngine().engine)


@pytest.mark.parametrize(
    ("levels", "changes"),
    [
        ({"memory.thp": "never", "memory.allocator": "jemalloc", "cpu.server": "0", "config.speed": 2}, []),
        (
            {"memory.thp": "always"},
            [
                RequestedChange(
                    "memory.thp",
                    "/sys/kernel/mm/transparent_hugepage/enabled := always",
                    places=("/sys/kernel/mm/transparent_hugepage/enabled",),
                )
            ],
        ),
        ({"storage.filesystem": "host", "storage.mount": "defaults", "storage.page_cache": "keep"}, []),
        (
            {"storage.page_cache": "drop", "storage.scheduler": "bfq", "storage.filesystem": "ext4"},
            [
                RequestedChange(
                    "storage.scheduler",
                    "a volume with ext4 on a loop device over a file of Dyno's",
                    "removed after each trial",
                    ("/dev/loop*",),
                ),
                RequestedChange(
                    "storage.scheduler",
                    "scheduler of the volume's device := bfq",
                    places=("/sys/*/queue/scheduler",),
                ),
                RequestedChange(
                    "storage.page_cache",
                    "the host's page cache is emptied before the server starts",
                    "not restored",
                    ("/proc/sys/vm/drop_caches",),
                ),
            ],
        ),
        (
            {"storage.device": "/dev/sdb", "storage.filesystem": "raw"},
            [
                RequestedChange(
                    "storage.device",
                    "/dev/sdb is overwritten with a raw volume (dyno run --allow-device /dev/sdb)",
                    "not restored",
                    ("/dev/sdb",),
                )
            ],
        ),
    ],
)
def test_what_levels_do_to_the_host(levels: dict[str, Level], changes: list[RequestedChange]) -> None:
    asked = ask(by_layer(levels), LAYERS, FakeEngine().engine)
    assert [change for request in asked if (change := request.change())] == changes


@pytest.mark.parametrize(
    ("levels", "embedded", "said"),
    [
        ({"cpu.driver": "0"}, True, "share their CPUs"),
        ({"storage.filesystem": "host", "storage.size": "1G"}, False, "needs a volume"),
        ({"storage.filesystem": "raw", "storage.mount": "sync"}, False, "is not mounted"),
    ],
)
def test_levels_that_contradict_each_other_are_refused_without_a_look(
    levels: dict[str, Level], embedded: bool, said: str
) -> None:
    with pytest.raises(Blocked, match=said) as caught:
        ask(by_layer(levels), LAYERS, FakeEngine(embedded=embedded).engine)
    assert caught.value.hint


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
    need = SettingNeed(("page",), "speed", off=("1",), unset="1", why="so no page is read")
    variants: dict[str, dict[str, Level]] = {
        "baseline": {"config.page": 4},
        "large": {"config.page": 8},
        "fast": {"config.page": 4, "config.speed": 2},
    }
    (idle,) = foresee(variants, lambda _: FakeEngine(NEEDS=(need,)).engine).idle
    assert idle.factor == "config.page"
    assert idle.variants == ("baseline", "large")
    assert idle.reason == "speed is 1, so no page is read"
