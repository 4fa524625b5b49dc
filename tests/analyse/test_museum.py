"""The answer: who helped most, and who is only not told from the others."""

from __future__ import annotations

import pytest

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Answer
from dbdyno.report.words.answer import headline
from tests.analyse.factory import a_run, a_study, records_of

NAMES = [f"config.a={index}" for index in range(1, 6)]


def answered(ratios: dict[str, float], seed: int = 1) -> tuple[Answer, str]:
    study = a_study({"config.a": list(range(6))}, blocks=8)
    analysis = analyse(study, a_run(study), records_of(study, ratios, seed=seed))
    return analysis.answer, headline(analysis)


@pytest.mark.parametrize("seed", range(6))
def test_of_five_equal_candidates_none_is_crowned(seed: int) -> None:
    answer, said = answered(dict.fromkeys(NAMES, 1.3), seed)
    assert len(answer.faster) == 5 and answer.best is None
    assert len(answer.level) > 1 and answer.level[0] == answer.faster[0]
    assert "helped most" not in said and "cannot tell them apart" in said


def test_the_one_that_is_told_from_all_others_helped_most() -> None:
    answer, said = answered(dict.fromkeys(NAMES, 1.3) | {"config.a=3": 1.6})
    assert (answer.best, answer.level) == ("config.a=3", ())
    assert said.startswith("config.a=3 helped most")


def test_the_only_one_that_helped_helped_most() -> None:
    assert answered({"config.a=2": 1.5})[0].best == "config.a=2"
