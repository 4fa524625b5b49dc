"""Who else could write a program. What root runs must be root's, and so must all that leads there.

What of the host, beside Dyno's own folders, the study's user allows trials to change.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host import kernel_files


@dataclass(frozen=True)
class Allowed:
    """`devices` may be overwritten by levels of `storage.device`; levels of `config` may lead to `paths`, and
    to all below them. The settings of `servers` that run already may be moved, by their URLs. With `writes`
    the load may change tables there that are not Dyno's."""

    devices: frozenset[Path] = frozenset()
    paths: frozenset[Path] = frozenset()
    servers: frozenset[str] = frozenset()
    writes: bool = False

    @classmethod
    def of(
        cls, devices: Iterable[Path], paths: Iterable[Path], servers: Iterable[str] = (), writes: bool = False
    ) -> Allowed:
        """What the command line gave. A path counts from the folder in which that was typed."""
        resolved = frozenset(path.expanduser().resolve() for path in paths)
        return cls(frozenset(devices), resolved, frozenset(servers), writes)

    @property
    def options(self) -> str:
        """The options that allow the same again, each with a space before it."""
        given = "".join(f" {option} {shlex.quote(str(value))}" for option, value in self._each())
        return f"{given} --allow-writes" if self.writes else given

    def _each(self) -> Iterator[tuple[str, Path | str]]:
        yield from (("--allow-device", device) for device in sorted(self.devices))
        yield from (("--allow-path", path) for path in sorted(self.paths))
        yield from (("--allow-server", server) for server in sorted(self.servers))


NOTHING_ALLOWED = Allowed()


ACL = "system.posix_acl_access"
LINKS_MOST = 40
"""As many as the kernel follows."""
ALL_USERS = ["0", "0", str(2**32 - 1)]
"""The map of a user namespace whose numbers are those of the host."""


def require_own(program: Path) -> None:
    """As root, raises UserError where another user could have written a program, or could exchange it: the
    file, a link or a folder on its way is another's, or others may write it. Whoever called `sudo` is no
    other, because they can do all that root can. Other users run what they name with no more than their own
    rights, and may."""
    if os.geteuid() != 0:
        return
    callers = _callers()
    for place, status in _way(Path.cwd() / program):
        found = _open_to_others(place, status, callers)
        if found is not None:
            why, remedy = found
            raise UserError(
                f"root does not run {program}, because {why}",
                f"`{remedy} {shlex.quote(str(place))}`, or start Dyno as an ordinary user",
            )


def _callers() -> frozenset[int]:
    """Root, and the user who became root by `sudo`. In a user namespace also whoever has no number there: the
    host's own root is one of them."""
    caller = os.environ.get("SUDO_UID", "")
    found = [0, *([int(caller)] if caller.isdecimal() else [])]
    if kernel_files.text("/proc/self/uid_map").split() != ALL_USERS:
        found.append(int(kernel_files.text("/proc/sys/kernel/overflowuid")))
    return frozenset(found)


def _way(program: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Each folder, each link and the file that the kernel meets on its way to a program; as far as there are
    any."""
    here, names, links = Path("/"), list(reversed(program.parts[1:])), 0
    yield here, here.lstat()
    while names:
        name = names.pop()
        if name == "..":
            here = here.parent
            continue
        place = here / name
        try:
            status = place.lstat()
        except OSError:
            return
        yield place, status
        if not stat.S_ISLNK(status.st_mode):
            here = place
            continue
        target, links = place.readlink(), links + 1
        if links > LINKS_MOST:
            return
        here = Path("/") if target.is_absolute() else here
        names += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _open_to_others(place: Path, status: os.stat_result, callers: frozenset[int]) -> tuple[str, str] | None:
    """Why others than the callers could change what lies there, and the command that ends it; None where they
    cannot."""
    if status.st_uid not in callers:
        return f"{place} belongs to {_user(status.st_uid)}", "chown -h root:root"
    mode = status.st_mode
    # In a sticky folder such as /tmp nobody exchanges what is another's, and what is there is looked at next.
    if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return None
    if mode & stat.S_IWOTH:
        return f"everybody may write {place}", "chmod go-w"
    if mode & stat.S_IWGRP and not _is_private(status.st_gid, callers):
        return f"the group {_group(status.st_gid)} may write {place}", "chmod g-w"
    # An access list shows its widest right as that of the group.
    if mode & stat.S_IWGRP and ACL in os.listxattr(place):
        return f"an access list lets others write {place}", "chmod g-w"
    return None


def _is_private(group: int, callers: frozenset[int]) -> bool:
    """Whether a group is root's, or one that holds nobody but a caller, whose name it bears."""
    if group == 0:
        return True
    try:
        found = grp.getgrgid(group)
        owner = pwd.getpwnam(found.gr_name)
    except KeyError:
        return False
    return owner.pw_uid in callers and owner.pw_gid == group and set(found.gr_mem) <= {owner.pw_name}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
