"""Everything that a report says and shows of a verdict, in one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analyse.model import Analysis, Role, VariantResult, Verdict
from dbdyno.report.words.numbers import effect_text, plural
from dbdyno.report.words.safe import clean
from dbdyno.study.nouns import Promise


@dataclass(frozen=True)
class VerdictLook:
    """A verdict's glyph, its style on a terminal, its shape in a figure, and what it means in a sentence.

    Each has a shape of its own for readers who cannot tell the colours.
    """

    glyph: str
    style: str
    shape: str
    meaning: str


LOOKS: dict[Verdict, VerdictLook] = {
    Verdict.FASTER: VerdictLook(
        "▲", "bold green", "triangle-up", "the whole interval lies on the better side of 1"
    ),
    Verdict.SLOWER: VerdictLook(
        "▼", "bold red", "triangle-down", "the whole interval lies on the worse side of 1"
    ),
    Verdict.NO_EFFECT: VerdictLook(
        "=", "default", "square", "a difference, if there is one, is smaller than the margin"
    ),
    Verdict.INCONCLUSIVE: VerdictLook("?", "yellow", "circle", "the interval is too wide to tell"),
    Verdict.BROKEN: VerdictLook(
        "✗", "bold red", "cross", "it violated an invariant or a guard, so its speed does not count"
    ),
    Verdict.BLOCKED: VerdictLook("⊘", "magenta", "cross", "the setting could not be applied here"),
    Verdict.FAILED: VerdictLook(
        "✗", "bold red", "cross", "it did not build, start or survive, or the driver was the limit"
    ),
    Verdict.INERT: VerdictLook(
        "≡", "default", "stroke", "its code is the baseline's, so it was not measured"
    ),
}


def slug(verdict: Verdict) -> str:
    """The verdict as a CSS class."""
    return verdict.value.replace(" ", "-")


def colour(verdict: Verdict) -> str:
    """The verdict's colour in a page, as a CSS variable."""
    return f"var(--{slug(verdict)})"


def marked(verdict: Verdict) -> str:
    """The verdict's word behind its glyph."""
    return f"{LOOKS[verdict].glyph} {verdict.value}"


def settled(result: VariantResult, blocks: int) -> str:
    """A verdict that stands before the run is over, in a line of its progress."""
    said = losing(marked(result.verdict or Verdict.INCONCLUSIVE), losses_of_variant(result))
    if result.effect is not None:
        said += f", {effect_text(result.effect)} times the baseline"
    return f"after {plural(blocks, 'block')}: {clean(result.name)} {said}"


def losing(said: str, promises: Sequence[Promise]) -> str:
    """What is said of a setup, with what that gives up: `▲ faster, gives up durability`."""
    return f"{said}, gives up {lost(promises)}" if promises else said


def lost(promises: Sequence[Promise]) -> str:
    """Promises in a sentence."""
    return " and ".join(promises)


WITHOUT_LOSS = (Verdict.BLOCKED, Verdict.FAILED, Verdict.INERT)
"""What was not measured has given nothing up."""


def losses_of_variant(variant: VariantResult) -> tuple[Promise, ...]:
    """What a variant that was measured gives up."""
    return () if variant.verdict in WITHOUT_LOSS else variant.gives_up


def ranked_variants(analysis: Analysis) -> list[VariantResult]:
    """All but the baseline: by ratio, best first; then those without one; twin and placebos last, to show
    the noise.
    """
    better = -1.0 if analysis.method.higher_is_better else 1.0

    def rank(variant: VariantResult) -> tuple[bool, bool, float]:
        effect = variant.effect
        last = variant.role is not Role.CANDIDATE
        return last, effect is None, better * math.log(effect.ratio) if effect else 0.0

    return sorted((variant for variant in analysis.variants if variant.role is not Role.BASELINE), key=rank)
