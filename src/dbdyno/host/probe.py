"""The probe: what this host offers, found by doing it, never by the presence of a header, a file or a name.

Each finding says yes, or no with who refused and what would change that. Whatever is touched goes through the
journal and is restored before the probe ends.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path

from dbdyno.errors import Blocked, DynoError
from dbdyno.host import cgroups, kernel_files, kernel_values, paths, perf
from dbdyno.host.fingerprint import (
    ALLOCATORS,
    HUGE_PAGES,
    PAGE_BYTES,
    THP_MODE,
    find_library,
    library_of,
    pod_seen,
)
from dbdyno.host.journal import Journal
from dbdyno.host.process import HugePageFlags, limit_huge_pages
from dbdyno.host.volumes import loop, mounts
from dbdyno.host.volumes.volume import MKFS, SMALLEST_BYTES, VolumeSpecification, make_file_system

PROGRAM = "int main(void) { return 42; }\n"
"""What a compiler must turn into a program that runs and says 42."""

COMPILERS = ("gcc", "clang")
BURN_S = 0.3
MAP_HUGETLB, MAP_HUGE_SHIFT = 0x40000, 26
MADV_HUGEPAGE = 14


@dataclass(frozen=True)
class ProbeFinding:
    """One line of the probe. `answer` is yes, no, or a value; `detail` says what was done and seen."""

    group: str
    name: str
    answer: str
    detail: str = ""
    remedy: str = ""


def probe(journal: Journal, io_uring_refusal: str) -> Iterator[ProbeFinding]:
    """Every finding, in the order in which people ask. Takes a few seconds; says what needs root.

    `io_uring_refusal` is why the driver cannot use io_uring here; empty when it can.
    """
    found = []
    for group, examine in _probes(io_uring_refusal).items():
        for line in examine(journal):
            found.append(ProbeFinding(group, *line))
            yield found[-1]
    if seen := pod_seen():
        for line in _pod(seen, {finding.name: finding.answer for finding in found}):
            yield ProbeFinding("pod", *line)


_Line = tuple[str, str, str, str]


def _yes(name: str, detail: str) -> _Line:
    return name, "yes", detail, ""


def _no(name: str, why: str, remedy: str = "") -> _Line:
    return name, "no", why, remedy


def _doing(name: str, act: Callable[[], str]) -> _Line:
    """Does it, and tells what came of it. `act` returns what was seen, or raises."""
    try:
        return _yes(name, act())
    except DynoError as error:
        return _no(name, error.message, error.hint)
    except OSError as error:
        return _no(name, error.strerror or str(error), "")


def _privileges(_journal: Journal) -> Iterator[_Line]:
    root = os.geteuid() == 0
    yield (
        "user",
        "root" if root else f"uid {os.geteuid()}",
        "",
        "" if root else "levels that touch the host need root",
    )
    yield _in_child("mount namespace", _enter_namespace, "run dyno as root, or with CAP_SYS_ADMIN")


def _enter_namespace() -> str:
    mounts.enter_private_namespace("probe")
    return "a process moved into one of its own"


def _in_child(name: str, act: Callable[[], str], remedy: str) -> _Line:
    """Does in a child what cannot be undone in this process; the child tells by a pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens, the child must not go on with its parent's work.
        try:
            line = _doing(name, act)
            os.write(writer, "\0".join(line[1:3]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer, _, detail = pipe.read().decode().partition("\0")
    _, status = os.waitpid(child, 0)
    if not answer:
        return _no(name, f"the child that tried it ended with status {status}", remedy)
    return (name, answer, detail, "" if answer == "yes" else remedy)


def _cpu(_journal: Journal) -> Iterator[_Line]:
    allowed = sorted(os.sched_getaffinity(0))
    yield "cores", str(len(allowed)), f"CPUs {', '.join(map(str, allowed))} may be used", ""
    control = Path("/sys/devices/system/cpu/smt/control")
    yield "SMT", kernel_files.text_or_none(control) or "unknown", str(control), ""
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))
    yield "NUMA nodes", str(nodes or 1), "", ""
    governors = sorted(Path("/sys/devices/system/cpu/cpufreq").glob("policy*/scaling_governor"))
    if governors:
        found = ", ".join(sorted({kernel_values.read(path) for path in governors}))
        yield "governor", found, f"{len(governors)} cpufreq policies", ""
    else:
        yield _no("governor", "no cpufreq here: a hypervisor or firmware sets the clock", "use bare metal")
    yield _frequency()
    yield _steal()


