from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.driver.job import Opening
from dbdyno.errors import Mistake, StudyError
from dbdyno.study import (
    Arrangement,
    Design,
    Factor,
    Goal,
    Guard,
    Study,
    Workload,
    parse_study,
    read_study,
)
from dbdyno.study.catalogue import Option
from dbdyno.study.designs import size_of_study, variants_of
from dbdyno.study.nouns import Reference
from tests.study.catalogue import CATALOGUE
from tests.study.reader_cases import EXAMPLE, LIST, SHORT
from tests.study.reading import mistakes, read, require_mistake


def the_mistake(text: str | bytes) -> Mistake:
    found = mistakes(text)
    assert len(found) == 1, found
    return found[0]


def test_the_example_is_read_whole() -> None:
    assert read(EXAMPLE) == Study(
        title="Which file system?",
        engine=Reference(engine="firebird", version="5"),
        design=Design.FACTORIAL,
        blocks=4,
        workload=Workload(
            name="tpcb", clients=1, warmup_s=0.5, duration_s=90.0, options={"scale": 10, "variant": "full"}
        ),
        settings={"config.page_size": 8192},
        factors=(
            Factor(name="workload.clients", levels=(1, 8)),
            Factor(name="storage.filesystem", levels=("ext4", "xfs")),
            Factor(name="storage.scheduler", levels=("none", "bfq")),
        ),
        goal=Goal(
            response="p99_ms",
            margin=0.005,
            guards=(
                Guard(text="invariants", metric="invariants"),
                Guard(text="p99_ms <= 1.2x", metric="p99_ms", bound=1.2, relative=True),
                Guard(
                    text="server_cpu_us_per_op >= 50", metric="server_cpu_us_per_op", bound=50, at_most=False
                ),
            ),
        ),
        path="study",
        place=str(Path.cwd()),
        text=EXAMPLE,
        digest=hashlib.sha256(EXAMPLE.encode()).hexdigest(),
    )


def test_everything_that_can_be_left_out_has_a_default(tmp_path: Path) -> None:
    file = tmp_path / "short one.toml"
    file.write_text(SHORT)
    study = read_study(file, CATALOGUE)
    assert (study.title, study.design, study.blocks, study.aa) == (
        "short one",
        Design.ONE_AT_A_TIME,
        6,
        False,
    )
    assert study.workload == Workload(name="tpcb", options={"scale": 1, "variant": "full"})
    assert study.goal == Goal()


def test_a_study_survives_json() -> None:
    study = read(EXAMPLE)
    told = Study.model_validate(study.model_dump(mode="json"))
    assert told == study.model_copy(update={"place": ""}), "where it lies is no part of what it asks"
    assert Study.model_validate_json(study.model_dump_json()) == told


def test_factors_stand_in_the_order_written() -> None:
    workload_last = (
        SHORT.replace('[workload]\nname = "tpcb"\n', "") + '[workload]\nname = "tpcb"\nscale = [1, 2]\n'
    )
    assert [factor.name for factor in read(workload_last).factors] == ["config.a", "workload.scale"]
    assert read(EXAMPLE).factors[0].name == "workload.clients"


def test_a_workload_factor_gives_the_workload_its_baseline() -> None:
    study = read(SHORT + '"workload.scale" = [7, 8]\nworkload.clients = [3, 4]\n')
    assert (study.workload.clients, study.workload.options["scale"]) == (3, 7)
    assert study.baseline == {"config.a": 1, "workload.scale": 7, "workload.clients": 3}


def test_clients_may_be_a_sweep() -> None:
    for text in (
        SHORT.replace('"tpcb"', '"tpcb"\nclients = "1..4 x2"'),
        f'{SHORT}workload.clients = "1..4 x2"',
    ):
        study = read(text)
        assert Factor(name="workload.clients", levels=(1, 2, 4)) in study.factors
        assert study.workload.clients == 1


def test_connections_begin_as_the_study_says() -> None:
    assert read(SHORT).workload.opening == Opening()
    keys = 'isolation = "serializable"\nstorage_engine = "Aria"\nconnect_sql = ["SET a = 1", "SET b = 2"]'
    opening = read(SHORT.replace('"tpcb"', f'"tpcb"\n{keys}')).workload.opening
    sql = ("SET a = 1", "SET b = 2")
    assert opening == Opening(isolation="serializable", storage_engine="Aria", sql=sql)
    assert read(SHORT.replace('"tpcb"', '"tpcb"\nconnect_sql = "SET a = 1"')).workload.opening.sql == sql[:1]


