"""Counted instructions in tables and words: which functions executed them, what two variants differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.code import changed_functions, counted_work, spread
from dbdyno.analyse.found import CountedVariant, InstructionChange
from dbdyno.analyse.model import Analysis
from dbdyno.findings.profile import FUNCTIONS_IN_DOCUMENT, SHOWN
from dbdyno.frozen import Frozen, absent
from dbdyno.records import metrics
from dbdyno.records.metrics import number_text
from dbdyno.records.record import INSTRUCTIONS, Counted, CountedFunction
from dbdyno.report.document import Detail, Document, Fold, From, Notes, Section, Table, table
from dbdyno.report.words import numbers, safe
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP

Named = tuple[str, Counted]
"""A variant's name, and what it executed."""

EVENTS = {
    "Ir": "instructions",
    "Dr": "data reads",
    "Dw": "data writes",
    "I1mr": "first-level misses of instructions",
    "D1mr": "first-level misses of reads",
    "D1mw": "first-level misses of writes",
    "ILmr": "last-level misses of instructions",
    "DLmr": "last-level misses of reads",
    "DLmw": "last-level misses of writes",
    "Bc": "conditional branches",
    "Bcm": "conditional branches mispredicted",
    "Bi": "indirect branches",
    "Bim": "indirect branches mispredicted",
}
"""Callgrind's events in words."""

NOTES = (
    "Counted by Valgrind's callgrind, with one client: the instructions of the server's own code. Not "
    "counted: the kernel, waiting, and how long an instruction takes. Valgrind offers no AVX-512, so code "
    "that looks for it takes another path here.",
    "With all it calls: a recursion counts each time it is entered.",
)


def functions_section(name: str, counted: Counted) -> Section:
    """The functions with most instructions of their own."""
    total = counted.per_op[INSTRUCTIONS]
    rows = [
        (
            _function(one.name, one.module),
            number_text(one.own[INSTRUCTIONS]),
            numbers.part_text(one.own[INSTRUCTIONS], total),
            number_text(one.whole),
        )
        for one in counted.functions[:SHOWN]
    ]
    heads = ("function", "own, per op", "share", "with all it calls")
    return Section(f"{name}: functions by their own instructions", (table(heads, rows),))


def _changes(name: str, against: str, found: Sequence[InstructionChange]) -> Section:
    rows = [
        (
            _function(change.name, change.module),
            number_text(change.own),
            number_text(change.against),
            _signed(change.change),
            numbers.DASH if change.share is None else numbers.share_text(change.share, digits=3),
        )
        for change in found[:SHOWN]
    ]
    heads = ("function", "per op", "against", "change", "of all change")
    title = f"{name} against {against}: own instructions per transaction"
    return Section(title, (table(heads, rows),))


def events_section(each: Sequence[Named]) -> Section:
    """All that was counted and simulated, per transaction, a column for each variant."""
    rows = [
        (EVENTS.get(event, event), *(number_text(counted.per_op[event]) for _, counted in each))
        for event in each[0][1].per_op
    ]
    return Section("Per transaction", (table(("", *(name for name, _ in each)), rows),))


def sentences(each: Sequence[Named]) -> list[str]:
    """What was counted for each variant, and the difference of two."""
    lines = [
        f"{name}: {number_text(counted.per_op[INSTRUCTIONS])} instructions per transaction. "
        f"{len(counted.repeats)} counts of {counted.operations:,} transactions differ by up to "
        f"{numbers.share_text(spread(counted), digits=2)}."
        for name, counted in each
    ]
    if len(each) == 2:
        ours, theirs = (counted.per_op[INSTRUCTIONS] for _, counted in each)
        lines.append(
            f"{each[0][0]} executes {_signed(ours - theirs)} instructions per transaction "
            f"against {each[1][0]}: {numbers.change_text(ours / theirs - 1.0)}."
        )
    return lines


TITLE = "Counted work"
UNTOLD = "~: the ratios of the repeats do not tell the difference from none."
BESIDE = (
    "Counted once, after the timed blocks; ratio: the median over the repeats, each beside the "
    "baseline's; repeats differ by: the largest of them over the smallest. Each does the same work in every "
    f"variant. {UNTOLD}"
)


BY_COUNTERS = (
    "Read from the CPU's counters in every timed trial. The kernel's instructions are among them where it "
    "lets Dyno count those, and the driver's where the engine runs in its process. `dyno profile --counted` "
    "counts the engine's own by function, under Valgrind."
)


def find(basis: Basis) -> tuple[CountedVariant, ...]:
    """Of each variant whose work was counted beside its timed trials."""
    return counted_work([one for one in basis.given.beside if not one.of_restarts], basis.baseline)


def has_beside(analysis: Analysis) -> bool:
    """Whether there is anything to tell of counted work."""
    return bool(beside_tables(analysis) or beside_notes(analysis))


