"""The chain of a store: what was registered, which runs began and what was published, in their order.

The digest of an entry is over its number, the digest of the entry before it and that of its own content. So
nothing in the midst can be changed, added or taken out without a change of every digest after it, and an
entry can be shown by the digest of its content alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dbdyno.frozen import Frozen, absent
from dbdyno.host.fingerprint import Host
from dbdyno.passwords import document_without_passwords
from dbdyno.study.files import FileKind
from dbdyno.study.nouns import Design, Interval

CHANGED = "somebody changed the store: take it from a backup, or keep runs elsewhere by --store"
"""The hint beside a chain that does not hold."""
NOTHING_BEFORE = "0" * 64
"""What stands for the digest before the first entry."""


def canonical(document: object) -> bytes:
    """The one spelling of a JSON document that digests are made of: keys in their order, no spaces, ASCII
    alone. Raises ValueError for a number that JSON does not have."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def sha256(content: bytes) -> str:
    """The digest of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class EntryKind(StrEnum):
    """What an entry of the chain tells of."""

    REGISTRATION = "registration"
    RUN = "run"
    PUBLICATION = "publication"


class RegisteredPlan(Frozen):
    """How a study is to be carried out and analysed, as far as the command line can change it or defaults
    decide it. What is None was left open. A `sequential` run ends when its verdicts stand. `confidence` and
    `margin` are shares."""

    design: Design
    blocks: int
    sequential: bool = False
    seed: int | None = None
    budget_s: float | None = None
    clients: int
    warmup_s: float
    duration_s: float
    response: str
    margin: float
    confidence: float
    interval: Interval | None = None
    guards: tuple[str, ...] = ()


class RegisteredFile(Frozen):
    """A file that a study names, or data that it brings, by its content."""

    kind: FileKind | Literal["dump", "folder"]
    path: str
    sha256: str
    size_bytes: int


class Registration(Frozen):
    """A study as it was before a run of it. `question` tells it from studies that ask another thing, and
    `study_sha256` is the digest of its file. `dyno_code` is the digest of Dyno's own Python code."""

    kind: Literal[EntryKind.REGISTRATION] = EntryKind.REGISTRATION
    question: str
    registered_unix_s: float
    title: str
    study_path: str
    study_text: str
    study_sha256: str
    files: tuple[RegisteredFile, ...] = ()
    configuration_sha256: str | None = None
    plan: RegisteredPlan
    dyno_version: str
    dyno_code: str
    host: Host


class RunBegan(Frozen):
    """A run that began. `registration` is the number of the entry that it carries out."""

    kind: Literal[EntryKind.RUN] = EntryKind.RUN
    question: str
    run: str
    run_kind: str
    began_unix_s: float
    seed: int
    registration: int | None = None


class Publication(Frozen):
    """A run that was published, by the digest of its statement. `key` is the fingerprint of the key that
    signed it; empty where none did."""

    kind: Literal[EntryKind.PUBLICATION] = EntryKind.PUBLICATION
    question: str
    run: str
    published_unix_s: float
    statement_sha256: str
    key: str = ""


Content = Annotated[Registration | RunBegan | Publication, Field(discriminator="kind")]
"""What an entry tells."""


@cache
def _reader() -> TypeAdapter[Registration | RunBegan | Publication]:
    # Most commands read no entry.
    return TypeAdapter(Content)


class Entry(Frozen):
    """One entry of the chain. Without its `content` it shows no more than that it is there."""

    number: int
    previous: str
    digest: str
    content_sha256: str
    content: dict[str, Any] | None = absent(None)

    @classmethod
    def after(cls, last: tuple[int, str] | None, content: Frozen) -> Entry:
        """The entry that follows the `last` one, which is given by its number and digest."""
        number, previous = (last[0] + 1, last[1]) if last else (1, NOTHING_BEFORE)
        document = document_without_passwords(content.model_dump(mode="json"))
        return cls.of(number, previous, canonical(document).decode())

    @classmethod
    def of(cls, number: int, previous: str, text: str) -> Entry:
        """The entry with a content that is JSON text already, its digests made of it."""
        own = sha256(text.encode())
        return cls(
            number=number,
            previous=previous,
            digest=digest_of(number, previous, own),
            content_sha256=own,
            content=json.loads(text),
        )

    @property
    def kind(self) -> str:
        """What it tells of; empty where its content is not shown."""
        return "" if self.content is None else str(self.content.get("kind", ""))

    @property
    def question(self) -> str:
        """The question that it belongs to; empty where its content is not shown."""
        return "" if self.content is None else str(self.content.get("question", ""))

    @property
    def told(self) -> Registration | RunBegan | Publication | None:
        """What its content tells; None where it is not shown, or where another version wrote it."""
        try:
            return _reader().validate_python(self.content)
        except ValidationError:
            return None

    def closed(self) -> Entry:
        """The same without its content."""
        return self.but(content=None)


def digest_of(number: int, previous: str, content_sha256: str) -> str:
    """The digest of an entry."""
    return sha256(canonical({"content": content_sha256, "number": number, "previous": previous}))


def broken_at(entries: Sequence[Entry]) -> str:
    """The first entry of a whole chain that does not follow from those before, and why; empty where each
    does."""
    previous = NOTHING_BEFORE
    for number, entry in enumerate(entries, 1):
        if entry.number != number:
            return f"entry {entry.number} stands where entry {number} should be"
        if entry.previous != previous:
            return f"entry {number} does not follow the entry before it"
        if entry.content is not None and sha256(canonical(entry.content)) != entry.content_sha256:
            return f"the content of entry {number} is not what was entered"
        if digest_of(number, previous, entry.content_sha256) != entry.digest:
            return f"the digest of entry {number} is another one"
        previous = entry.digest
    return ""


class Registered(Frozen):
    """The registration that a run carries out: its entry in the chain, when it was made, and its plan."""

    number: int
    digest: str
    registered_unix_s: float
    plan: RegisteredPlan


class Rerun(Frozen):
    """A run of the same question in the same store. `registration` is the number of the entry that it carries
    out. It is `kept` where the store still has it, and `published` where it was shown to others.
    `began_unix_s` is when it began."""

    run: str
    began_unix_s: float
    registration: int | None = None
    kept: bool = True
    published: bool = False
