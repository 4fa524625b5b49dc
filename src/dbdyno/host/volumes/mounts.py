"""Mounts in a namespace of Dyno's own (mount_namespaces(7)), which no other process of the host ever sees;
and which options of them, and of the makers of file systems, a study may give."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host import kernel_files, namespaces
from dbdyno.host.journal import Journal, require_own_path, undoes

_LIBC = ctypes.CDLL(None, use_errno=True)


def _namespace() -> Path | None:
    """The mount namespace of the calling thread; None where a sandbox hides it."""
    try:
        return Path(kernel_files.link("/proc/thread-self/ns/mnt"))
    except kernel_files.UnreadableFile:
        return None


_HOST_NAMESPACE = _namespace()
"""The namespace in which this process began."""

BUSY_S, RETRY_S = 5.0, 0.02
"""How long a mount may stay busy: the kernel takes an io_uring apart after its process has ended."""

_C_LOCALE = {**os.environ, "LC_ALL": "C"}


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo. `options` are those in force, of the mount and of the file system."""

    device: str
    filesystem: str
    source: str
    options: tuple[str, ...]


def enter_private_namespace(factor: str) -> None:
    """Moves this process, and all that it starts, into a mount namespace of its own. Twice is harmless.

    Only the calling thread moves, so it must be the main thread, before it starts others that need the
    mounts. Raises Blocked, for `factor`, without the right.
    """
    if is_private():
        return
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("only the main thread may enter a namespace")
    try:
        namespaces.unshare(namespaces.CLONE_NEWNS)
    except OSError as refused:
        reason = f"a mount namespace needs root: {os.strerror(refused.errno or 0)}"
        hint = "run dyno as root, in a container with CAP_SYS_ADMIN"
        raise Blocked(factor, reason, hint) from None
    try:
        # Without this a mount would spread back to the host through shared propagation (the default of
        # systemd). Shared again, it reaches the namespaces of servers that are up, as an unmount must.
        for propagation in (namespaces.MS_PRIVATE, namespaces.MS_SHARED):
            namespaces.mount(b"none", b"/", None, namespaces.MS_REC | propagation)
    except OSError as refused:
        raise Blocked(factor, *_why_shared(refused.errno or 0)) from None


def _why_shared(refused: int) -> tuple[str, str]:
    """Why mounts cannot be made private, and what would allow it."""
    if refused == errno.EINVAL:
        return (
            "the kernel keeps mounts shared, because / is not a mount point here, as in a chroot",
            "run Dyno in a container or after pivot_root instead of in a chroot",
        )
    reason = f"the kernel keeps mounts shared: {os.strerror(refused)}"
    return reason, "run Dyno in a container with CAP_SYS_ADMIN"


def mount(
    journal: Journal, kind: str, source: str, point: Path, options: tuple[str, ...], factor: str
) -> None:
    """Mounts in the private namespace until the journal's scope ends.

    Raises Blocked, for `factor`, with what mount(8) says: an option that the file system refuses ends here.
    """
    enter_private_namespace(factor)
    point.mkdir(parents=True, exist_ok=True)
    journal.note("mount", point=str(point))
    mount_again(kind, source, point, options, factor)


def mount_again(kind: str, source: str, point: Path, options: tuple[str, ...], factor: str) -> None:
    """Mounts where the journal knows of a mount already. Raises Blocked like `mount`."""
    command = ["mount", "-t", kind, "-o", ",".join(options) or "defaults", source, str(point)]
    finished = subprocess.run(command, capture_output=True, text=True, env=_C_LOCALE, check=False)
    if finished.returncode != 0:
        # mount(8) begins with the path and ends with advice on dmesg; between them stands why.
        said = (
            " ".join(finished.stderr.split()).partition(f"{point}: ")[2].partition(" dmesg(1)")[0].rstrip(".")
        )
        reason = f"{kind} could not be mounted with {','.join(options) or 'defaults'}: {said}"
        hint = f"`man 5 {kind}` lists the options that it takes"
        if "unknown filesystem type" in said:
            reason, hint = f"this kernel has no {kind}", f"modprobe {kind}, or use a kernel that has it"
        raise Blocked(factor, reason, hint)


def mounted_at(path: Path) -> Mount:
    """The mount that carries a path, as the calling thread sees it."""
    path = path.resolve()
    carrying = [(point, found) for point, found in mounts() if path.is_relative_to(point)]
    assert carrying, "something is mounted at /"
    # Of two mounts on one point the later hides the earlier, and sorting keeps their order.
    return sorted(carrying, key=lambda pair: len(pair[0].parts))[-1][1]


