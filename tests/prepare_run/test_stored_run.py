"""What a variant gives up stands beside its verdict in every form, also of runs that do not tell it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.analyse import Analysis
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.prepare_run.study_here import between_setups
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words import answer
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import Promise
from tests.analyse.factory import a_run, a_study, records_of
from tests.cli.calls import dyno

STUDY = """\
engine = "firebird@5"
design = "one-at-a-time"
blocks = 8
[workload]
name = "tpcb"
[factors]
"config.forced_writes" = [true, false]
"config.DefaultDbCachePages" = [2048, 8192]
"config.MaxUnflushedWrites" = [2, 1000]
"""
UNFORCED, CACHE = "config.forced_writes=false", "config.DefaultDbCachePages=8192"
UNFLUSHED = "config.MaxUnflushedWrites=1000"
GAINS = {UNFORCED: 3.0, CACHE: 1.4}
MARK = "gives up durability"


def run_named(name: str, text: str = STUDY) -> Run:
    return a_run(a_study()).model_copy(update={"run": name, "study_text": text, "blocks": 8, "seed": 1})


def of_study(text: str = STUDY, gains: dict[str, float] | None = None) -> Analysis:
    run = run_named("lossy", text)
    study = study_of(run)
    return analysed(study, run, records_of(study, GAINS if gains is None else gains, trial_sd=0.005))


@pytest.fixture
def stored(homes: Path) -> Callable[..., None]:
    """Puts runs into the store that do not say what their variants give up."""

    def put(*names: str, text: str = STUDY) -> None:
        with Store(store_url()) as store:
            for seed, name in enumerate(names, 1):
                run = run_named(name, text)
                store.add_run(run)
                study = study_of(run)
                unforced = [one.name for one in variants_of(study) if not one.levels["config.forced_writes"]]
                gains = {**GAINS, **dict.fromkeys(unforced, 3.0)}
                for record in records_of(study, gains, seed=seed, trial_sd=0.005):
                    store.add_record(record.model_copy(update={"run": name}))
                store.finish_run(name)

    return put


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "junit"])
def test_every_form_of_a_stored_run_says_what_its_winner_gives_up(
    form: str, stored: Callable[..., None]
) -> None:
    stored("old")
    details = ["--details"] if form == "terminal" else []
    said = " ".join(dyno("report", "old", "--format", form, *details).stdout.split())
    assert f"faster, {MARK}" in said
    if form != "junit":
        assert f"{UNFORCED} ({MARK}) helped most: " in said
        assert f"{CACHE} helped and gives up nothing: " in said


def test_json_has_it_as_a_field_of_the_variant(stored: Callable[..., None]) -> None:
    stored("old")
    told = json.loads(dyno("report", "old", "--json").stdout)
    found = {one["name"]: one.get("gives_up") for one in told["variants"]}
    # With forced writes on, as by default, nothing waits for a flush.
    assert found == {"baseline": None, UNFORCED: ["durability"], CACHE: None, UNFLUSHED: None}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "one"), f"{UNFORCED}: durability"),
        (("trend", "one"), "It gives up durability."),
        (("compare", "one", "two"), MARK),
    ],
)
def test_other_verbs_say_it_too(words: tuple[str, ...], told: str, stored: Callable[..., None]) -> None:
    stored("one", "two", "three")
    ended = dyno(*words)
    said = " ".join(ended.stdout.split())
    assert told in said, ended.stderr


def test_a_matrix_says_it_of_its_rows(stored: Callable[..., None]) -> None:
    stored("one")
    stored("two", text=STUDY.replace('"tpcb"', '"tpcb"\nclients = 4'))
    told = json.loads(dyno("matrix", "one", "two", "--json").stdout)
    rows = {row["variant"]: row.get("gives_up") for row in told["rows"]}
    assert rows[UNFORCED] == ["durability"] and rows[CACHE] is None
    assert told["best"]["gives_up"] == ["durability"]
    assert MARK in " ".join(dyno("matrix", "one", "two").stdout.split())


def test_a_gap_says_it_of_the_factor(stored: Callable[..., None]) -> None:
    stored("whole", text=STUDY.replace("one-at-a-time", "factorial"))
    told = json.loads(dyno("explain", "whole", "--json").stdout)
    shares = {one["factor"]: one.get("gives_up") for one in told["shares"]}
    assert shares["config.forced_writes"] == ["durability"]
    assert shares["config.DefaultDbCachePages"] is None
    said = " ".join(dyno("explain", "whole").stdout.split())
    assert f"Its largest part is config.forced_writes, {MARK}, ×" in said


def test_a_run_that_told_it_is_believed() -> None:
    run = run_named("kept").model_copy(update={"given_up": {CACHE: (Promise.SECURITY,)}})
    study = study_of(run)
    found = {one.name: one.gives_up for one in analysed(study, run, records_of(study, GAINS)).variants}
    assert (found[CACHE], found[UNFORCED]) == ((Promise.SECURITY,), ())


def test_what_the_baseline_gives_up_already_is_no_loss() -> None:
    turned = STUDY.replace("[true, false]", "[false, true]")
    found = {one.name: one.gives_up for one in of_study(turned, {}).variants}
    assert found == {
        "baseline": (),
        "config.forced_writes=true": (),
        CACHE: (),
        UNFLUSHED: (Promise.DURABILITY,),
    }


def test_where_every_winner_loses_the_answer_says_so() -> None:
    told = answer.headline(of_study(gains={UNFORCED: 3.0}))
    assert told.endswith("No variant that gives up nothing is shown to help.")


def test_where_nobody_can_tell_the_best_each_that_loses_is_marked() -> None:
    told = answer.headline(of_study(gains={UNFORCED: 1.4, CACHE: 1.4}))
    assert f"{UNFORCED} (1." in told and f", {MARK})" in told and "cannot tell them apart" in told


def test_what_did_not_help_gives_it_up_all_the_same() -> None:
    study = of_study(gains={CACHE: 1.4})
    assert [one.gives_up for one in study.museum if one.variant == UNFORCED] == [(Promise.DURABILITY,)]


def test_a_gate_holds_two_baselines_against_each_other() -> None:
    safe, lossy = (
        study_of(run_named("one", STUDY.replace("[factors]", f"[settings]\n{extra}\n[factors]")))
        for extra in ('"config.TempBlockSize" = "1M"', '"config.WireCrypt" = "Disabled"')
    )
    assert between_setups(lossy, safe) == (Promise.SECURITY,)
    assert between_setups(safe, lossy) == ()
