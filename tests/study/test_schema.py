from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from dbdyno.errors import StudyError
from dbdyno.study import excludes, parse_study, study_schema
from tests.study.catalogue import CATALOGUE
from tests.study.reader_cases import EXAMPLE, LIST, SHORT
from tests.study.reading import toml

Document = dict[str, Any]
SCHEMA = study_schema(CATALOGUE)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


LEVEL = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["16M", "ON", ""]),
)
LEVELS = st.lists(LEVEL, max_size=4)
RANGE = st.fixed_dictionaries(
    {"from": st.sampled_from([1, 2, 0.5, "16M", "x"]), "to": st.sampled_from([8, 4.0, "1G", "2M", -1])},
    optional={
        "scale": st.sampled_from(["log", "linear", "cubic"]),
        "step": st.sampled_from([1, "16M", 0]),
        "baseline": st.sampled_from([2, 3.5, "64M", 10**6]),
        "only_if": st.dictionaries(st.sampled_from(["config.a", "config.b"]), LEVELS, max_size=1),
    },
)
LISTED = st.fixed_dictionaries({"levels": LEVELS})
SEARCH = st.fixed_dictionaries(
    {},
    optional={
        "time": st.sampled_from(["5m", "1s", "x"]),
        "allow": st.lists(st.sampled_from(["durability", "isolation", "speed"]), max_size=2),
        "constraints": st.lists(
            st.sampled_from(["config.a <= 9", "config.a + 2 * config.b <= 6G", "config.a", "1 <= 2"]),
            max_size=2,
        ),
    },
)
NAME = st.sampled_from(
    ["config.a", "config.b.c", "storage.scheduler", "workload.scale", "workload.clients", "x.y", "config"]
)
NESTED = st.dictionaries(
    st.sampled_from(["config", "storage", "nothing"]), st.dictionaries(st.just("k"), LEVELS, max_size=1)
)
ENGINES = ["mariadb", "firebird@5", "mariadb:~/mariadbd", "mysql://localhost/x", "oracle", "", 3]
ENGINE = st.sampled_from(ENGINES)
DURATION = st.one_of(st.sampled_from(["5s", "1.5m", "500ms", "0s", "1 h", "s", "5"]), st.integers(0, 9))
TEXT = st.sampled_from(["SET a = 1", "", 1])
CLIENTS = st.one_of(st.integers(-1, 200_000), st.lists(st.integers(-1, 64), max_size=3))
WORKLOAD = st.fixed_dictionaries(
    {"name": st.sampled_from(["tpcb", "point_select", "tpcd"])},
    optional={
        "clients": CLIENTS,
        "threads": CLIENTS,
        "rate_per_s": st.one_of(st.floats(-1, 1e6), st.lists(st.integers(-1, 9), max_size=3)),
        "arrivals": st.sampled_from(["poisson", "uniform", "often", ["poisson", "uniform"]]),
        "schedule": st.sampled_from(
            ["constant", "ramp:9/1s", "steps:1s=2,3s=4", "ramp:9/1", ["sine:1/1s", "points:0s=3"]]
        ),
        "think_time": st.sampled_from(["1s", "exponential:5ms", "gamma:1s", 1, ["1s", "2s"]]),
        "by_statement": st.sampled_from([True, False, 1]),
        "isolation": st.sampled_from(["serializable", "snapshot", 1]),
        "storage_engine": st.sampled_from(["Aria", "a b", "", 1]),
        "connect_sql": st.one_of(TEXT, st.lists(TEXT, max_size=2)),
        "ramp": DURATION,
        "warmup": DURATION,
        "duration": DURATION,
        "scale": CLIENTS,
        "variant": st.sampled_from(["full", "N", "M", ["full", "N"]]),
        "prepared": st.sampled_from([True, False, 1, [True, False]]),
        "note": st.one_of(st.text(max_size=4), st.lists(st.text(max_size=4), max_size=3)),
    },
)
VARIANT = st.fixed_dictionaries(
    {"levels": st.dictionaries(NAME, LEVEL, max_size=2)},
    optional={"name": st.sampled_from(["baseline", "other", "a, b", "third one", "x" * 81])},
)
GUARD = st.sampled_from(
    ["invariants", "p99_ms <= 1.2x", " p50_ms>=5 ", "p99_ms <= 1,5", "nothing <= 3", "p99_ms < 1"]
)
GOAL = st.fixed_dictionaries(
    {},
    optional={
        "response": st.sampled_from(["throughput", "p99_ms", "speed"]),
        "margin": st.sampled_from(["2%", "0.5 %", "2", 2, "100%"]),
        "confidence": st.sampled_from(["95%", "99.9%", "10%"]),
        "counted": st.sampled_from([True, False, 1]),
        "guards": st.lists(GUARD, max_size=2),
    },
)
SOAK = st.fixed_dictionaries(
    {},
    optional={
        "clients": st.lists(st.sampled_from([0, 1, 5, 100_000, 100_001, "5"]), max_size=3),
        "duration": DURATION,
        "opening": DURATION,
        "disturb": st.lists(st.sampled_from(["idle", "churn", "half-open", "loud"]), max_size=3),
        "beside": st.lists(st.sampled_from(["tpcb", "point_select", "nothing"]), max_size=2),
        "disturbed": DURATION,
        "control": DURATION,
        "ends": st.lists(st.sampled_from(["stop", "kill", "cut", "tear", "explode"]), max_size=2),
        "sessions": st.booleans(),
    },
)
OPTIONAL = {
    "title": st.text(max_size=6),
    "design": st.sampled_from(
        ["one-at-a-time", "ladder", "factorial", "fractional-factorial", "list", "search"]
    ),
    "blocks": st.sampled_from([1, 6, 0, 10_000, 10_001, 2.0, "6"]),
    "seed": st.sampled_from([0, 2**63 - 1, 2**63, -1]),
    "aa": st.sampled_from([True, False, 1]),
    "baselines": st.sampled_from([1, 100, 0, 101]),
    "arrangement": st.sampled_from(["side-by-side", "one-after-the-other", "beside"]),
    "slice": DURATION,
    "settings": st.dictionaries(NAME, LEVEL, max_size=1),
    "factors": st.one_of(st.dictionaries(NAME, st.one_of(LEVELS, RANGE, LISTED), max_size=3), NESTED),
    "variants": st.lists(VARIANT, max_size=3),
    "goal": GOAL,
    "search": SEARCH,
    "soak": SOAK,
    "notes": st.integers(),
}
DOCUMENT = st.fixed_dictionaries({"engine": ENGINE, "workload": WORKLOAD}, optional=OPTIONAL)


