"""Moments as logs write them, in seconds since 1970. One without a time zone counts as UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def short_s(text: str) -> float | None:
    """Of `261122  6:00:01`, as MariaDB's logs write it; None for what is no moment."""
    try:
        return datetime.strptime(" ".join(text.split()), "%y%m%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def iso_s(text: str) -> float | None:
    """Of `2026-11-22T16:00:00.000001Z`, as MySQL's logs write it; None for what is no moment."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def moment_s(text: str) -> float | None:
    """Of a moment in either form."""
    return iso_s(text) if "T" in text else short_s(text)
