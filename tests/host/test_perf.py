"""perf's text is read whole whatever symbols hold; a real process is sampled where perf may."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.profile import UNKNOWN
from dbdyno.errors import Blocked, DynoError
from dbdyno.host import perf
from dbdyno.host.perf import HardwareCounters, Sample, Sampler, in_kernel, read_script
from dbdyno.host.process import families
from tests.needs import skipping_blocked

GOLDEN = Path(__file__).parents[1] / "records" / "golden" / "perf-script.txt"


def test_a_real_text_gives_every_sample() -> None:
    text = GOLDEN.read_text(encoding="utf-8")
    samples = list(read_script(text))
    assert len(samples) == len(re.findall(r"cpu-clock:", text)) > 5
    assert sum(len(sample.frames) for sample in samples) == len(re.findall(r"^\t", text, re.MULTILINE))
    assert all(sample.weight > 0 and sample.time_s > 0 for sample in samples)
    functions = {function for sample in samples for function, _ in sample.frames}
    assert {"mysql_execute_command", UNKNOWN} <= functions
    assert any(in_kernel(module) for sample in samples for _, module in sample.frames)


symbols = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1).filter(
    lambda text: text.strip() and not re.search(r"\+0x[0-9a-f]+$", text)
)
modules = st.sampled_from(
    ["[kernel.kallsyms]", "[unknown]", "/usr/lib/libc.so.6", "/opt/a b/x.so", "/usr/bin/gone"]
)
samples = st.builds(
    Sample,
    time_s=st.integers(0, 10**6).map(float),
    weight=st.integers(0, 10**12),
    frames=st.lists(st.tuples(symbols, modules), min_size=1, max_size=6).map(tuple),
)


@given(st.lists(samples, max_size=5), st.sampled_from(["mariadbd", "two words", "a 12 b", "x:"]))
def test_what_is_written_is_read_back(written: list[Sample], command: str) -> None:
    text = "".join(
        f"{command} 17749  {sample.time_s:.9f}:  {sample.weight} cpu-clock: \n"
        + "".join(f"\t  {7:x} {name} ({module})\n" for name, module in reversed(sample.frames))
        + "\n"
        for sample in written
    )
    assert list(read_script(text)) == written
    gone = text.replace("/usr/bin/gone)\n", "/usr/bin/gone (deleted))\n")
    assert list(read_script(gone)) == written


@given(st.text())
def test_any_text_is_read_without_a_fault(text: str) -> None:
    assert all(sample.frames for sample in read_script(text))


def test_without_perf_the_remedy_is_told() -> None:
    with mock.patch("shutil.which", return_value=None), pytest.raises(Blocked) as refused:
        Sampler(Path())
    assert "apt install" in refused.value.hint


def test_a_perf_that_may_not_sample_says_so(tmp_path: Path) -> None:
    refusing = tmp_path / "perf"
    said = "Error:\\nNo permission to enable cpu-clock event.\\n\\nTo make it permanent, edit a file.\\n"
    refusing.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 255\n")
    refusing.chmod(0o755)
    with mock.patch("shutil.which", return_value=str(refusing)), pytest.raises(Blocked) as refused:
        Sampler(tmp_path)
    assert "No permission" in refused.value.message and "perf_event_paranoid" in refused.value.hint


def test_a_thread_that_has_ended_takes_no_counter_away(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    alone = HardwareCounters((os.getpid(),))
    monkeypatch.setattr(perf, "_threads", lambda process_id: [process_id, ended.pid])
    beside = HardwareCounters((os.getpid(),))
    try:
        assert beside.missing == alone.missing and beside.read().keys() == alone.read().keys()
    finally:
        for one in (alone, beside):
            one.close()


@pytest.mark.parametrize("beside", ["nobody", "one that has ended", "one that ends once it was listed"])
def test_a_real_process_is_sampled(beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with skipping_blocked():
        sampler = Sampler(tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    first = [True]
    if beside == "one that ends once it was listed":
        monkeypatch.setattr(perf, "families", lambda ids: ids if first and first.pop() else families(ids))
    busy = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"])
    try:
        with sampler.on((busy.pid,) if beside == "nobody" else (busy.pid, ended.pid)):
            deadline = time.monotonic() + 60.0
            while not sampler._data.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            worked = psutil.Process(busy.pid).cpu_times
            enough_s = worked().user + 0.5
            while worked().user < enough_s and time.monotonic() < deadline:
                time.sleep(0.1)
    finally:
        busy.kill()
        busy.wait()
    assert any("python" in module for sample in sampler.samples() for _, module in sample.frames)


def test_a_server_that_has_ended_is_said(tmp_path: Path) -> None:
    with skipping_blocked():
        sampler = Sampler(tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    with sampler.on((ended.pid,)):
        sampler._thread.join()
    with pytest.raises(DynoError, match="all of its processes had ended"):
        sampler.samples()


def test_a_load_that_was_too_short_is_said(tmp_path: Path) -> None:
    with skipping_blocked():
        sampler = Sampler(tmp_path)
    with pytest.raises(DynoError, match="could not sample"):
        sampler.samples()
