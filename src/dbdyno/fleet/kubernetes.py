"""Kubernetes as the launcher of a run: an indexed job, each of whose pods has a node to itself.

It is asked by the user's own `kubectl`, and what a pod is stands in a template that users may change. A pod
that starts again does so on any node, and has no `kubectl`: whoever follows the run then has another one wait
for the right node. The store's URL lies in a secret that goes with its job, and in no manifest.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, ClassVar

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet.launcher import HOST, JobOrder, JobPlace, JobState, WorkerJob, job_name, said_by
from dbdyno.host import paths

COMMAND, TEMPLATE = "DYNO_KUBECTL", "DYNO_KUBERNETES"
"""Variables: the command to take for `kubectl`, with options, and the file of a changed template."""
ANSWER_S = 60.0
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
RUN_LABEL = "dyno-run"
JOB_LABEL, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEEDED = frozenset({"job", "run", "count", "limit_s", "words", "where", "tags"})
"""What Dyno writes into a template."""
NO_IMAGE = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
"""Why a pod waits that cannot have its image. Kubernetes tries again at ever longer distances."""
REFUSALS = (
    ("exceeded quota", "a quota refuses it", "wait until jobs have ended, or see: kubectl describe quota"),
    ("namespaces \\S+ not found", "there is no such namespace", "see: kubectl get namespaces"),
    ("forbidden", "this account may not do that", "it needs: jobs, secrets, and to read pods and events"),
    ("must be logged in", "nobody is logged in", "see: kubectl config view"),
)
"""What `kubectl` complains of, what it means, and what to do."""
Answer = Mapping[str, Any]
"""An object as Kubernetes writes it, with its own keys."""


@dataclass(frozen=True)
class Kubernetes:
    """The nodes of a cluster that have a label by the name of each of `tags`. `place` is the namespace."""

    from_jobs: ClassVar[bool] = False

    place: str
    tags: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not NAMESPACE.fullmatch(self.place):
            raise UserError(
                f"{self.place!r} is no namespace of Kubernetes",
                "--fleet kubernetes:NAMESPACE --hosts 2; see: kubectl get namespaces",
            )

    def submit(self, order: JobOrder) -> None:
        if not order.hosts:
            self._submit(order, order.count, {"matchExpressions": [_has(tag) for tag in self.tags]})
        for host in order.hosts:
            named = {"key": "metadata.name", "operator": "In", "values": [host]}
            self._submit(order, 1, {"matchFields": [named]})

    def _submit(self, order: JobOrder, count: int, term: Mapping[str, Sequence[Any]]) -> None:
        job = f"{job_name(order.run)}-{secrets.token_hex(2)}"
        text = _filled(
            job=job,
            run=order.run,
            count=count,
            limit_s=math.ceil(order.limit_s),
            # The image has Dyno at a place of its own.
            words=json.dumps(order.command[1:]),
            where=json.dumps({REQUIRED: {"nodeSelectorTerms": [term]}} if any(term.values()) else {}),
            tags=",".join(self.tags),
        )
        number = self._asked("create", "--filename=-", "--output=jsonpath={.metadata.uid}", text=text)
        try:
            self._asked("create", "--filename=-", text=json.dumps(_secret(job, number, order.store)))
        except BaseException:
            self._asked("delete", "job", job, "--wait=false")
            raise

    def watch(self, run: str) -> list[WorkerJob]:
        """One for each index of each job, by the newest of its pods."""
        found = self._listed("jobs,pods", f"--selector={RUN_LABEL}={run}")
        pods: dict[tuple[str, str], Answer] = {}
        for pod in sorted(found, key=lambda one: str(one["metadata"].get("creationTimestamp"))):
            if pod["kind"] == "Pod":
                labels = pod["metadata"]["labels"]
                pods[labels.get(JOB_LABEL, ""), _index_of(pod)] = pod
        return [
            self._of_index(job, index, pods.get((job["metadata"]["name"], index)))
            for job in found
            if job["kind"] == "Job"
            for index in map(str, range(job["spec"]["completions"]))
        ]

    def _of_index(self, job: Answer, index: str, pod: Answer | None) -> WorkerJob:
        number = f"{job['metadata']['name']}-{index}"
        over, wanted = _why_over(job), _wanted_host(job)
        if pod is not None:
            return _of_pod(number, pod, wanted, over or _is_failed(job, index))
        told = over or self._why_no_pod(job["metadata"]["name"])
        state = JobState.OVER if over else JobState.WAITS
        return WorkerJob(id=number, state=state, host=wanted, told=told)

    def _why_no_pod(self, job: str) -> str:
        """What keeps Kubernetes from making the pods of a job, such as a quota; empty where nothing does."""
        chosen = f"--field-selector=involvedObject.kind=Job,involvedObject.name={job},reason=FailedCreate"
        events = self._listed("events", chosen)
        last = max(events, key=lambda one: str(one.get("lastTimestamp")), default={"message": ""})
        return str(last["message"])

    def cancel(self, run: str) -> None:
        self._asked("delete", "jobs", f"--selector={RUN_LABEL}={run}", "--wait=false")

    def words(self, run: str) -> str:
        return f"told by: kubectl logs --namespace={self.place} --selector={RUN_LABEL}={run} --tail=-1"

    def placed(self, environment: Mapping[str, str]) -> JobPlace:
        host, job = environment.get(HOST), environment.get("DYNO_JOB")
        index = environment.get("JOB_COMPLETION_INDEX")
        if not host or not job or index is None:
            raise UserError("this is no pod of a run", "leave --for out: dyno fleet worker")
        tags = filter(None, environment.get("DYNO_JOB_TAGS", "").split(","))
        return JobPlace(host=host, tags=tuple(tags), job=f"{job}-{index}")

    def _listed(self, *words: str) -> list[Answer]:
        items: list[Answer] = json.loads(self._asked("get", *words, "--output=json"))["items"]
        return items

    def _asked(self, *words: str, text: str = "") -> str:
        """What `kubectl` says. Raises UserError for what the user can mend, and DynoError where the cluster
        does not answer."""
        command = shlex.split(os.environ.get(COMMAND, "kubectl"))
        missing = UserError(
            f"there is no {command[0]} here, so nobody can ask Kubernetes",
            f"install kubectl, or name what stands for it: {COMMAND}='k3s kubectl'",
        )
        code, output, said = said_by([*command, f"--namespace={self.place}", *words], missing, ANSWER_S, text)
        if code == 0:
            return output
        last = said.strip().splitlines()[-1] if said.strip() else f"{command[0]} ended with code {code}"
        for pattern, means, hint in REFUSALS:
            if re.search(pattern, said, re.IGNORECASE):
                raise UserError(f"Kubernetes: {means} ({last})", hint)
        if re.search("refused|dial tcp|timeout|no such host|said nothing|server is currently unable", said):
            raise DynoError(f"Kubernetes does not answer: {last}", "see: kubectl cluster-info")
        raise UserError(f"Kubernetes refuses: {last}", f"the template is {_template()}")


def _template() -> Path:
    named = os.environ.get(TEMPLATE)
    return Path(named).expanduser() if named else paths.carried_place() / "pipelines" / "kubernetes.yaml"


def _filled(**values: object) -> str:
    """The template with these values. Raises UserError for one that cannot be read, lacks what Dyno must
    write, or asks for something else."""
    path = _template()
    try:
        template = Template(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        told = f"cannot read the template {path}: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise UserError(told, f"{TEMPLATE} names a changed copy of Dyno's own") from None
    names = frozenset(template.get_identifiers())
    if names != NEEDED:
        lacks = ", ".join(f"${{{name}}}" for name in sorted(NEEDED - names))
        knows = ", ".join(f"${{{name}}}" for name in sorted(names - NEEDED))
        told = f"it has no {lacks}" if lacks else f"Dyno does not know {knows}"
        raise UserError(f"{path} cannot be filled in: {told}", "a dollar that stands for itself is doubled")
    try:
        return template.substitute(values)
    except ValueError as error:
        raise UserError(f"{path}: {error}", "a dollar that stands for itself is doubled") from None


def _has(tag: str) -> dict[str, str]:
    return {"key": tag, "operator": "Exists"}


def _secret(job: str, number: str, store: str) -> dict[str, object]:
    """The secret that a job's pods take the store's URL from. Kubernetes removes it with the job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": number}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job, "ownerReferences": [owner]},
        "stringData": {"store": store},
    }


