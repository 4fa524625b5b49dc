"""The fault layer: what goes wrong while a server is measured. So robustness is compared like speed.

Each fault is there before the server starts and until it has ended, is proved like any level, and goes with
the journal.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from dbdyno.driver.job import Job
from dbdyno.engines.engine import Engine
from dbdyno.engines.values import size_bytes
from dbdyno.errors import Blocked
from dbdyno.host import cgroups, process
from dbdyno.host.room import usable_disk_bytes
from dbdyno.layers.knob import ROOT, ROOT_OR_GROUP, Knob, Scope
from dbdyno.layers.layer import LayerOfKnobs, proof
from dbdyno.layers.memory import NONE, NOWHERE, SIZE, ask_limit, group_readings, limit_met, prove_limit
from dbdyno.layers.setup import CONTROL_GROUPS, REMOVED, Before, Request, RequestedChange, Running, Setup
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.values import SECONDS

BURNER, STOPPER = "dbdyno.host.burner", "dbdyno.host.stopper"
FILLER = "dyno-fault-filler"
BLOCKS = ("io", "blkio")
"""The controller of block devices, by the version of control groups, the newer first."""
TRIP, TRIPS = "SELECT 1", 10
"""What the network's delay is proved with, and how often it is sent."""
HISTOGRAM_SHARE = 0.999
"""The driver tells the least latency to three digits, rounded down."""


@dataclass(frozen=True)
class FewerOperations(Request):
    """A limit of the operations each second on the device that carries the data: a slow disk."""

    per_s: int
    before = Before.START

    def change(self) -> RequestedChange:
        return RequestedChange(
            "fault.disk_operations",
            f"a control group for the server, with {self.per_s}/s on its disk",
            REMOVED,
            CONTROL_GROUPS,
        )

    def apply(self, setup: Setup) -> None:
        if setup.volume is None or not setup.volume.device.is_block_device():
            raise Blocked(
                "fault.disk_operations",
                "the data are on no device of their own",
                'put them on a volume: "storage.filesystem" = "ext4"',
            )
        device = _number(setup.volume.device)
        controller = next((name for name in BLOCKS if cgroups.hierarchy(name)), BLOCKS[0])
        values = (
            {"io.max": f"{device} riops={self.per_s} wiops={self.per_s}"}
            if controller == BLOCKS[0]
            else {f"blkio.throttle.{way}_iops_device": f"{device} {self.per_s}" for way in ("read", "write")}
        )
        setup.join_group(controller, values, "fault.disk_operations")