@pytest.mark.parametrize(("key", "value"), [("isolation", "serializable"), ("storage_engine", "heap")])
def test_what_no_session_of_the_engine_chooses_is_refused(key: str, value: str) -> None:
    text = SHORT.replace('"tpcb"', f'"tpcb"\n{key} = "{value}"')
    read(text)
    mistake = the_mistake(text.replace('"mariadb"', '"firebird@5"'))
    assert (mistake.line, mistake.message) == (4, f"`{key}` cannot be chosen with firebird")


def test_a_load_that_calls_procedures_needs_an_engine_that_has_them() -> None:
    option = Option(name="procedures", type="bool", default=False, needs_procedures=True)
    offers = tuple(one.model_copy(update={"options": (*one.options, option)}) for one in CATALOGUE.workloads)
    names = replace(CATALOGUE, workloads=offers)
    for asked in ("true", "[false, true]"):
        text = SHORT.replace('"tpcb"', f'"tpcb"\nprocedures = {asked}')
        parse_study(text.encode(), names)
        found = mistakes(text.replace('"mariadb"', '"firebird@5"'), names)
        require_mistake(found, 4, "`procedures`: there are no procedures for firebird", "leave it out")
    off = SHORT.replace('"tpcb"', '"tpcb"\nprocedures = false').replace('"mariadb"', '"firebird@5"')
    assert parse_study(off.encode(), names).workload.options["procedures"] is False


def test_statements_are_timed_only_where_the_study_asks_for_it() -> None:
    assert not read(SHORT).workload.by_statement
    assert read(SHORT.replace('"tpcb"', '"tpcb"\nby_statement = true')).workload.by_statement


def test_plans_are_asked_for_unless_a_study_asks_for_none() -> None:
    assert read(SHORT).workload.plans
    without = read(SHORT.replace('"tpcb"', '"tpcb"\nplans = false')).workload
    assert not without.plans
    assert "plans" not in read(SHORT).workload.model_dump(), "earlier studies mean what they meant"


def test_the_server_goes_first_only_where_the_study_asks_for_it() -> None:
    assert read(SHORT).workload.gather == "off"
    assert read(SHORT.replace('"tpcb"', '"tpcb"\ngather = "on"')).workload.gather == "on"


def test_quoted_dotted_and_table_forms_are_one() -> None:
    table = SHORT.replace('[factors]\n"config.a"', "[factors.config]\na")
    dotted = SHORT.replace('"config.a"', "config.a")
    assert read(table).factors == read(dotted).factors == read(SHORT).factors


def test_a_setting_of_the_server_may_be_empty() -> None:
    study = read(
        SHORT.replace("[1, 2]", '["ANSI", "", "a, b"]').replace(
            "[workload]", '[settings]\n"config.b" = ""\n[workload]'
        )
    )
    assert study.factors[0].levels == ("ANSI", "", "a, b") and study.settings == {"config.b": ""}
    names = [variant.name for variant in variants_of(study)]
    assert names == ["baseline", 'config.a=""', 'config.a="a, b"'], "where a level is not seen it has quotes"


def test_levels_keep_their_type_and_spelling() -> None:
    levels = read(SHORT.replace("[1, 2]", '["16M", 1, 1.5, true, "ON"]')).factors[0].levels
    assert [(type(level), level) for level in levels] == [
        (str, "16M"), (int, 1), (float, 1.5), (bool, True), (str, "ON"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("mariadb", Reference(engine="mariadb")),
        ("mariadb@11.8", Reference(engine="mariadb", version="11.8")),
        ("mariadb:/usr/sbin/mariadbd", Reference(engine="mariadb", path="/usr/sbin/mariadbd")),
    ],
)
def test_engine_forms(written: str, expected: Reference) -> None:
    assert read(SHORT.replace('"mariadb"', f'"{written}"')).engine == expected


