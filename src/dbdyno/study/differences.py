"""The files that a study refers to: found and read while the study is, and the first place at which those of
two studies differ."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dbdyno.frozen import Level
from dbdyno.study.document import Place
from dbdyno.study.files import FileKind, NamedFile, StudyFile, read_file
from dbdyno.study.front import misnamed
from dbdyno.study.nouns import Factor, Workload
from dbdyno.study.pacing import RateFile, schedule_form
from dbdyno.study.phases import LoadPhase, options_of
from dbdyno.study.section import SectionReader
from dbdyno.study.values import ValueFault


def read_files(
    reader: SectionReader,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
    phases: Sequence[LoadPhase] = (),
) -> tuple[StudyFile, ...] | None:
    """The files that a study refers to, each once, in the order in which it names them. One that cannot be
    read is a mistake at its line. None where nobody can say which files there are."""
    if reader.catalogue.files is None:
        return None
    named: dict[str, tuple[NamedFile, Place]] = {}
    of_phases = _of_phases(reader, workload, phases)
    for file, path in (*_named(reader, workload, factors, settings), *of_phases):
        named.setdefault(file.path, (file, path))
    found = []
    for file, path in named.values():
        try:
            found.append(read_file(file, reader.folder))
            for told, hint in misnamed(found[-1].text or "") if file.kind is FileKind.FRONT else ():
                reader.note(path, f"{told} in {file.path}", hint)
        except OSError as error:
            where = f"{file.named_at}: " if file.named_at else ""
            hint = "its path counts from the folder of that file" if where else _hint(file, reader.folder)
            reader.note(path, f"{where}{file.path} cannot be read: {error.strerror}", hint)
    _judge_schedules(reader, workload, factors, {file.path for file in found})
    return tuple(found)


def _judge_schedules(
    reader: SectionReader, workload: Workload | None, factors: Sequence[Factor], read: Collection[str]
) -> None:
    """Notes once what is wrong with the lines of a schedule's file that could be read."""
    told = set()
    for schedule, path in _schedules(workload, factors, reader):
        try:
            if {schedule.path, os.path.normpath(schedule.path)} & set(read):
                schedule.points(reader.folder)
        except ValueFault as fault:
            if fault.message not in told:
                reader.note(path, fault.message, fault.hint)
            told.add(fault.message)


def _schedules(
    workload: Workload | None, factors: Sequence[Factor], reader: SectionReader
) -> Iterator[tuple[RateFile, Place]]:
    """Each schedule that is in a file, in any variant, with what names it there."""
    varied = [factor for factor in factors if factor.name == "workload.schedule"]
    texts: list[tuple[Any, Place]] = [
        (level, _place_of(reader, factor, index))
        for factor in varied
        for index, level in enumerate(factor.levels)
    ]
    if workload is not None and workload.schedule and not varied:
        texts = [(workload.schedule, ("workload", "schedule"))]
    for text, path in texts:
        if isinstance(found := schedule_form(text), RateFile):
            yield found, path


def _hint(file: NamedFile, folder: Path) -> str:
    return "" if Path(file.path).is_absolute() else f"its path counts from {folder}"


