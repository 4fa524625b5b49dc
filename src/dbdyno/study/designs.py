"""The variants of a study: which combinations of levels its design compares, how many trials these make
before any of them is made, and which factors make a build. A regular fraction of a two-level factorial holds
some of its variants, and says what it cannot tell apart.

With more factors than all combinations can be measured of, the first ones are combined freely and each
further factor takes the product of some of them as its sign. What that costs is known beforehand: effects
whose signs agree in every variant are one figure. The generators are those of the tables in Box, Hunter and
Hunter, Statistics for Experimenters (2nd edition, 2005, chapter 6), and Montgomery, Design and Analysis of
Experiments (8th edition, 2013, table 8.14 and appendix): of the highest resolution with at most 32 variants.
A factor is then clear of every interaction of two factors.

A generator of even length gets a minus, so that the baseline, all factors low, is a variant of the fraction.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product

from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.study.nouns import BASELINE, TWIN, Design, Factor, Restarts, Study, Workload
from dbdyno.study.soak import Act
from dbdyno.study.trials import Variant

BUILD_LAYERS = frozenset(("source", "build"))
LAYOUT = "build.layout"
"""The factor whose levels move the code and change none of it: placebos."""


def changed_levels(levels: Mapping[str, Level], baseline: Mapping[str, Level]) -> dict[str, Level]:
    """The levels that differ from the baseline's."""
    return {
        factor: level
        for factor, level in levels.items()
        if factor not in baseline or level_text(baseline[factor]) != level_text(level)
    }


def of_build(factor: str) -> bool:
    """Whether the levels of a factor are builds."""
    return factor.partition(".")[0] in BUILD_LAYERS


def is_placebo(changed: Iterable[str]) -> bool:
    """Whether a variant that changes these factors has the baseline's code at other addresses."""
    return set(changed) == {LAYOUT}


def variants_of(study: Study) -> tuple[Variant, ...]:
    """Every variant once, the baseline first and its copies last. No order of trials is drawn."""
    variants: dict[str, Variant] = {}
    for name, levels in _DESIGNS[study.design](study):
        placebo = is_placebo(changed_levels(levels, study.baseline))
        variants.setdefault(name, Variant(name=name, levels=levels, placebo=placebo))
    if study.aa:
        variants[TWIN] = Variant(name=TWIN, levels=study.baseline, twin=True)
    for number in range(2, study.baselines_each + 1):
        name = f"{BASELINE}-{number}"
        variants[name] = Variant(name=name, levels=study.baseline, twin=True, shares=True)
    return tuple(variants.values())


def extremes_of(study: Study) -> tuple[Variant, ...]:
    """Variants that show what a study may do to the host: in a search, the baseline and each factor at each
    other level of its list, or at the ends of its range; else all variants."""
    if study.search is None:
        return variants_of(study)
    shown = [_named(study, study.baseline)]
    for factor in study.factors:
        ends = (factor.rising[0], factor.rising[-1]) if factor.rising else factor.levels[1:]
        shown += [_named(study, {**study.baseline, factor.name: level}) for level in ends]
    return tuple(Variant(name=name, levels=levels) for name, levels in dict(shown).items())


def counted_variants(study: Study) -> tuple[Variant, ...]:
    """Those whose work is counted once beside the timed blocks: all but copies of the baseline."""
    if not study.goal.counted:
        return ()
    return tuple(variant for variant in variants_of(study) if not variant.twin)


def restarted_variants(study: Study) -> tuple[Variant, ...]:
    """Those whose engines are restarted beside the timed blocks: all but copies of the baseline."""
    if study.restarts is None:
        return ()
    return tuple(restarted_variant(study, variant) for variant in variants_of(study) if not variant.twin)


def restart_trial_count(study: Study) -> int:
    """How many trials of restarts a run has, that of the control included."""
    return turns(study) * len(restarted_variants(study)) + (control_of(study) is not None)


def trials_in_all(study: Study, left_out: int = 0) -> int:
    """How many trials a run of the study has, those beside the blocks included, where blocks after the first
    leave so many variants out, which have no work to count."""
    return trial_count(study, left_out) + beside_count(study, left_out)


