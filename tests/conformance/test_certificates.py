"""A server that made its certificate itself, and is told as `tls_ca`: accepted under its own name alone."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from tests.needs import on_machine

HOST = "127.0.0.1"
SSL_REQUEST_BYTES = 8
GREETING = b"no such luck"


@contextmanager
def postgresql_that_only_encrypts(certificate: Path, key: Path) -> Iterator[int]:
    """Does a PostgreSQL server's part up to the encrypted connection, then refuses. Gives its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=_refuse_all, args=(listener, context), daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _refuse_all(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.recv(SSL_REQUEST_BYTES)
        connection.sendall(b"S")
        try:
            with context.wrap_socket(connection, server_side=True) as encrypted:
                encrypted.recv(4096)
                fields = b"SFATAL\0C28000\0M" + GREETING + b"\0\0"
                encrypted.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        except OSError:
            continue


def self_signed(folder: Path, names: str) -> tuple[Path, Path]:
    if on_machine("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    folder.mkdir()
    certificate, key = folder / "server.pem", folder / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=itself",
         "-addext", f"subjectAltName={names}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def refusal(port: int, authority: Path) -> str:
    url = f"postgresql://dyno@{HOST}:{port}/dyno?tls=verify&tls_ca={authority}"
    with pytest.raises(_driver.DriverError) as caught:
        _driver.query(url, "SELECT 1")
    return caught.value.message


def test_a_certificate_that_the_user_named_is_accepted(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path / "own", f"IP:{HOST}")
    with postgresql_that_only_encrypts(certificate, key) as port:
        assert GREETING.decode() in refusal(port, certificate)


def test_one_with_another_name_is_not(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path / "own", "DNS:elsewhere.example")
    with postgresql_that_only_encrypts(certificate, key) as port:
        assert "TLS" in refusal(port, certificate)


def test_one_that_the_user_did_not_name_is_not(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path / "own", f"IP:{HOST}")
    other, _ = self_signed(tmp_path / "other", f"IP:{HOST}")
    with postgresql_that_only_encrypts(certificate, key) as port:
        assert "TLS" in refusal(port, other)
