"""The fingerprint: what this machine is, so that a reader of a record knows what was measured; and the shared
libraries that it has, and that a process holds. Reads only."""

from __future__ import annotations

import os
import platform
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from dbdyno import __version__
from dbdyno.frozen import Frozen
from dbdyno.host import kernel_files, paths
from dbdyno.host.kernel_files import by_psutil
from dbdyno.host.kernel_files import text_or_none as _read
from dbdyno.host.launch import servers_text
from dbdyno.host.room import memory_bytes


class HostFacts(Frozen):
    """Facts by name. None stands for what could not be read. What was not looked at is left out of what is
    written, and facts that only another version knows stay as they are."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _as_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}


class Cpu(HostFacts):
    """The CPUs. `cache_bytes` is the size of the cache that is farthest from the first core."""

    model: str | None = None
    usable_cores: int | None = None
    online_cores: int | None = None
    threads_per_core: int | None = None
    frequency_mhz: float | None = None
    governor: str | None = None
    numa_nodes: int | None = None
    cache_bytes: int | None = None


class Memory(HostFacts):
    """Memory, its pages and swap."""

    total_bytes: int | None = None
    swap_bytes: int | None = None
    page_bytes: int | None = None
    huge_page_bytes: int | None = None
    transparent_huge_pages: str | None = None


class DataPlace(HostFacts):
    """The file system that holds the data of every trial."""

    filesystem: str | None = None
    device: str | None = None
    options: str | None = None
    free_bytes: int | None = None


class Disk(HostFacts):
    """A block device."""

    name: str | None = None
    model: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    scheduler: str | None = None


class Host(HostFacts):
    """What a machine is: its fingerprint, or the part of it that tells it from others."""

    name: str | None = None
    cpu: Cpu = Field(default_factory=Cpu)
    memory: Memory = Field(default_factory=Memory)
    kernel: str | None = None
    system: str | None = None
    virtualisation: str | None = None
    data: DataPlace = Field(default_factory=DataPlace)
    disks: tuple[Disk, ...] = ()
    privileges: str | None = None
    servers: str | None = None
    dyno: str | None = None
    python: str | None = None


class Installed(HostFacts):
    """The engine that a run measured, and the application in front of it. Engines tell more of their
    builds."""

    engine: str = ""
    version: str = ""
    origin: str = ""
    digest: str = ""
    application: str | None = None


CPU = Path("/sys/devices/system/cpu")
TRANSPARENT_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def fingerprint() -> Host:
    """What this machine is. A part that cannot be read is None."""
    return Host(
        name=platform.node(),
        cpu=_cpu(),
        memory=_memory(),
        kernel=platform.release(),
        system=_system(),
        virtualisation=_virtualisation(),
        data=_data(paths.cache()),
        disks=_disks(),
        privileges="root" if os.geteuid() == 0 else f"user {os.geteuid()}",
        servers=servers_text(),
        dyno=__version__,
        python=platform.python_version(),
    )


def host_identity() -> Host:
    """What tells this host from others, by the fingerprint's names. Makes no folder."""
    return Host(
        name=platform.node(),
        cpu=_cpu(),
        kernel=platform.release(),
        virtualisation=_virtualisation(),
    )


def core_count() -> int:
    """How many CPUs this process may run on."""
    return len(usable_cpus())


