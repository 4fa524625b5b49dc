"""A part of a variant as production takes it: a setting, a variable, a directive, a value of the kernel."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.frozen import Frozen, Level


class PartPlace(StrEnum):
    """Where production takes a part from."""

    SETTING = "setting"
    ENVIRONMENT = "environment"
    UNIT = "unit"
    KERNEL = "kernel"
    QUEUE = "queue"
    MOUNT = "mount"
    BY_HAND = "by hand"


class Part(Frozen):
    """One thing that puts a level of a factor into production.

    `name` is a setting's, a variable's of the server's environment, a directive's of its systemd unit, or the
    path of a value under /proc/sys or /sys, in which `*` stands for all. In the queue of the device that
    holds the data, it is the file. The options of a mount have none. What a person must do has a title as its
    name, and the command, or the deed, as its value.
    """

    factor: str
    place: PartPlace
    name: str
    value: Level
