"""Calls of `dyno load` on a server: within this process, or in another one where an embedded engine needs an
environment of its own. A process takes several calls, because each start takes long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from dbdyno.engines.engine import Server
from tests.cli.calls import dyno

CARRY_OUT = """
import contextlib, io, json, sys
from dbdyno.cli import main
said = []
for arguments in json.load(sys.stdin):
    sys.argv, output = ["dyno", *arguments], io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            main()
        except SystemExit as end:
            assert not end.code, (arguments, end.code)
    said.append(output.getvalue())
print(json.dumps(said))
"""


def loads(server: Server, *calls: Sequence[str]) -> list[str]:
    """What each of these calls of `dyno load` on a server prints. All must succeed. A call is a verb, a
    workload and options."""
    asked = [["load", *call[:2], "--url", server.url, *call[2:]] for call in calls]
    if server.process_ids:
        return [_succeeding(arguments) for arguments in asked]
    done = subprocess.run(
        [sys.executable, "-c", CARRY_OUT],
        input=json.dumps(asked),
        env={**os.environ, **server.driver_environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said: list[str] = json.loads(done.stdout.splitlines()[-1])
    return said


def _succeeding(arguments: Sequence[str]) -> str:
    done = dyno(*arguments)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout
