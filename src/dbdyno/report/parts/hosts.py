"""The hosts of a fleet: each variant over them and on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.fleet import HostsCompared, OneHost, OnHosts
from dbdyno.analyse.model import Analysis
from dbdyno.records.run import FleetHost
from dbdyno.report.document import Detail, Figure, Kind, Notes, Row, Section, table
from dbdyno.report.words import hosts, numbers, remarks
from dbdyno.report.words.safe import clean

OVER = ("variant", "ratio", "interval", "lowest", "highest", "hosts by themselves")
MACHINES = ("host", "CPU", "cores", "kernel", "engine", "blocks", "floor")
EACH = ("variant", "host", "blocks", "ratio", "interval", "by itself")
KINDS = {
    "interval": Kind.PHRASE,
    **dict.fromkeys(
        ("lowest", "highest", "hosts by themselves", "host", "by itself", "CPU", "kernel", "engine"),
        Kind.TEXT,
    ),
}
ASIDE = (
    "Dot and line: a variant over hosts, and on each host. Thin line: where a further host would lie. Band:"
    " the margin."
)


def sections(analysis: Analysis) -> Iterator[Section]:
    """A figure, each variant in a line, and each on each host; nothing for a run of one host."""
    compared = analysis.hosts
    if compared is None or not compared.variants:
        return
    over = [_over(analysis, one) for one in compared.variants]
    yield Section("Hosts", (Figure("hosts", (analysis,)),), aside=ASIDE, detail=Detail.PAGE)
    yield Section("Over hosts", (table(OVER, over, KINDS, dense=True), Notes((*_notes(analysis, compared),))))
    machines = [_machine(analysis.run.fleet, one) for one in compared.hosts]
    yield Section(
        "Machines", (table(MACHINES, machines, KINDS, dense=True), Notes((*_of_machines(analysis),)))
    )
    each = [row for one in compared.variants for row in _each(analysis, one)]
    share = numbers.share_text(compared.confidence_each)
    said = (
        f"Each interval is Student’s over the blocks of one host, with {share}, so that with the study's"
        " confidence none is wrong."
    )
    yield Section(
        "On each host", (table(EACH, each, KINDS, dense=True), Notes((said,))), detail=Detail.DETAILS
    )


def _over(analysis: Analysis, one: OnHosts) -> Row:
    effect = remarks.variant_of(analysis, one.variant).effect
    ratio, interval = (
        (numbers.DASH, numbers.DASH)
        if effect is None
        else (numbers.ratio_text(effect.ratio), numbers.interval_text(effect))
    )
    return clean(one.variant), ratio, interval, *hosts.span_text(one), hosts.counted(analysis, one)


def _each(analysis: Analysis, one: OnHosts) -> Iterator[Row]:
    for on in one.each:
        yield (
            clean(one.variant),
            clean(on.host),
            str(on.blocks),
            numbers.ratio_text(on.ratio),
            hosts.interval_of(on),
            hosts.told_text(analysis, on.told),
        )


def _machine(fleet: Sequence[FleetHost], one: OneHost) -> Row:
    """A host as its worker told it, and what its own blocks cannot tell."""
    known = next((each for each in fleet if each.name == one.name), None)
    floor = numbers.rough_share_text(one.floor.difference) if one.floor else numbers.DASH
    if known is None:
        return clean(one.name), *[numbers.DASH] * 4, str(one.blocks), floor
    cpu, cores = known.host.cpu.model, known.host.cpu.usable_cores
    return (
        clean(one.name),
        clean(cpu or numbers.DASH),
        str(cores or numbers.DASH),
        clean(known.host.kernel or numbers.DASH),
        clean(known.installation.version or numbers.DASH),
        str(one.blocks),
        floor,
    )


def _of_machines(analysis: Analysis) -> Iterator[str]:
    yield "Floor: the smallest difference that the blocks of a host by themselves can find."
    if out := [one.name for one in analysis.run.fleet if one.left_out]:
        yield f"Taken out before all their blocks were over: {hosts.enumerated(out)}."


def _notes(analysis: Analysis, compared: HostsCompared) -> Iterator[str]:
    yield f"Of {numbers.plural(len(compared.hosts), 'host')}, what each by itself says of a variant."
    for one in compared.variants:
        said = []
        if spread := hosts.spread_text(one):
            said.append(spread)
        if further := hosts.further_text(one):
            share = numbers.share_text(analysis.method.confidence)
            said.append(f"a further host like these would show {further} in as many blocks ({share})")
        if said:
            yield f"{clean(one.variant)}: {'; '.join(said)}."
