"""Text from outside, made harmless for whoever reads it: no control characters, no passwords."""

from __future__ import annotations

import re
import shlex
import unicodedata

ADDRESS = re.compile(r"://\S*")
USER = re.compile(r"://[^:/@]*:")
PARAMETER = re.compile(r"([?&]\w*password=)(?:\\.|[^&\s\"'\\])+")


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
    """Text without the passwords of its URLs: a report is made to be passed on.

    People leave characters in a password that a URL should escape. So a password ends at the last `@` before
    a space, or as the value of a parameter at the end of that value.
    """
    return PARAMETER.sub(r"\1***", ADDRESS.sub(_without_password, text))


def _without_password(address: re.Match[str]) -> str:
    account, _, place = address[0].rpartition("@")
    user = USER.search(account)
    return f"{account[: user.end()]}***@{place}" if user else address[0]


def _visible(character: str) -> str:
    """Control, format (bidirectional overrides among them), surrogate and private characters as their
    code.
    """
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
        return f"\\u{{{ord(character):x}}}"
    return character
