"""Text from outside can steer nothing."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.report.words import safe


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
