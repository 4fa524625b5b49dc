"""Before a build is started: is its code another one than the baseline's?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.errors import Blocked, Inert
from dbdyno.study import Design
from dbdyno.study.builds import LAYOUT, changed_levels, is_placebo, of_build

if TYPE_CHECKING:
    from dbdyno.frozen import Level
    from dbdyno.obtain.source.wish import BuildWish
    from dbdyno.records.binary import CodeBeside
    from dbdyno.study import Study
    from dbdyno.study.trials import Trial
    from dbdyno.trial.bench import Bench

EACH_CELL = (Design.FACTORIAL, Design.FRACTIONAL)
"""Designs whose effects need every variant, an inert one as well."""


def code_beside_baseline(trial: Trial, bench: Bench) -> CodeBeside | None:
    """How the code of a trial's build differs from that of the baseline's. None where it is the same build,
    where one of the two is none, and where they cannot be compared. Raises like `built`."""
    study = bench.study
    if not any(of_build(factor) for factor in changed_levels(trial.variant.levels, study.baseline)):
        return None
    # Here and below, because most trials run no build.
    from dbdyno.engines.built import code_beside

    wish, baseline = (_wish(levels, bench) for levels in (trial.variant.levels, study.baseline))
    if wish is None or baseline is None or wish == baseline:
        return None
    return code_beside(bench.engine, wish, baseline, study.folder)


def require_own_code(trial: Trial, study: Study, code: CodeBeside | None) -> None:
    """Raises Inert where a trial would only measure the baseline again, and Blocked where a placebo is
    none."""
    changed = changed_levels(trial.variant.levels, study.baseline)
    if is_placebo(changed):
        _require_placebo(code)
    elif code is not None and code.same and _by_code_alone(changed) and study.design not in EACH_CELL:
        raise Inert(equal_text(code), _remedy(code))


def equal_text(code: CodeBeside) -> str:
    """What was compared, and found to be equal."""
    equal = f"{code.functions.equal:,} functions and all constants and variables are equal to the baseline's"
    return f"{equal}; {code.moved:,} of the functions lie elsewhere" if code.moved else equal


def _by_code_alone(changed: Mapping[str, Level]) -> bool:
    """Whether a variant can differ from the baseline by its code alone. A layout is asked for on purpose."""
    return LAYOUT not in changed and all(of_build(factor) for factor in changed)


def _remedy(code: CodeBeside) -> str:
    if code.moved:
        return f'only the luck of layout is left: {LAYOUT} = ["none", 1, 2, 3] shows how far that goes'
    return "take it out of the study: the compiler makes the same code with it and without it"


def _require_placebo(code: CodeBeside | None) -> None:
    """Raises Blocked where the code of a placebo is not shown to be the baseline's, or lies where that
    lies."""
    if code is None or not code.named:
        reason = (
            "the code cannot be compared with the baseline's, so nothing shows that only its place changed"
        )
        remedy = "have the recipe leave the symbols in (no -s, no strip), on x86-64"
    elif not code.same_program:
        reason = f"it is no placebo: {_differing(code)} differ from the baseline's"
        remedy = "have the recipe compile and link by {cflags} and {ldflags} alone"
    elif not code.moved:
        reason = "all functions lie where the baseline's lie"
        remedy = "have the recipe compile with {cflags} and link with {ldflags}"
    else:
        return
    raise Blocked(LAYOUT, f"{LAYOUT}: {reason}", remedy)


def _differing(code: CodeBeside) -> str:
    """What of a program differs, in the order of gravity."""
    if code.changed:
        return f"{code.changed:,} functions"
    if code.other_constants:
        return f"the constants of {code.other_constants:,} functions"
    if not code.data.all_equal:
        return f"{code.data.differing + code.data.only_left + code.data.only_right:,} constants and variables"
    return "the libraries or the protections"


def _wish(levels: Mapping[str, Level], bench: Bench) -> BuildWish | None:
    try:
        from dbdyno.layers.wishes import wish_of

        return wish_of(bench.study, levels, bench.layers, bench.engine)
    except Blocked:
        # What the levels of this side ask for is refused when its own trial is prepared.
        return None
