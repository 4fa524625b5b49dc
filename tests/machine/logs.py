"""Logs of measurements as firmware and kernel write them, made from events."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

SHA1, SHA256 = 4, 11
SIZES = {SHA1: 20, SHA256: 32}
NO_ACTION, CONTENTS = 3, 1
SPECIFICATION = (
    b"Spec ID Event03\0"
    + struct.pack("<IBBBB", 0, 0, 2, 0, 2)
    + struct.pack("<I", len(SIZES))
    + b"".join(struct.pack("<HH", *pair) for pair in SIZES.items())
    + b"\0"
)
BEGINNING = struct.pack("<II20sI", 0, NO_ACTION, bytes(20), len(SPECIFICATION)) + SPECIFICATION


def of_firmware(events: Iterable[tuple[int, bytes]], kind: int = CONTENTS) -> bytes:
    """A log in the crypto-agile format: of each event its register, and what was measured."""
    return BEGINNING + b"".join(_of_firmware(register, measured, kind) for register, measured in events)


def _of_firmware(register: int, measured: bytes, kind: int) -> bytes:
    digests = ((SHA1, hashlib.sha1(measured)), (SHA256, hashlib.sha256(measured)))
    told = b"".join(struct.pack("<H", number) + digest.digest() for number, digest in digests)
    head = struct.pack("<III", register, kind, len(digests))
    return head + told + struct.pack("<I", len(measured)) + measured


def of_kernel(measured: Iterable[bytes], template: bytes = b"ima-sig") -> bytes:
    """The kernel's log of register 10."""
    return b"".join(
        struct.pack("<I", 10)
        + hashlib.sha1(one).digest()
        + struct.pack("<I", len(template))
        + template
        + struct.pack("<I", len(one))
        + one
        for one in measured
    )


def added_up(measured: Iterable[bytes]) -> bytes:
    """A register to which these were added, by the TPM's own rule."""
    register = bytes(32)
    for one in measured:
        register = hashlib.sha256(register + hashlib.sha256(one).digest()).digest()
    return register
