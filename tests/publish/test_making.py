"""An envelope holds what was signed, and no byte of it changes unseen; openssl agrees."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.publish.making import PrivateKey, Unsealed, payload_of, private_key, public_key
from tests.publish.cases import KINDS, a_key, no_password


@pytest.fixture(params=KINDS)
def key(request: pytest.FixtureRequest, tmp_path: Path) -> PrivateKey:
    return a_key(tmp_path, request.param)


@given(payload=st.binary(max_size=64))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_sealed_is_read_back(key: PrivateKey, payload: bytes) -> None:
    envelope = key.sealed(payload)
    assert key.public.opened(envelope) == payload == payload_of(envelope)


def test_every_changed_byte_is_found(key: PrivateKey) -> None:
    envelope = key.sealed(b'{"figure": 1.25}')
    for at, byte in enumerate(envelope):
        for changed in (byte ^ 1, byte ^ 0x20):
            with pytest.raises(Unsealed):
                key.public.opened(envelope[:at] + bytes([changed]) + envelope[at + 1 :])


def test_another_key_is_told(key: PrivateKey, tmp_path: Path) -> None:
    other = a_key(tmp_path, name="other").public
    with pytest.raises(Unsealed, match=f"the key {other.fingerprint[:16]} did not sign it"):
        other.opened(key.sealed(b"x"))


def test_a_second_signature_is_not_passed_over(key: PrivateKey) -> None:
    envelope = json.loads(key.sealed(b"x"))
    envelope["signatures"] *= 2
    with pytest.raises(Unsealed):
        key.public.opened(json.dumps(envelope, indent=2, sort_keys=True).encode() + b"\n")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"[" * 100_000, b'{"payload": 1}', b"\xff"])
def test_what_is_no_envelope_is_told(key: PrivateKey, content: bytes) -> None:
    with pytest.raises(Unsealed):
        key.public.opened(content)
    with pytest.raises(Unsealed):
        payload_of(content)


def test_openssl_agrees_with_the_signature(key: PrivateKey, tmp_path: Path) -> None:
    envelope = json.loads(key.sealed(b"what was said"))
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    (tmp_path / "signed").write_bytes(b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "key.pem").write_bytes(key.public.pem)
    ed25519 = ["pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "signed", "-sigfile"]
    ecdsa = ["dgst", "-sha256", "-verify", "key.pem", "-signature", "signature", "signed"]
    tried = [
        subprocess.run(["openssl", *words], cwd=tmp_path, capture_output=True).returncode
        for words in ([*ed25519, "signature"], ecdsa)
    ]
    assert 0 in tried


def test_an_encrypted_key_asks_for_its_password(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    words = [
        "openssl",
        "genpkey",
        "-algorithm",
        "ed25519",
        "-aes256",
        "-pass",
        "pass:sesame",
        "-out",
        str(path),
    ]
    subprocess.run(words, check=True, capture_output=True)
    key = private_key(path, lambda: "sesame")
    assert key.public.opened(key.sealed(b"x")) == b"x"
    with pytest.raises(UserError, match="the password is another one"):
        private_key(path, lambda: "other")


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read the key"), (b"nothing", "holds no private key"), ("rsa", "of a kind that")],
)
def test_a_key_that_is_none_is_told(tmp_path: Path, content: bytes | str | None, told: str) -> None:
    path = tmp_path / "k.key"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        made = ["openssl", "genpkey", "-algorithm", content, "-out", str(path)]
        subprocess.run(made, check=True, capture_output=True)
    with pytest.raises(UserError, match=told) as refused:
        private_key(path, no_password)
    assert "openssl genpkey -algorithm ed25519" in refused.value.hint


def test_a_private_key_is_no_public_one(tmp_path: Path) -> None:
    a_key(tmp_path)
    with pytest.raises(UserError, match="holds no public key") as refused:
        public_key(tmp_path / "dyno.key")
    assert "-pubout" in refused.value.hint
