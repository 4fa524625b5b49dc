"""Does `dyno bisect` name the commit that made SQLite slower, and none where there is none?

    python -m benches.bisection [--histories N] [--without N] [--commits N] [--loss SHARE] [--minutes M]
                             [--optimisation LEVEL] [--results FILE]

Each history is a git repository of the amalgamation, made from a seed. One commit puts a busy loop into
`sqlite3_step`, as long as costs that share of the speed of TPC-B here: two builds with and without a loop of
a known length, side by side, tell its cost first. All others add a function that nobody calls, so that code
lies elsewhere, or change a comment, and a few do not compile until the next one mends them. None of those
stands right before the slow commit, because nothing could tell the two apart. Histories `without` a change
have only the others.

A history counts as right where `dyno bisect` names that commit, or ends in "none" where there is none, within
the minutes. Counts have their Clopper-Pearson interval. With FILE each history is a line of it as soon as it
is over, and those that it holds are not bisected again. Each has folders of its own, which go when it is
over, so that the disk does not fill with builds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dbdyno.analyse.intervals import share_interval
from dbdyno.engines import registry
from dbdyno.engines.built import materials_of
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.obtain.source.making import prepared

AMALGAMATION = "sqlite3.c"
ANCHOR = re.compile(r"^SQLITE_API int sqlite3_\w+\(.*\)\{$")
HOT = "SQLITE_API int sqlite3_step(sqlite3_stmt *pStmt){"
LOOP = "  for(volatile int turn=0; turn<{turns}; turn++);"
TRIAL_TURNS = 5000
"""The loop whose cost is measured first."""
BROKEN = 4
"""How many commits of a history do not compile, one after the other or apart."""
STUDY = """
title  = "Which commit made TPC-B slower?"
engine = "sqlite"
{more}
[workload]
name     = "tpcb"
warmup   = "0.2s"
duration = "0.5s"
[settings]
"config.synchronous"  = "OFF"
"config.journal_mode" = "MEMORY"
"source.origin"       = "{repository}"
"build.optimisation"  = "{optimisation}"
{factors}
[goal]
margin  = "1%"
{counted}
"""


@dataclass(frozen=True)
class Outcome:
    """What came of a history: the place of its slow commit, None without one; what was answered; whether that
    is right; and how long it took."""

    seed: int
    slow: int | None
    answer: str
    bad: int | None
    right: bool
    by: str
    asked: int
    minutes: float


def main() -> None:
    options = _options()
    amalgamation = _amalgamation().splitlines()
    turns = _turns(amalgamation, options)
    print(f"a loop of {turns} turns in each step costs {100 * options.loss:.1f} % here")
    done = _done(options.results)
    for seed in range(options.histories + options.without):
        if seed not in done:
            slow = random.Random(seed).randint(1, options.commits) if seed < options.histories else None
            outcome = _bisected(seed, slow, turns, amalgamation, options)
            done[seed] = outcome
            print(_line(outcome), flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
    _sum("named", [one for one in done.values() if one.slow is not None])
    _sum("none", [one for one in done.values() if one.slow is None])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--without", type=int, default=20)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--loss", type=float, default=0.03)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--optimisation", default="-O2")
    parser.add_argument("--turns", type=int, help="as long a loop, in place of one that is measured")
    parser.add_argument("--results", type=Path)
    return parser.parse_args()


def _amalgamation() -> str:
    """SQLite's source in one file, as the source layer fetches and makes it."""
    with tempfile.TemporaryDirectory() as folder:
        materials = materials_of(registry.engine("sqlite"), BuildSpecification(), Path(folder), _tell)
        return (prepared(materials, _tell) / AMALGAMATION).read_text()


def _turns(amalgamation: Sequence[str], options: argparse.Namespace) -> int:
    """How many turns of the loop cost the share of speed that is asked for."""
    if options.turns:
        return int(options.turns)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository = _Repository(folder / "src", amalgamation)
        for edits in ({}, {HOT: LOOP.format(turns=TRIAL_TURNS)}):
            repository.commit(edits, "loop" if edits else "none")
        revisions = '[factors]\n"source.revision" = ["c0", "c1"]'
        told = _study(folder, options, "blocks = 24", revisions, "counted = false")
        report = json.loads(_dyno(folder, options, "run", told, "--json", "--quiet"))
    effect: float = next(one["effect"]["ratio"] for one in report["variants"] if one["role"] == "candidate")
    loss: float = options.loss
    cost, wanted = 1.0 / effect - 1.0, 1.0 / (1.0 - loss) - 1.0
    return max(1, round(TRIAL_TURNS * wanted / cost))


