"""The code of a build beside that of another: compared once for each pair, and kept with the build."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from dbdyno.analyse.code import compare_code
from dbdyno.frozen import Frozen
from dbdyno.obtain.source.making import PREFIX, account_of
from dbdyno.records.binary import CodeBeside

METHOD = 1
"""Rises when builds are compared in another way: what was kept is then compared again."""


class _Kept(Frozen):
    method: int
    code: CodeBeside


def code_beside(build: Path, program: str, against: Path, program_against: str) -> CodeBeside:
    """How the program in the folder of a build differs from that of another one. Raises UserError where one
    of the two cannot be read."""
    place = build / f"beside-{account_of(against).key}.json"
    kept = _kept(place)
    if kept is None:
        # Here, because a run without builds needs no disassembler.
        from dbdyno.obtain.binary import read_pair

        files = (folder / PREFIX / name for folder, name in ((against, program_against), (build, program)))
        kept = compare_code(*read_pair(*files)).beside
        _keep(place, kept)
    return kept


def _kept(place: Path) -> CodeBeside | None:
    """What was kept; None where nothing was, or where another method found it."""
    try:
        found = _Kept.model_validate_json(place.read_text())
    except (OSError, ValidationError):
        return None
    return found.code if found.method == METHOD else None


def _keep(place: Path, code: CodeBeside) -> None:
    # A cache that this user cannot write, another one filled.
    with suppress(PermissionError):
        written = place.with_suffix(f".{os.getpid()}")
        written.write_text(_Kept(method=METHOD, code=code).model_dump_json(indent=1) + "\n")
        written.rename(place)
