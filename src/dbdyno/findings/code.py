"""Two builds beside each other: how much of their code differs, where, and what each tells of itself.

How much of the baseline's code each build of a run has: a line for each variant that is another build.
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.code import CodeDifference, Extent, FunctionDifference
from dbdyno.analyse.model import Analysis, VariantResult
from dbdyno.records.binary import Binary, CodeBeside, Extension, Likeness, Matching
from dbdyno.report.document import (
    ColumnKind,
    Detail,
    Document,
    Element,
    From,
    Lines,
    Notes,
    Row,
    Section,
    table,
)
from dbdyno.report.words import numbers

CHANGES_MOST = 20
"""The changes that a terminal and Markdown show; a page shows `PAGE_CHANGES_MOST`, JSON all."""
PAGE_CHANGES_MOST = 500
DATA_MOST = 20
SECTIONS = (".text", ".rodata", ".data", ".bss")
COUNT_HEADS = ("", "equal", "differing", "only left", "only right")
FACT_HEADS = ("", "left", "right")
EXTENSION_HEADS = ("extension", "left", "in functions", "right", "in functions", "where most")
CHANGE_HEADS = ("function", "left bytes", "right bytes", "change", "left instructions", "right instructions")
EXTENSIONS_NOTE = (
    "Instructions beyond what every x86-64 CPU has. Code that asks the CPU first counts as well."
)
CHANGES_NOTE = "The largest change of size first."
NO_NAMES = (
    "At least one of the builds is stripped, so functions cannot be told by name. They are the ranges of the "
    "unwinder's table, and a changed one stands in both columns of what one build has alone."
)
METHOD = (
    "Addresses do not count: what an address refers to stands in its place. Functions of one name are "
    "compared together, the parts that the compiler split off included."
)


def document(found: CodeDifference) -> Document:
    """How much differs, what the builds tell of themselves, and the largest changes."""
    return Document(
        title=f"{found.right.path} beside {found.left.path}",
        answer=(sentence(found),),
        sections=tuple(_sections(found)),
        eyebrow="two builds",
    )


def _sections(found: CodeDifference) -> Iterator[Section]:
    yield Section("What differs", (table(COUNT_HEADS, counts(found)), Notes(tuple(notes(found)))))
    builds = table(FACT_HEADS, facts(found), dict.fromkeys(FACT_HEADS[1:], ColumnKind.CODE))
    yield Section("The builds", (builds,), aside="As each tells of itself.")
    if lines := extensions(found):
        instructions = table(EXTENSION_HEADS, lines, {EXTENSION_HEADS[-1]: ColumnKind.CODE})
        yield Section("Instruction set", (instructions,), aside=EXTENSIONS_NOTE)
    if found.changes:
        page, others = _functions(found, PAGE_CHANGES_MOST), _functions(found, CHANGES_MOST)
        yield Section("Functions", (From(Detail.PAGE, page, others),), aside=CHANGES_NOTE)
    if text := data_text(found):
        yield Section("Data", (Lines((text,)),))


def _functions(found: CodeDifference, most: int) -> tuple[Element, ...]:
    """The functions with the largest changes, and how many there are beside them."""
    rows, rest = table(CHANGE_HEADS, changes(found, most)), len(found.changes) - most
    more = Lines((f"{numbers.plural(rest, 'further function')}: --json shows all.",))
    return (rows, more) if rest > 0 else (rows,)


def sentence(found: CodeDifference) -> str:
    """What the comparison says."""
    if found.likeness is Likeness.INERT:
        return (
            "Inert: the code and data are the same but for where they lie; layout alone can still change a "
            "speed."
        )
    if found.likeness is Likeness.CONSTANTS:
        told = [
            f"{numbers.plural(found.other_constants, 'function')} with other constants",
            f"{numbers.plural(len(found.changed_data), 'object')} with other values",
        ]
        told += ["other libraries"] * (found.left.libraries != found.right.libraries)
        told += ["other protections"] * (found.left.hardening != found.right.hardening)
        return f"The code is the same. {', '.join(told)}."
    changed = found.beside.changed
    whole = found.functions.equal + changed
    left, right = found.left.code_bytes, found.right.code_bytes
    growth = f" ({numbers.change_text(right / left - 1.0)})" if left else ""
    return (
        f"{numbers.plural(changed, 'function')} of {whole:,} differ ({numbers.part_text(changed, whole)}). "
        f"The code has {right:,} bytes on the right and {left:,} on the left{growth}."
    )


def notes(found: CodeDifference) -> list[str]:
    """How it was compared, and what could not be."""
    return [METHOD] if found.left.named and found.right.named else [METHOD, NO_NAMES]


def counts(found: CodeDifference) -> list[list[str]]:
    """Functions and objects by what became of them."""
    return [_counted("functions", found.functions), _counted("constants and variables", found.data)]


def _counted(name: str, matching: Matching) -> list[str]:
    figures = (matching.equal, matching.differing, matching.only_left, matching.only_right)
    return [name, *(f"{count:,}" for count in figures)]


def facts(found: CodeDifference) -> list[list[str]]:
    """What each build tells of itself, a row for each fact that either has."""
    left, right = (_facts(binary) for binary in (found.left, found.right))
    rows = [[name, left.get(name, ""), right.get(name, "")] for name in {**left, **right}]
    return [[name, one or numbers.DASH, other or numbers.DASH] for name, one, other in rows if one or other]


def _facts(binary: Binary) -> dict[str, str]:
    return {
        "kind": binary.kind.value,
        "build id": binary.build_id,
        "compiler": "; ".join(binary.compilers),
        "flags": "; ".join(binary.producers),
        "functions": f"{binary.functions:,}",
        "instructions": f"{binary.instructions:,}",
        "bytes of functions": f"{binary.code_bytes:,}",
        **{f"bytes of {name}": f"{binary.sections[name]:,}" for name in SECTIONS if name in binary.sections},
        "hardening": hardening(binary),
        "libraries": ", ".join(binary.libraries),
    }


def hardening(binary: Binary) -> str:
    """The protections that a build has."""
    found = binary.hardening
    told = {
        "position independent": found.position_independent,
        f"{found.relro.value} RELRO": found.relro.value != "none",
        "stack protector": found.stack_protector,
        f"{numbers.plural(found.fortified, 'checked function')} of the C library": bool(found.fortified),
        "CET branch tracking": found.branch_tracking,
        "CET shadow stack": found.shadow_stack,
        "executable stack": found.executable_stack,
    }
    return ", ".join(name for name, there in told.items() if there) or "none"


def extensions(found: CodeDifference) -> list[list[str]]:
    """The extensions of the instruction set that either build uses."""
    left, right = ({one.name: one for one in side.extensions} for side in (found.left, found.right))
    return [
        [
            name,
            *_uses(left.get(name)),
            *_uses(right.get(name)),
            _examples(right.get(name) or left[name]),
        ]
        for name in sorted(left.keys() | right.keys())
    ]


def _uses(extension: Extension | None) -> tuple[str, str]:
    if extension is None:
        return "0", "0"
    return f"{extension.instructions:,}", f"{extension.functions:,}"


def _examples(extension: Extension) -> str:
    return ", ".join(extension.examples)


def changes(found: CodeDifference, most: int) -> list[list[str]]:
    """The functions that differ, those with the largest change of size first."""
    return [_change(one) for one in found.changes[:most]]


def _change(one: FunctionDifference) -> list[str]:
    growth = "constants" if one.constants_alone else f"{one.growth_bytes:+,}"
    return [
        one.name,
        _bytes(one.left),
        _bytes(one.right),
        growth,
        _instructions(one.left),
        _instructions(one.right),
    ]


def _bytes(extent: Extent | None) -> str:
    return numbers.DASH if extent is None else f"{extent.size_bytes:,}"


def _instructions(extent: Extent | None) -> str:
    return numbers.DASH if extent is None else f"{extent.instructions:,}"


def data_text(found: CodeDifference) -> str:
    """The objects whose values differ; empty where none do."""
    names = list(found.changed_data[:DATA_MOST])
    rest = len(found.changed_data) - len(names)
    told = ", ".join([*names, f"and {rest:,} more"] if rest else names)
    return f"Constants and variables that differ: {told}" if told else ""


BUILDS_TITLE = "What the builds changed"
BUILDS_HEADS = (
    "variant",
    "functions that differ",
    "constants and variables",
    "bytes of code",
    "moved functions",
)
BUILDS_METHOD = (
    "Each build against the baseline’s, function by function; addresses do not count. Functions and objects "
    "that one of the two has alone differ, too. dyno diff names them."
)


def compared_builds(analysis: Analysis) -> list[tuple[VariantResult, CodeBeside]]:
    """The variants whose builds were compared with the baseline's."""
    return [(variant, variant.code) for variant in analysis.variants if variant.code is not None]