def beside_tables(analysis: Analysis) -> list[Table]:
    """Each variant's instructions beside what was measured of it, as Valgrind counted them or the CPU."""
    found = [beside_table(analysis)] if analysis.counted else []
    return [*found, _counters_table(analysis)] if _by_counters(analysis) else found


def beside_table(analysis: Analysis) -> Table:
    """The instructions of each variant as Valgrind counted them, beside what was measured of it."""
    effects = {variant.name: variant.effect for variant in analysis.variants}
    rows = [
        (one.variant, *_counted_cells(one), numbers.effect_text(effects.get(one.variant)))
        for one in analysis.counted
    ]
    heads = ("variant", "instructions per op", "ratio", "repeats differ by", _response_head(analysis))
    return table(heads, rows)


def _counters_table(analysis: Analysis) -> Table:
    rows = []
    for variant in analysis.variants:
        seen = variant.summary(INSTRUCTIONS_PER_OP)
        each = (
            number_text(seen.mean) if seen else "not read",
            numbers.effect_text(variant.cost(INSTRUCTIONS_PER_OP)),
        )
        rows.append((variant.name, *each, numbers.effect_text(variant.effect)))
    return table(("variant", "instructions per op", "ratio", _response_head(analysis)), rows)


def _response_head(analysis: Analysis) -> str:
    return f"{metrics.find(analysis.method.response).title}, ratio"


def _by_counters(analysis: Analysis) -> bool:
    counting = analysis.run.counting_builds
    return counting is not None and counting.by == "counters"


def _counted_cells(one: CountedVariant) -> tuple[str, str, str]:
    if one.instructions_per_op is None:
        return "not counted", numbers.DASH, numbers.DASH
    mark = "" if one.told else "~"
    ratio = numbers.DASH if one.ratio is None else f"{mark}{one.ratio:.4g}"
    return number_text(one.instructions_per_op), ratio, numbers.share_text(one.spread, digits=2)


def changes_sections(analysis: Analysis) -> list[Section]:
    """The functions in which each variant differs from the baseline."""
    return [
        _changes(one.variant, analysis.baseline.name, one.changes) for one in analysis.counted if one.changes
    ]


def beside_notes(analysis: Analysis) -> list[str]:
    """What the counts are, and why some are missing."""
    missing = [
        f"{one.variant} was not counted: {safe.clause(one.cause)}." for one in analysis.counted if one.cause
    ]
    counted = [*missing, BESIDE, NOTES[0]] if analysis.counted else []
    counting = analysis.run.counting_builds
    why_not = counting.why_not if counting is not None else ""
    not_counted = [f"Instructions are not counted: {safe.clause(why_not)}."] if why_not else []
    return [*counted, *not_counted, *([BY_COUNTERS] if _by_counters(analysis) else [])]


def sections(analysis: Analysis) -> Iterator[Section]:
    """The counts beside the timed effects, the functions that differ, and the notes; nothing where none is to
    tell."""
    if not has_beside(analysis):
        return
    folds = [Fold(one.title, one.body) for one in changes_sections(analysis)]
    notes = Notes(tuple(beside_notes(analysis)))
    yield Section(TITLE, (*beside_tables(analysis), From(Detail.DETAILS, tuple(folds)), notes))


def document(each: Sequence[Named]) -> Document:
    """Of one variant its functions, of two what they differ in, and what was simulated."""
    (name, ours), (against, theirs) = each[0], each[-1]
    two = len(each) == 2
    shown = _changes(name, against, changed_functions(ours, theirs)) if two else functions_section(name, ours)
    simulated = [events_section(each)] if len(ours.per_op) > 1 else []
    return Document(
        title=TITLE,
        answer=tuple(sentences(each)),
        sections=(shown, *simulated, Section("", (Notes(NOTES),))),
        titled=False,
    )


class CountedRow(Frozen):
    """What was counted of one variant, for machines: the fields of `Counted`."""

    variant: str
    operations: int
    per_op: dict[str, float]
    repeats: tuple[float, ...]
    functions: tuple[CountedFunction, ...]


class CountedDocument(Frozen):
    """What was counted of one variant or two; of two also what they differ in."""

    counted: tuple[CountedRow, ...]
    changes: tuple[InstructionChange, ...] | None = absent(None)


def model(each: Sequence[Named]) -> CountedDocument:
    """What was counted, and what two variants differ in, for machines."""
    both = [found for _, found in each]
    return CountedDocument(
        counted=tuple(CountedRow(variant=name, **dict(found)) for name, found in each),
        changes=changed_functions(*both)[:FUNCTIONS_IN_DOCUMENT] if len(both) == 2 else None,
    )


def _function(name: str, module: str) -> str:
    # Where there is no symbol the name is an address, which says nothing without its file.
    return f"{int(name, 16):#x} in {module}" if name.startswith("0x") else name


def _signed(value: float) -> str:
    return f"{'+' if value >= 0.0 else '-'}{number_text(abs(value))}"
