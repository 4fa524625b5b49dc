"""A file that a user brings: a vendor's tarball, or an image as `docker save`, `podman save` and `skopeo`
write it. It is held against its checksum, and unpacked once into a private folder, without a daemon or root.

Formats of images: the archive of Docker (`manifest.json`, https://github.com/moby/docker-image-spec) and the
OCI image layout (`index.json`, https://github.com/opencontainers/image-spec). Layers and whiteouts are those
of OCI's `layer.md`. An absolute link means a place of the image, so it is made to lead there; one that climbs
out of the image is refused.

Each study that names such an engine locates it, and so does each list of engines. What was found of it once,
by reading the file and by asking the server, is kept until a file is another one.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import posixpath
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dbdyno.errors import UserError, remedy
from dbdyno.host.cache import WHOLE, keep_beside, shelf
from dbdyno.host.paths import made_whole
from dbdyno.host.writers import require_own
from dbdyno.obtain.architecture import of_this_machine
from dbdyno.obtain.tarball import harmless, unpack
from dbdyno.user_data.folder import digest_of_path, signature_of

ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
READ_BYTES = 1 << 20
MANIFEST, ADDED = WHOLE["engines"], "added.json"
ASKED = "asked-{engine}.json"
"""What the server in it said, of the engine that it was asked as."""
SUMS = ("{name}.sha256", "{name}.sha256sum", "sha256sums.txt", "SHA256SUMS")
"""Where a vendor's checksum may stand, beside the tarball."""
OF_DOCKER, OF_OCI = "manifest.json", "index.json"
LAYOUT = "oci-layout"
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
LIBRARIES = ("usr/local/lib", "lib64", "usr/lib64", "lib", "usr/lib")
ZSTD = b"\x28\xb5\x2f\xfd"
INDEXES_MOST = 8
"""An index that leads to another one so often leads nowhere."""


@dataclass(frozen=True)
class Unpacked:
    """The folder that a tarball was unpacked into, and its hash. `checked` is the file that told the same
    hash; empty where none lies beside it. The folder of an `image` is its root, and it is known by that
    name."""

    folder: Path
    sha256: str
    checked: str = ""
    image: str = ""

    @property
    def words(self) -> str:
        known = f"as {self.checked} says" if self.checked else "no checksum lies beside it"
        return f"{self.image and f'image {self.image}, '}SHA-256 {self.sha256}, {known}"


def is_brought(path: Path) -> bool:
    """Whether it is one by its name, or an image's layout in a folder."""
    return (path.name.endswith(ENDINGS) and path.is_file()) or (path / LAYOUT).is_file()


def unpacked(path: Path) -> Unpacked:
    """What a tarball or an image holds. Raises UserError for one that another user could have written, that
    is not what its checksum says, or that cannot be unpacked."""
    named = path / OF_OCI if path.is_dir() else path
    require_own(named)
    return _unpacked(path.absolute(), named.absolute(), signature_of(named, [named]))


@cache
def _unpacked(path: Path, named: Path, _signature: str) -> Unpacked:
    """The index of a layout names all its parts by their hashes, so its own stands for the whole."""
    sha256 = digest_of_path(named)
    checked = "" if path.is_dir() else _checked(path, sha256)
    thing = shelf("engines").once(_name(sha256), lambda making: _make(path, sha256, making))
    return replace(_read(thing), checked=checked)


def library_folders(root: Path) -> list[Path]:
    """Where an image's own loader would look, as its configuration says, and without it (ld.so(8))."""
    named = [root / "etc/ld.so.conf", *sorted((root / "etc/ld.so.conf.d").glob("*.conf"))]
    lines = [
        line.strip()
        for file in named
        if file.is_file()
        for line in file.read_text(errors="replace").splitlines()
    ]
    folders = [line.lstrip("/") for line in lines if line.startswith("/")]
    places = [root / folder for folder in dict.fromkeys([*folders, *LIBRARIES])]
    return [place for place in places if place.is_dir()]


def take_up(path: Path, engine: str) -> None:
    """Has a file's engine found by its version from now on."""
    with made_whole(_thing(unpacked(path)) / ADDED) as making:
        making.write_text(json.dumps({"engine": engine, "file": str(path.absolute())}))


