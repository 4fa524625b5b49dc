"""The closed lists are complete, and text from outside can steer nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.model import Ratio, Verdict
from dbdyno.records.record import Doubt
from dbdyno.report.words import doubts, naming, numbers, safe, verdicts, wording
from tests.report.cases import CASES


def test_every_warning_has_its_text_and_its_next_step() -> None:
    assert set(doubts.WARNINGS) == set(Doubt)
    assert all(advice.text and advice.next_step for advice in doubts.WARNINGS.values())


def test_every_verdict_has_its_look() -> None:
    assert set(verdicts.LOOKS) == set(Verdict)


@given(st.text())
def test_clean_text_is_one_line_without_control_characters(text: str) -> None:
    cleaned = safe.clean(text)
    assert all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co") for character in cleaned)


@given(st.text())
def test_clean_lines_keep_their_lines(text: str) -> None:
    assert safe.clean_lines(text).count("\n") == text.replace("\r\n", "\n").count("\n")


def test_passwords_do_not_travel_with_a_report() -> None:
    text = 'engine = "mysql://root:s3cret@localhost/test" and http://plain/:x@y'
    assert safe.clean(text) == 'engine = "mysql://root:***@localhost/test" and http://plain/:x@y'
    assert safe.clean_lines("postgresql://:pw@h/db\n") == "postgresql://:***@h/db\n"


@given(st.text("abc._=/, ", max_size=80), st.integers(5, 40))
def test_wrapping_loses_nothing(name: str, width: int) -> None:
    assert naming.wrapped(name, width, indent="").replace("\n", "").replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98234, "0.982"),
        (1.6238, "1.624"),
        (23.08, "23.1"),
        (1204.2, "1,204"),
        (0.0123, "0.012"),
        (0.1, "0.100"),
    ],
)
def test_ratios_have_the_digits_they_deserve(value: float, text: str) -> None:
    assert numbers.ratio_text(value) == text


def test_an_interval_beyond_all_measure_is_said_so() -> None:
    wild = Ratio(metric="m", pairs=2, ratio=1.0, low=1e-300, high=1e300, log_sd=9.0, confidence=0.95)
    assert numbers.interval_text(wild) == "<0.001 – >1,000"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.21, "0.21 s"), (43, "43 s"), (125, "2 min 5 s"), (7200, "2 h"), (4320, "1 h 12 min")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert numbers.seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("case", "beginning"),
    [
        ("all_verdicts", "config.page_cache=64k helped most: 1.6"),
        ("nothing_run", "Nothing was measured"),
        ("one_block", "Not settled yet"),
        ("baseline_broken", "The baseline itself did not hold"),
    ],
)
def test_the_answer_is_a_sentence(case: str, beginning: str) -> None:
    headline = wording.headline(CASES[case]())
    assert headline.startswith(beginning)
    assert headline.endswith(".")
