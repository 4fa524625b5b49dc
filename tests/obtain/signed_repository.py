"""A tiny Debian archive, signed by a key made for it: what the offline tests of `obtain` fetch from."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

SUITE = "trixie"


@dataclass(frozen=True)
class SignedRepository:
    """`folder` is the mirror, `keyring` holds the public key that signed it."""

    folder: Path
    keyring: Path
    archive: Path

    @property
    def mirror(self) -> str:
        return f"file://{self.folder}"

    @property
    def in_release(self) -> Path:
        return self.folder / "dists" / SUITE / "InRelease"


def make(
    folder: Path, *, package: str, version: str, files: dict[str, bytes], architecture: str
) -> SignedRepository:
    """Makes an archive with one package that holds `files`. It needs a gpg that works."""
    mirror, keys = folder / "mirror", folder / "keys"
    keys.mkdir(parents=True, mode=0o700)
    archive = mirror / "pool" / f"{package}_{version}_{architecture}.deb"
    archive.parent.mkdir(parents=True)
    control = (
        f"Package: {package}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: test <t@t>\n"
    )
    control += "Description: made by a test\n"
    archive.write_bytes(_deb(control, files))
    index = control + (
        f"Filename: {archive.relative_to(mirror)}\nSize: {archive.stat().st_size}\n"
        f"SHA256: {hashlib.sha256(archive.read_bytes()).hexdigest()}\n\n"
    )
    packages = mirror / "dists" / SUITE / "main" / f"binary-{architecture}" / "Packages"
    packages.parent.mkdir(parents=True)
    packages.write_text(index)
    release = (
        f"Origin: Debian\nSuite: {SUITE}\nCodename: {SUITE}\n"
        f"Architectures: {architecture}\nComponents: main\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {hashlib.sha256(index.encode()).hexdigest()} "
        f"{len(index)} main/binary-{architecture}/Packages\n"
    )
    made = SignedRepository(mirror, keys / "archive.gpg", archive)
    try:
        _sign(made, keys, release)
    finally:
        # gpg leaves an agent running for its home.
        subprocess.run(["gpgconf", "--homedir", str(keys), "--kill", "all"], check=False, capture_output=True)
    return made


def _sign(made: SignedRepository, keys: Path, release: str) -> None:
    _gpg(keys, "--passphrase", "", "--quick-generate-key", "test@example.org", "ed25519", "sign", "never")
    made.keyring.write_bytes(_gpg(keys, "--export"))
    made.in_release.write_bytes(_gpg(keys, "--clearsign", "--digest-algo", "SHA256", text=release.encode()))


def _gpg(home: Path, *arguments: str, text: bytes = b"") -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--quiet", "--pinentry-mode", "loopback"]
    return subprocess.run([*command, *arguments], input=text, capture_output=True, check=True).stdout


def _deb(control: str, files: dict[str, bytes]) -> bytes:
    """deb(5): an ar archive of the format's version, the control files and the data."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar({"./control": control.encode()}),
        "data.tar.gz": _tar(files),
    }
    archive = b"!<arch>\n"
    for name, content in members.items():
        archive += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        archive += content + b"\n" * (len(content) % 2)
    return archive


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
