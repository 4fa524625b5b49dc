"""The answer is a sentence."""

from __future__ import annotations

import re

import pytest

from dbdyno.analyse.floor import BLOCKS_LIMIT
from dbdyno.analyse.model import Analysis, Dropped, Reason
from dbdyno.cli.exit_codes import NOT_MEASURED, exit_code
from dbdyno.frozen import Level
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.report.words import answer, noise, remarks
from dbdyno.study import Design
from tests.analyse.factory import a_study, ended, records_of, warned
from tests.report.cases import CASES, analysed


@pytest.mark.parametrize(
    ("case", "beginning"),
    [
        ("all_verdicts", "memory.huge_pages=always was not measured: the server capped it at madvise;"),
        ("nothing_run", "Nothing was measured"),
        ("one_block", "Not settled yet"),
        ("baseline_broken", "The baseline itself did not hold"),
    ],
)
def test_the_answer_is_a_sentence(case: str, beginning: str) -> None:
    headline = answer.headline(CASES[case]())
    assert headline.startswith(beginning)
    assert headline.endswith(".")


def test_one_candidate_helped_and_not_most() -> None:
    study = a_study({"config.page_cache": ["2k", "64k"]}, blocks=12)
    analysis = analysed(study, records_of(study, {"config.page_cache=64k": 1.5}))
    assert analysis.answer.best is not None
    told = answer.headline(analysis)
    assert "config.page_cache=64k helped: " in told and "most" not in told


def test_an_upgrade_that_is_slower_is_told_so_and_not_as_help() -> None:
    study = a_study({"config.page_cache": ["64k", "2k"]}, blocks=12)
    told = answer.headline(analysed(study, records_of(study, {"config.page_cache=2k": 0.5})))
    assert told.startswith("Slower than the baseline in throughput: config.page_cache=2k (0.")
    assert "helped" not in told


def test_a_run_of_what_could_not_be_measured_says_so_and_nothing_of_speed() -> None:
    study = a_study({"config.page_cache": ["2k", "64k"]}, blocks=6)
    blocked = {"config.page_cache=64k": ended(Outcome.BLOCKED, "mkfs.xfs is not installed")}
    analysis = analysed(study, records_of(study, changes=blocked))
    told = answer.headline(analysis)
    assert told.startswith("config.page_cache=64k was not measured: mkfs.xfs is not installed")
    assert "see the museum" not in told and exit_code(analysis, ()) == NOT_MEASURED == 13


def nearly_settled() -> Analysis:
    """All verdicts, where none needs more than three times the blocks that there are."""
    analysis = CASES["all_verdicts"]()
    most = 3 * analysis.run.blocks
    variants = tuple(
        one.model_copy(update={"blocks_more": one.blocks_more and min(one.blocks_more, most)})
        for one in analysis.variants
    )
    return analysis.model_copy(update={"variants": variants})


def test_what_is_inconclusive_names_the_command_that_adds_the_blocks_it_needs() -> None:
    analysis = nearly_settled()
    most = max(variant.blocks_more or 0 for variant in analysis.variants)
    assert f"To go on: dyno run --resume {analysis.run.run} --add-blocks {most}" in answer.notes(analysis)
    assert not any("--add-blocks" in line for line in answer.notes(CASES["nothing_run"]()))


def test_a_noise_too_large_for_one_number_is_told_with_what_lowers_it() -> None:
    analysis = nearly_settled()
    noisy = next(variant for variant in analysis.variants if variant.blocks_more is not None)
    wide = noisy.model_copy(update={"blocks_more": 981, "blocks_more_even": 20})
    beyond = noisy.model_copy(update={"blocks_more": None, "blocks_more_even": 60})
    assert remarks.blocks_text(wide) == "20 to 981 more blocks like these"
    assert remarks.blocks_text(beyond) == "60 to more than 120 further blocks"
    variants = tuple(wide if one is noisy else one for one in analysis.variants)
    told = answer.notes(analysis.model_copy(update={"variants": variants}))
    assert answer.TWO_NUMBERS in told and answer.LESS_NOISE in told
    assert f"To go on: dyno run --resume {analysis.run.run} --add-blocks 20" in told
    assert answer.TWO_NUMBERS not in answer.notes(analysis)


def test_where_blocks_would_be_too_many_the_machine_has_the_last_word() -> None:
    study = a_study(blocks=8)
    analysis = analysed(study, records_of(study, trial_sd=0.8))
    *_, last = answer.notes(analysis)
    assert last.startswith("This machine was too noisy to tell a margin of 2 % in 8 blocks: nothing that")
    first = analysis.candidates[0].name
    busy = {first: warned(Doubt.HOST_BUSY, "0.9 CPUs"), "baseline": warned(Doubt.HOST_BUSY, "0.9 CPUs")}
    disturbed = analysed(study, records_of(study, changes=busy, trial_sd=0.8))
    *_, last = answer.notes(disturbed)
    assert last.endswith(f"other processes used its CPUs in 16 of {len(disturbed.trials)} trials.")


