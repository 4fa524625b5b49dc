"""Which page is at which path, drawn from the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import unquote

from jinja2 import ChoiceLoader, Environment, PackageLoader, Template

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.trend import trend
from dbdyno.errors import DynoError, UserError
from dbdyno.export import exchange
from dbdyno.findings.registered import when_served
from dbdyno.findings.results import RESULTS
from dbdyno.findings.trend import omitted
from dbdyno.host import paths
from dbdyno.host.host_lock import Holder, LookBetweenBlocks, holder
from dbdyno.kinds.held_against import with_gate
from dbdyno.kinds.registry import without_speeds
from dbdyno.passwords import without_passwords
from dbdyno.prepare_run.begun import reruns_of
from dbdyno.prepare_run.estimate import beside_blocks_s
from dbdyno.prepare_run.stored_run import (
    analysis_of,
    analysis_to_read,
    belongings_of,
    compared_sides,
    latest,
    museum_of,
    side_of,
    sorted_out,
    with_ratio,
)
from dbdyno.prepare_run.stored_study import asked_of, require_measured, study_of
from dbdyno.records.record import Observation, Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.document import (
    ColumnKind,
    Document,
    Element,
    Fold,
    Lines,
    Notes,
    Section,
    Steps,
    Table,
    Text,
    table,
)
from dbdyno.report.renderers import html, page
from dbdyno.report.words.numbers import (
    DASH,
    about_text,
    clock_text,
    coarse_text,
    moment_text,
    plural,
    seconds_text,
)
from dbdyno.report.words.remarks import WARNINGS
from dbdyno.report.words.safe import argument
from dbdyno.serve.drawer import DrawnPage, page_of
from dbdyno.serve.index import Index, RunQuery, row_of, verdicts_in
from dbdyno.study import Study
from dbdyno.study.trials import NO_BLOCK

TITLE = "Under way"
BLOCKS_SHOWN = 12
HEADS = ("block", "trials", "took", "other processes", "steal", "what to know")
KINDS = {"block": ColumnKind.NAME, "what to know": ColumnKind.TEXT}
HOW = "This page is drawn anew when a block is over, and never while one is measured."
HOLDS = "The intervals hold at every look, so you may stop the run when you have seen enough."
SHARES = "Shares of all CPU time of this host during the loads of the block, the highest of its trials."


def nothing_yet(study: Study, run: Run, live: Holder) -> Document:
    """The page of a run before its first record."""
    told = f"No trial has ended yet. The run began at {clock_text(live.since_unix_s)}."
    end = f"It will take until about {clock_text(live.ends_unix_s)}, by an estimate."
    return Document(
        title=study.title,
        answer=(),
        sections=(Section(TITLE, (Lines((told, end)), Notes((HOW,)))),),
        eyebrow=f"run {run.run} · {moment_text(run.created_unix_s)}",
    )


def with_progress(report: Document, analysis: Analysis, live: Holder, now_unix_s: float) -> Document:
    """A run's report, and before it how far the run is."""
    records = [trial.record for trial in analysis.trials]
    body: tuple[Element, ...] = (
        Lines(tuple(_told(analysis, records, live, now_unix_s))),
        _blocks(analysis, records),
        Notes((SHARES, HOW, *([HOLDS] if analysis.method.unfinished else []))),
    )
    return replace(report, sections=(Section(TITLE, body), *report.sections))


def _told(analysis: Analysis, records: Sequence[Record], live: Holder, now_unix_s: float) -> Iterator[str]:
    run = analysis.run
    blocks = {record.block for record in records if record.block != NO_BLOCK}
    left_s = max(0.0, _ends_unix_s(analysis, records, live) - now_unix_s)
    if run.searches:
        yield f"{plural(len(records), 'trial')} of the search have ended."
    else:
        most = ", at most" if run.sequential else ""
        trials = f"{len(records)} of {plural(analysis.trials_planned, 'trial')}"
        yield f"{trials} have ended, in {len(blocks)} of {plural(run.blocks, 'block')}{most}."
    if left_s:
        yield f"About {about_text(left_s)} are left, until {clock_text(now_unix_s + left_s)} (an estimate)."
    else:
        yield "It is about to end."


