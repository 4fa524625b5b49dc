"""The study whose trials were brought. It is read at little cost, because verbs that show runs read it."""

from __future__ import annotations

from dbdyno.records.run import Brought, Run
from dbdyno.study import Design, Goal, Study, Workload
from dbdyno.study.nouns import ListedVariant, Reference

ENGINES = {"pgbench": "postgresql", "sysbench": ""}
"""What a tool drives; sysbench's output does not name it."""


def study_of(run: Run, brought: Brought) -> Study:
    """The study whose trials the logs are: variants without levels, because no log says what was set."""
    return Study(
        title=brought.title,
        engine=Reference(engine=ENGINES[brought.tool]),
        design=Design.LIST,
        blocks=run.blocks,
        workload=Workload(
            name=brought.tool, clients=brought.clients, warmup_s=0.0, duration_s=brought.duration_s
        ),
        factors=(),
        variants=tuple(ListedVariant(name=name, levels={}) for name in brought.variants),
        goal=Goal(response=brought.response, margin=brought.margin, guards=()),
        path=run.study_path,
        text=run.study_text,
        digest=run.study_digest,
    )
