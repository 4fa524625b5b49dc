"""What records say of engines that are compared."""

from __future__ import annotations

from dbdyno.analyse.engines import engines_compared, ranked_defaults
from dbdyno.analyse.found import DefaultChanged
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.records.record import Evidence, Outcome, Reading, Record
from dbdyno.study import Factor, Study, Workload
from dbdyno.study.nouns import Reference
from tests.analyse.factory import a_study, changed, counted, records_of

LEVELS = ("mariadb@10.11", "mariadb@11.8", "postgresql@17")
STUDY = Study(
    title="Should I upgrade?",
    engine=Reference("mariadb", "10.11"),
    workload=Workload(name="tpcb"),
    factors=(Factor(name=ENGINE_FACTOR, levels=LEVELS),),
)


def _record(level: str, rows: str = "t: 1 rows, 0a", image: int = 0, **defaults: str) -> Record:
    held = Reading(value=level, source=f"/proc/PID/maps holds {level}")
    return Record(
        run="r",
        trial=LEVELS.index(level),
        block=0,
        position=0,
        variant=level,
        levels={ENGINE_FACTOR: level},
        host="h",
        started_unix_s=0.0,
        finished_unix_s=1.0,
        outcome=Outcome.MEASURED,
        engine_version=level.partition("@")[2],
        reset={"image": image, "rows": rows},
        evidence=(Evidence(factor=ENGINE_FACTOR, requested=level, effective=held, in_effect=True),),
        defaults=defaults or None,
    )


def test_a_study_of_one_engine_has_nothing_to_compare() -> None:
    assert engines_compared(STUDY.but(factors=()), []) is None


def test_each_engine_is_told_with_what_proves_it_and_one_that_never_ran_without() -> None:
    found = engines_compared(STUDY, [_record("mariadb@10.11"), _record("mariadb@11.8")])
    assert found is not None and found.products == 2
    assert [(one.version, one.proof) for one in found.ran] == [
        ("10.11", "/proc/PID/maps holds mariadb@10.11"),
        ("11.8", "/proc/PID/maps holds mariadb@11.8"),
        ("", ""),
    ]
    assert found.same_rows == ("mariadb@11.8",)


def test_compilers_are_held_against_each_other_where_both_are_known() -> None:
    compilers = ("gcc (Debian) 12.2.0", "gcc (Ubuntu) 7.5.0", "")
    records = [_record(level).but(compiler=one) for level, one in zip(LEVELS, compilers, strict=True)]
    found = engines_compared(STUDY, records)
    assert found is not None and found.compiled_apart == {"mariadb@11.8": "gcc (Ubuntu) 7.5.0"}
    same = engines_compared(STUDY, [one.but(compiler=compilers[0]) for one in records])
    assert same is not None and same.compiled_apart == {}
    unknown = engines_compared(STUDY, [records[0].but(compiler=""), *records[1:]])
    assert unknown is not None and unknown.compiled_apart == {}


def test_rows_that_differ_in_one_image_are_found() -> None:
    records = [
        _record("mariadb@10.11"),
        _record("mariadb@11.8"),
        _record("mariadb@10.11", image=1),
        _record("mariadb@11.8", "t: 1 rows, 0b", image=1),
    ]
    found = engines_compared(STUDY, records)
    assert found is not None and found.same_rows == ()
    [other] = found.other_rows
    assert (other.level, other.image, other.before, other.after) == (
        "mariadb@11.8",
        1,
        "t: 1 rows, 0a",
        "t: 1 rows, 0b",
    )


def test_how_data_were_taken_over_is_told_for_each_image() -> None:
    def upgraded(image: int, upgrade_s: float) -> Record:
        record = _record("mariadb@11.8", image=image)
        return record.but(reset={**record.reset, "upgraded_by": "mariadb-upgrade", "upgrade_s": upgrade_s})

    records = [_record("mariadb@10.11"), upgraded(1, 2.5), upgraded(0, 2.25), upgraded(0, 2.25)]
    found = engines_compared(STUDY, records)
    assert found is not None
    assert [(one.upgraded_by, one.upgrade_s) for one in found.ran] == [
        ("", ()),
        ("mariadb-upgrade", (2.25, 2.5)),
        ("", ()),
    ]


def test_images_of_different_seeds_are_never_held_against_each_other() -> None:
    found = engines_compared(STUDY, [_record("mariadb@10.11"), _record("mariadb@11.8", "t: 9 rows", image=1)])
    assert found is not None and not found.same_rows and not found.other_rows


def test_defaults_are_compared_within_a_product_alone_and_without_versions_and_places() -> None:
    records = [
        _record("mariadb@10.11", version="10.11", datadir="/a", gone="1", kept="ON", size="16M"),
        _record("mariadb@11.8", version="11.8", datadir="/b", added="2", kept="ON", size="32M"),
        _record("postgresql@17", size="1"),
    ]
    found = engines_compared(STUDY, records)
    assert found is not None
    [beside] = found.defaults
    assert (beside.level, beside.compared) == ("mariadb@11.8", 4)
    assert beside.changed == (
        DefaultChanged(name="added", before=None, after="2"),
        DefaultChanged(name="gone", before="1", after=None),
        DefaultChanged(name="size", before="16M", after="32M"),
    )


OLD = {"aria_x": "1", "innodb_snapshot_isolation": "OFF", "innodb_flush_method": "fsync", "a_note": "0"}
YOUNG = {"aria_x": "2", "innodb_snapshot_isolation": "ON", "innodb_flush_method": "O_DIRECT", "a_note": "1"}


def _measured(**of_tally: dict[str, dict[str, int]]) -> list[Record]:
    """A trial of each version, with the errors that its load had."""
    study = a_study({ENGINE_FACTOR: list(LEVELS[:2])}, blocks=1)
    records = {str(one.levels[ENGINE_FACTOR]): one for one in records_of(study)}
    defaults = dict(zip(LEVELS, (OLD, YOUNG), strict=False))
    return [
        changed(counted(records[level], **told), defaults=defaults[level]) for level, told in of_tally.items()
    ]


def test_defaults_on_which_a_failing_part_rests_come_first() -> None:
    """MariaDB 11.8 began to refuse with 1020 what 10.11 let through, among seventy changes that do not
    matter."""
    failing = {"errors": {"1020 record changed": 455}}
    found = engines_compared(STUDY, _measured(**{LEVELS[0]: {}, LEVELS[1]: failing}))
    assert found is not None
    first, second, *others = ranked_defaults(found.defaults[0])
    assert (first.name, first.seen) == ("innodb_snapshot_isolation", "1020 record changed")
    assert (second.name, second.seen) == ("innodb_flush_method", "")
    assert [one.name for one in others] == ["a_note", "aria_x"]


def test_without_a_difference_in_errors_no_default_is_told_to_be_behind_one() -> None:
    failing = {"errors": {"1020 record changed": 455}}
    found = engines_compared(STUDY, _measured(**{LEVELS[0]: failing, LEVELS[1]: failing}))
    assert found is not None and {one.seen for one in found.defaults[0].changed} == {""}