@dataclass(frozen=True)
class Said:
    """What a server says of its version, and what identifies its bytes."""

    version: str
    digest: str


def asked_once(found: Unpacked, engine: str, binary: Path, ask: Callable[[], Said]) -> Said:
    """What the server in it said when it was asked as one of this engine. It is asked again where the binary
    is another one or was changed since."""
    place, signature = _thing(found) / ASKED.format(engine=engine), signature_of(binary, [binary])
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(place.read_bytes())
        if (kept["binary"], kept["signature"]) == (str(binary), signature):
            return Said(kept["version"], kept["digest"])
    said = ask()
    # What was changed meanwhile is another one.
    if signature_of(binary, [binary]) == signature:
        keep_beside(place, json.dumps({"binary": str(binary), "signature": signature, **asdict(said)}))
    return said


def taken_up(engine: str) -> Iterator[tuple[Unpacked, str]]:
    """What was added of an engine, each with the file that it was."""
    shelved = shelf("engines")
    for name in shelved.names():
        thing = shelved.folder / name
        with suppress(OSError, ValueError, KeyError, TypeError):
            account = json.loads((thing / ADDED).read_bytes())
            if account["engine"] == engine and shelved.take(name) is not None:
                yield _read(thing), str(account["file"])


def _thing(found: Unpacked) -> Path:
    return shelf("engines").folder / _name(found.sha256)


def _name(sha256: str) -> str:
    return f"brought-{sha256[:24]}"


def _read(thing: Path) -> Unpacked:
    """What lies on the shelf."""
    account = json.loads((thing / MANIFEST).read_bytes())
    root = thing / "root"
    if not root.is_dir():
        return Unpacked(_top(thing / "unpacked"), account["sha256"])
    return Unpacked(root, account["sha256"], image=account.get("image") or Path(account["tarball"]).name)


def _checked(path: Path, sha256: str) -> str:
    """The file beside the tarball that tells its hash; empty where there is none."""
    for form in SUMS:
        sums = path.with_name(form.format(name=path.name))
        if not sums.is_file():
            continue
        named = rf"^([0-9a-fA-F]{{64}})(?:\s+\*?(?:\./)?{re.escape(path.name)})?\s*$"
        found = re.search(named, sums.read_text(errors="replace"), re.MULTILINE)
        if found is None:
            continue
        if found[1].lower() != sha256:
            raise UserError(
                f"{path} has SHA-256 {sha256}, but {sums.name} says {found[1].lower()}",
                "download it again from its vendor",
            )
        return sums.name
    return ""


def _make(path: Path, sha256: str, making: Path) -> tuple[str, str]:
    account = {"tarball": str(path), "sha256": sha256}
    try:
        if not path.is_dir():
            _take_out(path, sha256, making / "unpacked")
        parts = path if path.is_dir() else making / "unpacked"
        if _is_image(parts):
            image = _read_image(parts, str(path))
            _lay(image, making / "root")
            account["image"] = ", ".join(image.names)
            shutil.rmtree(making / "unpacked", ignore_errors=True)
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        told = f"{path} cannot be unpacked: {error}"
        raise UserError(told, remedy(error, torn="download it again")) from None
    # What makes an engine whole on its shelf.
    (making / MANIFEST).write_text(json.dumps(account, indent=1) + "\n")
    return path.name, str(path)


def _take_out(path: Path, sha256: str, target: Path) -> None:
    with path.open("rb") as file, tarfile.open(fileobj=file) as archive:
        unpack(archive, target)
        _read_out(archive)
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        # Its checksum was held against other bytes than were unpacked.
        raise UserError(f"{path} was changed while it was unpacked", "have nobody write it, then try again")


def _read_out(archive: tarfile.TarFile) -> None:
    """What follows the last file is not read otherwise, and it holds the checksum of what was packed."""
    while archive.fileobj is not None and archive.fileobj.read(READ_BYTES):
        pass


