"""What a browser finds wrong with a page: at three widths, in both themes."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from pathlib import Path

from dbdyno.frozen import Frozen
from tests.report.browser import LIGHT, browse

WIDTHS = (420, 800, 1200)
SCRIPT = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")


class Faults(Frozen):
    """What is wrong with a page at one width. `scrolled` are the parts that scroll sideways, `shrunk` the
    figures that are drawn smaller than they were made, `pale` the texts with too little contrast (WCAG 2.2,
    success criterion 1.4.3). `clicked` is the theme after a click on its button."""

    wide: tuple[str, ...]
    scrolled: tuple[str, ...]
    collisions: tuple[str, ...]
    cut: tuple[str, ...]
    shrunk: tuple[str, ...]
    pale: tuple[str, ...]
    clicked: str


class Look(Frozen):
    """The faults by width, and what the browser complained of."""

    faults: dict[int, Faults]
    complaints: tuple[str, ...]


def look(page: str, folder: Path) -> Look:
    """Looks at a page. A browser's window has a least width, which is more than that of a narrow screen; a
    frame has none."""
    frames = [f'<iframe style="border:0" width="{width}" height="900"{{}}></iframe>' for width in WIDTHS]
    first = frames[0].format(f' srcdoc="{escape(page)}"')
    others = "".join(frame.format("") for frame in frames[1:])
    path = folder / "frames.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><title></title>{first}{others}<script>{SCRIPT}</script>',
        encoding="utf-8",
    )
    done = browse(path, folder, LIGHT, "--dump-dom")
    told = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert told is not None, done.stderr
    return Look(
        faults=json.loads(unescape(told[1])),
        complaints=tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line),
    )
