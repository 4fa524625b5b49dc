"""Sampling the server's threads with perf(1) while a load runs, and reading what it wrote.

Which way of finding callers works depends on the CPU and on how the server was built, so it is tried on the
running server: frame pointers cost least, the CPU's branch stack needs hardware that guests seldom have,
DWARF copies a piece of each stack and works where unwind tables are kept.
"""

from __future__ import annotations

import re
import shutil
import signal
import statistics
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dbdyno.errors import Blocked, DynoError
from dbdyno.host.process import die_with_parent

EVENT = "cpu-clock"
"""CPU time, by the kernel's timer: the unit that is reported, on guests without counters too. The CPU's own
counters are all taken by the observer."""
PROBE_S = 0.7
PROBES_MOST_S = 2.5
"""What all probes take at most: the load must run so long before what counts."""
DEPTH_LEAST = 5
"""Callers of the user's side below which a way of unwinding is held to have failed: without frame pointers
it ends after one to three frames."""
STOP_S, READ_S = 20.0, 240.0


@dataclass(frozen=True)
class Way:
    """One way to find the callers: its name, what perf calls it, and samples per second and CPU."""

    name: str
    call_graph: str
    samples_per_s: int


WAYS = (
    Way("frame pointers", "fp", 499),
    Way("the CPU's branch stack (LBR)", "lbr", 499),
    Way("DWARF unwind tables", "dwarf,8192", 199),
)


@dataclass(frozen=True)
class Sample:
    """One sample: when (monotonic seconds), its weight (events since the last one), and the frames from the
    root to the leaf as (function, module)."""

    time_s: float
    weight: int
    frames: tuple[tuple[str, str], ...]


class Sampler:
    """Samples processes and the threads they start, from shortly after it is entered until it is left.

    Raises Blocked from the constructor where perf is missing or not permitted. After it was left, `way` and
    `samples` tell what was seen.
    """

    def __init__(self, folder: Path) -> None:
        self._perf = _perf()
        _require_permission(self._perf)
        self.way = WAYS[-1]
        self._folder = folder
        self._ids: tuple[int, ...] = ()
        self._over = threading.Event()
        self._failure = ""

    def on(self, process_ids: tuple[int, ...]) -> Sampler:
        """Names the processes to sample."""
        self._ids = process_ids
        return self

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._sample, name="perf", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def samples(self) -> Iterator[Sample]:
        """What was seen, in perf's order. Raises DynoError when perf failed."""
        if self._failure or not self._data.exists():
            raise DynoError(f"perf could not sample the server: {self._failure or 'the load was too short'}")
        return read_script(self._script(self._data))

    @property
    def _data(self) -> Path:
        return self._folder / "perf.data"

    def _sample(self) -> None:
        try:
            self.way = self._working_way()
            if not self._over.is_set():
                self._record(self.way, self._data, None)
        except (DynoError, OSError, subprocess.SubprocessError) as error:
            self._failure = str(error)

    def _working_way(self) -> Way:
        """The first way that finds callers on this server, under this load; the last when none is sure to."""
        for way in WAYS[:-1]:
            data = self._folder / "probe.data"
            try:
                self._record(way, data, PROBE_S)
                if _depth(read_script(self._script(data))) >= DEPTH_LEAST:
                    return way
            except DynoError:
                continue
            finally:
                data.unlink(missing_ok=True)
        return WAYS[-1]

    def _record(self, way: Way, data: Path, duration_s: float | None) -> None:
        command = [self._perf, "record", "--quiet", "--event", EVENT, "--freq", str(way.samples_per_s),
                   "--clockid", "CLOCK_MONOTONIC", "--call-graph", way.call_graph, "--output", str(data),
                   "--pid", ",".join(map(str, self._ids))]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=die_with_parent()
        ) as child:
            self._over.wait(duration_s)
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=STOP_S)[1].decode(errors="replace")
        # perf ends by the signal that it was asked to end with.
        if child.returncode not in (0, -signal.SIGINT, 128 + signal.SIGINT):
            raise DynoError(_last_line(said))

    def _script(self, data: Path) -> str:
        command = [self._perf, "script", "--no-inline", "--ns", "--input", str(data),
                   "--fields", "comm,tid,time,period,event,ip,sym,dso"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, timeout=READ_S, preexec_fn=die_with_parent())
        if done.returncode != 0:
            raise DynoError(_last_line(done.stderr.decode(errors="replace")))
        return done.stdout.decode(errors="replace")


def _perf() -> str:
    found = shutil.which("perf")
    if found is None:
        hint = "install it: apt install linux-perf (Debian), linux-tools-generic (Ubuntu), perf (Fedora)"
        raise Blocked("perf", "perf is not on this machine", hint)
    return found


def _require_permission(perf: str) -> None:
    """Raises Blocked where perf may not sample, found by doing it."""
    command = [perf, "record", "--quiet", "--event", EVENT, "--output", "/dev/null", "--", "true"]
    done = subprocess.run(command, capture_output=True, timeout=STOP_S)
    if done.returncode != 0:
        said = _last_line(done.stderr.decode(errors="replace"))
        hint = "as root: sysctl kernel.perf_event_paranoid=1; in a container, the capability PERFMON as well"
        raise Blocked("perf", f"perf may not sample here: {said}", hint)


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")


def _depth(samples: Iterator[Sample]) -> float:
    """The median count of frames outside the kernel, over the samples that have any."""
    depths = [
        depth for sample in samples if (depth := sum(not in_kernel(module) for _, module in sample.frames))
    ]
    return statistics.median(depths) if depths else 0.0


def in_kernel(module: str) -> bool:
    """Whether a frame's module is the kernel or a part of it."""
    return module.startswith("[kernel") or module.endswith((".ko", ".ko.xz")) or module == "[guest.kernel]"


_HEAD = re.compile(r"^(?P<comm>.*\S)\s+\d+\s+(?P<time>\d+\.\d+):\s+(?P<period>\d+)\s+\S+:?\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<function>.*) \((?P<module>.*)\)$")
_DELETED = " (deleted))"
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")


def read_script(text: str) -> Iterator[Sample]:
    """The samples in the text of `perf script --fields comm,tid,time,period,event,ip,sym,dso`.

    A blank line ends a sample. Lines of neither form are perf's remarks, and are left out.
    """
    time_s, weight, frames = 0.0, 0, list[tuple[str, str]]()
    # perf ends lines with a line feed alone; a symbol may hold what Python takes for an end of line.
    for line in [*text.split("\n"), ""]:
        head = _HEAD.match(line) if not line[:1].isspace() else None
        # A file that is gone is marked within the brackets; without that the last pair of them is the module.
        frame = _FRAME.match(f"{line.removesuffix(_DELETED)})" if line.endswith(_DELETED) else line)
        if frame is not None:
            frames.append((_OFFSET.sub("", frame["function"]), frame["module"]))
        elif head is not None or not line.strip():
            if frames:
                yield Sample(time_s, weight, tuple(reversed(frames)))
            frames = []
            if head is not None:
                time_s, weight = float(head["time"]), int(head["period"])
