"""The storage layer: device, file system, its options, scheduler, read-ahead; proved on the device that
carries the data."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.engines.values import size_bytes
from dbdyno.errors import Blocked, Mistake
from dbdyno.frozen import Level, level_text
from dbdyno.host import kernel_files, kernel_values
from dbdyno.host.journal import HOME
from dbdyno.host.volumes.loop import require_device_allowed
from dbdyno.host.volumes.mounts import (
    any_maker_fault,
    maker_fault,
    mount_fault,
    mounted_at,
    queue_below,
)
from dbdyno.host.volumes.volume import MKFS, Volume, VolumeSpecification, require_maker
from dbdyno.layers.knob import ROOT, Knob, Scope
from dbdyno.layers.layer import LayerOfKnobs, proof
from dbdyno.layers.setup import (
    LOOP_DEVICES,
    REMOVED,
    STAYS,
    Before,
    Part,
    PartPlace,
    Request,
    RequestedChange,
    Running,
    Setup,
)
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.nouns import Promise

FILE_SYSTEMS = ("host", "raw", "tmpfs", *MKFS)
UNSAFE_MOUNTS = frozenset({"nobarrier", "barrier=0", "data=writeback", "nodatacow", "nodatasum"})
"""Mount options with which a loss of power can take what was reported as written."""
DROP_CACHES = "/proc/sys/vm/drop_caches"
_OF_NO_VOLUME = ("page_cache", "folder")
_NO_VOLUME = {"device": "disk", "filesystem": "host", "mkfs": "defaults", "mount": "defaults"}


@dataclass(frozen=True)
class OnVolume(Request):
    """A volume for the data; `factor` is the first of those that ask for it."""

    factor: str
    wish: VolumeSpecification

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        """A file system is made by hand, because its data have to move. Only one that is mounted from a
        device has options in /etc/fstab."""
        wish = self.wish
        if wish.filesystem not in MKFS:
            return (_by_hand("storage.filesystem", f"put the data on {wish.filesystem}"),)
        command = shlex.join((f"mkfs.{wish.filesystem}", *wish.mkfs, "DEVICE"))
        made_by = ("storage.filesystem", "storage.mkfs") if wish.mkfs else ("storage.filesystem",)
        made = tuple(_by_hand(factor, command) for factor in made_by)
        options = ",".join(wish.mount)
        mount = Part(factor="storage.mount", place=PartPlace.MOUNT, name=wish.filesystem, value=options)
        return (*made, mount) if options else made

    def change(self) -> RequestedChange:
        wish = self.wish
        if wish.filesystem == "tmpfs":
            return RequestedChange(
                self.factor, "a tmpfs in memory, seen by Dyno and its servers alone", REMOVED
            )
        kind = "a raw volume" if wish.filesystem == "raw" else f"a volume with {wish.filesystem}"
        if wish.device.startswith("/"):
            does = f"{wish.device} is overwritten with {kind} (dyno run --allow-device {wish.device})"
            return RequestedChange(self.factor, does, STAYS, (self.wish.device,))
        backing = "a file in memory" if wish.device == "ram" else "a file of Dyno's"
        return RequestedChange(
            self.factor, f"{kind} on a loop device over {backing}", REMOVED, (LOOP_DEVICES,)
        )

    def require_here(self) -> None:
        if self.wish.device.startswith("/"):
            # Which devices may be overwritten, the run is told.
            require_device_allowed(Path(self.wish.device), (Path(self.wish.device),))
        require_maker(self.wish.filesystem)

    def apply(self, setup: Setup) -> None:
        if self.wish.device.startswith("/"):
            require_device_allowed(Path(self.wish.device), setup.allowed.devices)
        require_maker(self.wish.filesystem)
        setup.wish = self.wish


@dataclass(frozen=True)
class InFolder(Request):
    """A folder below which the data lie, and with it the disk that it is on."""

    folder: str

    def change(self) -> RequestedChange:
        home = f"{self.folder.rstrip('/')}/{HOME}"
        return RequestedChange("storage.folder", f"the data in {home}", REMOVED, (home,))

    def require_here(self) -> None:
        if not os.access(self.folder, os.R_OK | os.W_OK | os.X_OK) or not Path(self.folder).is_dir():
            reason = f"{self.folder} is no folder in which Dyno may write"
            raise Blocked("storage.folder", reason, "make it, or name another one")

    def apply(self, setup: Setup) -> None:
        self.require_here()
        home = Path(self.folder).resolve() / HOME
        scratch = home / setup.scratch.name
        setup.journal.note_tree(scratch, home)
        home.mkdir(mode=0o700, exist_ok=True)
        scratch.mkdir(mode=0o700)
        setup.scratch = scratch


@dataclass(frozen=True)
class Scheduler(Request):
    """The I/O scheduler of the device that carries the data."""

    name: str
    before = Before.START

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        return (Part(factor="storage.scheduler", place=PartPlace.QUEUE, name="scheduler", value=self.name),)

    def change(self) -> RequestedChange:
        return RequestedChange(
            "storage.scheduler",
            f"scheduler of the volume's device := {self.name}",
            places=("/sys/*/queue/scheduler",),
        )

    def apply(self, setup: Setup) -> None:
        volume = _volume(setup)
        path = volume.queue / "scheduler"
        offered = kernel_values.choices(path) if path.exists() else ()
        if self.name not in offered:
            has = ", ".join(offered) or "none at all"
            reason = f"{volume.device} has no scheduler {self.name!r}"
            raise Blocked("storage.scheduler", reason, f"it has: {has}")
        kernel_values.set_value(setup.journal, path, self.name, "storage.scheduler")


@dataclass(frozen=True)
class ReadAhead(Request):
    """How far the device that carries the data is read ahead, in KiB."""

    kib: int
    before = Before.START

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        part = partial(Part, factor="storage.read_ahead", place=PartPlace.QUEUE)
        return (part(name="read_ahead_kb", value=self.kib),)

    def change(self) -> RequestedChange:
        return RequestedChange(
            "storage.read_ahead",
            f"read_ahead_kb of the volume's device := {self.kib}",
            places=("/sys/*/queue/read_ahead_kb",),
        )

    def apply(self, setup: Setup) -> None:
        path = _volume(setup).queue / "read_ahead_kb"
        kernel_values.set_value(setup.journal, path, str(self.kib), "storage.read_ahead")


@dataclass(frozen=True)
class EmptyPageCache(Request):
    """The host's page cache is emptied right before the server starts (proc(5), drop_caches)."""

    before = Before.START

    def change(self) -> RequestedChange:
        return RequestedChange(
            "storage.page_cache",
            "the host's page cache is emptied before the server starts",
            STAYS,
            (DROP_CACHES,),
        )

    def apply(self, setup: Setup) -> None:
        os.sync()
        try:
            Path(DROP_CACHES).write_text("1")
        except PermissionError:
            reason = "the page cache may be dropped by root only"
            raise Blocked("storage.page_cache", reason, "run dyno as root") from None
        except OSError as error:
            reason = f"the page cache cannot be dropped: {error.strerror} ({DROP_CACHES})"
            raise Blocked("storage.page_cache", reason) from None
        setup.page_cache_emptied = True


