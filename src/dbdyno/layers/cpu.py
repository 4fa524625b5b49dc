"""The CPU layer: which CPUs server and driver may use, how much of them, and in which mode they run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.host import cgroups, kernel_files, kernel_values
from dbdyno.host.kernel_values import bound_threads, losing_cpusets, parse_cpu_list
from dbdyno.host.process import bind_memory, can_do
from dbdyno.layers.knob import ROOT, ROOT_OR_GROUP, Knob, Scope
from dbdyno.layers.layer import LayerOfKnobs, proof
from dbdyno.layers.setup import (
    CONTROL_GROUPS,
    REMOVED,
    Part,
    PartPlace,
    Request,
    RequestedChange,
    Running,
    Setup,
)
from dbdyno.records.record import Evidence, Reading

CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
SMT_CONTROL = "smt/control"
BOOST_CONTROLS = {
    "cpufreq/boost": {"on": "1", "off": "0"},
    "intel_pstate/no_turbo": {"on": "0", "off": "1"},
}
"""The switches of boost below `CPUS`, of which a host has one, and what each takes."""
PERIOD_US = 100_000
"""The kernel's default period of a quota (cgroup-v2.rst): long enough that the accounting itself costs
nothing."""


@dataclass(frozen=True)
class Affinity(Request):
    """The CPUs that a process may use, in the kernel's list format."""

    factor: str
    cpus: str
    of_driver: bool = False

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        if self.of_driver:
            return ()
        return (Part(factor=self.factor, place=PartPlace.UNIT, name="CPUAffinity", value=self.cpus),)

    def apply(self, setup: Setup) -> None:
        launch = setup.load_launch if self.of_driver else setup.launch
        launch.affinity = _usable(self.factor, self.cpus)


@dataclass(frozen=True)
class NumaNode(Request):
    """One NUMA node: the server runs on its CPUs and takes memory from it alone."""

    number: int

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        directives = {"NUMAPolicy": "bind", "NUMAMask": str(self.number), "CPUAffinity": "numa"}
        part = partial(Part, factor="cpu.node", place=PartPlace.UNIT)
        return tuple(part(name=name, value=value) for name, value in directives.items())

    def apply(self, setup: Setup) -> None:
        folder = NODES / f"node{self.number}"
        if not folder.is_dir():
            there = ", ".join(sorted(path.name[4:] for path in NODES.glob("node[0-9]*")))
            raise Blocked("cpu.node", f"this host has no NUMA node {self.number}", f"it has: {there}")
        setup.launch.affinity = _usable("cpu.node", kernel_files.text(folder / "cpulist"))
        if not can_do(bind_memory(self.number)):
            reason = f"the kernel does not let this process bind its memory to node {self.number}"
            raise Blocked("cpu.node", reason, "a container with CAP_SYS_NICE, or another node")
        setup.launch.before_exec = (*setup.launch.before_exec, bind_memory(self.number))


@dataclass(frozen=True)
class Quota(Request):
    """How much CPU time the server may take, in percent of one CPU; None: in a group all the same where one
    can be made, so that the quota is all that differs."""

    percent: int | None

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        if self.percent is None:
            return ()
        return (Part(factor="cpu.quota", place=PartPlace.UNIT, name="CPUQuota", value=f"{self.percent}%"),)

    def change(self) -> RequestedChange:
        if self.percent is None:
            return RequestedChange(
                "cpu.quota", "a control group for the server, where one can be made", REMOVED, CONTROL_GROUPS
            )
        return RequestedChange(
            "cpu.quota",
            f"a control group for the server, with {self.percent} % of one CPU",
            REMOVED,
            CONTROL_GROUPS,
        )

    def apply(self, setup: Setup) -> None:
        if self.percent is None:
            with contextlib.suppress(Blocked):
                setup.join_group("cpu", {}, "cpu.quota")
            return
        quota_us = self.percent * PERIOD_US // 100
        values = (
            {"cpu.max": f"{quota_us} {PERIOD_US}"}
            if _version() == 2
            else {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}
        )
        setup.join_group("cpu", values, "cpu.quota")


