"""The CPU layer: which CPUs server and driver may use, how much of them, and in which mode they run.

| knob | levels | put into effect by |
|---|---|---|
| `cpu.server`, `cpu.driver` | `all`, or CPUs as the kernel lists them (`0`, `0-3,8`) | affinity |
| `cpu.node` | `any`, or a NUMA node's number | affinity to its CPUs, memory bound to it |
| `cpu.quota` | `max`, or CPUs' worth of time (`50%`, `150%`) | a control group of the server's own |
| `cpu.weight` | relative weight, 100 being everybody's | the same control group |
| `cpu.smt` | on, off | the host, through the journal |
| `cpu.governor` | a cpufreq governor | the host, through the journal |
| `cpu.boost` | on, off | the host, through the journal |
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.base import Engine
from dbdyno.errors import Blocked, Mistake
from dbdyno.frozen import Level, level_text
from dbdyno.host import cgroups, kernel_values
from dbdyno.host.process import bind_memory, can_do
from dbdyno.layers.setup import Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor

CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
PERIOD_US = 100_000
"""The kernel's default period of a quota (cgroup-v2.rst): long enough that the accounting itself costs
nothing."""

_KNOBS = {
    "server": "all, or CPUs such as 0 or 0-3,8",
    "driver": "all, or CPUs such as 0 or 0-3,8",
    "node": "any, or the number of a NUMA node",
    "quota": "max, or CPUs' worth of time such as 50% or 150%",
    "weight": "a whole number from 1 to 10000; 100 is everybody's",
    "smt": "on or off",
    "governor": "the name of a cpufreq governor",
    "boost": "on or off",
}
_SYNTAX = {
    "server": r"all|\d+(-\d+)?(,\d+(-\d+)?)*",
    "driver": r"all|\d+(-\d+)?(,\d+(-\d+)?)*",
    "node": r"any|\d+",
    "quota": r"max|[1-9]\d{0,5}%",
    "weight": r"[1-9]\d{0,3}|10000",
    "smt": r"on|off",
    "governor": r"[a-z_]+",
    "boost": r"on|off",
}


class CpuLayer:
    """`cpu.KNOB = LEVEL`."""

    name = "cpu"

    def mistakes(self, factor: Factor, engine: Engine, installation: Installation | None) -> list[Mistake]:
        if factor.knob not in _KNOBS:
            return [Mistake(0, f"the cpu layer has no knob {factor.knob!r}", f"it has: {', '.join(_KNOBS)}")]
        return [
            Mistake(
                0,
                f"{factor.name}: {level_text(level)!r} is no level of it",
                f"allowed: {_KNOBS[factor.knob]}",
            )
            for level in factor.levels
            if not re.fullmatch(_SYNTAX[factor.knob], level_text(level))
        ]

    def put(self, levels: Mapping[str, Level], setup: Setup) -> None:
        for knob, level in levels.items():
            getattr(self, f"_put_{knob}")(level_text(level), setup)

    def placed(self, setup: Setup) -> None:
        """Nothing of this layer depends on where the data lie."""

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [_PROOFS[knob](knob, level_text(level), running) for knob, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """For a quota: how often the kernel held the server back while it was loaded."""
        group = _group(running.setup)
        if evidence.factor != "cpu.quota" or group is None:
            return evidence
        held = cgroups.throttling(group)
        told = (
            f"held back in {held.throttled_periods} of {held.periods} periods, {held.throttled_s:.2f} s,"
            " since the server's start"
        )
        shown = Reading(value=told, source=str(group / "cpu.stat"))
        return evidence.model_copy(update={"exercised": shown})

    def _put_server(self, level: str, setup: Setup) -> None:
        if level != "all":
            setup.launch.affinity = _usable("cpu.server", level)

    def _put_driver(self, level: str, setup: Setup) -> None:
        if level == "all":
            return
        if setup.engine.embedded:
            reason = f"{setup.engine.title} runs inside the driver's process: the two share their CPUs"
            raise Blocked("cpu.driver", reason, "vary cpu.server, or use the engine over the network")
        setup.load_launch.affinity = _usable("cpu.driver", level)

    def _put_node(self, level: str, setup: Setup) -> None:
        if level == "any":
            return
        folder = NODES / f"node{level}"
        if not folder.is_dir():
            there = ", ".join(sorted(path.name[4:] for path in NODES.glob("node[0-9]*")))
            raise Blocked("cpu.node", f"this host has no NUMA node {level}", f"it has: {there}")
        setup.launch.affinity = _usable("cpu.node", (folder / "cpulist").read_text().strip())
        if not can_do(bind_memory(int(level))):
            reason = f"the kernel does not let this process bind its memory to node {level}"
            raise Blocked("cpu.node", reason, "a container with CAP_SYS_NICE, or another node")
        setup.launch.before_exec = (*setup.launch.before_exec, bind_memory(int(level)))

    def _put_quota(self, level: str, setup: Setup) -> None:
        if level == "max":
            # In a group all the same where one can be made, so that the quota is all that differs.
            with contextlib.suppress(Blocked):
                self._join({}, "cpu.quota", setup)
            return
        quota_us = int(level.rstrip("%")) * PERIOD_US // 100
        found = cgroups.hierarchy("cpu")
        values = (
            {"cpu.max": f"{quota_us} {PERIOD_US}"}
            if found and found.version == 2
            else {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}
        )
        self._join(values, "cpu.quota", setup)

    def _put_weight(self, level: str, setup: Setup) -> None:
        found = cgroups.hierarchy("cpu")
        # Version 1 counts shares, 1024 being everybody's; version 2 counts weight, 100 being everybody's.
        values = (
            {"cpu.weight": level}
            if found and found.version == 2
            else {"cpu.shares": str(max(2, int(level) * 1024 // 100))}
        )
        self._join(values, "cpu.weight", setup)

    def _join(self, values: Mapping[str, str], factor: str, setup: Setup) -> None:
        group = _group(setup)
        if group is None:
            group = cgroups.make(setup.journal, "cpu", setup.scratch.name, values, factor)
            setup.launch.cgroups = (*setup.launch.cgroups, group)
        else:
            cgroups.change(group, values, factor)

    def _put_smt(self, level: str, setup: Setup) -> None:
        now = _smt()
        if now == level:
            return
        if now not in ("on", "off"):
            reason = f"the kernel says SMT is {now}"
            raise Blocked("cpu.smt", reason, "a host whose firmware and kernel offer it")
        kernel_values.set_value(setup.journal, CPUS / "smt" / "control", level, "cpu.smt")

    def _put_governor(self, level: str, setup: Setup) -> None:
        policies = sorted((CPUS / "cpufreq").glob("policy*"))
        if not policies:
            raise Blocked(
                "cpu.governor",
                "this host has no cpufreq: a hypervisor or firmware sets the clock",
                "bare metal",
            )
        for policy in policies:
            offered = (policy / "scaling_available_governors").read_text().split()
            if level not in offered:
                raise Blocked(
                    "cpu.governor", f"{policy.name} offers no {level}", f"it offers: {', '.join(offered)}"
                )
            kernel_values.set_value(setup.journal, policy / "scaling_governor", level, "cpu.governor")

    def _put_boost(self, level: str, setup: Setup) -> None:
        path, values = _boost_control()
        kernel_values.set_value(setup.journal, path, values[level], "cpu.boost")


def _smt() -> str:
    """`on`, `off`, or the kernel's word for why neither can be chosen."""
    control = CPUS / "smt" / "control"
    return kernel_values.read(control) if control.exists() else "notsupported"


