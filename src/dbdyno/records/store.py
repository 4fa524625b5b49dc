"""The store: runs and their records, in SQLite by default, in PostgreSQL by URL.

A record is on disk when `add_record` returns. Records are kept as the JSON of `record.py`, beside the few
columns that queries need; reading goes through the model, which refuses what it does not understand.
No password of a URL goes in, and none that an earlier Dyno kept comes out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from dbdyno.passwords import json_without_passwords, without_passwords
from dbdyno.records.chain import Entry, Publication, Registration, RunBegan, canonical
from dbdyno.records.database import (
    Execute,
    LeaseOver,
    Spool,
    Unavailable,
    Waiting,
    fence_of,
    note_late,
    open_database,
    require_in_force,
)
from dbdyno.records.place import LAST, SQLITE, from_root, place_of_store
from dbdyno.records.record import Record
from dbdyno.records.run import Run, RunLine, RunSummary, UnreadableRun, run_of_document

SCHEMA = 1
"""Rises with every change of the tables below that an older Dyno could not follow."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""How long a store that cannot take a record is left alone: twice as long each time."""
PATIENCE_S = 120.0
"""How long the end of a run waits for its store."""
RECORDS_TOGETHER = 1000
"""So many records are read at a time where all would fill memory."""

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
    """CREATE TABLE IF NOT EXISTS dyno_chain (
        number INTEGER NOT NULL PRIMARY KEY,
        previous VARCHAR(64) NOT NULL,
        digest VARCHAR(64) NOT NULL,
        question VARCHAR(64) NOT NULL,
        content TEXT NOT NULL)""",
)
_OLDEST, _LABELS, _YOUNGEST = "dyno_schema", "dyno_notes", "dyno_chain"
"""Every store has the first; an older store may lack the others."""
_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
_RIGHTS = {
    **{f"dyno_{name}": _ALL for name in ("runs", "records", "names", "notes")},
    _YOUNGEST: ("SELECT", "INSERT"),
}
"""What an account needs that writes a store. Nothing is ever changed in the chain."""
# A run and the reference that takes turns with it begin at the same moment.
_LATEST_FIRST = "ORDER BY created_unix_s DESC, run"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HAS_RESULT = "EXISTS (SELECT 1 FROM dyno_records WHERE dyno_records.run = dyno_runs.run)"


