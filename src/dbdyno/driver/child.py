"""The load process: a child that holds the driver, so that no engine's crash can take Dyno down.

It speaks JSON lines: one request on standard input, one reply on standard output, in turn. An embedded engine
lives in here, so this process is then the server under test. It imports nothing of Dyno but the driver: what
is not loaded cannot disturb the measurement.

    {"verb": "prepare", "job": {...}}                        ->  {"reply": {"rows", "bytes", ...}}
    {"verb": "create", "job": {...}}                         ->  {"reply": {}}
    {"verb": "examine", "job": {...}}                        ->  {"reply": {"asked", "left_out", "refused"}}
    {"verb": "run", "job": {...}}                            ->  {"reply": {the tally}}
    {"verb": "go on"}                                        ->  {"reply": {the tally}}
    {"verb": "end"}                                          ->  {"reply": {the tally}}
    {"verb": "check", "job": {...}, "acknowledged": {...}}   ->  {"reply": [{"name", "holds", "detail"}]}
    {"verb": "explain", "job": {...}}                        ->  {"reply": {"statements", "unreached"}}
    {"verb": "answers", "job": {...}}                        ->  {"reply": {"statements"}}
    {"verb": "cleanup", "job": {...}}                        ->  {"reply": {}}
    {"verb": "query", "url": "...", "sql": "..."}            ->  {"reply": {"columns", "rows", "affected"}}

A run with slices waits when its warm-up is over, and when a slice is. It then says what clients have been
told so far; the next request is "go on" or "end", and the end of standard input ends the run:

    {"waits": {"acknowledged", "unknown", "by_transaction", "start"}}

`acknowledged` is null where no run is known. Any of the requests may fail, and the child then waits for the
next:

    {"error": {"kind": "...", "message": "...", "hint": "..."}}

With the argument `exit-handlers` the process ends by exit(), so that an instrumented engine writes its
profile.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from dbdyno.driver import _driver

_VERBS: dict[str, Callable[[dict[str, Any]], str]] = {
    "prepare": lambda request: _driver.prepare(json.dumps(request["job"])),
    "create": lambda request: _driver.create(json.dumps(request["job"])),
    "examine": lambda request: _driver.examine(json.dumps(request["job"])),
    "check": lambda request: _driver.check(json.dumps(request["job"]), _acknowledged(request)),
    "explain": lambda request: _driver.explain(json.dumps(request["job"])),
    "answers": lambda request: _driver.answers(json.dumps(request["job"])),
    "cleanup": lambda request: _driver.cleanup(json.dumps(request["job"])),
    "query": lambda request: _driver.query(request["url"], request["sql"]),
}


def serve(read_line: Callable[[], str] | None = None) -> None:
    """Answers requests until there are none: what is read, by default from standard input, is then empty."""
    read_line = read_line or sys.stdin.readline
    # An engine's library may print. What it prints must not be taken for a reply.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(answer: str) -> None:
        replies.write(answer + "\n")
        replies.flush()

    def next_slice(told: str) -> bool:
        reply(f'{{"waits": {told}}}')
        request: dict[str, Any] = json.loads(read_line() or "{}")
        return request.get("verb") == "go on"

    # Not by iterating, which reads ahead of the lines that a run with slices waits for.
    while line := read_line():
        reply(_answer(json.loads(line), next_slice))
    if "exit-handlers" not in sys.argv[1:]:
        # Past the interpreter's own teardown: an engine's exit handlers must not hold up the end of a trial.
        os._exit(0)


def _answer(request: dict[str, Any], next_slice: Callable[[str], bool]) -> str:
    try:
        # The driver's reply is JSON already; parsing it here would only cost time.
        if request["verb"] == "run":
            return f'{{"reply": {_driver.run(json.dumps(request["job"]), None, next_slice)}}}'
        return f'{{"reply": {_VERBS[request["verb"]](request)}}}'
    except _driver.DriverError as error:
        return json.dumps({"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})


def _acknowledged(request: dict[str, Any]) -> str | None:
    acknowledged = request["acknowledged"]
    return None if acknowledged is None else json.dumps(acknowledged)


if __name__ == "__main__":
    serve()