def test_a_list_gives_variants_and_its_factors() -> None:
    study = read(LIST)
    assert [(variant.name, variant.levels) for variant in study.variants] == [
        ("baseline", {"config.a": 1, "config.b": "x"}),
        ("both", {"config.a": 2, "config.b": "y"}),
        ("only a", {"config.a": 3, "config.b": "x"}),
    ]
    assert study.factors == (
        Factor(name="config.a", levels=(1, 2, 3)),
        Factor(name="config.b", levels=("x", "y")),
    )


def test_an_aa_study_needs_no_factor() -> None:
    assert read('engine = "mariadb"\naa = true\n[workload]\nname = "tpcb"\n').factors == ()


ONE_MISTAKE = [
    # what replaces what in SHORT, the line, part of the message, part of the hint
    ('"mariadb"', '"mariadbb@11"', 1, 'unknown engine "mariadbb"', "did you mean `mariadb`?"),
    ('"mariadb"', '"mariadb@"', 1, "no version", "mariadb@11.8"),
    ('"mariadb"', '"mariadb@../../etc"', 1, "no version", "letters, digits"),
    ('"mariadb"', '"mariadb:sbin/mariadbd"', 1, "no path", "starts with /, ~/, ./ or ../"),
    ('"mariadb"', '"sqlite://me@localhost/x"', 1, "no server that can be studied", "mariadb://USER@HOST"),
    ('"mariadb"', '"mariadb://localhost/x"', 1, "names no account", "mariadb://USER@HOST:PORT/DATABASE"),
    ('"mariadb"', '"mariadb://me@localhost"', 1, "no database", "?socket=PATH"),
    ('"mariadb"', "7", 1, "must be a text, not a whole number", "quotes"),
    ('"mariadb"', '""', 1, "is empty", ""),
    ('"config.a" = [1, 2]', '"storage.scheduler" = ["none", ""]', 5, "is empty", "at least one character"),
    ("[1, 2]", '["", "a", ""]', 5, 'the level "" twice', "levels must differ"),
    ("engine", "enginge", 1, "unknown key `enginge`", "did you mean `engine`?"),
    ("[workload]", '[search]\ntime = "9m"\n[workload]', 2, "has no [search]", 'design = "search"'),
    ('[1, 2]', '{ from = 1, to = 2 }', 5, "only the design `search` takes", 'design = "search"'),
    ("[workload]", 'design = "ladders"\n[workload]', 2, 'cannot be "ladders"', "did you mean `ladder`?"),
    ("[workload]", "blocks = 0\n[workload]", 2, "`blocks`: cannot be 0", "1 to 10,000"),
    ("[workload]", "blocks = -3\n[workload]", 2, "`blocks`: cannot be -3", "1 to 10,000"),
    ("[workload]", "blocks = 2.5\n[workload]", 2, "must be a whole number, not 2.5", "1 to 10,000"),
    ("[workload]", "blocks = true\n[workload]", 2, "must be a whole number, not true", "1 to 10,000"),
    ("[workload]", "aa = 1\n[workload]", 2, "must be true or false, not 1", "without quotes"),
    ("[workload]", "seed = -1\n[workload]", 2, "`seed`: cannot be -1", "0 to"),
    ("[workload]", 'title = "a\\nb"\n[workload]', 2, "cannot be printed", "one line"),
    ("[workload]", "tit# no key\nconfig.a = 4\n[workload]", 2, "not valid TOML: expected '='", "toml.io"),
    ("[workload]", "tit. # no key\nconfig = 4\n[workload]", 2, "not valid TOML", "toml.io"),
    ("[workload]", "clients = 4\n[workload]", 2, "unknown key `clients`",
     "`clients` stands under [workload]"),
    ("[workload]", 'margin = "2%"\n[workload]', 2, "unknown key `margin`", "`margin` stands under [goal]"),
    ('"tpcb"', '"tpcd"', 3, 'unknown workload "tpcd"', "did you mean `tpcb`?"),
    ('name = "tpcb"', "clients = 3", 2, "`name` is missing", "name one: tpcb, point_select"),
    ('"tpcb"', '"tpcb"\nscal = 3', 4, "unknown key `scal` in [workload]", "did you mean `scale`?"),
    ('"tpcb"', '"tpcb"\nclients = "1..8"', 4, '"1..8" is no sweep', 'write "1..256 x2"'),
    ('"tpcb"', '"tpcb"\nclients = "90000..190000 +100000"', 4, "cannot be 190000", "1 to 100,000"),
    ('"tpcb"', '"tpcb"\nscale = "3"', 4, 'must be a whole number, not "3"', "1 to 100,000, without quotes"),
    ('"tpcb"', '"tpcb"\nvariant = "M"', 4, 'cannot be "M"', "allowed: N, S, full"),
    ('"tpcb"', '"tpcb"\nscale = [10]', 4, "has one level", "[settings], or under [workload]"),
    ('"tpcb"', '"tpcb"\nclients = 0', 4, "`clients`: cannot be 0", "1 to 100,000"),
    ('"tpcb"', '"tpcb"\nclients = [1, 0]', 4, "`workload.clients`: cannot be 0", "1 to 100,000"),
    ('"tpcb"', '"tpcb"\nclients = [4, 4]', 4, "has the level 4 twice", "levels must differ"),
    ('"tpcb"', '"tpcb"\nduration = 20', 4, "a duration needs its unit", 'did you mean "20s"?'),
    ('"tpcb"', '"tpcb"\nduration = "20"', 4, '"20" is no duration', '"500ms", "20s", "2m", "1h"'),
    ('"tpcb"', '"tpcb"\nduration = "0s"', 4, 'cannot be "0s"', "0.1s to 24h"),
    ('"tpcb"', '"tpcb"\narrivals = "uniform"', 4, "`arrivals` needs `rate_per_s`", "without a rate"),
    ('"tpcb"', '"tpcb"\narrivals = ["uniform", "poisson"]', 4, "`arrivals` needs `rate_per_s`", ""),
    ('"tpcb"', '"tpcb"\nthink_time = "1s"\nrate_per_s = 5', 4,
     "`think_time` is of the closed loop", "rate_per_s"),
    ('"tpcb"', '"tpcb"\nthink_time = 0.1', 4, "`think_time`: must be a text", "quotes"),
    ('"tpcb"', '"tpcb"\nschedule = "ramp:9/3s"', 4, "`schedule` needs `rate_per_s`", "points"),
    ('"tpcb"', '"tpcb"\nschedule = "ramp:9"', 4, '`schedule`: "ramp:9" has no `/`', "ramp:TO/OVER"),
    ('"tpcb"', '"tpcb"\nschedule = ["constant", "x"]', 4, '"x" is no schedule', "ramp:TO/OVER"),
    ('"tpcb"', '"tpcb"\ngather = "when_crowded"', 4, '`gather`: cannot be "when_crowded"', "off"),
    ('"tpcb"', '"tpcb"\nplans = 0', 4, "must be true or false, not 0", "without quotes"),
    ('"tpcb"', '"tpcb"\nby_statement = 1', 4, "must be true or false, not 1", "without quotes"),
    ('"tpcb"', '"tpcb"\nisolation = "snapshot"', 4, '`isolation`: cannot be "snapshot"', "serializable"),
    ('"tpcb"', '"tpcb"\nstorage_engine = "a b"', 4, '`storage_engine`: cannot be "a b"', "letters"),
    ('"tpcb"', '"tpcb"\nconnect_sql = ["SET a = 1", 2]', 4, "`connect_sql`: must be a text", "quotes"),
    ('"tpcb"', '"tpcb"\nramp = 3', 4, "a duration needs its unit", '"3s"'),
    ("config.a", "workload.ramp", 5, "cannot vary within a study", "a study of each"),
    ('"tpcb"', '"tpcb"\nrate_per_s = nan', 4, "cannot be nan", "allowed"),
    ('"tpcb"', '"tpcb"\nrate_per_s = 1e12', 4, "cannot be 1000000000000.0", "at most 10,000,000 per second"),
    ("[1, 2]", "[1]", 5, "`config.a` has one level", "[BASELINE, OTHER, ...]"),
    ("[1, 2]", "[]", 5, "`config.a` has no level", "[BASELINE, OTHER, ...]"),
    ("[1, 2]", "1", 5, "`config.a` has no list of levels", "under [settings]"),
    ("[1, 2]", "[1,\n2,\n1.0]", 7, "has the level 1.0 twice", "levels must differ"),
    ("[1, 2]", '[1, "1"]', 5, 'has the level "1" twice', "levels must differ"),
    ("[1, 2]", "[1, [2]]", 5, "a level cannot be a list", "a text, a number, true or false"),
    ("[1, 2]", "[1, 1979-05-27]", 5, "a level cannot be a date or time", "a text, a number"),
    ("[1, 2]", "[1, inf]", 5, "cannot be inf", "finite"),
    ("[1, 2]", "[1, 99999999999999999999]", 5, "cannot be a very large number", "allowed"),
    ("[1, 2]", '[1, "a\\u0000b"]', 5, "cannot be printed", "control characters"),
    ("config.a", "confug.a", 5, "unknown layer `confug`", "did you mean `config`?"),
    ("config.a", "config", 5, '"config" is no factor', "`layer.knob`"),
    ("config.a", "config.no_such_setting", 5, "mariadb has no setting", "did you mean `such_setting`?"),
    ("config.a", "workload.scal", 5, "the workload `tpcb` has no option `scal`", "did you mean `scale`?"),
    ("config.a", "workload.duration", 5, "cannot vary within a study", "a study of each"),
    ('"config.a" = [1, 2]', "", 4, "there are no factors", "aa = true"),
    ('"config.a" = [1, 2]', "config = {}", 5, "the table `config` is empty", "take it out"),
    ('"config.a" = [1, 2]', '"config.a" = [1, 2]\nconfig.a = [3, 4]', 6, "given twice: first on line 5",
     "keep one"),
    ('"config.a" = [1, 2]', '"config.a" = [1, 2]\n"config.a" = [3, 4]', 6, "given twice: first on line 5",
     "keep one"),
    ("[factors]", "[settings]\nconfig.a = 1\n[factors]", 5, "is a factor as well", "keep one"),
    ("[factors]", "[settings]\nconfig.b = [1, 2]\n[factors]", 5, "is a list", "stands under [factors]"),
    ("[factors]", "[settings]\nworkload.scale = 1\n[factors]", 5, "no place in [settings]",
     "under [workload]"),
    ("[factors]", "[settings]\nconfig.no_such_setting = 1\n[factors]", 5, "mariadb has no setting", ""),
    ("[factors]", '[[variants]]\nname = "x"\n[factors]', 4, "has no [[variants]]", 'design = "list"'),
    ("[factors]", '[goal]\nmargin = 2\n[factors]', 5, "a percentage needs its sign", '"2%"'),
    ("[factors]", '[goal]\nmargin = "two"\n[factors]', 5, "is no percentage", '"2%"'),
    ("[factors]", '[goal]\nconfidence = "30%"\n[factors]', 5, 'cannot be "30%"', "50% to 99.99%"),
    ("[factors]", '[goal]\ninterval = "anytime"\n[factors]', 5, "anytime", "signed-rank"),
    ("[factors]", '[goal]\nresponse = "p9_ms"\n[factors]', 5, 'unknown metric "p9_ms"',
     "did you mean `p99_ms`?"),
    ("[factors]", '[goal]\nguards = "invariants"\n[factors]', 5, "must be a list", "p99_ms <= 1.2x"),
    ("[factors]", '[goal]\nguards = ["invariant"]\n[factors]', 5, "is no guard", "invariants"),
    ("[factors]", '[goal]\nresponse = "tps"\n[factors]', 5, 'unknown metric "tps"',
     "here this is `throughput`"),
    ("[factors]", '[goal]\nresponse = "zzz"\n[factors]', 5, 'unknown metric "zzz"', "throughput"),
    ('"tpcb"', '"pgbench"', 3, 'unknown workload "pgbench"', "here this is `tpcb`"),
    ("[factors]", '[goal]\nguards = ["p9_ms <= 2x"]\n[factors]', 5, "unknown metric `p9_ms`", "did you mean"),
    ("[factors]", '[goal]\nguards = ["p99_ms <= 0x"]\n[factors]', 5, "nothing can be measured against", ""),
    ("[factors]", '[goal]\nguards = [\n"invariants",\n"invariants"]\n[factors]', 7, "given twice",
     "keep one"),
    ('[workload]\nname = "tpcb"', 'workload = "tpcb"', 2, "must be a table, not a text", "write [workload]"),
    ('[workload]\nname = "tpcb"', "", 0, "there is no [workload]", "name one: tpcb, point_select"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), ONE_MISTAKE)
