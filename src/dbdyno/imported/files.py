"""Which files make up one repetition: a benchmark that ran once, in one file or in one for each thread.

Their lines have numbers, and a line that is not what it should be has one message.
"""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from dbdyno.errors import UserError
from dbdyno.user_data.dump import packing_of, unpacked

HEAD_BYTES = 6
"""Enough to tell what a file is packed with. No line of a log begins so."""
Line = tuple[int, str]
LINE_COSTS, HELD_MOST = 100, 1 << 28
"""Bytes that a line takes beside its text, and that all may take: a report each second for three weeks."""
LINE_MOST = 1 << 20
"""Characters of a line with its end. A few kilobytes can be packed that unpack to more than the memory."""


def lines_of(path: Path, ended: bool = True) -> Iterator[Line]:
    """Each line without its end, with its number from 1 on; of a compressed file, those that it holds. Raises
    UserError for a file that cannot be read, is empty, is damaged, is no text, or whose last line was cut
    short. A document tells by its own end that it is whole, so its last line need not be `ended`.
    """
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(iter(partial(file.readline, LINE_MOST), ""), 1):
                if not line.endswith("\n"):
                    if len(line) == LINE_MOST:
                        raise wrong(
                            path, number, f"this line is longer than {LINE_MOST:,} characters", NO_LOG
                        )
                    if ended:
                        raise wrong(path, number, "the last line is cut short", CUT_SHORT)
                yield number, line.removesuffix("\n")
    except UnicodeDecodeError:
        raise wrong(path, number + 1, "this is no text", "give the logs as the tool wrote them") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise wrong(path, number + 1, "the compressed file is damaged from here on", WHOLE) from None
    except OSError as error:
        # bz2 tells of damage by this error too, which then is none of the system's.
        if error.strerror is None:
            raise wrong(path, number + 1, "the compressed file is damaged from here on", WHOLE) from None
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    if number == 0:
        raise UserError(f"{path} is empty", "leave it out, or look why the benchmark wrote nothing")


def lines_held(path: Path, tool: str, hint: str, ended: bool = True) -> Iterator[Line]:
    """The lines of a file that is held as a whole. Raises UserError where they are more than the tool prints
    in any run, before they fill the memory."""
    held = 0
    for number, line in lines_of(path, ended):
        held += len(line) + LINE_COSTS
        if held > HELD_MOST:
            raise wrong(path, number, f"this is more than {tool} prints", hint)
        yield number, line


NO_LOG = "this is no log of a benchmark; look what it holds: head -c 1000, or zcat FILE | head -c 1000"
CUT_SHORT = "import it when the benchmark has ended; if it was killed, delete that line"
WHOLE = "copy it again, or leave it out; gzip -t, bzip2 -t and xz -t tell whether a file is whole"


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file's text. What compressed it shows in its first bytes, whatever it is called."""
    with path.open("rb") as file:
        packing = packing_of(file.read(HEAD_BYTES))
    with unpacked(path, packing) as text:
        yield TextIOWrapper(cast("BinaryIO", text.source), encoding="utf-8")


def wrong(path: Path, line: int, message: str, hint: str) -> UserError:
    return UserError(f"{path}, line {line}: {message}", hint)


OF_A_THREAD = re.compile(r"(?P<run>.*?\.\d+)(?:\.(?P<thread>\d+))?")
"""pgbench's names: `pgbench_log.4711` is of the first thread, `pgbench_log.4711.1` of the second. What stands
before the process's number may end in a digit (`--log-prefix=rep1`)."""
OF_A_TEST = re.compile(r"sb\.o\.([\w-]+)")
"""How Callaghan's scripts (https://github.com/mdcallag/mytools) name sysbench's outputs, each of a test."""
OF_A_RUN = re.compile(r"sb\.o\.((?!pw\.).+\.dop\d+)")
"""The same of one that ran with so many threads: `sb.o.point-query.range100.pk1.dop8`."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Endings that say nothing of which run a log is of."""


@dataclass(frozen=True)
class Repetition:
    """The files of one benchmark that ran once, or the `part` of a file that holds several."""

    name: str
    files: tuple[Path, ...]
    part: str = ""


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
    found = list(_files(paths))
    tests = dict.fromkeys(name[1] for path in found if (name := OF_A_TEST.match(path.name)))
    if len(tests) > 1:
        raise UserError(
            f"these are outputs of {len(tests)} tests ({', '.join([*tests][:3])}), no repetitions of one",
            "import each test by itself: --as NAME=FOLDER/sb.o.TEST",
        )
    return [Repetition(str(path), (path,)) for path in found]


def tests_in(folder: Path) -> dict[str, Path]:
    """The outputs of sysbench by their test, with as many threads, of a folder that Callaghan's scripts have
    filled: what else lies there was made of them. Empty for any other folder."""
    if not folder.is_dir():
        return {}
    found = {
        name[1]: path for path in _in_folder(folder) if (name := OF_A_RUN.fullmatch(_unpacked(path).name))
    }
    return found if len(found) > 1 else {}


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
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    return [require_file(path)]


def require_file(path: Path) -> Path:
    """Raises UserError for what is no file."""
    try:
        there = path.is_file()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    if not there:
        raise UserError(f"{path} is not there", "give log files, or a folder with nothing else in it")
    return path


def _in_folder(folder: Path) -> list[Path]:
    """Its files, in the order in which a reader counts: 2 before 10."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise UserError(f"{folder} holds no file", "give the folder that the logs lie in")
    return sorted(files, key=_counting)


def _counting(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]