def _top(folder: Path) -> Path:
    """The one folder that a tarball holds, as vendors pack them; else all of it."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


@dataclass(frozen=True)
class ImageArchive:
    """An image, whose `layers` are files, the lowest first, each with its digest where the format tells one.
    `names` are its tags."""

    layers: tuple[tuple[Path, str], ...]
    architecture: str
    names: tuple[str, ...]


def _is_image(folder: Path) -> bool:
    """Whether what was unpacked here, or lies here as a layout, is an image."""
    return (folder / LAYOUT).is_file() or _of_docker(folder) is not None


def _read_image(folder: Path, what: str) -> ImageArchive:
    """The one image in a folder. Raises UserError where there are several, where none is for this machine,
    or where a part is missing; it names the file `what`."""
    manifests = _of_docker(folder)
    found = _docker(folder, manifests, what) if manifests is not None else _oci(folder, what)
    own = _own()
    if found.architecture not in ("", own):
        raise UserError(
            f"{what} is an image for {found.architecture}, and this machine is {own}",
            f"save the image of that platform: `docker pull --platform linux/{own}`, then `docker save`",
        )
    return found


def _lay(image: ImageArchive, root: Path) -> None:
    """Lays the layers over each other in a folder that is made. Raises TarError for what would lead out of
    it."""
    root.mkdir()
    for path, digest in image.layers:
        with path.open("rb") as file:
            if digest and _sha256(file) != digest.removeprefix("sha256:"):
                raise tarfile.TarError(f"the layer {path.name[:16]} is not what its digest says")
            with _tar(file) as archive:
                archive.extraction_filter = lambda member, _folder: member
                archive.extractall(root, members=_over(archive, root))


def _own() -> str:
    """How images call this machine."""
    own = of_this_machine()
    return own.of_images if own is not None else os.uname().machine


def _of_docker(folder: Path) -> list[Mapping[str, Any]] | None:
    """What `manifest.json` says, where it is that of an image."""
    try:
        found = json.loads((folder / OF_DOCKER).read_bytes())
    except (OSError, ValueError):
        return None
    if isinstance(found, list) and all(isinstance(one, dict) and "Layers" in one for one in found):
        return found
    return None


def _docker(folder: Path, manifests: list[Mapping[str, Any]], what: str) -> ImageArchive:
    if len(manifests) != 1:
        names = [name for one in manifests for name in one.get("RepoTags") or ()]
        raise UserError(
            f"{what} holds {len(manifests)} images ({', '.join(names) or 'without names'})",
            "save one of them alone",
        )
    [manifest] = manifests
    config = _json(folder, str(manifest["Config"]), what)
    # A layer that several images share is a link to another one's file in old archives.
    layers = tuple(
        (_part(folder, str(layer), what), _named_digest(str(layer))) for layer in manifest["Layers"]
    )
    return ImageArchive(layers, str(config.get("architecture", "")), tuple(manifest.get("RepoTags") or ()))


def _named_digest(layer: str) -> str:
    """The digest that a layer's place tells: `blobs/sha256/...`."""
    place = PurePosixPath(layer)
    return f"sha256:{place.name}" if place.parent.name == "sha256" else ""


def _oci(folder: Path, what: str) -> ImageArchive:
    index, names = _json(folder, OF_OCI, what), list[str]()
    for _ in range(INDEXES_MOST):
        chosen = _chosen(index.get("manifests") or [], what)
        if name := (chosen.get("annotations") or {}).get("org.opencontainers.image.ref.name"):
            names.append(str(name))
        document = _json(folder, _blob(chosen, what), what, str(chosen["digest"]))
        if "layers" in document:
            break
        index = document
    else:
        raise UserError(f"the indexes of {what} lead to no image", "save the image again")
    config = _json(folder, _blob(document["config"], what), what)
    layers = tuple(
        (_part(folder, _blob(layer, what), what), str(layer["digest"])) for layer in document["layers"]
    )
    return ImageArchive(layers, str(config.get("architecture", "")), tuple(names))