def test_one_mistake(old: str, new: str, line: int, message: str, hint: str) -> None:
    assert old in SHORT
    found = mistakes(SHORT.replace(old, new, 1))
    require_mistake(found, line, message, hint)
    # A misspelt key leaves its own gap as well; else nothing may follow from one mistake.
    assert len(found) == (2 if old == "engine" else 1), found


LIST_MISTAKES = [
    ('name = "both"', "", 7, "`name` is missing", "every variant but the first"),
    ('name = "both"', 'name = "baseline"', 8, "a name of Dyno's own", "only the first"),
    ('name = "both"', 'name = "baseline-twin"', 8, "a name of Dyno's own", "only the first"),
    ('name = "both"', 'name = "a=b"', 8, "cannot name a variant", "none of them"),
    ('name = "both"', 'name = "only a"', 11, "given twice: first on line 7", "rename one"),
    ("[[variants]]\nlevels", '[[variants]]\nname = "first"\nlevels', 6, "the first variant is the baseline",
     "baseline"),
    ("config.a = 3", "config.c = 3", 13, "`only a` sets `config.c`", "add `config.c`"),
    ("config.a = 3", "config.a = 1", 10, "same levels as `baseline`", "aa = true"),
    ("config.a = 3", "config.a = [3]", 13, "a level cannot be a list", "a text, a number"),
    ("config.a = 3", "confik.a = 3", 13, "unknown layer `confik`", "did you mean `config`?"),
    ('"y"', '"x"', 6, "`config.b` is the same in every variant", "[settings]"),
    ("[[variants]]\nlevels", "[factors]\nconfig.z = [1, 2]\n[[variants]]\nlevels", 5, "takes its levels from",
     "there"),
    ('name = "tpcb"', 'name = "tpcb"\nscale = [1, 2]', 5, "takes its levels from", "there"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), LIST_MISTAKES)
