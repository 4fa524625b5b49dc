"""Files that a user brings: tarballs as vendors publish them, and images of containers."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host import cache
from dbdyno.host.launch import Launch
from dbdyno.obtain import brought, tarball
from dbdyno.obtain.architecture import of_this_machine
from dbdyno.study.nouns import Reference
from tests.cli.calls import complaint, dyno
from tests.needs import on_machine

SERVER = "#!/bin/sh\necho 'mariadbd  Ver 11.4.2-MariaDB for Linux on x86_64'\n"


def _tarball(folder: Path, text: str = SERVER, name: str = "mariadbd") -> Path:
    top = folder / "mariadb-11.4.2-linux-x86_64"
    (top / "bin").mkdir(parents=True)
    server = top / "bin" / name
    server.write_text(text)
    server.chmod(0o755)
    packed = folder / f"{top.name}.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(top, top.name)
    return packed


def _sum(packed: Path) -> str:
    return hashlib.sha256(packed.read_bytes()).hexdigest()


def test_a_server_is_found_in_a_tarball_which_is_unpacked_once(homes: Path) -> None:
    packed = _tarball(homes)
    obtaining = registry.engine("mariadb").obtaining
    found = [obtaining.locate(Reference("mariadb", path=str(packed))) for _ in range(2)]
    assert found[0] == found[1] and found[0].version == "11.4.2"
    assert _sum(packed) in found[0].origin and "no checksum lies beside it" in found[0].origin
    assert len(cache.shelf("engines").names()) == 1


def _restarted() -> None:
    """Forgets what this process knows, as its end does."""
    brought._unpacked.cache_clear()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read whole, in turn."""
    names, digest = [], hashlib.file_digest

    def counted(file: io.BufferedReader, kind: str) -> object:
        names.append(Path(file.name).name)
        return digest(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return names


def test_a_server_is_asked_and_hashed_again_only_where_it_is_another_one(
    homes: Path, hashed: list[str]
) -> None:
    asks = homes / "asks"
    packed = _tarball(homes, f'{SERVER}echo "$0 $*" >> {asks}\n')
    engines = {name: registry.engine(name).obtaining for name in ("mariadb", "mysql")}

    def located() -> str:
        _restarted()
        found = engines["mariadb"].locate(Reference("mariadb", path=str(packed)))
        added = [one for one in engines["mariadb"].offers() if str(packed) in one.source]
        assert [one.version for one in added] == [found.version]
        return found.digest

    assert dyno("engines", "add", str(packed)).stdout.startswith("mariadb 11.4.2")
    digests = {located() for _ in range(3)}
    assert len(digests) == 1 and len(asks.read_text().splitlines()) == 1
    # The tarball is read a second time while it is unpacked.
    assert hashed == [packed.name, packed.name, "mariadbd"]
    # The same bytes as another file.
    copy = packed.with_name("copy")
    copy.write_bytes(packed.read_bytes())
    copy.rename(packed)
    assert {located(), located()} == digests
    assert hashed[3:] == [packed.name] and len(asks.read_text().splitlines()) == 1
    # Another server in place of the one that was unpacked.
    [server] = cache.shelf("engines").folder.rglob("bin/mariadbd")
    server.write_text(server.read_text() + "# longer\n")
    assert {located(), located()}.isdisjoint(digests)
    assert hashed[4:] == ["mariadbd"] and len(asks.read_text().splitlines()) == 2


def test_what_one_engine_said_is_not_taken_for_another(homes: Path) -> None:
    """Both call their server mysqld."""
    packed = _tarball(homes, "#!/bin/sh\necho 'mysqld  Ver 9.7.0 for Linux on x86_64'\n", "mysqld")
    engines = [registry.engine(name).obtaining for name in ("mysql", "mariadb")]
    for _ in range(2):
        _restarted()
        assert engines[0].locate(Reference("mysql", path=str(packed))).version == "9.7.0"
        with pytest.raises(UserError, match="is not a MariaDB server"):
            engines[1].locate(Reference("mariadb", path=str(packed)))


@pytest.mark.parametrize("form", brought.SUMS)
def test_a_tarball_is_what_its_checksum_says(homes: Path, form: str) -> None:
    packed = _tarball(homes)
    sums = homes / form.format(name=packed.name)
    sums.write_text(f"{'0' * 64}  other.tar.gz\n{_sum(packed)}  {packed.name}\n")
    assert brought.unpacked(packed).checked == sums.name
    sums.write_text(f"{'0' * 64}  {packed.name}\n")
    packed.touch()
    with pytest.raises(UserError, match=f"but {sums.name} says {'0' * 64}"):
        brought.unpacked(packed)


@pytest.mark.parametrize("lost_bytes", [1, 20, 60])
def test_a_tarball_that_is_torn_is_refused_and_leaves_nothing(homes: Path, lost_bytes: int) -> None:
    """Even where every file in it is whole."""
    packed = _tarball(homes)
    packed.write_bytes(packed.read_bytes()[:-lost_bytes])
    with pytest.raises(UserError, match="cannot be unpacked"):
        brought.unpacked(packed)
    assert cache.shelf("engines").names() == []


def test_a_tarball_that_is_exchanged_before_it_is_unpacked_is_refused(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = _tarball(homes)
    other = _tarball(homes / "other", SERVER.replace("11.4.2", "11.4.3"))
    checked = brought._checked

    def exchanged(path: Path, sha256: str) -> str:
        other.rename(path)
        return checked(path, sha256)

    monkeypatch.setattr(brought, "_checked", exchanged)
    with pytest.raises(UserError, match="changed while it was unpacked"):
        brought.unpacked(packed)
    assert cache.shelf("engines").names() == []


Layer = Sequence[tuple[str, bytes | str | None]]
"""Members by their names: a file with its bytes, a link with where it leads, a folder."""
OWN = of_this_machine()


def _layer(members: Layer) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members:
            found = tarfile.TarInfo(name)
            if content is None:
                found.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                found.type, found.linkname = tarfile.SYMTYPE, content
            else:
                found.size, found.mode = len(content), 0o755
            archive.addfile(found, io.BytesIO(content if isinstance(content, bytes) else b""))
    return packed.getvalue()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blobs(layers: Sequence[bytes], architecture: str) -> tuple[dict[str, bytes], str, list[str]]:
    """The files of an image, and the digests of its configuration and of its layers."""
    config = json.dumps({"architecture": architecture, "os": "linux"}).encode()
    blobs = {f"blobs/sha256/{_digest(each)}": each for each in (config, *layers)}
    return blobs, _digest(config), [_digest(each) for each in layers]


def of_oci(layers: Sequence[bytes], architecture: str) -> dict[str, bytes]:
    files, config, digests = _blobs(layers, architecture)
    manifest = json.dumps(
        {"config": {"digest": f"sha256:{config}"}, "layers": [{"digest": f"sha256:{one}"} for one in digests]}
    ).encode()
    files[f"blobs/sha256/{_digest(manifest)}"] = manifest
    attestation = {"digest": f"sha256:{'0' * 64}", "platform": {"architecture": "unknown"}}
    own = {"digest": f"sha256:{_digest(manifest)}", "platform": {"architecture": architecture}}
    index = json.dumps({"manifests": [own, attestation]}).encode()
    files[f"blobs/sha256/{_digest(index)}"] = index
    named = {"org.opencontainers.image.ref.name": "toy:1"}
    outer = {"manifests": [{"digest": f"sha256:{_digest(index)}", "annotations": named}]}
    return {**files, "oci-layout": b"{}", "index.json": json.dumps(outer).encode()}


def of_docker(layers: Sequence[bytes], architecture: str) -> dict[str, bytes]:
    """As Docker wrote it before version 25: a folder for each layer."""
    files, config, digests = _blobs(layers, architecture)
    named = {f"{one}/layer.tar": files.pop(f"blobs/sha256/{one}") for one in digests}
    files[f"{config}.json"] = files.pop(f"blobs/sha256/{config}")
    manifest = [{"Config": f"{config}.json", "RepoTags": ["toy:1"], "Layers": list(named)}]
    return {**files, **named, "manifest.json": json.dumps(manifest).encode()}


def _saved(folder: Path, files: Mapping[str, bytes]) -> Path:
    path = folder / "image.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            found = tarfile.TarInfo(name)
            found.size = len(content)
            archive.addfile(found, io.BytesIO(content))
    return path


def zstd(content: bytes) -> bytes:
    if on_machine("zstd") is None:
        pytest.skip("needs zstd: apt install zstd")
    return subprocess.run(["zstd", "-c"], input=content, capture_output=True, check=True).stdout


PACKED: Mapping[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "zstd": zstd}


def image(folder: Path, *layers: Layer, form: str = "docker", packed: str = "") -> Path:
    assert OWN is not None
    made = [PACKED[packed](_layer(each)) for each in layers]
    files = {"docker": of_docker, "oci": of_oci}[form](made, OWN.of_images)
    return _saved(folder, files)


def tree(folder: Path) -> dict[str, str]:
    """What a root holds: each file's text, each link's end."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


LAYERS: tuple[Layer, ...] = (
    (
        ("usr/bin/old", b"old"), ("usr/bin/kept", b"kept"), ("bin", "usr/bin"), ("opt/a/lower", b"lower"),
        ("etc/folder/inner", b"inner"), ("var/run", "/run"), ("run", None), ("etc/file", b"a file"),
    ),
    (
        ("usr/bin/.wh.old", b""), ("opt/a/.wh..wh..opq", b""), ("opt/a/upper", b"upper"),
        ("etc/.wh.folder", b""), ("bin/added", b"by the link"), ("var/run/pid", b"1"),
        ("etc/file", None), ("etc/file/now", b"a folder"),
    ),
)  # fmt: skip
LAID = {
    "bin": "-> usr/bin",
    "etc/file/now": "a folder",
    "opt/a/upper": "upper",
    "run/pid": "1",
    "usr/bin/added": "by the link",
    "usr/bin/kept": "kept",
    "var/run": "-> ../run",
}


@pytest.mark.parametrize("form", ["docker", "oci"])
@pytest.mark.parametrize("packed", PACKED)
def test_layers_are_laid_over_each_other(homes: Path, form: str, packed: str) -> None:
    found = brought.unpacked(image(homes, *LAYERS, form=form, packed=packed))
    assert found.image == "toy:1" and "image toy:1, SHA-256" in found.words
    assert tree(found.folder) == LAID


def test_a_folder_in_the_layout_is_an_image(homes: Path) -> None:
    assert OWN is not None
    layout = homes / "layout"
    for name, content in of_oci([_layer(each) for each in LAYERS], OWN.of_images).items():
        (layout / name).parent.mkdir(parents=True, exist_ok=True)
        (layout / name).write_bytes(content)
    assert brought.is_brought(layout) and tree(brought.unpacked(layout).folder) == LAID
    assert (layout / "index.json").is_file()


def test_what_a_layer_hides_and_has_itself_stays(homes: Path) -> None:
    """An opaque folder hides what is below it, wherever in its layer that is said."""
    upper: Layer = (("a/own", b"own"), ("a/deep/own", b"own"), ("a/.wh..wh..opq", b""))
    found = brought.unpacked(image(homes, (("a/lower", b"x"), ("a/deep/lower", b"x")), upper))
    assert tree(found.folder) == {"a/own": "own", "a/deep/own": "own"}


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (((("../outside", b"x"),),), "outside of"),
        (((("usr/link", "../../outside"),),), "the link usr/link leads out of the image"),
        (((("a/b", "."), ("c", "a/b/../.."), ("c/outside", b"x")),), "outside of"),
        (((("a", None),), (("a/.wh...", b""),)), "hides nothing"),
        (((("a", "b"), ("b", "a"), ("a/file", b"x")),), "links that lead to themselves"),
        (((("a", "b"), ("b", "a"), ("not-here/../a/file", b"x")),), "links that lead to themselves"),
    ],
    ids=["name", "link", "link-through-a-link", "whiteout", "loop", "loop-behind-what-is-not-here"],
)
def test_nothing_leads_out_of_an_image(homes: Path, layers: tuple[Layer, ...], told: str) -> None:
    outside = homes / "cache" / "dyno" / "engines" / "outside"
    with pytest.raises(UserError, match=told):
        brought.unpacked(image(homes, *layers))
    assert cache.shelf("engines").names() == [] and not outside.exists()


def test_a_file_of_a_lower_layer_is_replaced_and_not_written_through(homes: Path) -> None:
    """A link to it, hard or symbolic, keeps what it led to."""
    lower = io.BytesIO()
    with tarfile.open(fileobj=lower, mode="w") as archive:
        for name, kind, leads in (("file", tarfile.REGTYPE, ""), ("hard", tarfile.LNKTYPE, "file")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, leads, 5 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"lower"))
        node = tarfile.TarInfo("dev/null")
        node.type = tarfile.CHRTYPE
        archive.addfile(node)
    assert OWN is not None
    files = of_docker([lower.getvalue(), _layer((("hard", b"upper"),))], OWN.of_images)
    found = brought.unpacked(_saved(homes, files))
    assert tree(found.folder) == {"file": "lower", "hard": "upper"}


def test_an_image_that_is_not_whole_is_refused(homes: Path) -> None:
    assert OWN is not None
    files = of_oci([_layer(LAYERS[0])], OWN.of_images)
    [layer] = [name for name in files if files[name].count(b"usr/bin/old")]
    with pytest.raises(UserError, match="is not what its digest says"):
        brought.unpacked(_saved(homes, {**files, layer: _layer(LAYERS[1])}))
    with pytest.raises(UserError, match="lacks its part blobs/sha256/"):
        brought.unpacked(_saved(homes, {name: files[name] for name in files if name != layer}))


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
@pytest.mark.parametrize("lost_bytes", [1, 20])
def test_a_layer_that_was_cut_before_it_was_packed_into_an_image_is_refused(
    homes: Path, packed: str, lost_bytes: int
) -> None:
    """An old archive of Docker tells no digest of a layer."""
    assert OWN is not None
    layer = PACKED[packed](_layer((("file", b"x" * 5000),)))
    with pytest.raises(UserError, match="cannot be unpacked"):
        brought.unpacked(_saved(homes, of_docker([layer[:-lost_bytes]], OWN.of_images)))


def test_an_image_of_another_machine_or_of_several_is_refused(homes: Path) -> None:
    for form in (of_docker, of_oci):
        with pytest.raises(UserError, match=r"for (unknown, )?vax"):
            brought.unpacked(_saved(homes, form([_layer(LAYERS[0])], "vax")))
    files = of_docker([_layer(LAYERS[0])], "")
    twice = json.dumps(json.loads(files["manifest.json"]) * 2).encode()
    with pytest.raises(UserError, match="holds 2 images"):
        brought.unpacked(_saved(homes, {**files, "manifest.json": twice}))


def test_a_layer_larger_than_the_disk_is_refused(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = image(homes, (("small", b"x"),), (("large", b"x" * 4096),))
    kept = tarball.unpack
    monkeypatch.setattr(brought, "unpack", lambda *given: (kept(*given), monkeypatch.setattr(
        tarball, "free_disk_bytes", lambda _folder: 2000)))  # fmt: skip
    with pytest.raises(UserError, match="no room for large"):
        brought.unpacked(path)


def test_an_image_of_a_real_server_is_run_without_a_daemon(fetched_engines: Path, homes: Path) -> None:
    """Made of the distribution's packages, in two layers of which the upper one replaces the server."""
    prefix = next(fetched_engines.glob("mariadb-11.8*/manifest.json")).parent
    assert OWN is not None
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for part in ("usr", "lib", "lib64", "bin"):
            if (prefix / part).exists():
                archive.add(prefix / part, part)
    server = (prefix / "usr/sbin/mariadbd").read_bytes()
    lower: Layer = (("usr/sbin/mariadbd", b"#!/bin/false"), ("etc/ld.so.conf", b"/opt/none\n"))
    upper: Layer = (("usr/sbin/mariadbd", server),)
    path = _saved(homes, of_docker([packed.getvalue(), _layer(lower), _layer(upper)], OWN.of_images))
    said = dyno("engines", "add", str(path))
    told = said.stdout + said.stderr
    assert told.startswith("mariadb 11.8.") and "image toy:1" in told
    path.unlink()
    engine = registry.engine("mariadb")
    installation = engine.obtaining.locate(Reference("mariadb", "11.8"))
    assert "image toy:1" in installation.origin and homes in installation.prefix.parents
    offered = [one for one in engine.obtaining.offers() if one.version.startswith("11.8")]
    assert [one.present for one in offered] == [True] and "image toy:1" in offered[0].source
    engine.life.initialise(installation, homes / "data", {})
    with tempfile.TemporaryDirectory(prefix="dyno-") as runtime:
        running = engine.life.start(installation, homes / "data", Path(runtime), {}, Launch())
        try:
            assert f"{running.version}+".startswith(installation.version.partition("+")[0])
        finally:
            running.stop()


def test_what_cannot_be_fetched_is_said_how_to_bring(homes: Path) -> None:
    with pytest.raises(DynoError, match=r"mysql@8\.4 cannot be fetched") as refused:
        registry.engine("mysql").obtaining.fetch("8.4", "", lambda _line: None)
    assert "docker save mysql:8.4" in refused.value.hint and "dyno engines add" in refused.value.hint


def test_a_file_without_a_server_is_not_added(homes: Path) -> None:
    path = image(homes, (("usr/bin/true", b"#!/bin/sh"),))
    said = complaint("engines", "add", str(path))
    assert "holds no server that runs here: the image toy:1 holds no MariaDB server" in said
    assert "is no tarball" in complaint("engines", "add", str(homes / "missing"))