class _Repository:
    """A git repository with the amalgamation, whose commits have the tags c0, c1 and so on."""

    def __init__(self, folder: Path, amalgamation: Sequence[str]) -> None:
        self._folder, self._lines, self._count = folder, amalgamation, 0
        folder.mkdir()
        self._git("init", "-q")

    def commit(self, after: Mapping[str, str], title: str, before: Mapping[int, str] | None = None) -> None:
        """Commits the amalgamation with lines after some, by their text, and before others, by number."""
        placed, text = before or {}, list[str]()
        for number, line in enumerate(self._lines):
            text += [placed[number]] if number in placed else []
            text.append(line)
            text += [after[line]] if line in after else []
        (self._folder / AMALGAMATION).write_text("\n".join(text) + "\n")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", title)
        self._git("tag", f"c{self._count}")
        self._count += 1

    def _git(self, *arguments: str) -> None:
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
        subprocess.run(["git", "-C", str(self._folder), *who, *arguments], check=True, capture_output=True)


def _write_history(
    folder: Path, seed: int, slow: int | None, turns: int, amalgamation: Sequence[str], commits: int
) -> None:
    """A repository of so many commits after the first, one of which is slow."""
    draw = random.Random(f"history {seed}")
    anchors = [number for number, line in enumerate(amalgamation) if ANCHOR.match(line)]
    inner = [place for place in range(2, commits) if slow is None or place not in (slow - 1, slow)]
    broken = set(draw.sample(inner, min(BROKEN, len(inner))))
    repository = _Repository(folder, amalgamation)
    added: dict[int, str] = {}
    for place in range(commits + 1):
        after = {HOT: LOOP.format(turns=turns)} if slow is not None and place >= slow else {}
        if place and place != slow:
            number = draw.choice(anchors)
            added[number] = "\n".join(filter(None, (added.get(number), _neutral(draw, place))))
        lines = dict(added)
        if place in broken:
            lines[anchors[0]] = "\n".join(filter(None, (lines.get(anchors[0]), "int broken(;")))
        title = "Loop in each step" if place == slow else f"Move code about, {place}"
        repository.commit(after, title, lines)


def _neutral(draw: random.Random, place: int) -> str:
    """A comment, or a function that nobody calls, which moves all that follows."""
    if draw.random() < 0.25:
        return f"/* Nothing changes in {place}. */"
    terms = " + ".join(f"a*{draw.randint(2, 99)}%{draw.randint(3, 99)}" for _ in range(draw.randint(1, 60)))
    return f"SQLITE_API int sqlite3_unused_{place}(int a){{ return {terms}; }}"


def _bisected(
    seed: int, slow: int | None, turns: int, amalgamation: Sequence[str], options: argparse.Namespace
) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_history(folder / "src", seed, slow, turns, amalgamation, options.commits)
        study, began = _study(folder, options), time.monotonic()
        ends = ("--good", "c0", "--bad", f"c{options.commits}")
        found = json.loads(_dyno(folder, options, "bisect", study, *ends, "--json", "--quiet"))
        minutes = (time.monotonic() - began) / 60.0
    bad = found["bad"] if found["answer"] == "found" else None
    right = found["answer"] == ("none" if slow is None else "found") and bad == slow
    return Outcome(
        seed=seed,
        slow=slow,
        answer=found["answer"],
        bad=bad,
        right=right and minutes <= options.minutes,
        by=found["by"],
        asked=len(found["placed"]),
        minutes=round(minutes, 1),
    )


def _study(
    folder: Path, options: argparse.Namespace, more: str = "", factors: str = "", counted: str = ""
) -> str:
    told = {"more": more, "factors": factors, "counted": counted, "optimisation": options.optimisation}
    path = folder / "study.toml"
    path.write_text(STUDY.format(repository=folder / "src", **told))
    return str(path)


def _dyno(folder: Path, options: argparse.Namespace, *arguments: str) -> str:
    """What `dyno` prints, with folders of its own. Ends the bench where it fails."""
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "DATA", "CONFIG", "STATE")}
    program = shutil.which("dyno", path=str(Path(sys.executable).parent)) or "dyno"
    done = subprocess.run(
        [program, *arguments, "--wait"], env={**os.environ, **own}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"dyno {arguments[0]} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _done(results: Path | None) -> dict[int, Outcome]:
    if results is None or not results.exists():
        return {}
    read = [Outcome(**json.loads(line)) for line in results.read_text().splitlines()]
    return {one.seed: one for one in read}


def _line(one: Outcome) -> str:
    mark = "right" if one.right else "WRONG"
    where = "no change" if one.slow is None else f"slow from {one.slow}"
    told = one.answer if one.bad is None else f"{one.answer} {one.bad} by {one.by}"
    return f"history {one.seed}, {where}: {told}, {one.asked} asked, {one.minutes} min: {mark}"


def _sum(what: str, found: Sequence[Outcome]) -> None:
    if not found:
        return
    right = sum(one.right for one in found)
    low, high = share_interval(right, len(found))
    longest = max((one.minutes for one in found), default=math.nan)
    print(f"{what}: {right} of {len(found)} ({100 * low:.0f} to {100 * high:.0f} %), at most {longest} min")


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
