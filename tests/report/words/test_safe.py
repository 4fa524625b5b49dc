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


def test_a_clause_leaves_the_full_stop_to_its_sentence() -> None:
    assert safe.clause("the disk is full.\n\x1b") == "the disk is full. ⏎ \\u{1b}"
    assert safe.clause("the disk is full.") == "the disk is full"


def test_passwords_do_not_travel_with_a_report() -> None:
    text = 'engine = "mysql://root:s3cret@localhost/test" and http://plain/:x@y'
    assert safe.clean(text) == 'engine = "mysql://root:***@localhost/test" and http://plain/:x@y'
    assert safe.clean_lines("postgresql://:pw@h/db\n") == "postgresql://:***@h/db\n"
    assert safe.clean("postgresql://me@h/db?tls=1&password=pw&x=1") == (
        "postgresql://me@h/db?tls=1&password=***&x=1"
    )


def test_no_character_goes_on_that_xml_forbids() -> None:
    hidden = "\ufffe\uffff\ufdd0\U0001fffe\x00\x9b\u2028\ud800\u202e\u2066"
    assert safe.clean(hidden) == "".join(f"\\u{{{ord(one):x}}}" for one in hidden)
    assert safe.clean("Šidák \N{SNOWMAN} \u3000") == "Šidák \N{SNOWMAN} \u3000"


def test_markdown_reads_no_text_as_more_than_itself() -> None:
    assert safe.markdown("![x](y) <img> a|b `c` &lt; _d_") == (
        "\\!\\[x\\](y) &lt;img&gt; a\\|b \\`c\\` &amp;lt; \\_d\\_"
    )
