"""Callgrind on a real process: what runs within is counted, what runs outside is not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import Blocked, DynoError
from dbdyno.host.callgrind import (
    CalledFunction,
    Callgrind,
    CallgrindDump,
    Counts,
    part_of,
    plus,
    read_dump,
    wholes,
)
from tests.needs import needs_valgrind


@contextmanager
def echoing(counter: Callgrind) -> Iterator[subprocess.Popen[str]]:
    """A small process under callgrind that gives each line back at once."""
    with subprocess.Popen(
        [*counter.wrapper, "/bin/cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        echo(child, 1)
        yield child
        assert child.stdin is not None
        child.stdin.close()


def echo(child: subprocess.Popen[str], times: int) -> None:
    assert child.stdin is not None and child.stdout is not None
    for _ in range(times):
        child.stdin.write("3\n")
        child.stdin.flush()
        assert child.stdout.readline() == "3\n"


def instructions(counter: Callgrind) -> int:
    return sum(counts[0] for dump in counter.dumps() for counts in dump.own.values())


@needs_valgrind
def test_each_count_is_of_what_happens_within(tmp_path: Path) -> None:
    counter, counts = Callgrind(tmp_path), []
    with echoing(counter) as child:
        for times in (10, 10, 20):
            echo(child, 7)
            with counter.counting(child.pid):
                echo(child, times)
            counts.append(instructions(counter))
    assert counts[1] == pytest.approx(counts[0], rel=0.005)
    assert counts[2] == pytest.approx(2 * counts[1], rel=0.1)


@needs_valgrind
def test_caches_and_branches_are_simulated_on_request(tmp_path: Path) -> None:
    counter = Callgrind(tmp_path, cache_sim=True, branch_sim=True)
    with echoing(counter) as child, counter.counting(child.pid):
        echo(child, 1)
    dump = counter.dumps()[0]
    assert {"Ir", "Dr", "D1mr", "DLmw", "Bc", "Bcm", "Bim"} <= set(dump.events)


@needs_valgrind
def test_a_process_that_is_gone_is_told(tmp_path: Path) -> None:
    counter = Callgrind(tmp_path)
    with echoing(counter) as child:
        pass
    with pytest.raises(DynoError, match="instrumentation on"), counter.counting(child.pid):
        pass


@needs_valgrind
def test_nothing_counted_is_no_count(tmp_path: Path) -> None:
    with pytest.raises(DynoError, match="counted nothing"):
        Callgrind(tmp_path).dumps()


def test_without_valgrind_it_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Blocked, match="valgrind is not on this machine") as refused:
        Callgrind(tmp_path)
    assert refused.value.hint == "install it: apt install valgrind"


DUMP = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 16892
cmd:  server --with=an-argument
part: 1

desc: Timerange: Basic block 0 - 99
positions: line
events: Ir Dr
summary: 0

ob=(1) /opt/server
fl=(1) main.c
fn=(1) main
10 5 2
+3 1
fi=(2) inlined.h
7 4
cfn=(2) helper(int, char*)
calls=3 20
* 30 9
cob=(2) /lib/libc.so
cfi=(3) ???
cfn=(3) memcpy
calls=1 0
-2 8 4
fe=(1)
12 1 1

fl=(2)
fn=(2)
20 30 9

ob=(2)
fl=(3)
fn=(3)
0 8 4

totals: 49 16
"""
MAIN = CalledFunction("main", "main.c", "/opt/server")
HELPER = CalledFunction("helper(int, char*)", "inlined.h", "/opt/server")
COPY = CalledFunction("memcpy", "???", "/lib/libc.so")


def read(text: str) -> CallgrindDump:
    return read_dump(text.splitlines())


def test_own_counts_go_to_the_function_whatever_file_its_lines_are_of() -> None:
    dump = read(DUMP)
    assert dump.events == ("Ir", "Dr") and dump.totals == (49, 16)
    assert dump.own == {MAIN: (11, 3), HELPER: (30, 9), COPY: (8, 4)}


