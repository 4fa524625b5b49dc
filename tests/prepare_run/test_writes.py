"""`dyno plan` names every place that a study writes to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.host import paths
from dbdyno.host.launch import servers_text
from tests.cli.calls import complaint, dyno

STUDY = """
title  = "Where?"
engine = "firebird@5"
[workload]
name = "tpcb"
[factors]
{factor}
"""


def places(homes: Path, factor: str, *options: str) -> list[str]:
    """What the plan of a study names."""
    path = homes / "study.toml"
    path.write_text(STUDY.format(factor=factor))
    said = dyno("plan", str(path), "--json", *options)
    assert said.returncode == 0, said.stderr
    return [one["place"] for one in json.loads(said.stdout)["writes"]]


def test_dynos_own_folders_are_named_and_none_is_made(homes: Path) -> None:
    named = places(homes, '"config.DefaultDbCachePages" = [64, 128]')
    own = [paths.data_place(), paths.cache_place(), paths.state_place(), paths.host_place()]
    assert {*map(str, own), str(paths.store_place()), str(paths.runtime_place())} <= set(named)
    assert not any(folder.exists() for folder in (*own, paths.runtime_place()))


@pytest.mark.parametrize(
    ("factor", "place"),
    [
        ('"memory.thp" = ["never", "always"]', "/sys/kernel/mm/transparent_hugepage/enabled"),
        ('"storage.filesystem" = ["host", "ext4"]', "/dev/loop*"),
        ('"storage.device" = ["disk", "/dev/sdb"]', "/dev/sdb"),
        ('"storage.page_cache" = ["keep", "drop"]', "/proc/sys/vm/drop_caches"),
        ('"cpu.quota" = ["100%", "max"]', "/sys/fs/cgroup"),
        ('"cpu.governor" = ["performance", "powersave"]', "/sys/devices/system/cpu/cpufreq/policy*/scaling_"),
    ],
)
def test_what_a_level_changes_of_the_host_is_named(homes: Path, factor: str, place: str) -> None:
    assert any(one.startswith(place) for one in places(homes, factor))
    assert not any(one.startswith(place) for one in places(homes, '"config.DefaultDbCachePages" = [64, 128]'))


def test_a_folder_of_the_cache_that_was_moved_is_named_by_its_place(homes: Path) -> None:
    moved = homes / "moved"
    moved.mkdir()
    paths.cache().joinpath("pristine").symlink_to(moved)
    assert str(moved) in places(homes, '"config.DefaultDbCachePages" = [64, 128]')


def test_cuts_of_power_name_the_loop_devices(homes: Path) -> None:
    assert "/dev/loop*" in places(
        homes, '"config.DefaultDbCachePages" = [64, 128]\n[restarts]\npower_cuts = 1'
    )


def test_a_store_and_an_allowed_path_are_named_without_a_password(homes: Path) -> None:
    factor = '"config.DefaultDbCachePages" = [64, 128]'
    assert f"{homes}/logs" in places(homes, factor, "--allow-path", f"{homes}/logs")
    assert places(homes, factor, "--store", "sqlite:////srv/x.sqlite")[0] == "/srv/x.sqlite"
    [store, *_] = places(homes, factor, "--store", "postgresql://me:secret@there/runs")
    assert "there" in store and "secret" not in store
    said = complaint("plan", str(homes / "study.toml"), "--store", "mongodb://x")
    assert "no store speaks mongodb" in said
    shown = " ".join(dyno("plan", str(homes / "study.toml")).stdout.split())
    assert "written by its trials" in shown and "the journal that restores" in shown
    assert servers_text() in shown
