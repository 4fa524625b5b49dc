"""The bindings that are tried: which CPUs server and driver use, how long a slice is, who gathers."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.frozen import Frozen, Level
from dbdyno.study import Study
from dbdyno.study.nouns import SLICE_S

SERVER, DRIVER = "cpu.server", "cpu.driver"
ALL = "all"
OTHER_SLICES_S = (0.25, 1.0)


class Binding(Frozen):
    """Where server and driver run, and how the load is driven there. `server` and `driver` are CPUs in the
    kernel's list format, or `all`; the driver of an embedded engine has none, because it shares the server's
    process."""

    server: str = ALL
    driver: str = ALL
    slice_s: float = SLICE_S
    gather: bool = False

    @property
    def settings(self) -> dict[str, Level]:
        """What a study sets to be bound so. A binding to all CPUs needs no setting."""
        return {knob: cpus for knob, cpus in ((SERVER, self.server), (DRIVER, self.driver)) if cpus != ALL}

    @property
    def words(self) -> str:
        """Who is where: `server on CPU 0, driver on CPU 1`."""
        bound = (("server", self.server), ("driver", self.driver))
        told = [f"{who} on CPU {cpus}" for who, cpus in bound if cpus != ALL]
        return ", ".join([*told, *(["gathering"] if self.gather else [])]) or "both free"


def bindings(study: Study, embedded: bool, cpus: Sequence[int]) -> tuple[Binding, ...]:
    """The first is what a study has without a calibration. A study that binds something itself keeps that,
    and one CPU leaves no choice."""
    free = Binding(gather=study.workload.gather == "on")
    found: tuple[Binding, ...]
    if binds_itself(study) or len(cpus) < 2:
        found = (free,)
    elif embedded:
        found = (free, free.but(server=listed(cpus[: len(cpus) // 2])))
    else:
        last, half = str(cpus[-1]), listed(cpus[len(cpus) // 2 :])
        found = (
            free,
            free.but(driver=last),
            free.but(server=half, driver=half),
            free.but(server=listed(cpus[:-1]), driver=last),
        )
    if not free.gather:
        return found
    return (*found, *(one.but(gather=False) for one in found))


def binds_itself(study: Study) -> bool:
    """Whether the study says where server or driver run."""
    return any(name.startswith("cpu.") for name in (*study.settings, *study.baseline))


def listed(cpus: Sequence[int]) -> str:
    """In the kernel's list format: `0-3`, or `0,2`."""
    if len(cpus) > 1 and cpus[-1] - cpus[0] == len(cpus) - 1:
        return f"{cpus[0]}-{cpus[-1]}"
    return ",".join(map(str, cpus))