def mounts(process: str = "thread-self") -> Iterator[tuple[Path, Mount]]:
    """All mounts that a process sees, in the order of the kernel's list, each with its point."""
    for line in kernel_files.text(f"/proc/{process}/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        # A source may be empty.
        fields, (kind, source, extra) = before.split(), after.split(" ")[:3]
        options = tuple(dict.fromkeys([*fields[5].split(","), *extra.split(",")]))
        yield Path(_unescape(fields[4])), Mount(fields[2], kind, _unescape(source), options)


def queue_below(path: Path) -> Path:
    """The queue of the disk that carries a path, below partitions and mapped devices. It is not there for a
    file system without a device."""
    device = (Path("/sys/dev/block") / mounted_at(path).device).resolve()
    while below := sorted((device / "slaves").glob("*")):
        device = below[0].resolve()
    own = device / "queue"
    return own if own.is_dir() else device.parent / "queue"


def _unescape(text: str) -> str:
    """mountinfo writes space, tab, newline and backslash in octal (proc(5))."""
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escaped, plain)
    return text


@undoes("mount")
def _unmount(entry: Mapping[str, Any]) -> None:
    """Unmounts what is mounted in this namespace. A Dyno that died took its namespace, and the mount,
    along."""
    require_own_path(Path(entry["point"]), entry)
    unmount(Path(entry["point"]))


def unmount(point: Path) -> None:
    """Unmounts all that is mounted there, and waits where it is still busy, or where the namespace of a
    server that ends still holds it. Raises OSError where it stays so."""
    deadline = time.monotonic() + BUSY_S
    while found := _mounted_there(point):
        if _LIBC.umount2(os.fsencode(point), 0) == 0:
            _await_release(Path(found[-1].source), deadline)
            continue
        failure = ctypes.get_errno()
        if failure == errno.EINVAL:
            return
        if failure != errno.EBUSY or time.monotonic() > deadline:
            raise OSError(failure, os.strerror(failure), str(point))
        time.sleep(RETRY_S)


def _await_release(device: Path, deadline: float) -> None:
    """Waits until no namespace has a block device mounted: O_EXCL finds it claimed (open(2))."""
    while device.is_block_device():
        try:
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return


def _mounted_there(point: Path) -> list[Mount]:
    """Asked of the kernel's list, because a file system that was shut down does not answer."""
    return [found for at, found in mounts() if at == point.resolve()]


def is_private() -> bool:
    """Whether the calling thread lives in a namespace of Dyno's own."""
    return _namespace() != _HOST_NAMESPACE


def devices_of_host() -> frozenset[str]:
    """The devices, as `major:minor`, of all that the host's first process has mounted. None where that is
    Dyno itself, as in a container: its mounts then tell of no other."""
    if os.getpid() == 1:
        return frozenset()
    return frozenset(found.device for _, found in mounts("1"))


NUMBER = r"-?\d+(\.\d+)?[bskmgtpe]?"
FEATURES = r"[\^~]?[a-z0-9][a-z0-9_-]*"


def _keyed(*keys: str) -> str:
    """One `KEY` or `KEY=NUMBER` of those."""
    return rf"({'|'.join(keys)})(={NUMBER})?"


@dataclass(frozen=True)
class MountFault:
    """What is wrong with options, and what is allowed instead."""

    reason: str
    hint: str


# A feature of ext4 with which mke2fs makes a device for journals of other file systems.
_EXT_FEATURES = rf"(?!journal_dev$){FEATURES}"
_EXT_EXTENDED = (
    r"[a-z]*discard"
    r"|(stride|stripe[_-]width|resize|lazy_itable_init|lazy_journal_init|num_backup_sb|packed_meta_blocks"
    r"|mmp_update_interval|orphan_file_size|desc[_-]size|assume_storage_prezeroed|encoding|encoding_flags"
    r"|quotatype|hash_alg)=[a-z0-9_.:-]+"
)
_EXT: Mapping[str, str] = {
    "-b": NUMBER,
    "-C": NUMBER,
    "-E": _EXT_EXTENDED,
    "-g": NUMBER,
    "-G": NUMBER,
    "-i": NUMBER,
    "-I": NUMBER,
    "-j": "",
    "-J": _keyed("size", "fast_commit_size"),
    "-m": NUMBER,
    "-N": NUMBER,
    "-O": _EXT_FEATURES,
    "-T": r"[a-z0-9_]+",
}
EXT = ("ext2", "ext3", "ext4")
_BTRFS_PROFILE = r"single|dup|raid\d+(c\d)?"

