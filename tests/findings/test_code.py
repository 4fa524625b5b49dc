"""Two builds beside each other in each form, and how much of the baseline's code each build of a run has."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse.code import CodeDifference, compare_code
from dbdyno.findings import analyse, code
from dbdyno.records.binary import Code, Datum
from dbdyno.report.renderers import html, markdown, terminal
from tests.analyse.builds import FASTEST, INERT, builds, code_beside
from tests.analyse.code_cases import a_build, a_function
from tests.analyse.factory import a_run, a_study, records_of
from tests.findings.code_cases import fact, found
from tests.report.browser import Outline
from tests.report.cases import HOSTILE, placebos
from tests.report.forms import on_terminal


def printed(shown: CodeDifference) -> str:
    text = on_terminal(lambda console: terminal.render(code.document(shown), console), 110)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def page_of(shown: CodeDifference) -> str:
    return html.render(code.document(shown))


def written(shown: CodeDifference) -> str:
    return markdown.render(code.document(shown))


def test_as_printed(snapshot: SnapshotAssertion) -> None:
    assert printed(found()) == snapshot


def test_every_form_says_how_many_functions_differ() -> None:
    page, text = page_of(found()), written(found())
    for form in (page, text, printed(found())):
        assert "31 functions of 71 differ" in form.replace("**", "") and "AVX2" in form
    assert page.count("changed_") - page.count("<wbr>changed_") >= 30, "a page shows more than a terminal"
    assert "11 further functions" in text and "changed\\_29" in text.replace("changed_29", "changed\\_29")


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (a_build(a_function("one")), a_build(a_function("one")), "Inert: the code and data are the same"),
        (
            a_build(a_function("one")),
            a_build(a_function("one", constants="other")),
            "The code is the same. 1 function with other constants, 0 objects with other values.",
        ),
    ],
    ids=["inert", "constants"],
)
def test_the_sentence_says_what_is_the_same(left: Code, right: Code, said: str) -> None:
    assert code.sentence(compare_code(left, right)).startswith(said)


def test_functions_that_either_build_has_alone_are_added_where_they_have_names() -> None:
    left = a_build(a_function("same"), a_function("gone"))
    right = a_build(a_function("same"), a_function("added"), a_function("more"))
    assert code.sentence(compare_code(left, right)).startswith("3 functions of 4 differ")
    bare = [fact(a_build(a_function("", "a"), a_function("", one)), named=False) for one in "bc"]
    assert code.sentence(compare_code(*bare)).startswith("1 function of 2 differ")


def test_data_that_differ_are_named_where_no_function_does() -> None:
    left, right = (a_build(a_function("one"), data=(Datum("sizes", 4, value),)) for value in (b"1", b"2"))
    assert compare_code(left, right).changes == ()
    for form in (printed, page_of, written):
        assert "Constants and variables that differ: sizes" in form(compare_code(left, right))


def test_a_stripped_build_is_said_to_be_one() -> None:
    bare = fact(a_build(a_function("")), named=False)
    assert "functions cannot be told by name" in " ".join(printed(compare_code(bare, bare)).split())


def test_text_from_a_file_steers_nothing() -> None:
    hostile = fact(a_build(a_function(HOSTILE)), path=HOSTILE, build_id=HOSTILE, compilers=(HOSTILE,))
    shown = compare_code(hostile, a_build(a_function("one"), data=(Datum(HOSTILE, 1, b""),)))
    page, text = page_of(shown), written(shown)
    assert "<script>alert" not in page and "alert(1)" in page
    attributes = [one for _, one in Outline(page).elements]
    assert all((one.get("href") or "#part-1").startswith("#part-") and "src" not in one for one in attributes)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in rendered
    assert all("\x1b" not in each and "\u202e" not in each for each in (page, text, printed(shown)))


def test_every_build_says_how_many_functions_it_changed() -> None:
    rows = {row[0]: row[1:] for row in code.build_rows(placebos())}
    assert rows[FASTEST] == ("3 of 12,431", "0", "+0.012 %", "40")
    assert rows[INERT] == ("0 of 12,431", "0", "the same", "0")
    assert rows["build.layout=1"][3] == "12,400"
    assert "baseline" not in rows and code.build_notes(placebos()) == [code.BUILDS_METHOD]


def test_a_stripped_build_is_named() -> None:
    study, records = builds()
    bare = [
        one.model_copy(update={"code": code_beside(named=False)}) if one.variant == FASTEST else one
        for one in records
    ]
    analysis = analyse(study, a_run(study), bare)
    assert code.build_notes(analysis)[1].startswith(f"{FASTEST}: a file is stripped")


def test_a_run_without_builds_has_no_table() -> None:
    study = a_study()
    assert code.compared_builds(analyse(study, a_run(study), records_of(study))) == []
