"""A real change of the host for each kind of journal entry, and what of the host shows it.

A value is one of the kernel's, of a loop device of this program's own. A group lies where Dyno makes its own,
and a controller is handed down in version 2. `lacking` names what this host or user lacks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.host import cgroups, kernel_values, paths, process
from dbdyno.host.journal import Journal, open_journal, start_ticks
from dbdyno.host.volumes import loop, mounts
from tests.needs import IS_ROOT, on_machine

LIFETIME_S = 120
"""Nothing that is started here lives longer, whatever becomes of the test."""
IMAGE_BYTES = 1 << 20


@dataclass
class Scene:
    """Where the changes are made. `tag` is in the name of all that they make; at most 7 letters, because the
    kernel keeps 15 of a process's name."""

    root: Path
    tag: str
    value: Path
    control: Path | None
    parents: tuple[Path, ...]
    _kept: list[loop.LoopDevice] = field(default_factory=list)

    def state(self) -> dict[str, str]:
        """All that a change can have changed, by what it is."""
        shown = {
            "value": kernel_values.read(self.value),
            "files": sorted(path.name for path in paths.cache().iterdir()),
            "loops": sorted(str(held) for held in self._loops()),
            "mounts": [one for one in _lines(Path("/proc/self/mountinfo")) if str(self.root) in one],
            "groups": sorted(map(str, self.groups())),
            "controllers": sorted(self.control.read_text().split()) if self.control else [],
            "processes": sorted(_named(self.tag)),
        }
        return {what: str(found) for what, found in shown.items()}

    def groups(self) -> list[Path]:
        """The control groups of this scene's processes that stand."""
        pattern = f"{cgroups.PREFIX}{self.tag}*"
        return [each for parent in self.parents for each in parent.glob(pattern)]

    def _loops(self) -> list[Path]:
        own = {kept.path.name for kept in self._kept}
        backing = Path("/sys/block").glob("loop*/loop/backing_file")
        return [one for one in backing if one.parts[3] not in own and str(self.root) in "".join(_lines(one))]

    def name(self) -> str:
        """A name that only this process uses."""
        return f"{self.tag}{os.getpid()}"


def scene(root: Path, kinds: Collection[str]) -> Scene:
    """Makes a scene for some kinds within a folder, which must be gone with all that is in it afterwards."""
    tag = f"f{os.getpid() % 10**6}"
    link = root / tag
    link.symlink_to(on_machine("sleep") or "/bin/sleep")
    with (root / "image").open("wb") as file:
        file.truncate(IMAGE_BYTES)
    found = [cgroups.hierarchy(controller) for controller in ("cpu", _controller())]
    parents = tuple({each.parent for each in found if each})
    control = _control() if "cgroup_delegation" in kinds else None
    made = Scene(root, tag, root / "value", control, parents)
    if lacking("loop"):
        made.value.write_text("before\n")
        setattr(kernel_values, "_HOMES", (root,))  # noqa: B010  its type has the real two
        return made
    subprocess.run(["mkfs.ext2", "-q", "-F", root / "image"], check=True)
    shutil.copy(root / "image", root / "own")
    with open_journal() as journal:
        device = loop.attach(journal, root / "own", "storage.device", direct_io=False)
        # The device clears itself as this process ends, which needs no journal.
        journal._standing.clear()
    made._kept.append(device)
    made.value = device.sysfs / "queue" / "read_ahead_kb"
    return made


def lacking(kind: str) -> str:
    """Why a kind of change cannot be made here; empty where it can."""
    needs = {"cgroup": "cgroup", "cgroup_delegation": "controller", "mount": "root", "loop": "loop"}
    wanted = ["root", "loop", "cgroup"] if kind == "together" else [needs.get(kind, "")]
    group = cgroups.hierarchy("cpu")
    reasons = {
        "root": "only root mounts" if not IS_ROOT else "",
        "loop": "" if os.access(loop.CONTROL, os.W_OK) and on_machine("mkfs.ext2") else "no loop devices",
        "cgroup": ""
        if group and os.access(group.parent, os.W_OK)
        else "no cpu controller to make a group of",
        "controller": "" if _control() else "no controller of version 2 that nobody has handed down",
    }
    return ", ".join(reason for name in wanted if (reason := reasons.get(name, "")))


