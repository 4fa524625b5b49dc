"""The flame graph: widths are shares of the time, hostile names stay text, a browser draws it."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse.profile import Profile, profile_of
from dbdyno.findings import profile as words
from dbdyno.report.figures import flame
from dbdyno.report.renderers import html
from tests.report.browser import LIGHT, Outline, browse, needs_chromium
from tests.report.cases import HOSTILE
from tests.report.figures.flame_cases import FAST, MODULE, SLOW


def page(*profiles: Profile) -> str:
    return html.render(words.document(profiles, "Cache", embedded=False))


def test_a_difference_as_drawn(snapshot: SnapshotAssertion) -> None:
    shown = page(SLOW, FAST)
    graphs = shown[shown.index("<svg") : shown.rindex("</svg>")]
    assert graphs == snapshot


def test_boxes_lie_within_their_callers() -> None:
    boxes = flame._boxes(SLOW, None)
    assert boxes[0].width == pytest.approx(1.0)
    for box in boxes[1:]:
        below = [one for one in boxes if one.depth == box.depth - 1]
        right = box.left + box.width
        assert any(one.left <= box.left + 1e-9 and right <= one.left + one.width + 1e-9 for one in below)


def test_the_sentences_name_what_was_gained() -> None:
    first, more = words.sentences([SLOW, FAST])
    assert "4,000 us" in first and "+3000 us" in first
    assert more.startswith("More of it goes to [libc.so.6] below load_node")


def test_hostile_names_make_no_element() -> None:
    profile = profile_of(HOSTILE, [(1, ((HOSTILE, MODULE),))], 1.0)
    assert profile is not None
    outline = Outline(page(profile))
    assert outline.count("script") == 2
    assert outline.leads_out == []


@needs_chromium
def test_a_browser_draws_it_without_a_complaint(tmp_path: Path) -> None:
    path = tmp_path / "flame.html"
    path.write_text(page(SLOW, FAST), encoding="utf-8")
    done = browse(path, tmp_path, LIGHT, "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert Outline(done.stdout).count("rect") == Outline(page(SLOW, FAST)).count("rect") > 8