def test_a_run_that_is_not_over_goes_on_before_it_asks_for_more() -> None:
    study = a_study(blocks=12)
    records = [record for record in records_of(study, trial_sd=0.1) if record.block < 7]
    *_, last = answer.notes(analysed(study, records))
    assert last == "The run is not over yet. To go on: dyno run --resume 20251009-085320-example"


def test_no_floor_contradicts_the_interval_of_a_row() -> None:
    """One variant is much noisier than the others: what it hides is not said of all."""
    study = a_study({"config.page_cache": ["2k", "4k", "64k"]}, blocks=12)
    noisy = "config.page_cache=64k"
    quiet, loud = records_of(study, trial_sd=0.004), records_of(study, trial_sd=0.2)
    records = [one if one.variant != noisy else other for one, other in zip(quiet, loud, strict=True)]
    told = noise.floor_text(analysed(study, records))
    seen = re.search(r"can see: (\S+) %, and (\S+) % with config.page_cache=64k", told)
    assert seen is not None and float(seen[1]) < 1.0 and float(seen[2]) > 8.0, told


def test_a_noise_that_no_blocks_would_overcome_is_told_with_what_lowers_it() -> None:
    study = a_study(blocks=8)
    analysis = analysed(study, records_of(study, trial_sd=0.8))
    told = answer.notes(analysis)
    assert any(
        "the noise is too large: more than 160 further blocks would be needed" in line for line in told
    )
    assert answer.LESS_NOISE in told and not any("--add-blocks" in line for line in told)


def test_where_no_further_blocks_can_be_told_those_there_are_are_named() -> None:
    study = a_study(blocks=8)
    analysis = analysed(study, records_of(study, trial_sd=0.8))
    noisy = next(one for one in analysis.variants if one.reason is Reason.SPREAD)
    assert noisy.effect is not None
    many = noisy.model_copy(update={"effect": noisy.effect.model_copy(update={"pairs": BLOCKS_LIMIT})})
    assert remarks.remark(many, analysis) == "the noise is too large: 1,000 blocks did not settle it"


def test_a_clear_main_effect_leads_where_no_variant_is_settled_by_itself() -> None:
    """Three blocks are too few for a verdict on a variant, while the factor doubles the speed throughout."""
    factors: dict[str, list[Level]] = {"config.page_cache": ["2k", "64k"], "workload.clients": [1, 8]}
    study = a_study(factors, design=Design.FACTORIAL, blocks=3)
    both = "config.page_cache=64k, workload.clients=8"
    clear = analysed(study, records_of(study, {"config.page_cache=64k": 4.7, both: 4.7}, trial_sd=0.01))
    headline = answer.headline(clear)
    assert headline.startswith("Main effects on throughput: config.page_cache: 64k / 2k is 4.")
    assert "The whole gap is 4." in headline
    assert headline.endswith("No variant is settled by itself yet.")
    nothing = analysed(study, records_of(study, trial_sd=0.2))
    assert answer.headline(nothing).startswith("Not settled yet")


def test_builds_within_the_spread_and_placebos_alone_have_their_headlines() -> None:
    levels: dict[str, list[Level]] = {"build.optimisation": ["-O2", "-O3"], "build.layout": ["none", 1]}
    ratios = {"build.layout=1": 1.05, "build.optimisation=-O3": 1.03}
    study = a_study(levels, blocks=12)
    within = answer.headline(analysed(study, records_of(study, ratios, trial_sd=0.001)))
    assert within.startswith(
        "No build is told from luck of layout, as far as its placebos can say: build.opt"
    )
    study = a_study({"build.layout": ["none", 1]}, blocks=12)
    alone = answer.headline(analysed(study, records_of(study, ratios, trial_sd=0.001)))
    assert alone.startswith("Placebos alone were measured: luck of layout reaches 5")


def test_no_main_effect_of_a_build_leads_within_the_spread_of_placebos() -> None:
    factors: dict[str, list[Level]] = {"build.optimisation": ["-O2", "-O3"], "build.layout": ["none", 1]}
    study = a_study(factors, design=Design.FACTORIAL, blocks=12)
    names = "build.optimisation=-O3", "build.layout=1", "build.optimisation=-O3, build.layout=1"
    ratios = dict(zip(names, (1.03, 1.05, 1.08), strict=True))
    found = analysed(study, records_of(study, ratios, trial_sd=0.001))
    assert "Main effects" not in answer.headline(found)