@dataclass(frozen=True)
class Weight(Request):
    """The server's share of the CPUs where others want them too; 100 is the default."""

    weight: int

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        return (Part(factor="cpu.weight", place=PartPlace.UNIT, name="CPUWeight", value=self.weight),)

    def change(self) -> RequestedChange:
        return RequestedChange(
            "cpu.weight",
            f"a control group for the server, with the weight {self.weight}",
            REMOVED,
            CONTROL_GROUPS,
        )

    def apply(self, setup: Setup) -> None:
        # Version 1 counts shares, 1024 being everybody's; version 2 counts weight, 100 being everybody's.
        values = (
            {"cpu.weight": str(self.weight)}
            if _version() == 2
            else {"cpu.shares": str(max(2, self.weight * 1024 // 100))}
        )
        setup.join_group("cpu", values, "cpu.weight")


@dataclass(frozen=True)
class Smt(Request):
    """Simultaneous multithreading of the host's cores."""

    level: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        return (
            Part(factor="cpu.smt", place=PartPlace.KERNEL, name=str(CPUS / SMT_CONTROL), value=self.level),
        )

    def change(self) -> RequestedChange:
        return RequestedChange(
            "cpu.smt",
            f"{CPUS / SMT_CONTROL} := {self.level}",
            places=(str(CPUS / SMT_CONTROL), *CONTROL_GROUPS),
        )

    def apply(self, setup: Setup) -> None:
        now = _smt()
        if now == self.level:
            return
        if now not in ("on", "off"):
            reason = f"the kernel says SMT is {now}"
            raise Blocked("cpu.smt", reason, "a host whose firmware and kernel offer it")
        if self.level == "off":
            _require_all_comes_back(_second_threads())
        kernel_values.set_value(setup.journal, CPUS / SMT_CONTROL, self.level, "cpu.smt")


@dataclass(frozen=True)
class Governor(Request):
    """The governor of every cpufreq policy of the host."""

    name: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        path = str(CPUS / "cpufreq" / "policy*" / "scaling_governor")
        return (Part(factor="cpu.governor", place=PartPlace.KERNEL, name=path, value=self.name),)

    def change(self) -> RequestedChange:
        return RequestedChange(
            "cpu.governor",
            f"scaling_governor of every policy in {CPUS / 'cpufreq'} := {self.name}",
            places=(str(CPUS / "cpufreq" / "policy*" / "scaling_governor"),),
        )

    def apply(self, setup: Setup) -> None:
        policies = sorted((CPUS / "cpufreq").glob("policy*"))
        if not policies:
            raise Blocked(
                "cpu.governor",
                "this host has no cpufreq: a hypervisor or firmware sets the clock",
                "bare metal",
            )
        for policy in policies:
            offered = kernel_files.text(policy / "scaling_available_governors").split()
            if self.name not in offered:
                raise Blocked(
                    "cpu.governor", f"{policy.name} offers no {self.name}", f"it offers: {', '.join(offered)}"
                )
            kernel_values.set_value(setup.journal, policy / "scaling_governor", self.name, "cpu.governor")


@dataclass(frozen=True)
class Boost(Request):
    """Whether the host's CPUs may run above their nominal frequency."""

    level: str

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        part = partial(Part, factor="cpu.boost", place=PartPlace.KERNEL)
        return tuple(
            part(name=str(CPUS / path), value=values[self.level]) for path, values in BOOST_CONTROLS.items()
        )

    def change(self) -> RequestedChange:
        return RequestedChange(
            "cpu.boost",
            f"boost of all CPUs := {self.level}",
            places=tuple(str(CPUS / path) for path in BOOST_CONTROLS),
        )

    def apply(self, setup: Setup) -> None:
        path, values = _boost_control()
        kernel_values.set_value(setup.journal, path, values[self.level], "cpu.boost")


def _ask_server(level: str, _engine: Engine) -> tuple[Request, ...]:
    return () if level == "all" else (Affinity("cpu.server", level),)


def _ask_driver(level: str, engine: Engine) -> tuple[Request, ...]:
    if level == "all":
        return ()
    if engine.embedded:
        reason = f"{engine.title} runs inside the driver's process: the two share their CPUs"
        raise Blocked("cpu.driver", reason, "vary cpu.server, or use the engine over the network")
    return (Affinity("cpu.driver", level, of_driver=True),)


def _version() -> int:
    """The version of control groups that holds the cpu controller here; 0 where none does."""
    found = cgroups.hierarchy("cpu")
    return found.version if found else 0


def _smt() -> str:
    """`on`, `off`, or the kernel's word for why neither can be chosen."""
    control = CPUS / SMT_CONTROL
    return kernel_values.read(control) if control.exists() else "notsupported"


def _second_threads() -> set[int]:
    """The CPUs that are not the first of their core: those that go offline without SMT."""
    files = CPUS.glob("cpu[0-9]*/topology/thread_siblings_list")
    cores = [parse_cpu_list(kernel_files.text(file)) for file in files]
    return {cpu for core in cores for cpu in core if cpu != min(core)}


def _require_all_comes_back(going: set[int]) -> None:
    """Raises Blocked where the kernel would not restore what CPUs that go offline take along."""
    if groups := losing_cpusets(going):
        others = f" and {len(groups) - 1} more" if groups[1:] else ""
        reason = f"the control group {groups[0]}{others} would lose CPUs for good, as version 1 does not give"
        remedy = "end what runs in it and remove the group, or boot with cgroup version 2"
        raise Blocked("cpu.smt", f"{reason} them back", remedy)
    if threads := bound_threads(going):
        number, name = threads[0]
        others = f" and {len(threads) - 1} more" if threads[1:] else ""
        reason = f"thread {number} ({name}){others} is bound to CPUs that go offline, and would not be bound"
        remedy = "end it, or let it run on the first thread of a core as well (taskset)"
        raise Blocked("cpu.smt", f"{reason} again", remedy)


def _group(setup: Setup) -> Path | None:
    return next(iter(setup.launch.cgroups), None)


def _usable(factor: str, cpu_list: str) -> tuple[int, ...]:
    """The CPUs of a list. Raises Blocked when this process itself may not use one of them."""
    wanted = parse_cpu_list(cpu_list)
    allowed = os.sched_getaffinity(0)
    if not wanted <= allowed:
        beyond = ", ".join(map(str, sorted(wanted - allowed)))
        raise Blocked(
            factor,
            f"CPU {beyond} is not there or not allowed",
            f"allowed here: {', '.join(map(str, sorted(allowed)))}",
        )
    return tuple(sorted(wanted))


def _boost_control() -> tuple[Path, Mapping[str, str]]:
    for path, values in BOOST_CONTROLS.items():
        if (CPUS / path).exists():
            return CPUS / path, values
    raise Blocked(
        "cpu.boost", "this host offers no switch for boost: a hypervisor or firmware has it", "use bare metal"
    )


_evidence = partial(proof, accepted="the kernel took it without an error")


def _prove_affinity(knob: str, level: str, running: Running) -> Evidence:
    """Every thread of every process is asked: one that was started with another mask would show."""
    driver = knob == "driver"
    process_ids = running.driver_ids if driver else running.process_ids
    lists = sorted({cpus for process_id in process_ids for cpus in _cpus_of_threads(process_id)})
    wanted = _wanted(knob, level, running.setup)
    online = _online()
    in_effect = bool(lists) and all(parse_cpu_list(cpus) & online == wanted & online for cpus in lists)
    source = f"Cpus_allowed_list of all threads of process {', '.join(map(str, process_ids))}"
    return _evidence(f"cpu.{knob}", level, Reading(value=" and ".join(lists), source=source), in_effect)


def _online() -> set[int]:
    """The CPUs that run, while a mask may name others. A sandbox may hide the list, but not their number."""
    try:
        return parse_cpu_list(kernel_files.text(CPUS / "online"))
    except kernel_files.UnreadableFile:
        return set(range(os.sysconf("SC_NPROCESSORS_CONF")))


def _wanted(knob: str, level: str, setup: Setup) -> set[int]:
    """The CPUs that a level means; `all` leaves it to the NUMA node, where one was asked for."""
    if level != "all":
        return parse_cpu_list(level)
    launch = setup.load_launch if knob == "driver" else setup.launch
    return set(launch.affinity) or os.sched_getaffinity(0)


def _prove_node(level: str, running: Running) -> Evidence:
    """Where memory comes from, as the kernel says for each mapping; and that the node's CPUs are used."""
    policies = {policy for process_id in running.process_ids for policy in _memory_policies(process_id)}
    bound = {policy for policy in policies if policy.startswith("bind")}
    value = " and ".join(sorted(bound)) or "any"
    source = f"/proc/PID/numa_maps of process {', '.join(map(str, running.process_ids))}"
    if level == "any":
        return _evidence("cpu.node", level, Reading(value=value, source=source), not bound)
    cpus = _prove_affinity("server", kernel_files.text(NODES / f"node{level}" / "cpulist"), running)
    at = cpus.effective.value if cpus.effective else "no CPU"
    reading = Reading(value=f"{value} on CPU {at}", source=f"{source}; Cpus_allowed_list")
    return _evidence("cpu.node", level, reading, cpus.in_effect and bound == {f"bind:{level}"})


def _memory_policies(process_id: int) -> set[str]:
    """The policies of all mappings (numa(7)); empty on a kernel that knows no nodes."""
    try:
        lines = kernel_files.text(f"/proc/{process_id}/numa_maps", may_be_empty=True).splitlines()
    except kernel_files.Gone:
        return set()
    return {line.split()[1] for line in lines}


def _cpus_of_threads(process_id: int) -> set[str]:
    found: set[str] = set()
    for status in Path(f"/proc/{process_id}/task").glob("*/status"):
        try:
            lines = kernel_files.text(status).splitlines()
        except kernel_files.Gone:
            continue
        found.update(line.split(":", 1)[1].strip() for line in lines if line.startswith("Cpus_allowed_list:"))
    return found


def _prove_group(knob: str, level: str, running: Running) -> Evidence:
    group = _group(running.setup)
    if group is None:
        limits = Reading(value="max", source="the server is in no control group of Dyno's")
        return _evidence(f"cpu.{knob}", level, limits, level in ("max", "100"))
    inside = cgroups.holds(group, running.process_ids)
    value = _quota(group) if knob == "quota" else _weight(group)
    reading = Reading(value=value if inside else "not a member", source=f"{group} and its cgroup.procs")
    return _evidence(f"cpu.{knob}", level, reading, inside and value == level)


def _quota(group: Path) -> str:
    """The quota in force, as a level is written."""
    if (group / "cpu.max").exists():
        quota, period = kernel_files.text(group / "cpu.max").split()
    else:
        quota, period = (kernel_files.text(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return "max" if quota in ("max", "-1") else f"{int(quota) * 100 // int(period)}%"


def _weight(group: Path) -> str:
    if (group / "cpu.weight").exists():
        return kernel_files.text(group / "cpu.weight")
    return str(round(int(kernel_files.text(group / "cpu.shares")) * 100 / 1024))


def _prove_host_value(knob: str, level: str, running: Running) -> Evidence:
    if knob == "boost":
        path, values = _boost_control()
        value = next((name for name, raw in values.items() if raw == kernel_values.read(path)), "unknown")
        source = str(path)
    elif knob == "smt":
        value, source = _smt(), str(CPUS / SMT_CONTROL)
    else:
        found = {
            kernel_values.read(policy / "scaling_governor") for policy in (CPUS / "cpufreq").glob("policy*")
        }
        value, source = " and ".join(sorted(found)), "scaling_governor of every cpufreq policy"
    return _evidence(f"cpu.{knob}", level, Reading(value=value, source=source), value == level)


def _held_back(running: Running) -> Reading | None:
    """How often the kernel held the server back while it was loaded."""
    group = _group(running.setup)
    if group is None:
        return None
    held = cgroups.throttling(group)
    told = (
        f"held back in {held.throttled_periods} of {held.periods} periods, {held.throttled_s:.2f} s,"
        " since the server's start"
    )
    return Reading(value=told, source=str(group / "cpu.stat"))


CPU_LIST = r"\d+(-\d+)?(,\d+(-\d+)?)*"

CPU = LayerOfKnobs(
    "cpu",
    Knob(
        name="cpu.server",
        levels="all, or CPUs such as 0 or 0-3,8",
        pattern=rf"all|{CPU_LIST}",
        effect="affinity of the server's process",
        proof="Cpus_allowed_list of every thread",
        ask=_ask_server,
        prove=partial(_prove_affinity, "server"),
        related=("cpu.usable_cores", "cpu.threads_per_core"),
    ),
    Knob(
        name="cpu.driver",
        levels="all, or CPUs such as 0 or 0-3,8",
        pattern=rf"all|{CPU_LIST}",
        effect="affinity of the load process",
        proof="Cpus_allowed_list of every thread",
        ask=_ask_driver,
        prove=partial(_prove_affinity, "driver"),
        related=("cpu.usable_cores",),
        in_production=False,
    ),
    Knob(
        name="cpu.node",
        levels="any, or the number of a NUMA node",
        pattern=r"any|\d+",
        effect="affinity to its CPUs, memory bound to it",
        proof="/proc/PID/numa_maps, and Cpus_allowed_list of every thread",
        ask=lambda level, _: () if level == "any" else (NumaNode(int(level)),),
        prove=_prove_node,
        related=("cpu.numa_nodes",),
    ),
    Knob(
        name="cpu.quota",
        levels="max, or CPUs' worth of time such as 50% or 150%",
        pattern=r"max|[1-9]\d{0,5}%",
        effect="a control group of the server's own, version 1 or 2",
        proof="the group's files, and membership",
        ask=lambda level, _: (Quota(None if level == "max" else int(level.rstrip("%"))),),
        prove=partial(_prove_group, "quota"),
        exercised=_held_back,
        needs=ROOT_OR_GROUP,
        related=("cpu.usable_cores",),
    ),
    Knob(
        name="cpu.weight",
        levels="a whole number from 1 to 10000; 100 is the default",
        pattern=r"[1-9]\d{0,3}|10000",
        effect="the control group of cpu.quota",
        proof="the group's files, and membership",
        ask=lambda level, _: (Weight(int(level)),),
        prove=partial(_prove_group, "weight"),
        needs=ROOT_OR_GROUP,
    ),
    Knob(
        name="cpu.smt",
        levels="on or off",
        pattern="on|off",
        effect="/sys/devices/system/cpu/smt/control",
        proof="read back",
        ask=lambda level, _: (Smt(level),),
        prove=partial(_prove_host_value, "smt"),
        needs=ROOT,
        scope=Scope.HOST,
        related=("cpu.threads_per_core",),
    ),
    Knob(
        name="cpu.governor",
        levels="the name of a cpufreq governor",
        pattern="[a-z_]+",
        effect="scaling_governor of every cpufreq policy",
        proof="read back",
        ask=lambda level, _: (Governor(level),),
        prove=partial(_prove_host_value, "governor"),
        needs=ROOT,
        scope=Scope.HOST,
        related=("cpu.governor", "cpu.frequency_mhz"),
    ),
    Knob(
        name="cpu.boost",
        levels="on or off",
        pattern="on|off",
        effect="cpufreq/boost or intel_pstate/no_turbo",
        proof="read back",
        ask=lambda level, _: (Boost(level),),
        prove=partial(_prove_host_value, "boost"),
        needs=ROOT,
        scope=Scope.HOST,
        related=("cpu.frequency_mhz",),
    ),
)
"""`cpu.KNOB = LEVEL`."""
