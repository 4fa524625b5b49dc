"""What a study needs and is not here is known from the study alone."""

from __future__ import annotations

from pathlib import Path

from dbdyno.begin.engines import needed_by
from dbdyno.begin.study_file import study_at
from tests.cli.calls import complaint, dyno

ROOT = Path(__file__).parents[2]


def test_a_study_of_platforms_needs_each_engine_for_each_architecture(homes: Path) -> None:
    found = [one.words for one in needed_by(study_at(ROOT / "studies" / "port.toml"))]
    assert len(found) == 12
    assert found[0] == "postgresql@15 --platform amd64" and found[-1] == "sqlite@3.40 --platform s390x"


def test_engines_that_are_here_and_paths_are_not_fetched(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text('engine = "sqlite"\nworkload.name = "tpcb"\nfactors."config.mmap_size" = [0, "64M"]\n')
    assert dyno("engines", "fetch", "--study", str(path)).stdout == "all that the study needs is here\n"
    assert "no engine was named" in complaint("engines", "fetch")
    path.write_text(
        'workload.name = "tpcb"\nfactors.engine = ["sqlite", "mariadb@11.8", "mariadb:/no/such"]\n'
    )
    assert [one.words for one in needed_by(study_at(path))] == ["mariadb@11.8"]
