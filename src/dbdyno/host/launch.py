"""How a process is started: what layers add to it, and what the start carries out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.host.read_only import read_only_host


@dataclass
class Launch:
    """How to start the server's process. Layers add to it before the start; the engine only carries it out.

    `wrapper` stands before the command (`setpriv`, `numactl`, `unshare`) and must become it by exec, so that
    signals and readings reach the server; `cgroups` are directories the process is put into before it runs;
    `affinity` the CPUs it may use (empty: all); `patience` is how many times longer than usual it may take
    until it answers, and until it has ended. A load process ends by exit() where `exit_handlers` of an
    embedded engine must run, else without them. Of the host the process may write to its own folders and to
    what is `writable` alone, where the kernel permits that.
    """

    environment: dict[str, str] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    affinity: tuple[int, ...] = ()
    cgroups: tuple[Path, ...] = ()
    before_exec: tuple[Callable[[], None], ...] = ()
    patience: float = 1.0
    exit_handlers: bool = False
    writable: tuple[Path, ...] = ()

    def steps(self, *own: Path) -> tuple[Callable[[], None], ...]:
        """What the process does before the command, whose own folders these are."""
        return (*read_only_host((*own, *self.writable)), *self.before_exec)

    def confined_to(self, *own: Path) -> Launch:
        """The same for a process that may write to these folders; unchanged where there are none."""
        return replace(self, before_exec=self.steps(*own)) if own else self
