"""The files of a published folder. Some hold what was given, and all others follow from those."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from dbdyno.analyse import Analysis
from dbdyno.findings import trial as trial_part
from dbdyno.findings.results import RESULTS
from dbdyno.frozen import Frozen
from dbdyno.kinds.registry import found_by
from dbdyno.publish.account import FORMAT, Account, Given, PublishedBuild
from dbdyno.publish.readme import readme
from dbdyno.publish.statement import Found, kind_of
from dbdyno.records.chain import Entry
from dbdyno.records.record import Record
from dbdyno.records.run import run_of_document
from dbdyno.report.document import Document
from dbdyno.report.renderers import markdown

ACCOUNT, RUN, RECORDS, CHAIN = "publication.json", "run.json", "records.jsonl", "registrations.json"
BUILDS = "builds/"
REPORT, PAGE, EVIDENCE, README = "report.json", "report.html", "evidence.md", "README.txt"
STUDY, LOGS, FILES = "study.toml", "logs.txt", "files/"
Contents = dict[str, bytes]
"""Files by their path in the folder, with slashes."""
T = TypeVar("T")
OTHER_VERSION = "was it written by a newer Dyno?"


class Malformed(Exception):
    """A file that is not what its name says: the `file`, and `why`."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file = file
        self.why = why


def given_files(given: Given) -> Contents:
    """The files that hold what was given."""
    records = "".join(f"{record.model_dump_json()}\n" for record in given.records)
    return {
        ACCOUNT: _json(given.account),
        RUN: _json(given.run),
        RECORDS: records.encode(),
        CHAIN: _lines(given.chain),
        **{f"{BUILDS}{one.made.key}.json": _json(one) for one in given.builds},
    }


def given_in(contents: Mapping[str, bytes]) -> Given:
    """What was given, from its files. Raises Malformed for the first of them that is not what it should
    be."""
    for name in (ACCOUNT, RUN, RECORDS, CHAIN):
        if name not in contents:
            raise Malformed(name, "it is missing")
    builds = sorted(name for name in contents if name.startswith(BUILDS))
    account = _read(contents, ACCOUNT, Account.model_validate_json)
    if account.format != FORMAT:
        raise Malformed(ACCOUNT, f"it has format {account.format}, and this Dyno reads {FORMAT}")
    return Given(
        account=account,
        run=_read(contents, RUN, lambda content: run_of_document(content.decode())),
        records=tuple(_records(contents[RECORDS])),
        chain=_read(contents, CHAIN, TypeAdapter(tuple[Entry, ...]).validate_json),
        builds=tuple(_read(contents, name, PublishedBuild.model_validate_json) for name in builds),
    )


def found_in(given: Given) -> Found:
    """What the run found, made from the run and its records alone. Raises DynoError where nothing can be."""
    found: Found = found_by(given.run, given.records)[1]
    return found


def made_files(given: Given, found: Found) -> dict[str, Callable[[], bytes]]:
    """The files that follow from what was given and what was found in it, each by what makes it."""
    result = RESULTS[kind_of(found)]
    told = {"reruns": given.account.reruns} if isinstance(found, Analysis) else {}
    study = LOGS if given.run.of_logs else STUDY
    return {
        study: given.run.study_text.encode,
        **{name: text.encode for name, text in named_files(given)},
        REPORT: lambda: result.json(found).encode(),
        PAGE: lambda: _page(result.document(found, **told)),
        EVIDENCE: partial(_evidence, given),
        README: lambda: readme(given.account, given.run, dict(named_files(given))).encode(),
    }


def named_files(given: Given) -> Iterator[tuple[str, str]]:
    """The text of each file that the study names and the run kept, by its place in the folder. The number
    keeps apart those of one name, and no path of theirs leads out of the folder."""
    for number, file in enumerate(given.run.files or (), 1):
        if file.text is not None:
            yield f"{FILES}{number:02}-{PurePath(file.path).name}", file.text


def _page(report: Document) -> bytes:
    # Here, because what draws a page takes long to import.
    from dbdyno.report.renderers import html

    return html.render(report).encode()


def _evidence(given: Given) -> bytes:
    """Every trial as `dyno report --trials` shows it, one after the other."""
    shown = (markdown.render(trial_part.document(record, given.run)) for record in given.records)
    return "\n".join(shown).encode()


def _json(noun: Frozen) -> bytes:
    return f"{noun.model_dump_json(indent=2)}\n".encode()


def _lines(entries: tuple[Entry, ...]) -> bytes:
    """The chain as JSON, an entry a line."""
    told = ",\n".join(entry.model_dump_json() for entry in entries)
    return f"[\n{told}\n]\n".encode()


def _records(content: bytes) -> Iterator[Record]:
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        try:
            yield Record.model_validate_json(line)
        except ValidationError as error:
            raise Malformed(RECORDS, f"line {number} is no record: {_first(error)}") from None


def _read(contents: Mapping[str, bytes], name: str, read: Callable[[bytes], T]) -> T:
    try:
        return read(contents[name])
    except ValidationError as error:
        raise Malformed(name, f"{_first(error)}; {OTHER_VERSION}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Malformed(name, f"it is no JSON: {error}") from None


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