def _chosen(manifests: list[Mapping[str, Any]], what: str) -> Mapping[str, Any]:
    """The one for this machine, of those that an index names."""
    own = _own()
    platforms = [str((one.get("platform") or {}).get("architecture", "")) for one in manifests]
    # Attestations stand among images, for a platform that nothing has.
    fitting = [one for one, name in zip(manifests, platforms, strict=True) if name in ("", own)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UserError(f"{what} holds {len(fitting)} images", "save one of them alone")
    held = ", ".join(sorted(set(platforms))) or "nothing"
    raise UserError(
        f"{what} holds images for {held}, and this machine is {own}", "save the one of this machine"
    )


def _blob(descriptor: Mapping[str, Any], what: str) -> str:
    kind, _, digest = str(descriptor.get("digest", "")).partition(":")
    if kind != "sha256" or not digest.isalnum():
        raise UserError(f"{what} names a part by {kind or 'nothing'}, not by its SHA-256", "save it again")
    return f"blobs/{kind}/{digest}"


def _part(folder: Path, name: str, what: str) -> Path:
    """A file below the folder. Raises UserError where it is missing or lies elsewhere."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise UserError(f"{what} lacks its part {name}", "save or copy the image again")
    return path


def _json(folder: Path, name: str, what: str, digest: str = "") -> Mapping[str, Any]:
    content = _part(folder, name, what).read_bytes()
    if digest and hashlib.sha256(content).hexdigest() != digest.removeprefix("sha256:"):
        raise UserError(f"{name} of {what} is not what its digest says", "save or copy the image again")
    try:
        found = json.loads(content)
    except ValueError as error:
        raise UserError(f"{name} of {what} is no JSON: {error}", "save the image again") from None
    if not isinstance(found, dict):
        raise UserError(f"{name} of {what} is not of an image", "save the image again")
    return found


def _sha256(file: BufferedReader) -> str:
    found = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return found


@contextmanager
def _tar(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """A layer, whatever it is packed with. Raises TarError where zstd says that it is not whole."""
    start = file.read(len(ZSTD))
    file.seek(0)
    if start != ZSTD:
        with tarfile.open(fileobj=file) as archive:
            yield archive
            _read_out(archive)
        return
    if (program := shutil.which("zstd")) is None:
        raise UserError("a layer is packed with zstd, which is not on this machine", "install zstd")
    # A program begins where the file itself stands, whatever of it is held here.
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    with subprocess.Popen(
        [program, "-dc"], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        try:
            with tarfile.open(fileobj=child.stdout, mode="r|") as archive:
                yield archive
            while child.stdout.read(READ_BYTES):
                pass
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise tarfile.TarError("a layer that zstd packed is damaged or cut")


def _over(archive: tarfile.TarFile, root: Path) -> Iterator[tarfile.TarInfo]:
    """The members of a layer, each with its place made free of what lower layers have there."""
    of_this_layer = set[Path]()
    usable = (member for member in archive if not member.isdev())
    for member in harmless(usable, root):
        place = _place(root, member.name)
        name = place.name
        if name == OPAQUE:
            _empty(place.parent, of_this_layer)
            continue
        if name.startswith(WHITEOUT):
            _remove(place.parent / _hidden(name))
            continue
        if os.path.lexists(place) and not (member.isdir() and place.is_dir() and not place.is_symlink()):
            _remove(place)
        if member.issym():
            member.linkname = _link(member)
        of_this_layer |= {place, *place.parents}
        yield member


def _place(root: Path, name: str) -> Path:
    """Where a member goes: its folder's links are followed, its own is not."""
    path = root / name
    return path.parent.resolve() / path.name if path != root else root


def _hidden(name: str) -> str:
    hidden = name.removeprefix(WHITEOUT)
    if hidden in ("", ".", ".."):
        raise tarfile.TarError(f"{name!r} hides nothing that has a name")
    return hidden


def _link(member: tarfile.TarInfo) -> str:
    """Where a link of the image leads, from its own folder."""
    here = posixpath.dirname(posixpath.normpath(member.name))
    if member.linkname.startswith("/"):
        return os.path.relpath(member.linkname.lstrip("/") or ".", here or ".")
    leads = posixpath.normpath(posixpath.join(here, member.linkname))
    if leads == ".." or leads.startswith("../"):
        raise tarfile.TarError(f"the link {member.name} leads out of the image, to {member.linkname}")
    return member.linkname


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _empty(folder: Path, kept: set[Path]) -> None:
    """Removes what lower layers put into a folder."""
    for each in list(folder.iterdir()) if folder.is_dir() else ():
        if each not in kept:
            _remove(each)
        elif each.is_dir() and not each.is_symlink():
            _empty(each, kept)
