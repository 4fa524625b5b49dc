"""`dyno run --against` and `dyno gate`: a run measured beside another, or held against what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dbdyno.host import paths
from dbdyno.host.host_lock import LookBetweenBlocks
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.run import Calibrated, ComparisonRun, Run
from dbdyno.records.store import Store
from dbdyno.serve.pages import StorePages
from tests.cli.calls import complaint, dyno
from tests.study_texts import STUDY

SLOW = STUDY.replace("blocks = 2", "blocks = 6").replace('["FULL", "OFF"]', '["OFF", "FULL"]')
EXTRA = SLOW.replace('["OFF", "FULL"]', '["FULL", "OFF"]')


@pytest.fixture
def main(homes: Path) -> Path:
    """The folder of a store in which `main` is a run that did not wait for the disk."""
    (homes / "main.toml").write_text(SLOW)
    (homes / "change.toml").write_text(EXTRA)
    ran = dyno("run", str(homes / "main.toml"), "--quiet", "--blocks", "1", "--name", "first")
    assert ran.returncode == 0, ran.stderr
    assert dyno("baseline", "set", "main", "first").returncode == 0
    return homes


def test_a_change_that_slows_the_server_down_ends_its_pipeline(
    main: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its user prefers."""
    monkeypatch.setenv("DYNO_FAIL_ON", "inconclusive")
    report = main / "gate.xml"
    said = dyno("run", str(main / "change.toml"), "--against", "main", "--output", str(report))
    assert said.returncode == 6, said.stdout + said.stderr
    assert "main is measured again: 6 trials, in the same slices as this run's" in said.stderr
    assert "exit code 6, slower: baseline" in said.stderr
    suite = ElementTree.parse(report).getroot()[0]
    assert suite.attrib["failures"] == "1"
    with Store(store_url()) as store:
        run = store.run("last")
        ours, theirs = store.records(run.run), store.records(reference_of(run))
        assert store.unfinished_runs() == []
    assert [record.block for record in theirs] == list(range(6))
    for again in theirs:
        assert again.levels == {"config.synchronous": "OFF"}
        began = [record.started_unix_s for record in (*ours, *theirs) if record.block == again.block]
        mine = next(one for one in ours if (one.block, one.variant) == (again.block, "baseline"))
        between = [one for one in began if min(again.started_unix_s, mine.started_unix_s) < one
                   < max(again.started_unix_s, mine.started_unix_s)]  # fmt: skip
        assert between == [], "the two baselines of a block stand next to each other"
        slices = [
            [one.started_unix_s for one in record.tally.slices] for record in (again, mine) if record.tally
        ]
        assert [len(starts) for starts in slices] == [2, 2]
        assert min(slices[0]) < max(slices[1]) and min(slices[1]) < max(slices[0]), "they take turns"
    _every_view_is_the_gate(run)
    gate = json.loads(dyno("gate", "--json").stdout)
    assert (gate["way"], gate["result"]["verdict"]) == ("side by side", "slower")
    assert dyno("gate", "--fail-on", "broken").returncode == 0
    assert "**▼ Slower:" in dyno("gate", "--format", "markdown", "--against", "main").stdout
    page = main / "gate.html"
    assert dyno("gate", "--output", str(page)).returncode == 6
    assert "Slower: the throughput" in page.read_text()


