"""Whatever is changed in a published folder is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.publish import making, statement
from dbdyno.publish import verified as verified_module
from dbdyno.publish.contents import PAGE, Contents, found_in, given_in, made_files
from dbdyno.publish.making import PrivateKey, PublicKey, contents_of
from dbdyno.publish.statement import FolderSource, Found
from dbdyno.publish.verified import Fault, Verification, VerificationAnswer, verified
from dbdyno.records.chain import Rerun, sha256
from tests.publish.cases import a_given, a_key, a_registered


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    return a_key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module", autouse=True)
def followed_once() -> Iterator[None]:
    """What follows from the same run and records is found once, and its page drawn once, because that is most
    of what a check takes. What was changed beside them is held against it each time."""
    known: dict[tuple[str, ...], Found] = {}
    pages: dict[tuple[int, str], bytes] = {}

    def found_by_text(given: FolderSource) -> Found:
        texts = (given.run.model_dump_json(), *(record.model_dump_json() for record in given.records))
        if texts not in known:
            known[texts] = found_in(given)
        return known[texts]

    def made_with_a_page(given: FolderSource, found: Found) -> dict[str, Callable[[], bytes]]:
        made = made_files(given, found)
        draw, of = made[PAGE], (id(found), repr(given.account.reruns))

        def page() -> bytes:
            if of not in pages:
                pages[of] = draw()
            return pages[of]

        return {**made, PAGE: page}

    with pytest.MonkeyPatch.context() as patch:
        for module in (making, verified_module):
            patch.setattr(module, "found_in", found_by_text)
            patch.setattr(module, "made_files", made_with_a_page)
        yield


@pytest.fixture(scope="module")
def whole(key: PrivateKey) -> Contents:
    return contents_of(a_given(key), key)


def checked(contents: Contents, key: PublicKey | None = None, strange: tuple[str, ...] = ()) -> Verification:
    return verified("folder", contents, list(strange), key)


def faults(found: Verification) -> dict[str, str]:
    return {check.name: check.detail for check in found.checks if check.holds is False}


def flipped(contents: Contents, name: str, what: str | None = None) -> Contents:
    """The contents with one byte changed in a file: in the middle of `what`, or of the file."""
    content = contents[name]
    at = len(content) // 2 if what is None else content.index(what.encode()) + len(what) // 2
    return contents | {name: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]}


def test_a_whole_folder_holds(whole: Contents, key: PrivateKey) -> None:
    found = checked(whole, key.public)
    assert faults(found) == {} and found.fault is None
    assert found.trusted and found.signed_by == key.public.fingerprint and found.run == "published"
    assert all(check.holds for check in found.checks)
    assert {"signature", "files", "chain", "analysis", "page", "statements"} <= {
        check.name for check in found.checks
    }


def test_the_key_in_the_folder_is_not_taken_for_trust(whole: Contents) -> None:
    found = checked(whole)
    assert found.fault is None and not found.trusted
    assert "and not whose it is" in found.checks[0].detail


def test_a_folder_that_somebody_else_signed_anew_is_refused_by_the_key(
    whole: Contents, key: PrivateKey, tmp_path: Path
) -> None:
    other = a_key(tmp_path)
    forged = contents_of(a_given(other), other)
    assert checked(forged).fault is None
    found = checked(forged, key.public)
    assert found.fault is Fault.SIGNATURE and not found.trusted and not found.signed_by


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("study.toml", None),
        ("files/01-load.lua", None),
        ("records.jsonl", '"finished_unix_s"'),
        ("records.jsonl", "baseline"),
        ("run.json", "published"),
        ("report.json", '"ratio"'),
        ("report.html", None),
        ("evidence.md", None),
        ("publication.json", None),
        ("registrations.json", None),
        ("README.txt", None),
        ("key.pub.pem", None),
        ("figures.dsse.json", '"payload"'),
        ("build-0123456789abcdef.dsse.json", None),
        ("builds/0123456789abcdef.json", "gcc 12"),
    ],
    ids=str,
)
def test_one_changed_byte_is_found_and_its_file_is_named(
    whole: Contents, key: PrivateKey, name: str, what: str | None
) -> None:
    found = checked(flipped(whole, name, what), key.public)
    assert found.fault is not None
    assert faults(found)["files"].startswith(f"{name} was changed")


@pytest.mark.parametrize("what", ['"payload": "', '"sig": "', '"keyid": "', "payloadType", "in-toto", "\n  "])
def test_one_changed_byte_of_the_statement_or_its_signature_is_found(
    whole: Contents, key: PrivateKey, what: str
) -> None:
    name = "statement.dsse.json"
    at = whole[name].index(what.encode()) + len(what)
    content = whole[name]
    changed = whole | {name: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]}
    found = checked(changed, key.public)
    assert found.fault is Fault.SIGNATURE
    assert faults(found)["signature"].startswith(name)


def test_a_file_that_was_added_removed_or_is_a_link_is_named(whole: Contents, key: PrivateKey) -> None:
    found = checked(whole | {"more.txt": b""}, key.public)
    assert faults(found) == {"files": "more.txt is not named by the statement"}
    assert found.fault is Fault.FILES
    less = {name: content for name, content in whole.items() if name != "evidence.md"}
    assert faults(checked(less, key.public))["files"] == "evidence.md is missing"
    assert faults(checked(whole, key.public, ("link",))) == {"files": "link is no file"}


def signed_anew(contents: Contents, key: PrivateKey, name: str, old: str, new: str) -> Contents:
    """A folder whose publisher changed a file and signed all digests again."""
    text = contents[name].decode()
    assert old in text
    changed = contents | {name: text.replace(old, new, 1).encode()}
    named = {name: one for name, one in changed.items() if name != "statement.dsse.json"}
    stated = statement.test_result(found_in(given_in(contents)), statement.digests_of(named))
    return changed | {"statement.dsse.json": key.sealed(stated)}


@pytest.mark.parametrize(
    ("name", "old", "new", "check", "told"),
    [
        ("report.json", '"ratio": 1.', '"ratio": 2.', "analysis", "effect.ratio is 2."),
        ("report.html", "published", "publishes", "page", "report.html: line"),
        ("evidence.md", "baseline", "Baseline", "evidence.md", "line"),
        ("study.toml", "synchronous", "Synchronous", "study.toml", "line"),
        ("registrations.json", '"seed":', '"seed": 1', "chain", "the content of entry 2"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_does_not_follow_is_found_although_its_publisher_signed_it(
    whole: Contents, key: PrivateKey, name: str, old: str, new: str, check: str, told: str
) -> None:
    found = checked(signed_anew(whole, key, name, old, new), key.public)
    assert found.fault is Fault.CONTENTS
    assert told in faults(found)[check]


def test_a_figure_of_another_dyno_is_not_called_forged(whole: Contents, key: PrivateKey) -> None:
    given = a_given(key)
    older = given.account.made_by.but(dyno="0.0.9")
    contents = contents_of(replace(given, account=given.account.but(made_by=older)), key)
    assert checked(contents, key.public).fault is None, "the same figures are no fault of an older one"
    changed = signed_anew(contents, key, "report.json", '"ratio": 1.', '"ratio": 2.')
    told = faults(checked(changed, key.public))["analysis"]
    assert "made by Dyno 0.0.9" in told and "check it with that one" in told


@pytest.mark.parametrize("name", ["report.html", "README.txt", "evidence.md"])
def test_what_another_dyno_made_is_not_said_to_hold(name: str, key: PrivateKey) -> None:
    given = a_given(None)
    other = given.account.made_by.but(code="0" * 64)
    contents = contents_of(replace(given, account=given.account.but(made_by=other)), None)
    changed = contents | {name: b"replaced"}
    stated = {one: content for one, content in changed.items() if one != "statement.json"}
    changed["statement.json"] = statement.test_result(
        found_in(given_in(contents)), statement.digests_of(stated)
    )
    found = checked(changed)
    assert found.fault is None and found.answer is VerificationAnswer.NOT_CHECKED
    assert found.unchecked == ("signature", "page" if name == "report.html" else name)


def test_a_signature_that_was_taken_off_is_missed(whole: Contents, key: PrivateKey) -> None:
    stripped = contents_of(a_given(key), None)
    found = checked(stripped)
    assert found.fault is Fault.SIGNATURE and "nobody signed it" in faults(found)["signer"]


def test_a_folder_that_nobody_signed_says_so(key: PrivateKey) -> None:
    contents = contents_of(a_given(None), None)
    found = checked(contents)
    assert found.fault is None and found.checks[0].holds is None and not found.signed_by
    assert "not signed" in found.checks[0].detail
    assert checked(contents, key.public).fault is Fault.SIGNATURE
    for name in contents:
        assert checked(flipped(contents, name)).fault is not None, name


def test_a_registration_that_the_chain_holds_is_told(key: PrivateKey) -> None:
    found = checked(contents_of(a_registered(key), key), key.public)
    told = {check.name: check.detail for check in found.checks}
    assert found.fault is None
    assert told["registration"] == "entry 1, and the run began as entry 2"


def test_a_script_that_the_run_did_not_read_is_found_although_it_is_signed(key: PrivateKey) -> None:
    given = a_given(key)
    [file] = given.run.files or ()
    for text, holds in (("-- another\n", False), ("mysql://u:***@h/", True)):
        changed = replace(given, run=given.run.but(files=(file.but(text=text),)))
        found = checked(contents_of(changed, key), key.public)
        told = "run.json: the text of ../load.lua is not the one with the digest beside it"
        assert faults(found) == ({} if holds else {"study": told})


def test_a_study_with_a_mark_of_its_encoding_holds(key: PrivateKey) -> None:
    given = a_given(key)
    marked = given.run.but(study_digest=sha256(b"\xef\xbb\xbf" + given.run.study_text.encode()))
    assert checked(contents_of(replace(given, run=marked), key), key.public).fault is None


def another_plan(given: FolderSource) -> FolderSource:
    kept = given.run.registered
    assert kept is not None
    return replace(given, run=given.run.but(registered=kept.but(plan=kept.plan.but(blocks=99))))


@pytest.mark.parametrize(
    ("given_of", "told"),
    [
        (lambda key: another_plan(a_registered(key)), "registered is not what entry 1 says"),
        (lambda key: a_registered(key, question="q"), "entry 1 asks another question"),
        (lambda key: replace(a_registered(key), chain=a_given(key).chain), "no such registration"),
        (lambda key: replace(a_registered(key), chain=a_registered(key).chain[:1]), "began after entry 1"),
    ],
)
def test_a_registration_that_does_not_fit_is_found_although_it_is_signed(
    key: PrivateKey, given_of: Callable[[PrivateKey], FolderSource], told: str
) -> None:
    found = checked(contents_of(given_of(key), key), key.public)
    assert found.fault is Fault.CONTENTS and told in faults(found)["registration"]


def test_runs_that_were_not_shown_are_named(key: PrivateKey) -> None:
    given = a_given(key)
    reruns = (
        Rerun(run="first", began_unix_s=1.0, registration=1, published=True),
        Rerun(run="second", began_unix_s=2.0, kept=False),
        Rerun(run="published", began_unix_s=3.0),
    )
    account = given.account.but(reruns=reruns)
    notes = checked(contents_of(replace(given, account=account), key), key.public).notes
    assert notes == (
        "1 run (second) of the same study began without a registration",
        "1 run (second) of the same study was not published",
        "1 run (second) of the same study was deleted",
        "the run was not registered before it began",
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda contents: contents | {"records.jsonl": b""},
        lambda contents: contents | {"records.jsonl": b"{}\n"},
        lambda contents: contents | {"run.json": b"[" * 100_000},
        lambda contents: contents | {"registrations.json": b'[{"number": 1}]'},
        lambda contents: contents | {"publication.json": b"\xff"},
        lambda contents: contents | {"run.json": contents["run.json"].replace(b"tpcb", b"none")},
        lambda contents: {name: one for name, one in contents.items() if name != "run.json"},
    ],
)
def test_files_that_hold_anything_are_a_finding_and_no_failure(
    whole: Contents, key: PrivateKey, change: Callable[[Contents], Contents]
) -> None:
    found = checked(change(whole), key.public)
    assert found.fault is Fault.FILES and "contents" in faults(found)


def test_a_folder_without_a_statement_is_none(whole: Contents) -> None:
    with pytest.raises(UserError, match="so nobody published it"):
        checked({"run.json": whole["run.json"]})


def test_the_statements_have_the_forms_that_others_read(whole: Contents, key: PrivateKey) -> None:
    told = {
        name: json.loads(key.public.opened(content))
        for name, content in whole.items()
        if name.endswith(".dsse.json")
    }
    assert {one["_type"] for one in told.values()} == {"https://in-toto.io/Statement/v1"}
    result = told["statement.dsse.json"]
    assert result["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert result["predicate"]["result"] == "PASSED"
    assert result["predicate"]["passedTests"] == ["config.synchronous=OFF"]
    assert {one["name"] for one in result["subject"]} == whole.keys() - {"statement.dsse.json"}
    figures = told["figures.dsse.json"]["predicate"]
    [_, faster] = figures["variants"]
    assert faster["verdict"] == "faster" and faster["effect"]["ratio"] > 1.3
    build = told["build-0123456789abcdef.dsse.json"]
    assert build["predicateType"] == "https://slsa.dev/provenance/v1"
    assert build["subject"] == [{"name": "libsqlite3.so", "digest": {"sha256": "cd" * 32}}]
    assert build["predicate"]["buildDefinition"]["externalParameters"]["flags"]["compile"] == ["-O2"]
