"""The page: harmless whatever it shows, complete in one file, and drawn by a real browser without a
complaint.
"""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import pytest

from dbdyno.findings import factors
from tests.report.browser import DARK, LIGHT, TELL_THE_WIDTH, Outline, browse, needs_chromium
from tests.report.cases import CASES
from tests.report.forms import page_of_case


@pytest.mark.parametrize("case", CASES)
def test_the_page_asks_for_nothing_from_elsewhere(case: str) -> None:
    outline = Outline(page_of_case(case))
    assert outline.leads_out == []
    policies = [a["content"] for tag, a in outline.elements if tag == "meta" and "http-equiv" in a]
    assert len(policies) == 1 and policies[0] is not None and policies[0].startswith("default-src 'none'")


def test_hostile_text_makes_no_element_and_stays_readable() -> None:
    hostile, plain = Outline(page_of_case("hostile")), Outline(page_of_case("one_block"))
    assert hostile.count("script") == plain.count("script") == 2
    assert "</script><script>alert(1)</script>" in hostile.shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", hostile.shown)


@pytest.mark.parametrize("case", CASES)
def test_every_variant_is_named_in_a_table(case: str) -> None:
    shown = Outline(page_of_case(case)).shown
    variants = CASES[case]().variants
    assert variants
    for variant in variants:
        assert variant.name.split("=")[0] in shown


def test_a_grid_shows_each_setup_with_its_interval_or_its_word() -> None:
    shown = Outline(page_of_case("file_systems")).shown
    table = factors.grid(CASES["file_systems"]())
    assert table is not None and table.title in shown
    cells = [cell for _, row in table.rows for cell in row]
    assert len(cells) == 16 and sum(cell.value == "blocked" for cell in cells) == 8
    assert all(cell.spread in shown and cell.value in shown for cell in cells)


@needs_chromium
@pytest.mark.parametrize(
    ("case", "theme"),
    [
        ("all_verdicts", LIGHT),
        ("all_verdicts", DARK),
        ("many", LIGHT),
        ("two_factors", LIGHT),
        ("hostile", DARK),
    ],
)
def test_a_browser_draws_every_figure_without_a_complaint(case: str, theme: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of_case(case), encoding="utf-8")
    done = browse(path, tmp_path, theme, "--dump-dom")
    # A request of any kind would break the page's own policy, and the browser would say so here.
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    outline = Outline(done.stdout)
    figures = [attributes for _, attributes in outline.elements if "data-figure" in attributes]
    assert figures and outline.count("svg") == len(figures)
    assert "could not be drawn" not in outline.shown
    drawn = [attributes.get("aria-roledescription") for _, attributes in outline.elements]
    if case != "hostile":
        candidates = sum(variant.effect is not None for variant in CASES[case]().variants)
        assert drawn.count("point") >= candidates
    assert drawn.count("line mark") >= 1


@needs_chromium
@pytest.mark.parametrize("case", ["all_verdicts", "file_systems"])
@pytest.mark.parametrize("width", [420, 800, 1200])
def test_no_page_is_wider_than_the_screen(case: str, width: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    before, _, after = page_of_case(case).rpartition("</body>")
    path.write_text(f"{before}{TELL_THE_WIDTH}{after}", encoding="utf-8")
    done = browse(path, tmp_path, f"--window-size={width},900", "--dump-dom")
    # A window has a least width, which is more than that of the narrowest screen.
    told = re.search(r"<title>(\d+) of (\d+)</title>", done.stdout)
    assert told is not None and int(told[1]) <= int(told[2])


@needs_chromium
def test_light_and_dark_are_what_the_reader_prefers(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of_case("all_verdicts"), encoding="utf-8")
    corners = []
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        picture = tmp_path / f"{name}.png"
        browse(path, tmp_path, theme, f"--screenshot={picture}")
        corners.append(sum(first_pixel(picture)))
    assert corners[0] > 3 * 200 and corners[1] < 3 * 60


def first_pixel(picture: Path) -> tuple[int, int, int]:
    """The corner of a PNG: no filter changes the first pixel of the first line."""
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        if content[at + 4 : at + 8] == b"IDAT":
            data += content[at + 8 : at + 8 + length]
        at += 12 + length
    line = zlib.decompress(data)
    return line[1], line[2], line[3]