def _every_view_is_the_gate(run: Run) -> None:
    """A run that was held against another one says so first, in each form; its own variants follow."""
    assert isinstance(run, ComparisonRun) and run.against == "main"
    sentence = "Slower: the throughput is "
    told = " ".join(dyno("report", "--format", "markdown").stdout.split())
    assert told.index(sentence) < told.index("config.synchronous=OFF"), told
    assert "helped most" not in " ".join(dyno("report").stdout.split())[:400]
    found = json.loads(dyno("report", "--json").stdout)
    assert list(found)[:3] == ["format", "gate", "headline"] and found["headline"].startswith(sentence)
    assert found["gate"]["result"]["verdict"] == "slower" and "study_text" not in found["gate"]["run"]
    (case, *_) = ElementTree.fromstring(dyno("report", "--format", "junit").stdout)[0]
    assert case.attrib["name"] == "throughput against main" and case.find("failure") is not None
    assert dyno("report", "--fail-on", "slower").returncode == 6
    beside = (paths.data() / "reports" / f"{run.run}.html").read_text()
    served = StorePages(store_url())
    with LookBetweenBlocks() as look:
        pages = [beside, *(served.draw(path, look).body.decode() for path in ("/", f"/run/{run.run}"))]
    for page in pages:
        assert sentence in page and "helped most" not in page.partition("<table")[0]


def test_a_study_is_held_against_that_of_another_file_without_a_run_before_it(homes: Path) -> None:
    """As a pipeline holds a merge request against its target. The store is empty, and studies need no
    factors."""
    alone = STUDY.replace("blocks = 2", "blocks = 6").partition("[factors]")[0]
    target, change = homes / "target.toml", homes / "change.toml"
    target.write_text(f'{alone}[settings]\n"config.synchronous" = "OFF"\n')
    change.write_text(f'{alone}[settings]\n"config.synchronous" = "FULL"\n')
    said = dyno("run", str(change), "--against", str(target), "--format", "markdown")
    assert said.returncode == 6, said.stdout + said.stderr
    assert f"{target} is measured beside this run: 6 trials, in the same slices as this run's" in said.stderr
    assert "**▼ Slower:" in said.stdout
    with Store(store_url()) as store:
        run = store.run("last")
        theirs = store.records(reference_of(run))
        assert store.run(reference_of(run)).study_path == str(target)
        ours = store.records(run.run)
    assert [settings_of(record) for record in (ours[0], theirs[0])] == [["FULL"], ["OFF"]]
    assert [record.variant for record in (*ours, *theirs)] == ["baseline"] * 12


def settings_of(record: Record) -> list[str]:
    """The levels that were proved."""
    return [one.requested for one in record.evidence if one.in_effect]


def test_a_file_that_cannot_be_held_against_is_told(homes: Path) -> None:
    change = homes / "change.toml"
    change.write_text(EXTRA)
    assert "nowhere.toml" in complaint("run", str(change), "--against", str(homes / "nowhere.toml"))
    other = homes / "other.toml"
    other.write_text(EXTRA.replace('"tpcb"', '"tpcb"\nclients = 3'))
    assert "measured another load or response" in complaint("run", str(change), "--against", str(other))
    other.write_text(EXTRA.replace("synchronous", "synchronuos"))
    told = complaint("run", str(change), "--against", str(other))
    assert "other.toml" in told and "synchronuos" in told


def reference_of(run: Run) -> str:
    """The run that took turns with this one."""
    assert isinstance(run, ComparisonRun) and run.reference is not None
    return run.reference


def test_more_blocks_of_both_sides_go_on_with_the_same_gate(main: Path) -> None:
    """So that the verdict holds however often somebody looks and asks for more."""
    said = dyno("run", str(main / "main.toml"), "--against", "main", "--blocks", "2", "--quiet")
    run = said.stdout.split("--resume ", 1)[1].split()[0]
    assert f"dyno run --resume {run} --add-blocks " in " ".join(said.stdout.split())
    more = dyno("run", "--resume", run, "--add-blocks", "4", "--quiet")
    assert more.returncode in (0, 6), more.stderr
    gate = json.loads(dyno("gate", run, "--json").stdout)
    assert (gate["way"], gate["result"]["effect"]["pairs"]) == ("side by side", 6)
    assert gate["method"]["interval"] == "anytime"
    with Store(store_url()) as store:
        both = store.run(run), store.run(reference_of(store.run(run)))
        assert [one.blocks for one in both] == [6, 6]
        baselines = [
            [record.block for record in store.records(one.run) if record.variant == "baseline"]
            for one in both
        ]
    assert baselines == [list(range(6))] * 2