def _index_of(pod: Answer) -> str:
    named = pod["metadata"]
    return str(named["labels"].get(INDEX) or named.get("annotations", {}).get(INDEX, ""))


def _why_over(job: Answer) -> str:
    """How a job ended; empty for one that goes on."""
    for condition in job.get("status", {}).get("conditions", ()):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return ""


def _is_failed(job: Answer, index: str) -> str:
    """Why an index of a job is not tried again; empty where it is."""
    for part in filter(None, job.get("status", {}).get("failedIndexes", "").split(",")):
        first, _, last = part.partition("-")
        if int(first) <= int(index) <= int(last or first):
            return "it is not started again"
    return ""


def _wanted_host(job: Answer) -> str:
    """The host that a job waits for, by the affinity that it was given; empty where any will do."""
    affinity = job["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
    fields = [
        field
        for term in affinity.get(REQUIRED, {}).get("nodeSelectorTerms", ())
        for field in term.get("matchFields", ())
    ]
    return str(fields[0]["values"][0]) if fields else ""


def _of_pod(number: str, pod: Answer, wanted: str, over: str) -> WorkerJob:
    """A job as its pod tells it; `over` is why no pod comes after that one."""
    status, host = pod.get("status", {}), pod["spec"].get("nodeName") or wanted
    phase = status.get("phase", "Pending")
    if phase == "Pending":
        reason, told = _why_waiting(status)
        state = JobState.OVER if over or reason in NO_IMAGE else JobState.WAITS
        return WorkerJob(id=number, state=state, host=host, told=told or over)
    if phase == "Succeeded":
        return WorkerJob(id=number, state=JobState.OVER, host=host, told="its worker has ended")
    if phase != "Failed":
        return WorkerJob(id=number, state=JobState.WORKS, host=host)
    told = _why_failed(status)
    if over:
        return WorkerJob(id=number, state=JobState.OVER, host=host, told=f"{told}; {over}")
    # Its next pod has no node yet.
    return WorkerJob(id=number, state=JobState.WAITS, host=wanted, told=f"on {host}: {told}; it starts again")


def _why_waiting(status: Answer) -> tuple[str, str]:
    """The reason in Kubernetes' own word, and what it says."""
    for container in status.get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason", "ContainerCreating") != "ContainerCreating":
            return waiting["reason"], ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            told = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
            return condition.get("reason", ""), told
    return "", ""


def _why_failed(status: Answer) -> str:
    """What ended a pod: who took its node, or what its worker said at last."""
    for condition in status.get("conditions", ()):
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    for container in status.get("containerStatuses", ()):
        if ended := container.get("state", {}).get("terminated"):
            said = (ended.get("message") or "").strip().splitlines()
            code = f"{ended.get('reason', 'Error')}, code {ended['exitCode']}"
            return f"{code}: {said[-1]}" if said else code
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "failed"
