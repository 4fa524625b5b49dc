"""The section [soak]: what it says of rungs and phases, and every mistake in it with its line."""

from __future__ import annotations

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study, sections
from dbdyno.study.soak import SMOKE, Act, Disturbance, Soak
from dbdyno.study.trials import CONTROL, SUSTAINED, rung_of
from tests.study.catalogue import CATALOGUE, that_may_only_read

STUDY = """\
engine = "mariadb"
[workload]
name = "tpcb"
warmup = "3s"
[soak]
"""


def soak_of(section: str) -> Soak:
    found = parse_study(f"{STUDY}{section}".encode(), CATALOGUE).soak
    assert found is not None
    return found


def study() -> Study:
    return parse_study(STUDY.encode(), CATALOGUE)


def test_a_section_of_its_own_says_all() -> None:
    found = soak_of(
        'clients = [10, 20]\nduration = "2m"\nopening = "5s"\ndisturb = ["churn"]\ndisturbed = "20s"\n'
        'control = "0s"\nbeside = ["point_select"]\nends = ["kill", "stop"]\n'
        'horizon = "12h"\nrise = "5%"\n'
    )
    assert found == Soak(
        clients=(10, 20),
        duration_s=120.0,
        opening_s=5.0,
        disturb=(Disturbance.CHURN,),
        disturbed_s=20.0,
        control_s=0.0,
        beside=("point_select",),
        ends=(Act.KILL, Act.STOP),
        horizon_s=43_200.0,
        rise=0.05,
    )


