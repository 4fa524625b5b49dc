"""How often does the gate of a pipeline alarm without reason? Whole gates of changes that change nothing.

    python -m benches.gates [--gates N] [--engines NAME ...] [--blocks N] [--results FILE] [--show]

A gate is the step "Measure side by side" of `action.yml`, as its runner carries it out: in a clone of its
own, whose last commit changes nothing that is measured, against the commit before. It has a store and
pristine data of its own, as in a fresh job, and shares the installed engines, whose fetch is not counted. Its
minutes are the step's, and hold the wait for another Dyno that measures on this host.

A gate that ends with 4 (broken), 5 (failed) or 6 (slower) stops a change without reason. One that calls it
faster stops nothing, and is wrong as well: that is counted beside it. Counts have their Clopper-Pearson
interval. With FILE each gate is a line of it as soon as it is over, and those that it holds are not carried
out again: a bench that was cut short goes on. `--show` prints the table of FILE alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from dbdyno.analyse.intervals import share_interval
from dbdyno.host import paths

ACTION = Path(__file__).parents[1] / "action.yml"
STEP = "Measure side by side"
PLACE = "bench/study.toml"
ENGINES = ("sqlite", "mariadb@11.8")
ALARMS = (4, 5, 6)
STUDY = """
title  = "A merge request that changes nothing"
engine = "{engine}"
[workload]
name     = "read_write"
clients  = 2
warmup   = "0.5s"
duration = "2s"
[goal]
margin = "2%"
"""


@dataclass(frozen=True)
class Gated:
    """One gate: what it ended with and said, and how long it took. `load` is the host's load average over the
    last minute when it began."""

    engine: str
    blocks: int
    code: int
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    took_s: float
    load: float
    began_unix_s: float


def main() -> None:
    arguments = _parsed()
    done = list(_read(arguments.results)) if arguments.results else []
    # Engine by engine in every round, so that a change of the host meets all of them.
    for number in range(0 if arguments.show else arguments.gates):
        for engine in arguments.engines:
            if sum((one.engine, one.blocks) == (engine, arguments.blocks) for one in done) > number:
                continue
            found = gated(engine, arguments.blocks)
            print(
                f"{engine}: {found.code}, {found.verdict}, {found.took_s:.0f} s", file=sys.stderr, flush=True
            )
            done.append(found)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
    _show(done)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gates", type=int, default=100, help="of each engine")
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    if arguments.show and not arguments.results:
        parser.error("--show needs --results FILE")
    return arguments


def _read(results: Path) -> Iterator[Gated]:
    """The gates that are over."""
    if results.exists():
        yield from (Gated(**json.loads(line)) for line in results.read_text().splitlines())


def gated(engine: str, blocks: int) -> Gated:
    """One gate. Raises SystemExit where the step handed on no exit code, or measured nothing."""
    with tempfile.TemporaryDirectory(prefix="dyno-gates-") as name:
        folder = Path(name)
        clone, output, summary = folder / "clone", folder / "output", folder / "summary"
        environment = _environment(folder) | {
            "STUDY": PLACE,
            "TARGET": _requested(clone, engine),
            "OPTIONS": f"--blocks {blocks} --wait 24h",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        began_unix_s, load, began_s = time.time(), os.getloadavg()[0], time.monotonic()
        step = _called(["bash", "-e", "-c", _script()], clone, environment)
        took_s = time.monotonic() - began_s
        handed_on = output.read_text() if output.exists() else ""
        if step.returncode != 0 or not handed_on.startswith("code="):
            sys.exit(f"the step failed: {step.stderr}")
        code = int(handed_on.removeprefix("code="))
        if code not in (0, *ALARMS):
            sys.exit(f"the gate ended with {code}: {step.stderr}")
        said = _called(["dyno", "gate", "--json"], clone, environment)
        gate = json.loads(said.stdout)
        effect = gate["result"]["effect"] or {}
        return Gated(
            engine=engine,
            blocks=blocks,
            code=code,
            verdict=gate["result"]["verdict"],
            ratio=effect.get("ratio"),
            low=effect.get("low"),
            high=effect.get("high"),
            took_s=round(took_s, 1),
            load=round(load, 2),
            began_unix_s=round(began_unix_s),
        )


def _script() -> str:
    steps = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    return str(next(step["run"] for step in steps if step["name"] == STEP))


def _environment(folder: Path) -> dict[str, str]:
    """Of a fresh job, in which the engines are installed and calibrated for as on this host."""
    cache, data = folder / "cache" / "dyno", folder / "data" / "dyno"
    for place in (cache, data):
        place.mkdir(parents=True)
    (cache / "engines").symlink_to(paths.cache_place() / "engines")
    (data / "calibrations").symlink_to(paths.data_place() / "calibrations")
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"PATH": programs, "XDG_CACHE_HOME": str(cache.parent), "XDG_DATA_HOME": str(data.parent)}
    return {**os.environ, **own, "DYNO_STORE": f"sqlite:///{folder / 'store.db'}"}


def _requested(clone: Path, engine: str) -> str:
    """A clone whose last commit changes a text alone; the commit before, which it is held against."""
    study = clone / PLACE
    study.parent.mkdir(parents=True)
    study.write_text(STUDY.format(engine=engine))
    _git(clone, "init", "--quiet", "--initial-branch", "main")
    _git(clone, "add", ".")
    _git(clone, "commit", "--quiet", "--message", "target")
    (clone / "README").write_text("What this is.\n")
    _git(clone, "add", ".")
    _git(clone, "commit", "--quiet", "--message", "change")
    return _git(clone, "rev-parse", "HEAD~1")


def _git(clone: Path, *arguments: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(clone), *named, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _called(
    command: Sequence[str], clone: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def _show(done: Sequence[Gated]) -> None:
    """For each engine how many gates alarmed, how many called the change faster, and the minutes of each."""
    row = "{:14} {:>6} {:>6}  {:>26}  {:>8}  {:>12}  {:>6}  {:>20}"
    print(row.format(
        "engine", "blocks", "gates", "false alarms", "faster", "inconclusive", "+-", "minutes (range)"
    ))  # fmt: skip
    for engine, blocks in sorted({(one.engine, one.blocks) for one in done}):
        found = [one for one in done if (one.engine, one.blocks) == (engine, blocks)]
        alarms = sum(one.code in ALARMS for one in found)
        low, high = share_interval(alarms, len(found))
        minutes = [one.took_s / 60 for one in found]
        halves = [(one.high / one.low) ** 0.5 - 1 for one in found if one.low and one.high]
        print(row.format(
            engine, blocks, len(found), f"{alarms} ({low:.1%} to {high:.1%})",
            sum(one.verdict == "faster" for one in found),
            sum(one.verdict == "inconclusive" for one in found),
            f"{statistics.median(halves):.1%}" if halves else "-",
            f"{statistics.median(minutes):.1f} ({min(minutes):.1f} to {max(minutes):.1f})",
        ))  # fmt: skip


if __name__ == "__main__":
    main()
