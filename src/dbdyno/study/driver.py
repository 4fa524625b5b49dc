"""The section [driver] of a study: the other hosts that the load comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level
from dbdyno.study.document import Place
from dbdyno.study.nouns import DURABLE, Factor, RemoteDriver, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import DRIVER

PATH: Place = ("driver",)
OF_THIS_HOST = "cpu.driver"
"""The factor that binds the driver to CPUs of this host."""
EXCLUDED: Mapping[str, str] = {
    "application": "an application stands on the server's host and takes the load there",
    "restarts": "what clients were told is kept on the server's host, so that it outlives the server",
    "soak": "the clients that misbehave in a soak are processes of this host",
}
"""Sections that do not go with another host, and why."""


def read_driver(
    reader: SectionReader,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
) -> RemoteDriver | None:
    """The hosts that the load comes from; None where it comes from this one."""
    if reader.at(PATH) is None:
        return None
    given = reader.section(DRIVER)
    if "hosts" not in given or "address" not in given:
        return None
    driver = RemoteDriver(**given)
    if not driver.tls and driver.network is None:
        hint = 'write tls = true, or network = "private" where nobody else is on it'
        reader.note(PATH, "nothing says whether others can read what load and server send", hint)
    for section, why in EXCLUDED.items():
        if reader.at((section,)) is not None:
            reader.note(PATH, f"[{section}] and [driver] exclude each other: {why}", "keep one of the two")
    if any(guard == DURABLE for guard in reader.at(("goal", "guards")) or ()):
        told = f"the guard `{DURABLE}` and [driver] exclude each other: {EXCLUDED['restarts']}"
        reader.note(("goal", "guards"), told, "keep one of the two")
    _require_clients(reader, driver, workload, factors)
    _require_networked(reader)
    _require_of_no_host(reader, factors, settings)
    _require_no_files(reader, workload, factors)
    return driver


def _require_clients(
    reader: SectionReader, driver: RemoteDriver, workload: Workload | None, factors: Sequence[Factor]
) -> None:
    """Notes fewer clients than hosts that share them."""
    levels = [level for factor in factors if factor.name == "workload.clients" for level in factor.levels]
    given = [level for level in levels if isinstance(level, int)] or ([workload.clients] if workload else [])
    if given and min(given) < len(driver.hosts):
        told = f"{len(driver.hosts)} hosts are to share {min(given)} clients"
        reader.note(PATH, told, "give each host one client at least, or name fewer hosts")


def _require_networked(reader: SectionReader) -> None:
    for engine in reader.engines:
        if engine.engine not in reader.catalogue.networked and engine.engine in reader.catalogue.engines:
            known = ", ".join(sorted(reader.catalogue.networked))
            told = f"{engine.engine} cannot be loaded from another host"
            reader.note(PATH, told, f"these can: {known}")


def _require_of_no_host(
    reader: SectionReader, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> None:
    """Notes levels that bind a driver to CPUs of this host."""
    told = f"`{OF_THIS_HOST}` binds the driver on this host, and the load comes from another one"
    for factor in factors:
        if factor.name == OF_THIS_HOST:
            reader.note(reader.place_of(factor), told, "leave it out")
    if OF_THIS_HOST in settings:
        reader.note(("settings",), told, "leave it out")


def _require_no_files(reader: SectionReader, workload: Workload | None, factors: Sequence[Factor]) -> None:
    """Notes what the driver would read from a disk, because the load host has another one."""
    if workload is None:
        return
    told = "lies on this host, and the driver on another one reads no files of it"
    hint = "take a workload that needs no file, or leave [driver] out"
    options = {name for name in ("file", "dataset") if workload.options.get(name)}
    options |= {factor.knob for factor in factors if factor.name in ("workload.file", "workload.dataset")}
    for name in sorted(options):
        reader.note(("workload", name), f"what `{name}` names {told}", hint)