def beside_count(study: Study, left_out: int = 0) -> int:
    """How many trials stand beside the blocks, where so many variants have no work to count."""
    return max(0, len(counted_variants(study)) - left_out) + restart_trial_count(study)


def _one_at_a_time(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The baseline, then each other level of each factor, all else as in the baseline."""
    yield _named(study, study.baseline)
    for factor in study.factors:
        for level in factor.levels[1:]:
            yield _named(study, {**study.baseline, factor.name: level})


def _ladder(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """Each rung moves one factor on to its next level and keeps what was reached, in the order written."""
    levels = study.baseline
    yield _named(study, levels)
    for factor in study.factors:
        for level in factor.levels[1:]:
            levels = {**levels, factor.name: level}
            yield _named(study, levels)


def _factorial(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """Every combination of levels; the baseline, of first levels, comes first."""
    names = [factor.name for factor in study.factors]
    for levels in product(*(factor.levels for factor in study.factors)):
        yield _named(study, dict(zip(names, levels, strict=True)))


def _fractional(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The variants of a fraction of the two-level factorial, the baseline first."""
    for signs in points(len(study.factors)):
        levels = zip(study.factors, signs, strict=True)
        yield _named(study, {factor.name: factor.levels[sign > 0] for factor, sign in levels})


def _list(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    for variant in study.variants:
        yield variant.name, variant.levels


def _search(study: Study) -> Iterator[tuple[str, dict[str, Level]]]:
    """The baseline alone: what a search compares with it follows from its records."""
    yield _named(study, study.baseline)


_DESIGNS: dict[Design, Callable[[Study], Iterator[tuple[str, dict[str, Level]]]]] = {
    Design.ONE_AT_A_TIME: _one_at_a_time,
    Design.LADDER: _ladder,
    Design.FACTORIAL: _factorial,
    Design.FRACTIONAL: _fractional,
    Design.LIST: _list,
    Design.SEARCH: _search,
}


def _named(study: Study, levels: dict[str, Level]) -> tuple[str, dict[str, Level]]:
    """A variant's levels under their name: those that are not the baseline's, in the order of the factors."""
    baseline = {name: level_text(level) for name, level in study.baseline.items()}  # 1 == True, "1" != "true"
    texts = {name: level_text(level) for name, level in levels.items()}
    changed = [f"{name}={_quoted(text)}" for name, text in texts.items() if text != baseline[name]]
    return ", ".join(changed) or BASELINE, levels


def _quoted(text: str) -> str:
    """In quotes where two variants could otherwise have one name, or a level would not be seen."""
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(',"') else text


def trial_count(study: Study, left_out: int = 0) -> int:
    """How many trials the study's blocks hold, where blocks after the first leave so many variants out."""
    variants = len(variants_of(study))
    return variants + (study.blocks - 1) * (variants - left_out) if study.blocks else 0


COUNTED_TO = 10**9


class StudySize(Frozen):
    """How many trials a study has, counted up to `COUNTED_TO`, and the arithmetic that gives them."""

    trials: int
    arithmetic: str


def size_of_study(study: Study) -> StudySize:
    """The size of a study as it is."""
    listed = len(study.variants)
    return size_of_design(study.design, study.factors, listed, study.blocks, study.aa, study.baselines_each)


def size_of_design(
    design: Design, factors: tuple[Factor, ...], listed: int, blocks: int, aa: bool, baselines: int
) -> StudySize:
    """The size of a study before any of its trials is made: a full factorial can exceed every memory."""
    if design is Design.LIST:
        variants, words = listed, f"{listed} variants"
    elif design is Design.FACTORIAL:
        variants = 1
        for factor in factors:
            variants = min(variants * len(factor.levels), COUNTED_TO)
        counts = [str(len(factor.levels)) for factor in factors]
        product = " x ".join(counts if len(counts) <= 8 else [*counts[:7], f"... ({len(counts)} factors)"])
        words = f"{product or 1} levels = {_counted(variants)} variants"
    elif design is Design.SEARCH:
        variants, words = 1, "1 baseline, and as many candidates as the time allows"
    elif design is Design.FRACTIONAL:
        variants = len(points(len(factors))) if len(factors) in GENERATORS else 0
        words = f"a fraction of 2^{len(factors)} combinations = {variants} variants"
    else:
        others = sum(len(factor.levels) - 1 for factor in factors)
        variants, words = 1 + others, f"1 baseline + {others:,} other levels = {1 + others:,} variants"
    if copies := aa + baselines - 1:
        more = "1 second baseline" if copies == 1 else f"{copies} further baselines"
        variants, words = variants + copies, f"{words} + {more}"
    trials = min(variants * blocks, COUNTED_TO)
    return StudySize(trials=trials, arithmetic=f"{words}, x {blocks:,} blocks = {_counted(trials)} trials")


def _counted(count: int) -> str:
    return f"{count:,}" if count < COUNTED_TO else f"over {COUNTED_TO:,}"


GENERATORS: Mapping[int, tuple[str, ...]] = {
    5: ("ABCD",),
    6: ("ABCDE",),
    7: ("ABCD", "ABDE"),
    8: ("ABC", "ABD", "BCDE"),
    9: ("BCDE", "ACDE", "ABDE", "ABCE"),
    10: ("ABCD", "ABCE", "ABDE", "ACDE", "BCDE"),
    11: ("ABC", "BCD", "CDE", "ACD", "ADE", "BDE"),
    12: ("ACE", "ACD", "ABD", "ABE", "CDE", "ABCDE", "ADE"),
}
"""By the number of factors: the signs of the last ones, as products of the first ones."""

FACTORS_LEAST, FACTORS_MOST = min(GENERATORS), max(GENERATORS)
LETTERS = "ABCDEFGHJKLM"
"""The factors in the study's order. I is left out, as everywhere: it stands for the mean."""

Signs = tuple[int, ...]
"""-1 for a factor's first level and 1 for its second, in the order of the factors."""


class ConfoundedInteractions(Frozen):
    """Interactions that are one figure in a fraction: each the numbers of its factors, and the sign with
    which it goes into the figure; the first goes in with 1.
    """

    interactions: tuple[tuple[int, ...], ...]
    signs: Signs

    @property
    def text(self) -> str:
        """As textbooks write it: `A×B + C×D`."""
        names = ["×".join(LETTERS[index] for index in one) for one in self.interactions]
        rest = zip(names[1:], self.signs[1:], strict=True)
        return names[0] + "".join(f" {'+' if sign > 0 else '−'} {name}" for name, sign in rest)


@cache
def fraction(factors: int) -> tuple[Signs, ...]:
    """The variants of the fraction, the baseline first."""
    words = GENERATORS[factors]
    rows = []
    for free in itertools.product((-1, 1), repeat=factors - len(words)):
        made = [
            math.prod(free[LETTERS.index(letter)] for letter in word) * (1 if len(word) % 2 else -1)
            for word in words
        ]
        rows.append((*free, *made))
    return tuple(rows)


def points(factors: int) -> tuple[Signs, ...]:
    """What is measured: the fraction, and the variant with every factor high where it is not of the fraction,
    so that the whole gap is measured and not computed.
    """
    rows, fast = fraction(factors), (1,) * factors
    return rows if fast in rows else (*rows, fast)


def column(rows: tuple[Signs, ...], interaction: tuple[int, ...]) -> Signs:
    """The signs of an interaction (or of one factor) over the variants."""
    return tuple(math.prod(row[index] for index in interaction) for row in rows)


@cache
def resolution(factors: int) -> int:
    """The fewest factors whose signs multiply to the same in every variant."""
    rows = fraction(factors)
    sizes = range(1, factors + 1)
    return next(
        size
        for size in sizes
        for word in itertools.combinations(range(factors), size)
        if len(set(column(rows, word))) == 1
    )


@cache
def together(factors: int, size: int = 2) -> tuple[ConfoundedInteractions, ...]:
    """All interactions of `size` factors, those that cannot be told apart put together."""
    rows = fraction(factors)
    groups: dict[Signs, list[tuple[tuple[int, ...], int]]] = {}
    for one in itertools.combinations(range(factors), size):
        signs = column(rows, one)
        sign = signs[0]
        groups.setdefault(tuple(sign * each for each in signs), []).append((one, sign))
    return tuple(
        ConfoundedInteractions(
            interactions=tuple(one for one, _ in group),
            signs=tuple(sign * group[0][1] for _, sign in group),
        )
        for group in groups.values()
    )


@cache
def within(factors: int, index: int) -> ConfoundedInteractions | None:
    """The interactions of three factors that a factor's effect holds besides; None where there is none. Signs
    are those with which they go into the effect.
    """
    rows = fraction(factors)
    own = column(rows, (index,))
    found = [
        (group, 1 if column(rows, group.interactions[0]) == own else -1)
        for group in together(factors, 3)
        if column(rows, group.interactions[0]) in (own, tuple(-sign for sign in own))
    ]
    if not found:
        return None
    group, sign = found[0]
    return group.but(signs=tuple(sign * each for each in group.signs))


NUMERALS = {3: "III", 4: "IV", 5: "V", 6: "VI"}


def description(factors: int) -> list[str]:
    """What the fraction of so many factors can tell, and what not, line by line."""
    height = resolution(factors)
    runs, all_runs = len(fraction(factors)), 2**factors
    clear_of = "two factors" if height == 4 else f"two to {height - 2} factors"
    lines = [
        f"{runs} of {all_runs:,} variants, resolution {NUMERALS[height]}: each factor is clear of all"
        f" interactions of {clear_of}."
    ]
    if len(points(factors)) > runs:
        lines.append("The variant with every factor at its second level is measured beside them.")
    mixed = [group for group in together(factors) if len(group.interactions) > 1]
    if mixed:
        lines.append("Interactions that cannot be told apart, by the factors' letters:")
        lines += [f"  {group.text}" for group in mixed]
    else:
        lines.append("All interactions of two factors can be told apart.")
    return lines


CONTROL = "control"
"""The name of the variant that must lose commits: where it loses none, no cut proves anything."""
CONTROL_CUTS = 5
ROUNDS_MOST = 10
"""Rounds of one trial."""
WRITING = Workload(
    name="tpcb",
    clients=4,
    options={"scale": 1, "simple_update": False, "select_only": False},
    run_options=frozenset({"simple_update", "select_only"}),
)
"""A load in which each transaction writes, and whose invariants show what is missing."""


def restarted(study: Study) -> Study:
    """The study under the load of its restarts: its own where that keeps a ledger and writes, else TPC-B."""
    return study if study.workload.keeps_ledger else study.but(workload=WRITING)


def restarted_variant(study: Study, variant: Variant) -> Variant:
    """The variant without levels of a workload that is not driven."""
    if study.workload.keeps_ledger:
        return variant
    levels = {name: level for name, level in variant.levels.items() if not name.startswith("workload.")}
    return variant.but(levels=levels)


def acts_of(restarts: Restarts) -> tuple[Act, ...]:
    """All acts that each variant meets, in no particular order."""
    counts = {
        Act.CUT: restarts.power_cuts,
        Act.TEAR: restarts.torn_pages,
        Act.KILL: restarts.kills,
        Act.STOP: restarts.stops,
        Act.FLIP: restarts.flipped_bits,
        Act.NODE_KILL: restarts.nodes_killed,
        Act.NODE_PAUSE: restarts.nodes_paused,
        Act.NODE_CUT: restarts.nodes_cut_off,
        Act.NODE_EMPTY: restarts.nodes_emptied,
        Act.FIRST_LOST: restarts.first_nodes_lost,
        Act.RESET: restarts.resets,
    }
    return tuple(act for act, count in counts.items() for _ in range(count))


def turns(study: Study) -> int:
    """How many trials of restarts each variant has."""
    return -(-len(acts_of(study.restarts)) // ROUNDS_MOST) if study.restarts else 0


def control_of(study: Study) -> Variant | None:
    """The baseline under settings with which a power cut must take commits along; None where no power is
    cut."""
    restarts = study.restarts
    if restarts is None or not restarts.control or not (restarts.power_cuts or restarts.torn_pages):
        return None
    return restarted_variant(study, Variant(name=CONTROL, levels={**study.baseline, **restarts.control}))
