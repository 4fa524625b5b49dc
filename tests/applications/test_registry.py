"""The application that a study asks for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dbdyno.applications.registry import installed
from dbdyno.errors import EngineMissing
from dbdyno.study.nouns import Application
from tests.applications.keystone.obtaining_cases import ALL, environment


def test_an_application_is_looked_for_once_in_a_process(tmp_path: Path) -> None:
    wish = Application(name="keystone", path=str(environment(tmp_path / "one", ALL)))
    first = installed(wish)
    shutil.rmtree(tmp_path / "one")
    again = installed(wish.model_copy(update={"workers": 7}))
    assert first is not None and again is not None
    assert again.installation == first.installation
    assert (again.wish.workers, again.product.name) == (7, "keystone")


def test_one_that_is_missing_is_looked_for_again(tmp_path: Path) -> None:
    wish = Application(name="keystone", path=str(tmp_path / "later"))
    with pytest.raises(EngineMissing):
        installed(wish)
    environment(tmp_path / "later", ALL)
    assert installed(wish) is not None
    assert installed(None) is None