def _by_hand(factor: str, deed: str) -> Part:
    return Part(factor=factor, place=PartPlace.BY_HAND, name="file system", value=deed)


class StorageLayer(LayerOfKnobs):
    """`storage.KNOB = LEVEL`. Most knobs together ask for one volume."""

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return (*_ask_volume(levels), *super().ask(levels, engine))


def _ask_volume(levels: Mapping[str, Level]) -> tuple[Request, ...]:
    """One volume for all knobs of a volume; none where each of their levels does without."""
    asked = {knob: level_text(level) for knob, level in levels.items() if knob not in _OF_NO_VOLUME}
    needing = [knob for knob, level in asked.items() if level != _NO_VOLUME.get(knob)]
    if not needing:
        return ()
    if "folder" in levels:
        reason = f"the data lie in a folder, and storage.{needing[0]} = {asked[needing[0]]} needs a volume"
        raise Blocked("storage.folder", reason, "leave one of the two out")
    wish = _wish(asked)
    _require_volume(asked)
    _require_meaning(wish)
    return (OnVolume(f"storage.{needing[0]}", wish),)


def _volume(setup: Setup) -> Volume:
    """The volume, which a level of the device's queue always asks for."""
    assert setup.volume is not None
    return setup.volume


def _split(level: Level) -> list[str] | None:
    """A command line's words; None when a quote is left open."""
    try:
        return shlex.split(level_text(level))
    except ValueError:
        return None


def _options(level: str) -> list[str]:
    """The maker's options of a level; the reader has seen to its quotes."""
    return [] if level == "defaults" else _split(level) or []


def _lacks_raw(level: str, engine: Engine) -> Mistake | None:
    if level != "raw" or engine.raw_file:
        return None
    return Mistake(0, f"{engine.title} cannot keep its data on a raw device", "leave out raw")


