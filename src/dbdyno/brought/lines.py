"""A log's lines, each with its number, and the one message for a line that is not what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import UserError


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each line without its end, with its number from 1 on. Raises UserError for a file that cannot be read,
    is empty, is no text, or whose last line was cut short.
    """
    number = 0
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    raise wrong(path, number, "the last line is cut short", CUT_SHORT)
                yield number, line[:-1]
    except UnicodeDecodeError:
        raise wrong(path, number + 1, "this is no text", "give the logs as the tool wrote them") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "give files that you may read") from None
    if number == 0:
        raise UserError(f"{path} is empty", "leave it out, or look why the benchmark wrote nothing")


CUT_SHORT = "import it when the benchmark has ended; if it was killed, delete that line"


def wrong(path: Path, line: int, message: str, hint: str) -> UserError:
    return UserError(f"{path}, line {line}: {message}", hint)
