"""The analyses that every form of report is tried on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache

from dbdyno.analyse import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Design, Goal, Guard, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.front import FrontProgram
from tests.analyse.builds import FASTEST, builds
from tests.analyse.factory import a_run, a_study, broken, changed, ended, every_verdict, records_of
from tests.analyse.hosts_cases import AT_64K, AT_256K, FLEET, on_fleet, on_hosts, study_of

HOSTILE = "</script><script>alert(1)</script> | `*_x_*` \x1b[31mred\x07 \u202eevil & $HOME\nsecond line"
"""Text that would do harm if any form took it for more than text."""


def analysed(study: Study, records: list[Record]) -> Analysis:
    return analyse(study, a_run(study), records)


@cache
def all_verdicts() -> Analysis:
    return analysed(*every_verdict())


@cache
def many() -> Analysis:
    """Thirty variants with long names."""
    levels = [f"{size}M" for size in range(16, 496, 16)]
    study = a_study(
        {"config.innodb_buffer_pool_size_that_is_set_at_startup": levels}, title="How large a pool?"
    )
    names = [f"config.innodb_buffer_pool_size_that_is_set_at_startup={level}" for level in levels[1:]]
    ratios = {name: 1.0 + 0.9 * (index / 29) ** 2 for index, name in enumerate(names)}
    return analysed(study, records_of(study, ratios))


@cache
def two_factors() -> Analysis:
    study = a_study(
        {"config.page_cache": ["2k", "64k"], "workload.clients": [1, 8, 32]},
        design=Design.FACTORIAL,
        title="Do cache and clients multiply?",
    )
    ratios = {
        "config.page_cache=64k": 1.4,
        "workload.clients=8": 3.2,
        "workload.clients=32": 3.4,
        "config.page_cache=64k, workload.clients=8": 1.4 * 3.2 * 1.25,
        "config.page_cache=64k, workload.clients=32": 1.4 * 3.4 * 1.3,
    }
    return analysed(study, records_of(study, ratios))


@cache
def file_systems() -> Analysis:
    """File system x mount options x scheduler, with one scheduler that the device lacks."""
    study = a_study(
        {
            "storage.filesystem": ["raw", "ext4", "xfs", "btrfs"],
            "storage.mount": ["defaults", "sync,noatime"],
            "storage.scheduler": ["none", "bfq"],
        },
        design=Design.FACTORIAL,
        title="Which file system?",
    )
    of_file_system = {"raw": 1.0, "ext4": 0.93, "xfs": 0.97, "btrfs": 0.41}
    ratios, changes = {}, {}
    for variant in analysed(study, []).variants:
        levels = variant.levels
        synced = 0.6 if levels["storage.mount"] != "defaults" and levels["storage.filesystem"] != "raw" else 1
        ratios[variant.name] = of_file_system[str(levels["storage.filesystem"])] * synced
        if levels["storage.scheduler"] == "bfq":
            changes[variant.name] = ended(Outcome.BLOCKED, "loop0 offers no bfq", "it offers: none")
    return analysed(study, records_of(study, ratios, changes))


@cache
def fraction_of_seven() -> Analysis:
    """A gap from a fraction of the variants between."""
    names = [f"config.setting_{letter}" for letter in "abcdef"]
    study = a_study(
        {**{name: ["off", "on"] for name in names}, "workload.clients": [1, 8]},
        design=Design.FRACTIONAL,
        blocks=3,
        title="Which of seven settings?",
    )
    gains = dict.fromkeys(names, 1.02) | {"config.setting_c": 4.0, "workload.clients": 2.0}
    ratios = {
        variant.name: math.prod(
            gains[name] for name, level in variant.levels.items() if level != study.baseline[name]
        )
        for variant in variants_of(study)
    }
    return analysed(study, records_of(study, ratios))


@cache
def fleet() -> Analysis:
    """Six hosts, on one of which the winner loses."""
    hosts = (*FLEET, "dogwood", "elder", "fir")
    study = study_of(hosts)
    ratios = {
        AT_64K: (1.31, 1.24, 1.35, 1.22, 1.28, 0.95),
        AT_256K: (1.0, 1.01, 0.99, 1.0, 1.02, 0.97),
    }
    return analyse(study, on_hosts(a_run(study), hosts), on_fleet(study, ratios, hosts))


@cache
def nothing_run() -> Analysis:
    return analysed(a_study(aa=True), [])


@cache
def one_block() -> Analysis:
    study = a_study(blocks=1)
    return analysed(study, records_of(study, {"config.page_cache=64k": 1.5}))


@cache
def baseline_broken() -> Analysis:
    study = a_study()
    return analysed(study, records_of(study, changes={"baseline": broken("account 118, history 117")}))


@cache
def guards() -> Analysis:
    """One guard broken, one left open, and a pair dropped."""
    goal = Goal(
        guards=(
            Guard(text="p99_ms <= 0.8x", metric="p99_ms", bound=0.8, relative=True),
            Guard(text="server_cpu_us_per_op <= 430", metric="server_cpu_us_per_op", bound=430.0),
        )
    )
    study = a_study({"config.page_cache": ["2k", "64k", "32k"]}, blocks=7, goal=goal)
    failing = ended(Outcome.FAILED, "the server did not answer within 30 s")
    records = records_of(
        study,
        {"config.page_cache=64k": 1.6, "config.page_cache=32k": 1.1},
        {"config.page_cache=64k": lambda record: failing(record) if record.block == 2 else record},
    )
    return analysed(study, records)


@cache
def placebos() -> Analysis:
    """Builds: one that is inert, one within the spread of two placebos."""
    return analysed(*builds({FASTEST: 1.015}))


@cache
def hostile() -> Analysis:
    """Every text that comes from outside carries the hostile one."""
    study = a_study({"config.x": ["a", HOSTILE]}, title=HOSTILE)
    name = next(variant.name for variant in analysed(study, []).variants[1:])
    records = records_of(study, changes={name: ended(Outcome.FAILED, HOSTILE, HOSTILE)})
    records = [
        record.model_copy(update={"server_log": HOSTILE, "engine_version": HOSTILE}) for record in records
    ]
    run = a_run(study).but(study_text=HOSTILE, host={HOSTILE: [HOSTILE]})
    return analyse(study, run, records)


@cache
def application() -> Analysis:
    """An application in front of the server, whose database becomes faster."""
    study = a_study({"config.flush_log": [1, 0]}, title="What do the users notice?").but(
        fronts={"keystone": FrontProgram(command="served", ready="GET /", workers=4)},
        settings={"front.kind": "keystone"},
    )
    fast = "config.flush_log=0"
    records = records_of(study, {fast: 1.05})
    return analysed(
        study, [with_an_application(one, 0.25 if one.variant == fast else 0.4) for one in records]
    )


def with_an_application(record: Record, database_ms: float) -> Record:
    """The trial as one whose workers told their time: 0.9 ms of an operation are the application's, and the
    database's as given."""
    assert record.observation is not None and record.tally is not None
    operations, wander = record.tally.operations, 1.0 + 0.01 * (record.trial % 3)
    totals = record.observation.totals | {
        "application_cpu_user_s": operations * 0.7e-3,
        "application_cpu_system_s": operations * 0.1e-3,
        "application_run_queue_wait_s": operations * 0.05e-3,
        "application_requests": operations * 1.5,
        "application_busy_s": operations * wander * (0.9 + database_ms) * 1e-3,
        "application_database_s": operations * wander * database_ms * 1e-3,
    }
    return changed(record, observation=record.observation.model_copy(update={"totals": totals}))


CASES: dict[str, Callable[[], Analysis]] = {
    case.__name__: cache(case)
    for case in (
        application,
        all_verdicts,
        many,
        two_factors,
        file_systems,
        fleet,
        nothing_run,
        one_block,
        baseline_broken,
        guards,
        placebos,
        hostile,
    )
}
"""Each is analysed once, for all tests that look at it."""


LONG = re.compile(r"-?\d+\.\d{10,}(e[+-]?\d+)?")


def masked(text: str) -> str:
    """Without what differs from run to run of the same records: the version, the run's name, and the last
    digits of numbers, which differ with the host's libraries of mathematics."""
    text = LONG.sub(lambda number: f"{float(number[0]):.9g}", text)
    return re.sub(r"Dyno \d+\.\d+\.\d+\S*", "Dyno VERSION", text).replace("20251009-085320-example", "RUN")
