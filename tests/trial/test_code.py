"""Which builds are measured: not those whose code is the baseline's, and no placebo that is none."""

from __future__ import annotations

import pytest

from dbdyno.errors import Blocked, Inert
from dbdyno.frozen import Level
from dbdyno.records.binary import CodeBeside, Likeness, Matching
from dbdyno.study import Design, Study
from dbdyno.study.phases import phases_of
from dbdyno.study.trials import Trial, Variant
from dbdyno.trial.code import require_own_code
from tests.analyse.builds import LEVELS, code_beside
from tests.analyse.factory import a_study

STUDY = a_study(LEVELS)


def judged(code: CodeBeside | None, study: Study = STUDY, /, **levels: Level) -> None:
    changed = {name.replace("__", "."): level for name, level in levels.items()}
    variant = Variant(name="one", levels={**study.baseline, **changed})
    trial = Trial(index=1, block=0, position=1, variant=variant, phases=phases_of(study))
    require_own_code(trial, study, code)


def test_the_baselines_code_is_inert() -> None:
    with pytest.raises(
        Inert, match=r"^12,431 functions and all constants and variables are equal to the"
    ) as one:
        judged(code_beside(), build__flags="-Wall")
    assert "take it out of the study" in one.value.hint
    with pytest.raises(Inert, match="40 of the functions lie elsewhere") as moved:
        judged(code_beside(moved=40), build__flags="-Wall")
    assert "build.layout" in moved.value.hint


@pytest.mark.parametrize(
    ("code", "levels"),
    [
        (code_beside(differing=1), {"build__flags": "-Wall"}),
        (code_beside(named=False), {"build__flags": "-Wall"}),
        (code_beside().but(other_files=1), {"build__flags": "-Wall"}),
        (code_beside().but(other_environment=True), {"build__flags": "-Wall"}),
        (None, {"build__flags": "-Wall"}),
        (code_beside(), {"build__flags": "-Wall", "config__page_cache": "64k"}),
        (code_beside(moved=9), {"build__flags": "-Wall", "build__layout": 1}),
    ],
    ids=[
        "differs",
        "stripped",
        "another library",
        "another environment",
        "not compared",
        "another setting",
        "another layout",
    ],
)
def test_what_is_not_told_to_be_the_baselines_is_measured(
    code: CodeBeside | None, levels: dict[str, Level]
) -> None:
    judged(code, **levels)


@pytest.mark.parametrize("design", [Design.FACTORIAL, Design.FRACTIONAL])
def test_a_design_that_needs_every_variant_measures_them_all(design: Design) -> None:
    judged(code_beside(), STUDY.but(design=design), build__flags="-Wall")


def test_a_placebo_with_the_same_code_elsewhere_is_measured() -> None:
    judged(code_beside(moved=12_000), build__layout=1)
    # The libraries beside the program are linked in another order as well.
    judged(code_beside(moved=12_000).but(other_files=9), build__layout=1)


CONSTANTS = code_beside(moved=9).but(likeness=Likeness.CONSTANTS)
OTHER_DATA = Matching(equal=2_000, differing=3, only_left=1, only_right=0)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (code_beside(), "all functions lie where the baseline's lie"),
        (code_beside(differing=2, moved=9), "it is no placebo: 2 functions differ"),
        (CONSTANTS.but(other_constants=4), "the constants of 4 functions differ"),
        (CONSTANTS.but(data=OTHER_DATA), "4 constants and variables differ"),
        (CONSTANTS, "the libraries or the protections differ"),
        (code_beside(moved=9, named=False), "the code cannot be compared"),
        (None, "the code cannot be compared"),
    ],
    ids=["not moved", "differs", "constants", "data", "libraries", "stripped", "not compared"],
)
def test_a_placebo_that_is_not_shown_to_be_one_is_blocked(code: CodeBeside | None, said: str) -> None:
    with pytest.raises(Blocked, match=said) as refused:
        judged(code, build__layout=1)
    assert refused.value.factor == "build.layout" and refused.value.hint
