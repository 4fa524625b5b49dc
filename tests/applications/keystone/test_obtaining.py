"""Where Keystone is found, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.applications.keystone.obtaining import locate
from dbdyno.errors import EngineMissing
from dbdyno.study.nouns import Application
from tests.applications.keystone.obtaining_cases import ALL, environment


def test_an_environment_that_is_named_is_taken_with_all_its_packages(tmp_path: Path) -> None:
    one = locate(Application(name="keystone", path=str(environment(tmp_path / "one", ALL))))
    assert (one.version, one.command) == ("30.0.0", (str(tmp_path / "one" / "bin" / "gunicorn"),))
    other = locate(
        Application(name="keystone", path=str(environment(tmp_path / "two", {**ALL, "SQLAlchemy": "2.0.1"})))
    )
    assert other.digest != one.digest


def test_the_cache_is_searched_for_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shelf = tmp_path / "dyno" / "applications"
    environment(shelf / "keystone-30.0.0", ALL)
    for older in ("9.0.0", "29.0.0"):
        environment(shelf / f"keystone-{older}", {**ALL, "keystone": older})
    assert locate(Application(name="keystone")).version == "30.0.0"
    assert locate(Application(name="keystone", version="29")).version == "29.0.0"
    with pytest.raises(EngineMissing, match="Keystone 28 is not on this machine") as missing:
        locate(Application(name="keystone", version="28"))
    assert "pip install keystone==28 gunicorn PyMySQL" in missing.value.hint


def test_what_an_interrupted_pip_left_behind_is_no_package(tmp_path: Path) -> None:
    whole = locate(Application(name="keystone", path=str(environment(tmp_path, ALL))))
    (tmp_path / "lib" / "python3.11" / "site-packages" / "~ip-24.0.dist-info").mkdir()
    assert locate(Application(name="keystone", path=str(tmp_path))) == whole


def test_what_lacks_its_server_says_how_to_add_it(tmp_path: Path) -> None:
    lacking = environment(tmp_path, {"keystone": "30.0.0", "PyMySQL": "1.2.4"})
    with pytest.raises(EngineMissing, match="lacks its server") as missing:
        locate(Application(name="keystone", path=str(lacking)))
    assert "gunicorn" in missing.value.hint