def _ends_unix_s(analysis: Analysis, records: Sequence[Record], live: Holder) -> float:
    """By the trials of blocks that this Dyno has carried out, and what those beside them are expected to
    take; else by what it expected before the first."""
    own = [record for record in records if record.started_unix_s >= live.since_unix_s]
    if analysis.run.searches or not own:
        return live.ends_unix_s
    latest = max(record.finished_unix_s for record in own)
    began = min(record.started_unix_s for record in own)
    left = max(0, analysis.trials_planned - len(records))
    return latest + (latest - began) / len(own) * left + beside_blocks_s(analysis.study)


def _blocks(analysis: Analysis, records: Sequence[Record]) -> Table:
    """The latest blocks, the last one first."""
    by_block: dict[int, list[Record]] = {}
    for record in records:
        by_block.setdefault(record.block, []).append(record)
    shown = sorted(by_block.items(), reverse=True)[:BLOCKS_SHOWN]
    cores = analysis.run.host.cpu.usable_cores if analysis.run.host.cpu else None
    return table(HEADS, [_row(block, of_it, cores or 0) for block, of_it in shown], KINDS)


def _row(block: int, records: Sequence[Record], cores: int) -> tuple[str, ...]:
    outcomes = Counter(record.outcome.value for record in records)
    took_s = max(one.finished_unix_s for one in records) - min(one.started_unix_s for one in records)
    doubts = dict.fromkeys(doubt for record in records for doubt in record.doubts)
    failed = [f"{one.variant}: {one.cause}" for one in records if one.cause]
    return (
        "beside the blocks" if block == NO_BLOCK else f"block {block + 1}",
        ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()),
        seconds_text(took_s),
        _share(records, "other_cpu_s", cores),
        _share(records, "steal_s", cores),
        "; ".join((*(WARNINGS[doubt].text for doubt in doubts), *failed)),
    )


def _share(records: Sequence[Record], name: str, cores: int) -> str:
    """The highest share of the host's CPU time; a dash where nobody could read it."""
    shares = [share for one in records if (share := _share_of(one.observation, name, cores)) is not None]
    return coarse_text(max(shares)) if shares else DASH


def _share_of(seen: Observation | None, name: str, cores: int) -> float | None:
    if seen is None or name not in seen.totals or not cores or not seen.duration_s:
        return None
    return seen.totals[name] / (seen.duration_s * cores)


RUNS, TRENDS, MUSEUM, LIVE, METRICS = "/", "/trends", "/museum", "/live", "/metrics"
RUN, TREND, COMPARE, PROFILE, RECIPE = "/run/", "/trend/", "/compare/", "/profile/", "/recipe/"
READER = "X-Dyno-Reader"
"""The header in which the script of a page says who asks for it anew."""
NAMED = (RUN, TREND, PROFILE, RECIPE)
TREND_RUNS_MOST = 50
ROWS_MOST = 200
"""Of a list in one page: a browser shows them at once, and older ones are a click away."""
NOT_FOUND, FAILED = 404, 500


def is_page(path: str) -> bool:
    """Whether there may be a page at this path. The list of runs may have a query."""
    path, _, query = path.partition("?")
    if path.startswith(COMPARE):
        return len([*filter(None, path.removeprefix(COMPARE).split("/"))]) == 2 and not query
    named = (path.removeprefix(prefix) for prefix in NAMED if path.startswith(prefix))
    found = path in (RUNS, TRENDS, MUSEUM, METRICS) or any(name and "/" not in name for name in named)
    return found and (not query or path == RUNS)


def under_way_in(store: Store) -> Holder | None:
    """Who measures on this host, where his run is in the store."""
    found = holder()
    if found is None or not found.run:
        return None
    try:
        return found if store.key(found.run) == found.run else None
    except UserError:
        return None


