"""What a document shows at which level."""

from __future__ import annotations

from dbdyno.report.document import (
    Detail,
    Document,
    From,
    Lines,
    Mark,
    Section,
    Tone,
    plain,
    sections_of,
    shown,
)

ALWAYS, DETAIL, PAGE, INSTEAD = (Lines((word,)) for word in ("always", "detail", "page", "instead"))


def test_what_is_from_a_level_on_has_its_stand_in_below_it() -> None:
    body = (ALWAYS, From(Detail.DETAILS, (DETAIL, From(Detail.PAGE, (PAGE,))), (INSTEAD,)))
    assert shown(body, Detail.BRIEF) == [ALWAYS, INSTEAD]
    assert shown(body, Detail.TEXT) == [ALWAYS, DETAIL]
    assert shown(body, Detail.PAGE) == [ALWAYS, DETAIL, PAGE]


def test_a_section_without_anything_to_show_is_left_out() -> None:
    empty = Section("empty", (From(Detail.PAGE, (PAGE,)),))
    told = Section("told", (), aside="a sentence")
    detailed = Section("detailed", (DETAIL,), detail=Detail.DETAILS)
    report = Document("title", (), (empty, told, detailed))
    assert [one.title for one, _ in sections_of(report, Detail.BRIEF)] == ["told"]
    assert [one.title for one, _ in sections_of(report, Detail.PAGE)] == ["empty", "told", "detailed"]


def test_words_without_their_tones_are_the_same_words() -> None:
    assert plain(("guard: ", Mark("violated", Tone.BAD))) == "guard: violated"