def build_sections(analysis: Analysis) -> Iterator[Section]:
    """The table and the notes; nothing where no builds were compared."""
    if compared_builds(analysis):
        yield Section(
            BUILDS_TITLE, (table(BUILDS_HEADS, build_rows(analysis)), Notes(tuple(build_notes(analysis))))
        )


def build_rows(analysis: Analysis) -> list[Row]:
    """How many functions each build changed."""
    return [(variant.name, *_build_cells(code)) for variant, code in compared_builds(analysis)]


def _build_cells(code: CodeBeside) -> tuple[str, str, str, str]:
    data = code.data.differing + code.data.only_left + code.data.only_right + code.other_constants
    growth = code.code_bytes / code.code_bytes_against - 1.0 if code.code_bytes_against else 0.0
    return (
        numbers.functions_text(code),
        f"{data:,}",
        numbers.change_text(growth) if growth else "the same",
        f"{code.moved:,}" if code.named else numbers.DASH,
    )


def build_notes(analysis: Analysis) -> list[str]:
    """How they were compared, and which of them could not be told to be the same."""
    bare = [variant.name for variant, code in compared_builds(analysis) if not code.named]
    if not bare:
        return [BUILDS_METHOD]
    stripped = f"{', '.join(bare)}: a file is stripped, so nothing shows whether the code is the baseline’s."
    return [BUILDS_METHOD, stripped]