def _refused_mkfs(level: str) -> Mistake | None:
    """A level that no maker may be given; which maker a variant has is known where its levels meet."""
    if _split(level) is None:
        return Mistake(0, f"storage.mkfs: a quote is not closed in {level!r}", "close it")
    fault = any_maker_fault(_options(level))
    return None if fault is None else Mistake(0, f"storage.mkfs: {fault.reason}", fault.hint)


def _refused_mount(level: str) -> Mistake | None:
    fault = mount_fault(_mount_options(level))
    return None if fault is None else Mistake(0, f"storage.mount: {fault.reason}", fault.hint)


def _mount_options(level: str) -> tuple[str, ...]:
    return tuple(option for option in level.split(",") if option not in ("", "defaults"))


def _require_volume(asked: Mapping[str, str]) -> None:
    """Raises Blocked where one level asks for a volume and another for none."""
    if asked.get("filesystem") == "host":
        others = [
            f"storage.{knob} = {level}"
            for knob, level in asked.items()
            if knob != "filesystem" and level != _NO_VOLUME.get(knob)
        ]
        reason = f"host is a folder on the host's own file system, and {', '.join(others)} needs a volume"
        raise Blocked("storage.filesystem", reason, "name a file system, ext4 say, or leave those out")


def _require_meaning(wish: VolumeSpecification) -> None:
    """Raises Blocked for options that would have nothing to act on, before anything is made for them."""
    if wish.filesystem == "raw" and wish.mount:
        reason = f"a raw device is not mounted, so {','.join(wish.mount)} has no effect on it"
        raise Blocked("storage.mount", reason, "compare it at storage.mount = defaults")
    if wish.filesystem in ("raw", "tmpfs") and wish.mkfs:
        reason = f"nothing is made with mkfs for {wish.filesystem}"
        raise Blocked("storage.mkfs", reason, "compare it at storage.mkfs = defaults")
    fault = maker_fault(wish.filesystem, wish.mkfs) if wish.mkfs else None
    if fault is not None:
        raise Blocked("storage.mkfs", fault.reason, fault.hint)


def _wish(asked: Mapping[str, str]) -> VolumeSpecification:
    wish = VolumeSpecification(
        mkfs=tuple(_options(asked.get("mkfs", "defaults"))),
        mount=_mount_options(asked.get("mount", "")),
    )
    if asked.get("device", "disk") != "disk":
        wish = replace(wish, device=asked["device"])
    if asked.get("filesystem", "host") != "host":
        wish = replace(wish, filesystem=asked["filesystem"])
    if "size" in asked:
        wish = replace(wish, size_bytes=size_bytes(asked["size"]))
    return wish


def _evidence(knob: str, level: str, value: str, source: str, in_effect: bool, remedy: str = "") -> Evidence:
    found = Reading(value=value, source=source)
    accepted = "mkfs, mount and the kernel took it without an error"
    return proof(f"storage.{knob}", level, found, in_effect, accepted, remedy)


def _prove_device(level: str, running: Running) -> Evidence:
    setup, volume = running.setup, running.setup.volume
    if volume is None:
        mount = mounted_at(setup.data)
        source = f"mountinfo: {mount.source}, {mount.filesystem}"
        return _evidence("device", level, "disk", source, level == "disk")
    if level in ("loop", "ram"):
        return _prove_loop(level, volume)
    same = str(volume.device) == level
    remedy = "a folder has the host's file system: leave out the levels that need a volume, or use loop"
    return _evidence("device", level, str(volume.device), "the volume's own device", same, remedy)


def _prove_folder(level: str, running: Running) -> Evidence:
    data, folder = running.setup.data.resolve(), Path(level).resolve()
    mount = mounted_at(data)
    source = f"mountinfo of the data: {mount.source}, {mount.filesystem}"
    return _evidence("folder", level, str(data), source, data.is_relative_to(folder))


def _prove_loop(level: str, volume: Volume) -> Evidence:
    """A loop device with direct I/O on a disk, or one whose file lies in memory."""
    if volume.direct_io is None:
        source = f"mountinfo: {volume.mount.filesystem if volume.mount else 'raw'}"
        return _evidence("device", level, str(volume.device), source, False, "leave storage.device out")
    backing = Path(kernel_files.text(volume.sysfs / "loop" / "backing_file"))
    below = mounted_at(backing).filesystem
    value = f"{volume.device} on {below}, direct I/O {'on' if volume.direct_io else 'off'}"
    remedy = "the file system below Dyno's cache offers no direct I/O: point XDG_CACHE_HOME elsewhere"
    source = f"{volume.sysfs}/loop/dio, and mountinfo of its backing file"
    in_effect = below == "tmpfs" if level == "ram" else volume.direct_io and below != "tmpfs"
    return _evidence("device", level, value, source, in_effect, remedy)


