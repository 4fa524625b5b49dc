"""Wheels of another release than the one that is installed, from a folder in the place of an index."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dbdyno.errors import DynoError
from dbdyno.host import cache
from dbdyno.obtain import wheel

PACKAGE = wheel.WheelPackage("fake", "fake-engine", "libfake.so.2")


@pytest.fixture
def index(homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip brings wheels from."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for release in ("4.0.1.0", "4.0.7.4", "5.0.4.4"):
        offer(folder, release)
    return folder


def offer(folder: Path, release: str, file: str = "fake/libfake.so.2") -> None:
    described = f"fake_engine-{release}.dist-info"
    with zipfile.ZipFile(folder / f"fake_engine-{release}-py3-none-any.whl", "w") as archive:
        archive.writestr(file, release)
        archive.writestr(
            f"{described}/METADATA", f"Metadata-Version: 2.1\nName: fake-engine\nVersion: {release}\n"
        )
        archive.writestr(
            f"{described}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{described}/RECORD", "")


def test_the_latest_release_of_a_version_is_fetched_and_kept(index: Path) -> None:
    copy = wheel.fetch(PACKAGE, "4")
    assert (copy.release, copy.file.read_text()) == ("4.0.7.4", "4.0.7.4")
    assert wheel.copies(PACKAGE) == [copy]
    later = wheel.fetch(PACKAGE, "5")
    assert wheel.copies(PACKAGE) == [later, copy]


def test_a_release_that_no_index_has_is_told_in_pips_words(index: Path) -> None:
    with pytest.raises(DynoError, match="No matching distribution"):
        wheel.fetch(PACKAGE, "6")
    assert cache.shelf("engines").names() == []


def test_a_wheel_without_the_library_is_refused(index: Path) -> None:
    offer(index, "6.0.0.0", "fake/readme")
    with pytest.raises(DynoError, match=r"holds no libfake\.so\.2"):
        wheel.fetch(PACKAGE, "6")
    assert cache.shelf("engines").names() == []
