"""What the tests of gate share with others."""

from __future__ import annotations

from dbdyno.analyse.gate import Gate, side_by_side, with_floor
from tests.analyse.gate_cases import SETUP, an_analysis, past_of


def a_gate(speed: float = 0.8) -> Gate:
    gate = side_by_side("main", an_analysis(speed=speed), an_analysis("first"))
    return with_floor(gate, SETUP, past_of(0.0, 0.02, -0.03))


GATE = a_gate()
