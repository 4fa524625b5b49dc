"""The bench that counts false alarms of gates: what it carries out, and what it makes of past ones."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benches import gates


def over(code: int, verdict: str, took_s: float) -> gates.Gated:
    return gates.Gated("sqlite", 8, code, verdict, 1.0, 0.9, 1.1, took_s, 1.0, 0.0)


def test_alarms_are_counted_with_their_interval_and_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    done = [over(0, "inconclusive", 60), over(6, "slower", 90), over(0, "faster", 120), over(5, "failed", 90)]
    results.write_text("".join(json.dumps(asdict(one)) + "\n" for one in done))
    monkeypatch.setattr(sys, "argv", ["gates", "--results", str(results), "--show"])
    gates.main()
    row = capsys.readouterr().out.splitlines()[1].split()
    assert " ".join(row) == "sqlite 8 4 2 (6.8% to 93.2%) 1 1 10.6% 1.5 (1.0 to 2.0)"


def test_gates_that_are_over_are_not_carried_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps(asdict(over(0, "no effect", 60))) + "\n")
    monkeypatch.setattr(gates, "gated", lambda engine, blocks: over(0, "no effect", 70))
    arguments = ["--gates", "3", "--engines", "sqlite", "--results", str(results)]
    monkeypatch.setattr(sys, "argv", ["gates", *arguments])
    gates.main()
    assert [json.loads(line)["took_s"] for line in results.read_text().splitlines()] == [60, 70, 70]


def test_it_carries_out_the_step_of_the_action_itself() -> None:
    assert 'dyno run "$STUDY" --against "git:$TARGET" $OPTIONS' in gates._script()
