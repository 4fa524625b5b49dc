"""What asks for speeds, and so for a study that measures some."""

from __future__ import annotations

from dbdyno.errors import UserError
from dbdyno.study import Study
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.platforms import TIMES_NOTHING


def require_timed(study: Study, what: str) -> Study:
    """The study, which measures speeds. Raises UserError where it is one of platforms; `what` asks for them,
    in words."""
    if study.of_platforms:
        hint = "dyno run STUDY and dyno report RUN say what works"
        raise UserError(f"{what} does not go with `{PLATFORM_FACTOR}`: {TIMES_NOTHING}", hint)
    return study
