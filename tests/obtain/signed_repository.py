"""A tiny Debian archive, signed by a key made for it: what the offline tests of `obtain` fetch from."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import tempfile
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
    folder: Path,
    *,
    package: str,
    version: str,
    files: dict[str, bytes],
    architecture: str,
    source: dict[str, bytes] | None = None,
    lost: tuple[str, ...] = (),
) -> SignedRepository:
    """Makes an archive with one package that holds `files`, and its `source` package of these archives. Of
    the source the index lists more versions, `lost`, whose files are not there. It needs a gpg that works."""
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
    indexes = {f"main/binary-{architecture}/Packages": index}
    if source is not None:
        indexes["main/source/Sources"] = _sources(mirror, package, version, source)
        for other in lost:
            indexes["main/source/Sources"] += _sources(mirror, package, other, {})
            (mirror / "pool" / f"{package}_{other.split(':', 1)[-1]}.dsc").unlink()
    release = (
        f"Origin: Debian\nSuite: {SUITE}\nCodename: {SUITE}\n"
        f"Architectures: {architecture}\nComponents: main\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
    )
    for name, text in indexes.items():
        path = mirror / "dists" / SUITE / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        release += f" {hashlib.sha256(text.encode()).hexdigest()} {len(text)} {name}\n"
    made = SignedRepository(mirror, keys / "archive.gpg", archive)
    # The socket of gpg's agent lies in its home, and a socket's path has little room.
    with tempfile.TemporaryDirectory(prefix="dyno-gpg-", ignore_cleanup_errors=True) as home:
        try:
            _sign(made, Path(home), release)
        finally:
            # gpg leaves an agent running for its home.
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)
    return made


def _sources(mirror: Path, package: str, version: str, archives: dict[str, bytes]) -> str:
    """Puts a source package into the pool, and returns the index of it."""
    control = f"Version: {version}\nMaintainer: test <t@t>\nArchitecture: any\nFormat: 3.0 (quilt)\n"
    description = f"Source: {package}\nBinary: {package}\n{control}".encode()
    upstream = version.split(":", 1)[-1]
    files = {**archives, f"{package}_{upstream}.dsc": description}
    listed = ""
    for name, content in files.items():
        (mirror / "pool" / name).write_bytes(content)
        listed += f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
    return f"Package: {package}\nBinary: {package}\n{control}Directory: pool\nChecksums-Sha256:\n{listed}\n"


def _sign(made: SignedRepository, home: Path, release: str) -> None:
    _gpg(home, "--passphrase", "", "--quick-generate-key", "test@example.org", "ed25519", "sign", "never")
    made.keyring.write_bytes(_gpg(home, "--export"))
    made.in_release.write_bytes(_gpg(home, "--clearsign", "--digest-algo", "SHA256", text=release.encode()))


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
