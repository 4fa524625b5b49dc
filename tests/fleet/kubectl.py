"""A `kubectl` that keeps what it is given and plays answers, because no cluster runs here. Its complaints are
those of the real one (1.32), to which a server on loopback gave the answers of Kubernetes' API."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]

VERSION = "1.37"
_PROGRAM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
words = [word for word in sys.argv[1:] if not word.startswith("--namespace=")]
text = "" if sys.stdin is None or words[0] != "create" else sys.stdin.read()
with (folder / "asked").open("a") as file:
    file.write(json.dumps([sys.argv[1:], text]) + "\\n")
kind = "secret" if '"Secret"' in text else words[0] if words[0] != "get" else words[1]
complaint = folder / (kind + ".refused")
if complaint.exists():
    sys.exit(complaint.read_text())
answer = folder / kind
print(answer.read_text() if answer.exists() else "f00d" if kind == "create" else '{{"items": []}}', end="")
"""


class Kubectl:
    """The stand-in, in a folder of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "kubectl-played"
        self.folder.mkdir()
        program = self.folder / "kubectl"
        program.write_text(_PROGRAM.format(python=sys.executable, folder=str(self.folder)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        patch.setenv("DYNO_KUBECTL", str(program))

    def plays(self, kind: str, *items: dict[str, Any]) -> None:
        """What `kubectl get` answers: objects that Kubernetes' own schemas know."""
        for item in items:
            kubernetes_validate.validate(item, VERSION)
        _exchanged(self.folder / kind, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def refuses(self, kind: str, complaint: str) -> None:
        _exchanged(self.folder / f"{kind}.refused", complaint)

    def asked(self, verb: str = "") -> list[tuple[list[str], str]]:
        """The words of each call and what it read; of one verb."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [(words, text) for words, text in map(json.loads, lines)]
        return [(words, text) for words, text in found if not verb or verb in words]

    def created(self) -> list[dict[str, Any]]:
        """The objects that were made, each valid."""
        found = [yaml.safe_load(text) for _, text in self.asked("create")]
        for one in found:
            kubernetes_validate.validate(one, VERSION, strict=True)
        return found


def _exchanged(path: Path, text: str) -> None:
    """Another process reads the old text or the new one."""
    beside = path.with_suffix(".made")
    beside.write_text(text)
    beside.replace(path)


def job(name: str, count: int = 1, host: str = "", **status: Any) -> dict[str, Any]:
    """A job as Kubernetes tells it."""
    affinity: dict[str, Any] = {}
    if host:
        field = {"key": "metadata.name", "operator": "In", "values": [host]}
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [field]}]
            }
        }
    spec = {
        "restartPolicy": "Never",
        "affinity": {"nodeAffinity": affinity},
        "containers": [{"name": "worker", "image": "x"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"completions": count, "template": {"spec": spec}},
        "status": status,
    }


def pod(job: str, index: int, phase: str, host: str = "", age: int = 0, **status: Any) -> dict[str, Any]:
    """A pod of a job as Kubernetes tells it; a greater `age` is a later pod."""
    labels = {"batch.kubernetes.io/job-name": job, "batch.kubernetes.io/job-completion-index": str(index)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-{index}-{age}",
            "labels": labels,
            "creationTimestamp": f"2026-01-01T00:00:0{age}Z",
        },
        "spec": {"containers": [{"name": "worker", "image": "x"}], **({"nodeName": host} if host else {})},
        "status": {"phase": phase, **status},
    }