def test_one_mistake_in_a_list(old: str, new: str, line: int, message: str, hint: str) -> None:
    assert old in LIST
    mistake = the_mistake(LIST.replace(old, new, 1))
    assert message in mistake.message
    assert (mistake.line, hint in mistake.hint) == (line, True), mistake


@pytest.mark.parametrize("variants", ["", "variants = 3\n", "variants = []\n", 'variants = [{name = "x"}]\n'])
def test_a_list_needs_variants(variants: str) -> None:
    text = f'engine = "mariadb"\ndesign = "list"\n{variants}[workload]\nname = "tpcb"\n'
    assert "needs two or more [[variants]]" in the_mistake(text).message


def test_all_mistakes_are_reported_at_once_in_their_order() -> None:
    text = """\
engine = "mariadbb"
blocks = 0
blocks = 7
[workload]
name = "tpcb"
duration = 20
[factors]
"config.a" = [1]
"confi.b" = [1, 2]
[workload]
scale = 3
[goal]
margin = 2
"""
    assert [mistake.line for mistake in mistakes(text)] == [1, 2, 3, 6, 8, 9, 10, 13]


def test_the_limit_on_trials_shows_its_arithmetic() -> None:
    factors = "".join(f"config.k{number} = [1, 2, 3]\n" for number in range(8))
    text = SHORT.replace('"config.a" = [1, 2]\n', factors).replace(
        "[workload]", 'design = "factorial"\n[workload]'
    )
    mistake = the_mistake(text)
    assert mistake.line == 2
    product = "3 x 3 x 3 x 3 x 3 x 3 x 3 x 3 levels = 6,561 variants, x 6 blocks = 39,366 trials"
    assert product in mistake.message
    assert "at most 10,000" in mistake.hint