class Store:
    """Runs and records at a URL. A context manager; every failure is a DynoError that names the store."""

    def __init__(self, url: str) -> None:
        self._database = open_database(url)
        self._transaction = self._database.transaction
        holds = self._database.holds
        if not holds(_OLDEST) or (self._database.writable and not holds(_YOUNGEST)):
            self._make()
        # A store that may not be written can be older than the tables of names and notes, and of the chain.
        self._labelled, self._chained = holds(_LABELS), holds(_YOUNGEST)
        self._require_schema()
        self._spool = Spool(self._database.key)
        self._ask_again_s = self._wait_s = 0.0
        with suppress(DynoError):
            self._take_up()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: TracebackType | type[BaseException] | BaseException | None) -> None:
        with suppress(DynoError):
            self._take_up()
        self._database.close()

    def require_writable(self) -> None:
        """Raises UserError where this user cannot write the store, so that no trial runs in vain."""
        if self._database.writable:
            self._database.require_rights(_RIGHTS)
            return
        if self.place == str(paths.store_place()):
            paths.data()
        raise UserError(f"{self.place} may not be written by this user", "name another: --store, DYNO_STORE")

    def add_run(self, run: Run, began: RunBegan | None = None) -> None:
        """Keeps a run before its first trial, with the entry of the chain that says so; one that is kept
        already stays as it is."""
        row = (run.run, run.created_unix_s, run.study_digest, False, _document(run))
        with self._transaction() as execute:
            if execute("SELECT 1 FROM dyno_runs WHERE run = ?", run.run):
                return
            execute("INSERT INTO dyno_runs VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", *row)
            if began is not None:
                _append(execute, began)

    def append(self, content: Registration | RunBegan | Publication) -> Entry:
        """Adds an entry to the end of the chain, on disk when this returns."""
        with self._transaction() as execute:
            return _append(execute, content)

    def chain(self, question: str | None = None) -> list[Entry]:
        """The entries of the chain in their order, with the digests that were kept; or those of one question
        alone."""
        if not self._chained:
            return []
        which, values = ("WHERE question = ?", (question,)) if question is not None else ("", ())
        columns = f"number, previous, digest, content FROM dyno_chain {which} ORDER BY number"
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT {columns}", *values)
        try:
            entries = [(digest, Entry.of(number, before, text)) for number, before, digest, text in rows]
        except ValueError:
            raise DynoError(f"{self.place}: an entry of its chain is no JSON", "it is damaged") from None
        return [entry.but(digest=digest) for digest, entry in entries]

    def runs_of_file(self, study_digest: str) -> list[Run]:
        """The runs of a study's very file that can be read, the latest first."""
        which = f"WHERE study_digest = ? {_LATEST_FIRST}"
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT document FROM dyno_runs {which}", study_digest)
        parsed = [self._readable_run(document) for (document,) in rows]
        return [run for run in parsed if run is not None]

    def held_since(self, run: Run) -> list[Run]:
        """The runs that were begun to be held against another one, when this run began or later, the latest
        first."""
        # Quotes in the texts of a document are escaped, so this is a field of the run itself.
        which = f"WHERE created_unix_s >= ? AND document LIKE ? {_LATEST_FIRST}"
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT document FROM dyno_runs {which}", run.created_unix_s, '%"against":%')
        parsed = [self._readable_run(document) for (document,) in rows]
        return [one for one in parsed if one is not None and one.held]

    def has_run(self, run: str) -> bool:
        """Whether the store has a run of just this name."""
        with self._transaction(writes=False) as execute:
            return bool(execute("SELECT 1 FROM dyno_runs WHERE run = ?", run))

    def change_run(self, run: Run) -> None:
        """Keeps what has changed of a run since it was added: the number of its blocks."""
        statement = "UPDATE dyno_runs SET document = ? WHERE run = ?"
        self._insist(run.run, statement, _document(run), run.run)

    def reopen_run(self, run: Run) -> None:
        """Keeps a run that has trials left again, because it has more blocks now."""
        changed = (_document(run), False, run.run)
        with self._transaction() as execute:
            execute("UPDATE dyno_runs SET document = ?, finished = ? WHERE run = ?", *changed)

    def finish_run(self, run: str) -> None:
        """Marks a run whose trials have all ended, once the store has all their records. Raises DynoError
        where it does not take them for PATIENCE_S; they wait on disk then."""
        self._insist(run, "UPDATE dyno_runs SET finished = ? WHERE run = ?", True, run)

    def add_record(self, record: Record) -> None:
        """Keeps a trial's record; a second record of the same trial takes the first one's place. Where the
        store cannot take it now, it waits on disk, and goes with a later one. Raises LeaseOver for one of a
        fleet whose lease is over."""
        about = (without_passwords(record.variant), record.block, record.outcome.value, _document(record))
        row = (record.run, record.trial, *about)
        if time.monotonic() >= self._ask_again_s:
            try:
                self._take_up()
                with self._transaction() as execute:
                    if record.fence:
                        require_in_force(execute, record.run, record.fence)
                    _put(execute, row)
                self._wait_s = 0.0
                return
            except LeaseOver:
                with self._transaction() as execute:
                    note_late(execute, record.run, record.trial, record.fence)
                raise
            except Unavailable:
                if not self._database.key:
                    raise
                # Each attempt at a busy store takes LOCKED_S, which is lost to the run.
                self._wait_s = min(max(FIRST_WAIT_S, 2.0 * self._wait_s), LONGEST_WAIT_S)
                self._ask_again_s = time.monotonic() + self._wait_s
        self._spool.keep(row)

    def _take_up(self) -> None:
        """Gives the store the records that wait for it. Those of runs that were removed go, and those of a
        fleet whose lease is over."""
        if not self._database.writable or not self._database.key:
            return
        with self._spool.taken() as rows:
            if not rows:
                return
            with self._transaction() as execute:
                for row in rows:
                    known = execute("SELECT 1 FROM dyno_runs WHERE run = ?", row[0])
                    of_trial = "SELECT document FROM dyno_records WHERE run = ? AND trial = ?"
                    later = any(_is_later(document, row[-1]) for (document,) in execute(of_trial, *row[:2]))
                    if known and not later and _in_force(execute, row):
                        _put(execute, row)

    def _insist(self, run: str, statement: str, *values: object) -> None:
        """Gives the store what waits for it, and then carries out a statement. Asks again for PATIENCE_S."""
        until_s, wait_s = time.monotonic() + PATIENCE_S, FIRST_WAIT_S
        while True:
            try:
                self._take_up()
                with self._transaction() as execute:
                    execute(statement, *values)
                return
            except Unavailable as failure:
                if time.monotonic() + wait_s > until_s:
                    kept = "" if self._spool.empty else f"; its last records wait in {self._spool.path}"
                    raise DynoError(failure.message + kept, f"then: dyno run --resume {run}") from None
            time.sleep(wait_s)
            wait_s = min(2.0 * wait_s, LONGEST_WAIT_S)

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
                execute("INSERT INTO dyno_notes VALUES (?, ?)", run, without_passwords(note))

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
        so, or the latest that has a result for `last`."""
        return self._parse_run(self._found(name)[1])

    def key(self, name: str) -> str:
        """The same run by Dyno's own name for it, also where the run itself cannot be read."""
        return self._found(name)[0]

    def _found(self, name: str) -> tuple[str, str]:
        """A run's own name and its document. Raises UserError where no run is meant, or several are."""
        # An argument that is no text in UTF-8 names no run, and no database takes it.
        name = name.encode("utf-8", "replace").decode()
        values: tuple[object, ...] = ()
        if name == LAST:
            which = f"WHERE {_HAS_RESULT} {_LATEST_FIRST} LIMIT 1"
        elif named := self._named().get(name):
            which, values = "WHERE run = ?", (named[0],)
        else:
            which, values = f"WHERE substr(run, 1, ?) = ? {_LATEST_FIRST}", (len(name), name)
        with self._transaction(writes=False) as execute:
            found: dict[str, str] = dict(execute(f"SELECT run, document FROM dyno_runs {which}", *values))
        if not found:
            raise self._no_run(name)
        if name not in (LAST, *found) and len(found) > 1:
            raise UserError(
                f"more than one run starts with {name!r}", "write more of its name; see: dyno runs"
            )
        return (name, found[name]) if name in found else next(iter(found.items()))

    def _no_run(self, name: str) -> UserError:
        """What is said where no run is meant, with what leads to one."""
        with self._transaction(writes=False) as execute:
            latest = execute(f"SELECT run FROM dyno_runs {_LATEST_FIRST} LIMIT 1")
        if not latest:
            asked = "" if name == LAST else f"no run {name!r}: "
            return UserError(
                f"{asked}no run yet in {self.place}",
                from_root(self.place)
                or "dyno init ENGINE writes a first study, and dyno run STUDY carries it out",
            )
        if name == LAST:
            ((run,),) = latest
            return UserError(f"no run in {self.place} has a result yet", f"dyno run --resume {run}")
        return UserError(f"no run {name!r} in {self.place}", "see: dyno runs")

    def begun_since(self, run: Run) -> list[str]:
        """The runs that began after this one and have no result yet, the latest first."""
        later = f"created_unix_s > ? AND NOT {_HAS_RESULT} {_LATEST_FIRST}"
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT run FROM dyno_runs WHERE {later}", run.created_unix_s)
        return [name for (name,) in rows]

    def unfinished_runs(self) -> list[Run]:
        """The runs that have trials left, the latest first."""
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT document FROM dyno_runs WHERE NOT finished {_LATEST_FIRST}")
        parsed = [self._readable_run(document) for (document,) in rows]
        return [run for run in parsed if run is not None]

    def records(self, run: str) -> list[Record]:
        """All records of a run, in the order of its trials."""
        return self._some_records(run, "TRUE ORDER BY trial")

    def _some_records(self, run: str, which: str, *values: object) -> list[Record]:
        with self._transaction(writes=False) as execute:
            rows = execute(f"SELECT document FROM dyno_records WHERE run = ? AND {which}", run, *values)
        try:
            return [Record.model_validate_json(json_without_passwords(document)) for (document,) in rows]
        except ValidationError as error:
            raise self._unreadable(f"a record of run {run}", error) from None

    def each_record(self, run: str) -> Iterator[Record]:
        """The same, a thousand at a time, because all records of a long run would fill memory."""
        last = -1
        while some := self._some_records(run, "trial > ? ORDER BY trial LIMIT ?", last, RECORDS_TOGETHER):
            yield from some
            last = some[-1].trial

    def records_of_trials(self, run: str, trials: Sequence[int]) -> Iterator[Record]:
        """The records of some trials of a run, in the order of these, a thousand at a time."""
        for start in range(0, len(trials), RECORDS_TOGETHER):
            asked = trials[start : start + RECORDS_TOGETHER]
            marks = ", ".join("?" * len(asked))
            found = {one.trial: one for one in self._some_records(run, f"trial IN ({marks})", *asked)}
            yield from (found[trial] for trial in asked if trial in found)

    def records_in_turn(self, run: str, blocks: int, turns: int, turn: int) -> list[Record]:
        """The records of every `turns`-th lot of so many blocks, after the first `turn` lots, in the order of
        trials. What is in no block belongs to the first turn."""
        # The sign of a remainder stands for a value in one driver, and -1 / 2 is 0 in both databases.
        which = "block / ? - block / ? / ? * ? = ? ORDER BY trial"
        return self._some_records(run, which, blocks, blocks, turns, turns, turn)

    def trials_of(self, run: str) -> set[int]:
        """The trials of a run that have a record."""
        with self._transaction(writes=False) as execute:
            return {trial for (trial,) in execute("SELECT trial FROM dyno_records WHERE run = ?", run)}

    def readable_records(self, run: str) -> list[Record]:
        """The same, for whoever goes through many runs: none where one of them cannot be read."""
        try:
            return self.records(run)
        except DynoError:
            return []

    def summary(self, run: Run) -> RunSummary:
        """Whether a run is finished, and how its trials ended, without its name and note."""
        with self._transaction(writes=False) as execute:
            finished = execute("SELECT finished FROM dyno_runs WHERE run = ?", run.run)
            outcomes = execute(
                "SELECT outcome, COUNT(*) FROM dyno_records WHERE run = ? GROUP BY outcome", run.run
            )
        return RunSummary(run=run, finished=bool(finished and finished[0][0]), outcomes=dict(outcomes))

    def runs(self) -> list[RunSummary]:
        """Every run that can be read, the latest first."""
        return self.runs_and_unreadable()[0]

    def runs_and_unreadable(self) -> tuple[list[RunSummary], list[UnreadableRun]]:
        """The runs that can be read, and those that cannot, each the latest first."""
        with self._transaction(writes=False) as execute:
            documents: dict[str, str] = dict(execute("SELECT run, document FROM dyno_runs"))
        readable, unreadable = list[RunSummary](), list[UnreadableRun]()
        # One that was added meanwhile is for the next look.
        for line in (line for line in self.lines() if line.run in documents):
            try:
                readable.append(line.read(self._parse_run(documents[line.run])))
            except DynoError as error:
                unreadable.append(UnreadableRun(line.run, line.created_unix_s, error.message))
        return readable, unreadable

    def lines(self) -> list[RunLine]:
        """What is known of every run without reading it, the latest first."""
        outcomes: dict[str, dict[str, int]] = {}
        with self._transaction(writes=False) as execute:
            for run, outcome, count in execute(
                "SELECT run, outcome, COUNT(*) FROM dyno_records GROUP BY run, outcome"
            ):
                outcomes.setdefault(run, {})[outcome] = count
            rows = execute(f"SELECT run, created_unix_s, finished FROM dyno_runs {_LATEST_FIRST}")
        own = {run: name for name, (run, baseline) in self._named().items() if not baseline}
        notes, standing = self._notes(), dict[str, list[str]]()
        for name, run in self.baselines().items():
            standing.setdefault(run, []).append(name)
        return [
            RunLine(
                run=run,
                created_unix_s=created_unix_s,
                finished=bool(finished),
                outcomes=outcomes.get(run, {}),
                name=own.get(run, ""),
                note=notes.get(run, ""),
                baselines=tuple(standing.get(run, ())),
            )
            for run, created_unix_s, finished in rows
        ]

    def summary_of(self, line: RunLine) -> RunSummary:
        """The run of a line. Raises DynoError where this Dyno cannot read it, or it is no more."""
        with self._transaction(writes=False) as execute:
            found = execute("SELECT document FROM dyno_runs WHERE run = ?", line.run)
        if not found:
            raise self._no_run(line.run)
        return line.read(self._parse_run(found[0][0]))

    def state(self) -> tuple[int, ...]:
        """What differs where a run or a record was added or removed, or a run has ended."""
        with self._transaction(writes=False) as execute:
            runs = execute("SELECT COUNT(*), COUNT(CASE WHEN finished THEN 1 END) FROM dyno_runs")
            records = execute("SELECT COUNT(*) FROM dyno_records")
        return (*runs[0], *records[0])

    @property
    def place(self) -> str:
        """Where the store is, without a password."""
        return self._database.place

    @property
    def key_of_place(self) -> str:
        """The same from wherever it is asked; empty where nothing outlasts this process."""
        return self._database.key

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
            return {run: without_passwords(note) for run, note in execute("SELECT run, note FROM dyno_notes")}

    def _make(self) -> None:
        """Makes the tables that are not there, all or none of them."""
        with self._transaction() as execute:
            if self._database.alone:
                execute(self._database.alone)
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
            return run_of_document(json_without_passwords(document))
        except ValidationError as error:
            raise self._unreadable("a run", error) from None

    def _readable_run(self, document: str) -> Run | None:
        try:
            return self._parse_run(document)
        except DynoError:
            return None

    def _unreadable(self, what: str, error: ValidationError) -> DynoError:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return DynoError(
            f"{self.place}: {what} cannot be read ({where}: {first['msg']})",
            "was it written by a newer Dyno?",
        )


