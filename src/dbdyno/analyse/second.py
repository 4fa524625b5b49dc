"""A second response: what a transaction costs the server's CPUs.

A host that wanders takes time from a server and little of the CPU time that its work needs. So the same
blocks can tell apart what variants cost where they cannot tell apart how fast they are. It is told of every
run that read it, because one that is told only where it happens to repeat well has intervals that are too
narrow: of equal variants 18 to 26 % were told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from dbdyno.analyse.blocks import Trials, ratio_between
from dbdyno.analyse.model import Method, Role, Unit
from dbdyno.analyse.noise import CostRatio, SecondResponse
from dbdyno.analyse.quantiles import BLOCKS_LEAST, confidence_each

METRIC = "server_cpu_us_per_op"
OF_CPU = frozenset({METRIC, "server_cpu_user_us_per_op", "driver_cpu_us_per_op"})


def second_response(trials: Sequence[Trials], baseline: Trials, method: Method) -> SecondResponse | None:
    """Of all candidates, whose intervals hold together; None where one of the two was not read."""
    candidates = [each for each in trials if each.role is Role.CANDIDATE]
    if not candidates or method.unit is not Unit.BLOCK or method.response in OF_CPU:
        return None
    each = confidence_each(method.confidence, len(candidates))
    ratios, shares, blocks = list[CostRatio](), list[float](), list[int]()
    for one in candidates:
        time = ratio_between(method.response, one, baseline, each, method)
        cpu = ratio_between(METRIC, one, baseline, each, method)
        if (
            not time
            or not cpu
            or not time.log_sd
            or cpu.log_sd is None
            or cpu.low is None
            or cpu.high is None
        ):
            continue
        ratios.append(CostRatio(variant=one.variant.name, ratio=cpu.ratio, low=cpu.low, high=cpu.high))
        shares.append(cpu.log_sd / time.log_sd)
        blocks.append(min(time.pairs, cpu.pairs))
    if not ratios or min(blocks) < BLOCKS_LEAST:
        return None
    return SecondResponse(metric=METRIC, spread_share=median(shares), ratios=tuple(ratios))