@dataclass
class StorePages:
    """The pages of one store."""

    store_url: str
    _index: Index = field(default_factory=Index)

    def state(self) -> Hashable:
        """Differs where a page may say something else. None where the store cannot be asked."""
        try:
            with Store(self.store_url) as store:
                found = under_way_in(store)
                return store.state(), found.run if found else "", paths.reports_state()
        except DynoError:
            return None

    def run_under_way(self) -> str:
        """The name of the run that is under way on this host and in this store; empty where there is none."""
        try:
            with Store(self.store_url) as store:
                found = under_way_in(store)
        except DynoError:
            return ""
        return found.run if found else ""

    def draw(self, path: str, look: LookBetweenBlocks) -> DrawnPage:
        """The page at a path. What fails is a page as well, which says what to do."""
        try:
            with Store(self.store_url) as store:
                if path == METRICS:
                    return page_of(_metrics(store), media_type=exchange.CONTENT_TYPE)
                return page_of(self._drawn(path, store, look))
        except DynoError as error:
            status = NOT_FOUND if isinstance(error, UserError) else FAILED
            return page_of(self._said(path, error.message, error.hint), status)
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            hint = "this is a fault in Dyno; dyno report shows whether the terminal can tell it"
            return page_of(self._said(path, f"Dyno failed: {told}", hint), FAILED)

    def _drawn(self, path: str, store: Store, look: LookBetweenBlocks) -> str:
        if path.partition("?")[0] == RUNS:
            return self._runs(store, path, look)
        if path.startswith(COMPARE):
            left, right = path.removeprefix(COMPARE).split("/")
            found = compared_sides(side_of(store, unquote(left)), side_of(store, unquote(right)))
            return self._document(RESULTS["compare"].document(found), path, RUNS)
        if path == TRENDS:
            return self._list("Trends", path, store, studies=self._index.studies(store, look.give_way))
        if path == MUSEUM:
            exhibits = museum_of(store, between=look.give_way)
            return self._document(RESULTS["museum"].document(exhibits), path, MUSEUM)
        if path.startswith(TREND):
            name = unquote(path.removeprefix(TREND))
            return self._document(_trend(store, name, look.give_way), path, TRENDS)
        if path.startswith(PROFILE):
            return flame_graph(unquote(path.removeprefix(PROFILE)))
        if path.startswith(RECIPE):
            return self._document(recipe_page(store, unquote(path.removeprefix(RECIPE))), path, RUNS)
        return self._run(store, store.run(unquote(path.removeprefix(RUN))), path, look)

    def _runs(self, store: Store, path: str, look: LookBetweenBlocks) -> str:
        """The latest runs of those that are asked for."""
        asked = RunQuery.of(path.partition("?")[2])
        runs = self._index.runs(store, look.give_way)
        fitting = [one for one in runs if asked.fits(one)]
        shown = fitting[asked.skip : asked.skip + ROWS_MOST]
        newer = max(0, asked.skip - ROWS_MOST)
        return self._list(
            "Runs", path, store,
            rows=list(map(row_of, shown)), verdicts=verdicts_in(runs), asked=asked,
            studies=sorted({one.read.file for one in runs} - {""}),
            engines=sorted({one.read.engine for one in runs} - {""}),
            first=asked.skip + 1, fitting=len(fitting), all=len(runs),
            older=f"/?{asked.query(asked.skip + ROWS_MOST)}" if asked.skip + ROWS_MOST < len(fitting) else "",
            newer=f"/?{asked.query(newer)}".rstrip("?") if asked.skip else "",
        )  # fmt: skip

    def _list(self, title: str, path: str, store: Store, **values: object) -> str:
        """A page that is no document, because its rows are links."""
        report = Document(title, (), (), eyebrow="all of a store", facts=(("Store", store.place),))
        template = self._template(f"{title.lower()}.html")
        return page.page_text(template, report=report, figures={}, here=path, path=path, **values)

    def _run(self, store: Store, run: Run, path: str, look: LookBetweenBlocks) -> str:
        found = under_way_in(store)
        live = found if found and found.run == run.run else None
        records = store.summary(run).outcomes
        if live and not records:
            return self._document(nothing_yet(study_of(run), run, live), path, LIVE)
        if (other := without_speeds(store, run)) is not None:
            kind, result = other
            return self._document(RESULTS[kind].document(result), path, LIVE if live else RUNS)
        analysis = with_gate(store, analysis_to_read(store, run), look.give_way)
        reruns = reruns_of(store, run)
        known = {"reruns": reruns, "belongings": belongings_of(store, analysis, reruns)}
        report: Document = RESULTS["report"].document(analysis, **known, opened_by=when_served)
        if live:
            report = with_progress(report, analysis, live, time.time())
        return self._document(report, path, LIVE if live else RUNS)

    def _said(self, path: str, message: str, hint: str) -> str:
        steps = (Steps((without_passwords(hint),)),) if hint else ()
        said = Section("What happened", (Lines((without_passwords(message),)), *steps))
        report = Document(title="This page cannot be drawn", answer=(), sections=(said,), eyebrow="pages")
        return self._document(report, path, "")

    def _document(self, report: Document, path: str, here: str) -> str:
        """`here` is the part of the navigation that the page belongs to."""
        drawn = html.render(report, self._template("served.html"), here=here, path=path)
        if "data-figure" in drawn:
            # Now, because nothing is made while a block is measured.
            page.vega()
        return drawn

    @cached_property
    def _environment(self) -> Environment:
        loaders = [PackageLoader("dbdyno.serve"), PackageLoader("dbdyno.report")]
        return page.environment().overlay(loader=ChoiceLoader(loaders))

    def _template(self, name: str) -> Template:
        return self._environment.get_template(name, globals={"reader_header": READER})


