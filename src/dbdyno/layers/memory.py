"""The memory layer: how much the server may have, allocator, transparent and explicit huge pages, malloc
tunables; each proved on the server's process or its control group."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.engines.engine import HugePageSettings as Wanted
from dbdyno.engines.values import size_bytes
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.host import cgroups, fingerprint, kernel_files, kernel_values
from dbdyno.host.process import HugePageFlags, can_do, limit_huge_pages, of_each
from dbdyno.host.room import require_memory
from dbdyno.layers.knob import ROOT, ROOT_OR_GROUP, Knob, Scope
from dbdyno.layers.layer import LayerOfKnobs, proof
from dbdyno.layers.setup import (
    CONTROL_GROUPS,
    REMOVED,
    Part,
    PartPlace,
    Request,
    RequestedChange,
    Running,
    Setup,
)
from dbdyno.records.record import Evidence, Reading

COUNT = "nr_hugepages"
NONE = "none"
SIZE = r"[1-9]\d{0,6}[MG]"
NOWHERE = "the server is in no group with a limit of Dyno's"
LIMITS = {1: "memory.limit_in_bytes", 2: "memory.max"}
SWAP_LIMITS = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
"""What a group of memory takes, by the version of control groups. That of version 1 limits memory and swap
together. A kernel without accounts of swap has neither."""
EVENTS = ("memory.events", "memory.failcnt")
"""What a memory group counts when its limit is met, the newer version first."""
UNLIMITED_BYTES = 1 << 60
"""Version 1 tells a limit that nobody set as a number near the largest."""
SPARE_SHARE = 1.05
"""An engine rounds each of its areas up to whole pages, so that it takes a little more than it says."""


@dataclass(frozen=True)
class Environment(Request):
    """One variable of the server's environment."""

    factor: str
    name: str
    value: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        return (Part(factor=self.factor, place=PartPlace.ENVIRONMENT, name=self.name, value=self.value),)

    def apply(self, setup: Setup) -> None:
        setup.launch.environment[self.name] = self.value


@dataclass(frozen=True)
class Preload(Request):
    """An allocator that the server's loader puts before the C library's."""

    allocator: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        """By its name alone, because the loader knows where a host's libraries are."""
        part = partial(Part, factor="memory.allocator")
        file, installs = fingerprint.library_of(self.allocator)
        return (
            part(place=PartPlace.ENVIRONMENT, name="LD_PRELOAD", value=file),
            part(place=PartPlace.BY_HAND, name=file, value=installs),
        )

    def require_here(self) -> None:
        self._library()

    def apply(self, setup: Setup) -> None:
        setup.launch.environment["LD_PRELOAD"] = str(self._library())

    def _library(self) -> Path:
        library = fingerprint.find_library(self.allocator)
        if library is None:
            file, installs = fingerprint.library_of(self.allocator)
            raise Blocked("memory.allocator", f"{file} is not installed", installs)
        return library


@dataclass(frozen=True)
class TransparentHugePages(Request):
    """A mode for the server: by a prctl of its process where that can, which may forbid what the host allows
    and never allow what the host forbids; else by the host's mode."""

    mode: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        """The host's mode, because no directive of a unit limits one server's pages."""
        return (
            Part(
                factor="memory.thp", place=PartPlace.KERNEL, name=str(fingerprint.THP_MODE), value=self.mode
            ),
        )

    def change(self) -> RequestedChange | None:
        if self.mode == "never":
            return None
        does = f"{fingerprint.THP_MODE} := {self.mode}"
        unless = ", unless a limit of the server's own process does" if self.mode == "madvise" else ""
        return RequestedChange("memory.thp", does + unless, places=(str(fingerprint.THP_MODE),))

    def apply(self, setup: Setup) -> None:
        if not fingerprint.THP_MODE.exists():
            raise Blocked(
                "memory.thp",
                "this kernel has no transparent huge pages",
                "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
            )
        host = kernel_values.read(fingerprint.THP_MODE)
        if host == self.mode:
            return
        launch = setup.launch
        if self.mode == "never":
            launch.before_exec = (*launch.before_exec, limit_huge_pages(HugePageFlags.NEVER))
        elif self.mode == "madvise" and host == "always" and can_do(limit_huge_pages(HugePageFlags.ADVISED)):
            launch.before_exec = (*launch.before_exec, limit_huge_pages(HugePageFlags.ADVISED))
        else:
            kernel_values.set_value(setup.journal, fingerprint.THP_MODE, self.mode, "memory.thp")


