"""vector_search against real servers: MariaDB and PostgreSQL with pgvector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbdyno.datasets import vectors
from dbdyno.datasets.vectors import VectorSet
from dbdyno.driver import _driver
from dbdyno.driver.tally import Acknowledged, Tally
from tests.datasets.vectors.conftest import Searching

pytestmark = pytest.mark.engine

SHAPE: dict[str, Any] = {
    "dataset": "", "k": 10, "vectors": 3_000, "dimensions": 32, "queries": 50, "clusters": 1,
    "intrinsic_dimension": 8, "noise": 0.1, "data_seed": 1, "m": 8, "ef": 60,
}  # fmt: skip


class Load:
    """A set of vectors on a server, and runs against it."""

    def __init__(self, server: Searching, **options: Any) -> None:
        self.url = server.url
        self.options = SHAPE | {"distance": "euclidean"} | options
        self.set: VectorSet = vectors.vector_set(self.options, lambda line: None)
        self.options |= {"dataset": str(self.set.folder)}

    def job(self, **options: Any) -> dict[str, Any]:
        return {
            "url": self.url, "workload": "vector_search", "options": self.options | options,
            "warmup_s": 0.1, "duration_s": 0.6, "clients": 2,
        }  # fmt: skip

    def prepare(self) -> dict[str, Any]:
        return dict(json.loads(_driver.prepare(json.dumps(self.job()))))

    def run(self, **options: Any) -> dict[str, Any]:
        return dict(json.loads(_driver.run(json.dumps(self.job(**options)))))

    def check(self, tallies: list[dict[str, Any]] | None) -> dict[str, bool]:
        told = [Tally.model_validate(tally) for tally in tallies or ()]
        acknowledged = None if tallies is None else Acknowledged.by(told).model_dump_json()
        checks = json.loads(_driver.check(json.dumps(self.job()), acknowledged))
        return {check["name"]: check["holds"] for check in checks}

    def refused(self, **options: Any) -> _driver.DriverError:
        with pytest.raises(_driver.DriverError) as raised:
            self.run(**options)
        assert raised.value.kind == "user"
        assert raised.value.hint
        return raised.value

    def sql(self, statement: str) -> list[list[Any]]:
        return list(json.loads(_driver.query(self.url, statement))["rows"])


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_measured_answers_are_scored_against_the_exact_neighbours(
    searching: Searching, distance: str
) -> None:
    load = Load(searching, distance=distance)
    assert load.prepare()["rows"] == 3_000
    tally = load.run()
    assert tally["errors"] == {}
    assert (
        tally["recall"]["count"] == tally["operations"] == tally["by_transaction"]["search"]["operations"] > 0
    )
    assert tally["rows_read"] >= 10 * tally["operations"]
    assert tally["recall"]["mean"] > 0.9
    hasty = load.run(ef=10)
    assert hasty["recall"]["mean"] < tally["recall"]["mean"]
    assert load.check([tally, hasty]) == {
        "vectors_complete": True, "vectors_unchanged": True, "index_used": True, "inserted_complete": True
    }  # fmt: skip


@pytest.mark.usefixtures("homes")
def test_what_the_driver_reports_is_what_an_answer_by_hand_gives(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    truth = load.set.neighbors("euclidean")
    assert truth is not None
    for query in range(3):
        vector = np.asarray(load.set.test[query])
        if searching.engine == "mariadb":
            distance = f"VEC_DISTANCE_EUCLIDEAN(embedding, x'{vector.tobytes().hex()}')"
        else:
            distance = f"embedding <-> '{json.dumps(vector.astype(float).tolist())}'"
        # A sum is in no index, so that all rows are looked at and nothing is missed by chance.
        rows = load.sql(f"SELECT id, {distance} FROM embeddings ORDER BY ({distance}) + 0 LIMIT 10")
        assert [float(row[1]) for row in rows] == pytest.approx(
            truth.distances[query, :10].tolist(), rel=1e-4
        )
        # Two neighbours of almost one distance may change places at the end.
        assert len({int(row[0]) for row in rows} & set(truth.rows[query, :10].tolist())) >= 9


@pytest.mark.usefixtures("homes")
def test_inserts_and_deletes_during_the_search_are_accounted_for(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    first, second = load.run(write_share=0.4), load.run(write_share=0.4)
    assert {name for name, kind in first["by_transaction"].items() if kind["operations"]} == {
        "search", "insert", "delete"
    }  # fmt: skip
    assert first["recall"]["mean"] > 0.8
    checks = load.check([first, second])
    assert checks == dict.fromkeys(checks, True)
    assert load.check([second]) == checks
    load.sql(
        "UPDATE embeddings SET embedding = (SELECT embedding FROM (SELECT * FROM embeddings) AS others "
        "WHERE id = 8) WHERE id = 7"
    )
    overwritten = load.check([second])
    assert [name for name, holds in overwritten.items() if not holds] == ["vectors_unchanged"]
    load.sql("DELETE FROM embeddings WHERE id = 7")
    assert load.check([first, second])["vectors_complete"] is False
    load.sql("DELETE FROM embeddings WHERE id >= 3000")
    assert load.check([first, second])["inserted_complete"] is False


@pytest.mark.usefixtures("homes")
def test_a_sample_of_the_answers_can_be_scored(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    tally = load.run(score_share=0.5)
    share = tally["recall"]["count"] / tally["operations"]
    assert 0.3 < share < 0.7
    assert load.run(score_share=0.0)["recall"] is None


@pytest.mark.usefixtures("homes")
def test_a_table_of_another_set_and_a_missing_one_are_refused(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    assert "does not hold this set" in Load(searching, data_seed=2).refused().message
    wider = Load(searching, dimensions=40)
    assert "does not hold this set" in wider.refused().message
    _driver.cleanup(json.dumps(load.job()))
    assert "does not hold this set" in load.refused().message
    assert "was given no set" in load.refused(dataset="").message


@pytest.mark.usefixtures("homes")
def test_an_index_of_another_distance_or_a_missing_one_is_refused(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    cosine = Load(searching, distance="cosine")
    assert "does not use the vector index" in cosine.refused().message
    on = " ON embeddings" if searching.engine == "mariadb" else ""
    load.sql(f"DROP INDEX embeddings_nearest{on}")
    assert "does not use the vector index" in load.refused().message
    assert load.check(None)["index_used"] is False


@pytest.mark.usefixtures("homes")
def test_an_index_that_is_still_being_built_is_told(searching: Searching) -> None:
    if searching.engine != "postgresql":
        pytest.skip("in MariaDB a build cannot be stopped half-way")
    load = Load(searching)
    load.prepare()
    # What CREATE INDEX CONCURRENTLY leaves while it runs.
    load.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'embeddings_nearest'::regclass")
    assert "still being built" in load.refused().message


@pytest.mark.usefixtures("homes")
def test_a_knob_that_the_engine_lacks_is_refused(searching: Searching) -> None:
    load = Load(searching)
    load.prepare()
    if searching.engine == "mariadb":
        assert "no ef_construction" in load.refused(ef_construction=64).message
    else:
        assert load.run(ef_construction=64)["operations"] > 0


@pytest.mark.usefixtures("homes")
def test_an_engine_without_vectors_is_told(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/x"
    found = vectors.vector_set(SHAPE | {"distance": "euclidean"}, lambda line: None)
    options = SHAPE | {"distance": "euclidean", "dataset": str(found.folder)}
    with pytest.raises(_driver.DriverError) as raised:
        _driver.prepare(json.dumps({"url": url, "workload": "vector_search", "options": options}))
    assert "does not search vectors" in raised.value.message
