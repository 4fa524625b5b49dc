"""The section [soak] of a study: its rungs, what disturbs them, and how each ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from dbdyno.study.act import OF_POWER, Act
from dbdyno.study.catalogue import NOTHING, WorkloadOffer
from dbdyno.study.document import parse_document
from dbdyno.study.nouns import KEEPS_LEDGER, Study, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.soak import SMOKE, Soak
from dbdyno.study.tables import SOAK

OF_SBTEST = frozenset(("tables", "table_size"))


def read_soak(reader: SectionReader, workload: Workload | None) -> Soak | None:
    """How the study is soaked; None where it does not say."""
    if reader.at((SOAK.name,)) is None:
        return None
    soak = Soak(**reader.section(SOAK))
    _require_other_tables(reader, soak.beside)
    _require_ledger(reader, workload, soak.ends)
    return soak


def rungs(value: Any) -> tuple[int, ...]:
    """A ladder: numbers of clients, each more than the one before. Raises Fault."""
    return cast("tuple[int, ...]", SOAK.key("clients").grammar.read(value, NOTHING))


def soak_of(study: Study, smoke: bool) -> Soak:
    """How a study is soaked, or with `smoke` a short one. The clients are those that the study names: its
    ladder, else the number under [workload]. A short one climbs the first rung alone.
    """
    soak, named = SMOKE if smoke else study.soak or Soak(), parse_document(study.text.encode()).values
    ladder = _named_clients(named, SOAK.name, lambda: study.soak.clients if study.soak else ())
    clients = ladder or _named_clients(named, "workload", lambda: (study.workload.clients,)) or soak.clients
    return soak.but(clients=clients[:1] if smoke else clients)


def _named_clients(
    named: Mapping[str, Any], section: str, read: Callable[[], tuple[int, ...]]
) -> tuple[int, ...]:
    """The clients as `read` where a section of the file names them; a default is nobody's wish."""
    table = named.get(section)
    return read() if isinstance(table, dict) and "clients" in table else ()


def _require_other_tables(reader: SectionReader, beside: tuple[str, ...]) -> None:
    """Notes a workload whose tables are those of the study's own: it would make them anew."""
    own = reader.offer
    for name in beside if own is not None else ():
        other = reader.catalogue.workload(name)
        if own is not None and other is not None and _tables(own) == _tables(other):
            hint = f"{own.name} and {name} have the same tables: take a workload with others"
            reader.note((SOAK.name, "beside"), f"`beside`: {name} would drop the tables of the load", hint)


def _require_ledger(reader: SectionReader, workload: Workload | None, ends: tuple[Act, ...]) -> None:
    """Notes a power cut under a load of which nobody could tell what the cut took along."""
    cut = any(act in OF_POWER for act in ends)
    if not cut or workload is None or workload.keeps_ledger:
        return
    told = f"`ends`: what a power cut takes along is not known under {workload.name}"
    hint = f"take a workload that keeps a ledger: {', '.join(KEEPS_LEDGER)}"
    if workload.name in KEEPS_LEDGER:
        told, hint = f"{told} that only reads", "leave select_only out"
    reader.note((SOAK.name, "ends"), told, hint)


def _tables(offer: WorkloadOffer) -> str:
    """Whose tables a workload has. Those of sysbench share theirs, and are known by their options."""
    return "sbtest" if {option.name for option in offer.options} & OF_SBTEST else offer.name
