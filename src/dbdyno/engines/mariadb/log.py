"""What MariaDB writes into its log, and what that means."""

from __future__ import annotations

import re

from dbdyno.engines.log import doubtful_lines, hint_in, unknown_setting
from dbdyno.engines.mariadb.settings import defaults
from dbdyno.obtain.installation import Installation

BENIGN = re.compile(
    r"Could not increase number of max_open_files|is deprecated|'--skip-name-resolve|skip-name-resolve mode|"
    r"Could not open mysql\.plugin|io_uring_queue_init|falling back to libaio|liburing disabled|"
    r"You need to use --log-bin|root user|\[Note\] InnoDB: Set innodb_force_recovery"
)
ALARMING = re.compile(
    r"\[ERROR\]|\[Warning\]|got signal|got exception|Assertion failure|corrupt|\[FATAL\]|Aborting|"
    r"error while loading shared libraries",
    re.IGNORECASE,
)

HINTS = (
    (
        r"Errcode: 28|No space left|OS error: 28|error number 28|disk is full",
        "the disk is full: make room below the data directory",
    ),
    (
        r"Unable to lock|Can't lock aria control file|already exists and is locked",
        "another server is using this data directory: stop it first",
    ),
    (r"Cannot allocate memory|Out of memory", "there is not enough memory: choose a smaller buffer pool"),
    (
        r"error while loading shared libraries|cannot open shared object",
        "the server's libraries are incomplete: fetch the engine again",
    ),
    (r"Permission denied|Errcode: 13", "the data directory must belong to the user that runs Dyno"),
    (
        r"Wrong (value|argument)|Error while setting value|Unknown suffix|requires an argument",
        "the server refuses this value: look up what the setting allows",
    ),
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r"unknown (?:variable|option) '(?:--)?([\w-]+)", log)
    if unknown:
        return unknown_setting("MariaDB", unknown[1].replace("-", "_"), defaults(installation))
    return hint_in(log, HINTS)
