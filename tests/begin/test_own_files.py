"""A study of two configuration files varies all that differs, and its counts add up to the lines of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.begin.catalogue import located
from dbdyno.errors import DynoError, UserError
from tests.begin.own_files_cases import POOLS, asked_of, counted, drawn


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("engine", POOLS)
def test_all_that_differs_is_varied_or_named(
    homes_with_engines: Path, tmp_path: Path, engine: str, seed: int
) -> None:
    pair = drawn(engine, seed)
    # An earlier test had other folders.
    located.cache_clear()
    try:
        asked = asked_of(engine, pair, tmp_path)
    except UserError:
        raise
    except DynoError as missing:
        pytest.skip(f"{engine} is not here: {missing.message}")
    names = [name.removeprefix("config.") for name in (one.name for one in asked.question.factors)]
    assert pair.differing <= {f"config.{name}" for name in names}
    lengths = {name: len(text.splitlines()) for name, text in zip("ab", pair.texts, strict=True)}
    assert counted(asked.told) == {f"{name}.cnf": (length, length) for name, length in lengths.items()}
    told = "\n".join(asked.told)
    for one in asked.question.factors:
        assert f"varied: {one.name.removeprefix('config.')}: " in told and one.levels[0] != one.levels[1]