@dataclass(frozen=True)
class HugePages(Request):
    """Pages of one size reserved for the server's cache, and the engine's own setting to use them."""

    size: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        page_bytes = fingerprint.PAGE_BYTES[self.size]
        wanted = engine.settings.huge_pages(settings, page_bytes)
        if wanted is None:
            return ()
        part = partial(Part, factor="memory.huge_pages")
        pages = _pages_for(wanted, page_bytes)
        deed = f"{pages} pages of {self.size} held the measured cache: reserve as many as yours takes"
        path = (
            fingerprint.NR_HUGE_PAGES
            if self.size == fingerprint.DEFAULT_SIZE
            else _pages_folder(self.size) / COUNT
        )
        return (
            *(
                part(place=PartPlace.SETTING, name=name, value=level)
                for name, level in wanted.settings.items()
            ),
            part(place=PartPlace.KERNEL, name=str(path), value=pages),
            part(place=PartPlace.UNIT, name="LimitMEMLOCK", value="infinity"),
            part(place=PartPlace.BY_HAND, name="huge pages", value=deed),
        )

    def change(self) -> RequestedChange:
        path = _pages_folder(self.size) / COUNT
        return RequestedChange(
            "memory.huge_pages",
            f"{path} := enough {self.size} pages for the server's cache",
            places=(str(path),),
        )

    def apply(self, setup: Setup) -> None:
        page_bytes = fingerprint.PAGE_BYTES[self.size]
        wanted = setup.engine.settings.huge_pages(setup.settings, page_bytes)
        if wanted is None:
            reason = f"{setup.engine.title} cannot put its cache on explicit huge pages"
            raise Blocked("memory.huge_pages", reason, "vary memory.thp instead")
        setup.settings.update(wanted.settings)
        _reserve(self.size, _pages_for(wanted, page_bytes), setup)


@dataclass(frozen=True)
class MemoryLimit(Request):
    """A limit of the server's memory, page cache included, with no swap beyond it."""

    factor: str
    size: str

    def change(self) -> RequestedChange:
        told = f"a control group for the server, with {self.size} of memory"
        return RequestedChange(self.factor, told, REMOVED, CONTROL_GROUPS)

    def apply(self, setup: Setup) -> None:
        found = cgroups.hierarchy("memory")
        version = found.version if found else 2
        limit = str(size_bytes(self.size))
        group = setup.join_group("memory", {LIMITS[version]: limit}, self.factor)
        swap = SWAP_LIMITS[version]
        if (group / swap).is_file():
            cgroups.change(group, {swap: limit if version == 1 else "0"}, self.factor)


def ask_limit(factor: str, level: str, _engine: Engine) -> tuple[Request, ...]:
    return () if level == NONE else (MemoryLimit(factor, level),)


def group_readings(running: Running, files: Sequence[str]) -> list[Reading]:
    """What stands in the first of some files that a group has, for each group of Dyno's that every process of
    the server is in."""
    joined = [group for group in running.setup.own_groups if cgroups.holds(group, running.process_ids)]
    paths = [next((group / name for name in files if (group / name).is_file()), None) for group in joined]
    return [
        Reading(value=kernel_files.text(path, may_be_empty=True), source=str(path))
        for path in paths
        if path is not None
    ]


def prove_limit(factor: str, level: str, running: Running) -> Evidence:
    evidence = partial(proof, factor, level, accepted="the kernel took it without an error")
    found = group_readings(running, (LIMITS[2], LIMITS[1]))
    if level == NONE:
        limits = [one for one in found if one.value.isdigit() and int(one.value) < UNLIMITED_BYTES]
        reading = next(iter(limits), Reading(value=NONE, source=NOWHERE))
        return evidence(reading, not limits)
    reading = next(iter(found), Reading(value="no group", source="cgroup.procs"))
    in_effect = reading.value == str(size_bytes(level))
    swap = next(iter(group_readings(running, (SWAP_LIMITS[2], SWAP_LIMITS[1]))), None)
    if in_effect and swap is not None and swap.value not in ("0", reading.value):
        return evidence(Reading(value=f"{reading.value}, with swap", source=swap.source), False)
    return evidence(reading, in_effect)


