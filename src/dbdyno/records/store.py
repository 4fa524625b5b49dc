"""The store: runs and their records, in SQLite by default, in PostgreSQL by URL.

A record is on disk when `add_record` returns. Records are kept as the JSON of `record.py`, beside the few
columns that queries need; reading goes through the model, which refuses what it does not understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from pydantic import ValidationError

from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from dbdyno.records.database import open_database
from dbdyno.records.record import Record, Run

SCHEMA = 1
"""Rises with every change of the tables below that an older Dyno could not follow."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS dyno_schema (version INTEGER NOT NULL PRIMARY KEY)",
    """CREATE TABLE IF NOT EXISTS dyno_runs (
        run VARCHAR(64) NOT NULL PRIMARY KEY,
        created_unix_s DOUBLE PRECISION NOT NULL,
        study_digest VARCHAR(64) NOT NULL,
        finished BOOLEAN NOT NULL,
        document TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_records (
        run VARCHAR(64) NOT NULL REFERENCES dyno_runs (run),
        trial INTEGER NOT NULL,
        variant TEXT NOT NULL,
        block INTEGER NOT NULL,
        outcome VARCHAR(16) NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (run, trial))""",
    """CREATE TABLE IF NOT EXISTS dyno_names (
        name VARCHAR(64) NOT NULL PRIMARY KEY,
        run VARCHAR(64) NOT NULL REFERENCES dyno_runs (run),
        baseline BOOLEAN NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_notes (
        run VARCHAR(64) NOT NULL PRIMARY KEY REFERENCES dyno_runs (run),
        note TEXT NOT NULL)""",
)
_OLDEST, _YOUNGEST = "dyno_schema", "dyno_notes"
"""Every store has the one; an older store may lack the other."""
# A run and the reference that takes turns with it begin at the same moment.
_LATEST_FIRST = "ORDER BY created_unix_s DESC, run"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LAST = "last"
"""Stands for the latest run, so no run bears it."""


@dataclass(frozen=True)
class RunSummary:
    """One line of `dyno runs`. `name` is the one that its user gave it; `baselines` name it as well."""

    run: Run
    finished: bool
    outcomes: dict[str, int]
    name: str = ""
    note: str = ""
    baselines: tuple[str, ...] = ()


def store_url(chosen: str | None = None) -> str:
    """The store to use: the one chosen, else the SQLite file under the XDG data folder."""
    return chosen or paths.store_place_url()


