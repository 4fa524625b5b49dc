"""The Phoronix Test Suite's results: picked by test and system, and refused where they are no rates. Files
are in the form that the suite documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.imported import TOOLS
from dbdyno.imported.tallies import CountedRepetition

RESULT = """
  <Result>
    <Identifier>pts/{name}</Identifier>
    <Title>{name}</Title>
    <Description>{test}</Description>
    <Scale>{scale}</Scale>
    <Proportion>HIB</Proportion>
    <Data>{entries}</Data>
  </Result>"""
ENTRY = "<Entry><Identifier>{system}</Identifier><Value>{value}</Value><RawString>{raw}</RawString></Entry>"


def composite(folder: Path, *results: tuple[str, str, dict[str, str]], head: str = "") -> Path:
    """A file with tests: each with its name, its scale, and the figures of each system."""
    made = "".join(
        RESULT.format(
            name="redis",
            test=test,
            scale=scale,
            entries="".join(
                ENTRY.format(system=system, value=raw.split(":")[0], raw=raw)
                for system, raw in systems.items()
            ),
        )
        for test, scale, systems in results
    )
    path = folder / "composite.xml"
    path.write_text(f'<?xml version="1.0"?>\n{head}<PhoronixTestSuite>{made}</PhoronixTestSuite>')
    return path


def read(path: Path, pick: str) -> list[CountedRepetition]:
    tool = TOOLS["phoronix"]
    return [tool.read(one, None) for one in tool.repetitions([Path(f"{path}#{pick}")])]


GET = ("Test: GET", "Requests Per Second", {"old": "1000.5:1010:990", "new": "2000:2020:1980", "bad": ""})


def test_each_figure_of_a_test_on_a_system_is_a_repetition(tmp_path: Path) -> None:
    path = composite(tmp_path, GET, ("Test: SET", "Queries Per Minute, Geo Mean", {"old": "600"}))
    found = read(path, "Test: GET#old")
    assert [one.tally.throughput_per_s for one in found] == pytest.approx([1000.5, 1010.0, 990.0])
    assert found[0].latency.mean is None and found[0].latency.p99 is None
    assert any("one figure of each repetition" in remark for remark in found[0].remarks)
    (minute,) = read(path, "Test: SET#old")
    assert minute.tally.throughput_per_s == pytest.approx(10.0)
    (took,) = read(composite(tmp_path, ("Size: 1", "Seconds", {"old": "12.5"})), "Size: 1#old")
    assert (took.duration_s, took.operations) == (12.5, 1)


@pytest.mark.parametrize("scale", ["TPS", "Op/s", "Ops/sec", "ops/s", "IOPS", "Queries Per Second"])
def test_a_rate_is_known_by_its_scale(tmp_path: Path, scale: str) -> None:
    (found,) = read(composite(tmp_path, ("Mode: rw", scale, {"old": "0.25"})), "Mode: rw#old")
    assert found.tally.throughput_per_s == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("pick", "said", "hint"),
    [
        ("", "picks no test", "its tests: Test: GET; Test: SET"),
        ("Test: PUT#old", "has no tests 'Test: PUT'", "FILE#TEST#SYSTEM"),
        ("redis#old", "has 2 tests 'redis'", "its tests: Test: GET; Test: SET"),
        ("Test: GET#older", "names no system of that test", "its systems: old; new; bad"),
        ("Test: GET#bad", "has no figure: the test failed there", "another system"),
        ("Test: SET#old", "measured in ms, which is no rate of operations", "per second"),
    ],
)
def test_what_cannot_be_picked_is_told_with_what_is_there(
    tmp_path: Path, pick: str, said: str, hint: str
) -> None:
    path = composite(tmp_path, GET, ("Test: SET", "ms", {"old": "3"}))
    with pytest.raises(UserError, match=said) as error:
        read(path, pick)
    assert hint in error.value.hint


def test_a_file_that_is_no_result_or_grows_by_itself_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>'
    with pytest.raises(UserError, match="declares a document type"):
        read(composite(tmp_path, GET, head=bomb), "Test: GET#old")
    with pytest.raises(UserError, match="holds no result"):
        read(composite(tmp_path), "Test: GET#old")
    (tmp_path / "cut.xml").write_text("<PhoronixTestSuite><Result>")
    with pytest.raises(UserError, match="is not the XML of the Phoronix Test Suite"):
        read(tmp_path / "cut.xml", "Test: GET#old")
    with pytest.raises(UserError, match="is not there"):
        read(tmp_path / "none.xml", "Test: GET#old")
    for figure, said in (("0", "is 0"), ("fast", "is no number: 'fast'"), ("nan", "is nan")):
        with pytest.raises(UserError, match=said):
            read(composite(tmp_path, ("T", "TPS", {"old": figure})), "T#old")
