"""Text from outside, made harmless for whoever reads it: no control characters, no passwords."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from typing import Any

from pydantic import TypeAdapter

from dbdyno.interrupts import shielded
from dbdyno.passwords import document_without_passwords, with_texts, without_passwords

UNSEEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Control, format (bidirectional overrides among them), surrogate and private characters, and separators of
lines."""

FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How a spreadsheet's formulas begin; some take letters of full width as well."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def clean(text: str) -> str:
    """Text from outside, on one line, with everything that could steer a terminal or hide words made
    visible.
    """
    return visible(without_passwords(text).replace("\r\n", "\n").replace("\n", " ⏎ "))


def clause(text: str) -> str:
    """The same without a full stop at its end, because the sentence that it stands in has its own."""
    return clean(text).rstrip(".")


def argument(text: str) -> str:
    """Text from outside as one argument of a command that a reader copies into a shell."""
    return shlex.quote(clean(text))


def clean_lines(text: str) -> str:
    """The same for text of several lines: newlines and tabs stay."""
    return visible(without_passwords(text).replace("\r\n", "\n"), kept="\n\t")


def clean_document(document: object) -> object:
    """Data that a page embeds, every text in them as `clean_lines` leaves it."""
    return with_texts(document, clean_lines)


def json_text(document: object) -> str:
    """Models and plain data as indented JSON, without passwords. A character that shows nothing stands there
    by its code, so that it steers no terminal and a program still reads it."""
    with shielded():
        plain = json.loads(TypeAdapter(Any).dump_json(document))
    written = json.dumps(document_without_passwords(plain), indent=2, ensure_ascii=False)
    lines = (line if line.isprintable() else "".join(map(_coded, line)) for line in written.split("\n"))
    return "\n".join(lines)


def _coded(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def csv_cell(text: str) -> str:
    """Text for a cell of CSV. A spreadsheet takes what begins as a formula for one, so an apostrophe goes
    before it; a number stays one."""
    shown = clean(text)
    return f"'{shown}" if FORMULA.match(shown) and not NUMBER.fullmatch(shown) else shown


def markdown(text: str) -> str:
    """Text with every character escaped that Markdown could read as more than itself. Entities stand for
    those of HTML, because within a tag's block a backslash escapes nothing."""
    text = visible(text, kept="\n\t").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*{}\[\]#|~!$@])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)


def visible(text: str, kept: str = "") -> str:
    """Text in which a character that shows nothing, and is none of those `kept`, stands as its code."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else _seen(one) for one in text)


def _seen(character: str) -> str:
    code = ord(character)
    # Noncharacters are allowed in no XML, and U+FFFE turns the order of bytes around.
    if unicodedata.category(character) in UNSEEN or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return f"\\u{{{code:x}}}"
    return character