class Store:
    """Runs and records at a URL. A context manager; every failure is a DynoError that names the store."""

    def __init__(self, url: str) -> None:
        self._database = open_database(url)
        self._transaction = self._database.transaction
        holds = self._database.holds
        if not holds(_OLDEST) or (self._database.writable and not holds(_YOUNGEST)):
            self._make()
        # A store that may not be written can be older than the tables of names and notes.
        self._labelled = holds(_YOUNGEST)
        self._require_schema()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: TracebackType | type[BaseException] | BaseException | None) -> None:
        self._database.close()

    def require_writable(self) -> None:
        """Raises UserError where this user cannot write the store, so that no trial runs in vain."""
        if self._database.writable:
            return
        if self.place == str(paths.store_place()):
            paths.data()
        raise UserError(f"{self.place} may not be written by this user", "name another: --store, DYNO_STORE")

    def add_run(self, run: Run) -> None:
        """Keeps a run before its first trial; one that is kept already stays as it is."""
        row = (run.run, run.created_unix_s, run.study_digest, False, run.model_dump_json())
        with self._transaction() as execute:
            execute("INSERT INTO dyno_runs VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", *row)

    def change_run(self, run: Run) -> None:
        """Keeps what has changed of a run since it was added: the number of its blocks."""
        with self._transaction() as execute:
            execute("UPDATE dyno_runs SET document = ? WHERE run = ?", run.model_dump_json(), run.run)

    def reopen_run(self, run: Run) -> None:
        """Keeps a run that has trials left again, because it has more blocks now."""
        changed = (run.model_dump_json(), False, run.run)
        with self._transaction() as execute:
            execute("UPDATE dyno_runs SET document = ?, finished = ? WHERE run = ?", *changed)

    def finish_run(self, run: str) -> None:
        """Marks a run whose trials have all ended."""
        with self._transaction() as execute:
            execute("UPDATE dyno_runs SET finished = ? WHERE run = ?", True, run)

    def add_record(self, record: Record) -> None:
        """Keeps a trial's record; a second record of the same trial takes the first one's place."""
        row = (record.variant, record.block, record.outcome.value, record.model_dump_json())
        with self._transaction() as execute:
            execute("DELETE FROM dyno_records WHERE run = ? AND trial = ?", record.run, record.trial)
            execute("INSERT INTO dyno_records VALUES (?, ?, ?, ?, ?, ?)", record.run, record.trial, *row)

    def require_free(self, name: str, run: str = "", baseline: bool = False) -> None:
        """Raises UserError where `name` is none, or stands for another thing than `run` already."""
        if not NAME.fullmatch(name) or name == LAST:
            raise UserError(
                f"{name!r} cannot be a name", "letters, digits, dots, dashes and underscores; at most 64"
            )
        with self._transaction(writes=False) as execute:
            taken = bool(execute("SELECT run FROM dyno_runs WHERE run = ?", name))
        named, is_baseline = self._named().get(name, (run, baseline))
        if taken or is_baseline != baseline or (not baseline and named != run):
            what = "a baseline" if is_baseline and not taken else f"run {name if taken else named}"
            raise UserError(f"{name!r} is the name of {what} already", "choose another; see: dyno runs")

    def name_run(self, run: str, name: str) -> None:
        """Gives a run a name of its user's, in the place of the one it had. Raises UserError where another
        run bears it."""
        self.require_free(name, run)
        with self._transaction() as execute:
            execute("DELETE FROM dyno_names WHERE run = ? AND NOT baseline", run)
            execute("INSERT INTO dyno_names VALUES (?, ?, ?)", name, run, False)

    def note_run(self, run: str, note: str) -> None:
        """Keeps a note beside a run, in the place of the one it had; an empty one takes it away."""
        with self._transaction() as execute:
            execute("DELETE FROM dyno_notes WHERE run = ?", run)
            if note:
                execute("INSERT INTO dyno_notes VALUES (?, ?)", run, note)

    def set_baseline(self, name: str, run: str) -> None:
        """Lets a baseline's name stand for a run from now on."""
        self.require_free(name, run, baseline=True)
        with self._transaction() as execute:
            execute("DELETE FROM dyno_names WHERE name = ?", name)
            execute("INSERT INTO dyno_names VALUES (?, ?, ?)", name, run, True)

    def remove_baseline(self, name: str) -> None:
        """Forgets a baseline's name; its run stays. Raises UserError where there is none."""
        if name not in self.baselines():
            raise UserError(f"no baseline {name!r} in {self.place}", "see: dyno baseline list")
        with self._transaction() as execute:
            execute("DELETE FROM dyno_names WHERE name = ?", name)

    def baselines(self) -> dict[str, str]:
        """The runs that baselines stand for, by the baseline's name."""
        return {name: run for name, (run, baseline) in sorted(self._named().items()) if baseline}

    def remove_run(self, run: str) -> None:
        """Deletes a run with its records, name and note. Raises UserError where it is a baseline."""
        if kept := [name for name, named in self.baselines().items() if named == run]:
            raise UserError(
                f"run {run} is the baseline {kept[0]}", f"dyno baseline rm {kept[0]}, or set another"
            )
        with self._transaction() as execute:
            for table in ("dyno_records", "dyno_names", "dyno_notes", "dyno_runs"):
                execute(f"DELETE FROM {table} WHERE run = ?", run)

    def run(self, name: str) -> Run:
        """The run of that name, whether Dyno's, its user's or a baseline's; or the only one whose name starts
        so, or the latest for `last`."""
        values: tuple[object, ...] = ()
        if name == LAST:
            which = f"{_LATEST_FIRST} LIMIT 1"
        elif named := self._named().get(name):
            which, values = "WHERE run = ?", (named[0],)
        else:
            which, values = f"WHERE substr(run, 1, ?) = ? {_LATEST_FIRST}", (len(name), name)
        with self._transaction(writes=False) as execute:
            found: dict[str, str] = dict(execute(f"SELECT run, document FROM dyno_runs {which}", *values))
        if not found:
            what = "no run yet" if name == LAST else f"no run {name!r}"
            raise UserError(f"{what} in {self.place}", "see: dyno runs")
        if name not in (LAST, *found) and len(found) > 1:
            raise UserError(
                f"more than one run starts with {name!r}", "write more of its name; see: dyno runs"
            )
        return self._parse_run(found.get(name) or next(iter(found.values())))

    def unfinished_runs(self) -> list[Run]:
        """The runs that have trials left, the latest first."""
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT document FROM dyno_runs WHERE NOT finished {_LATEST_FIRST}")
        return [self._parse_run(document) for (document,) in rows]

    def records(self, run: str) -> list[Record]:
        """All records of a run, in the order of its trials."""
        with self._transaction(writes=False) as execute:
            rows = execute("SELECT document FROM dyno_records WHERE run = ? ORDER BY trial", run)
        try:
            return [Record.model_validate_json(document) for (document,) in rows]
        except ValidationError as error:
            raise self._unreadable(f"a record of run {run}", error) from None

    def runs(self) -> list[RunSummary]:
        """Every run, the latest first."""
        outcomes: dict[str, dict[str, int]] = {}
        with self._transaction(writes=False) as execute:
            for run, outcome, count in execute(
                "SELECT run, outcome, COUNT(*) FROM dyno_records GROUP BY run, outcome"
            ):
                outcomes.setdefault(run, {})[outcome] = count
            rows = execute(f"SELECT document, finished FROM dyno_runs {_LATEST_FIRST}")
        own = {run: name for name, (run, baseline) in self._named().items() if not baseline}
        notes, baselines = self._notes(), self.baselines()
        parsed = [(self._parse_run(document), bool(finished)) for document, finished in rows]
        return [
            RunSummary(
                run=run,
                finished=finished,
                outcomes=outcomes.get(run.run, {}),
                name=own.get(run.run, ""),
                note=notes.get(run.run, ""),
                baselines=tuple(name for name, named in baselines.items() if named == run.run),
            )
            for run, finished in parsed
        ]

    @property
    def place(self) -> str:
        """Where the store is, without a password."""
        return self._database.place

    def _named(self) -> dict[str, tuple[str, bool]]:
        """The run of each name that a user gave, and whether the name is a baseline's."""
        if not self._labelled:
            return {}
        with self._transaction(writes=False) as execute:
            rows = execute("SELECT name, run, baseline FROM dyno_names")
        return {name: (run, bool(baseline)) for name, run, baseline in rows}

    def _notes(self) -> dict[str, str]:
        if not self._labelled:
            return {}
        with self._transaction(writes=False) as execute:
            return dict(execute("SELECT run, note FROM dyno_notes"))

    def _make(self) -> None:
        """Makes the tables that are not there, all or none of them."""
        with self._transaction() as execute:
            for table in _TABLES:
                execute(table)
            execute("INSERT INTO dyno_schema SELECT ? WHERE NOT EXISTS (SELECT 1 FROM dyno_schema)", SCHEMA)

    def _require_schema(self) -> None:
        """Raises DynoError for a store whose tables this Dyno does not know."""
        with self._transaction(writes=False) as execute:
            versions = {version for (version,) in execute("SELECT version FROM dyno_schema")}
        if versions != {SCHEMA}:
            found = ", ".join(map(str, sorted(versions))) or "no version"
            raise DynoError(
                f"{self.place} has schema {found}, this Dyno reads {SCHEMA}", "use the Dyno that wrote it"
            )

    def _parse_run(self, document: str) -> Run:
        try:
            return Run.model_validate_json(document)
        except ValidationError as error:
            raise self._unreadable("a run", error) from None

    def _unreadable(self, what: str, error: ValidationError) -> DynoError:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return DynoError(
            f"{self.place}: {what} cannot be read ({where}: {first['msg']})",
            "was it written by a newer Dyno?",
        )


@contextmanager
def writable_store(url: str) -> Iterator[Store]:
    """The store at a URL. Raises UserError where this user cannot write it."""
    with Store(url) as store:
        store.require_writable()
        yield store