def reader_accepts(content: bytes) -> bool:
    try:
        parse_study(content, CATALOGUE)
    except StudyError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_what_editors_are_told_is_what_it_was(snapshot: SnapshotAssertion) -> None:
    """Each key with its values, its default and its words. Renew it with `--snapshot-update`. What excludes
    what is tried in `test_excludes.py`."""
    keys = {name: words for name, words in SCHEMA.items() if name not in excludes.rules()}
    assert keys == snapshot


@pytest.mark.parametrize("text", [EXAMPLE, SHORT, LIST])
def test_the_examples_validate(text: str) -> None:
    VALIDATOR.validate(tomllib.loads(text))


def _identity(level: object) -> object:
    return float(level) if isinstance(level, int | float) else level


TEXTS = st.sampled_from(["16M", "ON", "a b"])
SOUND_LEVEL = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(-1e300, 1e300), TEXTS)
SOUND_FACTORS = st.dictionaries(
    st.sampled_from(["config.a", "config.b.c", "storage.x"]),
    st.lists(SOUND_LEVEL, min_size=2, max_size=4, unique_by=_identity),
    min_size=1,
)  # fmt: skip
SOUND = st.fixed_dictionaries(
    {
        "engine": st.sampled_from(["mariadb", "firebird@5", "mariadb:/usr/sbin/mariadbd"]),
        "workload": st.fixed_dictionaries(
            {"name": st.just("tpcb")},
            optional={
                "clients": st.one_of(
                    st.integers(1, 9), st.sampled_from([[1, 8], [4, 2, 1], "1..8 x2", "8..24+8"])
                ),
                "rate_per_s": st.floats(0.5, 1e6),
                "ramp": st.sampled_from(["0s", "2 s"]),
                "by_statement": st.booleans(),
                "connect_sql": st.sampled_from(["SET a = 1", ["SET a = 1", "SET b = 2"]]),
                "warmup": st.sampled_from(["0s", "5 s", "1.5m"]),
                "variant": st.sampled_from(["N", ["full", "N"]]),
            },
        ),
        "factors": SOUND_FACTORS,
    },
    optional={
        "design": st.sampled_from(["one-at-a-time", "ladder", "factorial"]),
        "blocks": st.integers(1, 10),
        "settings": st.dictionaries(st.sampled_from(["config.s", "storage.t"]), SOUND_LEVEL),
        "goal": st.sampled_from([{}, {"margin": "1%"}, {"guards": ["p99_ms <= 2x"]}]),
        "soak": st.sampled_from([{}, {"clients": [1, 8], "control": "0s"}, {"disturb": ["slow", "silent"]}]),
    },
)  # fmt: skip


def _patched(document: Document, other: Document, keys: list[str]) -> Document:
    return document | {key: other[key] for key in keys if key in other}


NEARLY_SOUND = st.builds(
    _patched, SOUND, DOCUMENT, st.lists(st.sampled_from(["workload", *OPTIONAL]), max_size=2)
)


@settings(max_examples=300)
@given(st.one_of(DOCUMENT, NEARLY_SOUND, NEARLY_SOUND))
def test_what_the_reader_accepts_the_schema_accepts(document: Document) -> None:
    content = toml(document)
    accepted = reader_accepts(content)
    event(f"accepted: {accepted}")
    if accepted:
        VALIDATOR.validate(tomllib.loads(content.decode()))


@given(SOUND)
def test_both_accept_what_is_sound(document: Document) -> None:
    content = toml(document)
    parse_study(content, CATALOGUE)
    VALIDATOR.validate(tomllib.loads(content.decode()))


@pytest.mark.parametrize(
    "change",
    [
        {"engine": "oracle"},
        {"engine": None},
        {"blocks": 0},
        {"baselines": 0},
        {"baselines": 101},
        {"blocks": "6"},
        {"design": "simplex"},
        {"search": {"allow": ["speed"]}},
        {"search": {"steps": 3}},
        {"notes": 1},
        {"workload": {"name": "tpcd"}},
        {"workload": {"name": "tpcb", "table_size": 3}},
        {"workload": {"name": "tpcb", "scale": 0}},
        {"workload": {"name": "tpcb", "scale": [1]}},
        {"workload": {"name": "tpcb", "duration": 20}},
        {"factors": {"confi.a": [1, 2]}},
        {"factors": {"config.a": [1]}},
        {"factors": {"config.a": [1, [2]]}},
        {"goal": {"margin": 2}},
        {"goal": {"response": "speed"}},
        {"goal": {"guards": ["p99_ms < 3"]}},
        {"arrangement": "beside"},
        {"slice": 1},
    ],
)
def test_the_schema_refuses_what_an_editor_should_mark(change: Document) -> None:
    document = {key: value for key, value in (tomllib.loads(SHORT) | change).items() if value is not None}
    assert not VALIDATOR.is_valid(document)
    if None not in change.values():
        assert not reader_accepts(toml(document))