def _named(
    reader: SectionReader, workload: Workload | None, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> Iterator[tuple[NamedFile, Place]]:
    """Every file that a study names, in any of its variants, with what names it there."""
    files = reader.catalogue.files
    assert files is not None
    if workload is not None:
        for options, path in _each_options(reader, workload, factors):
            for file in files.of_workload(workload.name, options, reader.folder):
                yield file, path or ("workload", file.option)
    for schedule, path in _schedules(workload, factors, reader):
        yield NamedFile(FileKind.SCHEDULE, schedule.path), path
    for name in reader.table(("front",)):
        place: Place = ("front", name, "configuration")
        given = reader.at(place)
        for path in given if isinstance(given, list) else [given]:
            if isinstance(path, str):
                yield NamedFile(FileKind.FRONT, path), place
    for name, level in settings.items():
        yield from ((file, ("settings", name)) for file in files.of_level(name, level, reader.folder))
    for factor in factors:
        for index, level in enumerate(factor.levels):
            path = _place_of(reader, factor, index)
            yield from ((file, path) for file in files.of_level(factor.name, level, reader.folder))


def _of_phases(
    reader: SectionReader, workload: Workload | None, phases: Sequence[LoadPhase]
) -> Iterator[tuple[NamedFile, Place]]:
    files = reader.catalogue.files
    for index, phase in enumerate(phases if workload is not None and files is not None else ()):
        for key, name in phase.files.items():
            assert workload is not None and files is not None, "they were asked for"
            options = {**workload.options, **options_of(name)}
            for file in files.of_workload(workload.name, options, reader.folder):
                yield file, ("phases", index, key)


def _each_options(
    reader: SectionReader, workload: Workload, factors: Sequence[Factor]
) -> Iterator[tuple[Mapping[str, Level], Place]]:
    """The options of the baseline, and those with each other text that a factor gives one of them."""
    texts = [factor for factor in factors if factor.layer == "workload" and factor.knob in workload.options]
    baseline = {factor.knob: factor.baseline for factor in texts}
    yield {**workload.options, **baseline}, ()
    for factor in texts:
        for index, level in enumerate(factor.levels):
            if isinstance(level, str):
                yield {**workload.options, **baseline, factor.knob: level}, _place_of(reader, factor, index)


def _place_of(reader: SectionReader, factor: Factor, index: int) -> Place:
    """Where a level of a factor stands. In a list of variants that is the first one that has it."""
    listed = reader.at(("variants",))
    if isinstance(listed, list):
        for number, variant in enumerate(listed):
            levels = variant.get("levels") if isinstance(variant, dict) else None
            if isinstance(levels, dict) and levels.get(factor.name) == factor.levels[index]:
                return ("variants", number, "levels", factor.name)
    return (*reader.place_of(factor), index)


SHOWN_MOST = 120
"""Characters of a text that a message shows."""
BEFORE = 40
"""How many of them stand before the first that differs."""
ABSENT = "nothing"
ENTRIES = {
    "transactions": "transaction",
    "tables": "table",
    "invariants": "invariant",
    "statements": "statement",
}
"""One entry of a list of a workload's file."""
OF_THE_LOAD = frozenset((FileKind.WORKLOAD, FileKind.VECTORS, FileKind.SCHEDULE))
"""Kinds of files that belong to what is asked of a server, and not to the server."""

Files = Sequence[StudyFile] | None


def meaning_of(files: Files, kinds: Collection[FileKind] = tuple(FileKind)) -> tuple[tuple[str, str], ...]:
    """What the files of these kinds say, by their paths."""
    return tuple(sorted((file.path, file.meaning) for file in files or () if file.kind in kinds))


def difference(left: Files, right: Files, kinds: Collection[FileKind] = tuple(FileKind)) -> str:
    """The first difference between files of these kinds, from left to right; empty where they say the same,
    or where those of a side are not known."""
    if left is None or right is None or meaning_of(left, kinds) == meaning_of(right, kinds):
        return ""
    theirs = {file.path: file for file in right if file.kind in kinds}
    ours = {file.path: file for file in left if file.kind in kinds}
    for path in {**ours, **theirs}:
        one, other = ours.get(path), theirs.get(path)
        if one is None or other is None:
            return f"{path}: {_size(one)} -> {_size(other)}"
        if one.meaning != other.meaning:
            return f"{path}, {_inside(one, other)}"
    return ""


def _size(file: StudyFile | None) -> str:
    return ABSENT if file is None else f"{file.size_bytes:,} bytes, sha256 {file.digest[:12]}"


def _inside(one: StudyFile, other: StudyFile) -> str:
    """Where two versions of a file differ, and in what."""
    if one.text is None or other.text is None:
        return f"{_size(one)} -> {_size(other)}"
    if one.path.endswith(".toml") and (found := _in_toml(one.text, other.text)):
        return found
    if one.path.endswith(".sql"):
        return _in_list("statement", _statements(one.text), _statements(other.text))
    return _in_list("line", one.text.splitlines(), other.text.splitlines())


def _statements(text: str) -> list[str]:
    """The statements of SQL or of a pgbench script, roughly: each ends with a semicolon or stands alone."""
    return [
        part for part in (" ".join(part.split()) for part in re.split(r";\s*$", text, flags=re.M)) if part
    ]


def _in_list(what: str, left: Sequence[str], right: Sequence[str]) -> str:
    pairs = enumerate(zip_longest(left, right), start=1)
    differing = ((number, *pair) for number, pair in pairs if pair[0] != pair[1])
    number, one, other = next(differing, (0, "", ""))
    return f"{what} {number}: {_shown(one, other)}" if number else "in spaces and ends of lines alone"


def _in_toml(left: str, right: str) -> str:
    """Empty where a text is none in TOML."""
    try:
        one, other = tomllib.loads(left), tomllib.loads(right)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    for path, here, there in _differing(one, other, ()):
        return f"{', '.join(_place(path, one, other))}: {_shown(here, there)}"
    return ""


def _differing(left: Any, right: Any, path: Place) -> Iterator[tuple[Place, Any, Any]]:
    """Every place at which two values differ, with what stands there."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in {**left, **right}:
            yield from _differing(left.get(key), right.get(key), (*path, key))
    elif isinstance(left, list) and isinstance(right, list):
        for index, (one, other) in enumerate(zip_longest(left, right)):
            yield from _differing(one, other, (*path, index))
    elif left != right or type(left) is not type(right):
        yield path, left, right


def _place(path: Place, left: Any, right: Any) -> Iterator[str]:
    """A place in words: `transaction "pay"`, `statement 2`."""
    entry = ""
    for part in path:
        left, right = _at(left, part), _at(right, part)
        if isinstance(part, int):
            names = [one.get("name") for one in (left, right) if isinstance(one, dict)]
            name = next((name for name in names if isinstance(name, str)), None)
            yield f'{entry} "{name}"' if name else f"{entry} {part + 1}"
        elif part in ENTRIES:
            entry = ENTRIES[part]
        elif part != "sql":
            entry = part
            if not isinstance(left or right, list):
                yield part


def _at(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def _shown(left: Any, right: Any) -> str:
    """Two values beside each other; of long ones the part that differs."""
    one, other = (ABSENT if value is None else " ".join(str(value).split()) for value in (left, right))
    pairs = enumerate(zip(one, other, strict=False))
    first = next((index for index, pair in pairs if pair[0] != pair[1]), min(len(one), len(other)))
    start = max(0, first - BEFORE) if max(len(one), len(other)) > SHOWN_MOST else 0
    return f"{_part(one, start)} -> {_part(other, start)}"


def _part(text: str, start: int) -> str:
    shown = text[start : start + SHOWN_MOST]
    return f"{'...' if start else ''}{shown}{'...' if len(text) > start + SHOWN_MOST else ''}"
