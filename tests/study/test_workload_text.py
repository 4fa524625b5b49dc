"""A workload and its options in one text."""

from __future__ import annotations

import pytest

from dbdyno.study.values import Fault
from dbdyno.study.workload_text import CLIENTS, filled, parse_workload
from tests.study.catalogue import CATALOGUE

OFFERS = CATALOGUE.workloads


def test_a_text_names_a_workload_and_some_of_its_options() -> None:
    text = "point_select table_size=500 exponent=1.5 prepared=false clients=3"
    offer, given = parse_workload(text, OFFERS, own=(CLIENTS,))
    assert offer.name == "point_select"
    assert given == {"table_size": 500, "exponent": 1.5, "prepared": False, "clients": 3}


def test_what_a_text_leaves_out_is_the_studys_or_the_default() -> None:
    offer, given = parse_workload("point_select exponent=1.5", OFFERS)
    options = filled(offer, given, {"table_size": 7, "scale": 3, "exponent": 0.1})
    assert options == {"table_size": 7, "exponent": 1.5, "prepared": True, "note": ""}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", '"" is no workload', "tpcb"),
        ("tpcz", '"tpcz" is no workload', "did you mean `tpcb`?"),
        ("of", '"of" is no workload', "did you mean `off`?"),
        ("tpcb sclae=2", 'the workload tpcb has no option "sclae"', "did you mean `scale`?"),
        ("tpcb scale", '"scale" is no option of the workload tpcb', "read_write tables=4"),
        ("tpcb scale=1 scale=2", "has the option `scale` twice", "keep one"),
        ("tpcb scale=many", '`scale`: "many" is no number', "read_write tables=4"),
        ("tpcb variant=X", '`variant`: cannot be "X"', "full"),
        ("tpcb clients=2", 'the workload tpcb has no option "clients"', "scale"),
    ],
)
def test_a_mistake_is_told_once_with_what_would_be_right(text: str, message: str, hint: str) -> None:
    with pytest.raises(Fault) as caught:
        parse_workload(text, OFFERS, others=("off",))
    assert message in caught.value.message and hint in caught.value.hint


def test_an_option_of_the_study_must_be_one_that_the_workload_can_have() -> None:
    offer, given = parse_workload("tpcb", OFFERS)
    with pytest.raises(Fault) as caught:
        filled(offer, given, {"scale": 0})
    assert "`scale`: cannot be 0" in caught.value.message
