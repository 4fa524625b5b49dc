"""A line of setups from one that is good to one that is bad, of which a bisection finds the first bad one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dbdyno.frozen import Frozen, Level, absent
from dbdyno.study.nouns import BASELINE, Design, Factor, Goal, ListedVariant, Study


class Along(StrEnum):
    """What changes from one point of a line to the next."""

    COMMITS = "commits"
    SETTINGS = "settings"
    VERSIONS = "versions"


class TouchedFile(Frozen):
    """A file that a commit changes, with the lines that it adds and takes away; None for one of no lines."""

    path: str
    added: int | None = None
    removed: int | None = None


class Point(Frozen):
    """One setup on a line: `levels` are those of all that varies on it. `title` says what changed since the
    point before, such as a commit's subject, and `touched` in which files."""

    name: str
    title: str = ""
    levels: dict[str, Level]
    touched: tuple[TouchedFile, ...] = absent(())


class Line(Frozen):
    """The points in their order: the first is good, the last bad. `source` says where they come from."""

    along: Along
    source: str = ""
    points: tuple[Point, ...]

    @property
    def last(self) -> int:
        """The place of the bad end."""
        return len(self.points) - 1

    def variant(self, place: int) -> str:
        """The name of a point's trials: those of the good end are what all others are compared with."""
        return self.points[place].name if place else BASELINE


def on_line(study: Study, line: Line, places: Iterable[int] | None = None) -> Study:
    """The study as a bisection carries it out: its baseline at each point, or at those of some `places`, the
    good end first. Nothing else of it is varied, and no work is counted but what the bisection asks for. Its
    engine is that of the first of them."""
    shown = sorted(set(range(len(line.points)) if places is None else places))
    varied = line.points[0].levels.keys()
    fixed = {**study.settings, **study.baseline}
    factors = tuple(
        Factor(name=name, levels=tuple(dict.fromkeys(line.points[place].levels[name] for place in shown)))
        for name in varied
    )
    return study.but(
        engine=study.engine_of(line.points[shown[0]].levels),
        design=Design.LIST,
        settings={name: level for name, level in fixed.items() if name not in varied},
        factors=factors,
        variants=tuple(
            ListedVariant(name=line.variant(place), levels=line.points[place].levels) for place in shown
        ),
        aa=False,
        baselines=1,
        restarts=None,
        search=None,
        soak=None,
        goal=Goal(
            response=study.goal.response,
            margin=study.goal.margin,
            confidence=study.goal.confidence,
            counted=False,
        ),
    )
