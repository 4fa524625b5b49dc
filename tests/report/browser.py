"""A page as a browser shows it."""

from __future__ import annotations

import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests import needs
from tests.needs import on_machine

CHROMIUM = on_machine(*needs.CHROMIUM)


needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (apt install chromium)"
)


FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1280,3000",
    "--virtual-time-budget=10000", "--enable-logging=stderr", "--v=0",
)  # fmt: skip


LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"


class Outline(HTMLParser):
    """The elements of a page, their attributes, and the text of what is shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self._hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        self.shown += "" if self._hidden else data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    @property
    def leads_out(self) -> list[str]:
        """What the page asks for, sends or leads to that is no place on itself."""
        names = ("src", "href", "srcset", "action", "poster")
        found = [attributes.get(name) for _, attributes in self.elements for name in names]
        return [one for one in found if one is not None and not one.startswith("#")]


def browse(path: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    profile = folder / "profile"
    return subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


TELL_THE_WIDTH = """<script>addEventListener("load", () => setTimeout(() => {
  document.title = `${document.documentElement.scrollWidth} of ${innerWidth}`;
}, 500));</script></body>"""
