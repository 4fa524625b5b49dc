"""The thread that draws pages."""

from __future__ import annotations

import threading
import time
from functools import partial
from itertools import count
from pathlib import Path

from dbdyno.host.host_lock import LookBetweenBlocks
from dbdyno.serve.drawer import READY_MOST, Drawer, DrawnPage, KeptPages, page_of

PATIENCE_S = 20.0
PAGE = "/run/one"


class Story:
    """A store that says one word, and who draws it: the first drawing is held up."""

    def __init__(self) -> None:
        self.word = "under way"
        self.reading, self.go_on = threading.Event(), threading.Event()

    def draw(self, _path: str, _look: LookBetweenBlocks) -> DrawnPage:
        word = self.word
        self.reading.set()
        assert self.go_on.wait(PATIENCE_S)
        return page_of(word)


def a_drawer(story: Story) -> Drawer:
    return Drawer(story.draw, lambda: story.word, lambda _path: None, KeptPages.of_store("sqlite:///one"))


def wait_for_page(drawer: Drawer) -> bytes:
    until_s = time.monotonic() + PATIENCE_S
    while drawer.is_asked(PAGE):
        assert time.monotonic() < until_s
        time.sleep(0.01)
    return drawer.ready[PAGE].body


def test_who_asks_while_a_page_is_drawn_gets_what_the_store_says_by_then(homes: Path) -> None:
    story = Story()
    drawer = a_drawer(story)
    drawer.start()
    drawer.ask(PAGE)
    assert story.reading.wait(PATIENCE_S)
    story.word = "over"
    drawer.ask(PAGE)
    story.go_on.set()
    assert wait_for_page(drawer) == b"over"
    assert not drawer.is_asked(PAGE)


def test_a_server_that_begins_during_a_block_has_the_pages_that_the_last_one_drew(homes: Path) -> None:
    story = Story()
    story.go_on.set()
    before = a_drawer(story)
    before.start()
    before.ask(PAGE)
    drawn = wait_for_page(before)
    after = a_drawer(Story())
    assert {path: page.body for path, page in after.ready.items()} == {PAGE: drawn}
    assert not KeptPages.of_store("sqlite:///another").read()
    story.word = "over"
    after.draw = story.draw
    after.start()
    after.ask(PAGE)
    assert wait_for_page(after) == b"over", "what an earlier server drew is stale"


def test_who_reads_while_pages_are_laid_and_dropped_finds_each(homes: Path) -> None:
    words = count()
    drawer = Drawer(
        lambda _path, _look: page_of(f"word {next(words)}"), partial(next, words), lambda _path: None,
        KeptPages.of_store("sqlite:///one"),
    )  # fmt: skip
    for number in range(READY_MOST + 1):
        for _ in ("first", "anew"):
            found = drawer.ready
            before = dict(found)
            with LookBetweenBlocks() as look:
                drawer._look_for_more()
                drawer._draw(f"/run/{number}", look)
            assert found == before and drawer.ready != before


def test_no_page_is_kept_that_could_not_be_drawn_or_is_torn(homes: Path) -> None:
    kept = KeptPages.of_store("sqlite:///one")
    kept.keep(PAGE, page_of("what it said"))
    kept.keep(PAGE, page_of("the store does not answer", 500))
    kept.keep("/museum", page_of("torn"))
    torn = max(kept.folder.glob("*.json"), key=lambda file: "torn" in file.read_text())
    torn.write_bytes(torn.read_bytes()[:20])
    assert {path: page.body for path, page in kept.read().items()} == {PAGE: b"what it said"}


def test_no_more_pages_are_kept_than_are_ready(homes: Path) -> None:
    drawer = Drawer(
        lambda path, _look: page_of(path), lambda: 0, lambda _path: None, KeptPages.of_store("sqlite:///one")
    )
    for number in range(READY_MOST + 3):
        with LookBetweenBlocks() as look:
            drawer._draw(f"/run/{number}", look)
    assert drawer.kept.read().keys() == drawer.ready.keys() and len(drawer.ready) == READY_MOST