def _prove_filesystem(level: str, running: Running) -> Evidence:
    setup = running.setup
    if level == "raw" and setup.volume is not None:
        target = (setup.data / setup.engine.raw_file).resolve()
        value = "raw" if target.is_block_device() else "a file"
        return _evidence("filesystem", level, value, f"{setup.engine.raw_file} is {target}", value == "raw")
    mount = mounted_at(setup.data)
    in_effect = setup.volume is None if level == "host" else mount.filesystem == level
    return _evidence("filesystem", level, mount.filesystem, "mountinfo of the data", in_effect)


SILENT = {
    "async": "sync",
    "atime": "noatime",
    "diratime": "nodiratime",
    "strictatime": "relatime noatime",
    "norelatime": "relatime",
    "dev": "nodev",
    "exec": "noexec",
    "suid": "nosuid",
    "rw": "ro",
    "barrier": "nobarrier",
}
"""Options that the kernel shows by the absence of others: those of mount(8), and barriers."""

OTHER_NAMES = {"barrier=0": "nobarrier", "barrier=1": "barrier"}


def _prove_mount(level: str, running: Running) -> Evidence:
    """The options in force, not those asked for: a file system may take an option and drop it."""
    setup = running.setup
    asked = [option for option in level.split(",") if option != "defaults"]
    if setup.volume is not None and setup.volume.mount is None:
        return _evidence("mount", level, "a raw device is not mounted", "mountinfo", not asked)
    options, source = _options_in_force(setup.data)
    missing = [option for option in asked if not in_force(option, options)]
    shown = ",".join(mounted_at(setup.data).options)
    evidence = _evidence("mount", level, shown, source, not missing, "leave the option out")
    if missing:
        reason = f"the file system took {','.join(missing)} and does not show it as active; it shows {shown}"
        return evidence.but(reason=reason)
    return evidence


def _options_in_force(data: Path) -> tuple[frozenset[str], str]:
    """What mountinfo shows, and the defaults that the ext4 driver, which serves ext2 and ext3 too, lists
    apart."""
    mount = mounted_at(data)
    listed = Path("/proc/fs/ext4") / Path(mount.source).name / "options"
    if not listed.is_file():
        return frozenset(mount.options), "mountinfo of the data"
    return frozenset(
        (*mount.options, *kernel_files.text(listed, may_be_empty=True).split())
    ), f"mountinfo of the data, {listed}"


def in_force(option: str, options: Collection[str]) -> bool:
    """Whether an option is among those in force, in whatever of its spellings."""
    option = OTHER_NAMES.get(option, option)
    if option in SILENT and not any(opposite in options for opposite in SILENT[option].split()):
        return True
    name, _, value = option.partition("=")
    shown = [one.partition("=")[2] for one in options if one.partition("=")[0] == name]
    # A compressor is shown with the level that it works at, and a size in a unit of the kernel's choice.
    return option in options or any(
        value and (each.startswith(f"{value}:") or _size_bytes(each) == _size_bytes(value) is not None)
        for each in shown
    )


def _size_bytes(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)([kmgt]?)", text.lower())
    return int(found[1]) << (10 * " kmgt".index(found[2] or " ")) if found else None


def _prove_queue(knob: str, file: str, level: str, running: Running) -> Evidence:
    setup = running.setup
    path = (setup.volume.queue if setup.volume else queue_below(setup.data)) / file
    value = kernel_values.read(path) if path.exists() else "no such queue"
    return _evidence(knob, level, value, str(path), value == level)


def _prove_size(level: str, running: Running) -> Evidence:
    setup = running.setup
    volume = setup.volume
    if volume is None:
        return _evidence("size", level, "no device", "the data lie in a folder", False)
    if volume.wish.filesystem == "tmpfs":
        status = os.statvfs(setup.data)
        found_bytes, source = status.f_blocks * status.f_frsize, "statvfs of the data"
    else:
        found_bytes, source = int(kernel_files.text(volume.sysfs / "size")) * 512, f"{volume.sysfs}/size"
    return _evidence("size", level, f"{found_bytes} bytes", source, found_bytes >= size_bytes(level))


def _prove_mkfs(level: str, running: Running) -> Evidence:
    setup = running.setup
    wish = setup.volume.wish if setup.volume else VolumeSpecification()
    given = shlex.join(wish.mkfs) or "defaults"
    source = f"command line of mkfs.{wish.filesystem}, which succeeded, in the image's account"
    return _evidence("mkfs", level, given, source, list(wish.mkfs) == _options(level))


