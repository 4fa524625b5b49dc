"""Control groups of the server's own, in version 1 or 2, removed through the journal.

In version 1 a group is made below the one that Dyno itself is in, so that a limit laid on Dyno from
outside holds for the server too; in version 2 beside it, because there a group with processes cannot
hand controllers down.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host import kernel_files
from dbdyno.host.journal import Journal, undoes
from dbdyno.host.process import families

PROC = Path("/proc")
PREFIX = "dyno-"
"""Every group that Dyno makes bears it; no other group is ever removed."""


@dataclass(frozen=True)
class Hierarchy:
    """Where groups of one controller are made. `version` is 1 or 2."""

    controller: str
    version: int
    parent: Path


@dataclass(frozen=True)
class Throttling:
    """What a quota has done to a group so far: periods in which it ran, those in which its quota was used up,
    and how long its threads were held back for that, summed over CPUs."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_s: float = 0.0


def hierarchy(controller: str) -> Hierarchy | None:
    """The mounted hierarchy that holds a controller, at the group of this process; None when there is
    none."""
    found = mounted(controller)
    if found is None:
        return None
    version, point = found
    own = _group_of("self", found, controller)
    return Hierarchy(controller, version, own if version == 1 or own == point else own.parent)


def groups_of(process_id: int, controller: str) -> tuple[Path, ...]:
    """The groups whose limits hold for a process, its own first, as far up as can be seen from here; empty
    when it is gone, or nothing offers the controller."""
    found = mounted(controller)
    if found is None:
        return ()
    try:
        own = _group_of(str(process_id), found, controller)
    except kernel_files.Gone:
        return ()
    above = [group for group in own.parents if group.is_relative_to(found[1])]
    return (own, *above)


def throttling(group: Path) -> Throttling:
    """Reads a group's cpu.stat, in the form of either version; zeros where it has none, as a root may."""
    try:
        counts = dict(
            line.split() for line in kernel_files.text(group / "cpu.stat", may_be_empty=True).splitlines()
        )
    except kernel_files.Gone:
        return Throttling()
    # Version 1 counts nanoseconds, version 2 microseconds.
    throttled_s = int(counts.get("throttled_time", 0)) / 1e9 + int(counts.get("throttled_usec", 0)) / 1e6
    return Throttling(int(counts.get("nr_periods", 0)), int(counts.get("nr_throttled", 0)), throttled_s)


def killed_for_memory(group: Path) -> str | None:
    """The limit of a group of which the kernel has killed a process because no memory was left in it; None
    where it has not, or does not tell."""
    for counts, limit in (("memory.events", "memory.max"), ("memory.oom_control", "memory.limit_in_bytes")):
        told = kernel_files.text_or_none(group / counts) or ""
        if re.search(r"^oom_kill [1-9]", told, re.MULTILINE):
            return f"{int(kernel_files.text(group / limit)) >> 20} MiB"
    return None


def make(journal: Journal, controller: str, name: str, values: Mapping[str, str], factor: str) -> Path:
    """Makes a group with `values` (file name: content) set, and returns its directory.

    Raises Blocked, for `factor`, when there is no such controller or no right to use it.
    """
    found = hierarchy(controller)
    if found is None:
        raise Blocked(
            factor, f"no cgroup hierarchy offers the {controller} controller", "mount or delegate one"
        )
    group = found.parent / f"{PREFIX}{name}"
    try:
        if found.version == 2:
            _delegate(journal, found)
        journal.note("cgroup", path=str(group))
        group.mkdir()
    except PermissionError:
        hint = "run dyno as root, or under `systemd-run --user --scope -p Delegate=yes`"
        raise Blocked(factor, f"no right to make a control group in {found.parent}", hint) from None
    except OSError as error:
        raise Blocked(factor, f"the kernel refused the control group {group}: {error.strerror}") from None
    change(group, values, factor)
    return group


