"""How an engine is put into the guest of an emulated machine, and asked there once the machine is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dbdyno.obtain.debian import Recipe
from dbdyno.records.record import Check


class Guest(Protocol):
    """An engine's program in a guest without a disk or a network. `RECIPE` are its packages, `PROGRAM` its
    path in them, and `ASK` a command of the guest's shell that has it answer, a line for each answer."""

    RECIPE: Recipe
    PROGRAM: str
    ASK: str

    def data(self) -> Mapping[str, bytes]:
        """The files that the engine's data are, by their paths in the guest."""
        ...

    def check(self, answers: Sequence[str]) -> Check:
        """Whether the invariants hold by what it answered."""
        ...
