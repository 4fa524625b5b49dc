"""What the correctness gate asks of a build and keeps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import Blocked, Incorrect, Inert
from dbdyno.frozen import Level
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import BuildAccount, Flags, OwnTest
from dbdyno.records.binary import CodeBeside, Likeness, Matching
from dbdyno.records.record import Check
from dbdyno.study import Design, Study
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.correctness import (
    Correctness,
    all_kept,
    asked_of,
    durable,
    keep_correctness,
    kept,
    own_tests,
    recall_held,
    require_own_code,
)
from tests.analyse.builds import LEVELS, code_beside
from tests.analyse.factory import a_study
from tests.fakes import make_study

RIGHT = Check(name="sums", holds=True)
WRONG = Check(name="history_complete", holds=False, detail="9 rows, 10 acknowledged")


def study(**settings: Level) -> Study:
    named = {name.replace("__", "."): level for name, level in settings.items()}
    return make_study(1, 2).but(settings=named)


def variant(**levels: Level) -> Variant:
    return Variant(name="x", levels={name.replace("__", "."): level for name, level in levels.items()})


def test_levels_that_change_no_answer_are_left_out() -> None:
    asked = asked_of(study(cpu__quota="50%"), variant(build__lto="full", config__x=1), "")
    assert asked.levels == {"config.x": 1}


def test_a_gate_asks_the_same_of_each_build_and_other_loads_anew() -> None:
    one = asked_of(study(), variant(build__lto="full"), "")
    assert one == asked_of(study(cpu__quota="50%"), variant(build__lto="off"), "")
    others = [
        asked_of(study(), variant(config__x=1), ""),
        asked_of(study(), variant(), "sqlite-1234"),
        asked_of(
            make_study(1).but(workload=study().workload.but(clients=8)),
            variant(),
            "",
        ),
    ]
    assert len({each.digest for each in (one, *others)}) == 4


def scripted(**options: Level) -> Study:
    workload = study().workload.but(name="script", options=options)
    return study().but(workload=workload)


@pytest.mark.parametrize("form", ["{file}", "{file}@2", "no-such.sql@3, {file}"])
def test_a_script_that_says_something_else_is_asked_anew(tmp_path: Path, form: str) -> None:
    file = tmp_path / "pay.sql"
    digests = set()
    for text in ("SELECT 1", "SELECT 2"):
        file.write_text(text)
        digests.add(asked_of(scripted(file=form.format(file=file)), variant(), "").digest)
    assert len(digests) == 2


def test_a_script_that_a_variant_names_counts_in_place_of_the_studys(tmp_path: Path) -> None:
    one, other = tmp_path / "one.sql", tmp_path / "other.sql"
    one.write_text("SELECT 1")
    other.write_text("SELECT 2")
    asked = asked_of(scripted(file=str(one)), variant(workload__file=str(other)), "")
    assert asked.scripts == asked_of(scripted(file=str(other)), variant(), "").scripts != ""


def test_words_leave_out_options_that_are_off_and_no_setting() -> None:
    asked = asked_of(scripted(file="", think=False, scale=0), variant(config__mode=False, config__x=0), "")
    assert asked.words == "script, scale 0, mode false, x 0"


@pytest.mark.parametrize(
    ("level", "used"), [("MEMORY", "delete"), ("off", "delete"), ("WAL", "WAL"), ("truncate", "truncate")]
)
def test_a_studys_own_settings_stay_where_they_are_durable(level: str, used: str) -> None:
    levels: dict[str, Level] = {"config.journal_mode": level, "config.page_size": 8192, "workload.scale": 3}
    assert durable(levels, SQLITE.settings) == {
        "config.journal_mode": used,
        "config.page_size": 8192,
        "config.synchronous": "full",
    }


def test_what_was_found_is_kept_beside_the_build_by_what_was_asked(homes: Path) -> None:
    making.folder_of("toy-1").mkdir(parents=True)
    one, other = asked_of(study(), variant(), ""), asked_of(study(), variant(config__x=1), "")
    found = Correctness(asked=one.words, checks=(RIGHT, WRONG), recall=0.5, took_s=1.5)
    assert kept("toy-1", one) is None
    keep_correctness("toy-1", one, found)
    assert (kept("toy-1", one), kept("toy-1", other)) == (found, None)
    keep_correctness("toy-1", other, Correctness())
    assert len(all_kept("toy-1")) == 2 and all_kept("toy-2") == []
    [damaged] = (path for path in making.folder_of("toy-1").iterdir() if one.digest in path.name)
    damaged.write_text("{")
    assert kept("toy-1", one) is None, "it is asked again"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Correctness(checks=(RIGHT,)), "passed"),
        (Correctness(checks=(RIGHT, WRONG)), "failed at history_complete"),
        (Correctness(unable="no disk"), "could not run"),
        (Correctness(unable="no disk").plus(Correctness(checks=(WRONG,))), "failed at history_complete"),
        (Correctness(checks=(RIGHT,)).plus(Correctness(unable="no disk")), "could not run"),
    ],
)
def test_only_what_ran_and_holds_has_passed(found: Correctness, words: str) -> None:
    assert (found.words, found.passed) == (words, words == "passed")
    if words.startswith("failed"):
        with pytest.raises(Incorrect, match="at history_complete: 9 rows, 10 acknowledged"):
            found.require_passed()
    elif not found.passed:
        with pytest.raises(Blocked, match="the correctness gate could not run: no disk"):
            found.require_passed()
    else:
        found.require_passed()


def made(*tests: OwnTest) -> BuildAccount:
    return BuildAccount(
        key="1",
        engine="toy",
        words="gcc -O2",
        source="here",
        toolchain="gcc 12",
        flags=Flags(),
        recipe="r",
        took_s=1.0,
        tests=tests,
    )


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ((), "passed"),
        ((OwnTest(name="types", verdict="passed"),), "passed"),
        (
            (
                OwnTest(name="types", verdict="passed"),
                OwnTest(name="joins", verdict="failed", detail="1 of 9"),
            ),
            "failed at own_tests_joins",
        ),
        ((OwnTest(name="types", verdict="absent", detail="the source has none"),), "passed"),
        ((OwnTest(name="types", verdict="unable", detail="no perl"),), "could not run"),
    ],
)
def test_a_sources_own_tests_are_a_part_of_the_gate(tests: tuple[OwnTest, ...], words: str) -> None:
    assert own_tests(made(*tests)).words == words


def test_tests_that_could_not_run_say_how_they_run_again() -> None:
    found = own_tests(made(OwnTest(name="types", verdict="unable", detail="no perl")))
    assert "`dyno cache free toy-1`" in found.remedy


@pytest.mark.parametrize(("recall", "holds"), [(0.9401, True), (0.9399, False), (0.99, True)])
def test_recall_may_lie_a_hundredth_below_that_of_the_baselines_build(recall: float, holds: bool) -> None:
    assert recall_held(recall, 0.95).holds is holds


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
