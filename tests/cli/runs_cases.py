"""What the tests of runs share with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.analyse.factory import a_run, records_of
from tests.cli.calls import STUDY

OTHER = STUDY.replace("Which page size?", "Which page size, again?")


@pytest.fixture
def runs(homes_with_engines: Path) -> Path:
    """Three runs in the store: two of one study, of which one has a comment more, and one of another."""
    with Store(store_url()) as store:
        for name, text in (("first", STUDY), ("second", f"# Again.{STUDY}"), ("other", OTHER)):
            path = homes_with_engines / f"{name}.toml"
            path.write_text(text)
            study = study_at(path)
            run = a_run(study).model_copy(
                update={"run": name, "study_text": text, "study_digest": study.digest, "blocks": study.blocks}
            )
            store.add_run(run)
            for record in records_of(study, seed=len(name)):
                store.add_record(record.model_copy(update={"run": name}))
    return homes_with_engines
