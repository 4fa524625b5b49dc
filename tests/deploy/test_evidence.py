"""The page of a recipe."""

from __future__ import annotations

from dbdyno.analyse.model import Verdict
from dbdyno.deploy.deployment import DeployedBuild
from dbdyno.deploy.evidence import evidence_page
from dbdyno.engines.firebird import FIREBIRD
from dbdyno.engines.mariadb import MARIADB
from dbdyno.frozen import Level
from dbdyno.obtain.source.build import Flags
from tests.deploy.recipes import recipe
from tests.report.cases import HOSTILE


def test_a_page_says_what_changes_by_how_much_and_where_that_was_measured() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)}, {"config.sync_binlog": 1})
    told = evidence_page(made, {}, "MariaDB")
    assert told.startswith("# MariaDB 11.8.6-MariaDB: 1 change, 1.")
    assert "| `config.innodb_io_capacity = 2000` | `200` | 1." in told
    assert "| the server's settings |" in told
    assert f"run `{made.run}`" in told and "2025-10-09" in told
    assert "How many pages a second are written in the background" in told
    assert "99th percentile latency" in told
    assert "| `config.sync_binlog` | `1` |  |" in told and "The recipe leaves them" in told
    assert "This recipe gives up" not in told and "To do by hand" not in told


def test_a_run_that_tells_no_shares_says_so() -> None:
    two = {"config.innodb_io_capacity": (200, 2000), "config.sync_binlog": (0, 1)}
    told = evidence_page(recipe(MARIADB, two), {}, "MariaDB")
    assert told.count("not measured alone") == 2
    assert "does not tell what each change gains by itself" in told


def test_what_is_lost_stands_on_top_in_transactions() -> None:
    made = recipe(MARIADB, {"config.innodb_flush_log_at_trx_commit": (1, 0)})
    told = evidence_page(made.but(throughput_per_s=4321.0), {}, "MariaDB")
    first = told.split("\n\n")[1]
    assert first.startswith("> **This recipe gives up durability.**")
    assert "`config.innodb_flush_log_at_trx_commit = 0`" in first
    assert "4,321 transactions" in first


def test_a_page_of_a_variant_that_is_not_faster_claims_no_gain() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})
    told = evidence_page(made.but(verdict=Verdict.INCONCLUSIVE), {}, "MariaDB")
    assert told.startswith("# MariaDB 11.8.6-MariaDB: 1 change, inconclusive\n")


def test_what_the_measured_server_gave_up_stands_beside_its_level() -> None:
    held = {"config.innodb_flush_log_at_trx_commit": 0}
    told = evidence_page(recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)}, held), {}, "MariaDB")
    assert "| `config.innodb_flush_log_at_trx_commit` | `0` | a commit can be lost" in told
    assert "This recipe gives up" not in told


def test_what_gives_up_integrity_is_not_counted_in_transactions() -> None:
    made = recipe(MARIADB, {"config.innodb_doublewrite": ("ON", "OFF")})
    told = evidence_page(made.but(throughput_per_s=4321.0), {}, "MariaDB")
    assert "> **This recipe gives up integrity.**" in told
    assert "4,321" not in told


def test_a_searchs_winner_tells_how_optimistic_the_search_was_and_what_a_share_is() -> None:
    two = {"config.innodb_io_capacity": (200, 2000), "config.sync_binlog": (0, 1)}
    made = recipe(MARIADB, two)
    changes = tuple(one.but(share=made.effect) for one in made.changes)
    update = {"taken_back": True, "optimism": 1.07, "changes": changes}
    told = evidence_page(made.but(**update), {}, "MariaDB")
    assert "the search's own ratio / the confirmed one: 1.07" in told
    assert "They need not multiply to the gain." in told


def test_the_build_and_what_is_left_to_do_are_told() -> None:
    build = DeployedBuild(
        key="ab12",
        words="gcc -O3 LTO full",
        source="Debian trixie, mariadb 11.8.6",
        patches=("one.patch 0123456789ab",),
        toolchain="gcc 12.2",
        flags=Flags(compile=("-O3", "-flto"), link=("-flto",)),
        build_id="feedface",
    )
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})
    told = evidence_page(made.but(build=build), {"file system": "mkfs.xfs DEVICE"}, "MariaDB")
    assert "`one.patch 0123456789ab`" in told and "`-O3 -flto -flto`" in told and "`feedface`" in told
    assert "- file system: `mkfs.xfs DEVICE`" in told
    assert "holds its recipe and its patches." in told
    trained = build.but(trained="tpcb")
    assert "and its profile." in evidence_page(made.but(build=trained), {}, "MariaDB")


def test_text_from_outside_stays_text() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})
    hostile = made.but(title=HOSTILE, variant=HOSTILE, host=HOSTILE)
    told = evidence_page(hostile, {HOSTILE: HOSTILE}, "MariaDB")
    assert "\x1b" not in told and "\nsecond line" not in told
    outside_of_code = "".join(part for part in told.split("`")[::2])
    assert "<script>" not in outside_of_code


def test_firebirds_flushes_that_wait_are_named_as_a_loss() -> None:
    factors: dict[str, tuple[Level, Level]] = {"config.MaxUnflushedWrites": (2, 1000)}
    unforced: dict[str, Level] = {"config.forced_writes": False}
    told = evidence_page(recipe(FIREBIRD, factors, unforced), {}, "Firebird").split("\n\n")[1]
    assert told.startswith("> **This recipe gives up durability.** `config.MaxUnflushedWrites = 1000`: ")
    # With forced writes every page write waits, whatever the other says.
    assert "gives up" not in evidence_page(recipe(FIREBIRD, factors), {}, "Firebird")
