"""A small real application for tests, in front of a server that speaks MySQL's protocol."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from dbdyno.study import Study
from dbdyno.study.front import FrontProgram

SERVED = Path(__file__).with_name("shop_served.py")
SCRIPT = """
[[start.statements]]
request = "GET /enter"
[[transactions]]
name = "buy"
statements = [{ request = "POST /buy", expect = 201 }]
"""


def behind_shop(study: Study, manner: str) -> Study:
    """The study with the shop in front of its server. How it behaves is a word of `shop_served.py`."""
    words = (sys.executable, SERVED, "${socket}", shlex.quote(manner), "${server}")
    program = FrontProgram(
        command=" ".join(map(str, words)),
        socket="${runtime}/shop.sock",
        ready="GET /version",
        prepare=("touch ${data}/stock",),
    )
    return study.but(fronts={"shop": program}, settings={**study.settings, "front.kind": "shop"})