def _control() -> Path | None:
    """The file that hands a controller of version 2 down, where that can be tried without taking anything
    from anybody."""
    controller = _controller()
    found = cgroups.hierarchy(controller) if controller else None
    if found is None or found.version != 2:
        return None
    control = found.parent / "cgroup.subtree_control"
    return control if os.access(control, os.W_OK) and controller not in control.read_text().split() else None


def _controller() -> str:
    """A controller of version 2 that harms nobody; empty where there is none."""
    offered = [each for path in Path("/sys/fs/cgroup").glob("**/cgroup.controllers") for each in _lines(path)]
    words = " ".join(offered).split()
    return next((one for one in ("hugetlb", "misc", "rdma", "pids") if one in words), "")


def value(here: Scene, journal: Journal) -> None:
    kernel_values.set_value(journal, here.value, "256", "test")
    with journal.scope():
        kernel_values.set_value(journal, here.value, "512", "test")


def tree(here: Scene, journal: Journal) -> Path:
    folder = paths.cache() / here.name()
    journal.note("tree", path=str(folder))
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "file").write_text("of this trial")
    return folder


def process_of(here: Scene, journal: Journal, *groups: Path) -> None:
    with Path(os.devnull).open("wb") as output:
        command = [str(here.root / here.tag), str(LIFETIME_S)]
        child = process.start(command, environment={}, output=output, cgroups=groups)
    journal.note_processes([child.pid])


def cgroup(here: Scene, journal: Journal) -> None:
    weight = {1: {"cpu.shares": "512"}, 2: {"cpu.weight": "50"}}
    found = cgroups.hierarchy("cpu")
    assert found is not None
    group = cgroups.make(journal, "cpu", here.name(), weight[found.version], "cpu.weight")
    process_of(here, journal, group)


def delegation(here: Scene, journal: Journal) -> None:
    cgroups.make(journal, _controller(), here.name(), {}, "cpu.quota")


def mount(here: Scene, journal: Journal) -> None:
    point = tree(here, journal) / "volume"
    mounts.mount(journal, "tmpfs", "tmpfs", point, ("size=1m",), "storage.mount")
    (point / "file").write_text("on the volume")


def attached(here: Scene, journal: Journal) -> loop.LoopDevice:
    backing = tree(here, journal) / "image"
    shutil.copy(here.root / "image", backing)
    return loop.attach(journal, backing, "storage.device", direct_io=False)


def together(here: Scene, journal: Journal) -> None:
    """What a trial with a volume changes, one upon the other."""
    device = attached(here, journal)
    point = paths.cache() / here.name() / "volume"
    mounts.mount(journal, "ext2", str(device.path), point, ("noatime",), "storage.mount")
    kernel_values.set_value(journal, device.sysfs / "queue" / "read_ahead_kb", "64", "storage.read_ahead")
    value(here, journal)
    cgroup(here, journal)


CHANGES: dict[str, Callable[[Scene, Journal], object]] = {
    "kernel_value": value,
    "tree": tree,
    "process": process_of,
    "cgroup": cgroup,
    "cgroup_delegation": delegation,
    "mount": mount,
    "loop": attached,
    "together": together,
}
"""By the kind of entry; the last one has all of a trial."""


def outlast(here: Scene, journal: Journal) -> None:
    """Starts a process that outlives this one, and holds all that it has open, but for its locks."""
    held = [journal._descriptor, *(claim.descriptor for claim in kernel_values._claimed.values())]
    process_id = os.fork()
    if process_id == 0:
        os.setsid()
        Path("/proc/self/comm").write_text(here.tag)
        for descriptor in held:
            os.close(descriptor)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIFETIME_S)
        while True:
            signal.pause()
    journal.note_processes([process_id])


def _named(tag: str) -> list[str]:
    """The processes with that name that have not ended."""
    found = []
    for process_id in filter(str.isdecimal, (each.name for each in os.scandir("/proc"))):
        # The kernel keeps the name of one that has ended until its parent has asked for it.
        with suppress(OSError):
            named = Path(f"/proc/{process_id}/comm").read_bytes().strip() == tag.encode()
            found += [process_id] * (named and start_ticks(int(process_id)) is not None)
    return found


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel's; none where it has gone."""
    try:
        return path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return []