def limit_met(running: Running) -> Reading | None:
    """How often the server met its limit of memory."""
    found = next(iter(group_readings(running, EVENTS)), None)
    return None if found is None else Reading(value=" ".join(found.value.split()), source=found.source)


def _prove_allocator(level: str, running: Running) -> Evidence:
    """What is mapped, not what was asked for: a preload that the loader ignored leaves no trace in the
    maps."""
    mapped = set[str]().union(*of_each(running.process_ids, _mapped_allocators))
    value = " and ".join(sorted(mapped)) or "libc"
    source = f"/proc/PID/maps of process {', '.join(map(str, running.process_ids))}"
    return _evidence("allocator", level, value, source, value == level)


def _mapped_allocators(process_id: int) -> set[str]:
    held = {path.name for path in fingerprint.mapped(process_id)}
    return {name for name in fingerprint.ALLOCATORS if any(one.startswith(f"lib{name}") for one in held)}


def _prove_thp(level: str, running: Running) -> Evidence:
    """The kernel itself says of each mapping whether it may stand on huge pages (THPeligible in smaps)."""
    found = set(of_each(running.process_ids, _thp_in_effect))
    huge_bytes = _rollup_bytes(running, "AnonHugePages")
    value = " and ".join(sorted(found))
    source = f"THP_enabled and THPeligible of the process's mappings; AnonHugePages {huge_bytes >> 20} MiB"
    # AnonHugePages is the second witness: none may exist under `never`.
    evidence = _evidence(
        "thp", level, value, source, value == level and not (level == "never" and huge_bytes)
    )
    if value == "never" and level != "never" and kernel_values.read(fingerprint.THP_MODE) != "never":
        # MariaDB does so once its buffers are allocated (MDEV-33279).
        own = "the server disables huge pages for its own process (THP_enabled: 0)"
        reason = f"the host allows {level}, but {own}"
        update = {"reason": reason, "remedy": "none in this server; vary memory.huge_pages instead"}
        return evidence.but(**update)
    return evidence


def _thp_in_effect(process_id: int) -> str:
    status = kernel_files.text(f"/proc/{process_id}/status")
    host = kernel_values.read(fingerprint.THP_MODE)
    if host == "never" or re.search(r"^THP_enabled:\s+0$", status, re.MULTILINE):
        return "never"
    # A limit to advised pages does not show in the status: under `always` the mappings themselves are asked.
    eligible = _unadvised_eligible(process_id) if host == "always" else []
    return "madvise" if host == "madvise" or (eligible and not any(eligible)) else "always"


def _unadvised_eligible(process_id: int) -> list[bool]:
    """Of each anonymous mapping that is large enough and was not advised, whether it may stand on huge pages.

    One of 4 MiB holds a whole page of 2 MiB wherever it begins.
    """
    found: list[bool] = []
    large = eligible = False
    for line in kernel_files.text(f"/proc/{process_id}/smaps", may_be_empty=True).splitlines():
        fields = line.split()
        if "-" in fields[0] and not fields[0].endswith(":"):
            first, last = (int(end, 16) for end in fields[0].split("-"))
            # Not the stack: it grows, and the kernel never puts a growing mapping on huge pages.
            large = fields[4] == "0" and last - first >= 4 << 20 and fields[-1] != "[stack]"
        elif fields[0] == "THPeligible:":
            eligible = fields[1] != "0"
        elif fields[0] == "VmFlags:" and large and not {"hg", "nh"} & set(fields):
            found.append(eligible)
    return found


def _pages_folder(size: str) -> Path:
    return fingerprint.HUGE_PAGES / f"hugepages-{fingerprint.PAGE_BYTES[size] >> 10}kB"


