"""Long names are cut without a loss."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import dbdyno
from dbdyno.findings import analyse
from dbdyno.frozen import listed
from dbdyno.report.words import naming
from dbdyno.study.front import FrontProgram
from tests.analyse.factory import a_run, a_study, records_of


@given(st.text("abc._=/, ", max_size=80), st.integers(5, 40))
def test_wrapping_loses_nothing(name: str, width: int) -> None:
    assert naming.wrapped(name, width, indent="").replace("\n", "").replace(" ", "") == name.replace(" ", "")


def test_a_layer_is_left_out_where_it_is_clear_and_room_is_short() -> None:
    names = ["baseline", "config.page_cache=64k", "config.page_cache=64k, memory.malloc=a.b=c"]
    assert naming.fitting(names, 60) == names
    assert naming.fitting(names, 20) == ["baseline", "page_cache=64k", "page_cache=64k, malloc=a.b=c"]
    twice = ["cpu.size=1, config.size=2", "memory.thp=always"]
    assert naming.fitting(twice, 10) == twice


def test_the_changes_of_a_candidate_are_told_without_layers_too() -> None:
    names = ["config.pool = 1G and memory.thp = off", "config.pool = 2G", 'config.mode = "" , x.y=1']
    assert naming.fitting(names, 10) == ["pool = 1G and thp = off", "pool = 2G", 'mode = "" , y=1']


def test_an_application_in_front_is_named_with_the_load() -> None:
    study = a_study()
    plain = naming.workload_text(analyse(study, a_run(study), records_of(study)))
    own = {"keystone": FrontProgram(command="served", ready="GET /", workers=2)}
    fronted = study.but(fronts=own, settings={"front.kind": "keystone"})
    through = naming.workload_text(analyse(fronted, a_run(fronted), records_of(fronted)))
    assert through == f"{plain}, through keystone with 2 workers"


def test_a_name_with_a_comma_is_never_taken_for_two() -> None:
    assert listed([]) == "" and listed(["a"]) == "a" and listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a=1, b=2", "a=3"]) == "a=1 + b=2 and a=3"
    assert listed(["a=x,y, b.c-d=2"]) == "a=x,y + b.c-d=2"
    assert listed(['a="x,y", b=2', "a=3"]) == 'a="x,y" + b=2 and a=3'
    assert listed(["one, two", "three"]) == "“one, two” and “three”"
    assert listed(["one, two"]) == "one, two"
    assert listed(["a", "b"], behind=[" (1.5)", ""]) == "a (1.5) and b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert listed(["a", "b", "c"], 2) == "a, b and c"


MARKED = {
    "report/words/naming.py": "it puts the mark behind a name",
    "report/words/verdicts.py": "it puts the mark behind a verdict",
    "report/words/search.py": "a sentence about what the winner gives up",
    "report/words/remarks.py": "the verdict's column, and the museum",
    "report/words/answer.py": "the mark behind each of several names",
    "findings/junit.py": "the verdict of a test case",
    "findings/compare.py": "two hosts' variants as one name",
    "findings/gap.py": "a share's factor",
    "findings/gate.py": "the verdict of a gate",
    "findings/factors.py": "a sign in a cell, and what it means",
    "findings/matrix.py": "the verdict's cell",
    "findings/museum.py": "an exhibit of another run",
    "findings/trend.py": "the verdict's cell over days",
    "findings/trial.py": "what each variant of a study gives up",
}
"""Who reads what a variant gives up, and why it is no second way to name a variant."""


def test_one_place_names_a_variant_in_an_answer() -> None:
    package = Path(dbdyno.__file__).parent
    for folder in ("report", "serve"):
        for file in sorted((package / folder).rglob("*.py")):
            place = file.relative_to(package).as_posix()
            for fault in names_by_itself(ast.parse(file.read_text()), place):
                raise AssertionError(f"{place}: {fault}: naming.variant_text and naming.called do that")


def names_by_itself(tree: ast.AST, place: str) -> list[str]:
    """Where what is given up is read outside of the known places, and where a figure writes a bare name."""
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "gives_up" and place not in MARKED:
            faults.append(f"line {node.lineno} reads what is given up")
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("clean", "safe.clean"):
            named = ast.unparse(node.args[0]).endswith(("variant.name", ".variant"))
            if named and place.startswith("report/figures/"):
                faults.append(f"line {node.lineno} writes the name of a variant")
    return faults


def test_another_way_to_name_a_variant_is_refused() -> None:
    assert names_by_itself(ast.parse("safe.clean(variant.name)"), "report/figures/new.py")
    assert names_by_itself(ast.parse("f'{one.name} loses {one.gives_up}'"), "findings/new.py")
