"""Files that are small while they are packed do not fill the memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import DYNO

MEMBER_BYTES = 1 << 26
MEMORY_BYTES, LESS_BYTES = 3 << 29, 3 << 28
"""A process may have so much address space. The logs of benchmarks unpack to 2 GiB. What a server's
log and a dump unpack to is less, because a reader that keeps it has it twice."""
SLOW_LOG = b"# Time: 240101  1:00:00\n# User@Host: a[a] @ b []\n# Query_time: 1.0\nSELECT "
SYSBENCH = b"sysbench 1.0.20 (using system LuaJIT 2.1.0)\n"


def bomb(path: Path, beginning: bytes, piece: bytes, members: int = 32) -> Path:
    """A file of gzip that holds a beginning, and then a piece again and again: members x 64 MiB."""
    member = gzip.compress(piece * (MEMBER_BYTES // len(piece)))
    path.write_bytes(gzip.compress(beginning) + member * members)
    return path


def within(memory_bytes: int, *command: str) -> subprocess.CompletedProcess[str]:
    """A command that gets no more memory."""
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # One thread each, because the stacks of a library's threads count as well.
    run = partial(subprocess.run, capture_output=True, text=True, check=False, preexec_fn=limit)
    return run(["env", "OPENBLAS_NUM_THREADS=1", *command])


@pytest.mark.parametrize(
    ("tool", "beginning", "piece", "said"),
    [
        ("pgbench", b"0 1 1000 0 1700000000 1\n", b"7", "line 2: this line is longer than 1,048,576"),
        ("sysbench", SYSBENCH, b"7", "line 2: this line is longer than 1,048,576"),
        ("sysbench", SYSBENCH, b"\n", "this is more than sysbench prints"),
    ],
)
def test_a_benchmarks_log_that_unpacks_to_gigabytes_is_refused(
    homes: Path, tool: str, beginning: bytes, piece: bytes, said: str
) -> None:
    packed = bomb(homes / "log.gz", beginning, piece)
    assert packed.stat().st_size < 4 << 20
    done = within(MEMORY_BYTES, *DYNO, "import", tool, str(packed))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and str(packed) in done.stderr


READ = """
import sys
from pathlib import Path
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.seen import CUT_OFF
print([seen.rest in (CUT_OFF, "entry that is too long") for seen in log_of([Path(sys.argv[1])]).statements])
"""


@pytest.mark.parametrize("piece", [b"a", b"\n" + b"a" * 4095], ids=["a line", "an entry"])
def test_a_servers_log_that_unpacks_to_too_much_is_read(tmp_path: Path, piece: bytes) -> None:
    packed = bomb(tmp_path / "log.gz", SLOW_LOG, piece, members=8)
    done = within(LESS_BYTES, sys.executable, "-c", READ, str(packed))
    assert (done.returncode, done.stdout) == (0, "[True]\n"), done.stderr


FEED = """
import sys
from pathlib import Path
from dbdyno.user_data.dump import dump_at, text_of
from dbdyno.user_data.feed import Client, environment, feed
from tests.user_data.test_feed import REFUSAL
dump = dump_at(Path(sys.argv[1]))
client = Client([sys.executable, "-c", "import sys\\nwhile sys.stdin.read(1 << 20): pass"], {}, REFUSAL)
with text_of(dump) as text:
    feed(dump, text, client, lambda _: None)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_a_dump_of_one_line_passes_through(tmp_path: Path) -> None:
    packed = bomb(tmp_path / "dump.gz", b"INSERT INTO a VALUES ", b"(1),", members=12)
    done = within(LESS_BYTES, sys.executable, "-c", FEED, str(packed))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 512 << 10


READ_TABLES = """
import sys
from pathlib import Path
from dbdyno.user_data.dump import dump_at, text_of
from dbdyno.sql_logs.schema import SchemaReader
from dbdyno.sql_logs.digest import Dialect
reader = SchemaReader(Dialect.MYSQL)
with text_of(dump_at(Path(sys.argv[1]))) as text:
    reader.take(text.source)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("beginning", [b"INSERT INTO a VALUES ", b"CREATE TABLE a ("])
def test_the_tables_of_a_dump_of_one_line_are_read(tmp_path: Path, beginning: bytes) -> None:
    packed = bomb(tmp_path / "dump.gz", b"-- a dump\n" + beginning, b"(1),", members=6)
    done = within(LESS_BYTES, sys.executable, "-c", READ_TABLES, str(packed))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 256 << 10
