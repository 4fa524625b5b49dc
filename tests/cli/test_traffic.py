"""`dyno init workload`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.cli.traffic_cases import MORE
from tests.sql_logs.mysql_cases import SLOW_MARIADB as MARIADB


@pytest.fixture
def log(homes: Path) -> Path:
    path = homes / "slow.log"
    path.write_text("".join(MARIADB.splitlines(keepends=True)[:-2]) + MORE)
    return path


def test_each_digest_is_listed_with_its_share_and_what_became_of_it(log: Path) -> None:
    output = log.parent / "shop.toml"
    said = dyno("init", "workload", "--from", str(log), "-o", str(output))
    assert said.returncode == 0, said.stderr
    text = " ".join(said.stdout.split())
    assert "4 66.7 % 40 % update_1, writes" in text
    assert "no: it is about the" in text and "no statements: 1 command Quit" in text
    assert "2 transactions for 83.3 % of the statements" in text and "1 of them writes" in text
    assert "choice('n0', 'n1', 'n2', 'n3')" in output.read_text()


def test_a_limit_leaves_out_what_took_least(log: Path) -> None:
    made = (
        "init",
        "workload",
        "--from",
        str(log),
        "--limit",
        "1",
        "--json",
        "-o",
        str(log.parent / "shop.toml"),
    )
    said = dyno(*made)
    require_valid("init-workload", said.stdout)
    why = {row["digest"]: row["why_not"] for row in json.loads(said.stdout)["digests"]}
    assert why["SELECT name FROM customer WHERE id = ?"] == "more digests than --limit"


@pytest.mark.parametrize(
    ("text", "output", "said"),
    [
        (MARIADB, "shop.sql", "does not end in .toml"),
        (MARIADB, "there.toml", "is there already"),
        ("nothing\n", "shop.toml", "is no log that Dyno knows"),
        (
            MARIADB.replace("SELECT name", "SHOW name"),
            "shop.toml",
            "holds no statement that a script can draw",
        ),
    ],
)
def test_what_cannot_be_is_refused(homes: Path, text: str, output: str, said: str) -> None:
    (homes / "there.toml").touch()
    (homes / "slow.log").write_text(text)
    assert said in complaint("init", "workload", "--from", str(homes / "slow.log"), "-o", str(homes / output))
    assert not (homes / "shop.toml").exists()
