"""The lines of JSON between an evaluation and its searcher: what Dyno says, and how a line is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.analyse.candidates import Judged
from dbdyno.analyse.model import GuardResult
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.plan.search import sampler
from dbdyno.plan.search.ask import FINALISTS
from dbdyno.plan.search.sampler import Levels
from dbdyno.study import Study
from dbdyno.study.nouns import amount

VERSION = 1
"""Of the lines. It rises with each change that an older searcher could not follow."""
BLOCKS_MOST = 50
"""More blocks for one answer are a mistake."""


class FactorOffer(Frozen):
    """A factor that levels may be named of. Those of an `ordered` one rise. It matters only where each of
    `only_if` holds; elsewhere it has its baseline's level."""

    name: str
    baseline: Level
    levels: tuple[Level, ...]
    ordered: bool = False
    only_if: tuple[str, ...] = ()


class MeasuredFloor(Frozen):
    """How far two servers of the baseline lie apart in one block: the root of the mean square of their log
    ratios over `blocks`, and the `ratio` that one block stays below with the study's confidence."""

    blocks: int
    log_sd: float
    ratio: float


class OpeningLine(Frozen):
    """The first line. Seconds are those that trials take. Of the budget, `reserved_s` are kept for measuring
    the best again, and `left_s` are left for what is asked. `answered` are the blocks of candidates that the
    run holds already."""

    line: Literal["opening"] = "opening"
    version: int = VERSION
    run: str
    study: str
    response: str
    unit: str
    higher_is_better: bool
    confidence: float
    margin: float
    guards: tuple[str, ...]
    seed: int
    budget_s: float
    reserved_s: float
    spent_s: float
    left_s: float
    floor: MeasuredFloor | None
    factors: tuple[FactorOffer, ...]
    constraints: tuple[str, ...] = ()
    own: bool = False
    finalists: int = FINALISTS
    confirming_blocks: int
    answered: int = 0


class AnsweredRatio(Frozen):
    """The response's ratio to the baseline: the geometric mean over `blocks`. Of six blocks or more the
    interval rests on these, else on the noise floor."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float
    blocks: int
    rests_on: Literal["blocks", "floor"] | None = None


class AnswerLine(Frozen):
    """What was measured of levels. `number` is that of the line that asked, and `id` its own. `levels` are
    those that ran: of a factor that was not named, or whose conditions do not hold, the baseline's. Both
    `response` and `baseline` are means over the blocks. `worth` is the log of the ratio, turned so that more
    is better; None without a speed that counts. Where `outcome` is not `measured`, `why` says what happened.
    `cost_s` is what the blocks that this line asked for took. One that is `kept` was measured before this run
    went on."""

    line: Literal["answer"] = "answer"
    number: int
    id: Any = None
    variant: str
    levels: dict[str, Level]
    outcome: str
    why: str = ""
    hint: str = ""
    response: float | None = None
    baseline: float | None = None
    ratio: AnsweredRatio | None = None
    worth: float | None = None
    guards: tuple[GuardResult, ...] = ()
    cost_s: float = 0.0
    spent_s: float
    left_s: float
    kept: bool = False


class RefusedLine(Frozen):
    """A line that asks for nothing that can be measured: what is wrong, and what to do."""

    line: Literal["refused"] = "refused"
    number: int
    id: Any = None
    why: str
    hint: str = ""


class CandidateLine(Frozen):
    """What Dyno's own search would try next; with `again`, levels that it asked for before."""

    line: Literal["candidate"] = "candidate"
    version: int = VERSION
    number: int
    levels: dict[str, Level]
    again: bool = False


class EndLine(Frozen):
    """The last line: what became of the best candidates when they were measured again, and the variant to be
    kept, if there is one."""

    line: Literal["end"] = "end"
    run: str = ""
    why: str
    answered: int
    judged: tuple[Judged, ...] = ()
    winner: str | None = None
    report: str = ""


Line = Annotated[
    OpeningLine | AnswerLine | RefusedLine | CandidateLine | EndLine, Field(discriminator="line")
]


def object_of_line(text: str) -> dict[str, Any]:
    """A line as an object of JSON. Raises UserError for what is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"this line is no JSON: {error}", 'write {"levels": {"FACTOR": LEVEL}}') from None
    if not isinstance(told, dict):
        raise UserError("this line is no object of JSON", 'write {"levels": {"FACTOR": LEVEL}}')
    return told


def blocks_asked(told: Mapping[str, Any]) -> int:
    blocks = told.get("blocks", 1)
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= BLOCKS_MOST:
        raise UserError(f"`blocks` is {json.dumps(blocks)}", f"write a whole number from 1 to {BLOCKS_MOST}")
    return blocks


def levels_named(study: Study, line: Mapping[str, Any]) -> Levels:
    """The levels that a line names, with the baseline's of all other factors, and of those whose conditions
    do not hold. Raises UserError for a factor that the study does not vary, and for a level that is none."""
    named = line.get("levels")
    if not isinstance(named, dict):
        raise UserError("this line has no object `levels`", 'write {"levels": {"FACTOR": LEVEL}}')
    factors = {factor.name: factor for factor in study.factors}
    levels = dict(study.baseline)
    for name, level in named.items():
        if name not in factors:
            near = get_close_matches(name, factors, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it varies {', '.join(factors)}"
            raise UserError(f"the study varies no {name}", hint)
        offered = factors[name].rising or factors[name].levels
        found = next((one for one in offered if _is_level(one, level)), None)
        if found is None:
            told = json.dumps(level)[:LEVEL_TOLD]
            raise UserError(f"{name} has no level {told}", _levels_near(offered, level))
        levels[name] = found
    return sampler.settled(study, levels)


def _is_level(one: Level, told: object) -> bool:
    """Whether JSON's value names a level: 4 and 4.0 are one number, and a text can stand for a number."""
    if isinstance(told, bool) or isinstance(one, bool):
        return isinstance(told, bool | str) and level_text(told) == level_text(one)
    if isinstance(told, int | float) and isinstance(one, int | float):
        return told == one
    return isinstance(told, int | float | str) and level_text(told) == level_text(one)


LEVELS_TOLD, LEVEL_TOLD = 12, 80
"""How many levels of a factor are told, and how many letters of one that is none."""


def _levels_near(offered: Sequence[Level], told: object) -> str:
    """The levels of a factor; of many, the two between which a number lies."""
    texts = [level_text(one) for one in offered]
    if len(texts) <= LEVELS_TOLD:
        return f"its levels: {', '.join(texts)}"
    try:
        wanted = amount(told if isinstance(told, bool | int | float | str) else "")
        nearest = sorted(offered, key=lambda one: abs(amount(one) - wanted))[:2]
    except ValueError:
        return f"its levels: {texts[0]}, {texts[1]}, ... {texts[-1]}"
    return f"the nearest of its {len(texts)} levels: {', '.join(map(level_text, nearest))}"
