"""What every layer must keep: a level is put in, proved on a running server, and the host is as before."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.errors import Blocked, DynoError
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.cgroups import hierarchy
from dbdyno.host.fingerprint import ALLOCATORS, HUGE_PAGES, find_library
from dbdyno.host.volumes.volume import MKFS
from dbdyno.host.writers import Allowed
from dbdyno.layers.setup import Running
from tests.conftest import homes_in
from tests.needs import needs_root, require_file_system, skipping_blocked
from tests.trials import alone_on_host, host_state, tried

pytestmark = [pytest.mark.engine]


@pytest.fixture(scope="module", autouse=True)
def home(fetched_engines: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One home for all, so that the pristine data are made once; its name holds a space on purpose."""
    folder = tmp_path_factory.mktemp("a home")
    with pytest.MonkeyPatch.context() as patch, homes_in(folder, patch):
        (paths.cache() / "engines").symlink_to(fetched_engines)
        yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module", autouse=True)
def a_process_has_ended(home: Path) -> Iterator[None]:
    """A session of a server may end between its being listed and being looked at. No proof rests on it."""
    ended, listed = subprocess.Popen(["true"]), vars(Running)["process_ids"].fget
    ended.wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Running, "process_ids", property(lambda up: (*listed(up), ended.pid)))
        yield


@pytest.fixture(autouse=True)
def host_as_before() -> Iterator[None]:
    """Others may have the host between two tests, because all of them together take more than a minute."""
    with alone_on_host():
        before = host_state()
        yield
        after = host_state()
    # A device that others attached meanwhile is left out of the second look.
    assert {name: after[name] for name in before.keys() & after.keys() if after[name] != before[name]} == {}


def test_all_memory_and_cpu_levels_at_once_on_a_server() -> None:
    with tried(
        "mariadb",
        memory__allocator=installed_allocator(),
        memory__malloc="glibc.malloc.arena_max=2",
        memory__thp="never",
        cpu__server="0",
        cpu__driver="0",
        cpu__node="any",
    ) as trial:
        assert trial.value("memory.allocator") == installed_allocator()
        assert trial.value("memory.malloc") == "glibc.malloc.arena_max=0x2"
        assert trial.value("memory.thp") == "never"
        assert trial.value("cpu.server") == "0"
        assert trial.value("cpu.driver") == "0"


def installed_allocator() -> str:
    return next((name for name in ALLOCATORS if find_library(name)), "libc")


@pytest.mark.parametrize("allocator", ["libc", *ALLOCATORS])
def test_each_allocator_is_the_one_that_is_mapped(allocator: str) -> None:
    if allocator != "libc" and find_library(allocator) is None:
        pytest.skip(f"allocator {allocator} is not installed")
    with tried("sqlite", memory__allocator=allocator) as trial:
        assert trial.value("memory.allocator") == allocator


@needs_root
def test_a_buffer_pool_on_huge_pages() -> None:
    levels: dict[str, Level] = {"config__innodb_buffer_pool_size": "64M", "memory__huge_pages": "2M"}
    # What is free in one piece depends on all that has run since the boot.
    with skipping_blocked(), tried("mariadb", **levels) as trial:
        assert trial.value("memory.huge_pages").endswith("MiB on 2M")
        assert "MiB of" in trial.exercised("memory.huge_pages")


@needs_root
def test_a_quota_holds_the_server_back() -> None:
    if hierarchy("cpu") is None:
        pytest.skip("this host offers no cpu controller")
    with tried("sqlite", cpu__quota="5%", cpu__weight=50) as trial:
        assert trial.value("cpu.quota") == "5%"
        assert trial.value("cpu.weight") == "50"
        held_back = trial.exercised("cpu.quota")
        assert int(held_back.split()[3]) > 0, held_back


def test_small_pages_are_proved_as_well() -> None:
    with tried("sqlite", memory__huge_pages="off", memory__malloc="default", cpu__quota="max") as trial:
        assert trial.value("memory.huge_pages") == "off"
        assert trial.value("memory.malloc") == "default"
        assert trial.value("cpu.quota") == "max"


def test_a_tunable_that_the_loader_drops_is_not_in_effect() -> None:
    with tried("sqlite", memory__malloc="glibc.malloc.nonsense=2") as trial:
        evidence = trial.evidence["memory.malloc"]
        assert not evidence.in_effect
        assert "unknown to its loader" in evidence.reason


@needs_root
@pytest.mark.parametrize("mode", ["never", "madvise", "always"])
def test_transparent_huge_pages(mode: str) -> None:
    with tried("sqlite", memory__thp=mode) as trial:
        assert trial.value("memory.thp") == mode


@needs_root
def test_a_server_that_forbids_itself_huge_pages_says_so() -> None:
    with tried("mariadb", memory__thp="always") as trial:
        evidence = trial.evidence["memory.thp"]
        status = Path(f"/proc/{trial.running.server.process_ids[0]}/status").read_text()
        allows = "THP_enabled:\t1" in status
        assert allows or "THP_enabled:\t0" in status
        assert evidence.in_effect is allows
        assert ("disables huge pages for its own process" in evidence.reason) is not allows


def test_a_numa_node() -> None:
    with tried("sqlite", cpu__node=0) as trial:
        cpus = Path("/sys/devices/system/node/node0/cpulist").read_text().strip()
        assert trial.value("cpu.node") == f"bind:0 on CPU {cpus}"


def test_an_embedded_engine_shares_its_drivers_cpus() -> None:
    with pytest.raises(Blocked, match="share their CPUs"), tried("sqlite", cpu__driver="0"):
        pass


def test_data_in_a_folder_need_no_right() -> None:
    levels = {"storage__device": "disk", "storage__filesystem": "host", "storage__mount": "defaults"}
    with tried("sqlite", **levels, storage__page_cache="keep") as trial:
        assert trial.value("storage.device") == "disk"
        assert trial.evidence["storage.filesystem"].in_effect
        assert trial.value("storage.page_cache") == "keep"
        assert trial.reset["way"] in ("copy", "reflink")


@needs_root
@pytest.mark.parametrize("filesystem", [*MKFS, "raw", "tmpfs"])
def test_each_file_system_carries_the_data(filesystem: str) -> None:
    mount = "noatime" if filesystem != "raw" else "defaults"
    levels = {"storage__filesystem": filesystem, "storage__mount": mount}
    require_file_system(filesystem)
    with ExitStack() as stack:
        with skipping_blocked():
            trial = stack.enter_context(tried("firebird", **levels))
        assert trial.value("storage.filesystem") == filesystem
        assert trial.evidence["storage.mount"].in_effect
        assert trial.reset["verified"] is True
        if filesystem != "tmpfs":
            written = trial.exercised("storage.filesystem")
            assert float(written.split()[0]) > 0, written


@needs_root
def test_a_file_system_as_its_maker_makes_it_is_a_level() -> None:
    with tried("firebird", storage__filesystem="ext4", storage__mkfs="defaults") as trial:
        assert trial.value("storage.mkfs") == "defaults"
    with tried("firebird", storage__filesystem="host", storage__mkfs="defaults") as trial:
        assert trial.running.setup.volume is None


@needs_root
def test_an_empty_page_cache_needs_no_volume() -> None:
    with tried("sqlite", storage__page_cache="drop") as trial:
        assert trial.value("storage.page_cache") == "drop"
        assert trial.reset["way"] in ("copy", "reflink")


@needs_root
def test_the_queue_of_the_device_that_carries_the_data() -> None:
    with tried(
        "firebird",
        storage__device="loop",
        storage__filesystem="ext4",
        storage__mkfs="-b 4096 -O '^has_journal'",
        storage__mount="sync,noatime,barrier=0",
        storage__scheduler="mq-deadline",
        storage__read_ahead=64,
        storage__size="400M",
        storage__page_cache="drop",
    ) as trial:
        assert "direct I/O on" in trial.value("storage.device")
        assert trial.value("storage.scheduler") == "mq-deadline"
        assert trial.value("storage.read_ahead") == "64"
        assert trial.value("storage.size") == f"{400 << 20} bytes"
        assert trial.value("storage.mkfs") == "-b 4096 -O '^has_journal'"
        assert {"sync", "noatime"} <= set(trial.value("storage.mount").split(","))
        assert trial.value("storage.page_cache") == "drop"


@needs_root
def test_a_ram_disk_lies_in_memory() -> None:
    with tried("firebird", storage__device="ram", storage__filesystem="ext2") as trial:
        assert "on tmpfs" in trial.value("storage.device")


@needs_root
def test_a_named_device_is_used_when_it_was_allowed(home: Path) -> None:
    with loop_device(home / "named.img", 700 << 20) as device:
        with pytest.raises(Blocked, match="not allowed"), tried("firebird", storage__device=str(device)):
            pass
        allowed = Allowed(devices=frozenset({device}))
        with tried("firebird", allowed, storage__device=str(device), storage__filesystem="raw") as trial:
            assert trial.value("storage.device") == str(device)
            assert trial.value("storage.filesystem") == "raw"
            assert trial.reset["way"] == "image to device"
        with tried("firebird", allowed, storage__device=str(device), storage__filesystem="ext4") as trial:
            assert trial.value("storage.filesystem") == "ext4"
        # What Dyno left there is no obstacle.
        with tried("firebird", allowed, storage__device=str(device), storage__filesystem="ext4") as trial:
            assert trial.value("storage.filesystem") == "ext4"


