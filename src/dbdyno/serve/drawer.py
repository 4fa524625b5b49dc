"""The one thread that draws pages. It reads the store between blocks, and never while one is measured."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.host import paths
from dbdyno.host.cache import keep_beside
from dbdyno.host.host_lock import LookBetweenBlocks, holder

LOOK_EVERY_S = 1.0
"""How often the store is asked for more, while somebody has a page open and no block is measured."""
SHARE_MOST = 0.1
"""The share of the time that drawing anew takes while a run is under way: else short blocks would wait for
pages."""
REST_MOST_S = 30.0
"""So long nothing is drawn anew at most: the first page of all takes longer than any other."""
READY_MOST = 40
"""So many pages are kept drawn."""
SHOWN = b'data-shown=""'


@dataclass(frozen=True)
class DrawnPage:
    """A page as it is sent. `shown` differs where what it says differs."""

    body: bytes
    shown: str
    status: int = 200
    media_type: str = "text/html"


@dataclass(frozen=True)
class KeptPages:
    """Pages that outlast the server that drew them: one that begins during a block draws none, and has these.
    One file a page."""

    folder: Path

    @classmethod
    def of_store(cls, url: str) -> KeptPages:
        """Those of a store. Its URL may hold a password, so nothing of it stands in a name."""
        folder = paths.cache_place() / "pages" / hashlib.sha256(url.encode()).hexdigest()[:16]
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    def read(self) -> dict[str, DrawnPage]:
        """All of them by path, the latest last. What cannot be read is none."""
        found: list[tuple[float, str, DrawnPage]] = []
        for file in self.folder.glob("*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                told = json.loads(file.read_text(encoding="utf-8"))
                path, body = told.pop("path"), told.pop("body").encode()
                found.append((file.stat().st_mtime, path, DrawnPage(body=body, **told)))
        return {path: page for _, path, page in sorted(found, key=lambda one: one[:2])}

    def keep(self, path: str, page: DrawnPage) -> None:
        """A page that could not be drawn takes the place of none."""
        if page.status == 200:
            told = {**asdict(page), "path": path, "body": page.body.decode()}
            keep_beside(self._file(path), json.dumps(told))

    def drop(self, path: str) -> None:
        with suppress(OSError):
            self._file(path).unlink(missing_ok=True)

    def _file(self, path: str) -> Path:
        return self.folder / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.json"


def page_of(text: str, status: int = 200, media_type: str = "text/html") -> DrawnPage:
    """A page that tells its own script which one it is."""
    body = text.encode()
    shown = hashlib.sha256(body).hexdigest()[:16]
    return DrawnPage(body.replace(SHOWN, f'data-shown="{shown}"'.encode(), 1), shown, status, media_type)


Draw = Callable[[str, LookBetweenBlocks], DrawnPage]
"""Makes the page at a path."""
Drawn = Callable[[str], None]
"""Is told of each path whose page is another one now, in the thread that draws."""


@dataclass
class Drawer:
    """What is drawn, by path, the latest last. Where `state` is another than before, all of it is stale, and
    so is what an earlier server has `kept`. `ready` is replaced as a whole, and never changed, because the
    event loop reads it while pages are drawn."""

    draw: Draw
    state: Callable[[], Hashable]
    drawn: Drawn
    kept: KeptPages

    def __post_init__(self) -> None:
        self.ready: Mapping[str, DrawnPage] = self.kept.read()
        self._changed = threading.Condition()
        self._asked: set[str] = set()
        self._taken: set[str] = set()
        self._watched: Counter[str] = Counter()
        self._stale: set[str] = set(self.ready)
        self._seen: Hashable = None
        self._rest_until_s = 0.0

    def start(self) -> None:
        """Begins to draw. The thread may wait for the end of a block, and must not keep the process."""
        threading.Thread(target=self._go_on, name="drawer", daemon=True).start()

    def ask(self, path: str) -> None:
        """The page is wanted as it is by now."""
        with self._changed:
            self._asked.add(path)
            self._changed.notify()

    def is_asked(self, path: str) -> bool:
        """Whether the page is still to be drawn that was asked for."""
        with self._changed:
            return path in self._asked or path in self._taken

    def watch(self, path: str) -> None:
        """Somebody has the page open, and wants to see it change."""
        with self._changed:
            self._watched[path] += 1
            self._changed.notify()

    def leave(self, path: str) -> None:
        """He has gone."""
        with self._changed:
            self._watched[path] -= 1
            self._watched += Counter()

    def _go_on(self) -> None:
        while True:
            try:
                with LookBetweenBlocks() as look:
                    self._take()
                    self._look_for_more()
                    for path in self._next():
                        look.give_way()
                        self._draw(path, look)
            except (OSError, DynoError):
                # At a limit of descriptors or of the disk: pages are drawn again once that is over.
                time.sleep(LOOK_EVERY_S)
                continue
            with self._changed:
                if not self._asked:
                    self._changed.wait(LOOK_EVERY_S if self._watched else None)

    def _take(self) -> None:
        """What was asked for before the store is looked at. Who asks later waits for the next look, because
        what is being drawn by then may be older than what he wants."""
        with self._changed:
            self._taken |= self._asked
            self._asked.clear()

    def _look_for_more(self) -> None:
        state = self.state()
        if state != self._seen:
            self._seen = state
            self._stale |= self.ready.keys()

    def _next(self) -> list[str]:
        """What is asked for first. What is watched and stale follows, unless drawing has just taken long."""
        with self._changed:
            watched = [path for path in self._watched if path in self._stale or path not in self.ready]
            asked = list(self._taken)
        if time.monotonic() < self._rest_until_s and holder() is not None:
            watched = []
        return list(dict.fromkeys((*asked, *watched)))

    def _draw(self, path: str, look: LookBetweenBlocks) -> None:
        if path in self._stale or path not in self.ready:
            began_s = time.monotonic()
            page, before = self.draw(path, look), self.ready.get(path)
            took_s = time.monotonic() - began_s
            rest_s = took_s * (1.0 / SHARE_MOST - 1.0)
            self._rest_until_s = time.monotonic() + min(rest_s, REST_MOST_S)
            self._stale.discard(path)
            self._lay(path, page)
            self.kept.keep(path, page)
            self._drop_oldest()
            if before is None or before.shown != page.shown:
                self.drawn(path)
        with self._changed:
            self._taken.discard(path)

    def _lay(self, path: str, page: DrawnPage) -> None:
        """Makes it the latest. Who reads meanwhile, in another thread, finds the page before or this one."""
        others = {other: ready for other, ready in self.ready.items() if other != path}
        self.ready = {**others, path: page}

    def _drop_oldest(self) -> None:
        """Those that somebody has open stay."""
        with self._changed:
            old = [path for path in self.ready if path not in self._watched]
        dropped = old[: max(0, len(self.ready) - READY_MOST)]
        self.ready = {path: page for path, page in self.ready.items() if path not in dropped}
        for path in dropped:
            self._stale.discard(path)
            self.kept.drop(path)