def _group(setup: Setup) -> Path | None:
    return next((group for group in setup.launch.cgroups if group.name.startswith(cgroups.PREFIX)), None)


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


def parse_cpu_list(text: str) -> set[int]:
    """CPU numbers of the kernel's list format (`0-3,8`)."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _boost_control() -> tuple[Path, dict[str, str]]:
    generic, intel = CPUS / "cpufreq" / "boost", CPUS / "intel_pstate" / "no_turbo"
    if generic.exists():
        return generic, {"on": "1", "off": "0"}
    if intel.exists():
        return intel, {"on": "0", "off": "1"}
    raise Blocked(
        "cpu.boost", "this host offers no switch for boost: a hypervisor or firmware has it", "bare metal"
    )


def _evidence(factor: str, level: str, reading: Reading, in_effect: bool) -> Evidence:
    reason = "" if in_effect else f"asked for {level}, the kernel says {reading.value}"
    accepted = Reading(value=level, source="the kernel took it without an error")
    return Evidence(
        factor=factor,
        requested=level,
        accepted=accepted,
        effective=reading,
        in_effect=in_effect,
        reason=reason,
    )


def _prove_affinity(knob: str, level: str, running: Running) -> Evidence:
    """Every thread of every process is asked: one that was started with another mask would show."""
    driver = knob == "driver"
    process_ids = (running.load.process_id,) if driver else running.process_ids
    lists = sorted({cpus for process_id in process_ids for cpus in _cpus_of_threads(process_id)})
    wanted = _wanted(knob, level, running.setup)
    # A mask may name CPUs that are offline, on which nothing runs.
    online = parse_cpu_list((CPUS / "online").read_text().strip())
    in_effect = bool(lists) and all(parse_cpu_list(cpus) & online == wanted & online for cpus in lists)
    source = f"Cpus_allowed_list of all threads of process {', '.join(map(str, process_ids))}"
    return _evidence(f"cpu.{knob}", level, Reading(value=" and ".join(lists), source=source), in_effect)


def _wanted(knob: str, level: str, setup: Setup) -> set[int]:
    """The CPUs that a level means; `all` leaves it to the NUMA node, where one was asked for."""
    if level != "all":
        return parse_cpu_list(level)
    launch = setup.load_launch if knob == "driver" else setup.launch
    return set(launch.affinity) or os.sched_getaffinity(0)


def _prove_node(knob: str, level: str, running: Running) -> Evidence:
    """Where memory comes from, as the kernel says for each mapping; and that the node's CPUs are used."""
    policies = {policy for process_id in running.process_ids for policy in _memory_policies(process_id)}
    bound = {policy for policy in policies if policy.startswith("bind")}
    value = " and ".join(sorted(bound)) or "any"
    source = f"/proc/PID/numa_maps of process {', '.join(map(str, running.process_ids))}"
    if level == "any":
        return _evidence("cpu.node", level, Reading(value=value, source=source), not bound)
    cpus = _prove_affinity("server", (NODES / f"node{level}" / "cpulist").read_text().strip(), running)
    at = cpus.effective.value if cpus.effective else "no CPU"
    reading = Reading(value=f"{value} on CPU {at}", source=f"{source}; Cpus_allowed_list")
    return _evidence("cpu.node", level, reading, cpus.in_effect and bound == {f"bind:{level}"})