def test_trials_follow_one_another_where_the_run_asks_for_it_and_that_is_said(main: Path) -> None:
    path = main / "change.toml"
    path.write_text(EXTRA.replace("blocks = 6", 'blocks = 1\narrangement = "one-after-the-other"'))
    said = dyno("run", str(path), "--against", "main")
    assert "in turn with this run's: trials follow one another in this run" in said.stderr
    with Store(store_url()) as store:
        run = store.run("last")
        records = [*store.records(run.run), *store.records(reference_of(run))]
    assert len(records) == 3 and not any(one.tally and one.tally.slices for one in records)


def test_a_reference_takes_over_how_the_host_is_arranged(main: Path) -> None:
    """And is the same setup all the same, so that the two are still paired."""
    assert (
        dyno("run", str(main / "main.toml"), "--against", "main", "--blocks", "1", "--quiet").returncode == 0
    )
    with Store(store_url()) as store:
        run = store.run("last")
        bound = Calibrated(made_unix_s=1.0, settings={"cpu.server": "0"})
        for name in (run.run, reference_of(run)):
            store.change_run(store.run(name).model_copy(update={"calibrated": bound}))
    assert json.loads(dyno("gate", "--json", "--against", "main").stdout)["way"] == "side by side"


def test_without_the_engine_the_stored_run_is_compared_and_that_is_said(main: Path) -> None:
    with Store(store_url()) as store:
        first = store.run("main")
        gone = first.installation.but(digest="gone", origin="a build that is gone")
        store.change_run(first.but(installation=gone))
    said = dyno("run", str(main / "change.toml"), "--against", "main", "--blocks", "1")
    assert said.returncode == 0, said.stderr
    assert "main is not measured again" in said.stderr and "a build that is gone" in said.stderr
    told = " ".join(said.stdout.split())
    assert told.startswith("? Inconclusive:")
    assert "the run is the unit" in " ".join(dyno("gate", "--against", "main").stdout.split())
    assert "a verdict needs 3 runs of the reference’s setup" in told
    assert dyno("gate", "--against", "main", "--fail-on", "inconclusive").returncode == 7


def test_what_cannot_be_held_against_each_other_is_refused(main: Path) -> None:
    other = main / "other.toml"
    other.write_text(SLOW.replace('"0.5s"', '"0.6s"'))
    assert "another load" in complaint("run", str(other), "--against", "main")
    assert "no run 'nothing'" in complaint("run", str(other), "--against", "nothing")
    assert "exclude" in complaint("run", str(other), "--against", "main", "--budget", "1m")
    assert "against itself" in complaint("gate", "first", "--against", "main")
    assert "was not measured against another" in complaint("gate")


def test_a_report_is_written_as_junit_too(main: Path) -> None:
    root = ElementTree.fromstring(dyno("report", "--format", "junit").stdout.encode())
    assert [case.attrib["name"] for case in root.iter("testcase")] == [
        "baseline",
        "config.synchronous=FULL: throughput",
    ]


def test_a_gate_needs_no_factor(main: Path) -> None:
    """The baseline of the study is held against that of the run; nothing is varied."""
    text = "\n".join(line for line in SLOW.splitlines() if "factors" not in line and '["' not in line)
    (main / "alone.toml").write_text(f'{text}\n[settings]\n"config.synchronous" = "FULL"\n')
    refused = complaint("run", str(main / "alone.toml"))
    assert "against that of another run, dyno run --against RUN" in refused
    report = main / "gate.md"
    said = dyno("run", str(main / "alone.toml"), "--against", "main", "--output", str(report))
    assert said.returncode in (0, 6), said.stderr
    title, answer, *parts = report.read_text().split("\n\n")
    assert title.startswith("# ") and title.endswith("(against main)") and answer.startswith("**")
    compared = parts[parts.index("## What was compared") + 1]
    assert "config.synchronous OFF -" in compared.replace("\\", "")