def _frequency() -> _Line:
    """Cycles that really passed while one thread worked, over the CPU time it had."""
    refusal = perf.counts("cycles")
    if refusal:
        return _no("frequency", f"cannot be measured: {refusal}")
    with perf.counting("cycles") as cycles:
        began = time.thread_time()
        _burn()
        spent_s = time.thread_time() - began
        passed = cycles()
    return (
        "frequency",
        f"{passed / spent_s / 1e9:.2f} GHz",
        "measured: cycles over CPU time of one busy thread",
        "",
    )


def _steal() -> _Line:
    before, began = _stat_ticks(), time.monotonic()
    _burn()
    after, lasted_s = _stat_ticks(), time.monotonic() - began
    if before is None or after is None:
        return "steal", "unknown", "/proc/stat cannot be read here", ""
    gained = after - before
    share = gained / os.sysconf("SC_CLK_TCK") / lasted_s / (os.cpu_count() or 1)
    return "steal", f"{share:.1%}", f"taken by the hypervisor over {lasted_s:.1f} s of work", ""


def _burn() -> None:
    """Keeps one CPU busy for a moment."""
    deadline = time.monotonic() + BURN_S
    while time.monotonic() < deadline:
        sum(range(10_000))


def _stat_ticks() -> int | None:
    """CPU time that the hypervisor took since the start; None where the kernel does not tell it."""
    fields = (kernel_files.text_or_none("/proc/stat") or "").partition("\n")[0].split()
    return int(fields[8]) if len(fields) > 8 else None


def _memory(journal: Journal) -> Iterator[_Line]:
    total = re.search(r"MemTotal:\s+(\d+)", kernel_files.text_or_none("/proc/meminfo") or "")
    yield "memory", f"{int(total[1]) / 2**20:.1f} GiB" if total else "unknown", "", ""
    yield "page size", f"{mmap.PAGESIZE >> 10} KiB", "", ""
    for level, page_bytes in PAGE_BYTES.items():
        yield _doing(f"explicit huge pages of {level}", partial(_huge_page, journal, page_bytes))
    mode = kernel_values.read(THP_MODE) if kernel_files.text_or_none(THP_MODE) else "none"
    yield "transparent huge pages, host", mode, str(THP_MODE), ""
    yield _in_child("transparent huge pages, advised", _advised_page, f"echo madvise > {THP_MODE}, as root")
    for pages, remedy in ((HugePageFlags.NEVER, "Linux 3.15"), (HugePageFlags.ADVISED, "Linux 6.18")):
        name = f"transparent huge pages, process limit {pages.name.lower()}"
        yield _in_child(name, partial(_limit, pages), remedy)


def _huge_page(journal: Journal, page_bytes: int) -> str:
    """Reserves one page, maps it, writes to it, and gives it back."""
    folder = HUGE_PAGES / f"hugepages-{page_bytes >> 10}kB"
    if not folder.is_dir():
        raise Blocked("memory", "this CPU or kernel has none of that size")
    with journal.scope():
        if int(kernel_files.text(folder / "free_hugepages")) == 0:
            wanted = int(kernel_files.text(folder / "nr_hugepages")) + 1
            kernel_values.set_value(journal, folder / "nr_hugepages", str(wanted), "memory.huge_pages")
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB
        flags |= (page_bytes.bit_length() - 1) << MAP_HUGE_SHIFT
        with mmap.mmap(-1, page_bytes, flags=flags) as page:
            page[0] = 1
    return "one was reserved, mapped and written"


def _advised_page() -> str:
    with mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        area.madvise(MADV_HUGEPAGE)
        area.write(b"\1" * (8 << 20))
        rollup = kernel_files.text("/proc/self/smaps_rollup")
    huge = re.search(r"AnonHugePages:\s+(\d+)", rollup)
    if not huge or not int(huge[1]):
        raise Blocked("memory", "8 MiB were advised and written, and none of it is on huge pages")
    return f"{int(huge[1])} KiB of 8 MiB written are on huge pages"


def _limit(pages: HugePageFlags) -> str:
    limit_huge_pages(pages)()
    return "a process took the limit (prctl)"


def _allocators(_journal: Journal) -> Iterator[_Line]:
    for name in ALLOCATORS:
        library = find_library(name)
        if library is None:
            file, installs = library_of(name)
            yield _no(name, f"{file} is not installed", installs)
            continue
        loaded = subprocess.run(
            ["cat", "/proc/self/maps"],
            env={"LD_PRELOAD": str(library), "PATH": os.defpath},
            capture_output=True,
            text=True,
            check=False,
        )
        if str(library) in loaded.stdout:
            yield _yes(name, f"{library}: preloaded into a program, which ran")
        else:
            said = loaded.stderr.strip()[:120]
            yield _no(name, f"{library} is installed, but could not be preloaded: {said}")


