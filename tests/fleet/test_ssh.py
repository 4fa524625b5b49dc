"""Workers that SSH starts on hosts: one is there once, is found again, and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.fleet.launcher import HOST, JobOrder, JobState
from dbdyno.fleet.ssh import Ssh
from tests.fleet.machines import wait_for
from tests.load_hosts import NAME, OTHER_NAME, apart

SAYS = ("sh", "-c", f'echo "$DYNO_STORE on ${HOST}"; while :; do sleep 1; done', "dyno", "--for", "first")
SECRET = "postgresql://dyno:secret@db.example/dyno"


@pytest.mark.engine
def test_a_worker_is_started_once_found_again_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with apart(tmp_path, monkeypatch) as there:
        launcher = Ssh(f"{NAME},{OTHER_NAME}")
        order = JobOrder("first", SAYS, SECRET, 60.0, hosts=launcher.hosts)
        assert launcher.watch("first") == []
        launcher.submit(order)
        files = there.home / ".cache" / "dyno" / "jobs"
        wait_for(
            "both say something", lambda: sum(map(bool, map(Path.read_text, files.glob("*.log")))) == 2, 30.0
        )
        said = {one.name: one.read_text() for one in files.glob("*.log")}
        assert said == {f"dyno-first-{host}.log": f"{SECRET} on {host}\n" for host in launcher.hosts}
        assert all(one.stat().st_mode & 0o077 == 0 for one in files.iterdir())
        numbers = {one.name: one.read_text() for one in files.glob("*.pid")}
        launcher.submit(order)
        assert {one.name: one.read_text() for one in files.glob("*.pid")} == numbers
        found = launcher.watch("first")
        assert [(job.host, job.state) for job in found] == [(host, JobState.WORKS) for host in launcher.hosts]
        assert launcher.watch("second") == []
        launcher.cancel("first")
        wait_for(
            "both are over",
            lambda: {job.state for job in launcher.watch("first")} == {JobState.OVER},
            30.0,
        )
        with pytest.raises(UserError, match=f"no worker begins on {NAME}: there is no /no/dyno") as error:
            launcher.submit(JobOrder("third", ("/no/dyno",), SECRET, 60.0, hosts=(NAME,)))
        assert "install Dyno there" in error.value.hint
        there.sshd.kill()
        there.sshd.wait()
        with pytest.raises(UserError, match=f"{NAME} does not answer SSH") as error:
            launcher.submit(order)
        assert {job.state for job in launcher.watch("first")} == {JobState.WAITS}


def test_ssh_knows_hosts_by_their_names_alone() -> None:
    assert Ssh("a,b,a").hosts == ("a", "b")
    with pytest.raises(UserError, match="SSH knows no tags of hosts"):
        Ssh("a", ("big",))
    for address in ("root@a", "a:2222", ""):
        with pytest.raises(UserError, match="cannot be the name of a host") as error:
            Ssh(f"b,{address}")
        assert "~/.ssh/config" in error.value.hint
    assert Ssh("a").placed({HOST: "a"}).host == "a"
    with pytest.raises(UserError, match="no `--fleet ssh:` started this worker"):
        Ssh("a").placed({})
