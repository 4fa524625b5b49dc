"""Long names are cut without a loss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse import analyse
from dbdyno.report.words import naming
from dbdyno.study.nouns import Application
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


def test_an_application_in_front_is_named_with_the_load() -> None:
    study = a_study()
    plain = naming.workload_text(analyse(study, a_run(study), records_of(study)))
    fronted = study.model_copy(update={"application": Application(name="keystone", workers=2)})
    through = naming.workload_text(analyse(fronted, a_run(fronted), records_of(fronted)))
    assert through == f"{plain}, through keystone with 2 workers"
