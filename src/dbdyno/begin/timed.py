"""What asks for speeds, and so for a study that measures some."""

from __future__ import annotations

from dbdyno.study import Study, excludes
from dbdyno.study.nouns import PLATFORM_FACTOR


def require_timed(study: Study, what: str) -> Study:
    """The study, which measures speeds. Raises UserError where it is one of platforms; `what` asks for them:
    a verb or an option."""
    excludes.require({PLATFORM_FACTOR: study.of_platforms, what: True})
    return study
