"""Text from outside, made harmless for whoever reads it: no control characters, no passwords."""

from __future__ import annotations

import re
import shlex
import unicodedata


def clean(text: str) -> str:
    """Text from outside, on one line, with everything that could steer a terminal or hide words made
    visible.
    """
    lines = without_passwords(text).replace("\r\n", "\n")
    return "".join(_visible(character) for character in lines.replace("\n", " ⏎ "))


def argument(text: str) -> str:
    """Text from outside as one argument of a command that a reader copies into a shell."""
    return shlex.quote(clean(text))


def clean_lines(text: str) -> str:
    """The same for text of several lines: newlines and tabs stay."""
    lines = without_passwords(text).replace("\r\n", "\n")
    return "".join(character if character in "\n\t" else _visible(character) for character in lines)


def without_passwords(text: str) -> str:
    """Text without the passwords of its URLs: a report is made to be passed on."""
    return re.sub(r"(\w://[^\s:/@\"']*):[^\s@/\"']+@", r"\1:***@", text)


def _visible(character: str) -> str:
    """Control, format (bidirectional overrides among them), surrogate and private characters as their
    code.
    """
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
        return f"\\u{{{ord(character):x}}}"
    return character
