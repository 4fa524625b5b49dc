"""SQLite in the guest of an emulated machine: its shell, and a file of accounts that it is asked about."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing

from dbdyno.engines.sqlite.obtaining import PLATFORMS
from dbdyno.engines.sqlite.shell import ACCOUNTS, ASKED, FILE, SCHEMA, sound
from dbdyno.records.record import Check

RECIPE = PLATFORMS.recipes[0]
PROGRAM = RECIPE.binary
ASK = f'/{PROGRAM} -batch -bail /data/{FILE} "{"; ".join(ASKED.values())}"'
TRANSFERS = 2_000


def data() -> Mapping[str, bytes]:
    """A file with transfers between accounts. It has one byte order on all machines, so it is made here."""
    # Here, because a command that only shows asks no file.
    import sqlite3

    draw = random.Random(0)
    transfers = [
        (number, draw.randint(1, ACCOUNTS), draw.randint(-5000, 5000)) for number in range(1, TRANSFERS + 1)
    ]
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(SCHEMA)
        made.executemany("INSERT INTO ledger VALUES (?, ?, ?)", transfers)
        made.execute(
            "UPDATE account SET balance ="
            " (SELECT coalesce(sum(amount), 0) FROM ledger WHERE account = account.id)"
        )
        made.execute("UPDATE branch SET balance = (SELECT sum(amount) FROM ledger)")
        made.commit()
        return {f"data/{FILE}": made.serialize()}


def check(answers: Sequence[str]) -> Check:
    """The file is whole, and its three sums agree."""
    return sound(dict(zip(ASKED, answers, strict=False)))
