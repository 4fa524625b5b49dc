"""What holds of a published folder: everything in it is made again, and compared. Needs no database.

Each check has a line of its own. A check that is `None` was not made, and its detail says why.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import Frozen, absent
from dbdyno.prepare_run.begun import question_of
from dbdyno.publish.contents import (
    PAGE,
    REPORT,
    Malformed,
    found_in,
    given_files,
    given_in,
    made_files,
)
from dbdyno.publish.folder import sha256_in
from dbdyno.publish.making import (
    BUILD,
    FIGURES,
    KEY,
    SIGNED,
    STATEMENT,
    UNSIGNED,
    PublicKey,
    Unsealed,
    payload_of,
    public_key_of,
    statements_beside,
)
from dbdyno.publish.statement import FolderSource, Found, made_here, test_result
from dbdyno.records.chain import Registration, RunBegan, broken_at, sha256
from dbdyno.report.words.numbers import plural

LEFT_OUT = "***"
"""What stands in a text in the place of a password."""
ABSENT = "nothing"
SHOWN_MOST = 60
"""Characters of a value that a difference shows."""


class Fault(IntEnum):
    """What a check that does not hold says, the worst first, with the exit code of `dyno verify`."""

    SIGNATURE = 10
    FILES = 9
    CONTENTS = 11


class FolderCheck(Frozen):
    """One check: whether it `holds`, what was looked at, and where it does not hold, the first difference."""

    name: str
    holds: bool | None
    detail: str
    fault: Fault | None = absent(None)


class VerificationAnswer(StrEnum):
    """What was found of a folder: all that must hold was checked and holds, something does not, or something
    was not checked."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_CHECKED = "not checked"


class Verification(Frozen):
    """All checks of a folder, and the `answer`. `signed_by` is the fingerprint of the key that signed it, and
    `trusted` says that it is the key which the reader brought. `notes` are what a reader must know beside the
    checks."""

    folder: str
    run: str
    answer: VerificationAnswer
    signed_by: str
    trusted: bool
    checks: tuple[FolderCheck, ...]
    notes: tuple[str, ...] = ()

    @property
    def fault(self) -> Fault | None:
        """The worst of what does not hold."""
        found = {check.fault for check in self.checks if check.holds is False}
        return next((fault for fault in Fault if fault in found), None)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The names of the checks that were not made."""
        return tuple(check.name for check in self.checks if check.holds is None)


@dataclass(frozen=True)
class _Signed:
    """Who signed the folder, and what: the payload of the statement on all files, if there is one that can be
    read."""

    check: FolderCheck
    key: PublicKey | None
    stated: bytes | None


def verified(
    folder: str, contents: Mapping[str, bytes], strange: list[str], trusted: PublicKey | None
) -> Verification:
    """Checks a folder by its files; `strange` is what lies there and is no file. Raises UserError for what
    nobody published."""
    is_signed = f"{STATEMENT}{SIGNED}" in contents
    if not is_signed and f"{STATEMENT}{UNSIGNED}" not in contents:
        told = f"{folder} holds no {STATEMENT}{SIGNED}, so nobody published it"
        raise UserError(told, "name the folder that dyno publish wrote, with all its files")
    run, notes, checks = "", list[str](), list[FolderCheck]()
    signed = _Signed(_broken("signature", "it was not read"), None, None)
    try:
        signed = _signature(contents, trusted) if is_signed else _unsigned(contents, trusted)
        checks += [signed.check, _files(contents, strange, signed.stated)]
        given = given_in(contents)
        run, notes = given.run.run, list(_notes(given))
        # What was checked before an error stays.
        checks.extend(_of_contents(given, contents, signed))
    except Malformed as malformed:
        checks.append(_broken("contents", f"{malformed.file}: {malformed.why}"))
    except Exception as error:
        # Records of others may be anything, and whatever they make an analysis do is a finding.
        told = error.message if isinstance(error, DynoError) else f"{type(error).__name__}: {error}"
        checks.append(_broken("contents", f"nothing follows from run and records: {told}"))
    held = {check.holds for check in checks}
    return Verification(
        folder=folder,
        run=run,
        answer=VerificationAnswer.BROKEN
        if False in held
        else VerificationAnswer.NOT_CHECKED
        if None in held
        else VerificationAnswer.HOLDS,
        signed_by=signed.key.fingerprint if signed.key and signed.check.holds else "",
        trusted=trusted is not None and signed.check.holds is True,
        checks=tuple(checks),
        notes=tuple(notes),
    )


def _signature(contents: Mapping[str, bytes], trusted: PublicKey | None) -> _Signed:
    """The signature of the statement on all files, by the reader's key, or else by the one in the folder."""
    envelope = contents[f"{STATEMENT}{SIGNED}"]
    try:
        key = trusted or _key_beside(contents)
        stated = key.opened(envelope)
    except (Unsealed, UserError) as refused:
        why = f"{STATEMENT}{SIGNED}: {refused.message if isinstance(refused, UserError) else refused}"
        return _Signed(_broken("signature", why, Fault.SIGNATURE), None, _payload(envelope))
    told = f"by the key {key.fingerprint}"
    if trusted is None:
        told += ", which lies in the folder itself: it shows that the folder is whole, and not whose it is"
    return _Signed(FolderCheck(name="signature", holds=True, detail=told), key, stated)