def _pages_for(wanted: Wanted, page_bytes: int) -> int:
    """How many pages an engine's cache takes, with what the engine rounds up."""
    return -(-int(wanted.size_bytes * SPARE_SHARE) // page_bytes)


def _reserve(level: str, pages: int, setup: Setup) -> None:
    """Reserves pages for the time of the trial. The kernel may grant fewer than asked when memory is
    fragmented."""
    page_bytes = fingerprint.PAGE_BYTES[level]
    folder = _pages_folder(level)
    if not folder.is_dir():
        raise Blocked(
            "memory.huge_pages",
            f"this kernel has no pages of {level}",
            "use a CPU and a kernel that offer them",
        )
    free = int(kernel_files.text(folder / "free_hugepages"))
    if free >= pages:
        return
    require_memory(pages * page_bytes, f"{pages} huge pages", "memory.huge_pages", "use a smaller cache")
    total = int(kernel_files.text(folder / COUNT)) + pages - free
    granted = kernel_values.set_value(setup.journal, folder / COUNT, str(total), "memory.huge_pages")
    if int(granted) < total:
        reason = (
            f"the kernel granted {granted} of {total} pages of {level}: free memory is short or fragmented"
        )
        raise Blocked(
            "memory.huge_pages", reason, "reserve them at boot (hugepages=N), or use a smaller cache"
        )


def _prove_huge_pages(level: str, running: Running) -> Evidence:
    """The page size of the mappings themselves: an engine that falls back to small pages says so
    nowhere else."""
    sizes: dict[str, int] = {}
    for mapped in of_each(running.process_ids, _mapped_by_page_size):
        for name, held_bytes in mapped.items():
            sizes[name] = sizes.get(name, 0) + held_bytes
    value = " and ".join(f"{size >> 20} MiB on {name}" for name, size in sorted(sizes.items())) or "off"
    in_effect = set(sizes) == (set() if level == "off" else {level})
    if in_effect and level != "off":
        # Each area falls back by itself: the log's buffer may stand on them, and the cache not.
        setup = running.setup
        wanted = setup.engine.settings.huge_pages(setup.settings, fingerprint.PAGE_BYTES[level])
        in_effect = wanted is not None and sizes[level] >= wanted.cache_bytes
    return _evidence(
        "huge_pages", level, value, "/proc/PID/smaps: KernelPageSize of every mapping", in_effect
    )


def _mapped_by_page_size(process_id: int) -> dict[str, int]:
    """Bytes mapped on pages larger than the kernel's own, by the page's size as a level is written."""
    sizes: dict[str, int] = {}
    names = {str(page_bytes >> 10): name for name, page_bytes in fingerprint.PAGE_BYTES.items()}
    mapped_kib = 0
    for line in kernel_files.text(f"/proc/{process_id}/smaps", may_be_empty=True).splitlines():
        field, _, rest = line.partition(":")
        if field == "Size":
            mapped_kib = int(rest.split()[0])
        elif field == "KernelPageSize" and rest.split()[0] in names:
            name = names[rest.split()[0]]
            sizes[name] = sizes.get(name, 0) + (mapped_kib << 10)
    return sizes


def _prove_malloc(level: str, running: Running) -> Evidence:
    """The server's own loader is asked what it makes of the tunables; it drops one that is unknown or
    out of range."""
    environments = list(of_each(running.process_ids, _environment))
    given = f"GLIBC_TUNABLES={level}"
    if level == "default":
        clean = not any("GLIBC_TUNABLES=" in environment for environment in environments)
        return _evidence("malloc", level, "default" if clean else "set", "/proc/PID/environ", clean)
    passed = all(given in environment.split("\0") for environment in environments)
    taken = _tunables_taken(level, running.process_ids[0]) if passed else {}
    value = ":".join(f"{name}={shown}" for name, shown in taken.items()) or (
        "unknown to its loader" if passed else "not passed on"
    )
    source = "/proc/PID/environ, and --list-tunables of the server's own loader"
    wanted = dict(pair.split("=", 1) for pair in level.split(":"))
    in_effect = passed and all(
        _number(taken.get(name, "")) == _number(asked) for name, asked in wanted.items()
    )
    return _evidence("malloc", level, value, source, in_effect)


def _environment(process_id: int) -> str:
    return kernel_files.text(f"/proc/{process_id}/environ", may_be_empty=True)


def _tunables_taken(level: str, process_id: int) -> dict[str, str]:
    loader = next((path for path in fingerprint.mapped(process_id) if LOADER.match(path.name)), None)
    if loader is None:
        return {}
    listed = subprocess.run(
        [loader, "--list-tunables"],
        env={"GLIBC_TUNABLES": level},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    names = {pair.split("=", 1)[0] for pair in level.split(":")}
    lines = (re.match(r"(\S+): (\S+)", line) for line in listed.splitlines())
    return {line[1]: line[2] for line in lines if line and line[1] in names}


def _ask_malloc(level: str, _engine: Engine) -> tuple[Request, ...]:
    return () if level == "default" else (Environment("memory.malloc", "GLIBC_TUNABLES", level),)


def _number(text: str) -> int | str:
    try:
        return int(text, 0)
    except ValueError:
        return text


def _rollup_bytes(running: Running, *fields: str) -> int:
    """The sum of some fields of smaps_rollup over the server's processes, in bytes."""
    lines = (line.partition(":") for told in of_each(running.process_ids, _rollup) for line in told)
    return sum(int(rest.split()[0]) << 10 for name, _, rest in lines if name in fields)


def _rollup(process_id: int) -> list[str]:
    return kernel_files.text(f"/proc/{process_id}/smaps_rollup", may_be_empty=True).splitlines()


def _evidence(knob: str, level: str, value: str, source: str, in_effect: bool) -> Evidence:
    found, remedy = Reading(value=value, source=source), "see the server's log in the record"
    return proof(f"memory.{knob}", level, found, in_effect, "the server started with it", remedy)


def _on_huge_pages(*fields: str) -> Callable[[Running], Reading]:
    """How much of the server's memory stood on huge pages once it was loaded, by fields of smaps_rollup."""

    def read(running: Running) -> Reading:
        mapped_bytes, resident_bytes = _rollup_bytes(running, *fields), _rollup_bytes(running, "Rss")
        told = f"{mapped_bytes >> 20} MiB of {resident_bytes >> 20} MiB resident, after the load"
        return Reading(value=told, source=f"/proc/PID/smaps_rollup: {' + '.join(fields)}")

    return read


LOADER = re.compile(r"ld-(linux|\d)")
"""The file name of glibc's loader; older ones are named by their version."""
TUNABLE = r"glibc\.[a-z_.]+=[\w.]+"

MEMORY = LayerOfKnobs(
    "memory",
    Knob(
        name="memory.server",
        levels="none, or a size such as 512M",
        pattern=rf"none|{SIZE}",
        effect="a control group of the server's own, page cache included, without swap",
        proof="the group's files, and membership",
        ask=partial(ask_limit, "memory.server"),
        prove=partial(prove_limit, "memory.server"),
        in_production=False,
        exercised=limit_met,
        needs=ROOT_OR_GROUP,
    ),
    Knob(
        name="memory.allocator",
        levels=", ".join(("libc", *fingerprint.ALLOCATORS)),
        pattern="|".join(("libc", *fingerprint.ALLOCATORS)),
        effect="LD_PRELOAD of the server's process, through a private loader as well",
        proof="the library in /proc/PID/maps",
        ask=lambda level, _: () if level == "libc" else (Preload(level),),
        prove=_prove_allocator,
    ),
    Knob(
        name="memory.thp",
        levels="never, madvise, always",
        pattern="never|madvise|always",
        effect="a prctl of the process where that can (it only forbids: never always, madvise from Linux 6.18"
        " on), else the host's mode",
        proof="THP_enabled of the process, THPeligible of its mappings, and no AnonHugePages under never",
        ask=lambda level, _: (TransparentHugePages(level),),
        prove=_prove_thp,
        exercised=_on_huge_pages("AnonHugePages"),
        needs=ROOT,
        scope=Scope.HOST,
        related=("memory.page_bytes", "memory.transparent_huge_pages"),
    ),
    Knob(
        name="memory.huge_pages",
        levels=", ".join(("off", *fingerprint.PAGE_BYTES)),
        pattern="|".join(("off", *fingerprint.PAGE_BYTES)),
        effect="pages reserved for the time of the trial, and the engine's own setting",
        proof="KernelPageSize of the mappings in /proc/PID/smaps, of at least the cache's size",
        ask=lambda level, _: () if level == "off" else (HugePages(level),),
        prove=_prove_huge_pages,
        exercised=_on_huge_pages("Private_Hugetlb", "Shared_Hugetlb"),
        needs=ROOT,
        scope=Scope.HOST,
        related=("memory.page_bytes", "memory.huge_page_bytes", "memory.transparent_huge_pages"),
    ),
    Knob(
        name="memory.malloc",
        levels="default, or tunables such as glibc.malloc.arena_max=2",
        pattern=rf"default|{TUNABLE}(:{TUNABLE})*",
        effect="GLIBC_TUNABLES of the server's process",
        proof="/proc/PID/environ, and what the server's own loader makes of it (--list-tunables)",
        ask=_ask_malloc,
        prove=_prove_malloc,
    ),
)
"""`memory.KNOB = LEVEL`."""