OPTIONS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(EXT, _EXT),
    "xfs": {
        "-b": _keyed("size", "log"),
        "-d": _keyed(
            "agcount",
            "agsize",
            "su",
            "sw",
            "sunit",
            "swidth",
            "noalign",
            "sectsize",
            "concurrency",
            "extszinherit",
            "cowextsize",
            "daxinherit",
        ),
        "-i": _keyed(
            "size",
            "perblock",
            "maxpct",
            "align",
            "attr",
            "projid32bit",
            "sparse",
            "nrext64",
            "exchange",
        ),
        "-l": rf"internal(=1)?|{_keyed('size', 'su', 'sunit', 'version', 'lazy-count', 'agnum', 'sectsize')}",
        "-m": _keyed("crc", "finobt", "inobtcount", "reflink", "rmapbt", "bigtime", "autofsck"),
        "-n": rf"version=ci|{_keyed('size', 'version', 'ftype', 'parent')}",
        "-s": _keyed("size", "sectsize", "log"),
    },
    "btrfs": {
        "-d": _BTRFS_PROFILE,
        "--data": _BTRFS_PROFILE,
        "-m": _BTRFS_PROFILE,
        "--metadata": _BTRFS_PROFILE,
        "-M": "",
        "--mixed": "",
        "-n": NUMBER,
        "--nodesize": NUMBER,
        "-s": NUMBER,
        "--sectorsize": NUMBER,
        "-O": FEATURES,
        "--features": FEATURES,
        "-R": FEATURES,
        "--runtime-features": FEATURES,
        "--csum": r"[a-z0-9]+",
        "--checksum": r"[a-z0-9]+",
    },
    "jfs": {"-O": "", "-s": NUMBER},
    "f2fs": {
        "-a": "[01]",
        "-i": "",
        "-o": NUMBER,
        "-O": FEATURES,
        "-s": NUMBER,
        "-w": NUMBER,
        "-z": NUMBER,
    },
}
"""Each maker's options, with the pattern of each item of its value, commas between; empty where it takes
none."""


def maker_fault(filesystem: str, words: Sequence[str]) -> MountFault | None:
    """What is wrong with the words that a study adds to a maker's command line."""
    known = OPTIONS[filesystem]
    hint = f"mkfs.{filesystem} may be given: {', '.join(known)}; nothing that names a path or a device"
    for option, value in _pairs(words, known):
        if option not in known:
            kind = "option" if option.startswith("-") else "word that belongs to no option"
            return MountFault(f"{option!r} is not allowed for mkfs.{filesystem}: an unknown {kind}", hint)
        if not _takes(known[option], value):
            given = "it takes no value" if not known[option] else f"its value {value!r} is not allowed"
            return MountFault(f"{option} of mkfs.{filesystem}: {given}", hint)
    return None


def merged(filesystem: str, own: Sequence[str], words: Sequence[str]) -> list[str]:
    """Dyno's own options of a maker with those of a study. Makers of ext file systems take the last `-E`
    alone, so both go into one; of a key that stands in both, the study's counts, which is the later one."""
    extended, rest = list[str](), list[str]()
    for option, value in _pairs([*own, *words], OPTIONS[filesystem]):
        if option == "-E" and value is not None:
            extended.append(value)
        else:
            rest += [option] if value is None else [option, value]
    return [*rest, "-E", ",".join(extended)] if extended else rest


def any_maker_fault(words: Sequence[str]) -> MountFault | None:
    """What is wrong with words that no maker may be given; None where at least one may."""
    faults = [maker_fault(filesystem, words) for filesystem in OPTIONS]
    if None in faults:
        return None
    allowed = "; ".join(f"{name}: {' '.join(known)}" for name, known in OPTIONS.items() if name[:3] != "ext")
    found = " ".join(words)
    return MountFault(
        f"no maker of file systems may be given {found!r}",
        f"allowed are options that name no path and no device: ext2, ext3, ext4: {' '.join(_EXT)}; {allowed}",
    )


def _takes(pattern: str, value: str | None) -> bool:
    if not pattern:
        return value is None
    return value is not None and all(
        re.fullmatch(pattern, item, re.IGNORECASE) is not None for item in value.split(",")
    )


def _pairs(words: Sequence[str], known: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The options with their values, which may stand in the same word: `-b4096`, `--csum=sha256`."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, value = _split(word)
        if value is None and known.get(option):
            value = rest.pop(0) if rest else None
        yield option, value


def _split(word: str) -> tuple[str, str | None]:
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    if word.startswith("-") and len(word) > 2:
        return word[:2], word[2:]
    return word, None


_ELSEWHERE = re.compile(r"(?!(no)?dev$).*(dev|path|file|helper).*", re.IGNORECASE)
"""Names of options that lead to another device, a path or a program: `logdev`, `journal_path`."""
_NOT_A_MOUNT_OF_THE_VOLUME = re.compile(
    r"(r?bind|move|remount|loop|offset|sizelimit|encryption|r?(shared|private|slave|unbindable)"
    r"|make-.*|x-.*|verity.*|users?|owner|group|auto|noauto|nofail|comment|uuid|label)$",
    re.IGNORECASE,
)
_PANICS = frozenset({"errors=panic", "fatal_errors=panic", "onerror=panic"})


def mount_fault(options: Sequence[str]) -> MountFault | None:
    """What is wrong with mount options: another source than the volume, another point, a halted host."""
    for option in options:
        name = option.partition("=")[0]
        if _ELSEWHERE.match(name) or "/" in option:
            reason = f"{option} names a device, a path or a program outside of the volume"
        elif _NOT_A_MOUNT_OF_THE_VOLUME.match(name):
            reason = f"{option} is an option of mount(8) for something else than the volume"
        elif option in _PANICS:
            reason = f"{option} halts the host where the file system finds an error"
        else:
            continue
        return MountFault(reason, "leave it out: a study's volume is all that is mounted")
    return None
