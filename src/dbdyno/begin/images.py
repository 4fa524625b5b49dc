"""The images of the pristine data that a run would make, as `dyno plan` shows them."""

from __future__ import annotations

import math

from dbdyno.begin.given import data_text, planned_data
from dbdyno.report.words.numbers import plural, seconds_text
from dbdyno.study import Study
from dbdyno.trial.pristine import IMAGES_ENOUGH, worth_s


def images_text(study: Study, budget_s: float | None) -> str:
    """How many images of the pristine data pairs of blocks take in turn, as far as that is known before the
    first, and where they come from."""
    if planned := planned_data(study):
        return data_text(planned)
    if study.server is not None:
        return ""
    if study.search is not None:
        return "data: the confirmation makes copies of its own"
    if study.images is not None:
        images = min(study.images, math.ceil(study.blocks / 2))
        copies = plural(images, "copy", "copies")
        return f"data: {copies}, each made anew" if images > 1 else f"data: {copies}"
    limit = f"fewer if the others take longer than {seconds_text(worth_s(study, budget_s))} to make"
    return f"data: up to {IMAGES_ENOUGH} copies, each made anew; {limit}"
