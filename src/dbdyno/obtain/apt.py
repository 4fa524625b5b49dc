"""The machine's apt, turned to folders of our own: nothing of the host's package state is read or written.

Only what says how to reach a mirror is taken from the machine's configuration: its Debian sources and
`Acquire::*` (proxy, certificates, time limits). What would weaken verification is not.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dbdyno.errors import DynoError, Unreachable, UserError
from dbdyno.host.process import die_with_parent

DEBIAN_RELEASE = re.compile(
    r"(buster|bullseye|bookworm|trixie|forky|duke|sid|(old)*stable|testing|unstable)(-updates|-security)?$"
)
KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
)
KEPT_OUT = re.compile(r"Acquire::(IndexTargets|Languages|Allow|GzipIndexes|Changelogs)")

BY_HAND = {
    "deb": 'use a server that is installed here, by its path: `engine = "mariadb:/usr/sbin/mariadbd"`',
    "deb-src": 'unpack the source yourself and name its folder: `source.origin = "../mariadb-11.8.6"`',
}
"""How to do without apt, for packages and for sources."""
WAYS_OUT = {
    "deb": "name a mirror with --mirror",
    "deb-src": f"name a mirror in this machine's apt sources, or {BY_HAND['deb-src']}",
}
"""Where else they can come from. A study, which asks for sources, names no mirror."""
UNREACHABLE = (
    r"Temporary failure resolving|Could not (resolve|connect)|Unable to connect"
    r"|Connection (failed|timed out)|unreachable"
)
HINTS = (
    (
        r"NO_PUBKEY|Missing key|not signed by|keyring .* (unreadable|does not exist)|isn't known",
        "the Debian keyring does not know this suite's key: `apt-get install debian-archive-keyring`",
    ),
    (
        r"gpgv?,? .* required for verification|could not execute '(gpgv|sqv)'",
        "the signature cannot be checked without gpgv (or sqv): `apt-get install gpgv`",
    ),
    (
        r"BADSIG|[Bb]ad signature|invalid signature|not valid: BAD|signatures were invalid|not signed",
        "the index is not what Debian signed; {way_out}",
    ),
    (
        r"Hash Sum mismatch|unexpected size|File has unexpected",
        "the mirror served something else than its index says; try again, or {way_out}",
    ),
    (
        # What apt 3 says of a folder's package that is not the promised one.
        r"Undetermined Error",
        "apt does not say why; the mirror's file may not be what its index says; try again, or {way_out}",
    ),
    (r"is not valid (yet|anymore)|expired", "the index is out of date, or this machine's clock is wrong"),
    (UNREACHABLE, "the mirror cannot be reached from here; check the network and proxy, or {way_out}"),
    (r"No space left", "make room below the cache folder, or point XDG_CACHE_HOME elsewhere"),
    (
        r"Failed to fetch \S+/pool/\S+ +404",
        "the mirror lacks a file that its own index lists; try again later, or {way_out}",
    ),
    (
        r"404|does not have a Release file|no longer has a Release file|File not found",
        "this mirror does not have that suite; {way_out}",
    ),
)


@dataclass(frozen=True)
class DebianArchive:
    """One .deb: its file name, its size, and the hash that the signed index gives it."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class AptSource:
    """One line of a sources list: an archive, one of its suites, and the keys that must have signed it."""

    uri: str
    suite: str
    keyring: Path

    def line(self, kind: str) -> str:
        return f"{kind} [signed-by={self.keyring}] {self.uri} {self.suite} main"


def sources(suite: str, mirror: str = "", keyring: Path | None = None, kind: str = "deb") -> list[AptSource]:
    """The archives to read: the given mirror alone, or those that the machine's apt names for Debian. `kind`
    is that of the session.

    The machine may run another release than `suite`: its archive and its security archive serve every
    release.
    """
    if shutil.which("apt-get") is None:
        reason = "this machine has no apt, which verifies and fetches Debian's packages"
        raise UserError(reason, BY_HAND[kind])
    keys = keyring or _machine_keyring()
    if mirror:
        if urlsplit(mirror).scheme not in ("http", "https", "file", "copy"):
            raise UserError(f"`{mirror}` is not the address of a mirror", "give an http, https or file URL")
        # apt would read a `file` mirror in place; `copy` brings the packages over as from any other.
        return [AptSource(mirror.replace("file:", "copy:", 1), suite, keys)]
    configured = _configured()
    main = [uri for uri, release in configured if not release.endswith(("-security", "-updates"))]
    if not main:
        raise UserError("this machine's apt names no Debian mirror", WAYS_OUT[kind])
    found = [AptSource(main[0], suite, keys)]
    for suffix in ("-updates", "-security"):
        uris = [uri for uri, release in configured if release.endswith(suffix)]
        # Unstable has neither; asking for them would fail.
        if uris and suite not in ("sid", "unstable"):
            found.append(AptSource(uris[0], suite + suffix, keys))
    return found


