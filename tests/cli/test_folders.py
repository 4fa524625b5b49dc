"""Two disks are compared by folders on them, as levels."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.calls import complaint, dyno

STUDY = """
engine = "sqlite"
blocks = 1
workload = { name = "tpcb", warmup = "0s", duration = "0.2s" }
factors."storage.folder" = ["{one}", "{other}"]
"""


def test_the_data_lie_where_a_level_puts_them_and_are_gone_at_the_end(homes: Path) -> None:
    folders = [homes / "one", homes / "other"]
    for folder in folders:
        folder.mkdir()
    theirs = folders[1] / "dyno"
    theirs.mkdir()
    path = homes / "disks.toml"
    path.write_text(STUDY.replace("{one}", str(folders[0])).replace("{other}", str(folders[1])))
    planned = "".join(dyno("plan", str(path)).stdout.split())
    assert (
        f"storage.folder:thedatain{folders[1]}/dyno;removedaftereachtrial;needstherighttowritethere"
        in planned
    )
    ran = dyno("run", str(path), "--json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    for trial in json.loads(ran.stdout)["trials"]:
        [proof] = [one for one in trial["evidence"] if one["factor"] == "storage.folder"]
        assert proof["in_effect"]
        assert proof["effective"]["value"].startswith(trial["levels"]["storage.folder"])
    assert [list(folder.iterdir()) for folder in folders] == [[], [theirs]]
    assert list(theirs.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_before_a_run(homes: Path) -> None:
    path = homes / "disks.toml"
    path.write_text(STUDY.replace("{one}", str(homes)).replace("{other}", "/no/such"))
    said = " ".join(dyno("plan", str(path)).stdout.split())
    assert "blocked, variant 1: /no/such is no folder in which Dyno may write" in said
    path.write_text(STUDY.replace("{one}", "/no/such").replace("{other}", str(homes)))
    assert "the baseline cannot be put into effect here: /no/such" in complaint("run", str(path))
