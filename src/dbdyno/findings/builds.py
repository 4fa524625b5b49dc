"""How much of the baseline's code each build has: a line for each variant that is another build."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.model import Analysis, VariantResult
from dbdyno.records.binary import CodeBeside
from dbdyno.report.document import Notes, Row, Section, table
from dbdyno.report.words import numbers

TITLE = "What the builds changed"
HEADS = ("variant", "functions that differ", "constants and variables", "bytes of code", "moved functions")
METHOD = (
    "Each build against the baseline’s, function by function; addresses do not count. Functions and objects "
    "that one of the two has alone differ, too. dyno diff names them."
)


def compared(analysis: Analysis) -> list[tuple[VariantResult, CodeBeside]]:
    """The variants whose builds were compared with the baseline's."""
    return [(variant, variant.code) for variant in analysis.variants if variant.code is not None]


def sections(analysis: Analysis) -> Iterator[Section]:
    """The table and the notes; nothing where no builds were compared."""
    if compared(analysis):
        yield Section(TITLE, (table(HEADS, rows(analysis)), Notes(tuple(notes(analysis)))))


def rows(analysis: Analysis) -> list[Row]:
    """How many functions each build changed."""
    return [(variant.name, *_cells(code)) for variant, code in compared(analysis)]


def _cells(code: CodeBeside) -> tuple[str, str, str, str]:
    data = code.data.differing + code.data.only_left + code.data.only_right + code.other_constants
    growth = code.code_bytes / code.code_bytes_against - 1.0 if code.code_bytes_against else 0.0
    return (
        numbers.functions_text(code),
        f"{data:,}",
        numbers.change_text(growth) if growth else "the same",
        f"{code.moved:,}" if code.named else numbers.DASH,
    )


def notes(analysis: Analysis) -> list[str]:
    """How they were compared, and which of them could not be told to be the same."""
    bare = [variant.name for variant, code in compared(analysis) if not code.named]
    if not bare:
        return [METHOD]
    stripped = f"{', '.join(bare)}: a file is stripped, so nothing shows whether the code is the baseline’s."
    return [METHOD, stripped]