def test_an_empty_section_takes_the_defaults_and_needs_no_factors() -> None:
    assert soak_of("") == Soak()
    assert study().factors == ()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("clients = [20, 10]", "is no ladder: 20, 10"),
        ("clients = []", "is no ladder: empty"),
        ("clients = 5", "must be a list"),
        ('rise = "0%"', "cannot be"),
        ('horizon = "2d"', "is no duration"),
        ('duration = "0.1s"', "cannot be"),
        ('disturb = ["churm"]', "cannot be"),
        ('disturb = ["churn", "churn"]', "twice"),
        ('beside = ["no_workload"]', "cannot be"),
        ('ends = ["explode"]', "cannot be"),
        ("rungs = 3", "unknown key"),
        ('beside = ["tpcb"]', "would drop the tables of the load"),
    ],
)
def test_a_mistake_is_told_with_its_line(line: str, told: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_study(f"{STUDY}{line}\n".encode(), CATALOGUE)
    [mistake] = refused.value.mistakes
    assert mistake.line == STUDY.count("\n") + 1
    assert told in mistake.message


def test_a_power_cut_needs_a_workload_that_keeps_a_ledger() -> None:
    reading = STUDY.replace("tpcb", "point_select")
    with pytest.raises(StudyError) as refused:
        parse_study(f'{reading}ends = ["kill", "cut", "tear"]\n'.encode(), CATALOGUE)
    [mistake] = refused.value.mistakes
    assert mistake.line == STUDY.count("\n") + 1
    assert "a power cut takes along is not known under point_select" in mistake.message
    parse_study(f'{reading}ends = ["kill", "stop"]\n'.encode(), CATALOGUE)


def test_a_power_cut_needs_a_load_that_writes() -> None:
    catalogue = that_may_only_read(CATALOGUE)
    reading = STUDY.replace('"3s"\n', '"3s"\nselect_only = true\n')
    with pytest.raises(StudyError) as refused:
        parse_study(f'{reading}ends = ["cut"]\n'.encode(), catalogue)
    [mistake] = refused.value.mistakes
    assert "not known under tpcb that only reads" in mistake.message
    parse_study(f'{reading}ends = ["stop"]\n'.encode(), catalogue)


def test_from_the_first_power_cut_on_transactions_are_known_one_by_one() -> None:
    soak = Soak(clients=(4,), ends=(Act.KILL, Act.CUT, Act.TEAR, Act.STOP))
    ends = rung_of(soak, study(), 0)[-4:]
    assert [(phase.then, phase.ledger) for phase in ends] == [
        (Act.KILL, False), (Act.CUT, True), (Act.TEAR, True), (Act.STOP, True),
    ]  # fmt: skip
    assert [phase.cuts_power for phase in ends] == [False, True, True, False]
    assert all(phase.optional and phase.clients == 4 for phase in ends)


def test_without_a_ledger_a_rung_needs_no_volume() -> None:
    other = parse_study(STUDY.replace("tpcb", "point_select").encode(), CATALOGUE)
    phases = rung_of(SMOKE, other, 0)
    assert {phase.then for phase in phases} >= {Act.CUT, Act.TEAR}
    assert not any(phase.ledger or phase.cuts_power for phase in phases)


def test_how_a_study_is_soaked_does_not_change_what_it_asks() -> None:
    other = parse_study(f"{STUDY}clients = [7]\n".encode(), CATALOGUE)
    assert other.meaning == study().meaning and other.digest != study().digest


def test_a_rung_opens_disturbs_sustains_rests_and_ends() -> None:
    soak = Soak(clients=(10, 200), disturb=(Disturbance.SLOW,), beside=("point_select",))
    phases = rung_of(soak, study(), 1)
    assert [phase.name for phase in phases] == [
        "storm", "gradual", SUSTAINED, "slow", "point_select", CONTROL, "stop",
    ]  # fmt: skip
    assert {phase.clients for phase in phases} == {200}
    by_name = {phase.name: phase for phase in phases}
    assert by_name["storm"].ramp_s == 0.0 and by_name["gradual"].ramp_s == soak.opening_s
    assert [guest.clients for guest in by_name["slow"].guests] == [20]
    assert by_name[SUSTAINED].warmup_s == 3.0 and by_name[SUSTAINED].duration_s == soak.duration_s
    assert by_name[CONTROL].rests and [guest.clients for guest in by_name[CONTROL].guests] == [200]
    assert by_name["stop"].then is Act.STOP and not by_name["stop"].watched
    assert all(phase.watched for phase in phases[:-1])


def test_an_engine_in_the_load_process_has_no_guests() -> None:
    phases = rung_of(Soak(clients=(4,)).within_process(), study(), 0)
    assert [phase.guests for phase in phases] == [()] * len(phases)


def test_a_smoke_soak_takes_less_than_five_minutes_of_load() -> None:
    phases = rung_of(SMOKE, study(), 0)
    assert [phase.then for phase in phases if phase.then] == [Act.KILL, Act.CUT, Act.TEAR, Act.STOP]
    assert sum(phase.takes_s for phase in phases) < 200.0


WITHOUT = 'engine = "mariadb"\n[workload]\nname = "tpcb"\n'


@pytest.mark.parametrize(
    ("text", "whole", "short"),
    [
        (f"{STUDY}clients = [10, 20]", (10, 20), (10,)),
        (STUDY, Soak().clients, SMOKE.clients[:1]),
        (f"{WITHOUT}clients = 7", (7,), (7,)),
        (f"{WITHOUT}clients = 7\n[soak]\nclients = [30, 40]", (30, 40), (30,)),
        (f"{WITHOUT}clients = 7\n[soak]\nduration = '5m'", (7,), (7,)),
        (f"{WITHOUT}clients = 1", (1,), (1,)),
    ],
)
def test_the_clients_that_a_study_names_hold(
    text: str, whole: tuple[int, ...], short: tuple[int, ...]
) -> None:
    factors = "" if "[soak]" in text else '\n[factors]\n"config.a" = [1, 2]'
    read = parse_study((text + factors).encode(), CATALOGUE)
    assert sections.soak_of(read, smoke=False).clients == whole
    assert sections.soak_of(read, smoke=True).clients == short
