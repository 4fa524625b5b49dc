"""`dyno load` on a host of its own drives a server that runs on another one, over TLS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DYNO
from tests.load_hosts import Apart, apart
from tests.needs import INITDB
from tests.records.postgresql import SELF_SIGNED, PostgreSQL

PASSWORD = "a secret/of one"
IN_URL = "a%20secret%2Fof%20one"


@pytest.fixture
def load_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, homes: Path) -> Iterator[Apart]:
    (tmp_path / "load-host").mkdir()
    with apart(tmp_path / "load-host", monkeypatch) as host:
        yield host


def load(host: Apart, verb: str, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*DYNO, "load", verb, "tpcb", "--url", url, "--scale", "1", *options]
    return subprocess.run(host.within(*command), capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(INITDB is None, reason="no PostgreSQL under /usr/lib/postgresql")
def test_a_load_from_another_host_is_counted_and_checked(load_host: Apart, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    written = ("-keyout", tmp_path / "key", "-out", other)
    subprocess.run([*SELF_SIGNED, "-subj", "/CN=another", *written], check=True, capture_output=True)
    with PostgreSQL(load_host.address, PASSWORD) as server:
        place = f"{load_host.address}:5432/postgres"
        url = f"postgresql://dyno:{IN_URL}@{place}?tls=verify&tls_ca={server.certificate}"
        wrong = load(load_host, "run", url.replace(str(server.certificate), str(other)), "--time", "1")
        prepared = load(load_host, "prepare", url)
        ran = load(load_host, "run", url, "--clients", "2", "--time", "1", "--json")
        (tmp_path / "tally.json").write_text(ran.stdout)
        checked = load(load_host, "check", url, "--tally", str(tmp_path / "tally.json"))
        cleaned = load(load_host, "cleanup", url)
    assert wrong.returncode == 1 and "certificate" in wrong.stderr and PASSWORD not in wrong.stderr
    for one in (prepared, ran, checked, cleaned):
        assert one.returncode == 0, one.stdout + one.stderr
    tally = json.loads(ran.stdout)
    assert tally["operations"] > 0 and tally["acknowledged"] >= tally["operations"]
