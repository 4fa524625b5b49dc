"""Published figures beside ours: theirs lies inside our interval or outside, or there is a cause."""

from __future__ import annotations

import json

import pytest

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.published import PublishedPlace
from dbdyno.findings import analyse, as_json, run
from dbdyno.findings.published import inside_text
from dbdyno.study.published import PublishedFigure
from tests.analyse.factory import Change, a_run, a_study, blocked, records_of
from tests.report.shown import in_every_form

FASTER, HIGHER = "config.page_cache=64k", "config.page_cache=256k"
CAPPED = blocked("config.page_cache", "64k", "32k")
LEVELS = {"config.page_cache": ["2k", "64k", "256k"]}


def figure(ratio: float, **more: object) -> PublishedFigure:
    told = {"source": "Somebody", "year": 2020, "hardware": "a laptop", "differs": "fewer rows"}
    return PublishedFigure.model_validate({"variant": FASTER, "ratio": ratio, **told, **more})


def found(*figures: PublishedFigure, changes: dict[str, Change] | None = None) -> Analysis:
    study = a_study(LEVELS).but(published=figures)
    return analyse(study, a_run(study), records_of(study, {FASTER: 2.0, HIGHER: 3.0}, changes or {}))


def test_theirs_lies_inside_our_interval_or_on_one_side_of_it() -> None:
    told = found(figure(2.0), figure(1.1), figure(40.0)).published
    places = [one.place for one in told]
    assert places == [PublishedPlace.INSIDE, PublishedPlace.BELOW, PublishedPlace.ABOVE]
    for one in told:
        assert one.ratio is not None and one.low is not None and one.high is not None
        assert one.low < 2.0 < one.high and one.blocks == 6
        assert one.overlap is None


def test_it_is_the_interval_on_which_our_verdict_rests() -> None:
    analysis = found(figure(2.0))
    [told], effect = analysis.published, analysis.candidates[0].effect
    assert effect is not None
    assert (told.ratio, told.low, told.high) == (effect.ratio, effect.low, effect.high)


def test_two_intervals_that_overlap_are_told_where_theirs_has_one() -> None:
    near, far = found(figure(1.5, low=1.0, high=2.5), figure(1.5, low=1.4, high=1.6)).published
    assert (near.overlap, far.overlap) == (True, False)


def test_any_two_variants_are_held_against_each_other_by_any_metric() -> None:
    [told] = found(figure(1.51, variant=HIGHER, against=FASTER, metric="throughput")).published
    assert told.ratio == pytest.approx(1.5, rel=0.1)
    assert told.place is PublishedPlace.INSIDE


def test_what_was_not_measured_says_why() -> None:
    [told] = found(figure(2.0), changes={FASTER: CAPPED}).published
    assert told.ratio is None and told.place is None
    assert told.cause
    assert inside_text(found(figure(2.0), changes={FASTER: CAPPED})).startswith("No published figure")


def test_every_form_shows_theirs_beside_ours_with_source_and_difference() -> None:
    analysis = found(figure(2.0), figure(40.0, source="Others", year=2021, differs=""))
    for form in in_every_form(run.document(analysis)):
        told = " ".join(form.replace("\\", "").split())
        assert "1 of 2 published figures inside our interval" in told
        for words in ("inside our interval", "outside, above it", "Somebody, 2020: on a laptop; fewer rows."):
            assert words in told
    document = json.loads(as_json.render(analysis))
    assert [one["place"] for one in document["published"]] == ["inside", "above"]
    assert document["published"][0]["figure"]["source"] == "Somebody"


def test_a_study_without_published_figures_says_nothing_of_them() -> None:
    analysis = found()
    assert analysis.published == () and inside_text(analysis) == ""
    assert "published" not in json.loads(as_json.render(analysis))
    assert not any("Published figures" in form for form in in_every_form(run.document(analysis)))
