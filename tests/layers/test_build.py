"""Levels of builds: put in by a real compiler, proved on the process that runs what it made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines import built as engines_built
from dbdyno.engines.registry import engine
from dbdyno.errors import Blocked, BuildFailed, UserError
from dbdyno.frozen import Level
from dbdyno.layers.build import (
    BOLT,
    PGO,
    TRANSACTIONS,
    compiled_by,
    lto_of,
    run_options,
    trainer_of,
    variants_by_wish,
    wish_of,
    with_trainer,
)
from dbdyno.layers.layer import ask, by_layer
from dbdyno.layers.registry import KNOBS, LAYERS
from dbdyno.layers.setup import Running
from dbdyno.layers.source import wish_among
from dbdyno.obtain.source import commands, making
from dbdyno.obtain.source.build import BuildSpecification, Flags
from dbdyno.obtain.source.toolchain import toolchain
from dbdyno.obtain.source.toolchain import tried_flags as tried_flags
from dbdyno.study import Factor, Study, Workload
from dbdyno.study.designs import variants_of
from dbdyno.trial.verify import verify
from tests.fakes import FakeEngine, make_study
from tests.needs import needs_clang, on_machine
from tests.sqlite_fork import make_fork
from tests.trials import tried

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes")]


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Level]]:
    """The levels that name a fork of SQLite in the working folder."""
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    monkeypatch.setattr(making, "_failures", {})
    make_fork(tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    yield {"source__origin": "fork", "source__recipe": "recipe.toml"}


def test_all_levels_together_make_one_wish() -> None:
    levels: dict[str, Level] = {"source.origin": "/x", "build.lto": "full", "build.optimisation": "-O3"}
    asked = ask(by_layer(levels), LAYERS, FakeEngine().engine)
    assert wish_among(asked) == BuildSpecification(origin="/x", lto="full", optimisation="-O3")
    assert wish_among(ask(by_layer({"config.speed": 1}), LAYERS, FakeEngine().engine)) is None


@pytest.mark.parametrize(
    ("factor", "level", "value"),
    [
        ("build.optimisation", "-O3", "-O3, in 1 of 1"),
        ("build.compiler", "gcc", "in 1 of 1"),
        ("build.flags", "-fno-plt", "-fno-plt, in 1 of 1"),
        ("build.flags", "-Wall", "-Wall was passed; compilers record nothing of it"),
        ("build.flags", "none", "no flag"),
        ("build.lto", "full", "linked as one"),
        ("build.lto", "off", "not linked as one"),
        ("build.linker", "default", "bfd"),
        ("build.hardening", "full", "stack protector yes, RELRO yes, bound at the start yes"),
        ("build.hardening", "off", "stack protector no, RELRO no, bound at the start no"),
        ("build.march", "native", "-m"),
        ("build.layout", "none", "not shuffled"),
        ("build.layout", "7", "functions shuffled by seed 7"),
    ],
)
def test_a_level_is_proved_by_what_the_running_file_tells(
    fork: dict[str, Level], factor: str, level: str, value: str
) -> None:
    with tried("sqlite", **fork, **{factor.replace(".", "__"): level}) as found:
        assert value in found.value(factor)
        evidence = found.evidence[factor]
        assert evidence.effective is not None and "/proc/PID/maps" in evidence.effective.source
        assert found.value("source.origin") == "fork"
        assert found.exercised(factor) == ""


@needs_clang
def test_clang_is_proved_wherever_its_links_lead(
    fork: dict[str, Level], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "clang").symlink_to(str(on_machine("clang")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    for level in ("clang", str(tmp_path / "bin" / "clang")):
        with tried("sqlite", **fork, build__compiler=level) as found:
            assert found.evidence["build.compiler"].in_effect, found.value("build.compiler")


@needs_clang
def test_a_command_line_of_one_compiler_is_not_of_another() -> None:
    gcc, clang = toolchain("gcc"), toolchain("clang")
    by_gcc, by_clang = "GNU C17 12.2.0 -O2", "/opt/other/bin/clang -O2 -c /usr/bin/clang.c"
    of_gcc = gcc.but(version="gcc 12.2.0")
    assert compiled_by(of_gcc, by_gcc) and not compiled_by(of_gcc.but(version="gcc 13.1.0"), by_gcc)
    [program] = tried_flags(clang, Flags()).programs
    assert compiled_by(clang, f"{program} -O2 -c a.c") and not compiled_by(clang, by_clang)
    assert not compiled_by(clang, by_gcc)


@pytest.mark.parametrize(
    ("command_line", "level"),
    [
        ("GNU C17 12.2.0 -mtune=generic -march=x86-64 -O2", "off"),
        ("GNU GIMPLE 12.2.0 -mtune=generic -march=x86-64 -O2 -fltrans", "full"),
        ("GNU C17 12.2.0 -O2 -flto=auto", "full"),
        ("GNU C17 12.2.0 -O2 -fno-lto", "off"),
        ("/usr/bin/clang -O2 -flto=thin -c a.c", "thin"),
        ("/usr/bin/clang -O2 -flto=full -c a.c", "full"),
        ("/usr/bin/clang -O2 -flto -c a.c", "full"),
        ("/usr/bin/clang -flto=full -flto=thin -c a.c", "thin"),
        ("/usr/bin/clang -flto=thin -fno-lto -c a.c", "off"),
        ("/usr/bin/clang -O2 -flto-jobs=2 -c lto.c", "off"),
    ],
)
def test_a_command_line_tells_its_level_of_lto(command_line: str, level: str) -> None:
    assert lto_of(command_line) == level


@pytest.mark.parametrize("network", [True, False])
def test_a_build_that_could_reach_the_network_says_so(
    fork: dict[str, Level], monkeypatch: pytest.MonkeyPatch, network: bool
) -> None:
    if network:
        monkeypatch.setattr(commands, "wrapper", lambda: None)
        monkeypatch.setattr(making, "wrapper", lambda: None)
    elif commands.wrapper() is None:
        pytest.skip("this kernel refuses a network namespace")
    with tried("sqlite", **fork) as found:
        evidence = found.evidence["source.origin"].effective
        assert evidence is not None and ("could reach the network" in evidence.source) is network


def test_a_build_reads_the_data_that_the_studys_own_engine_made(fork: dict[str, Level]) -> None:
    with tried("sqlite", **fork) as found:
        setup = found.running.setup
        assert setup.data_maker.digest != setup.installation.digest
        assert setup.data_maker.origin != setup.installation.origin


def test_a_flag_that_the_compiler_does_not_obey_is_told(fork: dict[str, Level]) -> None:
    with tried("sqlite", **fork, build__flags="-fno-rtti") as found:
        assert "the compiler does not obey it" in found.evidence["build.flags"].idle


def test_another_file_in_the_builds_place_is_no_proof(fork: dict[str, Level]) -> None:
    with tried("sqlite", **fork, build__optimisation="-O1") as found:
        running = found.running
        assert running.setup.built is not None
        running.setup.built = replace(running.setup.built, program=Path("/nowhere/lib"))
        levels = {"build": {"optimisation": "-O1"}, "source": {"origin": "fork"}}
        evidence = verify(Running(running.setup, running.server, running.load), levels, LAYERS)
        assert [one.in_effect for one in evidence] == [False, False]
        assert all("another file" in one.reason for one in evidence)


def test_a_level_that_the_binary_does_not_show_is_not_in_effect(fork: dict[str, Level]) -> None:
    """A recipe that compiles by its own flags."""
    recipe = Path("recipe.toml")
    recipe.write_text(recipe.read_text().replace('"{cflags}"', '"{cflags}", "-O0"'))
    with tried("sqlite", **fork, build__optimisation="-O3") as found:
        evidence = found.evidence["build.optimisation"]
        assert not evidence.in_effect and "in 0 of 1" in evidence.reason


@pytest.mark.parametrize(
    ("factor", "level", "found"),
    [
        ("build.optimisation", "-O3", "-O3, in 1 of 2"),
        ("build.flags", "-fno-plt", "-fno-plt, in 1 of 2"),
        ("build.hardening", "full", "stack protector in 1 of 2"),
        ("build.lto", "full", "not linked as one: 1 of 2"),
    ],
)
def test_a_level_that_part_of_the_binary_shows_is_not_in_effect(
    fork: dict[str, Level], factor: str, level: str, found: str
) -> None:
    """A recipe that compiles one of two files by its own flags."""
    Path("fork/own.c").write_text("int own;\n")
    recipe = Path("recipe.toml")
    own = '["{cc}", "-frecord-gcc-switches", "-O1", "-fPIC", "-c", "-o", "own.o", "{source}/own.c"]'
    first = f'[[steps]]\nname = "own"\ncommand = {own}\n\n[[steps]]'
    text = recipe.read_text().replace("[[steps]]", first)
    recipe.write_text(text.replace('"{source}/fork.c"', '"{source}/fork.c", "own.o"'))
    with tried("sqlite", **fork, **{factor.replace(".", "__"): level}) as run:
        evidence = run.evidence[factor]
        assert not evidence.in_effect and found in evidence.reason


@pytest.mark.parametrize(
    ("levels", "kind", "said"),
    [
        ({"build__compiler": "clang-99"}, Blocked, "there is no compiler clang-99"),
        ({"build__flags": "-fno-such-thing"}, BuildFailed, "gcc rejects"),
        ({"build__flags": "-Dremark=5"}, BuildFailed, "compile: .*error: expected"),
    ],
    ids=["blocked", "rejected", "broken"],
)
def test_a_level_that_cannot_be_built_has_its_cause(
    fork: dict[str, Level], levels: dict[str, Level], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said), tried("sqlite", **fork, **levels):
        pass


def test_a_trainer_without_options_has_those_of_the_studys_own_workload() -> None:
    load = Workload(name="read_only", clients=8, options={"tables": 4, "table_size": 500, "range_size": 7})
    study = make_study(workload=load)
    own, other = trainer_of(PGO, "read_only", study), trainer_of(PGO, "read_write", study)
    for trainer in (own, other):
        options = dict(trainer.options)
        assert (options["tables"], options["table_size"], options["range_size"]) == (4, 500, 7)
        assert options["point_selects"] == 10, "the workload's default"
        assert (trainer.clients, trainer.transactions) == (8, TRANSACTIONS)
    assert own.workload == "read_only" and dict(other.options)["index_updates"] == 1
    assert dict(trainer_of(PGO, "tpcb", study).options) == {
        "scale": 1,
        "simple_update": False,
        "select_only": False,
    }


def test_a_trainers_own_options_come_first() -> None:
    study = make_study(workload=Workload(name="read_only", options={"tables": 4}))
    level = "read_only tables=2 skip_trx=true zipfian_exponent=1.5 clients=3 transactions=9"
    trainer = trainer_of(PGO, level, study)
    options = dict(trainer.options)
    assert (options["tables"], options["skip_trx"], options["zipfian_exponent"]) == (2, True, 1.5)
    assert (trainer.clients, trainer.transactions) == (3, 9)
    assert "clients" not in options and "transactions" not in options


def test_variants_that_differ_in_configuration_alone_have_one_trainer() -> None:
    factors = (Factor(name="config.speed", levels=(1, 2)), Factor(name="cpu.server", levels=("all", "0")))
    study = make_study(settings={"config.page": 4, "source.origin": "x"}).model_copy(
        update={"factors": factors}
    )
    trainer = trainer_of(PGO, "tpcb", study)
    assert trainer.settings == (("config.page", 4), ("config.speed", 1))
    assert with_trainer(BuildSpecification(pgo="tpcb"), study).trainer == trainer
    assert with_trainer(BuildSpecification(), study).trainers == ()
    both = with_trainer(BuildSpecification(pgo="read_only", bolt="tpcb"), study)
    assert both.bolt_trainer == trainer and [one.workload for one in both.trainers] == ["read_only", "tpcb"]


def test_what_only_the_run_looks_at_shapes_no_data() -> None:
    found = run_options(trainer_of(PGO, "read_only", make_study()))
    assert "range_size" in found and "table_size" not in found


@pytest.mark.parametrize(
    ("level", "message", "hint"),
    [
        ("tpcbb", 'build.pgo: "tpcbb" is no workload', "did you mean `tpcb`?"),
        ("tpcb scale", "is no level of it", "read_write tables=4"),
        ("tpcb sclae=2", 'the workload tpcb has no option "sclae"', "did you mean `scale`?"),
        ("tpcb scale=many", '`scale`: "many" is no number', "read_write tables=4"),
        ("tpcb scale=0", "`scale`: cannot be 0", "allowed: 1 to"),
        ("tpcb scale=1 scale=2", "the option `scale` twice", "keep one"),
        ("tpcb select_only=1", "`select_only`: must be true or false", "without quotes"),
        ("tpcb transactions=0", "`transactions`: cannot be 0", "allowed: 1 to"),
        ("read_only distribution=flat", '`distribution`: cannot be "flat"', "uniform"),
    ],
)
def test_what_is_no_trainer_is_told_when_the_study_is_read(level: str, message: str, hint: str) -> None:
    for factor in (PGO, BOLT):
        mistake = KNOBS[factor].mistake(level)
        assert mistake is not None and message.replace(PGO, factor) in mistake.message
        assert hint in mistake.hint


@pytest.mark.parametrize("level", ["off", "tpcb", "tpcb  scale=2", "read_write tables=4 table_size=10000"])
def test_a_trainer_is_a_level(level: str) -> None:
    assert all(KNOBS[factor].mistake(level) is None for factor in (PGO, BOLT))


def test_a_value_of_the_study_that_the_trainer_cannot_have_is_refused() -> None:
    study = make_study(workload=Workload(name="script", options={"scale": 1_000_000}))
    with pytest.raises(UserError, match=r"build\.bolt: `scale`: cannot be 1000000"):
        trainer_of(BOLT, "tpcb", study)


def of_builds(*factors: Factor) -> Study:
    """A study that builds its engine."""
    return make_study(settings={"source.origin": "/x"}).model_copy(update={"factors": factors})


def test_a_variant_asks_for_the_studys_build_with_its_own_levels() -> None:
    study, fake = of_builds(), FakeEngine().engine
    wish = wish_of(study, {"build.lto": "full", "build.pgo": "tpcb"}, LAYERS, fake)
    assert wish == with_trainer(BuildSpecification(origin="/x", lto="full", pgo="tpcb"), study)
    assert wish is not None and wish.trainer is not None
    assert wish_of(make_study(), {"config.speed": 2}, LAYERS, fake) is None


def test_variants_that_differ_in_other_layers_share_a_build() -> None:
    study = of_builds(
        Factor(name="config.speed", levels=(1, 2)), Factor(name="build.lto", levels=("off", "full"))
    )
    found = variants_by_wish(study, variants_of(study), LAYERS, FakeEngine().engine)
    assert [(wish.lto, [one.name for one in sharing]) for wish, sharing in found.items()] == [
        ("off", ["baseline", "config.speed=2"]),
        ("full", ["build.lto=full"]),
    ]


def test_a_variant_that_a_layer_refuses_needs_no_build() -> None:
    study = of_builds(Factor(name="cpu.driver", levels=("all", "0")))
    with pytest.raises(Blocked):
        wish_of(study, {"cpu.driver": "0"}, LAYERS, engine("sqlite"))
    [sharing] = variants_by_wish(study, variants_of(study), LAYERS, engine("sqlite")).values()
    assert [one.name for one in sharing] == ["baseline"]