def _memory_policies(process_id: int) -> set[str]:
    """The policies of all mappings (numa(7)); empty on a kernel that knows no nodes."""
    try:
        lines = Path(f"/proc/{process_id}/numa_maps").read_text().splitlines()
    except FileNotFoundError:
        return set()
    return {line.split()[1] for line in lines}


def _cpus_of_threads(process_id: int) -> set[str]:
    found: set[str] = set()
    for status in Path(f"/proc/{process_id}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found.update(line.split(":", 1)[1].strip() for line in lines if line.startswith("Cpus_allowed_list:"))
    return found


def _prove_group(knob: str, level: str, running: Running) -> Evidence:
    group = _group(running.setup)
    if group is None:
        limits = Reading(value="max", source="the server is in no control group of Dyno's")
        return _evidence(f"cpu.{knob}", level, limits, level in ("max", "100"))
    inside = all(_is_member(process_id, group) for process_id in running.process_ids)
    value = _quota(group) if knob == "quota" else _weight(group)
    reading = Reading(value=value if inside else "not a member", source=f"{group} and its cgroup.procs")
    return _evidence(f"cpu.{knob}", level, reading, inside and value == level)


def _is_member(process_id: int, group: Path) -> bool:
    return str(process_id) in (group / "cgroup.procs").read_text().split()


def _quota(group: Path) -> str:
    """The quota in force, as a level is written."""
    if (group / "cpu.max").exists():
        quota, period = (group / "cpu.max").read_text().split()
    else:
        quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
    return "max" if quota in ("max", "-1") else f"{int(quota) * 100 // int(period)}%"


def _weight(group: Path) -> str:
    if (group / "cpu.weight").exists():
        return (group / "cpu.weight").read_text().strip()
    return str(round(int((group / "cpu.shares").read_text()) * 100 / 1024))


def _prove_host_value(knob: str, level: str, running: Running) -> Evidence:
    if knob == "boost":
        path, values = _boost_control()
        value = next((name for name, raw in values.items() if raw == kernel_values.read(path)), "unknown")
        source = str(path)
    elif knob == "smt":
        value, source = _smt(), str(CPUS / "smt" / "control")
    else:
        found = {
            kernel_values.read(policy / "scaling_governor") for policy in (CPUS / "cpufreq").glob("policy*")
        }
        value, source = " and ".join(sorted(found)), "scaling_governor of every cpufreq policy"
    return _evidence(f"cpu.{knob}", level, Reading(value=value, source=source), value == level)


_PROOFS = {
    "server": _prove_affinity,
    "driver": _prove_affinity,
    "node": _prove_node,
    "quota": _prove_group,
    "weight": _prove_group,
    "smt": _prove_host_value,
    "governor": _prove_host_value,
    "boost": _prove_host_value,
}