def test_a_factorial_beyond_all_memory_is_refused_all_the_same() -> None:
    factors = "".join(f"config.k{number} = [1, 2]\n" for number in range(5_000))
    text = SHORT.replace('"config.a" = [1, 2]\n', factors).replace(
        "[workload]", 'design = "factorial"\n[workload]'
    )
    assert "over 1,000,000,000 trials" in the_mistake(text).message


@pytest.mark.parametrize(
    ("content", "line", "column", "message"),
    [
        (b"", 0, 0, "the study is empty"),
        (b"# nothing but a comment\n", 0, 0, "the study is empty"),
        (b'engine = "mariadb"\n\xff', 2, 1, "not UTF-8: byte 0xff"),
        (b"\x7fELF\x02\x00\x00", 0, 0, "not a text file"),
        (b'engine = "mariadb"\nblocks = = 3\n', 2, 10, "not valid TOML: invalid value"),
        (b"x = [1,\n", 2, 0, "not valid TOML"),
        (b"<html>\n", 1, 1, "not valid TOML"),
        (b"x = " + b"[" * 100_000, 0, 0, "nested too deeply"),
        (b"a." * 100_000 + b"b = 1\n", 1, 1, "a key of 100001 parts"),
        (b"x = " + b"1" * 5_000, 0, 0, "too many digits"),
    ],
)
def test_a_file_that_is_no_study(content: bytes, line: int, column: int, message: str) -> None:
    mistake = the_mistake(content)
    assert message in mistake.message
    assert (mistake.line, mistake.column) == (line, column)


