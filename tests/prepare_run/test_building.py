"""Builds before a run: what cannot be made is told, each cause once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import built as engines_built
from dbdyno.errors import DynoError
from dbdyno.obtain.source import package
from dbdyno.obtain.source.tree import SourceTree
from dbdyno.prepare_run.building import make_builds, wishes_of
from dbdyno.prepare_run.study_here import study_at

STUDY = """
title  = "Which build is fastest?"
engine = "sqlite"

[workload]
name = "tpcb"

[settings]
"source.origin" = "debian"

[factors]
"build.optimisation" = ["-O2", "-O3"]
"""


@pytest.mark.engine
@pytest.mark.usefixtures("homes")
def test_builds_without_their_source_tell_its_cause_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> SourceTree:
        raise DynoError("the mirror lacks it", "name another")

    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    monkeypatch.setattr(package, "kept", lambda _: None)
    monkeypatch.setattr(package, "fetched", refuse)
    (tmp_path / "study.toml").write_text(STUDY)
    study = study_at(tmp_path / "study.toml")
    told: list[str] = []
    make_builds(study, wishes_of(study), lambda _: 0, told.append)
    assert told == [
        "gcc -O2: the mirror lacks it; name another",
        "gcc -O3: the same cause as gcc -O2",
    ]
