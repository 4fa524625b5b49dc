"""The layer of acts beside the load: it asks for nothing, and says what will be done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbdyno.engines import registry
from dbdyno.layers.meanwhile import MEANWHILE

LEVELS: dict[str, Any] = {"alter": "ALTER TABLE a", "backup": "none"}


def test_a_level_is_due_or_nothing_is_done() -> None:
    alter, backup = MEANWHILE.prove(LEVELS, SimpleNamespace())  # type: ignore[arg-type]
    assert alter.factor == "meanwhile.alter" and alter.in_effect
    assert alter.effective is not None and backup.effective is not None
    assert (alter.effective.value, backup.effective.value) == ("due at its moment", "nothing is done")
    assert MEANWHILE.ask(LEVELS, registry.engine("postgresql")) == ()