def _unsigned(contents: Mapping[str, bytes], trusted: PublicKey | None) -> _Signed:
    stated = contents[f"{STATEMENT}{UNSIGNED}"]
    if trusted is not None:
        why = f"nobody signed it, and the key {trusted.fingerprint[:16]} was asked for"
        return _Signed(_broken("signature", why, Fault.SIGNATURE), None, stated)
    told = "not signed: whoever has the folder could have changed all of it"
    return _Signed(FolderCheck(name="signature", holds=None, detail=told), None, stated)


def _key_beside(contents: Mapping[str, bytes]) -> PublicKey:
    if KEY not in contents:
        raise UserError(f"{KEY} is missing")
    return public_key_of(contents[KEY], Path(KEY))


def _payload(envelope: bytes) -> bytes | None:
    """The payload, whoever signed it, so that what is changed can be named all the same."""
    try:
        return payload_of(envelope)
    except Unsealed:
        return None


def _files(contents: Mapping[str, bytes], strange: list[str], stated: bytes | None) -> FolderCheck:
    """Whether the folder holds the files that the statement names, and no others."""
    own = {f"{STATEMENT}{SIGNED}"} if f"{STATEMENT}{SIGNED}" in contents else {f"{STATEMENT}{UNSIGNED}"}
    named = _named_by(stated)
    if not named:
        return _broken("files", "the statement names no files", Fault.FILES)
    faults = [f"{name} is missing" for name in named if name not in contents]
    faults += [
        f"{name} was changed"
        for name in named
        if name in contents and sha256_in(contents, name) != named[name]
    ]
    unnamed = sorted(contents.keys() - named.keys() - own)
    faults += [f"{name} is not named by the statement" for name in unnamed]
    faults += [f"{name} is no file" for name in strange]
    seen = dict.fromkeys(fault.partition(" ")[0] for fault in faults)
    if faults:
        more = f"; {len(seen) - 1} more" if len(seen) > 1 else ""
        return _broken("files", f"{faults[0]}{more}", Fault.FILES)
    return FolderCheck(
        name="files", holds=True, detail=f"{plural(len(named), 'file')}, each with its SHA-256"
    )