def _configured() -> list[tuple[str, str]]:
    """Address and suite of each Debian source, as apt itself reads its lists. It is asked for what it would
    fetch: of an index that nobody has fetched yet, as in a fresh container, it tells nothing else."""
    listing = _run(["apt-get", "update", "--print-uris"])
    pairs = [
        found.groups() for found in re.finditer(r"^'(\S+)/dists/(\S+)/InRelease' ", listing, re.MULTILINE)
    ]
    return [(uri, release) for uri, release in dict.fromkeys(pairs) if DEBIAN_RELEASE.match(release)]


def _machine_keyring() -> Path:
    for path in KEYRINGS:
        if path.is_file():
            return path
    raise UserError(
        f"no Debian keyring at {KEYRINGS[0]}: the packages could not be verified",
        "`apt-get install debian-archive-keyring`",
    )


class AptSession:
    """apt on a working folder of ours. The folder may be one that an earlier, killed session left.

    It reads the index of packages, `deb`, or that of source packages, `deb-src`. Packages are of this
    machine's architecture, or of the one that is named.
    """

    def __init__(
        self,
        folder: Path,
        *,
        suite: str,
        sources: list[AptSource],
        without: tuple[str, ...] = (),
        kind: str = "deb",
        architecture: str = "",
    ) -> None:
        self.suite = suite
        self.kind = kind
        self.source_lines = [source.line(kind) for source in sources]
        self.archive_folder = folder / "cache" / "archives"
        self._nothing = folder / "nothing"
        self._configuration = folder / "apt.conf"
        for part in ("state/lists/partial", "cache/archives/partial", "nothing/partial", "etc"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        architecture = architecture or _run(["dpkg", "--print-architecture"]).strip()
        (folder / "etc/sources.list").write_text("\n".join(self.source_lines) + "\n")
        (folder / "state/status").write_text("".join(_stand_in(name, architecture) for name in without))
        self._configuration.write_text(_configuration(folder, architecture))

    def update(self) -> None:
        """Fetches the signed indexes. Raises DynoError when one is missing, unsigned, badly signed or out
        of date.
        """
        self._apt("apt-get", "update", "--error-on=any")

    def resolve(self, packages: tuple[str, ...]) -> list[DebianArchive]:
        """The packages and all that they depend on, in the versions that the index offers."""
        # apt leaves out what a killed fetch has downloaded already: here it looks where nothing is.
        nothing = f"Dir::Cache::archives={self._nothing}"
        listing = self._apt("apt-get", "install", "--yes", "--print-uris", "--option", nothing, *packages)
        archives = _archives(listing)
        if not archives:
            raise DynoError(
                f"{self.suite} offers no installable {', '.join(packages)}",
                "this suite packages the engine in another way; give the path of an installed server",
            )
        return archives

    def version(self, package: str) -> str:
        """The version of a package that `resolve` chooses, as Debian writes it."""
        shown = self._apt("apt-cache", "show", "--no-all-versions", package)
        found = re.search(r"^Version: (\S+)$", shown, re.MULTILINE)
        if not found:
            raise DynoError(
                f"{self.suite} has no package {package}",
                "this suite packages the engine in another way; give the path of an installed server",
            )
        return found[1]

    def download(self, packages: tuple[str, ...], archives: list[DebianArchive]) -> None:
        """Puts every archive into `archive_folder` and checks its hash against the signed index."""
        self._apt("apt-get", "install", "--yes", "--download-only", *packages)
        _require_promised(archives, self.archive_folder, WAYS_OUT[self.kind])

    def source_versions(self, package: str) -> list[str]:
        """The versions of a source package that the indexes list, as Debian writes them, the latest last."""
        # Here, because only a fetch compares them.
        from debian.debian_support import Version

        shown = self._apt("apt-cache", "showsrc", "--only-source", package)
        return sorted(re.findall(r"^Version: (\S+)$", shown, re.MULTILINE), key=Version)

    def source(self, package: str, version: str) -> list[DebianArchive]:
        """The files of a source package, its .dsc and its archives, in a version that the indexes list. They
        are put into `archive_folder`, and their hashes checked against the signed index."""
        asked = f"{package}={version}"
        archives = _archives(self._apt("apt-get", "source", "--only-source", "--print-uris", asked))
        self._apt("apt-get", "source", "--only-source", "--download-only", asked)
        _require_promised(archives, self.archive_folder, WAYS_OUT[self.kind])
        return archives

    def serves_source(self, package: str, version: str) -> bool:
        """Whether the mirror hands out the description of a source package that its index lists."""
        try:
            self._apt(
                "apt-get", "source", "--only-source", "--download-only", "--dsc-only", f"{package}={version}"
            )
        except DynoError:
            return False
        return True

    def _apt(self, *command: str) -> str:
        environment = {"APT_CONFIG": str(self._configuration), "LC_ALL": "C.UTF-8"}
        return _run(list(command), environment, self.archive_folder, self.kind)


def _archives(listing: str) -> list[DebianArchive]:
    """Of what apt prints with `--print-uris`."""
    lines = (re.match(r"'[^']+' (\S+) (\d+) SHA256:([0-9a-f]{64})$", line) for line in listing.splitlines())
    return [DebianArchive(found[1], int(found[2]), found[3]) for found in lines if found]


def _require_promised(archives: list[DebianArchive], folder: Path, way_out: str) -> None:
    """Removes a file that is not the promised one, and raises DynoError for it."""
    for archive in archives:
        path = folder / archive.name
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "none"
        if digest != archive.sha256:
            path.unlink(missing_ok=True)
            raise DynoError(
                f"{archive.name} has SHA-256 {digest}, but the signed index says {archive.sha256}",
                f"fetch again; if that does not help, {way_out}",
            )


def _configuration(folder: Path, architecture: str) -> str:
    """apt's configuration: ours, plus what the machine's own says about reaching a mirror."""
    dump = _run(["apt-config", "dump", "Acquire"]).splitlines()
    acquire = [line for line in dump if not KEPT_OUT.match(line)]
    # main and parts at /dev/null: hooks and preferences of the host must not act on our folders.
    ours = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": str(folder / "etc/sources.list"),
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": str(folder / "state"),
        "Dir::State::status": str(folder / "state/status"),
        "Dir::Cache": str(folder / "cache"),
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        "APT::Install-Recommends": "false",
        "APT::Install-Suggests": "false",
        "APT::Get::AllowUnauthenticated": "false",
        # As root apt would become a user that cannot read our cache.
        "APT::Sandbox::User": "root",
        "Acquire::ForceHash": "SHA256",
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "true",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::AllowWeakRepositories": "false",
        "Acquire::AllowDowngradeToInsecureRepositories": "false",
    }
    return "\n".join([*acquire, *(f'{key} "{value}";' for key, value in ours.items())]) + "\n"


