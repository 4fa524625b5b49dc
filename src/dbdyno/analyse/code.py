"""Two builds compared: function by function, whether one runs other code than the other and where; and by the
instructions that their transactions execute.

Nothing is sampled, so a ratio has no interval. But a server works by itself now and then, and repeats differ
by that. So a ratio is told from 1 where Student's interval of the repeats leaves 1 out, all variants together
(Šidák), and where the difference is not as small as what mere addresses make: of placebos, which hold the
same instructions in another order, up to 0.2 % was counted more or less (PostgreSQL 15 and MariaDB 10.11).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from dbdyno.analyse.found import CountedVariant, InstructionChange
from dbdyno.analyse.quantiles import confidence_each, t_quantile
from dbdyno.frozen import Frozen
from dbdyno.records.binary import Binary, Code, CodeBeside, Datum, Function, Likeness, Matching, base_name
from dbdyno.records.record import INSTRUCTIONS, Counted, Outcome, Record


class Extent(Frozen):
    """How much a function is: bytes, instructions, and the parts that the compiler made of it."""

    size_bytes: int
    instructions: int
    parts: int


class FunctionDifference(Frozen):
    """A function that differs, or that one build has alone. `constants_alone`: its code is the same."""

    name: str
    left: Extent | None
    right: Extent | None
    constants_alone: bool = False

    @property
    def growth_bytes(self) -> int:
        return (self.right.size_bytes if self.right else 0) - (self.left.size_bytes if self.left else 0)


class CodeDifference(Frozen):
    """What differs between two builds. Functions of one name are compared together: the parts that a compiler
    split off, and those that several files have. Functions without a name are matched by their code, and what
    matches none is in one build alone.

    `other_constants` of the equal functions use other nameless constants, and `moved` of them lie at another
    address. `changes` come in the order of the bytes that they add or take away, `changed_data` by name.
    """

    left: Binary
    right: Binary
    likeness: Likeness
    functions: Matching
    other_constants: int
    moved: int
    data: Matching
    changes: tuple[FunctionDifference, ...]
    changed_data: tuple[str, ...]

    @property
    def beside(self) -> CodeBeside:
        """What is kept of it with the builds."""
        return CodeBeside(
            likeness=self.likeness,
            functions=self.functions,
            other_constants=self.other_constants,
            moved=self.moved,
            data=self.data,
            code_bytes=self.right.code_bytes,
            code_bytes_against=self.left.code_bytes,
            named=self.left.named and self.right.named,
        )


def compare_code(left: Code, right: Code) -> CodeDifference:
    """What differs between two builds, whatever the addresses."""
    ours, theirs = _units(left.functions), _units(right.functions)
    functions, changes = _compared(ours, theirs)
    nameless = _nameless(ours.get("", []), theirs.get("", []))
    data, changed_data = _compared_data(left.data, right.data)
    functions = _sum(functions, nameless)
    other_constants = sum(change.constants_alone for change in changes)
    return CodeDifference(
        left=left.binary,
        right=right.binary,
        likeness=_likeness(
            functions,
            not other_constants
            and data.all_equal
            and left.binary.libraries == right.binary.libraries
            and left.binary.hardening == right.binary.hardening,
        ),
        functions=functions,
        other_constants=other_constants,
        moved=_moved(ours, theirs),
        data=data,
        changes=tuple(sorted(changes, key=lambda one: (-abs(one.growth_bytes), one.name))),
        changed_data=changed_data,
    )


def _moved(ours: dict[str, list[Function]], theirs: dict[str, list[Function]]) -> int:
    """How many names have the same code on both sides, at other addresses."""
    return sum(
        _codes(ours[name]) == _codes(theirs[name]) and _addresses(ours[name]) != _addresses(theirs[name])
        for name in ours.keys() & theirs.keys() - {""}
    )


def _codes(functions: Sequence[Function]) -> Counter[bytes]:
    return Counter(one.code for one in functions)


def _addresses(functions: Sequence[Function]) -> list[int]:
    return sorted(one.address for one in functions)


def _likeness(functions: Matching, same_data: bool) -> Likeness:
    if not functions.all_equal:
        return Likeness.DIFFERENT
    return Likeness.INERT if same_data else Likeness.CONSTANTS


def _units(functions: Iterable[Function]) -> dict[str, list[Function]]:
    """Functions by name; those of a stripped file that have none stand under the empty one."""
    units: dict[str, list[Function]] = {}
    for function in functions:
        units.setdefault(function.name, []).append(function)
    return units


def _compared(
    ours: dict[str, list[Function]], theirs: dict[str, list[Function]]
) -> tuple[Matching, list[FunctionDifference]]:
    equal = differing = 0
    changes = []
    for name in sorted((ours.keys() | theirs.keys()) - {""}):
        left, right = ours.get(name, []), theirs.get(name, [])
        same_code = _codes(left) == _codes(right)
        equal += same_code
        differing += bool(left and right and not same_code)
        if not same_code or _constants(left) != _constants(right):
            change = FunctionDifference(
                name=name, left=_extent(left), right=_extent(right), constants_alone=same_code
            )
            changes.append(change)
    only_left, only_right = len(ours.keys() - theirs.keys() - {""}), len(theirs.keys() - ours.keys() - {""})
    return Matching(equal=equal, differing=differing, only_left=only_left, only_right=only_right), changes


def _constants(functions: Sequence[Function]) -> Counter[tuple[bytes, bytes]]:
    return Counter((one.code, one.constants) for one in functions)


def _extent(functions: Sequence[Function]) -> Extent | None:
    if not functions:
        return None
    return Extent(
        size_bytes=sum(one.size for one in functions),
        instructions=sum(one.instructions for one in functions),
        parts=len(functions),
    )


def _nameless(left: Sequence[Function], right: Sequence[Function]) -> Matching:
    """Functions matched by their code, with its constants, because nothing else tells them apart."""
    ours, theirs = _constants(left), _constants(right)
    return Matching(
        equal=(ours & theirs).total(),
        differing=0,
        only_left=(ours - theirs).total(),
        only_right=(theirs - ours).total(),
    )


def _compared_data(left: Iterable[Datum], right: Iterable[Datum]) -> tuple[Matching, tuple[str, ...]]:
    ours, theirs = _values(left), _values(right)
    shared = ours.keys() & theirs.keys()
    differing = {name for name in shared if ours[name] != theirs[name]}
    matching = Matching(
        equal=len(shared) - len(differing),
        differing=len(differing),
        only_left=len(ours.keys() - shared),
        only_right=len(theirs.keys() - shared),
    )
    return matching, tuple(sorted(differing | (ours.keys() ^ theirs.keys())))


def _values(data: Iterable[Datum]) -> dict[str, Counter[tuple[int, bytes]]]:
    """The values of all objects that share a name."""
    values: dict[str, Counter[tuple[int, bytes]]] = {}
    for one in data:
        values.setdefault(one.name, Counter())[one.size, one.value] += 1
    return values


def _sum(one: Matching, other: Matching) -> Matching:
    return Matching(
        equal=one.equal + other.equal,
        differing=one.differing + other.differing,
        only_left=one.only_left + other.only_left,
        only_right=one.only_right + other.only_right,
    )


CONFIDENCE = 0.95
DIFFERENCE_LEAST = 0.003
"""A smaller one is none: counts of one build repeat to a tenth of a per cent."""
FUNCTIONS_MOST = 20
"""So many functions are kept of those in which a variant differs from the baseline."""


def counted_work(records: Sequence[Record], baseline: str) -> tuple[CountedVariant, ...]:
    """What was counted of each variant, in the order of the trials, against the variant named `baseline`."""
    against = next((_of(record) for record in records if record.variant == baseline), None)
    compared = sum(record.variant != baseline and _of(record) is not None for record in records)
    each = confidence_each(CONFIDENCE, compared)
    return tuple(
        _counted_variant(record, None if record.variant == baseline else against, each)
        for record in sorted(records, key=lambda record: record.trial)
    )


def _counted_variant(record: Record, against: Counted | None, confidence: float) -> CountedVariant:
    found = CountedVariant(variant=record.variant, trial=record.trial)
    counted = _of(record)
    if counted is None:
        return found.but(cause=record.cause or record.outcome.value)
    per_op = counted.per_op[INSTRUCTIONS]
    found = found.but(instructions_per_op=per_op, spread=spread(counted))
    if against is None:
        return found
    logs = _paired_logs(counted, against)
    compared = {
        "ratio": math.exp(statistics.median(logs)) if logs else per_op / against.per_op[INSTRUCTIONS],
        "told": _apart(logs, confidence),
        "changes": changed_functions(counted, against)[:FUNCTIONS_MOST],
    }
    return found.but(**compared)


def _of(record: Record) -> Counted | None:
    """What a trial counted; nothing where it broke."""
    return record.instructions if record.outcome is Outcome.MEASURED else None


def _paired_logs(one: Counted, other: Counted) -> list[float]:
    """The log ratio of each repeat to the other's of its number, because both draw the same transactions on
    the same data. Empty where the repeats are not as many."""
    if len(one.repeats) != len(other.repeats):
        return []
    return [math.log(ours / theirs) for ours, theirs in zip(one.repeats, other.repeats, strict=True)]


def _apart(logs: Sequence[float], confidence: float) -> bool:
    """Whether Student's interval of the repeats' log ratios leaves out 0, by a difference that counts."""
    if len(logs) < 2:
        return False
    half = t_quantile(confidence, len(logs)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return abs(statistics.fmean(logs)) > max(half, math.log1p(DIFFERENCE_LEAST))


def changed_functions(counted: Counted, against: Counted) -> tuple[InstructionChange, ...]:
    """What each function executes in `counted` beyond `against`, the largest change first.

    Changes add up to the change of the whole but for functions that neither record holds.
    """
    ours, theirs = _own(counted), _own(against)
    whole = counted.per_op[INSTRUCTIONS] - against.per_op[INSTRUCTIONS]
    found = [
        InstructionChange(
            name=name,
            module=module,
            own=ours.get((name, module), 0.0),
            against=theirs.get((name, module), 0.0),
            change=(change := ours.get((name, module), 0.0) - theirs.get((name, module), 0.0)),
            share=change / whole if whole else None,
        )
        for name, module in dict.fromkeys([*ours, *theirs])
    ]
    return tuple(sorted((one for one in found if one.change), key=lambda one: (-abs(one.change), one.name)))


def spread(counted: Counted) -> float:
    """The largest repeat over the smallest, less one; 0 for a single one."""
    return max(counted.repeats) / min(counted.repeats) - 1.0 if counted.repeats else 0.0


def _own(counted: Counted) -> dict[tuple[str, str], float]:
    """By the names of the source, because another build may split and copy its functions otherwise."""
    own: dict[tuple[str, str], float] = {}
    for function in counted.functions:
        key = base_name(function.name), function.module
        own[key] = own.get(key, 0.0) + function.own[INSTRUCTIONS]
    return own
