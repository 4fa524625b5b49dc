"""A gap as a product of steps, each variant over the one before it."""

from __future__ import annotations

import pytest

from dbdyno.analyse.found import DefaultChanged
from dbdyno.findings.gap import explain_steps
from dbdyno.findings.gap_shares import steps_of
from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.records.record import Record
from dbdyno.study import Design, Factor, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import ListedVariant, Reference
from tests.analyse.factory import a_run, a_study, records_of

OLD, NEW = "mariadb@10.11", "mariadb@11.8"
MIDDLE, LAST = "with old defaults", "with its own defaults"


def _study(*variants: dict[str, Level]) -> Study:
    names = ("baseline", MIDDLE, LAST)
    factors = tuple(
        Factor(name=name, levels=tuple(dict.fromkeys(one[name] for one in variants))) for name in variants[0]
    )
    return a_study().but(
        engine=Reference("mariadb", "10.11"),
        design=Design.LIST,
        blocks=6,
        settings={},
        factors=factors,
        variants=tuple(
            ListedVariant(name=name, levels=one) for name, one in zip(names, variants, strict=False)
        ),
    )


CHAIN = _study(
    {ENGINE_FACTOR: OLD, "config.a": 0, "config.b": 0},
    {ENGINE_FACTOR: NEW, "config.a": 0, "config.b": 0},
    {ENGINE_FACTOR: NEW, "config.a": 1, "config.b": 1},
)


def test_the_steps_of_a_list_multiply_to_the_whole() -> None:
    records = records_of(CHAIN, {MIDDLE: 1.2, LAST: 0.6}, trial_sd=0.001)
    gap = explain_steps(CHAIN, a_run(CHAIN), records)
    assert gap.in_order and gap.blocks == 6 and gap.interactions is None
    assert [(one.factor, one.slow, one.fast) for one in gap.shares] == [
        (ENGINE_FACTOR, OLD, NEW),
        ("2 settings", MIDDLE, LAST),
    ]
    shares = [one.share.ratio for one in gap.shares if one.share is not None]
    assert shares == pytest.approx([1.2, 0.5], rel=0.01)
    assert gap.total is not None and gap.total.ratio == pytest.approx(shares[0] * shares[1], rel=1e-9)


def test_a_block_that_lacks_a_variant_is_in_no_share() -> None:
    records = records_of(CHAIN, {MIDDLE: 1.2, LAST: 0.6})
    some = [one for one in records if not (one.variant == MIDDLE and one.block in (0, 3))]
    assert explain_steps(CHAIN, a_run(CHAIN), some).blocks == 4


def test_a_variant_that_was_never_measured_is_named_and_nothing_is_shared_out() -> None:
    records = [one for one in records_of(CHAIN) if one.variant != MIDDLE]
    gap = explain_steps(CHAIN, a_run(CHAIN), records)
    assert gap.missing == ((NEW, 0, 0),) and gap.total is None and gap.shares == ()


def test_changed_defaults_that_no_variant_sets_are_told() -> None:
    def with_defaults(record: Record) -> Record:
        old = record.levels[ENGINE_FACTOR] == OLD
        return record.but(defaults={"a": "0", "c": "1", "gone": "x"} if old else {"a": "1", "c": "2"})

    records = [with_defaults(one) for one in records_of(CHAIN)]
    assert explain_steps(CHAIN, a_run(CHAIN), records).unset == (
        DefaultChanged(name="c", before="1", after="2"),
        DefaultChanged(name="gone", before="x", after=None),
    )


def test_what_goes_back_or_has_one_step_is_no_chain() -> None:
    assert len(steps_of(CHAIN, variants_of(CHAIN))) == 2
    back = _study(
        {"config.a": 0, "config.b": 0}, {"config.a": 1, "config.b": 0}, {"config.a": 0, "config.b": 1}
    )
    assert steps_of(back, variants_of(back)) == ()
    pair = _study({"config.a": 0}, {"config.a": 1})
    assert steps_of(pair, variants_of(pair)) == ()
