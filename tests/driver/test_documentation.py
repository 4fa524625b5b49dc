"""docs/reference/workloads.md lists what the driver offers."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.study import Option, Workload, WorkloadOffer, workload_offers
from dbdyno.study.nouns import KEEPS_LEDGER

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "workloads.md").read_text()
OFFERS = workload_offers(_driver.workloads())
ON_OTHER_PAGES = ("vector_search", "script", "statements", "lua")
HEADINGS = {"replay": "Replay", "tpcb": "TPC-B", "tpcc": "TPC-C", "flexasync": "flexAsynch"}


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def rows(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed(heading: str) -> dict[str, list[str]]:
    """The rows of options below a heading, by option: the default, and whether it shapes the data."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    tables = [rows(table) for table in section.split("\n\n") if table.startswith("| option |")]
    return {name: row[1:] for table in tables for row in table for name in named(row[0])}


def of_oltp(workload: str) -> dict[str, list[str]]:
    """The options that the page gives one workload of the family, whose third column says whose they are."""
    shared = {"all", *(() if workload == "bulk_insert" else ("all but `bulk_insert`",))}
    found = listed("OLTP").items()
    return {name: row for name, row in found if row[2] in shared or workload in named(row[2].split("but")[0])}


def on_the_page(offer: WorkloadOffer) -> dict[str, list[str]]:
    if offer.name.startswith("ycsb_"):
        return listed("YCSB")
    return listed(HEADINGS[offer.name]) if offer.name in HEADINGS else of_oltp(offer.name)


def default_of(option: Option) -> str:
    default = option.default
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_it_names_every_workload() -> None:
    table = PAGE.partition("| workload |")[2].partition("\n\n")[0]
    told = [name for row in rows(table) for name in named(row[0])]
    assert sorted(told) == sorted(offer.name for offer in OFFERS)


def test_it_lists_every_option_with_its_default() -> None:
    offers = [offer for offer in OFFERS if offer.name not in ON_OTHER_PAGES]
    assert len(offers) > 15
    for offer in offers:
        told = on_the_page(offer)
        assert set(told) == {option.name for option in offer.options}, offer.name
        for option in offer.options:
            default, data = told[option.name][:2]
            assert default in (f"`{default_of(option)}`", default_of(option), "as above"), option.name
            assert data == ("yes" if option.shapes_data else "no"), option.name


def test_a_study_knows_which_workloads_keep_a_ledger_as_the_driver_tells_it() -> None:
    """A stored study means the same whichever driver is here, so the nouns hold the names as well."""
    assert sorted(KEEPS_LEDGER) == sorted(offer.name for offer in OFFERS if offer.keeps_ledger)
    reading = {(offer.name, one.name) for offer in OFFERS for one in offer.options if one.reads_only}
    assert reading == {("tpcb", "select_only")}
    assert not Workload(name="tpcb", options={"select_only": True}).keeps_ledger