def test_a_main_effect_leads_where_the_variants_that_helped_are_level() -> None:
    factors: dict[str, list[Level]] = {"config.page_cache": ["2k", "64k"], "workload.clients": [1, 8]}
    study = a_study(factors, design=Design.FACTORIAL, blocks=12)
    both = "config.page_cache=64k, workload.clients=8"
    level = analysed(study, records_of(study, {"config.page_cache=64k": 4.7, both: 4.7}, trial_sd=0.02))
    headline = answer.headline(level)
    assert headline.startswith("Main effects on throughput: config.page_cache: 64k / 2k is 4.")
    assert "config.page_cache=64k + workload.clients=8 (" in headline
    assert headline.endswith("helped. The blocks cannot tell them apart.")


def idle(records: list[Record]) -> list[Record]:
    """The same records, whose load had no use for any level."""
    return [
        record.model_copy(
            update={"evidence": tuple(one.model_copy(update={"idle": "no log"}) for one in record.evidence)}
        )
        for record in records
    ]


def test_what_the_load_had_no_use_for_is_not_called_without_effect() -> None:
    study = a_study(blocks=12)
    records = idle(records_of(study, trial_sd=0.001))
    found = analysed(study, records)
    (variant,) = [one for one in found.variants if one.changed]
    assert remarks.verdict_text(variant) == "= not used by the load"
    assert [title for title, _ in answer.findings(found)] == ["Not used by this load"]
    assert remarks.exhibit_text(found.museum[0], found).endswith("the load did not use it: no log")
    exercised = analysed(study, records_of(study, trial_sd=0.001))
    assert [title for title, _ in answer.findings(exercised)] == ["No effect (within 2 %)"]


def test_a_difference_that_the_level_cannot_have_made_is_said_to_come_from_elsewhere() -> None:
    study = a_study(blocks=12)
    records = idle(records_of(study, {"config.page_cache=64k": 1.5}, trial_sd=0.001))
    told = "\n".join(answer.notes(analysed(study, records)))
    assert "the load did not use it (no log), so something else made the difference" in told


def test_more_blocks_are_not_asked_for_where_the_load_has_no_use_for_a_level() -> None:
    study = a_study(blocks=6)
    records = idle(records_of(study, trial_sd=0.2))
    (variant,) = [one for one in analysed(study, records).variants if one.changed]
    told = remarks.remark(variant, analysed(study, records))
    assert told == "the load did not use it (no log), so more blocks would say nothing about it"
    notes = answer.notes(analysed(study, records))
    assert not any("--add-blocks" in line for line in notes) and answer.LESS_NOISE not in notes


def test_blocks_that_follow_one_another_and_gave_no_pair_for_one_cause_are_told_as_a_range() -> None:
    variant = next(each for each in CASES["all_verdicts"]().variants if each.effect)
    missing = [Dropped(block=2, variant="baseline", outcome=Outcome.FAILED)]
    missing += [Dropped(block=block, variant="a=1") for block in (5, 6, 7, 9)]
    told = remarks.dropped_text(variant.model_copy(update={"dropped": tuple(missing)}))
    assert told.endswith(
        "no pair in block 3 (baseline: failed); blocks 6 – 8 (a=1: not run); block 10 (a=1: not run)"
    )


def test_a_few_blocks_that_agree_are_told_with_what_a_verdict_needs() -> None:
    """Three repetitions of an import all say 1.10: nobody should read that it could be slower."""
    study = a_study(blocks=3)
    told = answer.headline(analysed(study, records_of(study, {"config.page_cache=64k": 1.1}, trial_sd=0.0)))
    assert re.fullmatch(
        r"Not settled yet: config.page_cache=64k \(1\.\d+\): a verdict needs 6 blocks; "
        r"(all 3 blocks say 1\.\d+|the 3 blocks so far say 1\.\d+ to 1\.\d+)\.",
        told,
    ), told


def test_a_wide_interval_is_told_by_its_ends_whatever_the_ratio() -> None:
    study = a_study(blocks=8)
    told = answer.headline(analysed(study, records_of(study, {"config.page_cache=64k": 8.0}, trial_sd=3.0)))
    assert "could be" not in told and re.search(r"its interval, \S+ – \S+, holds 1\.$", told), told


def test_a_run_of_the_baseline_alone_compares_nothing() -> None:
    study = a_study({}, blocks=6)
    told = answer.headline(analysed(study, records_of(study)))
    assert told == "Only the baseline was measured, so there is nothing to compare it with."


def test_where_no_speed_counts_the_cause_is_told_and_no_place_to_look_for_it() -> None:
    study = a_study(blocks=6)
    failing = {"config.page_cache=64k": ended(Outcome.FAILED, "the server died of SIGSEGV")}
    told = answer.headline(analysed(study, records_of(study, changes=failing)))
    assert told == (
        "Nothing was measured beside the baseline. config.page_cache=64k: the server died of SIGSEGV."
    )
