"""A document that holds one of each element, every text of it hostile."""

from __future__ import annotations

from dbdyno.analyse.model import Verdict
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Document,
    Facts,
    Figure,
    Fitting,
    Fold,
    From,
    Item,
    Items,
    Lines,
    Mark,
    Notes,
    RowLook,
    Section,
    Steps,
    Table,
    TableCell,
    Text,
    Tone,
)
from tests.report.cases import HOSTILE, fraction_of_seven

COLUMNS = tuple(Column(f"{kind} {HOSTILE}", kind) for kind in ColumnKind)
CELLS = (
    HOSTILE,
    Mark(HOSTILE, Tone.GOOD),
    "",
    (HOSTILE, Mark(HOSTILE, Tone.STRONG)),
    TableCell(HOSTILE, (HOSTILE,)),
)
TABLE = Table(COLUMNS, (CELLS, CELLS), looks={1: RowLook.DIFFERS})
ITEM = Item(
    mark=Mark(HOSTILE, Verdict.SLOWER),
    about=HOSTILE,
    lines=(HOSTILE, Mark(HOSTILE, Tone.QUIET)),
    step=HOSTILE,
    small=(HOSTILE,),
    fold=Fold(HOSTILE, (Text(HOSTILE),)),
)
BODY = (
    Lines((HOSTILE, Mark(HOSTILE, Tone.DOUBT)), bullets=True),
    TABLE,
    Fitting((TABLE, Table(COLUMNS[:1], (CELLS[:1],)))),
    Notes((HOSTILE,)),
    Steps((HOSTILE,)),
    Facts(((HOSTILE, HOSTILE),)),
    Items((ITEM,), (HOSTILE,) * 4),
    Fold(HOSTILE, (Text(HOSTILE), TABLE)),
    Figure("dbdyno.report.figures.charts:effects", (fraction_of_seven(),), key="gap", words=HOSTILE),
    From(Detail.TEXT, (Lines(("only in writing",)),), (Lines(("only on a terminal",)),)),
)
HARMFUL = Document(
    title=HOSTILE,
    answer=(HOSTILE, Mark(HOSTILE, Verdict.FASTER)),
    sections=(
        Section(HOSTILE, BODY, HOSTILE),
        Section("", BODY),
        Section("Of a page", BODY[:1], detail=Detail.PAGE),
    ),
    eyebrow=HOSTILE,
    facts=((HOSTILE, HOSTILE),),
    findings=((HOSTILE, HOSTILE),),
    footer=HOSTILE,
)
