"""The kinds of results that a verb shows: for each its model, which machines read, and its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dbdyno.analyse.bisect import Bisection
from dbdyno.analyse.code import CodeDifference
from dbdyno.analyse.collection import Museum
from dbdyno.analyse.compare import Comparison
from dbdyno.analyse.gate import Gate
from dbdyno.analyse.matrix import Matrix
from dbdyno.analyse.model import Analysis, Gap
from dbdyno.analyse.soak import SoakResult
from dbdyno.analyse.trend import Trend
from dbdyno.report import as_json, junit
from dbdyno.report.as_json import OF_A_RUN
from dbdyno.report.document import Document
from dbdyno.report.parts import (
    bisect,
    code,
    compare,
    counted,
    gap,
    gate,
    matrix,
    museum,
    profile,
    run,
    soak,
    trend,
)
from dbdyno.report.parts.counted import CountedDocument
from dbdyno.report.parts.profile import ProfileDocument


@dataclass(frozen=True)
class Result:
    """A kind of result. `left_out` are the fields that JSON is written without. Where what is found is not of
    the model, `made` makes one of it. `junit` makes its JUnit XML, where that needs no more than what was
    found."""

    model: type[BaseModel]
    document: Callable[..., Document]
    left_out: Mapping[str, Any] = field(default_factory=dict)
    made: Callable[[Any], BaseModel] | None = None
    junit: Callable[[Any], str] | None = None

    def json(self, found: Any) -> str:
        """What was found, for machines; ending in a newline."""
        return as_json.of_model(self.made(found) if self.made else found, self.left_out) + "\n"

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of that."""
        whole = TypeAdapter(self.model).json_schema(mode="serialization")
        return as_json.without(whole, as_json.FILES_BY_TYPE) if self.left_out else whole


class RunResult(Result):
    """A run, whose JSON has a line of facts for each trial."""

    def json(self, found: Any) -> str:
        """The analysis with its trials."""
        return as_json.render(found)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of that."""
        return as_json.schema()


RESULTS: Mapping[str, Result] = {
    "bisect": Result(Bisection, bisect.document, {"run": OF_A_RUN}),
    "compare": Result(Comparison, compare.document, {"left": OF_A_RUN, "right": OF_A_RUN}),
    "diff": Result(CodeDifference, code.document),
    "explain": Result(Gap, gap.document),
    "gate": Result(Gate, gate.document, {"run": OF_A_RUN, "reference": OF_A_RUN}),
    "matrix": Result(Matrix, matrix.document),
    "museum": Result(Museum, museum.document),
    "profile": Result(ProfileDocument, profile.document, made=profile.model),
    "profile-counted": Result(CountedDocument, counted.document, made=counted.model),
    "report": RunResult(Analysis, run.document),
    "soak": Result(SoakResult, soak.document, {"run": OF_A_RUN}, junit=junit.soak),
    "trend": Result(Trend, trend.document),
}
"""By the verb that shows it."""
