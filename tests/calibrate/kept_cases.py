"""What the tests of kept share with others."""

from __future__ import annotations

from dbdyno.calibrate.finding import Binding, Pair, TrialCosts, finding
from dbdyno.calibrate.kept import CalibratedHost, Calibration
from dbdyno.study import Interval
from tests.analyse.factory import a_study

HERE = CalibratedHost(name="here", cpu="EPYC", usable_cores=2, virtualisation=None, kernel="6.12")


TRIAL = TrialCosts(fixed_s=3.5, longest_s=20.0)


MADE_UNIX_S = 1_760_000_000.0


def a_calibration(**changes: object) -> Calibration:
    workload = a_study().workload
    pairs = [Pair(first_per_s=100.0, second_per_s=speed) for speed in (101.0, 99.0)]
    best = finding(Binding(server="0", driver="1", slice_s=0.25), pairs, TRIAL)
    made = Calibration(
        engine="firebird",
        workload=workload.name,
        clients=workload.clients,
        options=dict(workload.options),
        place=HERE,
        made_unix_s=MADE_UNIX_S,
        best=best,
        interval=Interval.STUDENT,
        findings=(best,),
    )
    return made.but(**changes)