def test_windows_text_is_read_like_any_other() -> None:
    windows = b"\xef\xbb\xbf" + SHORT.replace("\n", "\r\n").encode()
    assert parse_study(windows, CATALOGUE).factors == read(SHORT).factors
    assert the_mistake(windows.replace(b"[1, 2]", b"[1]")).line == 5


@pytest.mark.parametrize("name", ["missing.toml", "folder", "large.toml", "endless"])
def test_a_path_that_gives_no_study(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large.toml").write_bytes(b"# ten megabytes\n" * 655_360)
    (tmp_path / "endless").symlink_to("/dev/zero")
    said = {"missing.toml": "no such file", "folder": "a directory"}.get(name, "larger than 1 MiB")
    with pytest.raises(StudyError) as caught:
        read_study(tmp_path / name, CATALOGUE)
    assert [said in mistake.message for mistake in caught.value.mistakes] == [True]
    assert caught.value.path == str(tmp_path / name)


def test_a_flood_of_mistakes_is_cut_short() -> None:
    found = mistakes("".join(f"unknown{number} = 1\n" for number in range(1_000)))
    assert len(found) == 101
    assert "more mistakes" in found[-1].message


def test_the_examples_of_the_documentation_are_studies() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "study-format.md").read_text()
    whole, engine, space, engines, variants = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert read(f'[workload]\nname = "tpcb"\n[factors]\n"config.a" = [1, 2]\n{engine}').configuration is None
    assert size_of_study(read(whole)).trials == 30
    search = read(f'engine = "mariadb"\ndesign = "search"\n[workload]\nname = "tpcb"\n{space}')
    assert [len(factor.only_if) for factor in search.factors] == [0, 0, 1]
    varying = replace(CATALOGUE, layers={**CATALOGUE.layers, "engine": lambda *_: []})
    compared = read(f'[workload]\nname = "tpcb"\n{engines}', varying)
    assert [one.written for one in compared.engines] == list(compared.factors[0].levels)
    listed = variants.replace("\n[[", '\nengine = "mariadb"\nworkload.name = "tpcb"\n[[', 1)
    assert [variant.name for variant in read(listed).variants] == ["baseline", "more memory", "both"]


LINES = EXAMPLE.splitlines(keepends=True)


@given(st.binary(max_size=200))
def test_no_bytes_bring_the_reader_down(content: bytes) -> None:
    try:
        parse_study(content, CATALOGUE)
    except StudyError as error:
        assert error.mistakes


@pytest.mark.parametrize("key", ['"a\\nb"', '"a\\u0007b"'])
def test_a_key_given_twice_is_told_on_one_line(key: str) -> None:
    """A quoted key may hold what a line of a message cannot."""
    twice = next(one for one in mistakes(f"{key} = 1\n{key} = 2\n") if "given twice" in one.message)
    assert twice.message.isprintable() and twice.line == 2