def test_a_call_without_object_or_file_stays_in_those_that_the_caller_is_in() -> None:
    assert read(DUMP).calls == {(MAIN, HELPER): (30, 9), (MAIN, COPY): (8, 4)}


def test_a_call_names_its_object_for_itself_alone() -> None:
    text = DUMP.replace("fe=(1)\n", "cfn=(2)\ncalls=1 20\n12 6 0\nfe=(1)\n")
    assert read(text).calls[MAIN, HELPER] == (36, 9)


def test_with_all_it_calls_is_own_and_calls_but_never_more_than_the_whole() -> None:
    assert dict(wholes(read(DUMP))) == {MAIN: (49, 16), HELPER: (30, 9), COPY: (8, 4)}
    recursive = DUMP.replace("20 30 9", "20 30 9\ncfn=(1)\ncalls=1 10\n20 500 500")
    assert dict(wholes(read(recursive)))[HELPER] == (49, 16)


def test_a_part_holds_what_others_do_for_it_and_nothing_beside() -> None:
    dump = read(DUMP)
    assert part_of(dump, {MAIN}) == {MAIN: (11, 3), HELPER: (30, 9), COPY: (8, 4)}
    assert part_of(dump, {HELPER}) == {HELPER: (30, 9)}
    assert part_of(dump, set()) == {}


def test_positions_by_instruction_are_no_counts() -> None:
    text = "positions: instr line\nevents: Ir\nob=a\nfl=b\nfn=c\n0x401 16 3\n+3 * 4\ntotals: 7\n"
    assert read(text).own == {CalledFunction("c", "b", "a"): (7,)}


@pytest.mark.parametrize("line", ["12 x", "fn=(99)", "calls", "0x 5"])
def test_what_the_form_does_not_allow_is_told_with_its_line(line: str) -> None:
    with pytest.raises(DynoError, match="line 3 of callgrind's dump"):
        read(f"events: Ir\nfn=served\n{line}\n")


numbers = st.integers(0, 10**12)
functions = st.sampled_from(
    [CalledFunction(name, file, object) for name in "pq" for file in "fg" for object in "ab"]
)


@given(
    st.lists(st.tuples(functions, st.lists(st.tuples(st.integers(0, 999), numbers), min_size=1)), max_size=12)
)
def test_what_is_written_is_read_whatever_is_compressed(
    blocks: list[tuple[CalledFunction, list[tuple[int, int]]]],
) -> None:
    expected: dict[CalledFunction, tuple[int, ...]] = {}
    lines, names = ["positions: line", "events: Ir"], dict[tuple[str, str], int]()
    for function, costs in blocks:
        lines += [
            f"{key}={compressed(kind, value, names)}"
            for key, kind, value in (
                ("ob", "ob", function.object), ("fl", "fl", function.file), ("fn", "fn", function.name)
            )
        ]  # fmt: skip
        starts = [0, *(line for line, _ in costs)]
        lines += [f"{now - before:+d} {cost}" for before, (now, cost) in zip(starts, costs, strict=False)]
        expected[function] = (expected.get(function, (0,))[0] + sum(cost for _, cost in costs),)
    assert read_dump(lines).own == expected


def compressed(kind: str, value: str, names: dict[tuple[str, str], int]) -> str:
    """A name as callgrind writes it: with its number the first time, then by the number alone."""
    if (kind, value) in names:
        return f"({names[kind, value]})"
    names[kind, value] = len(names) + 1
    return f"({names[kind, value]}) {value}"


@given(st.lists(st.lists(numbers, max_size=4)))
def test_missing_counts_are_zero(many: list[list[int]]) -> None:
    no_counts: Counts = ()
    total = reduce(plus, map(tuple, many), no_counts)
    for index in range(4):
        expected = sum(one[index] for one in many if index < len(one))
        assert (total[index] if index < len(total) else 0) == expected
