"""A network of nodes: they reach each other, one can be cut off, and the host has nothing of it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dbdyno.host.segment import Segment
from tests.needs import needs_root, skipping_blocked

LISTENS = "import socket, sys; s = socket.create_server((sys.argv[1], 7000)); print(flush=True); s.accept()"
CONNECTS = "import socket, sys; socket.create_connection((sys.argv[1], 7000), timeout=1)"


def names() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


@contextmanager
def listening(segment: Segment, node: int) -> Iterator[str]:
    [enter] = segment.entering(node)
    address = segment.address(node)
    command = [sys.executable, "-c", LISTENS, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=enter) as server:
        assert server.stdout is not None and server.stdout.readline() == b"\n"
        yield address
        server.kill()


def reached(segment: Segment, node: int, address: str) -> bool:
    [enter] = segment.entering(node)
    command = [sys.executable, "-c", CONNECTS, address]
    return subprocess.run(command, stderr=subprocess.DEVNULL, preexec_fn=enter, check=False).returncode == 0


@needs_root
def test_nodes_reach_each_other_but_for_one_that_is_cut_off() -> None:
    before = names()
    with skipping_blocked(), closing(Segment(2)) as segment:
        with listening(segment, 1) as address:
            segment.cut(2)
            assert not reached(segment, 2, address)
            segment.mend(2)
            assert reached(segment, 2, address)
        assert names() == before, "the host has none of it"
        held = list(Path("/proc/self/fd").iterdir())
    assert len(list(Path("/proc/self/fd").iterdir())) < len(held), "the kernel takes it back"
