"""No report hangs on a name that a user chose, also where the code has a meaning for that word elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from dbdyno.analyse import Analysis
from dbdyno.findings import analyse, as_json
from dbdyno.host.fingerprint import Host
from dbdyno.records.record import Check, Record
from dbdyno.report.words.tally import tally_text
from dbdyno.study import Design, Factor
from dbdyno.study.nouns import ListedVariant
from tests.analyse.factory import HOST, a_run, a_study, records_of
from tests.fakes import a_kind, make_tally, no_latency
from tests.report.browser import Outline
from tests.report.forms import as_markdown, as_page, on_terminal, print_report

KNOWN = (
    "median", "total", "all", "none", "main", "placebo", "reference", "candidate-1", "tpcc", "new_order",
    "clients", "mean", "other", "rest", "remainder", "whole", "unknown", "measured", "failed", "warmup",
    "load", "latency_ms_p99", "throughput_per_s", "variant", "[kernel", "0x10", "points:", "container",
    "config.page_cache", "workload.clients",
)  # fmt: skip
"""Words with a meaning of their own in the code: roles, verdicts, parts, columns, metrics, factors."""


def plain(known: str) -> str:
    """A word of the same length that sorts like it, and that no code knows."""
    return f"{known[:-1]}7"


PLAIN = tuple(map(plain, KNOWN))


@cache
def found(names: tuple[str, ...]) -> Analysis:
    """A study whose variants, title, host, workload, transactions and invariants have these names."""
    listed = {"baseline": "2k"} | {name: f"{number + 4}k" for number, name in enumerate(names)}
    study = a_study(title=names[0], blocks=4).but(
        design=Design.LIST,
        factors=(Factor(name="config.page_cache", levels=tuple(listed.values())),),
        variants=tuple(
            ListedVariant(name=name, levels={"config.page_cache": level}) for name, level in listed.items()
        ),
    )
    study = study.but(workload=study.workload.but(name="pgbench", options={"file": names[1]}))
    ratios = {name: (1.0, 1.4, 0.7)[number % 3] for number, name in enumerate(names)}
    records = [renamed(record, names) for record in records_of(study, ratios)]
    return analyse(study, a_run(study).but(host=Host.model_validate({**HOST, "name": names[2]})), records)


def renamed(record: Record, names: Sequence[str]) -> Record:
    [phase] = record.phases
    assert phase.tally is not None
    tally = phase.tally.but(by_transaction={name: a_kind(500, 1.0, no_latency()) for name in names})
    checks = tuple(Check(name=name, holds=True, detail=name) for name in names)
    return record.but(host=names[2], phases=(phase.but(tally=tally, checks=checks),))


def without_figures(page: str) -> str:
    """What a page says in words, because figures number their parameters through a process. A name
    may be wrapped behind a line or a point, and not behind a digit."""
    lines = page.replace("<wbr>", "").splitlines()
    return "\n".join(line for line in lines if "data-figure=" not in line and 'id="packed"' not in line)


FORMS: dict[str, Callable[[Analysis], str]] = {
    "json": as_json.render,
    "markdown": as_markdown,
    "page": lambda analysis: without_figures(as_page(analysis)),
    "terminal": lambda analysis: on_terminal(lambda console: print_report(analysis, console, details=True)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_report_says_the_same_whatever_its_variants_are_called(form: str) -> None:
    """Names that the code knows, and the same records under names that it does not know."""
    assert FORMS[form](found(KNOWN)).splitlines() == restored(FORMS[form](found(PLAIN))).splitlines()


def test_a_load_says_the_same_whatever_its_transactions_are_called() -> None:
    def said(names: Sequence[str]) -> str:
        return tally_text(
            make_tally(
                by_transaction={name: a_kind(500, 1.0, no_latency()) for name in names}, workload="pgbench"
            )
        )

    assert said(KNOWN) == restored(said(PLAIN))


def restored(text: str) -> str:
    for known, word in zip(KNOWN, PLAIN, strict=True):
        text = text.replace(word, known)
    return text


@pytest.mark.parametrize("design", [Design.ONE_AT_A_TIME, Design.FACTORIAL, Design.LADDER])
def test_a_level_that_is_empty_is_seen_wherever_another_is(design: Design) -> None:
    def shown_with(level: str) -> list[str]:
        levels = [level, "plain"] if design is Design.LADDER else ["plain", level, "strict"]
        study = a_study({"config.mode": levels, "workload.clients": [1, 8]}, design=design)
        analysis = analyse(study, a_run(study), records_of(study))
        forms = (
            as_markdown(analysis),
            on_terminal(lambda console: print_report(analysis, console, details=True), width=140),
            Outline(as_page(analysis)).shown.replace('\\"', '"'),
        )
        return [text.replace(level or '""', "LEVEL") for text in forms]

    empty = shown_with("")
    assert empty == shown_with("%%")
    assert "LEVEL" in empty[-1]
