"""A browser that is told what to do, over the pipe of its developer tools."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.report.browser import CHROMIUM
from tests.serve.served import PATIENCE_S

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
COMMANDS, ANSWERS = 3, 4
"""The descriptors from which a browser reads and to which it writes, each message with a zero at its end."""


class Browser:
    """One page of a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = os.fdopen(answers, "rb", buffering=0)
        self._unread = b""
        self._number = 0
        self._session = ""
        self.faults: list[str] = []
        """What the page's scripts raised, and what the browser refused."""
        target = self._tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._tell(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Goes there, and waits until it is there."""
        self._tell("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.protocol !== 'about:'")

    def narrow(self, width: int) -> None:
        """Makes the window as wide as that."""
        self._tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )

    def key(self, key: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self._tell("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def value(self, expression: str) -> Any:
        """What an expression is in the page."""
        found = self._tell("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return found.get("value")

    def wait_for(self, expression: str) -> None:
        """Until the expression is true in the page."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            assert time.monotonic() < deadline_s, (expression, self.value("document.body.innerText"))
            time.sleep(0.1)

    def picture(self, path: Path) -> None:
        """Keeps what the window shows."""
        path.write_bytes(base64.b64decode(self._tell("Page.captureScreenshot")["data"]))

    def _tell(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.faults.append(json.dumps(answer["params"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            some = self._answers.read(1 << 16)
            assert some, "the browser has gone"
            self._unread += some
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in this folder."""
    assert CHROMIUM is not None
    (commands_out, commands), (answers, answers_in) = os.pipe(), os.pipe()

    def take() -> None:
        # One may have the other's number.
        first, second = (os.dup(one) for one in (commands_out, answers_in))
        spare = [os.dup2(one, high) for one, high in ((first, 100), (second, 101))]
        for one, number in zip(spare, (COMMANDS, ANSWERS), strict=True):
            os.dup2(one, number)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=take,
    )  # fmt: skip
    os.close(commands_out)
    os.close(answers_in)
    try:
        yield Browser(commands, answers)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