@needs_root
@pytest.mark.parametrize("state", ["somebody's data", "somebody's dyno", "mounted", "too small"])
def test_a_named_device_is_refused_with_the_reason(home: Path, state: str) -> None:
    size_bytes = (8 if state == "too small" else 700) << 20
    with loop_device(home / f"{state}.img", size_bytes) as device:
        allowed = Allowed(devices=frozenset({device}))
        point = home / "point"
        point.mkdir(exist_ok=True)
        if state != "too small":
            label = "dyno" if "dyno" in state else "precious"
            subprocess.run(["mkfs.ext4", "-q", "-L", label, device], check=True)
        if state == "mounted":
            subprocess.run(["mount", device, point], check=True)
        said = {
            "somebody's data": "it holds ext4 precious",
            "somebody's dyno": "it holds ext4 dyno",
            "mounted": "in use",
            "too small": "has 8 MiB, the volume needs",
        }[state]
        try:
            with pytest.raises(Blocked, match=said), tried("firebird", allowed, storage__device=str(device)):
                pass
        finally:
            if state == "mounted":
                subprocess.run(["umount", point], check=True)


class loop_device:  # noqa: N801  reads as what it gives
    """A loop device that stands for a disk of the user's."""

    def __init__(self, backing: Path, size_bytes: int) -> None:
        self._backing, self._size_bytes = backing, size_bytes

    def __enter__(self) -> Path:
        with self._backing.open("wb") as file:
            file.truncate(self._size_bytes)
        shown = subprocess.run(
            ["losetup", "--find", "--show", self._backing], capture_output=True, text=True, check=True
        )
        self._device = Path(shown.stdout.strip())
        return self._device

    def __exit__(self, *_: object) -> None:
        subprocess.run(["losetup", "--detach", self._device], check=True)
        self._backing.unlink()


@needs_root
@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"storage__filesystem": "ext4", "storage__mount": "nonsense"}, "could not be mounted with nonsense"),
        ({"storage__filesystem": "xfs", "storage__mount": "data=journal"}, "could not be mounted with"),
        ({"storage__filesystem": "ext4", "storage__scheduler": "cfq"}, "has no scheduler 'cfq'"),
        ({"storage__filesystem": "tmpfs", "storage__scheduler": "bfq"}, "has no scheduler 'bfq'"),
        ({"storage__filesystem": "ext4", "storage__mkfs": "-b 3"}, "mkfs.ext4 -b 3 failed"),
        ({"storage__filesystem": "raw", "storage__mount": "sync"}, "a raw device is not mounted"),
        ({"storage__filesystem": "tmpfs", "storage__mkfs": "-x"}, "nothing is made with mkfs"),
        ({"storage__filesystem": "xfs", "storage__size": "8M"}, r"mkfs\.xfs failed: (?!.*Usage)"),
        ({"storage__filesystem": "host", "storage__size": "8M"}, "storage.size = 8M needs a volume"),
        ({"storage__filesystem": "ext4", "storage__size": "8M"}, "do not fit on a volume of 8 MiB"),
        ({"storage__filesystem": "raw", "storage__size": "1M"}, "do not fit on a volume of 1 MiB"),
        ({"storage__filesystem": "tmpfs", "storage__size": "1M"}, "do not fit into a tmpfs"),
        ({"cpu__server": "0-4095"}, "not there or not allowed"),
        ({"cpu__node": 7}, "no NUMA node 7"),
    ],
)
def test_what_cannot_be_put_in_is_blocked_with_who_refused(levels: dict[str, Level], said: str) -> None:
    require_file_system(str(levels.get("storage__filesystem", "host")))
    with pytest.raises(Blocked, match=said) as caught, tried("firebird", **levels):
        pass
    assert caught.value.hint


@needs_root
def test_an_option_that_is_taken_and_ignored_is_not_in_effect() -> None:
    """`orlov` was an allocator of ext3's; ext4 still takes the word, and does nothing."""
    with tried("firebird", storage__filesystem="ext4", storage__mount="orlov") as trial:
        evidence = trial.evidence["storage.mount"]
        assert not evidence.in_effect
        assert "took orlov and does not show it as active" in evidence.reason


@needs_root
def test_more_huge_pages_than_memory() -> None:
    levels: dict[str, Level] = {"config__innodb_buffer_pool_size": "4096G", "memory__huge_pages": "2M"}
    with pytest.raises(Blocked, match="MiB of memory are available"), tried("mariadb", **levels):
        pass


@needs_root
def test_pages_of_a_size_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.host.fingerprint.HUGE_PAGES", HUGE_PAGES / "nowhere")
    with pytest.raises(Blocked, match="no pages of 2M"), tried("mariadb", memory__huge_pages="2M"):
        pass


@needs_root
def test_a_volume_that_fills_up_is_an_error_of_the_server_and_no_more() -> None:
    with tried("mariadb", storage__filesystem="ext4", storage__size="512M") as trial:
        with pytest.raises(DynoError, match=r"InnoDB|full"):
            trial.running.ask("CREATE TABLE filled AS SELECT REPEAT('x', 1000000) FROM seq_1_to_1000")
        assert trial.running.server.alive()