@given(st.data())
def test_a_damaged_study_is_read_or_refused_with_lines_of_its_own(data: st.DataObject) -> None:
    """Lines repeated, left out, swapped, and with characters of TOML thrown in."""
    lines = data.draw(st.lists(st.sampled_from(LINES), max_size=30))
    text = "".join(lines)
    place = data.draw(st.integers(0, len(text)))
    text = text[:place] + data.draw(st.text("[]{}=\"'.,#\n\\0a \t", max_size=4)) + text[place:]
    try:
        study = parse_study(text.encode(), CATALOGUE)
    except StudyError as error:
        assert all(0 <= mistake.line <= text.count("\n") + 1 for mistake in error.mistakes)
        assert all(mistake.message and "\n" not in mistake.message for mistake in error.mistakes)
    else:
        assert study.text == text


def fractional(factors: int, levels: str = "[1, 2]") -> str:
    lines = "".join(f"config.f{index} = {levels if index == 0 else '[1, 2]'}\n" for index in range(factors))
    head = 'engine = "mariadb"\ndesign = "fractional-factorial"\n[workload]\nname = "tpcb"\n'
    return f"{head}[factors]\n{lines}"


@pytest.mark.parametrize("factors", [5, 12])
def test_a_fraction_takes_what_its_tables_hold(factors: int) -> None:
    assert size_of_study(read(fractional(factors))).trials == (17 if factors == 5 else 32) * 6


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        (fractional(4), 2, "for 5 to 12 factors, and here are 4", 'design = "factorial"'),
        (fractional(13), 2, "for 5 to 12 factors, and here are 13", "settle some first"),
        (fractional(5, "[1, 2, 3]"), 6, "`config.f0` has 3 levels", "the slow one and the fast one"),
    ],
)
def test_what_a_fraction_does_not_take_is_refused(text: str, line: int, message: str, hint: str) -> None:
    (mistake,) = mistakes(text)
    assert mistake.line == line and message in mistake.message and hint in mistake.hint


def test_several_baselines_exclude_the_signed_rank_interval() -> None:
    text = SHORT.replace("[workload]", "baselines = 2\n[workload]")
    assert read(text).baselines == 2
    found = the_mistake(text + '[goal]\ninterval = "signed-rank"\n')
    assert found.line == 2 and "signed-rank" in found.message


def at_the_top(line: str) -> str:
    return f"{line}\n{SHORT}"


@pytest.mark.parametrize(
    ("line", "arrangement", "slice_s"),
    [
        ("", None, None),
        ('arrangement = "side-by-side"', Arrangement.SIDE_BY_SIDE, None),
        ('arrangement = "one-after-the-other"', Arrangement.ONE_AFTER_THE_OTHER, None),
        ('slice = "250ms"', None, 0.25),
        ('slice = "0.1s"', None, 0.1),
    ],
)
def test_how_trials_share_the_host_can_be_said(
    line: str, arrangement: Arrangement | None, slice_s: float | None
) -> None:
    study = read(at_the_top(line))
    assert (study.arrangement, study.slice_s) == (arrangement, slice_s)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ('arrangement = "beside"', "beside", "side-by-side"),
        ("arrangement = true", "arrangement", ""),
        ('slice = "99ms"', "99ms", "allowed: 0.1s to 24h"),
        ("slice = 1", "needs its unit", '"1s"'),
        ('slices = "1s"', "slices", "slice"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_line(line: str, message: str, hint: str) -> None:
    found = the_mistake(at_the_top(line))
    assert found.line == 1 and message in found.message and hint in found.hint


def test_counted_work_is_asked_for_beside_a_timed_response() -> None:
    assert read(SHORT).goal.counted is None
    assert read(SHORT + "[goal]\ncounted = false\n").goal.counted is False
    assert read(SHORT + "[goal]\ncounted = true\n").goal.counted is True
    found = the_mistake(SHORT + '[goal]\nresponse = "instructions_per_op"\ncounted = true\n')
    assert found.line == 8 and "counted in every block" in found.message
    assert the_mistake(SHORT + "[goal]\ncounted = 1\n").line == 7


def test_a_password_never_gets_into_a_study() -> None:
    text = f"# see mysql://me:s3cret@h/x\n{EXAMPLE}"
    require_mistake(mistakes(text), 1, "a URL on this line holds a password", "leave it out")
