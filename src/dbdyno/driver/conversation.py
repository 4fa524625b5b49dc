"""JSON lines with a child process, one request at a time: what a load process here and one on another host
have in common."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from dbdyno.errors import DriverFailed
from dbdyno.host.process import kill_family

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