def _stand_in(package: str, architecture: str) -> str:
    """A status entry that says a package is there already, so that apt does not fetch it."""
    return (
        f"Package: {package}\nStatus: install ok installed\nVersion: 9999\nArchitecture: {architecture}\n"
        "Multi-Arch: foreign\nMaintainer: none <none>\nDescription: not needed to run the server\n\n"
    )


def _run(
    command: list[str],
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
    kind: str = "deb",
) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent(),
        )
    except OSError as error:
        raise UserError(f"cannot run {command[0]}: {error.strerror}", BY_HAND[kind]) from None
    if done.returncode != 0:
        problems = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        text = "\n".join(problems) or done.stderr.strip() or f"exit code {done.returncode}"
        if silent := [line for line in problems if re.search(UNREACHABLE, line)]:
            raise Unreachable(" ".join(silent[0].removeprefix("E:").split()), hint(text, kind))
        raise DynoError(f"{' '.join(command[:2])} failed: {text}", hint(text, kind))
    return done.stdout


def hint(text: str, kind: str = "deb") -> str:
    """What to do about what apt says of packages or sources; empty when nothing is known of it."""
    remedy = next((remedy for pattern, remedy in HINTS if re.search(pattern, text)), "")
    return remedy.format(way_out=WAYS_OUT[kind])
