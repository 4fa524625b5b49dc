"""What `dyno probe` says of a pod: which levels it lacks follows from what was tried there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.host import fingerprint, probe
from dbdyno.host.journal import open_journal


def found_in_pod(refusal: str) -> dict[str, probe.ProbeFinding]:
    with open_journal() as journal:
        found = list(probe.probe(journal, refusal))
    # A pod comes last, because it follows from all before it.
    groups = [one.group for one in found]
    assert "pod" not in groups or groups.index("pod") + groups.count("pod") == len(groups)
    return {one.name: one for one in found if one.group == "pod"}


def test_a_pod_lacks_what_was_tried_in_vain(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_in_pod("refused") == {}
    monkeypatch.setattr(probe, "pod_seen", lambda: "the kubelet mounted files of a pod here")
    read_only = homes / "read-only"
    read_only.write_text("x")
    monkeypatch.setattr(probe, "POD_READS", ((str(read_only), "memory.thp"), ("/nowhere", "cpu.smt")))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(read_only))
    found = found_in_pod("it is refused")
    assert found["Kubernetes"].detail == "the kubelet mounted files of a pod here"
    assert found["CPUs of its own"].answer in ("yes", "no")
    ring = found["the driver's io_uring"]
    assert ring.answer == "no" and "seccompProfile" in ring.remedy
    assert found["memory.thp"].detail == f"{read_only} is read-only here" and "cpu.smt" not in found
    assert "the driver's io_uring" not in found_in_pod("")


def test_a_pod_is_known_by_its_group_its_mounts_or_its_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, str] = {}
    monkeypatch.setattr(fingerprint, "_read", lambda path: files.get(str(path)))
    monkeypatch.setattr(fingerprint, "SERVICE_ACCOUNT", str(tmp_path / "none"))
    assert fingerprint.pod_seen() == ""
    monkeypatch.setattr(fingerprint, "SERVICE_ACCOUNT", str(tmp_path))
    assert fingerprint.pod_seen() == f"{tmp_path} is there"
    files["/proc/self/mountinfo"] = "812 700 8:1 /var/lib/kubelet/pods/1-2/etc-hosts /etc/hosts rw"
    assert fingerprint.pod_seen() == "the kubelet mounted files of a pod here"
    files["/proc/self/cgroup"] = "0::/kubepods.slice/kubepods-pod1.slice/cri-2.scope"
    assert fingerprint.pod_seen() == "its control group is one of kubepods"
