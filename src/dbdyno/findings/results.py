"""The kinds of results that a verb shows: for each its model, which machines read, and its document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from dbdyno.registry import LazyTable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dbdyno.report.document import Document


@dataclass(frozen=True)
class Result:
    """A kind of result. `runs` are the fields that hold a run, of which JSON leaves whole files out. Where
    what is found is not of the model, `made` makes one of it. `junit` makes its JUnit XML, where that needs
    no more than what was found."""

    model: type[BaseModel]
    document: Callable[..., Document]
    runs: tuple[str, ...] = ()
    made: Callable[[Any], BaseModel] | None = None
    junit: Callable[[Any], str] | None = None

    def json(self, found: Any) -> str:
        """What was found, for machines; ending in a newline."""
        # Here and below, because who asks for the names of all results shows none.
        from dbdyno.findings import as_json

        left_out = dict.fromkeys(self.runs, as_json.OF_A_RUN)
        return as_json.of_model(self.made(found) if self.made else found, left_out) + "\n"

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of that."""
        from pydantic import TypeAdapter

        from dbdyno.findings import as_json

        whole = TypeAdapter(self.model).json_schema(mode="serialization")
        return as_json.without(whole, as_json.FILES_BY_TYPE) if self.runs else whole


class RunResult(Result):
    """A run, whose JSON has a line of facts for each trial."""

    def json(self, found: Any) -> str:
        """The analysis with its trials."""
        from dbdyno.findings import as_json

        return as_json.render(found)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of that."""
        from dbdyno.findings import as_json

        return as_json.schema()


def _result(
    model: str,
    document: str,
    runs: tuple[str, ...] = (),
    made: str = "",
    junit: str = "",
    kind: type[Result] = Result,
) -> Callable[[], Result]:
    """Makes a result of what stands at each `module:attribute`."""
    return lambda: kind(
        resolve_name(model),
        resolve_name(document),
        runs,
        resolve_name(made) if made else None,
        resolve_name(junit) if junit else None,
    )


_MADE = {
    "bisect": _result("dbdyno.analyse.bisect:Bisection", "dbdyno.findings.bisect:document", ("run",)),
    "compare": _result(
        "dbdyno.analyse.compare:Comparison",
        "dbdyno.findings.compare:document",
        ("left", "right"),
    ),
    "diff": _result("dbdyno.analyse.code:CodeDifference", "dbdyno.findings.code:document"),
    "explain": _result("dbdyno.analyse.model:Gap", "dbdyno.findings.gap:document"),
    "gate": _result(
        "dbdyno.analyse.gate:Gate",
        "dbdyno.findings.gate:document",
        ("run", "reference"),
    ),
    "matrix": _result("dbdyno.findings.matrix:Matrix", "dbdyno.findings.matrix:document"),
    "museum": _result("dbdyno.analyse.museum:Museum", "dbdyno.findings.museum:document"),
    "profile": _result(
        "dbdyno.findings.profile:ProfileDocument",
        "dbdyno.findings.profile:document",
        made="dbdyno.findings.profile:model",
    ),
    "profile-counted": _result(
        "dbdyno.findings.counted:CountedDocument",
        "dbdyno.findings.counted:document",
        made="dbdyno.findings.counted:model",
    ),
    "report": _result("dbdyno.analyse.model:Analysis", "dbdyno.findings.run:document", kind=RunResult),
    "soak": _result(
        "dbdyno.analyse.soak:SoakResult",
        "dbdyno.findings.soak:document",
        ("run",),
        junit="dbdyno.findings.junit:soak",
    ),
    "trend": _result("dbdyno.analyse.trend:Trend", "dbdyno.findings.trend:document"),
}
RESULTS: LazyTable[Result] = LazyTable(_MADE, lambda kind: _MADE[kind]())
"""By the verb that shows it. What one kind needs is imported when one of it is shown."""