def _named_by(stated: bytes | None) -> dict[str, str]:
    """The SHA-256 of each file that a statement names; none for what is no statement."""
    try:
        return {one["name"]: one["digest"]["sha256"] for one in json.loads(stated or b"")["subject"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


def _of_contents(
    given: FolderSource, contents: Mapping[str, bytes], signed: _Signed
) -> Iterator[FolderCheck]:
    """What the files say of each other."""
    yield _chain(given)
    yield _registration(given)
    yield _study(given)
    yield from _signer(given, signed)
    found = found_in(given)
    yield _analysis(given, found, contents)
    yield from _beside(given, found, contents)
    yield _statements(given, found, contents, signed)


def _study(given: FolderSource) -> FolderCheck:
    """Whether the texts of the study and of its files are those whose digests the run kept when it began."""
    run = given.run
    texts = {run.study_path: (run.study_text, run.study_digest)} if not run.of_logs else {}
    texts |= {file.path: (file.text, file.digest) for file in run.files or () if file.text is not None}
    for path, (text, digest) in texts.items():
        # A run keeps no password of a file and no mark of its encoding, and the digest of the file with both.
        possible = (sha256(text.encode()), sha256(BOM_UTF8 + text.encode()))
        if digest not in possible and LEFT_OUT not in text:
            return _broken("study", f"run.json: the text of {path} is not the one with the digest beside it")
    return FolderCheck(name="study", holds=True, detail=f"{plural(len(texts), 'text')}, each with its digest")


def _signer(given: FolderSource, signed: _Signed) -> Iterator[FolderCheck]:
    """A fault where the folder was made to be signed by another key, or to be signed at all."""
    wanted, found = given.account.key, signed.key.fingerprint if signed.key else ""
    if wanted != found and signed.check.holds is not False:
        told = f"publication.json names {f'the key {wanted}' if wanted else 'no key'}"
        by = f"the key {found} signed it" if found else "nobody signed it"
        yield _broken("signer", f"{told}, and {by}", Fault.SIGNATURE)


def _chain(given: FolderSource) -> FolderCheck:
    broken = broken_at(given.chain)
    if broken:
        return _broken("chain", broken)
    told = f"each of {len(given.chain)} entries follows from the one before" if given.chain else "it is empty"
    return FolderCheck(name="chain", holds=True, detail=told)


def _registration(given: FolderSource) -> FolderCheck:
    """Whether the run carries out an entry that stands in the chain before the one with which it began."""
    run, kept = given.run, given.run.registered
    places = {one.run: entry.number for entry in given.chain if isinstance(one := entry.told, RunBegan)}
    if kept is None:
        return FolderCheck(name="registration", holds=True, detail="the run was not registered, and says so")
    entry = next((one for one in given.chain if one.number == kept.number), None)
    told = entry.told if entry is not None else None
    if entry is None or entry.digest != kept.digest or not isinstance(told, Registration):
        told_so = f"the chain has no such registration as its entry {kept.number}"
        return _broken("registration", f"run.json names one, and {told_so}")
    if told.plan != kept.plan or told.registered_unix_s != kept.registered_unix_s:
        return _broken("registration", f"run.json: registered is not what entry {kept.number} says")
    if told.question != question_of(run.but(question="")):
        asks = f"entry {kept.number} asks another question than the study of the run"
        return _broken("registration", f"{asks}{_other_dyno(given)}")
    if run.run not in places or places[run.run] < kept.number:
        return _broken("registration", f"the chain does not say that the run began after entry {kept.number}")
    if told.study_sha256 != run.study_digest:
        detail = f"entry {kept.number}; its file was spelled otherwise, and asks the same"
    else:
        detail = f"entry {kept.number}, and the run began as entry {places[run.run]}"
    return FolderCheck(name="registration", holds=True, detail=detail)


def _analysis(given: FolderSource, found: Found, contents: Mapping[str, bytes]) -> FolderCheck:
    """Whether the report follows from the records, digit by digit."""
    made = made_files(given, found)[REPORT]()
    there = contents.get(REPORT)
    if there == made:
        told = f"{REPORT} follows from {plural(len(given.records), 'record')}, digit by digit"
        return FolderCheck(name="analysis", holds=True, detail=told)
    if there is None:
        return _broken("analysis", f"{REPORT} is missing")
    return _broken("analysis", f"{REPORT}: {_difference(there, made)}{_other_dyno(given)}")


def _beside(given: FolderSource, found: Found, contents: Mapping[str, bytes]) -> Iterator[FolderCheck]:
    """Whether all other files are what is made of the same records. What another Dyno drew may differ by
    that."""
    for name, make in made_files(given, found).items():
        if name == REPORT:
            continue
        label = "page" if name == PAGE else name
        there, made = contents.get(name), make()
        if there == made:
            yield FolderCheck(name=label, holds=True, detail="as it is made from run and records")
        elif there is None:
            yield _broken(label, f"{name} is missing")
        elif other := _other_dyno(given):
            yield FolderCheck(
                name=label, holds=None, detail=f"{name} is not what this Dyno makes of it{other}"
            )
        else:
            yield _broken(label, f"{name}: {_first_line(there, made)}")
    for name, made in given_files(given).items():
        if contents.get(name) == made:
            continue
        if other := _other_dyno(given):
            yield FolderCheck(
                name=name, holds=None, detail=f"{name} is not spelled as this Dyno writes it{other}"
            )
        else:
            where = _first_line(contents[name], made)
            yield _broken(name, f"{name} is not spelled as it was written: {where}")


def _statements(
    given: FolderSource, found: Found, contents: Mapping[str, bytes], signed: _Signed
) -> FolderCheck:
    """Whether each statement says what follows from the files, and has the same signature."""
    ending = SIGNED if f"{STATEMENT}{SIGNED}" in contents else UNSIGNED
    expected = {f"{name}{ending}": made for name, made in statements_beside(given, found, contents).items()}
    # Whether these are the files is looked at before.
    expected[f"{STATEMENT}{ending}"] = test_result(found, _named_by(signed.stated))
    for name, made in expected.items():
        if name not in contents:
            return _broken("statements", f"{name} is missing")
        try:
            if ending == UNSIGNED:
                said = contents[name]
            else:
                said = signed.key.opened(contents[name]) if signed.key else payload_of(contents[name])
        except Unsealed as refused:
            return _broken("statements", f"{name}: {refused}", Fault.SIGNATURE)
        if said != made:
            told = f"{name}: {_difference(said, made)}"
            if other := _other_dyno(given):
                return FolderCheck(name="statements", holds=None, detail=f"{told}{other}")
            return _broken("statements", told)
    unknown = [
        name
        for name in contents
        if name.startswith((f"{STATEMENT}.", f"{FIGURES}.", BUILD)) and name not in expected
    ]
    if unknown:
        return _broken("statements", f"{unknown[0]} belongs to nothing in the folder")
    return FolderCheck(
        name="statements", holds=True, detail=f"{plural(len(expected), 'statement')} on these files"
    )


def _notes(given: FolderSource) -> Iterator[str]:
    """What is no fault of the folder, and still matters to its reader: what was not shown."""
    run, reruns = given.run, given.account.reruns
    began = [one for entry in given.chain if isinstance(one := entry.told, RunBegan)]
    others = {one.run: one.registration for one in reruns}
    others |= {one.run: one.registration for one in began if one.run_kind == run.kind.value}
    others.pop(run.run, None)
    shown = {one.run for one in reruns if one.published}
    unregistered = sorted(name for name, registration in others.items() if registration is None)
    if unregistered:
        yield f"{_named(unregistered)} of the same study began without a registration"
    if hidden := sorted(others.keys() - shown):
        yield f"{_named(hidden)} of the same study {'was' if len(hidden) == 1 else 'were'} not published"
    if deleted := sorted(one.run for one in reruns if not one.kept):
        yield f"{_named(deleted)} of the same study {'was' if len(deleted) == 1 else 'were'} deleted"
    if run.registered is None:
        yield "the run was not registered before it began"
    registered = [entry.number for entry in given.chain if isinstance(entry.told, Registration)]
    if len(registered) > 1:
        numbers = ", ".join(map(str, registered))
        yield f"the study was registered {len(registered)} times (entries {numbers})"


def _named(runs: list[str]) -> str:
    return f"{plural(len(runs), 'run')} ({', '.join(runs)})"


def _broken(name: str, detail: str, fault: Fault = Fault.CONTENTS) -> FolderCheck:
    return FolderCheck(name=name, holds=False, detail=detail, fault=fault)


def _other_dyno(given: FolderSource) -> str:
    """What made the folder where that is not what checks it now; empty where it is the same."""
    theirs, ours = given.account.made_by, made_here()
    if theirs.dyno != ours.dyno:
        return f"; it was made by Dyno {theirs.dyno}, and this is {ours.dyno}: check it with that one"
    if theirs.code != ours.code:
        return (
            f"; it was made by another Dyno {theirs.dyno} (code {theirs.code[:12]}): check it with that one"
        )
    differing = [
        f"{name} {found} in place of {theirs.libraries.get(name, ABSENT)}"
        for name, found in ours.libraries.items()
        if found != theirs.libraries.get(name)
    ]
    return f"; here is {', '.join(differing)}" if differing else ""


def _difference(left: bytes, right: bytes) -> str:
    """The first field in which JSON says another thing than what follows from the records."""
    try:
        told, made = json.loads(left), json.loads(right)
    except (ValueError, RecursionError):
        return "it is no JSON"
    found = next(_fields(told, made, ""), None)
    if found is None:
        return f"it is spelled otherwise: {_first_line(left, right)}"
    field, one, other = found
    return f"{field} is {_short(one)}, and comes out as {_short(other)}"


def _fields(told: Any, made: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Each field that differs, with what was told and what was made."""
    if isinstance(told, dict) and isinstance(made, dict):
        for key in {**told, **made}:
            inner = f"{place}.{key}" if place else key
            yield from _fields(told.get(key, ABSENT), made.get(key, ABSENT), inner)
    elif isinstance(told, list) and isinstance(made, list):
        for number, (one, other) in enumerate(zip_longest(told, made, fillvalue=ABSENT)):
            yield from _fields(one, other, f"{place}[{number}]")
    elif told != made or type(told) is not type(made):
        yield place, told, made


def _short(value: Any) -> str:
    text = value if value is ABSENT else json.dumps(value)
    return text if len(text) <= SHOWN_MOST else f"{text[:SHOWN_MOST]}…"


def _first_line(left: bytes, right: bytes) -> str:
    for number, (one, other) in enumerate(zip_longest(left.split(b"\n"), right.split(b"\n")), 1):
        if one != other:
            return f"line {number} differs"
    return "it differs"
