"""Whether each level of `studies/sqlite-builds.toml` ended as the study says.

`make builds` gives the report, as JSON on the standard input.
"""

from __future__ import annotations

import json
import sys
from typing import Any

EXHIBITS = {
    "build.flags=-Wall": "inert",
    "build.flags=-DSQLITE_MAX_EXPR_DEPTH=none": "failed",
    "build.flags=-ffast-math": "broken",
    "source.patches=../patches/sqlite-wrong-history.patch": "broken",
}
"""What is there to be caught. All others have a speed."""
MEASURED = frozenset(("faster", "slower", "no effect", "inconclusive"))


def mistakes(report: dict[str, Any]) -> list[str]:
    """What is not as it should be, in a report of the study."""
    verdicts = {one["name"]: one["verdict"] for one in report["variants"] if one["role"] == "candidate"}
    found = [
        f"{name} is {verdict}, not {EXHIBITS.get(name, 'measured')}"
        for name, verdict in verdicts.items()
        if (verdict != EXHIBITS[name] if name in EXHIBITS else verdict not in MEASURED)
    ]
    found += [f"there is no {name}" for name in EXHIBITS if name not in verdicts]
    if report["method"].get("layout") is None:
        found.append("the placebo was not measured, so nobody knows how far luck of layout goes")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(mistakes(json.load(sys.stdin))) or None)
