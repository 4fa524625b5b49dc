"""The files that a study refers to, found and read while the study is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dbdyno.frozen import Level
from dbdyno.study.document import Place
from dbdyno.study.files import NamedFile, StudyFile, read_file
from dbdyno.study.nouns import Factor, Workload
from dbdyno.study.section import SectionReader


def read_files(
    reader: SectionReader, workload: Workload | None, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> tuple[StudyFile, ...] | None:
    """The files that a study refers to, each once, in the order in which it names them. One that cannot be
    read is a mistake at its line. None where nobody can say which files there are."""
    if reader.catalogue.files is None:
        return None
    named: dict[str, tuple[NamedFile, Place]] = {}
    for file, path in _named(reader, workload, factors, settings):
        named.setdefault(file.path, (file, path))
    found = []
    for file, path in named.values():
        try:
            found.append(read_file(file, reader.folder))
        except OSError as error:
            where = f"{file.named_at}: " if file.named_at else ""
            hint = "its path counts from the folder of that file" if where else _hint(file, reader.folder)
            reader.note(path, f"{where}{file.path} cannot be read: {error.strerror}", hint)
    return tuple(found)


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
    for name, level in settings.items():
        yield from ((file, ("settings", name)) for file in files.of_level(name, level, reader.folder))
    for factor in factors:
        for index, level in enumerate(factor.levels):
            path = _place_of(reader, factor, index)
            yield from ((file, path) for file in files.of_level(factor.name, level, reader.folder))


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
