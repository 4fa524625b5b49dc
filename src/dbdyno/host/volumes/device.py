"""Named block devices: used only when the user allowed this very path, and nobody's data are on it."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host import kernel_files
from dbdyno.host.volumes.signature import MISSING, NOTHING, is_put, probed


def require_allowed(device: Path, allowed: Collection[Path]) -> None:
    """Raises Blocked, with the reason, unless Dyno may overwrite the whole device."""
    refusal, remedy = _refusal(device, allowed)
    if refusal:
        raise Blocked("storage.device", f"{device}: {refusal}", remedy)


def _refusal(device: Path, allowed: Collection[Path]) -> tuple[str, str]:
    if device not in allowed:
        return "not allowed to be overwritten", f"if nothing on it is needed: --allow-device {device}"
    if not device.is_block_device():
        return "not a block device of this machine", "lsblk lists them"
    name = device.resolve().name
    if any((Path("/sys/class/block") / name).glob(f"{name}*")):
        return "it is divided into partitions", "name one of them, or another device"
    holders = Path("/sys/class/block") / name / "holders"
    if holders.is_dir() and kernel_files.names(holders):
        return "another device uses it (LVM, RAID, encryption)", "name another device"
    if not _is_free(device):
        return "in use: mounted, or held by another program", "unmount it, or name another device"
    signature = _signature(device)
    if signature:
        return f"it holds {signature}", f"if nothing on it is needed: wipefs --all {device}"
    return "", ""


def _is_free(device: Path) -> bool:
    """An exclusive open fails while a device is mounted or claimed (open(2), O_EXCL on block devices)."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _signature(device: Path) -> str:
    """What lies on the device in words; empty when nothing does, or a volume that this Dyno left there."""
    code, found = probed(device)
    if code == NOTHING or is_put(found.get("UUID", "")):
        return ""
    if code == MISSING:
        return "data of an unknown kind, because blkid is not installed"
    if code != 0:
        return "data that blkid does not recognise"
    return f"{found.get('TYPE') or found.get('PTTYPE', 'data')} {found.get('LABEL', '')}".strip()
