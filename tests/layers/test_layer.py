"""What puts each knob's level into production."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.sqlite import SQLITE
from dbdyno.frozen import Level
from dbdyno.layers.layer import ask, by_layer, proof
from dbdyno.layers.registry import KNOBS, LAYERS, in_production
from dbdyno.layers.setup import Part, PartPlace
from dbdyno.records.record import Reading
from dbdyno.study.designs import of_build
from tests.layers.registry_cases import LEVELS


def parts(levels: dict[str, Level], settings: dict[str, Level] | None = None) -> list[Part]:
    asked = ask(by_layer(levels), LAYERS, MARIADB)
    return [part for request in asked for part in request.parts(MARIADB, settings or {})]


@pytest.mark.parametrize("factor", [name for name in KNOBS if not of_build(name)])
def test_a_level_can_be_deployed_or_is_one_of_the_laboratory(factor: str) -> None:
    found = [part for part in parts({factor: LEVELS[factor][1]}) if part.factor == factor]
    # A volume's options are deployed by hand, and nothing shows them afterwards.
    of_the_laboratory = not in_production(factor) and factor != "storage.mkfs"
    if factor in ("cpu.smt", "cpu.boost"):
        assert {part.place for part in found} == {PartPlace.KERNEL}
    assert bool(found) is not of_the_laboratory


def test_a_part_names_no_file_of_this_host() -> None:
    [variable, package] = parts({"memory.allocator": "jemalloc"})
    assert (variable.name, variable.value) == ("LD_PRELOAD", "libjemalloc.so.2")
    assert package.place is PartPlace.BY_HAND


def test_a_node_brings_its_cpus_and_its_memory() -> None:
    found = {part.name: part.value for part in parts({"cpu.node": 1})}
    assert found == {"NUMAPolicy": "bind", "NUMAMask": "1", "CPUAffinity": "numa"}


def test_pages_are_counted_for_the_cache_of_the_server() -> None:
    [small] = [part for part in parts({"memory.huge_pages": "2M"}) if part.place is PartPlace.KERNEL]
    large = parts({"memory.huge_pages": "2M"}, {"innodb_buffer_pool_size": "2G"})
    [more] = [part for part in large if part.place is PartPlace.KERNEL]
    assert isinstance(small.value, int) and isinstance(more.value, int)
    assert more.value > 2 * small.value
    [gigabytes] = [part for part in parts({"memory.huge_pages": "1G"}) if part.place is PartPlace.KERNEL]
    assert gigabytes.name == "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"


def test_an_engine_without_huge_pages_deploys_none() -> None:
    asked = ask({"memory": {"huge_pages": "2M"}}, LAYERS, SQLITE)
    assert [part for request in asked for part in request.parts(SQLITE, {})] == []


def test_each_switch_of_boost_takes_its_own_word() -> None:
    found = {part.name.rpartition("/")[2]: part.value for part in parts({"cpu.boost": "off"})}
    assert found == {"boost": "0", "no_turbo": "1"}


def test_a_file_system_is_made_by_hand_and_its_options_are_a_mount() -> None:
    found = parts({"storage.filesystem": "xfs", "storage.mkfs": "-b size=4096", "storage.mount": "noatime"})
    by_hand = {part.factor: part.value for part in found if part.place is PartPlace.BY_HAND}
    assert by_hand == dict.fromkeys(("storage.filesystem", "storage.mkfs"), "mkfs.xfs -b size=4096 DEVICE")
    [mount] = [part for part in found if part.place is PartPlace.MOUNT]
    assert (mount.name, mount.value) == ("xfs", "noatime")


def test_a_setting_that_needs_a_limit_of_its_process_brings_it() -> None:
    found = {part.place: (part.name, part.value) for part in parts({"config.open_files_limit": 9000})}
    assert found == {PartPlace.SETTING: ("open_files_limit", 9000), PartPlace.UNIT: ("LimitNOFILE", 9000)}


def test_a_load_has_no_parts() -> None:
    assert parts({"workload.clients": 8}) == []


def test_a_level_in_effect_needs_no_reason_and_another_has_one() -> None:
    found = Reading(value="bfq", source="queue/scheduler")
    held = proof("storage.scheduler", "bfq", found, True, "the kernel took it", "leave it out")
    assert (held.in_effect, held.reason, held.remedy) == (True, "", "")
    assert held.accepted == Reading(value="bfq", source="the kernel took it") and held.effective == found
    lost = proof("storage.scheduler", "none", found, False, "the kernel took it", "leave it out")
    assert (lost.reason, lost.remedy) == ("asked for none, found bfq", "leave it out")


IMPORTED = """
import sys
import dbdyno.layers.knob
print(*(name for name in sys.modules if name.startswith(("dbdyno.host", "dbdyno.engines", "dbdyno.driver"))))
"""


def test_a_knob_is_made_without_host_engine_or_driver() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
