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
from dbdyno.publish.statement import FORMAT, Account, FolderSource, Found, PublishedBuild, kind_of
from dbdyno.records.chain import Entry
from dbdyno.records.record import Record
from dbdyno.records.run import BaseRun, run_of_document
from dbdyno.report.document import Document
from dbdyno.report.renderers import markdown
from dbdyno.report.words.numbers import moment_text
from dbdyno.report.words.safe import clean

_HEAD = """\
Run {run} of the study {study}
published {when} with Dyno {dyno}

WHAT LIES HERE
  report.html, report.json   what was found, for people and for programs
  run.json, records.jsonl    the run, and all evidence of each trial: the report follows from these alone
  evidence.md                the same trials to read: settings that were read back, checks, failures
  study.toml, files/         the question as it was asked, and the files that it names
  builds/                    how each build that ran was made
  registrations.json         the chain of the store: what was registered before which run began
  publication.json           who published with what, and all runs of this study that the store knew
  statement*.json            an in-toto statement that names every other file by its SHA-256
  figures*.json, build-*     statements on the figures and on each build
"""

_WITH_DYNO = """
CHECK IT WITH DYNO
  dyno verify FOLDER{key}
needs no database. It checks signatures and digests, makes the report again from the records, and names the
runs of this study that were not registered or not shown.
"""

_SIGNED = """
CHECK IT WITHOUT DYNO
The key has the SHA-256 fingerprint {key}.
The copy of it here, key.pub.pem, proves nothing: get the key, or its fingerprint, from the publisher.

  python3 - <<'END'
  import base64, json
  envelope = json.load(open("statement.dsse.json"))
  kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
  open("../signed", "wb").write(b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
  open("../signature", "wb").write(base64.b64decode(envelope["signatures"][0]["sig"]))
  with open("../sums", "w") as sums:
      for one in json.loads(payload)["subject"]:
          print(one["digest"]["sha256"], one["name"], sep="  ", file=sums)
  END
  openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in ../signed -sigfile ../signature   (Ed25519)
  openssl dgst -sha256 -verify KEY.pem -signature ../signature ../signed                     (ECDSA)
  sha256sum --check --strict ../sums
"""

_UNSIGNED = """
CHECK IT WITHOUT DYNO
Nobody signed this folder, so its digests show only that it is whole.

  python3 - <<'END'
  import json
  with open("../sums", "w") as sums:
      for one in json.load(open("statement.json"))["subject"]:
          print(one["digest"]["sha256"], one["name"], sep="  ", file=sums)
  END
  sha256sum --check --strict ../sums
"""

_CHAIN = """
THE CHAIN
The digest of an entry is the SHA-256 of {"content":C,"number":N,"previous":P}. C is the SHA-256 of its
content as JSON with sorted keys, without spaces, in ASCII. P is the digest of the entry before, and 64 zeros
for the first. Entries of other studies are here without their content.
"""

_NOT_HERE = """
NOT HERE
{lines}"""


def readme(account: Account, run: BaseRun, kept: Mapping[str, str]) -> str:
    """The whole page. `kept` are the files of the study that are in the folder."""
    head = _HEAD.format(
        run=run.run,
        study=clean(run.study_path),
        when=moment_text(account.published_unix_s),
        dyno=account.made_by.dyno,
    )
    with_dyno = _WITH_DYNO.format(key=" --key KEY.pem" if account.key else "")
    without = _SIGNED.format(key=account.key) if account.key else _UNSIGNED
    return head + with_dyno + without + _CHAIN + _not_here(account, run, kept)


def _not_here(account: Account, run: BaseRun, kept: Mapping[str, str]) -> str:
    """What the run used and the folder does not hold, by its digest."""
    lines = [
        f"  {clean(file.path)}, sha256 {file.digest}: too large, or no text"
        for file in run.files or ()
        if file.text is None
    ]
    lines += [f"  {clean(data.path)}, sha256 {data.sha256}: the data of the study" for data in run.data]
    lines += [f"  the account of build {key}, which its host did not keep any more" for key in account.unkept]
    return _NOT_HERE.format(lines="".join(f"{line}\n" for line in lines)) if lines else ""


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


def given_files(given: FolderSource) -> Contents:
    """The files that hold what was given."""
    records = "".join(f"{record.model_dump_json()}\n" for record in given.records)
    return {
        ACCOUNT: _json(given.account),
        RUN: _json(given.run),
        RECORDS: records.encode(),
        CHAIN: _lines(given.chain),
        **{f"{BUILDS}{one.made.key}.json": _json(one) for one in given.builds},
    }


def given_in(contents: Mapping[str, bytes]) -> FolderSource:
    """What was given, from its files. Raises Malformed for the first of them that is not what it should
    be."""
    for name in (ACCOUNT, RUN, RECORDS, CHAIN):
        if name not in contents:
            raise Malformed(name, "it is missing")
    builds = sorted(name for name in contents if name.startswith(BUILDS))
    account = _read(contents, ACCOUNT, Account.model_validate_json)
    if account.format != FORMAT:
        raise Malformed(ACCOUNT, f"it has format {account.format}, and this Dyno reads {FORMAT}")
    return FolderSource(
        account=account,
        run=_read(contents, RUN, lambda content: run_of_document(content.decode())),
        records=tuple(_records(contents[RECORDS])),
        chain=_read(contents, CHAIN, TypeAdapter(tuple[Entry, ...]).validate_json),
        builds=tuple(_read(contents, name, PublishedBuild.model_validate_json) for name in builds),
    )


def found_in(given: FolderSource) -> Found:
    """What the run found, made from the run and its records alone. Raises DynoError where nothing can be."""
    found: Found = found_by(given.run, given.records)[1]
    return found


def made_files(given: FolderSource, found: Found) -> dict[str, Callable[[], bytes]]:
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


def named_files(given: FolderSource) -> Iterator[tuple[str, str]]:
    """The text of each file that the study names and the run kept, by its place in the folder. The number
    keeps apart those of one name, and no path of theirs leads out of the folder."""
    for number, file in enumerate(given.run.files or (), 1):
        if file.text is not None:
            yield f"{FILES}{number:02}-{PurePath(file.path).name}", file.text


def _page(report: Document) -> bytes:
    # Here, because what draws a page takes long to import.
    from dbdyno.report.renderers import html

    return html.render(report).encode()


def _evidence(given: FolderSource) -> bytes:
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
