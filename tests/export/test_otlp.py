"""`dyno run --otlp`: a receiver gets each trial between blocks, and one that does not answer ends no run."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dbdyno.records.metrics import METRICS
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.study_texts import STUDY


class Receiver(HTTPServer):
    """What was posted: when, where, with which headers, and what."""

    def __init__(self, code: int) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.code = code
        self.posted: list[tuple[float, str, str | None, dict[str, Any]]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((time.time(), self.path, self.headers["X-Team"], body))
        self.send_response(self.server.code)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """It says nothing."""


@contextmanager
def receiver(code: int = 200) -> Iterator[Receiver]:
    with Receiver(code) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


def metrics_of(body: dict[str, Any]) -> dict[str, Any]:
    [resource] = body["resourceMetrics"]
    [scope] = resource["scopeMetrics"]
    return {one["name"]: one for one in scope["metrics"]}


def test_a_collector_gets_each_trial_while_none_goes_on(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b")
    with receiver() as taken:
        over = dyno("run", str(study), "--blocks", "2", "--quiet", "--otlp", taken.url)
        assert over.returncode == 0, over.stderr
        again = dyno("run", "--resume", "last", "--add-blocks", "1", "--quiet", "--otlp", f"{taken.url}/own")
        assert again.returncode == 0, again.stderr
    with Store(store_url()) as store:
        records = store.records(store.run("last").run)
    assert [(path, team) for _, path, team, _ in taken.posted] == [("/v1/metrics", "a b")] * 2 + [
        ("/own", "a b")
    ]
    for moment, *_ in taken.posted:
        assert not any(one.started_unix_s <= moment <= one.finished_unix_s for one in records)
    told = [
        (point["attributes"][0]["value"]["stringValue"], point["asDouble"])
        for *_, body in taken.posted
        for point in metrics_of(body)["dyno.throughput"]["gauge"]["dataPoints"]
    ]
    assert told == [(one.variant, METRICS["throughput"].read(one)) for one in records]
    counted = metrics_of(taken.posted[-1][3])["dyno.trials"]["sum"]["dataPoints"]
    assert sum(int(point["asInt"]) for point in counted) == len(records)


def test_a_collector_that_takes_nothing_is_told_once_and_ends_no_run(study: Path) -> None:
    with receiver(503) as busy, socket.create_server(("127.0.0.1", 0)) as silent:
        for url, why in (
            (busy.url, "it answers 503"),
            (f"http://127.0.0.1:{silent.getsockname()[1]}", "timed out"),
            ("http://127.0.0.1:1", "refused"),
        ):
            over = dyno("run", str(study), "--blocks", "2", "--quiet", "--otlp", url)
            assert over.returncode == 0, over.stderr
            assert over.stderr.count("takes no metrics") == 1 and why in over.stderr


def test_what_is_no_collector_and_a_fleet_are_refused(study: Path) -> None:
    for url in ("localhost:4318", "ftp://x", "http://"):
        assert "is no URL of a collector" in complaint("run", str(study), "--otlp", url)
    said = complaint("run", str(study), "--otlp", "http://user:secret@x")
    assert "OTEL_EXPORTER_OTLP_HEADERS" in said and "secret" not in said
    said = complaint("run", str(study), "--otlp", "http://x", "--fleet", "a")
    assert "--otlp and --fleet exclude each other" in said
