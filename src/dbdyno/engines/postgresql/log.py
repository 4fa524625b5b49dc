"""What PostgreSQL writes into its log, and what that means."""

from __future__ import annotations

import re

from dbdyno.engines.log import doubtful_lines, hint_in, unknown_setting
from dbdyno.engines.postgresql.settings import parameters
from dbdyno.obtain.installation import Installation

ALARMING = re.compile(r"\b(ERROR|FATAL|PANIC|WARNING):|was terminated by signal|could not load|corrupt")
BENIGN = re.compile(
    r"the database system is (starting up|shutting down|not yet accepting connections)"
    r"|terminating connection due to admin"
    # An emulated server cannot read this machine's locales, and Dyno's data have none.
    r"|no usable system locales were found"
)

HINTS = (
    (r"No space left on device", "the disk is full: make room below the data directory"),
    (
        r"lock file .* already exists|Is another postmaster",
        "another server uses this data directory: stop it",
    ),
    (r"Cannot allocate memory|could not map anonymous shared memory", "choose smaller shared_buffers"),
    (r"error while loading shared libraries", "the server's libraries are incomplete: fetch it again"),
    (
        r"invalid value for parameter|is outside the valid range|requires a",
        "the server refuses this value",
    ),
    (
        r"[Pp]ermission denied|wrong ownership",
        "the data directory must belong to the user that runs Dyno",
    ),
    (r"incompatible with server|was initialized by", "this data directory was made by another version"),
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r'unrecognized configuration parameter "([^"]+)"', log)
    if unknown:
        return unknown_setting("PostgreSQL", unknown[1], parameters(installation))
    return hint_in(log, HINTS)
