"""Engines side by side: what ran, whether their rows were the same, and which defaults differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dbdyno.analyse.found import DefaultChanged, DefaultsBeside, EngineRan, EnginesCompared, RowsDiffer
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Record
from dbdyno.study import Study

NOT_COMPARED = ("version", "server_version")
"""How names begin of what tells the version, and is no setting."""


LOCKING = r"isolation|lock|snapshot|deadlock|autocommit|serializ"
FLUSHING = (
    r"flush|sync|doublewrite|wal|commit|checkpoint|binlog|log_bin|redo|undo|journal|purge|forced_writes"
)
MEMORY = r"buffer|cache|_mem\b|memory|_size$|heap|temp"
PLANNING = r"optimizer|planner|enable_|cost|jit|join|statistics|stats|histogram|prefetch|index"
THREADS = r"thread|parallel|worker|concurren|io_|capacity|aio|spin"
KINDS = (LOCKING, FLUSHING, MEMORY, PLANNING, THREADS)
"""Kinds of settings by their names, those on which speed mostly rests. The others come last."""
ERRORS_REST_ON = (
    (r"\b1020\b", r"snapshot_isolation|isolation"),
    (r"\b(1205|1213|40P01|55P03|40001|deadlock|lock)", LOCKING),
    (r"\b(1040|53300|too many)", r"max_.*connections|reserved"),
    (r"\b(1038|1041|53200|out of memory)", MEMORY),
    (r"\b(1153|packet)", r"packet"),
    (r"\b(1969|3024|57014|time ?out|statement_time)", r"timeout|_time$"),
    (r"\b(1264|1292|1364|1366|1406|22001|22003)", r"sql_mode|strict"),
)
"""On which settings an error rests, by its code or its text and by the settings' names."""
COSTS_REST_ON = {
    "written_bytes_per_op": FLUSHING,
    "read_bytes_per_op": MEMORY,
    "server_cpu_us_per_op": PLANNING,
    "context_switches_per_op": THREADS,
}
"""On which settings it rests that a transaction costs more, by the metric."""
COSTS_MORE, ERRORS_LEAST = 1.1, 1e-3


def ranked_defaults(found: DefaultsBeside) -> list[DefaultChanged]:
    """The changed defaults: those first on which something rests that was seen, then by their kind."""

    def rank(one: DefaultChanged) -> tuple[bool, int, str]:
        kinds = [number for number, kind in enumerate(KINDS) if re.search(kind, one.name, re.IGNORECASE)]
        return not one.seen, min(kinds, default=len(KINDS)), one.name

    return sorted(found.changed, key=rank)


def engines_compared(study: Study, records: Sequence[Record]) -> EnginesCompared | None:
    """What the records of a run say of its engines; None where they are no factor."""
    if len(study.engines) < 2:
        return None
    by_level: dict[str, list[Record]] = {one.written: [] for one in study.engines}
    for record in records:
        level = record.levels.get(ENGINE_FACTOR)
        by_level.get(level_text(level) if level is not None else "", []).append(record)
    products = {one.written: one.engine for one in study.engines}
    baseline, *others = by_level
    differing = [
        found for level in others for found in _other_rows(level, by_level[baseline], by_level[level])
    ]
    shown = {
        level for level in others if _images(by_level[baseline]).keys() & _images(by_level[level]).keys()
    }
    same_product = [level for level in others if products[level] == products[baseline]]
    defaults = (_defaults(level, by_level[baseline], by_level[level]) for level in same_product)
    return EnginesCompared(
        ran=tuple(_ran(level, products[level], found) for level, found in by_level.items()),
        same_rows=tuple(one for one in others if one in shown - {each.level for each in differing}),
        other_rows=tuple(differing),
        defaults=tuple(filter(None, defaults)),
    )


