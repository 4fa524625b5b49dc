"""Kubernetes as a launcher: its manifest by the published schema, and what is made of answers. No cluster ran
this: `kubectl` is a stand-in that keeps what it is given and plays answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet import kubernetes
from dbdyno.fleet.kubernetes import Kubernetes
from dbdyno.fleet.launcher import HOST, JobOrder, JobState
from dbdyno.host import paths
from tests.fleet.kubectl import VERSION, Kubectl, job, pod

SECRET = "postgresql://dyno:secret@db.example/dyno"
WORDS = ("/here/dyno", "fleet", "worker", "start", "--for", "260101-120000-ab12", "--allow-path", "/a b")
RUN = WORDS[5]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    return Kubectl(tmp_path, monkeypatch)


def order(count: int = 0, *hosts: str) -> JobOrder:
    return JobOrder(RUN, WORDS, SECRET, 1234.5, count, hosts)


def submitted(played: Kubectl, launcher: Kubernetes, asked: JobOrder) -> list[dict[str, Any]]:
    launcher.submit(asked)
    return played.created()


def nodes_of(manifest: dict[str, Any]) -> Any:
    chosen = manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    return chosen and chosen["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def test_an_indexed_job_has_nodes_of_its_own_and_takes_the_store_from_a_secret(played: Kubectl) -> None:
    made, secret = submitted(played, Kubernetes("bench", ("big", "fast")), order(3))
    spec, pods = made["spec"], made["spec"]["template"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["activeDeadlineSeconds"] == 1235 and spec["backoffLimitPerIndex"] == 3
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Ignore", "FailIndex"]
    (worker,) = pods["containers"]
    assert worker["args"] == list(WORDS[1:]) and worker["command"] == ["dyno"]
    resources = worker["resources"]
    assert resources["requests"] == resources["limits"] and resources["limits"]["cpu"].isdecimal()
    (apart,) = pods["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname" and apart["labelSelector"] == {}
    assert nodes_of(made) == [
        {"matchExpressions": [{"key": tag, "operator": "Exists"} for tag in ("big", "fast")]}
    ]
    variables = {one["name"]: one for one in worker["env"]}
    named = variables["DYNO_STORE"]["valueFrom"]["secretKeyRef"]
    assert named == {"name": secret["metadata"]["name"], "key": "store"}
    assert secret["stringData"] == {"store": SECRET}
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == (made["metadata"]["name"], "f00d")
    assert not any("secret@" in " ".join(words) for words, _ in played.asked())
    assert [words[0] for words, _ in played.asked()] == ["--namespace=bench"] * 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**made, "spec": {**spec, "completion": 1}}, VERSION, strict=True)


def test_a_host_that_is_named_has_a_job_that_waits_for_it(played: Kubectl) -> None:
    made = submitted(played, Kubernetes("bench", ("big",)), order(0, "n1", "n2"))
    jobs = [one for one in made if one["kind"] == "Job"]
    field = {"key": "metadata.name", "operator": "In"}
    assert [nodes_of(one) for one in jobs] == [
        [{"matchFields": [{**field, "values": [host]}]}] for host in ("n1", "n2")
    ]
    assert len({one["metadata"]["name"] for one in jobs}) == 2
    assert {one["metadata"]["labels"]["dyno-run"] for one in jobs} == {RUN}
    without = submitted(played, Kubernetes("bench"), order(1))[-2]
    assert nodes_of(without) == {}


def test_a_secret_that_is_refused_leaves_no_job_behind(played: Kubectl) -> None:
    played.refuses("secret", 'Error from server (Forbidden): secrets is forbidden: User "ada" cannot create')
    with pytest.raises(UserError, match="this account may not do that"):
        Kubernetes("bench").submit(order(1))
    name = played.created()[0]["metadata"]["name"]
    assert played.asked("delete")[0][0][1:] == ["delete", "job", name, "--wait=false"]


def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    own = (paths.carried_place() / "pipelines" / "kubernetes.yaml").read_text()
    assert old in own
    path = tmp_path / "own.yaml"
    path.write_text(own.replace(old, new))
    monkeypatch.setenv(kubernetes.TEMPLATE, str(path))


def test_a_user_changes_the_template_and_mistakes_are_told(
    played: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(tmp_path, monkeypatch, "image: localhost/dyno\n", "image: registry.example/dyno:9 # $$5\n")
    made, _ = submitted(played, Kubernetes("bench"), order(1))
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/dyno:9"
    for old, new, said in (
        ("nodeAffinity: ${where}", "nodeAffinity: {}", r"it has no \$\{where\}"),
        ("image: localhost/dyno\n", "image: ${image}\n", r"Dyno does not know \$\{image\}"),
        ("image: localhost/dyno\n", "image: $ {x}\n", "Invalid placeholder"),
    ):
        changed(tmp_path, monkeypatch, old, new)
        with pytest.raises(UserError, match=said) as error:
            Kubernetes("bench").submit(order(1))
        assert "doubled" in error.value.hint
    monkeypatch.setenv(kubernetes.TEMPLATE, "/nowhere.yaml")
    with pytest.raises(UserError, match=r"cannot read the template /nowhere.yaml: No such file"):
        Kubernetes("bench").submit(order(1))
    assert len(played.asked("create")) == 2


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [_container(state)]}


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"containerStatuses": [_container(state)]}


def _container(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "worker", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state
    }  # fmt: skip


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")
PREEMPTED = condition("DisruptionTarget", "True", "PreemptionByScheduler", "for a pod of higher priority")
DEADLINE = condition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline")


@pytest.mark.parametrize(
    ("of_job", "pods", "state", "host", "told"),
    [
        ({}, [pod("j", 0, "Running", "n1")], JobState.WORKS, "n1", ""),
        ({}, [pod("j", 0, "Succeeded", "n1")], JobState.OVER, "n1", "its worker has ended"),
        ({}, [pod("j", 0, "Pending", **UNSCHEDULABLE)], JobState.WAITS, "", "Unschedulable: 0/3 nodes"),
        ({}, [pod("j", 0, "Pending", "n1")], JobState.WAITS, "n1", ""),
        (
            {},
            [pod("j", 0, "Pending", "n1", **waiting("ImagePullBackOff", "Back-off pulling image"))],
            *(JobState.OVER, "n1", "ImagePullBackOff: Back-off pulling image"),
        ),
        (
            {},
            [pod("j", 0, "Failed", "n1", **PREEMPTED)],
            *(JobState.WAITS, "", "on n1: PreemptionByScheduler: for a pod of higher priority; it starts"),
        ),
        (
            {},
            [pod("j", 0, "Failed", "n1", **PREEMPTED), pod("j", 0, "Running", "n2", 1)],
            *(JobState.WORKS, "n2", ""),
        ),
        (
            {"failedIndexes": "0,2-4"},
            [pod("j", 0, "Failed", "n1", **ended(2, message="a line\ndyno: no such run\n"))],
            *(JobState.OVER, "n1", "Error, code 2: dyno: no such run; it is not started again"),
        ),
        (
            {},
            [pod("j", 0, "Failed", "n1", **ended(137, "OOMKilled"))],
            *(JobState.WAITS, "", "on n1: OOMKilled, code 137; it starts again"),
        ),
        (DEADLINE, [], JobState.OVER, "", "DeadlineExceeded: Job was active longer"),
        (DEADLINE, [pod("j", 0, "Running", "n1")], JobState.WORKS, "n1", ""),
    ],
)
def test_what_kubernetes_tells_of_a_pod_is_understood(
    played: Kubectl, of_job: dict[str, Any], pods: list[dict[str, Any]], state: JobState, host: str, told: str
) -> None:
    played.plays("jobs,pods", job("j", **of_job), *pods)
    (found,) = Kubernetes("bench").watch(RUN)
    assert (found.id, found.state, found.host) == ("j-0", state, host)
    assert found.told.startswith(told) and bool(told) == bool(found.told)
    words, _ = played.asked("get")[0]
    assert f"--selector=dyno-run={RUN}" in words


def test_a_job_waits_for_the_host_that_it_was_made_for(played: Kubectl) -> None:
    played.plays(
        "jobs,pods", job("j", host="n1"), job("k", host="n2"), pod("k", 0, "Failed", "n2", **ended(137))
    )
    assert [(one.id, one.host) for one in Kubernetes("bench").watch(RUN)] == [("j-0", "n1"), ("k-0", "n2")]


def test_a_quota_that_keeps_pods_away_is_told(played: Kubectl) -> None:
    def event(at: str, message: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"j.{at}"},
            "involvedObject": {"kind": "Job", "name": "j"},
            "reason": "FailedCreate",
            "message": message,
            "lastTimestamp": f"2026-01-01T00:00:0{at}Z",
        }

    said = 'Error creating: pods "j-0-x" is forbidden: exceeded quota: q, requested: cpu=4, limited: cpu=2'
    played.plays("jobs,pods", job("j", 2), pod("j", 1, "Running", "n1"))
    played.plays("events", event("2", said), event("1", "older"))
    first, second = Kubernetes("bench").watch(RUN)
    assert (first.state, first.told, second.state) == (JobState.WAITS, said, JobState.WORKS)


@pytest.mark.parametrize(
    ("complaint", "kind", "said", "hint"),
    [
        (
            'Error from server (NotFound): error when creating "STDIN": namespaces "nope" not found',
            *(UserError, "there is no such namespace", "kubectl get namespaces"),
        ),
        (
            'Error from server (Forbidden): error when creating "STDIN": jobs.batch is forbidden: User "ada" '
            'cannot create resource "jobs" in API group "batch" in the namespace "bench"',
            *(UserError, "this account may not do that", "jobs, secrets, and to read pods and events"),
        ),
        (
            'Error from server (Forbidden): error when creating "STDIN": jobs.batch "x" is forbidden: '
            "exceeded quota: q, requested: count/jobs.batch=1, limited: count/jobs.batch=2",
            *(UserError, "a quota refuses it", "kubectl describe quota"),
        ),
        (
            "error: You must be logged in to the server (Unauthorized)",
            *(UserError, "nobody is logged in", "kubectl config view"),
        ),
        (
            "E1 memcache.go:265] dial tcp 127.0.0.1:8080: connect: connection refused\n"
            "The connection to the server localhost:8080 was refused - did you specify the right host?",
            *(DynoError, "does not answer: The connection to the server localhost", "kubectl cluster-info"),
        ),
        (
            'The Job "dyno-x" is invalid: spec.template.spec.restartPolicy: Required value',
            *(UserError, "Kubernetes refuses: The Job", "the template is "),
        ),
    ],
)
def test_what_kubectl_complains_of_is_one_message(
    played: Kubectl, complaint: str, kind: type[DynoError], said: str, hint: str
) -> None:
    for verb in ("create", "jobs,pods", "delete"):
        played.refuses(verb, complaint)
    launcher = Kubernetes("bench")
    for ask in (
        lambda: launcher.submit(order(1)),
        lambda: launcher.watch(RUN),
        lambda: launcher.cancel(RUN),
    ):
        with pytest.raises(kind, match=said) as error:
            ask()
        assert hint in error.value.hint and type(error.value) is kind


def test_a_host_without_kubectl_and_a_process_in_no_pod_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(kubernetes.COMMAND, raising=False)
    with pytest.raises(UserError, match="there is no kubectl here") as error:
        Kubernetes("bench").watch(RUN)
    assert kubernetes.COMMAND in error.value.hint
    with pytest.raises(UserError, match="'Bench' is no namespace of Kubernetes"):
        Kubernetes("Bench")
    with pytest.raises(UserError, match="this is no pod of a run"):
        Kubernetes("bench").placed({HOST: "n1"})
    variables = {HOST: "n1", "DYNO_JOB": "j", "JOB_COMPLETION_INDEX": "2", "DYNO_JOB_TAGS": "big,fast"}
    placed = Kubernetes("bench").placed(variables)
    assert (placed.host, placed.job, placed.tags, placed.left_s) == ("n1", "j-2", ("big", "fast"), None)


def test_what_jobs_said_is_found_by_the_run(played: Kubectl) -> None:
    launcher = Kubernetes("bench")
    launcher.cancel(RUN)
    assert played.asked("delete") == [
        (["--namespace=bench", "delete", "jobs", f"--selector=dyno-run={RUN}", "--wait=false"], "")
    ]
    assert f"--selector=dyno-run={RUN}" in launcher.words(RUN)
