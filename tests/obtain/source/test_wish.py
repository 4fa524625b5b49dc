"""What levels of builds mean to each family of compilers."""

from __future__ import annotations

import pytest

from dbdyno.errors import Blocked
from dbdyno.obtain.source.wish import (
    GUIDED,
    INSTRUMENTING,
    RELOCATIONS,
    SECTIONS,
    WHOLE_FUNCTIONS,
    BuildWish,
    Flags,
    Trainer,
    all_flags,
    flags_of,
)


@pytest.mark.parametrize(
    ("knob", "level", "family", "flags"),
    [
        ("optimisation", "-O3", "gcc", Flags(compile=("-O3",))),
        ("flags", "-fno-plt -Wall", "gcc", Flags(compile=("-fno-plt", "-Wall"))),
        ("flags", "none", "gcc", Flags()),
        ("march", "native", "clang", Flags(compile=("-march=native",))),
        ("march", "default", "clang", Flags()),
        ("lto", "full", "gcc", Flags(compile=("-flto=auto",), link=("-flto=auto",))),
        ("lto", "thin", "clang", Flags(compile=("-flto=thin",), link=("-flto=thin",))),
        ("lto", "off", "gcc", Flags()),
        ("linker", "lld", "clang", Flags(link=("-fuse-ld=lld",))),
        ("linker", "default", "gcc", Flags()),
        ("hardening", "default", "gcc", Flags()),
        ("layout", "default", "gcc", Flags()),
        ("layout", "none", "gcc", Flags(compile=SECTIONS, link=SECTIONS)),
        ("layout", "7", "clang", Flags(compile=SECTIONS, link=SECTIONS)),
        ("bolt", "off", "gcc", Flags()),
        ("bolt", "tpcb scale=2", "gcc", Flags(compile=WHOLE_FUNCTIONS, link=RELOCATIONS)),
        ("bolt", "tpcb", "clang", Flags(link=RELOCATIONS)),
    ],
)
def test_a_level_means_flags(knob: str, level: str, family: str, flags: Flags) -> None:
    assert flags_of(knob, level, family) == flags


def test_hardening_is_switched_on_and_off() -> None:
    on, off = flags_of("hardening", "full", "gcc"), flags_of("hardening", "off", "gcc")
    assert "-fstack-protector-strong" in on.compile and "-fno-stack-protector" in off.compile
    assert "-Wl,-z,now" in on.link and "-Wl,-z,lazy" in off.link


def test_gcc_has_no_thin_lto() -> None:
    with pytest.raises(Blocked) as refused:
        all_flags(BuildWish(lto="thin"), "gcc")
    assert refused.value.factor == "build.lto" and refused.value.hint


def test_what_the_study_writes_as_flags_comes_last() -> None:
    flags = all_flags(BuildWish(optimisation="-O2", march="x86-64-v3", flags="-O1"), "gcc")
    assert flags.compile[-1] == "-O1" and "-O2" in flags.compile


@pytest.mark.parametrize("profiling", [*INSTRUMENTING.values(), *GUIDED.values()])
def test_what_the_study_writes_as_flags_comes_after_those_of_a_profile(profiling: Flags) -> None:
    flags = all_flags(BuildWish(flags="-fno-profile-generate"), "gcc", profiling)
    assert flags.compile[-1 - len(profiling.compile) :] == (*profiling.compile, "-fno-profile-generate")
    assert flags.link[-len(profiling.link) or len(flags.link) :] == profiling.link


def test_a_trainer_says_what_it_does() -> None:
    assert Trainer(workload="tpcb", transactions=5000).words == "tpcb, 5,000 transactions of 1 client"
    options = (("tables", 4), ("skip_trx", True), ("secondary", False), ("pareto_h", 0.0), ("file", ""))
    more = Trainer(workload="read_write", options=options, clients=8, transactions=10)
    told = "read_write tables=4 skip_trx=true pareto_h=0.0, 10 transactions of 8 clients"
    assert more.words == told


def test_the_words_of_a_wish_tell_what_is_not_the_default() -> None:
    assert BuildWish().words == "gcc -O2"
    wish = BuildWish(compiler="gcc-12", march="native", lto="full", patches="a.patch", hardening="off")
    assert wish.words == "gcc-12 -O2 -march=native LTO full hardening off patches a.patch"
    both = BuildWish(pgo="tpcb scale=2", bolt="read_only")
    assert both.words == "gcc -O2 PGO by tpcb scale=2 BOLT by read_only"


def test_a_seed_is_told_and_no_seed_is_not() -> None:
    assert [BuildWish(layout=level).seed for level in ("default", "none", "7")] == [None, None, 7]
    assert BuildWish(layout="none").words == "gcc -O2"
    assert BuildWish(layout="7").words == "gcc -O2 layout 7"


def test_a_linker_that_takes_no_part_of_a_script_cannot_shuffle() -> None:
    all_flags(BuildWish(layout="none", linker="lld"), "clang")
    with pytest.raises(Blocked, match="lld cannot shuffle functions") as refused:
        all_flags(BuildWish(layout="7", linker="lld"), "clang")
    assert refused.value.factor == "build.layout"
