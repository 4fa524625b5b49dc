"""Slurm as Debian has it, with nodes that are all this machine: a controller, munge, and a daemon for each
node, on loopback and in a folder of their own. Needs root.

A node's Dyno has folders of its own, which Slurm's prolog says to each job by the node's name.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.fleet.machines import FOLDERS, wait_for
from tests.needs import HOST_NAME, program_of_administrators

NODES = ("n1", "n2", "n3")
PARTITIONS = ("main", "low", "urgent")
_CONFIGURATION = """
ClusterName=dyno
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/prolog
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
TreeWidth=65533
ReturnToService=2
SlurmdTimeout=6
KillWait=20
{settings}
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs=1 Feature=big,fast
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs=1 Feature=big
NodeName=n3 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[3]} CPUs=1 Feature=big
PartitionName=main Nodes=n[1-3] Default=YES PreemptMode=OFF PriorityTier=1
PartitionName=low Nodes=n[1-3] PriorityTier=1 GraceTime=20 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n[1-3] PriorityTier=100 PreemptMode=OFF
"""
_PROLOG = """#!/bin/sh
for name in {names}; do
    mkdir -p -m 700 "{folder}/$SLURMD_NODENAME/$name"
    echo "export $name={folder}/$SLURMD_NODENAME/$name"
done
"""


class Cluster:
    """Daemons that can be killed and started."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder = folder
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        names = " ".join((*(name for name in FOLDERS if name != "XDG_CACHE_HOME"), "XDG_RUNTIME_DIR"))
        prolog = folder / "prolog"
        prolog.write_text(_PROLOG.format(names=names, folder=folder))
        prolog.chmod(0o755)
        ports = [_free_port() for _ in range(1 + len(NODES))]
        text = _CONFIGURATION.format(folder=folder, host=HOST_NAME, ports=ports, settings=settings)
        (folder / "slurm.conf").write_text(text)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)

    def start(self, name: str) -> None:
        """One of `munged`, `slurmctld` and the nodes."""
        command = [program_of_administrators(name if name in ("munged", "slurmctld") else "slurmd")]
        if name == "munged":
            places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
            command += [f"--{option}={self.folder}/munge.{end}" for option, end in places.items()]
            command += [f"--seed-file={self.folder}/munge.seed", "--foreground", "--force"]
        else:
            command += ["-D", *(() if name == "slurmctld" else ("-N", name))]
        with (self.folder / f"{name}.log").open("ab") as log:
            environment = {**os.environ, **self.variables}
            self._daemons[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        daemon = self._daemons.pop(name)
        daemon.send_signal(how)
        daemon.wait()

    def ask(self, *command: str) -> str:
        """What a command of Slurm's says; empty where it fails."""
        environment = {**os.environ, **self.variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip()

    def state_of(self, node: str) -> str:
        return self.ask("sinfo", "-h", "-n", node, "-p", "main", "-o", "%T")

    def jobs(self, state: str = "RUNNING") -> list[tuple[str, str]]:
        """The number of each job in a state, and its node."""
        found = self.ask("squeue", "-h", "-r", "-t", state, "-o", "%A|%N")
        return [(job, node) for job, _, node in (line.partition("|") for line in found.split())]

    def wait_until_idle(self) -> None:
        for node in NODES:
            wait_for(f"{node} is idle", lambda node=node: self.state_of(node) == "idle", 60.0)

    def hurry(self) -> None:
        """Slurm lets a job that is started again wait for two minutes."""
        for job, _ in self.jobs("PENDING"):
            self.ask("scontrol", "update", f"JobId={job}", "StartTime=now")

    def journals(self) -> list[Path]:
        """What a Dyno of a node has changed and not put back, once each job that ends has ended: while its
        processes put back, it is none that runs."""
        wait_for("jobs have ended", lambda: not self.jobs("COMPLETING"), 60.0)
        return [path for path in self.folder.glob("n?/DYNO_HOST_FOLDER/journal/*") if path.is_file()]

    def close(self) -> None:
        if "slurmctld" in self._daemons:
            self.ask("scancel", "--user=root")
            with suppress(AssertionError):
                wait_for("no job is left", lambda: not self.ask("squeue", "-h"), 30.0)
        for name in list(self._daemons):
            self.stop(name)


@contextmanager
def cluster(settings: str = "") -> Iterator[Cluster]:
    """A cluster whose nodes wait for work, with lines of its configuration. All that runs there is gone at
    the end."""
    folder = Path(tempfile.mkdtemp(prefix="dyno-slurm-"))
    made = Cluster(folder, settings)
    try:
        for name in ("munged", "slurmctld", *NODES):
            made.start(name)
        made.wait_until_idle()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])
