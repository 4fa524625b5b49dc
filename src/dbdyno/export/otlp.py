"""What a run has measured so far, as OpenTelemetry's collectors take it: OTLP over HTTP, in JSON.

It is sent where the run asks for its next trials: no server of a trial lives then, and no load. Each measured
trial is a point of each of its metrics, and the trials are counted by how they ended. A collector that does
not answer is told once, and the run goes on.

Shape: https://opentelemetry.io/docs/specs/otlp/ (1.x), `ExportMetricsServiceRequest`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from dbdyno.errors import UserError
from dbdyno.passwords import without_passwords
from dbdyno.records.metrics import METRICS
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.report.words.safe import json_text
from dbdyno.study import Study

PATH = "/v1/metrics"
"""Where a collector takes metrics whose URL names no path."""
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable by which OpenTelemetry's own exporters are told headers: `name=value,name=value`."""
ANSWER_S = 2.0
CUMULATIVE = 2
Attributes = Mapping[str, object]


class MetricsCollector:
    """A collector at a URL, which is told of trials that end from now on. Raises UserError for no URL of
    one."""

    def __init__(self, url: str, say: Callable[[str], None]) -> None:
        self._url, self._say = endpoint_of(url), say
        self._sent: set[int] | None = None
        self._warned = False

    def see(self, study: Study, run: Run, records: Sequence[Record]) -> None:
        """Sends what ended since the last look, by all records of the run."""
        known = {record.trial for record in records}
        # What a run that goes on had measured before was sent then.
        before = known if self._sent is None else self._sent
        self._sent = known
        if fresh := [record for record in records if record.trial not in before]:
            self._send(json_text(request_of(study, run, records, fresh)))

    def _send(self, text: str) -> None:
        headers = {"Content-Type": "application/json", **_headers(os.environ.get(HEADERS, ""))}
        try:
            with urlopen(Request(self._url, text.encode(), headers, method="POST"), timeout=ANSWER_S):
                return
        except HTTPError as refused:
            why = f"it answers {refused.code}"
            refused.close()
        except (OSError, HTTPException, ValueError) as error:
            why = str(getattr(error, "reason", None) or error) or type(error).__name__
        if not self._warned:
            self._say(f"{self._url} takes no metrics: {why}; the run goes on, and it is asked again later")
        self._warned = True


def endpoint_of(url: str) -> str:
    """Where a collector at this URL takes metrics. Raises UserError for no URL of one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(
            f"--otlp {without_passwords(url)!r} is no URL of a collector", "--otlp http://localhost:4318"
        )
    if parts.username or parts.password:
        raise UserError("--otlp takes no password in its URL", f"name a header: {HEADERS}='authorization=…'")
    return parts._replace(path=PATH).geturl() if parts.path in ("", "/") else url


def _headers(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split(",") if "=" in word)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def request_of(
    study: Study, run: Run, records: Sequence[Record], fresh: Sequence[Record]
) -> dict[str, object]:
    """The request that tells of `fresh` records, and counts all `records`."""
    about = {"service.name": "dyno", "service.version": run.dyno_version, "dyno.run": run.run}
    about |= {"dyno.study": study.title, "dyno.engine": study.engine.engine, "host.name": run.host.name or ""}
    made = {
        "resource": {"attributes": _attributes(about)},
        "scopeMetrics": [{"scope": {"name": "dbdyno"}, "metrics": [*_gauges(fresh), _trials(run, records)]}],
    }
    return {"resourceMetrics": [made]}


def _gauges(fresh: Sequence[Record]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name, metric in METRICS.items():
        points = [
            _point(record, {"variant": record.variant, "block": record.block + 1}, asDouble=value)
            for record in fresh
            if record.outcome is Outcome.MEASURED and (value := metric.read(record)) is not None
        ]
        if points:
            words = {"name": f"dyno.{name}", "unit": metric.unit, "description": metric.definition}
            found.append({**words, "gauge": {"dataPoints": points}})
    return found


def _trials(run: Run, records: Sequence[Record]) -> dict[str, object]:
    last = max(records, key=lambda record: record.finished_unix_s)
    counts = Counter((record.variant, record.outcome.value) for record in records)
    points = [
        # 64-bit numbers are strings in OTLP's JSON.
        _point(last, {"variant": variant, "outcome": outcome}, run.created_unix_s, asInt=str(count))
        for (variant, outcome), count in counts.items()
    ]
    total = {"aggregationTemporality": CUMULATIVE, "isMonotonic": True, "dataPoints": points}
    return {
        "name": "dyno.trials",
        "unit": "{trial}",
        "description": "Trials by how they ended.",
        "sum": total,
    }


def _point(
    record: Record, attributes: Attributes, began_unix_s: float | None = None, **value: Any
) -> dict[str, object]:
    began = {} if began_unix_s is None else {"startTimeUnixNano": _nanoseconds(began_unix_s)}
    moment = _nanoseconds(record.finished_unix_s)
    return {"attributes": _attributes(attributes), **began, "timeUnixNano": moment, **value}


def _nanoseconds(unix_s: float) -> str:
    return str(round(unix_s * 1e9))


def _attributes(named: Attributes) -> list[dict[str, object]]:
    kinds = {key: "intValue" if isinstance(value, int) else "stringValue" for key, value in named.items()}
    return [{"key": key, "value": {kinds[key]: str(value)}} for key, value in named.items()]
