"""The section [soak] of a study: its rungs, what disturbs them, and how each ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from dbdyno.study import values
from dbdyno.study.act import OF_POWER, OF_SOAKS, Act
from dbdyno.study.catalogue import WorkloadOffer
from dbdyno.study.document import parse_document
from dbdyno.study.nouns import KEEPS_LEDGER, Study, Workload
from dbdyno.study.section import CLIENTS_MAX, SectionReader
from dbdyno.study.soak import SMOKE, Disturbance, Soak
from dbdyno.study.values import Fault, kind, shown

SECTION = "soak"
KEYS = frozenset(
    ("clients", "duration", "opening", "disturb", "beside", "disturbed", "control", "ends", "horizon", "rise")
)
RUNGS_MAX = 20
OF_SBTEST = frozenset(("tables", "table_size"))
T = TypeVar("T")


def read_soak(reader: SectionReader, workload: Workload | None) -> Soak | None:
    """How the study is soaked; None where it does not say."""
    if reader.at((SECTION,)) is None:
        return None
    reader.table((SECTION,), KEYS)
    default = Soak()
    workloads = frozenset(offer.name for offer in reader.catalogue.workloads)

    def take(key: str, read: Callable[[Any], T], otherwise: T) -> T:
        return reader.take((SECTION, key), read, otherwise)

    lasting = partial(values.duration_s, least_s=1.0)
    beside = take("beside", partial(_listed, read=partial(values.one_of, allowed=workloads)), default.beside)
    ends = take("ends", partial(_listed, read=_act), default.ends)
    _require_other_tables(reader, beside)
    _require_ledger(reader, workload, ends)
    return Soak(
        clients=take("clients", rungs, default.clients),
        duration_s=take("duration", lasting, default.duration_s),
        opening_s=take("opening", lasting, default.opening_s),
        disturb=take("disturb", partial(_listed, read=_disturbance), default.disturb),
        beside=beside,
        disturbed_s=take("disturbed", lasting, default.disturbed_s),
        control_s=take("control", partial(values.duration_s, least_s=0.0), default.control_s),
        ends=ends,
        horizon_s=take("horizon", lasting, default.horizon_s),
        rise=take("rise", partial(values.share, low=0.1, high=100.0), default.rise),
    )


def rungs(value: Any) -> tuple[int, ...]:
    """A ladder: numbers of clients, each more than the one before."""
    found = _listed(value, partial(values.integer, low=1, high=CLIENTS_MAX))
    if not found or list(found) != sorted(set(found)) or len(found) > RUNGS_MAX:
        told = ", ".join(map(str, found)) or "empty"
        raise Fault(f"is no ladder: {told}", f"write 1 to {RUNGS_MAX} numbers, each more than the one before")
    return found


def soak_of(study: Study, smoke: bool) -> Soak:
    """How a study is soaked, or with `smoke` a short one. The clients are those that the study names: its
    ladder, else the number under [workload]. A short one climbs the first rung alone.
    """
    soak, named = SMOKE if smoke else study.soak or Soak(), parse_document(study.text.encode()).values
    ladder = _named_clients(named, SECTION, lambda: study.soak.clients if study.soak else ())
    clients = ladder or _named_clients(named, "workload", lambda: (study.workload.clients,)) or soak.clients
    return soak.model_copy(update={"clients": clients[:1] if smoke else clients})


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
            reader.note((SECTION, "beside"), f"`beside`: {name} would drop the tables of the load", hint)


def _require_ledger(reader: SectionReader, workload: Workload | None, ends: tuple[Act, ...]) -> None:
    """Notes a power cut under a load of which nobody could tell what the cut took along."""
    cut = any(act in OF_POWER for act in ends)
    if not cut or workload is None or workload.keeps_ledger:
        return
    told = f"`ends`: what a power cut takes along is not known under {workload.name}"
    hint = f"take a workload that keeps a ledger: {', '.join(KEEPS_LEDGER)}"
    if workload.name in KEEPS_LEDGER:
        told, hint = f"{told} that only reads", "leave select_only out"
    reader.note((SECTION, "ends"), told, hint)


def _tables(offer: WorkloadOffer) -> str:
    """Whose tables a workload has. Those of sysbench share theirs, and are known by their options."""
    return "sbtest" if {option.name for option in offer.options} & OF_SBTEST else offer.name


def _disturbance(value: Any) -> Disturbance:
    return Disturbance(values.one_of(value, frozenset(Disturbance)))


def _act(value: Any) -> Act:
    return Act(values.one_of(value, OF_SOAKS))


def _listed(value: Any, read: Callable[[Any], T]) -> tuple[T, ...]:
    """A list without repetitions, each value as `read` understands it."""
    if not isinstance(value, list):
        raise Fault(f"must be a list, not {kind(value)}", "write it in brackets: [...]")
    found = tuple(map(read, value))
    again = next((one for place, one in enumerate(found) if one in found[:place]), None)
    if again is not None:
        raise Fault(f"holds {shown(again)} twice", "keep one of the two")
    return found
