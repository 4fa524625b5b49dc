"""A profile in tables and words: which functions the CPU time went to, and what two variants differ in.

A profile as folded stacks, the lines that flame graph tools read: frames from the root with semicolons
between, then the CPU time in nanoseconds per operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dbdyno.analyse.profile import FunctionChange, FunctionTime, Profile, changed_times, functions
from dbdyno.frozen import Frozen, absent
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Detail, Document, Figure, Notes, Section, table
from dbdyno.report.words import numbers, safe

SHOWN = 20
FUNCTIONS_IN_DOCUMENT = 200
UNRESOLVED_MUCH = 0.1
CAPTION = "Click on a box to widen it; on the lowest one to go back."


def document(profiles: Sequence[Profile], title: str, embedded: bool) -> Document:
    """Of one variant its functions, of two what they differ in; on a page the flame graphs as well."""
    return Document(
        title=title,
        answer=tuple(sentences(profiles)),
        sections=tuple(_sections(profiles, embedded)),
        eyebrow="profile",
        titled=False,
    )


def _sections(profiles: Sequence[Profile], embedded: bool) -> Iterator[Section]:
    graphs = Figure("dbdyno.report.figures.drawn:flames", (profiles,), words=CAPTION)
    yield Section("Flame graphs", (graphs,), detail=Detail.PAGE)
    two = len(profiles) == 2
    if two:
        yield changes_section(*profiles)
    for profile in profiles:
        yield functions_section(profile, Detail.PAGE if two else Detail.BRIEF)
    yield Section("", (Notes(tuple(notes(profiles, embedded))),))


def functions_section(profile: Profile, detail: Detail) -> Section:
    """The functions with most CPU time of their own."""
    rows = [
        (
            time.name,
            number_text(time.own_us),
            f"±{number_text(time.half_us)}",
            numbers.part_text(time.own_us, profile.cpu_us_per_op),
            number_text(time.whole_us),
        )
        for time in functions(profile)[:SHOWN]
        if time.own_us > 0.0
    ]
    heads = ("function", "own, us/op", "", "share", "with all it calls")
    title = f"{profile.variant}: functions by their own CPU time"
    return Section(title, (table(heads, rows, dense=True),), detail=detail)


def changes_section(profile: Profile, against: Profile) -> Section:
    """The functions that gained or lost most CPU time per operation."""
    rows = [
        (
            change.name,
            number_text(change.us),
            number_text(change.against_us),
            f"{change.change_us:+.4g}",
            f"±{number_text(change.half_us)}",
            numbers.DASH if change.share is None else numbers.share_text(change.share, digits=3),
        )
        for change in changed_times(profile, against)[:SHOWN]
    ]
    heads = ("function", "us/op", "against", "change", "", "of all change")
    title = f"{profile.variant} against {against.variant}: own CPU time per operation"
    return Section(title, (table(heads, rows, dense=True),))


def sentences(profiles: Sequence[Profile]) -> list[str]:
    """What the profiles say, in up to three sentences."""
    if len(profiles) == 2:
        return _difference(*profiles)
    (profile,) = profiles
    first = next(iter(functions(profile)))
    return [
        f"{profile.variant} spends {number_text(profile.cpu_us_per_op)} us of CPU per "
        f"operation; {numbers.part_text(first.own_us, profile.cpu_us_per_op)} of it in "
        f"{first.name} itself."
    ]


def _difference(profile: Profile, against: Profile) -> list[str]:
    more = profile.cpu_us_per_op - against.cpu_us_per_op
    found = [change for change in changed_times(profile, against) if abs(change.change_us) > change.half_us]
    gained = [one for one in found if one.change_us > 0.0][:3]
    lost = [one for one in found if one.change_us < 0.0][:3]
    lines = [
        f"{profile.variant} spends {number_text(profile.cpu_us_per_op)} us of CPU per "
        f"operation, {against.variant} {number_text(against.cpu_us_per_op)} us: "
        f"{more:+.4g} us."
    ]
    for word, side in (("More", gained), ("Less", lost)):
        if side:
            listed = ", ".join(f"{one.name} ({one.change_us:+.3g} us)" for one in side)
            lines.append(f"{word} of it goes to {listed}.")
    if not found:
        lines.append("No function's change is larger than the error of sampling.")
    return lines


def notes(profiles: Sequence[Profile], embedded: bool) -> list[str]:
    """How the figures were made, and what they cannot show."""
    lines = [
        "One trial each, run again for this profile and not recorded as measured. A function's time: its "
        "share of the samples x the CPU time per operation that the kernel counted in the same trial. ±: "
        "95 %, the error of sampling alone."
    ]
    if embedded:
        lines.append("The engine is embedded: the driver's own work is in the samples and in the CPU time.")
    lines += [
        f"{profile.variant}: {profile.samples:,} samples of {profile.event}, callers by "
        f"{profile.way}; {numbers.share_text(profile.unresolved_share, digits=3)} of the time in code "
        "without a symbol."
        for profile in profiles
    ]
    if any(profile.unresolved_share > UNRESOLVED_MUCH for profile in profiles):
        lines.append(
            "Symbols are missing: a stripped binary names only what it exports. Its package of debug symbols "
            "(-dbgsym, -debuginfo), or a build that keeps them, names the rest."
        )
    return lines


class ProfileRow(Frozen):
    """A profile for machines: its functions in the place of its stacks."""

    variant: str
    samples: int
    cpu_us_per_op: float
    unresolved_share: float
    way: str
    event: str
    functions: tuple[FunctionTime, ...]


class ProfileDocument(Frozen):
    """The profiles of one variant or two; of two also what they differ in."""

    profiles: tuple[ProfileRow, ...]
    changes: tuple[FunctionChange, ...] | None = absent(None)


def model(profiles: Sequence[Profile]) -> ProfileDocument:
    """The profiles, and what two differ in, for machines."""
    return ProfileDocument(
        profiles=tuple(
            ProfileRow(
                **profile.model_dump(exclude={"stacks"}),
                functions=functions(profile)[:FUNCTIONS_IN_DOCUMENT],
            )
            for profile in profiles
        ),
        changes=changed_times(*profiles)[:FUNCTIONS_IN_DOCUMENT] if len(profiles) == 2 else None,
    )


def folded(profiles: Sequence[Profile]) -> str:
    """One line for each stack, in the order of their names, ending in a newline.

    With a second profile a line has two figures, as tools for differences read them: first what the second
    profile spends, then the first.
    """
    counted = [_counted(profile) for profile in profiles]
    stacks = sorted(set().union(*counted))
    return "".join(
        f"{stack} {' '.join(str(count[stack]) for count in reversed(counted))}\n" for stack in stacks
    )


def _counted(profile: Profile) -> Counter[str]:
    """Nanoseconds per operation by stack; what rounds to none is left out."""
    exact: dict[str, float] = {}
    for stack in profile.stacks:
        name = ";".join(_frame(frame) for frame in stack.frames)
        exact[name] = exact.get(name, 0.0) + stack.us * 1000.0
    return Counter({name: round(ns) for name, ns in exact.items() if round(ns)})


def _frame(frame: str) -> str:
    """A function's name without what parts frames and lines."""
    return safe.clean(frame).replace(";", ":")
