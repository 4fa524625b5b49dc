"""A run of a store as a published folder holds it: put together, stated, and signed in DSSE envelopes.

https://github.com/secure-systems-lab/dsse says what is signed, and how an envelope is written.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import DynoError, UserError, remedy
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.layers.source import key_in
from dbdyno.obtain.source import making
from dbdyno.prepare_run.begun import question_of, reruns_of
from dbdyno.publish import MAKE_A_KEY, statement
from dbdyno.publish.contents import Contents, found_in, given_files, made_files
from dbdyno.publish.folder import sha256_in
from dbdyno.publish.statement import Account, FolderSource, Found, PublishedBuild, made_here
from dbdyno.records.chain import CHANGED, Entry, broken_at, sha256
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study.files import digest_of_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PUBLIC_OF = "openssl pkey -in dyno.key -pubout -out dyno.pub"
KINDS = "Ed25519, or ECDSA with the curve P-256"


class Unsealed(Exception):
    """An envelope that does not hold: why, as a fragment."""


@dataclass(frozen=True)
class PublicKey:
    """A public key: its PEM, and the SHA-256 of what that holds, by which people compare keys."""

    pem: bytes
    fingerprint: str
    _key: SSlibKey

    def opened(self, envelope: bytes) -> bytes:
        """The payload of an envelope that this key signed. Raises Unsealed, also for an envelope in any other
        spelling than that of `sealed`, because a signature does not cover the spelling."""
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import VerificationError

        try:
            found = Envelope.from_dict(json.loads(envelope))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Unsealed(f"it is no envelope: {error}") from None
        if found.payload_type != PAYLOAD_TYPE:
            raise Unsealed(f"its payload is {found.payload_type}, and not {PAYLOAD_TYPE}")
        try:
            found.verify([self._key], 1)
        except (VerificationError, ValueError):
            raise Unsealed(f"the key {self.fingerprint[:16]} did not sign it") from None
        if len(found.signatures) != 1 or _written(found.to_dict()) != envelope:
            raise Unsealed("it is not spelled as it was written")
        return found.payload


@dataclass(frozen=True)
class PrivateKey:
    """A key that signs, with its public half."""

    public: PublicKey
    _signer: CryptoSigner

    def sealed(self, payload: bytes) -> bytes:
        """An envelope around a payload, with one signature."""
        from securesystemslib.dsse import Envelope

        envelope = Envelope(payload, PAYLOAD_TYPE, {})
        envelope.sign(self._signer)
        return _written(envelope.to_dict())


def payload_of(envelope: bytes) -> bytes:
    """The payload of an envelope, whoever signed it. Raises Unsealed for what is none."""
    try:
        return base64.b64decode(json.loads(envelope)["payload"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unsealed(f"it is no envelope: {error}") from None


def private_key(path: Path, password: Callable[[], str]) -> PrivateKey:
    """The key in a PEM file. `password` is asked for where the file is encrypted. Raises UserError."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    content = _content(path, MAKE_A_KEY)
    try:
        try:
            loaded = load_pem_private_key(content, None)
        except TypeError:
            loaded = load_pem_private_key(content, password().encode())
    except ValueError:
        told = f"{path} holds no private key that can be read, or the password is another one"
        raise UserError(told, f"make one: {MAKE_A_KEY}") from None
    public = _public(loaded.public_key(), path)
    return PrivateKey(public, CryptoSigner(loaded, public._key))


def public_key(path: Path) -> PublicKey:
    """The public key in a PEM file. Raises UserError."""
    return public_key_of(_content(path, PUBLIC_OF), path)


