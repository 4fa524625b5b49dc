"""`dyno gate`: the verdict on a run against another, for a pipeline to stop by."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from dbdyno.analyse.gate import Gate
from dbdyno.cli.deliver import deliver
from dbdyno.cli.exit_codes import gate_code, gate_fails_on, verdicts_of
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.patience import patient
from dbdyno.cli.stored_run import run_to_read
from dbdyno.errors import UserError
from dbdyno.findings import junit
from dbdyno.kinds.held_against import gate_of, held_gate
from dbdyno.records.place import store_url
from dbdyno.records.store import Store


def main(
    run: str,
    against: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    fail_on: tuple[str, ...],
    store: str | None,
) -> None:
    form, fail_on = verdict_format_of(form, as_json, output), gate_fails_on(fail_on)
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        named = against or found.took_turns_with
        if not named:
            raise UserError(f"run {found.run} was not measured against another", "add --against NAME")
        with patient() as patience:
            patience.quietly(f"analysing {found.run} beside {named}")
            stored = held_gate(opened, found) if against is None else None
            gate = stored or gate_of(opened, found, named, patience.tell)
    deliver_gate(gate, form, output, fail_on)
    sys.exit(gate_code(gate, fail_on))


def deliver_gate(
    gate: Gate, form: str, output: Path | None, fail_on: tuple[str, ...], details: bool = True
) -> None:
    """Prints the gate, or writes it and prints where."""
    as_junit = partial(junit.gate, gate, verdicts_of(fail_on))
    deliver("gate", gate, form, output, {"junit": as_junit}, details)
