"""Passwords in text: a URL's, and that of a parameter. A run, a record and a report hold none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

ADDRESS = re.compile(r"(?:\bhttps?)?://\S*", re.IGNORECASE)
WITH_PORT = re.compile(r"https?://(?:[^\s:@/?#\[\]]+|\[[\da-f:.]+\]):\d{1,5}[/?#]", re.IGNORECASE)
"""The place of a web server, which is no account: its path may hold an `@`, as one to a database does not."""
USER = re.compile(r"://[^:/]*:")
END = r"(?=[\"'][\]),;]*(?:\s|$)|&|\s|$)"
"""Where a parameter's value ends: a quote belongs to it, unless nothing but punctuation comes after."""
PARAMETER_NAME = re.compile(r"passw(?:or)?d=", re.IGNORECASE)
PARAMETER = re.compile(rf"([?&]\w*passw(?:or)?d=)[^&\s]+?{END}", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Text without the passwords of its URLs: a report is made to be passed on.

    People leave characters in a password that a URL should escape. So a password ends at the last `@` before
    a space, or as the value of a parameter at the end of that value. Where an `@` may lie in either, all that
    follows the user is left out. What stands before the first `/` of a web address is no account where it is
    a host with its port.
    """
    return PARAMETER.sub(r"\1***", ADDRESS.sub(_without_password, text))


def _without_password(address: re.Match[str]) -> str:
    if WITH_PORT.match(address[0]):
        return address[0]
    account, _, place = address[0].rpartition("@")
    user = USER.search(account)
    if user is None:
        return address[0]
    shown = f"{account[: user.end()]}***"
    return shown if PARAMETER.search(account) else f"{shown}@{place}"


def document_without_passwords(document: object) -> object:
    """A document for JSON, its texts and keys without the passwords of their URLs. They are looked for before
    the document is encoded, because JSON hides the spaces and quotes at which a password ends."""
    return with_texts(document, without_passwords)


def with_texts(document: object, changed: Callable[[str], str]) -> object:
    """A document for JSON in which every text and every key is `changed`."""
    if isinstance(document, str):
        return changed(document)
    if isinstance(document, Mapping):
        return {changed(key): with_texts(one, changed) for key, one in document.items()}
    if isinstance(document, list | tuple):
        return [with_texts(one, changed) for one in document]
    return document


def json_without_passwords(text: str) -> str:
    """The same for JSON that is text already, which stays as it is where it holds no password."""
    # Most records are large and name no account, and reading them takes longer than all else.
    if not ("://" in text and "@" in text) and not PARAMETER_NAME.search(text):
        return text
    document = json.loads(text)
    masked = document_without_passwords(document)
    return text if masked == document else json.dumps(masked, ensure_ascii=False)
