"""How an engine would execute the statements of a load, as a trial has asked it."""

from __future__ import annotations

from dbdyno.frozen import Frozen, absent

NO_PLAN_NEEDED = "it needs no plan"
"""Why a statement has no plan, and nobody has to be told: a commit, a SET."""


class StatementPlan(Frozen):
    """One kind of statement with its plan, or with why it has none.

    `statement` names it by its transaction; in `text` a `?` stands for a value. `summary` is what is done, in
    that order; `steps` are the same as a tree, with how it is done, and of a very long plan its beginning.
    Plans of one `digest` are the same.
    """

    statement: str
    text: str
    summary: str = ""
    steps: tuple[str, ...] = ()
    digest: str = ""
    why_not: str = absent("")


class Plans(Frozen):
    """The plans of all statements that were met. `unreached` says why a transaction may have more of them, by
    its name. Where nothing could be asked, `why_not` says why."""

    statements: tuple[StatementPlan, ...] = ()
    unreached: dict[str, str] = absent({})
    why_not: str = absent("")