@dataclass(frozen=True)
class LittleRoom(Request):
    """A file that takes all but so much of the volume that carries the data."""

    free: str
    before = Before.START

    def apply(self, setup: Setup) -> None:
        if setup.volume is None or not setup.data.is_dir():
            raise Blocked(
                "fault.disk_free",
                "the disk that holds the data is the host's own, which is not filled",
                'put them on a volume: "storage.filesystem" = "ext4"',
            )
        filler_bytes = usable_disk_bytes(setup.data) - size_bytes(self.free)
        if filler_bytes <= 0:
            return
        with (setup.data.parent / FILLER).open("wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, filler_bytes)
            except OSError as error:
                reason = f"the volume could not be filled: {error.strerror}"
                raise Blocked("fault.disk_free", reason, "another file system, or a larger level") from None


@dataclass(frozen=True)
class StolenCpu(Request):
    """A process on each CPU that takes a share of it, as a neighbour on the host would."""

    percent: int
    before = Before.START

    def change(self) -> RequestedChange:
        return RequestedChange(
            "fault.stolen_cpu", f"{self.percent} % of each CPU is taken by processes of Dyno's", REMOVED
        )

    def apply(self, setup: Setup) -> None:
        for cpu in sorted(os.sched_getaffinity(0)):
            _start(setup, "fault.stolen_cpu", BURNER, str(cpu), str(self.percent))


@dataclass(frozen=True)
class Pauses(Request):
    """The server's processes are stopped now and then, as a hypervisor or a debugger does it."""

    stop_s: float
    every_s: float
    before = Before.START

    def change(self) -> RequestedChange:
        told = (
            f"a control group for the server, which stands still for {self.stop_s:g} s in {self.every_s:g} s"
        )
        return RequestedChange("fault.pause", told, REMOVED, CONTROL_GROUPS)

    def apply(self, setup: Setup) -> None:
        group = setup.join_group("cpu", {}, "fault.pause")
        _start(setup, "fault.pause", STOPPER, str(group), str(self.stop_s), str(self.every_s))


@dataclass(frozen=True)
class SlowNetwork(Request):
    """The driver lets each flight of requests wait, as over a network with that round-trip time."""

    round_trip_s: float

    def apply(self, setup: Setup) -> None:
        setup.job = setup.job.but(network_delay_s=self.round_trip_s)


def _start(setup: Setup, factor: str, *module: str) -> None:
    """A process of Dyno's own beside the server, which the journal ends."""
    with Path(os.devnull).open("wb") as output:
        child = process.start([sys.executable, "-P", "-m", *module], environment=os.environ, output=output)
    setup.journal.note_processes([child.pid])
    setup.beside.setdefault(factor, []).append(child)


def _ask_pause(level: str, engine: Engine) -> tuple[Request, ...]:
    if level == NONE:
        return ()
    if engine.embedded:
        reason = f"{engine.title} lives in the driver's process, which would stand still with it"
        raise Blocked("fault.pause", reason, "take a server of its own")
    stop, every = (_seconds(part) for part in level.split("/"))
    if stop >= every:
        raise Blocked(
            "fault.pause", f"{level} leaves the server no time to run", "stop it for less than that"
        )
    return (Pauses(stop, every),)


def _ask_network(level: str, engine: Engine) -> tuple[Request, ...]:
    if level == NONE:
        return ()
    if engine.embedded:
        reason = f"{engine.title} lives in the driver's process, with no network between the two"
        raise Blocked("fault.network_delay", reason, "take a server of its own")
    return (SlowNetwork(_seconds(level)),)


def _seconds(text: str) -> float:
    unit = text.lstrip("0123456789")
    return float(text.removesuffix(unit)) * {"us": 1e-6, **SECONDS}[unit]


def _number(device: Path) -> str:
    """A device as the kernel names it in a group: `7:0`."""
    found = device.stat().st_rdev
    return f"{os.major(found)}:{os.minor(found)}"


_evidence = partial(proof, accepted="the kernel took it without an error")


def _prove_operations(level: str, running: Running) -> Evidence:
    files = ("io.max", "blkio.throttle.write_iops_device")
    told = [one for one in group_readings(running, files) if one.value]
    reading = next(iter(told), Reading(value=NONE, source=NOWHERE))
    words = reading.value.split()
    volume = running.setup.volume
    there = volume is not None and _number(volume.device) in words and {level, f"wiops={level}"} & {*words}
    in_effect = reading.value == NONE if level == NONE else bool(there)
    return _evidence("fault.disk_operations", level, reading, in_effect)


def _prove_room(level: str, running: Running) -> Evidence:
    data = running.setup.data
    filler = data.parent / FILLER
    if level == NONE:
        there = filler.is_file()
        found = Reading(value="filled" if there else NONE, source=str(filler))
        return _evidence("fault.disk_free", level, found, not there)
    free_bytes = usable_disk_bytes(data)
    found = Reading(value=f"{free_bytes >> 20} MiB free", source=f"statvfs of {data}")
    return _evidence("fault.disk_free", level, found, free_bytes <= size_bytes(level))


def _prove_beside(factor: str, level: str, running: Running) -> Evidence:
    """That the processes which do it live."""
    alive = [child.pid for child in running.setup.beside.get(factor, ()) if child.poll() is None]
    source = f"Dyno's processes {', '.join(map(str, alive))}" if alive else "no process of Dyno's does it"
    reading = Reading(value=level if alive else NONE, source=source)
    return _evidence(factor, level, reading, bool(alive) is (level != NONE))


def _taken(running: Running) -> Reading | None:
    """The CPU time that was taken while the server ran."""
    burners = running.setup.beside.get("fault.stolen_cpu", ())
    if not burners:
        return None
    times = [psutil.Process(child.pid).cpu_times() for child in burners]
    taken_s = sum(one.user + one.system for one in times)
    return Reading(value=f"{taken_s:.2f} s of CPU time taken", source="/proc/PID/stat of its processes")


def _least_trip_ms(running: Running, delay_s: float) -> float | None:
    """The shortest of some round trips to the server by the load process; None where there was none."""
    script = running.setup.scratch / "round-trip.sql"
    script.write_text(f"{TRIP};\n")
    job = Job(
        url=running.server.url,
        workload="script",
        options={"file": str(script), "mode": "simple"},
        operations=TRIPS,
        gather="off",
        network_delay_s=delay_s,
    )
    least_us = running.load.run(job).latency_us.min
    return None if least_us is None else least_us / 1000


def _prove_network(level: str, running: Running) -> Evidence:
    """That the least round trip takes as long as the level says, and less without it. Where nothing is
    delayed the server is asked as often, because variants must not differ in that."""
    prove = partial(proof, "fault.network_delay", level, accepted="the driver's job")
    delay_s = running.setup.job.network_delay_s
    if running.setup.engine.embedded:
        return prove(Reading(value=NONE, source="the driver's job"), level == NONE and delay_s == 0)
    slow_ms, fast_ms = _least_trip_ms(running, delay_s), _least_trip_ms(running, 0.0)
    source = f"the least of {TRIPS} times {TRIP} by the load process"
    if slow_ms is None or fast_ms is None:
        return prove(Reading(value="no answer", source=source), False)
    if level == NONE:
        return prove(Reading(value=f"{slow_ms:.3f} ms a round trip", source=source), delay_s == 0)
    found = f"{slow_ms:.3f} ms a round trip, {fast_ms:.3f} ms without"
    in_effect = slow_ms >= _seconds(level) * 1000 * HISTOGRAM_SHARE and slow_ms > fast_ms
    return prove(Reading(value=found, source=source), in_effect)


def _waited(running: Running) -> Reading | None:
    """The shortest transaction of the load, which contains each wait of its flights."""
    least_us = running.tally.latency_us.min if running.tally else None
    if least_us is None or running.setup.job.network_delay_s == 0:
        return None
    return Reading(
        value=f"a transaction took {least_us / 1000:.3f} ms at least", source="tally: latency_us.min"
    )


TIME = r"[1-9]\d{0,5}(?:ms|s)"

FAULT = LayerOfKnobs(
    "fault",
    Knob(
        name="fault.memory",
        levels="none, or a size such as 512M",
        pattern=rf"none|{SIZE}",
        effect="the group of memory.server",
        proof="the group's files, and membership",
        ask=partial(ask_limit, "fault.memory"),
        prove=partial(prove_limit, "fault.memory"),
        in_production=False,
        exercised=limit_met,
        needs=ROOT_OR_GROUP,
    ),
    Knob(
        name="fault.disk_operations",
        levels="none, or operations each second such as 200",
        pattern=r"none|[1-9]\d{0,6}",
        effect="a control group that slows the device of the volume down",
        proof="the group's files, and membership",
        ask=lambda level, _: () if level == NONE else (FewerOperations(int(level)),),
        prove=_prove_operations,
        in_production=False,
        needs=ROOT,
    ),
    Knob(
        name="fault.disk_free",
        levels="none, or a size such as 64M: all that is left of the volume",
        pattern=rf"none|{SIZE}",
        effect="a file that fills the volume",
        proof="what the volume has free",
        ask=lambda level, _: () if level == NONE else (LittleRoom(level),),
        prove=_prove_room,
        in_production=False,
    ),
    Knob(
        name="fault.stolen_cpu",
        levels="none, or a share of each CPU such as 50%",
        pattern=r"none|[1-9]\d?%",
        effect="a process on each CPU that takes its share",
        proof="that they live, and the CPU time that they took",
        ask=lambda level, _: () if level == NONE else (StolenCpu(int(level.rstrip("%"))),),
        prove=partial(_prove_beside, "fault.stolen_cpu"),
        in_production=False,
        exercised=_taken,
        needs="nothing",
        scope=Scope.HOST,
    ),
    Knob(
        name="fault.pause",
        levels="none, or how long and in which time, such as 200ms/5s",
        pattern=rf"none|{TIME}/{TIME}",
        effect="the processes of the server's control group are stopped",
        proof="that the process which stops them lives",
        ask=_ask_pause,
        prove=partial(_prove_beside, "fault.pause"),
        in_production=False,
        needs=ROOT_OR_GROUP,
    ),
    Knob(
        name="fault.network_delay",
        levels="none, or the time of a round trip below 1s, such as 2ms or 500us",
        pattern=r"none|[1-9]\d{0,2}(?:us|ms)",
        effect="the driver lets each flight of requests wait for that time",
        proof="the least of some round trips by the load process, with it and without it",
        ask=_ask_network,
        prove=_prove_network,
        in_production=False,
        exercised=_waited,
    ),
)
"""`fault.KNOB = LEVEL`."""
