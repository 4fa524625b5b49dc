"""The thread that draws pages."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from dbdyno.host.undisturbed import Look
from dbdyno.serve.drawer import Drawer, Page, page_of

PATIENCE_S = 20.0
PAGE = "/run/one"


class Story:
    """A store that says one word, and who draws it: the first drawing is held up."""

    def __init__(self) -> None:
        self.word = "under way"
        self.reading, self.go_on = threading.Event(), threading.Event()

    def draw(self, _path: str, _look: Look) -> Page:
        word = self.word
        self.reading.set()
        assert self.go_on.wait(PATIENCE_S)
        return page_of(word)


def wait_for_page(drawer: Drawer) -> bytes:
    until_s = time.monotonic() + PATIENCE_S
    while drawer.is_asked(PAGE):
        assert time.monotonic() < until_s
        time.sleep(0.01)
    return drawer.ready[PAGE].body


def test_who_asks_while_a_page_is_drawn_gets_what_the_store_says_by_then(homes: Path) -> None:
    story = Story()
    drawer = Drawer(story.draw, lambda: story.word, lambda _path: None)
    drawer.start()
    drawer.ask(PAGE)
    assert story.reading.wait(PATIENCE_S)
    story.word = "over"
    drawer.ask(PAGE)
    story.go_on.set()
    assert wait_for_page(drawer) == b"over"
    assert not drawer.is_asked(PAGE)
