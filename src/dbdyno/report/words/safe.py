"""Text from outside, made harmless for whoever reads it: no control characters, no passwords."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping

ADDRESS = re.compile(r"://\S*")
USER = re.compile(r"://[^:/]*:")
END = r"(?=[\"'][\]),;]*(?:\s|$)|&|\s|$)"
"""Where a parameter's value ends: a quote belongs to it, unless nothing but punctuation comes after."""
PARAMETER = re.compile(rf"([?&]\w*passw(?:or)?d=)[^&\s]+?{END}", re.IGNORECASE)


def clean(text: str) -> str:
    """Text from outside, on one line, with everything that could steer a terminal or hide words made
    visible.
    """
    lines = without_passwords(text).replace("\r\n", "\n")
    return "".join(_visible(character) for character in lines.replace("\n", " ⏎ "))


def clause(text: str) -> str:
    """The same without a full stop at its end, because the sentence that it stands in has its own."""
    return clean(text).rstrip(".")


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
    a space, or as the value of a parameter at the end of that value. Where an `@` may lie in either, all that
    follows the user is left out.
    """
    return PARAMETER.sub(r"\1***", ADDRESS.sub(_without_password, text))


def _without_password(address: re.Match[str]) -> str:
    account, _, place = address[0].rpartition("@")
    user = USER.search(account)
    if user is None:
        return address[0]
    shown = f"{account[: user.end()]}***"
    return shown if PARAMETER.search(account) else f"{shown}@{place}"


def document_without_passwords(document: object) -> object:
    """A document for JSON, its texts and keys without the passwords of their URLs. They are looked for before
    the document is encoded, because JSON hides the spaces and quotes at which a password ends."""
    if isinstance(document, str):
        return without_passwords(document)
    if isinstance(document, Mapping):
        return {without_passwords(key): document_without_passwords(one) for key, one in document.items()}
    if isinstance(document, list | tuple):
        return [document_without_passwords(one) for one in document]
    return document


def _visible(character: str) -> str:
    """Control, format (bidirectional overrides among them), surrogate and private characters as their
    code.
    """
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
        return f"\\u{{{ord(character):x}}}"
    return character
