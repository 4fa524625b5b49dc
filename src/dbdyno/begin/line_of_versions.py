"""The line of released versions that a bisection goes along: the levels of a study's factor `engine`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from dbdyno.begin.catalogue import located
from dbdyno.begin.engines import same_engines
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.obtain.installation import Installation, is_below
from dbdyno.study import Study
from dbdyno.study.builds import of_build
from dbdyno.study.line import Along, Line, Point, on_line
from dbdyno.study.reference import Reference


def line_of_versions(study: Study, good: str | None, bad: str | None) -> Line:
    """The versions in the order of their levels, or those from one that is named to another one. Raises
    UserError where they are no line: of several products, not rising, two of one server, or not here."""
    _require_released(study)
    references = _between(study, good, bad)
    _require_one_product(references)
    installations = _here(references)
    names = _names(references, installations)
    _require_rising(references, installations)
    points = [
        Point(
            name=name,
            title=f"{registry.engine(reference.engine).title} {here.version}",
            levels={ENGINE_FACTOR: reference.written},
        )
        for name, reference, here in zip(names, references, installations, strict=True)
    ]
    line = Line(along=Along.VERSIONS, points=tuple(points))
    _require_distinct(on_line(study, line))
    return line


def _names(references: Sequence[Reference], installations: Sequence[Installation]) -> list[str]:
    """Each one's version, or, where several have that one, what tells their paths apart."""
    versions = [one.version or here.version for one, here in zip(references, installations, strict=True)]
    count = Counter(versions)
    paths = [Path(one.path).expanduser() for one in references]
    folder = os.path.commonpath([str(path.parent) for path in paths if path.name] or ["/"])
    apart = [
        str(path.relative_to(folder)) if path.name else one.written
        for path, one in zip(paths, references, strict=True)
    ]
    return [version if count[version] == 1 else name for version, name in zip(versions, apart, strict=True)]


def _require_released(study: Study) -> None:
    built = next(filter(of_build, {**study.settings, **study.baseline}), None)
    if built is not None:
        raise UserError(
            f"{study.path} builds its engine (`{built}`), and --versions goes over released versions",
            "--good REV --bad REV goes over the commits of source.origin",
        )
    if len(study.engines) < 2:
        raise UserError(
            f"{study.path} has no two versions to go between",
            f'list them under [factors], the good one first: {ENGINE_FACTOR} = ["NAME@OLD", ..., "NAME@NEW"]',
        )


def _between(study: Study, good: str | None, bad: str | None) -> Sequence[Reference]:
    """The engines of the study from the good end to the bad one, both included."""
    first = 0 if good is None else _place(study.engines, good)
    last = len(study.engines) - 1 if bad is None else _place(study.engines, bad)
    ends = f"{study.engines[first].written} and {study.engines[last].written}"
    if first == last:
        raise UserError(f"the two ends are the same version: {study.engines[first].written}", "name two")
    if first > last:
        raise UserError(
            f"the ends {ends} are exchanged: the good one stands later among the levels",
            "--good names the version that is fast enough, and --bad a later one that is slower",
        )
    return study.engines[first : last + 1]


def _place(engines: Sequence[Reference], named: str) -> int:
    for place, one in enumerate(engines):
        if named and named in (one.written, one.version, one.path):
            return place
    known = ", ".join(one.written for one in engines)
    raise UserError(f"no level of `{ENGINE_FACTOR}` is {named}", f"there are: {known}")


def _require_one_product(references: Sequence[Reference]) -> None:
    if len(products := dict.fromkeys(one.engine for one in references)) > 1:
        raise UserError(
            f"the levels of `{ENGINE_FACTOR}` are of several products: {', '.join(products)}",
            "a line has the versions of one product; `dyno run` compares products side by side",
        )


def _here(references: Sequence[Reference]) -> list[Installation]:
    """All of them on this host. Raises UserError with what is not here and how each can be obtained."""
    found = [located(one) for one in references]
    if missing := [one for one in found if isinstance(one, DynoError)]:
        hints = dict.fromkeys(one.hint for one in missing)
        raise UserError("; ".join(one.message for one in missing), "; ".join(hints))
    return [one for one in found if isinstance(one, Installation)]


def _require_rising(references: Sequence[Reference], installations: Sequence[Installation]) -> None:
    """Builds of one version that are named by their paths may follow one another in any order."""
    for (one, here), (later, there) in pairwise(zip(references, installations, strict=True)):
        if is_below(there.version, here.version):
            raise UserError(
                f"the versions do not rise: {one.written} is {here.version}, and {later.written} after it is"
                f" {there.version}",
                f"list the levels of `{ENGINE_FACTOR}` from the oldest version to the newest one",
            )


def _require_distinct(study: Study) -> None:
    for same in same_engines(study):
        raise UserError(
            f"{' and '.join(same.levels)} are the same server: {same.origin}", "name each version once"
        )
