"""Which trials are counted under Valgrind, and what is told of them."""

from __future__ import annotations

from dbdyno.host.counters import counts
from dbdyno.report.words import numbers
from dbdyno.study import Study
from dbdyno.study.designs import counted_variants
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP


def why_counted(study: Study) -> str:
    """Why the study's trials are counted under Valgrind in place of timed; empty for other studies."""
    why = counts("instructions") if study.goal.response == INSTRUCTIONS_PER_OP else ""
    return f"trials are counted under Valgrind, with one client, and not timed: {why}" if why else ""


def counted_text(study: Study) -> str:
    """The trials whose work is counted beside the timed ones; empty where there are none."""
    counted = len(counted_variants(study))
    if not counted:
        return ""
    return (
        f"after the timed blocks, {numbers.plural(counted, 'trial')} under Valgrind, with one client: each "
        "variant's instructions are counted once"
    )
