"""How every report and list writes when something was: in UTC, because host and reader may be apart. Whoever
waits for an end has the host's own clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def moment_text(unix_s: float) -> str:
    """To the minute: 2026-01-31 12:05 UTC."""
    return f"{minute_text(unix_s)} UTC"


def minute_text(unix_s: float) -> str:
    """The same where UTC is named once for several: 2026-01-31 12:05."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M}"


def second_text(unix_s: float) -> str:
    """To the second, for what follows one another within a minute: 2026-01-31 12:05:43 UTC."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def day_text(unix_s: float) -> str:
    """The day in UTC: 2026-01-31."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d}"


def clock_text(unix_s: float) -> str:
    """Of today or tomorrow, by this host's clock: 12:05."""
    return time.strftime("%H:%M", time.localtime(unix_s))
