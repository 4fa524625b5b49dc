"""Only a fetch speaks to a network: a study ends where there is none, and no interpreter asks for one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.study_texts import STUDY

HOOK = """
import json, os, socket, sys

def watched(event, arguments):
    if event == "socket.__new__" or not event.startswith(("socket.", "urllib.", "http.client.")):
        return
    if event in ("socket.connect", "socket.bind", "socket.sendto") and arguments[0].family == socket.AF_UNIX:
        return
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(json.dumps([sys.argv[:1], event, repr(arguments[1:])]) + "\\n")

sys.addaudithook(watched)
"""
"""For every interpreter that the command starts: a name that is looked up, an address of the internet."""
EACH = """
import json, os, sys
from dbdyno.cli import main
for arguments in json.loads(sys.argv[1]):
    if (child := os.fork()) == 0:
        sys.argv = ["dyno", *arguments]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, (arguments, code)
"""
"""Commands one after another, for which Dyno is begun once."""
ALONE = ["unshare", "--net"]
"""A network namespace whose only device, loopback, is down: whoever needs a network fails."""


@pytest.fixture
def seen(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (homes / "hook").mkdir()
    (homes / "hook" / "sitecustomize.py").write_text(HOOK)
    monkeypatch.setenv("PYTHONPATH", str(homes / "hook"))
    monkeypatch.setenv("SEEN", str(homes / "seen"))
    (homes / "seen").touch()
    return homes / "seen"


@pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0,
    reason="a network namespace is refused here: needs root",
)
def test_a_study_ends_without_a_network_and_asks_for_none(seen: Path, homes: Path) -> None:
    (homes / "study.toml").write_text(STUDY)
    commands = (
        ("plan", str(homes / "study.toml")),
        ("run", str(homes / "study.toml"), "--quiet", "--name", "first"),
        ("report", "first"),
        ("runs",),
        ("museum",),
    )
    words = [*ALONE, sys.executable, "-c", EACH, json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert seen.read_text() == ""


def test_the_hook_sees_who_asks_for_a_network(seen: Path) -> None:
    asks = "import socket; socket.getaddrinfo('127.0.0.1', 9); socket.socket().connect_ex(('127.0.0.1', 9))"
    subprocess.run([sys.executable, "-c", asks], check=True)
    events = [json.loads(line)[1] for line in seen.read_text().splitlines()]
    assert events == ["socket.getaddrinfo", "socket.connect"]