def _storage(journal: Journal) -> Iterator[_Line]:
    with _scratch(journal) as scratch:
        yield _doing("direct I/O", lambda: _direct_io(scratch))
        yield _doing("reflinks", lambda: _reflink(scratch))
        yield _doing("loop device", lambda: _loop_device(journal, scratch))
        for filesystem in (*MKFS, "tmpfs"):
            yield _doing(filesystem, partial(_file_system, journal, scratch, filesystem))
        yield from _schedulers(journal, scratch)


@contextmanager
def _scratch(journal: Journal) -> Iterator[Path]:
    folder = paths.cache() / f"probe-{os.getpid()}"
    with journal.scope():
        journal.note_tree(folder)
        folder.mkdir(parents=True)
        yield folder


def _direct_io(scratch: Path) -> str:
    path = scratch / "direct"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as block:
        os.write(descriptor, block)
    os.close(descriptor)
    return f"4 KiB written past the page cache on {mounts.mounted_at(scratch).filesystem}"


def _reflink(scratch: Path) -> str:
    (scratch / "origin").write_bytes(b"x" * 65536)
    done = subprocess.run(
        ["cp", "--reflink=always", scratch / "origin", scratch / "shared"], capture_output=True, check=False
    )
    if done.returncode != 0:
        kind = mounts.mounted_at(scratch).filesystem
        raise Blocked(
            "storage", f"{kind} shares no extents", "point XDG_CACHE_HOME at xfs or btrfs for fast resets"
        )
    return "a file was cloned without copying"


def _loop_device(journal: Journal, scratch: Path) -> str:
    with journal.scope():
        device = loop.attach(journal, _image(scratch, "loop"), "storage.device")
        direct = device.direct_io
        device.close()
    return f"{device.path} was attached to a file, direct I/O {'on' if direct else 'off'}, and detached"


def _file_system(journal: Journal, scratch: Path, kind: str) -> str:
    """Made, mounted, written to, read back, unmounted."""
    point = scratch / kind
    with journal.scope():
        if kind == "tmpfs":
            mounts.mount(journal, kind, kind, point, (), f"storage.{kind}")
        else:
            image = _image(scratch, f"{kind}.img")
            make_file_system(image, VolumeSpecification(filesystem=kind))
            device = loop.attach(journal, image, "storage.device")
            try:
                mounts.mount(journal, kind, str(device.path), point, (), f"storage.{kind}")
            finally:
                device.close()
        (point / "file").write_bytes(b"dyno")
        seen = mounts.mounted_at(point / "file").filesystem
        if seen != kind or (point / "file").read_bytes() != b"dyno":
            raise Blocked("storage", f"mounted as {seen}")
    return "made, mounted, written and unmounted"


def _image(scratch: Path, name: str) -> Path:
    path = scratch / name
    with path.open("wb") as file:
        file.truncate(SMALLEST_BYTES)
    return path


def _schedulers(journal: Journal, scratch: Path) -> Iterator[_Line]:
    """Each scheduler that a loop device offers is chosen and read back; disks are only read."""
    for disk in sorted(Path("/sys/block").glob("*/queue/scheduler")):
        name = disk.parts[3]
        if not name.startswith(("loop", "ram", "zram")):
            offered = ", ".join(kernel_values.choices(disk))
            yield f"scheduler of {name}", kernel_values.read(disk), f"it offers {offered}", ""
    try:
        with journal.scope():
            device = loop.attach(journal, _image(scratch, "queue"), "storage.scheduler")
            path = device.sysfs / "queue" / "scheduler"
            # Put back before the device is free, because it hands its scheduler to whoever is the next.
            with journal.scope():
                taken = [
                    name
                    for name in kernel_values.choices(path)
                    if kernel_values.set_value(journal, path, name, "storage.scheduler") == name
                ]
            device.close()
        yield "schedulers of a volume", ", ".join(taken), "each was chosen and read back", ""
    except (Blocked, kernel_files.UnreadableFile) as refused:
        yield _no("schedulers of a volume", refused.message, refused.hint)


def _kernel(io_uring_refusal: str, journal: Journal) -> Iterator[_Line]:
    yield _doing("control group with a CPU quota", lambda: _quota(journal))
    for name in perf.EVENTS:
        refusal = perf.counts(name)
        yield (
            _no(f"counter {name}", refusal) if refusal else _yes(f"counter {name}", "counted a busy child")
        )
    used = _yes("io_uring", "a ring was set up and used")
    yield _no("io_uring", io_uring_refusal) if io_uring_refusal else used


def _quota(journal: Journal) -> str:
    """A child that works in a group of 20 % must be held back."""
    found = cgroups.hierarchy("cpu")
    values = {"cpu.max": "20000 100000"}
    if found is not None and found.version == 1:
        values = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}
    with journal.scope():
        group = cgroups.make(journal, "cpu", f"probe-{os.getpid()}", values, "cpu.quota")
        child = os.fork()
        if child == 0:
            try:
                (group / "cgroup.procs").write_text("0")
                _burn()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        throttled = re.search(r"nr_throttled (\d+)", kernel_files.text(group / "cpu.stat"))
    if not throttled or not int(throttled[1]):
        raise Blocked("cpu.quota", "the quota was accepted and had no effect")
    assert found is not None
    return f"version {found.version}: a busy child was held back {throttled[1]} times"


def _compilers(journal: Journal) -> Iterator[_Line]:
    """A compiler counts once a program that it built and linked has run."""
    with _scratch(journal) as scratch:
        for name in COMPILERS:
            for command in [name, *_versions(name)]:
                yield _doing(command, partial(_build_and_run, scratch, command))


def _versions(compiler: str) -> list[str]:
    """The compilers whose names carry a version (`gcc-12`) on this user's path."""
    # Not Path.glob, which fails at a folder of the path that this user may not read.
    pattern = f"{compiler}-[0-9]*"
    found = (name for folder in os.get_exec_path() for name in glob(pattern, root_dir=folder))  # noqa: PTH207
    return sorted({name for name in found if re.fullmatch(rf"{compiler}-\d+", name)})


def _build_and_run(scratch: Path, compiler: str) -> str:
    if shutil.which(compiler) is None:
        raise Blocked("build", "not installed", f"apt-get install {compiler}")
    (scratch / "main.c").write_text(PROGRAM)
    program = scratch / f"{compiler}.out"
    built = subprocess.run(
        [compiler, "-O2", "-o", program, scratch / "main.c"], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        said = built.stderr.strip().splitlines() or ["it said nothing"]
        raise Blocked(
            "build", f"it does not link a program: {said[-1][:160]}", "install its C library's headers"
        )
    if subprocess.run([program], check=False).returncode != 42:
        raise Blocked("build", "what it built does not run")
    version = subprocess.run(
        [compiler, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=False
    )
    return f"version {version.stdout.strip()}: built, linked and ran a program"


POD_LACKS = (
    ("mount namespace", "storage", "securityContext: {privileged: true}"),
    ("explicit huge pages of 2 MiB", "memory.huge_pages", "a limit of hugepages-2Mi"),
    ("control group with a CPU quota", "cpu.quota, cpu.weight, fault", "securityContext: {privileged: true}"),
    ("counter cycles", "hardware counters", "a seccompProfile that lets perf_event_open pass"),
    ("io_uring", "the driver's io_uring", "a seccompProfile that lets io_uring_setup pass"),
)
"""A finding without which a pod lacks some levels, and what gives them in the manifest of a pod."""
POD_READS = (
    (str(THP_MODE), "memory.thp"),
    ("/sys/devices/system/cpu/smt/control", "cpu.smt"),
    ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "cpu.governor"),
)
"""Values of the node, which a pod may not be let write, and the levels that do."""


def _pod(seen: str, answers: Mapping[str, str]) -> Iterator[_Line]:
    """What a pod of Kubernetes has of its node, by the `answers` of all other findings."""
    yield _yes("Kubernetes", seen)
    mine, all_of_node = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    pinned = f"{mine} of the node's {all_of_node} CPUs may be used"
    static = "whole CPUs as requests and limits, on a node whose kubelet has cpuManagerPolicy: static"
    yield _yes("CPUs of its own", pinned) if mine < all_of_node else _no("CPUs of its own", pinned, static)
    for finding, levels, remedy in POD_LACKS:
        if answers.get(finding) == "no":
            yield _no(levels, f"because of {finding}, above", remedy)
    for path, level in POD_READS:
        if Path(path).exists() and not os.access(path, os.W_OK):
            yield _no(level, f"{path} is read-only here", "securityContext: {privileged: true}")


def _probes(io_uring_refusal: str) -> dict[str, Callable[[Journal], Iterator[_Line]]]:
    return {
        "privileges": _privileges,
        "cpu": _cpu,
        "memory": _memory,
        "allocators": _allocators,
        "storage": _storage,
        "kernel": partial(_kernel, io_uring_refusal),
        "compilers": _compilers,
    }
