"""What MySQL writes into its log, and what that means."""

from __future__ import annotations

import re

from dbdyno.engines.log import doubtful_lines, hint_in, unknown_setting
from dbdyno.engines.mariadb.log import ALARMING
from dbdyno.engines.mariadb.log import HINTS as OF_BOTH
from dbdyno.engines.mysql.settings import defaults
from dbdyno.obtain.installation import Installation

BENIGN = re.compile(
    r"is deprecated|root user|empty password|CA certificate ca\.pem is self signed|"
    r"Could not increase number of max_open_files|Insecure configuration for --pid-file"
)

HINTS = (
    (r"errno: 28|error code 28|disk full", "the disk is full: make room below the data directory"),
    *OF_BOTH,
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r"unknown (?:variable|option) '(?:--)?([\w-]+)", log)
    if unknown:
        return unknown_setting("MySQL", unknown[1].replace("-", "_"), defaults(installation))
    return hint_in(log, HINTS)
