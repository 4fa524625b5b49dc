"""The parent's side of the load process: it starts the child, asks it one thing at a time, and ends it.

They speak in JSON lines, one request at a time, as does a load process on another host.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from dbdyno.driver.job import Job
from dbdyno.driver.load import (
    QUERY_TIMEOUT_S,
    Examined,
    Explained,
    Invariant,
    Prepared,
    StatementsAnswered,
)
from dbdyno.driver.shares import InStretches
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, LoadDied, remedy
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine, kill_family

SAID_BYTES = 4096
"""What is kept of the last words of a child that died."""

Explain = Callable[[str, int, str], DriverFailed]
"""What the death of a child means: the verb that it died of, how it ended as `Popen.returncode` has it, and
the last that it said on its standard error."""


class Conversation:
    """A child that answers requests. Its standard error is kept for the words with which it dies.

    `who` it is stands in messages. Raises OSError or SubprocessError where it cannot be started.
    """

    def __init__(
        self,
        command: list[str],
        explain: Explain,
        *,
        who: str,
        environment: dict[str, str],
        before_exec: Callable[[], None],
        close_s: float,
    ) -> None:
        self._explain, self._who, self._close_s = explain, who, close_s
        self._sending = threading.Lock()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by kill()
        try:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                # A session of its own: Ctrl-C reaches Dyno alone, which then decides.
                start_new_session=True,
                preexec_fn=before_exec,
            )
        except BaseException:
            self._errors.close()
            raise
        assert self.child.stdout is not None
        self._read = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.child.stdout, selectors.EVENT_READ)

    def ask(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        """The answer to a request, within so many seconds. Raises DriverFailed with the driver's own message
        for an error, and with what `explain` makes of it where the child died."""
        self.request(**request)
        return self.answer(request["verb"], timeout_s)

    def request(self, **request: Any) -> None:
        """Sends a request, whose answer is to be fetched before the next one."""
        self.send(json.dumps(request).encode() + b"\n", request["verb"])

    def answer(self, verb: str, timeout_s: float) -> dict[str, Any]:
        """The answer to the request that was sent."""
        answer: dict[str, Any] = json.loads(self.line(verb, timeout_s))
        if "error" in answer:
            error = answer["error"]
            raise DriverFailed(error["message"], error["hint"], error["kind"])
        return answer

    def send(self, content: bytes, verb: str) -> None:
        """Sends bytes as they are. Raises what `explain` makes of it where the child died."""
        try:
            self._write(content)
        except BrokenPipeError:
            raise self._death(verb) from None

    def beat(self, content: bytes) -> None:
        """Sends what has no answer, from any thread. Whoever asks next tells of a child that is gone."""
        with contextlib.suppress(OSError, ValueError):
            self._write(content)

    def _write(self, content: bytes) -> None:
        assert self.child.stdin is not None
        with self._sending:
            self.child.stdin.write(content)
            self.child.stdin.flush()

    def line(self, verb: str, timeout_s: float) -> bytes:
        """The next line that the child says. It is ended where it says none in time."""
        assert self.child.stdout is not None
        deadline = time.monotonic() + timeout_s
        parts = [self._read]
        while b"\n" not in parts[-1]:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                kill_family(self.child)
                raise DriverFailed(
                    f"{self._who} did not answer `{verb}` within {timeout_s:.0f} s and was ended",
                    "the server may hang: look at its log in the record",
                )
            part = os.read(self.child.stdout.fileno(), 1 << 20)
            if not part:
                raise self._death(verb)
            parts.append(part)
        line, _, self._read = b"".join(parts).partition(b"\n")
        return line

    def close(self) -> None:
        """Ends the child: asks first, then kills. Calling it twice is harmless."""
        if self.child.poll() is None and self.child.stdin is not None:
            try:
                self.child.stdin.close()
                self.child.wait(self._close_s)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self) -> None:
        """Ends the child at once."""
        if self.child.poll() is None:
            kill_family(self.child)
        self._selector.close()
        for pipe in (self.child.stdin, self.child.stdout, self._errors):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _death(self, verb: str) -> DriverFailed:
        code = self.child.wait()
        self._errors.seek(0)
        said = self._errors.read()[-SAID_BYTES:].decode(errors="replace").strip()
        return self._explain(verb, code, said)


EXPLAIN_TIMEOUT_S = 120.0
PREPARE_TIMEOUT_S = 3600.0
CLOSE_S = 5.0
OF_KILLED = "the kernel kills where memory runs out, and says so (dmesg); else somebody killed it"


class LoadProcess(InStretches):
    """The child that holds the driver, one request at a time. A context manager that leaves no child behind.

    `launch` is how an embedded engine's process is to be started; for a server of its own it is empty.
    """

    def __init__(self, environment: Mapping[str, str], launch: Launch) -> None:
        how = ["exit-handlers"] if launch.exit_handlers else []
        try:
            self._child = Conversation(
                [*launch.wrapper, sys.executable, "-P", "-m", "dbdyno.driver.child", *how],
                _death,
                who="the load process",
                environment={**os.environ, **environment, **launch.environment},
                before_exec=confine(launch.affinity, launch.cgroups, launch.before_exec),
                close_s=CLOSE_S * launch.patience,
            )
        except (OSError, subprocess.SubprocessError) as error:
            # No OSError comes from what is done just before it is executed.
            refused = "the kernel refused its CPUs, control group or memory policy: see dyno probe"
            told = f"the load process could not be started: {error}"
            raise DriverFailed(told, remedy(error, torn=refused)) from None

    @property
    def process_id(self) -> int:
        return self._child.child.pid

    def prepare(self, job: Job) -> Prepared:
        """Makes the workload's schema and rows."""
        reply = self._request(PREPARE_TIMEOUT_S, verb="prepare", job=job.model_dump())
        return Prepared.model_validate(reply)

    def create(self, job: Job) -> None:
        """Makes the workload's tables without their rows."""
        self._request(QUERY_TIMEOUT_S, verb="create", job=job.model_dump())

    def examine(self, job: Job) -> Examined:
        """Has the server prepare the user's statements on the workload's tables."""
        reply = self._request(QUERY_TIMEOUT_S, verb="examine", job=job.model_dump())
        return Examined.model_validate(reply)

    def begin(self, job: Job) -> Tally | None:
        """Puts the load on the server, up to the end of the warm-up where it has slices."""
        return self._begin(job)

    def go_on(self) -> Tally | None:
        """The next slice of the load that has begun."""
        return self._stretch(verb="go on")

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        """The workload's invariants."""
        told = acknowledged.model_dump() if acknowledged else None
        reply = self._request(PREPARE_TIMEOUT_S, verb="check", job=job.model_dump(), acknowledged=told)
        return [Invariant.model_validate(each) for each in reply]

    def explain(self, job: Job) -> Explained:
        """The plans of the workload's statements. No write is executed."""
        return Explained.model_validate(
            self._request(EXPLAIN_TIMEOUT_S, verb="explain", job=job.model_dump())
        )

    def answers(self, job: Job) -> StatementsAnswered:
        """What the server answers to each of the user's statements, sent twice. Writes are rolled back."""
        reply = self._request(PREPARE_TIMEOUT_S, verb="answers", job=job.model_dump())
        return StatementsAnswered.model_validate(reply)

    def query(self, url: str, sql: str, timeout_s: float = QUERY_TIMEOUT_S) -> list[list[str | float | None]]:
        """The rows of one statement, which is given up after so many seconds."""
        reply = self._request(timeout_s, verb="query", url=url, sql=sql)
        return list(reply["rows"])

    def request(self, **request: Any) -> None:
        """Sends a request; `answer` fetches what it is answered."""
        self._child.request(**request)

    def answer(self, verb: str, timeout_s: float) -> dict[str, Any]:
        """The answer to the request that was sent, within so many seconds."""
        return self._child.answer(verb, timeout_s)

    def close(self) -> None:
        """Ends the child: asks first, then kills. Calling it twice is harmless."""
        self._child.close()

    def kill(self) -> None:
        """Ends the child at once."""
        self._child.kill()

    def __enter__(self) -> LoadProcess:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        # After a failure the child may be in the midst of a long run: asking would only wait in vain.
        if failure is None:
            self.close()
        else:
            self.kill()

    def _ask(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        return self._child.ask(timeout_s, **request)

    def _request(self, timeout_s: float, **request: Any) -> Any:
        return self._ask(timeout_s, **request)["reply"]


def _death(verb: str, code: int, said: str) -> DriverFailed:
    how = _signal_name(-code) if code < 0 else f"exit code {code}"
    last_line = f"; it said: {said.splitlines()[-1]}" if said else ""
    hint = OF_KILLED if code == -signal.SIGKILL else ""
    return LoadDied(f"the load process died during `{verb}` ({how}){last_line}", hint)


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name}, {signal.strsignal(number)}"
    except ValueError:
        return f"signal {number}"
