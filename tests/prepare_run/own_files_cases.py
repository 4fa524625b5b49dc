"""Pairs of configuration files, drawn by a seed: settings in one of them, in the other, in both, and lines
that no study takes. `python -m tests.prepare_run.own_files_cases FROM TO` makes a study of each, and counts.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.prepare_run.own_files import AskedStudy, between
from dbdyno.study.nouns import Reference

POOLS: dict[str, tuple[str, dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "mariadb": (
        "[mysqld]\n",
        {
            "innodb_io_capacity": ("300", "900", "2000"),
            "innodb_doublewrite": ("0", "ON"),
            "innodb_flush_log_at_trx_commit": ("0", "1", "2"),
            "sort-buffer-size": ("1M", "4M"),
            "max_connections": ("77", "151"),
            "thread_cache_size": ("16", "64"),
            "tmp_table_size": ("16M", "64M"),
            "skip-log-bin": ("",),
            "innodb_flush_neighbors": ("0", "1"),
            "join_buffer_size": ("256K", "1M"),
            "character_set_server": ("latin1", "utf8mb4"),
            "query_cache_size": ("0", "1M"),
        },
        (
            "port = 3307",
            "no_such = 1",
            "loose-no-such = 2",
            "[client]\nuser = x\n[mysqld]",
            "!include gone.cnf",
        ),
    ),
    "postgresql": (
        "",
        {
            "work_mem": ("4MB", "8MB", "64MB"),
            "shared_buffers": ("64MB", "128MB", "256MB"),
            "checkpoint_timeout": ("5min", "15min"),
            "synchronous_commit": ("on", "off"),
            "random_page_cost": ("1.1", "4"),
            "wal_compression": ("on", "off"),
            "max_connections": ("50", "100"),
            "jit": ("on", "off"),
            "commit_delay": ("0", "100"),
            "log_line_prefix": ("'%m '", "'%t %u '"),
        },
        ("port = 5433", "no_such = 1", "listen_addresses = '*'", "stats_file = '/x'", "include 'gone.conf'"),
    ),
    "firebird": (
        "",
        {
            "DefaultDbCachePages": ("2048", "4096"),
            "TempCacheLimit": ("32M", "64M"),
            "LockMemSize": ("1M", "2M"),
            "LockHashSlots": ("8191", "30011"),
            "TempBlockSize": ("1M", "2M"),
            "DeadlockTimeout": ("5", "10"),
            "GCPolicy": ("combined", "cooperative"),
        },
        ("RemoteServicePort = 3051", "NoSuch = 1", "TempDirectories = /x"),
    ),
}
"""How a file of an engine begins, its settings with their levels, and lines that are not taken."""


@dataclass
class Pair:
    """Two texts, and the settings that both give, with levels that differ."""

    texts: tuple[str, str]
    differing: set[str] = field(default_factory=set)


def drawn(engine: str, seed: int) -> Pair:
    """The pair of a seed."""
    draw = random.Random(f"{engine}:{seed}")
    head, pool, noise = POOLS[engine]
    sides: tuple[list[str], list[str]] = ([], [])
    differing = set()
    for name in draw.sample(list(pool), draw.randint(2, len(pool))):
        where = draw.choice(("left", "right", "same", "other"))
        levels = draw.sample(pool[name], 2) if len(pool[name]) > 1 else [pool[name][0]] * 2
        levels = [levels[0]] * 2 if where == "same" else levels
        if where != "right":
            sides[0].append(f"{name} = {levels[0]}" if levels[0] else name)
        if where != "left":
            sides[1].append(f"{name} = {levels[1]}" if levels[1] else name)
        if where == "other" and levels[0] != levels[1]:
            differing.add(f"config.{name.replace('-', '_')}")
    texts = []
    for lines in sides:
        lines += draw.sample(noise, draw.randint(0, len(noise)))
        lines += draw.sample(lines, draw.randint(0, 1)) if lines else []
        lines += ["", "# a comment"][: draw.randint(0, 2)]
        texts.append(f"{head}" + "\n".join(lines) + "\n")
    return Pair((texts[0], texts[1]), differing)


def asked_of(engine: str, pair: Pair, folder: Path) -> AskedStudy:
    """The question between the files of a pair, which are written into a folder."""
    paths = folder / "a.cnf", folder / "b.cnf"
    for path, text in zip(paths, pair.texts, strict=True):
        path.write_text(text)
    return between(Reference(engine), *paths, folder, lambda _: None)


def counted(told: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Of each file how many lines it is said to have, and the sum of what is said of them."""
    found = {}
    for line in told:
        if heading := re.fullmatch(r"(\S+): ([\d,]+) lines?: (.*)", line):
            parts = [
                int(number.replace(",", "")) for number in re.findall(r"(?:^|, )([\d,]*\d) ", heading[3])
            ]
            found[heading[1]] = int(heading[2].replace(",", "")), sum(parts)
    return found


def main() -> None:
    """Tells of so many pairs of all engines what became of them."""
    ended: Counter[str] = Counter()
    for number in range(*map(int, sys.argv[1:])):
        engine = list(POOLS)[number % len(POOLS)]
        pair = drawn(engine, number)
        with tempfile.TemporaryDirectory() as folder:
            try:
                asked = asked_of(engine, pair, Path(folder))
            except UserError as refused:
                ended[f"{engine}: {refused.message.rpartition('/')[2]}"] += 1
                print(engine, number, refused.message)
                continue
        varied = {one.name for one in asked.question.factors}
        lengths = [len(text.splitlines()) for text in pair.texts]
        sums = [*counted(asked.told).values()]
        good = [(length, length) for length in lengths] == sums and pair.differing <= varied
        ended[f"{engine}: {'adds up' if good else 'DOES NOT ADD UP'}"] += 1
        print(engine, number, asked.question.design, len(varied), lengths, sums, asked.question.left_out)
    for what, count in sorted(ended.items()):
        print(f"{count:4} {what}")


if __name__ == "__main__":
    main()