def _document(noun: Run | Record) -> str:
    return json_without_passwords(noun.model_dump_json())


def _append(execute: Execute, content: Registration | RunBegan | Publication) -> Entry:
    while True:
        last = execute("SELECT number, digest FROM dyno_chain ORDER BY number DESC LIMIT 1")
        entry = Entry.after(last[0] if last else None, content)
        text = canonical(entry.content).decode()
        row = (entry.number, entry.previous, entry.digest, entry.question, text)
        execute("INSERT INTO dyno_chain VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", *row)
        # On a server another Dyno may have taken that number since.
        if execute("SELECT 1 FROM dyno_chain WHERE number = ? AND digest = ?", entry.number, entry.digest):
            return entry


def _put(execute: Execute, row: Waiting) -> None:
    execute("DELETE FROM dyno_records WHERE run = ? AND trial = ?", *row[:2])
    execute("INSERT INTO dyno_records VALUES (?, ?, ?, ?, ?, ?)", *row)


def _in_force(execute: Execute, row: Waiting) -> bool:
    """Whether the lease still counts of a record that waited; one of no fleet has none."""
    if not (fence := fence_of(row[-1])):
        return True
    try:
        require_in_force(execute, row[0], fence)
    except LeaseOver:
        note_late(execute, row[0], row[1], fence)
        return False
    return True


def _is_later(document: str, waiting: str) -> bool:
    """Whether a record ended after one that waits: another Dyno has gone on with the run since."""
    ends = [json.loads(one).get("finished_unix_s", 0.0) for one in (document, waiting)]
    return bool(ends[0] > ends[1])


@contextmanager
def writable_store(url: str) -> Iterator[Store]:
    """The store at a URL. Raises UserError where this user cannot write it."""
    with Store(url) as store:
        store.require_writable()
        yield store


def store_there(url: str) -> AbstractContextManager[Store | None]:
    """The store at a URL for who only looks: None where it would be a file that is not there yet."""
    there = not url.startswith(SQLITE) or Path(place_of_store(url)).is_file()
    return Store(url) if there else nullcontext()