def shared(
    journal: Journal,
    controller: str,
    groups: Iterable[Path],
    name: str,
    values: Mapping[str, str],
    factor: str,
) -> Path:
    """The group of Dyno's among `groups` that stands in the controller's hierarchy, with `values` set, or a
    new one. In version 2 all controllers share a hierarchy, and a process has one group there."""
    found = hierarchy(controller)
    own = next(
        (one for one in groups if one.name.startswith(PREFIX) and found and one.parent == found.parent), None
    )
    if found is None or own is None:
        return make(journal, controller, name, values, factor)
    if found.version == 2:
        _delegate(journal, found)
    change(own, values, factor)
    return own


def holds(group: Path, process_ids: Iterable[int]) -> bool:
    """Whether all of these processes that are still there are members of a group."""
    members = kernel_files.text(group / "cgroup.procs", may_be_empty=True).split()
    inside = {process_id: str(process_id) in members for process_id in process_ids}
    return any(inside.values()) and not families(one for one, is_in in inside.items() if not is_in)


def change(group: Path, values: Mapping[str, str], factor: str) -> None:
    """Sets values (file name: content) of a group that was made. Raises Blocked, for `factor`."""
    for file, content in values.items():
        try:
            (group / file).write_text(content)
        except OSError as error:
            reason = f"the kernel refused {content!r} for {group / file}: {error.strerror}"
            raise Blocked(factor, reason, "choose a level within the limits of the group above it") from None


def mounted(controller: str) -> tuple[int, Path] | None:
    """Version and mount point of the hierarchy that holds a controller."""
    for mount in kernel_files.text(PROC / "self" / "mountinfo").splitlines():
        fields, _, after = mount.partition(" - ")
        point, kind, options = Path(fields.split()[4]), after.split()[0], after.split()[2].split(",")
        if kind == "cgroup" and controller in options:
            return 1, point
        offered = kernel_files.text_or_none(point / "cgroup.controllers") if kind == "cgroup2" else None
        if controller in (offered or "").split():
            return 2, point
    return None


def _group_of(process: str, found: tuple[int, Path], controller: str) -> Path:
    """A process's group in a hierarchy; its root when the group cannot be seen from here (a container)."""
    version, point = found
    for line in kernel_files.text(PROC / process / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        belongs = controllers == "" if version == 2 else controller in controllers.split(",")
        if belongs and (point / path.lstrip("/")).is_dir():
            return point / path.lstrip("/")
    return point


def _delegate(journal: Journal, found: Hierarchy) -> None:
    """Version 2: a controller must be handed down before a child group may use it."""
    control = found.parent / "cgroup.subtree_control"
    if found.controller not in kernel_files.text(control, may_be_empty=True).split():
        journal.note("cgroup_delegation", path=str(control), controller=found.controller)
        control.write_text(f"+{found.controller}")


@undoes("cgroup_delegation")
def _take_back(entry: Mapping[str, Any]) -> None:
    """Stops handing a controller down, unless somebody else has come to use it meanwhile."""
    control = Path(entry["path"])
    if control.name != "cgroup.subtree_control":
        raise ValueError("not a control group's, so it is left alone")
    try:
        control.write_text(f"-{entry['controller']}")
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOENT):
            raise


@undoes("cgroup")
def _remove(entry: Mapping[str, Any]) -> None:
    """Removes a group of Dyno's; what still runs in it is killed first."""
    group = Path(entry["path"])
    if not group.name.startswith(PREFIX):
        raise ValueError("not a group of Dyno's, so it is left alone")
    deadline = time.monotonic() + 5.0
    while group.is_dir():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            _kill_members(group)
            time.sleep(0.02)


def _kill_members(group: Path) -> None:
    for line in kernel_files.text(group / "cgroup.procs", may_be_empty=True).split():
        try:
            os.kill(int(line), signal.SIGKILL)
        except ProcessLookupError:
            continue