def _metrics(store: Store) -> str:
    """Of the run that is under way, or else of the last one. Soaks, bisections, runs without a trial and an
    empty store have none."""
    found, runs = under_way_in(store), store.runs()
    under_way = [one for one in runs if found and one.run.run == found.run]
    chosen = next(iter(under_way or runs), None)
    if chosen is None or not chosen.outcomes or not chosen.run.compares:
        return exchange.NOTHING
    return exchange.exposed(analysis_to_read(store, chosen.run))


def _trend(store: Store, name: str, between: Callable[[], None]) -> Document:
    """The trend of the study that a run carried out."""
    first = store.run(name)
    require_measured(first)
    study = asked_of(first)
    found, left_out = sorted_out(study, store.runs())
    found = latest(found, None, TREND_RUNS_MOST, left_out)
    shown = with_ratio(store, found, left_out, between)
    if not shown:
        missing = omitted(+left_out)
        raise UserError(f'no finished run of "{study.title}" with a ratio', f"left out: {missing}")
    report: Document = RESULTS["trend"].document(trend(study, shown, left_out))
    return report


def flame_graph(name: str) -> str:
    """A page of flame graphs among the reports, as `dyno profile` wrote it."""
    page = paths.reports_place() / name
    if paths.PROFILE not in name or page.parent != paths.reports_place() or not page.is_file():
        raise UserError(f"no flame graph {name!r}", "dyno profile RUN draws those of a run")
    return page.read_text(encoding="utf-8")


def recipe_page(store: Store, name: str) -> Document:
    """What `dyno recipe` would write of a run, file by file."""
    run = store.run(name)
    require_measured(run)
    # Here, because few readers open a recipe.
    from dbdyno.deploy import made

    written = made.recipe_made(analysis_of(store, run), store.records(run.run), None, any_verdict=False)
    evidence, *files = sorted(made.recipe_files(*written), key=lambda file: file.name != made.EVIDENCE)
    shown = (Fold(file.name, (Text(_text_of(file.content)),)) for file in files)
    return Document(
        title=f"Recipe of {written.deployment.variant}",
        answer=(f"dyno recipe {argument(run.run)} writes these files.",),
        sections=(
            Section(evidence.name, (Text(_text_of(evidence.content)),)),
            Section("Its other files", tuple(shown)),
        ),
        eyebrow=f"recipe of run {run.run}",
    )


def _text_of(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"({plural(len(content), 'byte')})"
