"""Which files make up one repetition: a benchmark that ran once, in one file or in one for each thread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import UserError

OF_A_THREAD = re.compile(r"(?P<run>.*?\.\d+)(?:\.(?P<thread>\d+))?")
"""pgbench's names: `pgbench_log.4711` is of the first thread, `pgbench_log.4711.1` of the second. What stands
before the process's number may end in a digit (`--log-prefix=rep1`)."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Endings that say nothing of which run a log is of."""


@dataclass(frozen=True)
class Repetition:
    """The files of one benchmark that ran once."""

    name: str
    files: tuple[Path, ...]


def of_threads(paths: Sequence[Path]) -> list[Repetition]:
    """The repetitions of pgbench that lie at these paths: the files of a process's threads belong together.

    A path is a file or a folder. Raises UserError where one does not exist, is empty, or where the file of a
    thread is missing.
    """
    threads: dict[str, dict[int, Path]] = {}
    for path in _files(paths):
        name = OF_A_THREAD.fullmatch(_unpacked(path).name)
        run = str(path.parent / name["run"]) if name else str(path)
        threads.setdefault(run, {})[int(name["thread"] or 0) if name else 0] = path
    return [Repetition(run, _whole(run, files)) for run, files in threads.items()]


def one_each(paths: Sequence[Path]) -> list[Repetition]:
    """The repetitions at these paths where each has a file of its own."""
    return [Repetition(str(path), (path,)) for path in _files(paths)]


def _whole(run: str, files: dict[int, Path]) -> tuple[Path, ...]:
    missing = [number for number in range(max(files)) if number not in files]
    if missing:
        lacking = f"{run}.{missing[0]}" if missing[0] else run
        raise UserError(
            f"{lacking} is missing: each thread of pgbench writes a file of its own",
            "give all files of a run; a log of one thread alone: rename it",
        )
    return tuple(files[number] for number in sorted(files))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    seen: dict[Path, Path] = {}
    for path in paths:
        for file in _at(path):
            same = seen.setdefault(_unpacked(file.resolve()), file)
            if same is not file:
                other = "" if same.resolve() == file.resolve() else f", as {same} too"
                raise UserError(f"{file} is given twice{other}", "name each log once")
            yield file


def _unpacked(path: Path) -> Path:
    """What a file is called when it is not compressed."""
    return path.with_suffix("") if path.suffix in COMPRESSED else path


def _at(path: Path) -> list[Path]:
    """The files of a folder, or the one file."""
    try:
        if path.is_dir():
            return _in_folder(path)
        there = path.is_file()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    if not there:
        raise UserError(f"{path} is not there", "give log files, or a folder with nothing else in it")
    return [path]


def _in_folder(folder: Path) -> list[Path]:
    """Its files, in the order in which a reader counts: 2 before 10."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise UserError(f"{folder} holds no file", "give the folder that the logs lie in")
    return sorted(files, key=_counting)


def _counting(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]