def usable_cpus() -> list[int]:
    """The CPUs that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def _cpu() -> Cpu:
    info = _read("/proc/cpuinfo") or ""
    fields = dict(line.split(":", 1) for line in info.partition("\n\n")[0].splitlines() if ":" in line)
    by_name = {name.strip(): value.strip() for name, value in fields.items()}
    frequency = by_name.get("cpu MHz")
    return Cpu(
        model=by_name.get("model name") or platform.machine(),
        usable_cores=core_count(),
        online_cores=os.cpu_count(),
        threads_per_core=_threads_per_core(),
        frequency_mhz=float(frequency) if frequency else None,
        governor=_read(CPU / "cpu0/cpufreq/scaling_governor"),
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        cache_bytes=_last_cache_bytes(),
    )


def _threads_per_core() -> int | None:
    siblings = _read(CPU / "cpu0/topology/thread_siblings_list")
    if siblings is None:
        return None
    ranges = (part.split("-") for part in siblings.split(","))
    return sum(int(bounds[-1]) - int(bounds[0]) + 1 for bounds in ranges)


def _last_cache_bytes() -> int | None:
    """The size of the cache that is farthest from the first core (`32768K` in sysfs)."""
    sizes = {
        int(_read(index / "level") or 0): _read(index / "size")
        for index in (CPU / "cpu0/cache").glob("index[0-9]*")
    }
    last = sizes[max(sizes)] if sizes else None
    return int(last.removesuffix("K")) * 1024 if last and last.endswith("K") else None


def _memory() -> Memory:
    modes = _read(TRANSPARENT_HUGE_PAGES)
    return Memory(
        total_bytes=memory_bytes(),
        swap_bytes=by_psutil(psutil.swap_memory, "/proc/meminfo").total,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        huge_page_bytes=_meminfo_bytes("Hugepagesize"),
        transparent_huge_pages=modes.partition("[")[2].partition("]")[0] if modes else None,
    )


def _meminfo_bytes(name: str) -> int | None:
    for line in (_read("/proc/meminfo") or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def pod_seen() -> str:
    """By what this process is known to run in a pod of Kubernetes; empty where it does not."""
    if "kubepods" in (_read("/proc/self/cgroup") or ""):
        return "its control group is one of kubepods"
    if "/kubelet/pods/" in (_read("/proc/self/mountinfo") or ""):
        return "the kubelet mounted files of a pod here"
    return f"{SERVICE_ACCOUNT} is there" if Path(SERVICE_ACCOUNT).is_dir() else ""


def _virtualisation() -> str | None:
    """The hypervisor or container as far as the kernel tells without privilege."""
    contained = Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or bool(pod_seen())
    vendor = _read("/sys/class/dmi/id/sys_vendor")
    hypervisor = " hypervisor" in (_read("/proc/cpuinfo") or "").partition("flags")[2].partition("\n")[0]
    machine = f"virtual machine ({vendor or 'vendor not told'})" if hypervisor else ""
    return " in a ".join(filter(None, ["container" if contained else "", machine])) or None


def _data(folder: Path) -> DataPlace:
    """The file system that holds the data of every trial."""
    mounts = [
        mount
        for mount in by_psutil(partial(psutil.disk_partitions, all=True), "/proc/self/mounts")
        if folder.resolve().is_relative_to(mount.mountpoint)
    ]
    mount = max(mounts, key=lambda each: len(each.mountpoint), default=None)
    return DataPlace(
        filesystem=mount.fstype if mount else None,
        device=mount.device if mount else None,
        options=mount.opts if mount else None,
        free_bytes=psutil.disk_usage(str(folder)).free,
    )


def _disks() -> tuple[Disk, ...]:
    folders = sorted(Path("/sys/block").glob("*")) if Path("/sys/block").is_dir() else []
    return tuple(_disk(folder) for folder in folders if not folder.name.startswith(("loop", "ram", "zram")))


def _disk(folder: Path) -> Disk:
    sectors, rotates = _read(folder / "size"), _read(folder / "queue/rotational")
    schedulers = _read(folder / "queue/scheduler") or ""
    return Disk(
        name=folder.name,
        model=_read(folder / "device/model"),
        # The kernel counts in sectors of 512 bytes whatever the device's own are.
        size_bytes=int(sectors) * 512 if sectors else None,
        rotational=rotates == "1" if rotates else None,
        scheduler=schedulers.partition("[")[2].partition("]")[0] or schedulers or None,
    )


ALLOCATORS = {
    "jemalloc": (("libjemalloc.so.2", "libjemalloc2"),),
    "tcmalloc": (("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),),
    "mimalloc": (("libmimalloc.so.3", "libmimalloc3"), ("libmimalloc.so.2", "libmimalloc2.0")),
}
"""Each allocator's library and the package of the distribution that holds it, in its latest releases."""

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
THP_MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGES = Path("/sys/kernel/mm/hugepages")
NR_HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
"""How many huge pages of the default size are reserved."""
DEFAULT_SIZE = "2M"
PAGE_BYTES = {"2M": 2 << 20, "1G": 1 << 30}


def find_library(allocator: str) -> Path | None:
    """The allocator's library on this host; None when it is not installed."""
    return find(library_of(allocator)[0])


def library_of(allocator: str) -> tuple[str, str]:
    """The file name of the allocator's library, and what installs it: of that which is here, else of the
    latest."""
    latest, *older = ALLOCATORS[allocator]
    for file, package in (latest, *older):
        if find(file) is not None:
            return file, f"apt-get install {package}"
    or_older = "".join(f", or {package} on an older release" for _, package in older)
    return latest[0], f"apt-get install {latest[1]}{or_older}"


FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)


def find(name: str) -> Path | None:
    """The library of that file name on this host, links resolved; None when it is not installed."""
    paths = (folder / name for folder in _folders())
    return next((path.resolve() for path in paths if path.exists()), None)


def found(pattern: str) -> bool:
    """Whether this host has a library whose file name matches the pattern."""
    return any(any(folder.glob(pattern)) for folder in _folders())


def _folders() -> tuple[Path, ...]:
    machine = os.uname().machine
    return tuple(Path(folder.format(machine=machine)) for folder in FOLDERS)


def mapped(process_id: int) -> frozenset[Path]:
    """The files that a process has mapped into its memory; what was removed since is ` (deleted)` by name."""
    fields = (
        line.split(maxsplit=5)
        for line in kernel_files.text(f"/proc/{process_id}/maps", may_be_empty=True).splitlines()
    )
    return frozenset(Path(found[5]) for found in fields if len(found) == 6 and found[5].startswith("/"))
