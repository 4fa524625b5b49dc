"""One HTML file that holds everything: figures, tables, evidence. It asks the network for nothing.

The page carries Vega, Vega-Lite and Vega-Embed themselves (`vl_convert.javascript_bundle`), and a policy
that forbids every request; where scripts are off, the tables say it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from dbdyno.analyse.candidates import COSTS
from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis, Gap, Kept, VariantResult
from dbdyno.analyse.profile import Profile
from dbdyno.records import metrics
from dbdyno.records.record import Evidence, Reading, Record
from dbdyno.report.figures import charts, flame
from dbdyno.report.figures import gate as gate_figure
from dbdyno.report.figures import search as search_figures
from dbdyno.report.parts import (
    builds,
    configuration,
    counted,
    frontier,
    gap,
    grid,
    overhead,
    plans,
    replays,
    request,
    restarts,
    search,
    split,
    statements,
)
from dbdyno.report.parts import gate as gate_part
from dbdyno.report.renderers.page import embedded, environment, in_page, template_text
from dbdyno.report.words import (
    answer,
    brought,
    doubts,
    method,
    naming,
    noise,
    numbers,
    remarks,
    safe,
    verdicts,
)
from dbdyno.report.words import plans as plans_words
from dbdyno.report.words import search as search_words


def render(analysis: Analysis) -> str:
    """The whole page."""
    return _page(
        "report.html",
        analysis=analysis,
        study=analysis.study,
        run=analysis.run,
        metric=metrics.find(analysis.method.response),
        variants=[analysis.baseline, *charts.ranked(analysis)],
        costs=_costs(analysis),
        proofs=_proofs(analysis),
        host=list(_flattened(analysis.run.host)),
        shared=naming.shared_beginning([safe.clean(variant.name) for variant in analysis.candidates]),
        figures=_figures(analysis),
        group=brought.group_text(analysis.run),
        stages=any(trial.record.stages_s for trial in analysis.trials),
        warnings=_warnings(analysis),
        answer=answer,
        remarks=remarks,
        method=method,
        noise=noise,
        naming=naming,
        numbers=numbers,
        verdicts=verdicts,
        gap=gap,
        grid=grid.grid(analysis),
        frontier=frontier,
        configuration=configuration,
        request=request,
        split=split,
        statements=statements,
        plans=plans,
        plans_words=plans_words,
        replays=replays,
        builds=builds,
        restarts=restarts,
        counted=counted,
        overhead=overhead,
        search=search,
        search_words=search_words,
    )


def explained(found: Gap, title: str) -> str:
    """The gap between two variants, as a page of its own."""
    spec = charts.waterfall(found)
    return _page(
        "gap.html",
        found=found,
        title=title,
        gap=gap,
        figures={} if spec is None else {"gap": embedded(spec)},
    )


def gate(found: Gate) -> str:
    """A run held against another, as a page of its own. Its bars need no library, so it is small."""
    verdict = found.result.verdict
    return _page(
        "gate.html",
        found=found,
        gate=gate_part,
        mark=verdicts.LOOKS[verdict].glyph if verdict else "",
        figure=gate_figure.figure(found),
        own_css=Markup(template_text("gate.css")),
    )


def profiles(title: str, found: Sequence[Profile], notes: Sequence[str]) -> str:
    """The flame graphs of one variant or two, as a page of its own. They need no library."""
    return _page(
        "flame.html",
        title=title,
        graphs=flame.graphs(found),
        tables=flame.tables(found),
        notes=notes,
        row=flame.ROW,
        width=flame.WIDTH,
        number=metrics.number_text,
        own_css=Markup(template_text("flame.css")),
        own_script=Markup(template_text("flame.js")),
    )


@dataclass(frozen=True)
class Proof:
    """A level's readings before the load, and the trials and variants in which they were the same.

    Counters differ from trial to trial: the evidence carries those of the first, `exercised` says how many
    there were.
    """

    evidence: Evidence
    trials: tuple[int, ...]
    variants: tuple[str, ...]
    exercised: int


def _proofs(analysis: Analysis) -> list[Proof]:
    """The evidence of all trials, what reads the same put together; by factor in the study's order, then by
    level.
    """
    grouped: dict[str, list[tuple[Record, Evidence]]] = {}
    for trial in analysis.trials:
        for evidence in trial.record.evidence:
            grouped.setdefault(evidence.model_dump_json(exclude={"exercised", "idle"}), []).append(
                (trial.record, evidence)
            )
    order = {factor.name: index for index, factor in enumerate(analysis.study.factors)}
    proofs = [
        Proof(
            evidence=seen[0][1],
            trials=tuple(record.trial for record, _ in seen),
            variants=tuple(dict.fromkeys(record.variant for record, _ in seen)),
            exercised=len({evidence.exercised.value for _, evidence in seen if evidence.exercised}),
        )
        for seen in grouped.values()
    ]
    return sorted(
        proofs, key=lambda proof: (order.get(proof.evidence.factor, len(order)), proof.evidence.requested)
    )


def _costs(analysis: Analysis) -> list[metrics.Metric]:
    """The metrics beside the response that any variant was compared in."""
    names = dict.fromkeys(ratio.metric for variant in analysis.variants for ratio in variant.costs)
    return [metrics.find(name) for name in names]


def _warnings(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "advice": advice,
            "trials": [trial for trial in analysis.trials if warning in trial.warnings],
            "details": list(
                dict.fromkeys(
                    trial.warnings[warning] for trial in analysis.trials if warning in trial.warnings
                )
            ),
        }
        for warning, advice in doubts.WARNINGS.items()
        if any(warning in trial.warnings for trial in analysis.trials)
    ]


def _figures(analysis: Analysis) -> dict[str, Markup]:
    """The specifications by the name of their place in the page, safe to stand in a script element."""
    made = {
        "effects": charts.effects(analysis),
        **_of_search(analysis),
        "gap": charts.waterfall(analysis.gap) if analysis.gap else None,
        "request": charts.request(analysis.requests) if analysis.requests else None,
        "split": charts.split(analysis.splits) if analysis.splits else None,
        "frontier": charts.frontier(analysis.frontier) if analysis.frontier else None,
        "trials": charts.trials(analysis),
        "latency": charts.latency(analysis),
        "series": charts.series(analysis),
    }
    return {name: embedded(spec) for name, spec in made.items() if spec is not None}


def _of_search(analysis: Analysis) -> dict[str, Any]:
    """The figures of a search, if this is one."""
    found, margin = analysis.search, analysis.method.margin
    if found is None:
        return {}
    response = analysis.method.response
    return {
        "shares": search_figures.shares(found, margin),
        "path": search_figures.path(found, margin),
        "given-up": search_figures.by_given_up(found, response, margin),
        **{
            f"tradeoff-{cost}": search_figures.tradeoff(found, cost, response, margin)
            for cost in COSTS
            if cost != response
        },
    }


def _flattened(values: object, path: str = "") -> Iterable[tuple[str, str]]:
    """Nested facts as rows: `cpu.model`, `storage.0.device`."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _flattened(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list | tuple) and any(isinstance(value, dict | list) for value in values):
        for index, value in enumerate(values):
            yield from _flattened(value, f"{path}.{index}")
    elif isinstance(values, list | tuple):
        yield path, ", ".join(str(value) for value in values)
    else:
        yield path, str(values)