def _ran(level: str, product: str, records: Sequence[Record]) -> EngineRan:
    upgrades = {
        int(record.reset["image"]): (str(record.reset["upgraded_by"]), float(record.reset["upgrade_s"]))
        for record in records
        if "upgraded_by" in record.reset and "image" in record.reset
    }
    for record in records:
        for evidence in record.evidence:
            if evidence.factor == ENGINE_FACTOR and evidence.effective is not None and evidence.in_effect:
                return EngineRan(
                    level=level,
                    product=product,
                    version=record.engine_version,
                    origin=evidence.accepted.source if evidence.accepted is not None else "",
                    proof=evidence.effective.source,
                    compiler=record.compiler,
                    upgraded_by=next((by for by, _ in upgrades.values()), ""),
                    upgrade_s=tuple(seconds for _, (_, seconds) in sorted(upgrades.items())),
                )
    return EngineRan(level=level, product=product)


def _images(records: Iterable[Record]) -> dict[int, str]:
    """The checksums of the tables, by the image of the data."""
    return {
        int(record.reset["image"]): str(record.reset["rows"])
        for record in records
        if "rows" in record.reset and "image" in record.reset
    }


def _other_rows(level: str, baseline: Iterable[Record], records: Iterable[Record]) -> list[RowsDiffer]:
    before, after = _images(baseline), _images(records)
    return [
        RowsDiffer(level=level, image=image, before=before[image], after=after[image])
        for image in sorted(before.keys() & after.keys())
        if before[image] != after[image]
    ]


def _defaults(level: str, baseline: Iterable[Record], records: Iterable[Record]) -> DefaultsBeside | None:
    baseline, records = list(baseline), list(records)
    before, after = _first(baseline), _first(records)
    if before is None or after is None:
        return None
    names = sorted(name for name in {*before, *after} if _is_setting(name, before, after))
    seen = [*_more_errors(baseline, records), *_more_costs(baseline, records)]
    changed = [
        DefaultChanged(
            name=name,
            before=before.get(name),
            after=after.get(name),
            seen=next((what for what, names in seen if re.search(names, name, re.IGNORECASE)), ""),
        )
        for name in names
        if before.get(name) != after.get(name)
    ]
    return DefaultsBeside(level=level, compared=len(names), changed=tuple(changed))


def _more_errors(baseline: Sequence[Record], records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Errors that the level had in more of its transactions, the most frequent first, and the settings that
    they rest on."""
    before, after = _errors_per_transaction(baseline), _errors_per_transaction(records)
    more = {kind: share - before.get(kind, 0.0) for kind, share in after.items()}
    for kind in sorted((kind for kind in more if more[kind] > ERRORS_LEAST), key=lambda kind: -more[kind]):
        for error, names in ERRORS_REST_ON:
            if re.search(error, kind, re.IGNORECASE):
                yield kind, names
                break


def _errors_per_transaction(records: Sequence[Record]) -> dict[str, float]:
    tallies = [record.tally for record in records if record.tally is not None]
    errors = sum((Counter(tally.errors) for tally in tallies), Counter[str]())
    ended = sum(tally.operations + tally.failed for tally in tallies)
    return {kind: count / ended for kind, count in errors.items()} if ended else {}


def _more_costs(baseline: Sequence[Record], records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """What a transaction needed more of at the level, and the settings that this rests on."""
    for name, names in COSTS_REST_ON.items():
        ours, theirs = _mean(name, records), _mean(name, baseline)
        if ours is not None and theirs and ours / theirs >= COSTS_MORE:
            yield name, names


def _mean(metric: str, records: Sequence[Record]) -> float | None:
    measured = [record for record in records if record.tally is not None and record.observation is not None]
    values = [value for one in measured if (value := metrics.find(metric).read(one)) is not None]
    return sum(values) / len(values) if values else None


def _first(records: Iterable[Record]) -> Mapping[str, str] | None:
    return next((record.defaults for record in records if record.defaults is not None), None)


def _is_setting(name: str, *defaults: Mapping[str, str]) -> bool:
    """Without what tells the version, and without the places of an installation."""
    of_place = any(values.get(name, "").startswith("/") for values in defaults)
    return not (of_place or name.lower().startswith(NOT_COMPARED))
