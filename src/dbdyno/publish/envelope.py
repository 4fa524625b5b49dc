"""Signatures: DSSE envelopes around statements, and the keys that make and check them.

https://github.com/secure-systems-lab/dsse says what is signed, and how an envelope is written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import UserError, remedy
from dbdyno.publish import MAKE_A_KEY
from dbdyno.records.chain import sha256

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