def _page(template: str, **values: object) -> str:
    """A page whose template writes more than a document does."""
    environment().filters |= {
        "lines": lambda text: safe.clean_lines(str(text)),
        "sentence": lambda text: f"{text[:1].upper()}{text[1:]}",
        "ratio": numbers.ratio_text,
        "interval": numbers.interval_text,
        "share": numbers.share_text,
        "seconds": numbers.seconds_text,
        "when": lambda unix_s: datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "slug": lambda verdict: verdicts.slug(verdict) if verdict else "none",
        "reading": _reading_text,
        "value": _value_text,
    }
    environment().tests |= {
        "broken": lambda guard: guard.state is Kept.BROKEN,
    }
    return in_page(template, **values)


def _reading_text(reading: Reading | None) -> str:
    return "" if reading is None else safe.clean(reading.value)


def _value_text(metric: metrics.Metric, record_or_variant: Record | VariantResult) -> str:
    """A metric of a trial, or a variant's mean of it; a dash where there is none."""
    if isinstance(record_or_variant, VariantResult):
        summary = record_or_variant.summary(metric.name)
        value = summary.mean if summary else None
    else:
        value = metric.read(record_or_variant) if record_or_variant.outcome.value == "measured" else None
    return numbers.DASH if value is None else metric.format(value)