def public_key_of(pem: bytes, path: Path) -> PublicKey:
    """The public key in PEM that was read from a path. Raises UserError."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        loaded = load_pem_public_key(pem)
    except ValueError:
        raise UserError(f"{path} holds no public key in PEM", f"write it: {PUBLIC_OF}") from None
    return _public(loaded, path)


def _content(path: Path, made_by: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read the key {path}: {error.strerror}", remedy(error, f"make one: {made_by}")
        ) from None


def _public(key: PublicKeyTypes, path: Path) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from securesystemslib.signer import SSlibKey

    on_curve = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    if not on_curve and not isinstance(key, Ed25519PublicKey):
        raise UserError(f"the key {path} is of a kind that Dyno does not sign with", f"{KINDS}: {MAKE_A_KEY}")
    fingerprint = sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(pem, fingerprint, SSlibKey.from_crypto(key, keyid=fingerprint))


def _written(envelope: dict[str, Any]) -> bytes:
    """An envelope as a file: keys in their order, a line each."""
    return f"{json.dumps(envelope, indent=2, sort_keys=True)}\n".encode()


KEY = "key.pub.pem"
STATEMENT, FIGURES, BUILD = "statement", "figures", "build-"
SIGNED, UNSIGNED = ".dsse.json", ".json"


def folder_source(store: Store, run: Run, key: PrivateKey | None, tell: Tell) -> FolderSource:
    """All that a folder of a run is made from. Raises UserError for a run that is not over, and DynoError
    for a chain that does not hold."""
    if run.run in {each.run for each in store.unfinished_runs()}:
        raise UserError(f"run {run.run} is not finished", f"go on with it: dyno run --resume {run.run}")
    chain = store.chain()
    if broken := broken_at(chain):
        raise DynoError(f"the chain of {store.place} does not hold: {broken}", CHANGED)
    records = store.records(run.run)
    builds, unkept = _builds(records)
    for one in unkept:
        tell(f"build {one} is not kept here any more, so nothing says how it was made")
    account = Account(
        run=run.run,
        published_unix_s=time.time(),
        made_by=made_here(),
        reruns=reruns_of(store, run),
        key=key.public.fingerprint if key else "",
        unkept=unkept,
    )
    return FolderSource(account, run, tuple(records), tuple(_shown(chain, question_of(run))), builds)


def _shown(chain: list[Entry], question: str) -> Iterator[Entry]:
    """The whole chain. What the entries of other studies say is nobody's business here."""
    for entry in chain:
        yield entry if entry.question == question else entry.closed()


def _builds(records: list[Record]) -> tuple[tuple[PublishedBuild, ...], tuple[str, ...]]:
    """The builds that ran, by their accounts; and the keys of those that are not kept any more."""
    keys = sorted({key for record in records if (key := key_in(record.evidence))})
    shelf = cache.shelf("builds")
    kept: dict[str, PublishedBuild] = {}
    for name in shelf.names() if keys else ():
        account = making.readable_account(shelf.folder / name)
        if account is None or account.key not in keys or (folder := shelf.take(name)) is None:
            continue
        program = (folder / making.PREFIX / account.program).resolve()
        kept[account.key] = PublishedBuild(made=account, program_sha256=digest_of_file(program))
    builds = tuple(kept[key] for key in keys if key in kept)
    return builds, tuple(key for key in keys if key not in kept)


def contents_of(given: FolderSource, key: PrivateKey | None) -> Contents:
    """Every file of the folder. The statement that names all others comes last."""
    found = found_in(given)
    contents = given_files(given) | {name: make() for name, make in made_files(given, found).items()}
    if key is not None:
        contents[KEY] = key.public.pem
    ending = SIGNED if key else UNSIGNED
    for name, payload in statements_beside(given, found, contents).items():
        contents[f"{name}{ending}"] = key.sealed(payload) if key else payload
    whole = statement.test_result(found, statement.digests_of(contents))
    return contents | {f"{STATEMENT}{ending}": key.sealed(whole) if key else whole}


def statements_beside(given: FolderSource, found: Found, contents: Mapping[str, bytes]) -> Contents:
    """The payloads of the statements on the figures and on each build, by their names without an ending."""
    basis = {name: sha256_in(contents, name) for name in given_files(given) if name in contents}
    stated = {FIGURES: statement.figures(given, found, basis)}
    return stated | {f"{BUILD}{one.made.key}": statement.provenance(given, one) for one in given.builds}
