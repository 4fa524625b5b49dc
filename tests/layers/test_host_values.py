"""SMT, governor, boost and NUMA on a tree like /sys: this host may have none of them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.host import kernel_values
from dbdyno.host.journal import Journal, open_journal
from dbdyno.layers import cpu
from dbdyno.layers.cpu import CPU
from dbdyno.layers.setup import Before, Running, Setup, apply
from tests.fakes import INSTALLATION, FakeEngine


@pytest.fixture
def system(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two policies with governors, SMT that is on, boost that is on, two nodes of which one has a CPU."""
    root = homes / "sys"
    files = {
        "cpu/online": "0-1",
        "cpu/smt/control": "on",
        "cpu/cpufreq/boost": "1",
        "node/node0/cpulist": "0",
        "node/node1/cpulist": "4094",
    }
    for policy in ("policy0", "policy1"):
        files[f"cpu/cpufreq/{policy}/scaling_governor"] = "powersave"
        files[f"cpu/cpufreq/{policy}/scaling_available_governors"] = "performance powersave"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content + "\n")
    monkeypatch.setattr(cpu, "CPUS", root / "cpu")
    monkeypatch.setattr(cpu, "NODES", root / "node")
    monkeypatch.setattr(kernel_values, "_HOMES", (root,))
    return root


@pytest.fixture
def journal(system: Path) -> Iterator[Journal]:
    with open_journal() as journal:
        yield journal


def setup_of(journal: Journal, scratch: Path) -> Setup:
    return Setup(FakeEngine().engine, INSTALLATION, scratch, journal, Job(workload="tpcb"))


def put(levels: dict[str, Level], setup: Setup) -> None:
    setup.asked = CPU.ask(levels, setup.engine)
    apply(setup, Before.DATA)


def proved(setup: Setup, knob: str, level: str) -> Any:
    [evidence] = CPU.prove({knob: level}, Running(setup, cast(Any, None), cast(Any, None)))
    return evidence


@pytest.mark.parametrize(
    ("knob", "level", "file", "written"),
    [
        ("smt", "off", "cpu/smt/control", "off"),
        ("boost", "off", "cpu/cpufreq/boost", "0"),
        ("governor", "performance", "cpu/cpufreq/policy1/scaling_governor", "performance"),
    ],
)
def test_a_value_is_set_proved_and_put_back(
    journal: Journal, system: Path, knob: str, level: str, file: str, written: str
) -> None:
    before = (system / file).read_text().strip()
    setup = setup_of(journal, system)
    with journal.scope():
        put({knob: level}, setup)
        assert (system / file).read_text().strip() == written
        evidence = proved(setup, knob, level)
        assert evidence.in_effect, evidence.reason
        # The firmware, or somebody else, takes it back: the proof must notice.
        (system / file).write_text(before)
        assert not proved(setup, knob, level).in_effect
        (system / file).write_text(written)
    assert (system / file).read_text().strip() == before


def test_a_governor_that_the_host_lacks(journal: Journal, system: Path) -> None:
    with pytest.raises(Blocked, match="policy0 offers no schedutil") as caught:
        put({"governor": "schedutil"}, setup_of(journal, system))
    assert caught.value.hint == "it offers: performance, powersave"


@pytest.mark.parametrize("state", ["notsupported", "forceoff", "notimplemented"])
def test_smt_that_cannot_be_chosen(journal: Journal, system: Path, state: str) -> None:
    (system / "cpu/smt/control").write_text(state)
    with pytest.raises(Blocked, match=state):
        put({"smt": "on"}, setup_of(journal, system))


def test_a_node_whose_cpus_are_not_allowed(journal: Journal, system: Path) -> None:
    with pytest.raises(Blocked, match="CPU 4094 is not there or not allowed"):
        put({"node": 1}, setup_of(journal, system))


def test_two_dynos_do_not_set_one_value(journal: Journal, system: Path) -> None:
    """The lock is the kernel's, on the value's own file: another descriptor stands for another process."""
    path = system / "cpu/smt/control"
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Blocked, match="another dyno has set") as caught:
            kernel_values.set_value(journal, path, "off", "cpu.smt")
    assert caught.value.hint == "wait until it ends"
    assert path.read_text().strip() == "on"
    assert kernel_values.set_value(journal, path, "off", "cpu.smt") == "off"
