"""The acts beside a load in a study: what is read, and each mistake with its line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Arrangement, Study, parse_study
from dbdyno.study.soak import Meanwhile, acts_with
from dbdyno.study.trials import phases_of
from tests.study.catalogue import CATALOGUE

KNOWN = replace(
    CATALOGUE, layers={**CATALOGUE.layers, "meanwhile": lambda *_: []}, sessions=frozenset({"postgresql"})
)
TEXT = """\
engine = "postgresql"
[workload]
name = "tpcb"
duration = "20s"
[[meanwhile]]
name = "index"
at = "10s"
sql = "CREATE INDEX a ON b (c)"
[[meanwhile]]
name = "backup"
at = "5s"
command = "pg_basebackup -D ${folder}/base"
[factors]
"meanwhile.index" = ["", "CREATE INDEX CONCURRENTLY a ON b (c)"]
"""


def read(text: str) -> Study:
    return parse_study(text.encode(), KNOWN)


def test_acts_come_in_the_order_of_their_beginnings_and_levels_replace_their_texts() -> None:
    study = read(TEXT)
    backup = Meanwhile(name="backup", at_s=5.0, command="pg_basebackup -D ${folder}/base")
    index = Meanwhile(name="index", at_s=10.0, sql="CREATE INDEX a ON b (c)")
    assert study.meanwhile == (backup, index)
    baseline, other = ({"meanwhile.index": level} for level in study.factors[0].levels)
    assert acts_with(study.meanwhile, baseline) == (backup,), "an empty level does nothing"
    assert acts_with(study.meanwhile, other) == (
        backup,
        index.but(sql="CREATE INDEX CONCURRENTLY a ON b (c)"),
    )
    assert acts_with(study.meanwhile, {}) == (backup, index)


def test_a_load_with_acts_is_one_piece_however_trials_are_arranged() -> None:
    [phase] = phases_of(read(TEXT).but(arrangement=Arrangement.SIDE_BY_SIDE))
    assert (phase.slices, phase.acts) == (None, True)
    plain = read(TEXT.partition("[[meanwhile]]")[0] + '[factors]\n"config.a" = [1, 2]\n')
    assert not plain.meanwhile and not phases_of(plain)[0].acts


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('at = "10s"', 'at = "20s"', 7, "the load is over after 20 s"),
        ('at = "10s"', 'at = "4s"', 7, "`at`: cannot be"),
        ('at = "10s"\n', "", 5, "`at` is missing"),
        ('sql = "CREATE INDEX a', 'command = "x"\nsql = "CREATE INDEX a', 8, "has both `sql` and `command`"),
        ('sql = "CREATE INDEX a ON b (c)"\n', "", 5, "has neither `sql` nor `command`"),
        ('name = "backup"', 'name = "index"', 10, '"index" is the name of two acts'),
        ('"meanwhile.index" =', '"meanwhile.indx" =', 14, "`meanwhile.indx` is a level of an act"),
        ('engine = "postgresql"', 'engine = "firebird"', 8, "`sql` needs a session beside the load"),
        ('sql = "CREATE', 'sqll = "CREATE', 8, "unknown key `sqll`"),
        ("[factors]", '[goal]\nresponse = "dip_s"\n[factors]', 0, ""),
        ("[factors]", "[soak]\n[factors]", 13, "[soak] and [[meanwhile]] exclude each other"),
        ("[factors]", "[restarts]\nkills = 1\n[factors]", 13, "[restarts] and [[meanwhile]] exclude"),
        ('name = "tpcb"', 'name = "tpcb"\nschedule = "0s:10,5s:20"', 4, "exclude each other"),
        ('engine = "postgresql"', 'slice = "1s"\nengine = "postgresql"', 1, "`slice` and [[meanwhile]]"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int, told: str) -> None:
    text = TEXT.replace(old, new, 1)
    if not told:
        # A backup goes on in every variant, so there is a dip to be told of.
        assert read(text).goal.response == "dip_s"
        return
    with pytest.raises(StudyError) as refused:
        read(text)
    found = [(one.line, one.message) for one in refused.value.mistakes]
    assert any(told in message and at == line for at, message in found), found


def test_a_response_of_acts_needs_an_act_in_each_variant() -> None:
    alone = TEXT.replace(
        '[[meanwhile]]\nname = "backup"\nat = "5s"\ncommand = "pg_basebackup -D ${folder}/base"\n', ""
    )
    asked = alone + '[goal]\nresponse = "dip_lost_s"\n'
    with pytest.raises(StudyError) as refused:
        read(asked)
    assert "some variant does nothing" in refused.value.mistakes[0].message
    nothing = asked.replace(
        '[[meanwhile]]\nname = "index"\nat = "10s"\nsql = "CREATE INDEX a ON b (c)"\n', ""
    )
    with pytest.raises(StudyError) as refused:
        read(nothing.replace('"meanwhile.index" = ["", ', '"config.a" = ["a", '))
    assert "and nothing is" in refused.value.mistakes[0].message