def _prove_page_cache(level: str, running: Running) -> Evidence:
    value = "drop" if running.setup.page_cache_emptied else "keep"
    source = "/proc/sys/vm/drop_caches took it before the server started" if value == "drop" else "left alone"
    return _evidence("page_cache", level, value, source, value == level)


def _written(running: Running) -> Reading | None:
    """What reached the device while the server ran: data that went elsewhere would show here."""
    volume = running.setup.volume
    if volume is None or volume.wish.filesystem == "tmpfs":
        return None
    told = f"{volume.written_bytes() / 1e6:.1f} MB written to {volume.device} since it was attached"
    return Reading(value=told, source=f"{volume.sysfs}/stat")


_volume_knob = partial(Knob, exercised=_written, needs=ROOT)

STORAGE = StorageLayer(
    "storage",
    _volume_knob(
        name="storage.device",
        levels="disk (a folder), loop (a file with direct I/O), ram (a file in memory),"
        " or a block device such as /dev/sdb",
        pattern=r"disk|loop|ram|/dev/[\w./:@+-]+",
        effect="a volume on it; disk is a folder of Dyno's cache",
        proof="mountinfo; the loop device's backing file and dio",
        prove=_prove_device,
        gives_up=lambda level: Promise.DURABILITY if level == "ram" else None,
        related=("data.device", "disks"),
        in_production=False,
    ),
    _volume_knob(
        name="storage.filesystem",
        levels=", ".join(FILE_SYSTEMS),
        pattern="|".join(FILE_SYSTEMS),
        effect="mkfs and mount",
        proof="mountinfo; for raw, that the database is a block device",
        prove=_prove_filesystem,
        lacked=_lacks_raw,
        gives_up=lambda level: Promise.DURABILITY if level == "tmpfs" else None,
        related=("data.filesystem",),
    ),
    _volume_knob(
        name="storage.mkfs",
        levels="defaults, or options of the file system's maker that name no path and no device",
        pattern=".*",
        refused=_refused_mkfs,
        effect="the command line of mkfs",
        proof="that command line succeeded",
        prove=_prove_mkfs,
        in_production=False,
    ),
    _volume_knob(
        name="storage.mount",
        levels="mount options with commas between, or defaults; none that names a device or a path",
        pattern=r"[\w.,=:-]+",
        refused=_refused_mount,
        effect="mount(8)",
        proof="the options in force in mountinfo (and /proc/fs/ext4): one that was taken and ignored is"
        " not in effect",
        prove=_prove_mount,
        gives_up=lambda level: Promise.DURABILITY if UNSAFE_MOUNTS & set(level.split(",")) else None,
        related=("data.options",),
    ),
    _volume_knob(
        name="storage.scheduler",
        levels="the name of an I/O scheduler: none, mq-deadline, kyber, bfq",
        pattern="[a-z-]+",
        effect="the queue of the device that holds the data",
        proof="read back",
        ask=lambda level, _: (Scheduler(level),),
        prove=partial(_prove_queue, "scheduler", "scheduler"),
        related=("data.device", "disks"),
    ),
    _volume_knob(
        name="storage.read_ahead",
        levels="a whole number of KiB",
        pattern=r"\d{1,7}",
        effect="the queue of the device that holds the data",
        proof="read back",
        ask=lambda level, _: (ReadAhead(int(level)),),
        prove=partial(_prove_queue, "read_ahead", "read_ahead_kb"),
    ),
    _volume_knob(
        name="storage.size",
        levels="a size such as 512M or 2G",
        pattern=r"\d+[MGT]",
        effect="the volume's size; if left out, three times the data and 512 MiB",
        proof="the device's size",
        prove=_prove_size,
        in_production=False,
    ),
    Knob(
        name="storage.folder",
        levels="the absolute path of a folder, such as /mnt/nvme",
        pattern=r"/.*",
        effect="the data lie in its folder dyno, on the disk that it is on",
        proof="mountinfo of the data",
        ask=lambda level, _: (InFolder(level),),
        prove=_prove_folder,
        needs="the right to write there",
        related=("data.device", "disks"),
        in_production=False,
    ),
    Knob(
        name="storage.page_cache",
        levels="keep or drop",
        pattern="keep|drop",
        effect="drop empties the host's page cache right before the server starts",
        proof="the kernel took it",
        ask=lambda level, _: (EmptyPageCache(),) if level == "drop" else (),
        prove=_prove_page_cache,
        needs=ROOT,
        scope=Scope.HOST,
        in_production=False,
    ),
)
"""`storage.KNOB = LEVEL`."""
