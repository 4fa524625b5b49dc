"""The load that clients on other hosts put on the server. All else stays with the load process here."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.driver import shares
from dbdyno.driver.job import Job
from dbdyno.driver.link import Bandwidth, LinkReading, LoadHost, Moment, Stamps
from dbdyno.driver.load import (
    QUERY_TIMEOUT_S,
    Explained,
    Invariant,
    LoadDriver,
    Prepared,
    StatementsAnswered,
)
from dbdyno.driver.load_process import CLOSE_S, Conversation, Explain
from dbdyno.driver.remote import ssh
from dbdyno.driver.remote.boot import ALIVE, CONNECT_S
from dbdyno.driver.remote.ssh import archive, bandwidth
from dbdyno.driver.shares import Answer, InStretches
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, remedy
from dbdyno.host.process import confine

ANSWER_S = 30.0
"""How long a load host may take to answer what needs no driver."""
BEAT_S, QUIET_S = 30.0, 120.0
"""How often a driver is told that it is still wanted, and how long it stays without hearing of that: a
network that is silent ends no connection."""
TRIPS, TRIPS_BETWEEN = 9, 3
"""Round trips that are timed before and after a load, and between two slices."""
INSTALL_S = 600.0


@dataclass(frozen=True)
class ReachedServer:
    """Where a load host finds the server: its address and port, the URL of the account that is for the load,
    and the certificate that the server must show, as PEM; empty without encryption."""

    address: str
    port: int
    url: str
    certificate: str = ""


class DriverOnHost:
    """A driver that runs on a host, started over SSH from the file that was copied there.

    Raises DriverFailed where it cannot be reached or started, with what would mend that. Ends with the
    connection, whichever side ends that.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.digest = archive().digest
        self._began = False
        self._over = threading.Event()
        self._conversation = _over_ssh(host, f"start({self.digest!r}, {QUIET_S})", self._explain)
        try:
            self.about: Answer = _first_answer(self._conversation, host, "start", ssh.START_TIMEOUT_S)[
                "ready"
            ]
        except BaseException:
            self.kill()
            raise
        self._began = True
        threading.Thread(target=self._beat, name="beat", daemon=True).start()

    def ask(self, timeout_s: float, **request: Any) -> Answer:
        """The answer to a request, within so many seconds."""
        return self._conversation.ask(timeout_s, **request)

    def request(self, **request: Any) -> None:
        """Sends a request; `answer` fetches what it is answered."""
        self._conversation.request(**request)

    def answer(self, verb: str, timeout_s: float) -> Answer:
        """The answer to the request that was sent, within so many seconds."""
        return self._conversation.answer(verb, timeout_s)

    def ping(self) -> tuple[Stamps, Answer]:
        """When a request was sent and answered, and what that host's CPUs did under load so far (s)."""
        sent_s = time.time()
        reply: Answer = self.ask(ANSWER_S, verb="ping")["reply"]
        stamps = Stamps(
            sent_s=sent_s,
            received_s=reply.pop("received_unix_s"),
            answered_s=reply.pop("sent_unix_s"),
            returned_s=time.time(),
        )
        return stamps, reply

    def connects_s(self, reached: ReachedServer, count: int) -> list[float]:
        """How long connections to the server take to open, each in seconds. Raises DriverFailed where one
        cannot be opened."""
        where: Answer = {"address": reached.address, "port": reached.port}
        try:
            answer = self.ask(ANSWER_S + CONNECT_S * count, verb="reach", count=count, **where)
        except DriverFailed as refused:
            if refused.kind != "connect":
                raise
            raise DriverFailed(
                f"{self.host} does not reach the server at {reached.address}, port {reached.port}:"
                f" {refused.message}",
                "give the address of this host that it reaches, and let it pass any firewall",
            ) from None
        connects_s: list[float] = answer["reply"]["connects_s"]
        return connects_s

    def bandwidth(self, address: str, round_trip_s: float) -> Bandwidth | None:
        """What the network carries between that host and an address of this one; None where the host does
        not reach it."""
        return bandwidth(address, round_trip_s, self._conversation)

    def hold(self, text: str) -> str:
        """A path on the host, of memory that the driver's process alone reads, which holds the text."""
        path: str = self.ask(ANSWER_S, verb="hold", text=text)["reply"]["path"]
        return path

    def close(self) -> None:
        self._over.set()
        self._conversation.close()

    def kill(self) -> None:
        self._over.set()
        self._conversation.kill()

    def _beat(self) -> None:
        line = json.dumps({"verb": ALIVE}).encode() + b"\n"
        while not self._over.wait(BEAT_S):
            self._conversation.beat(line)

    def _explain(self, verb: str, code: int, said: str) -> DriverFailed:
        if not self._began:
            return ssh.not_reached(self.host, code, said)
        return ssh.lost(self.host, verb, code, said)


class AtHost:
    """One host of a load: its driver, and what the last load showed of it and of the way to it."""

    def __init__(self, driver: DriverOnHost, reached: ReachedServer) -> None:
        self.driver, self._reached = driver, reached
        tls = f"verify&tls_ca={driver.hold(reached.certificate)}" if reached.certificate else "off"
        self.url = f"{reached.url}?tls={tls}"
        self._before: Answer = {}
        self._used: Answer = {}
        self._readings: list[LinkReading] = []
        self._shared: Answer = {}

    def seen(self) -> LoadHost:
        """The host and the link."""
        used = {name: round(value - self._before.get(name, 0.0), 6) for name, value in self._used.items()}
        return LoadHost(
            name=self.driver.host,
            address=self._reached.address,
            encrypted=bool(self._reached.certificate),
            driver=self.driver.digest,
            **self.driver.about,
            **used,
            **self._shared,
            readings=tuple(self._readings),
        )

    def begin(self) -> None:
        """A load is to begin."""
        self._readings, self._shared = [], {}
        self.measure("before", TRIPS)
        self._before = self._used

    def measured_from_here(self) -> None:
        """What was used until now is no part of what is measured."""
        self._before = self.driver.ping()[1]

    def measure(self, moment: Moment, trips: int) -> None:
        """Reads the link while nothing is timed, and what the host's CPUs did under load so far."""
        stamps = list[Stamps]()
        for _ in range(trips):
            one, self._used = self.driver.ping()
            stamps.append(one)
        reading = LinkReading.of(moment, self.driver.connects_s(self._reached, trips), stamps)
        if moment != "between":
            trip_s = reading.network.median_s
            reading = reading.but(bandwidth=self.driver.bandwidth(self._reached.address, trip_s))
        self._readings.append(reading)

    @property
    def ahead_s(self) -> float:
        """How far the host's clock is ahead of the one here. The link has been measured."""
        clock = self.seen().clock
        assert clock is not None, "a load that is over has readings"
        return clock.clock_offset_s

    def shared(self, clients: int, operations: int, late_s: float) -> None:
        """Notes the host's part of a load, of which it began a stretch so much later than the first host."""
        self._shared = {"clients": clients, "operations": operations, "late_s": late_s}


class RemoteLoad(InStretches):
    """A load whose clients run on another host, or on several that share them. The load process `beside` the
    server asks it all else: so proofs, invariants and plans do not depend on the network.

    `seen` tells of the last load. The times of its tally are by this host's clock.
    """

    def __init__(self, beside: LoadDriver, drivers: Sequence[DriverOnHost], reached: ReachedServer) -> None:
        self._beside = beside
        self._hosts = [AtHost(driver, reached) for driver in drivers]

    @property
    def process_id(self) -> int:
        """That of the process beside the server."""
        return self._beside.process_id

    @property
    def seen(self) -> tuple[LoadHost, ...]:
        """The load hosts and the links, as the last load found them."""
        return tuple(host.seen() for host in self._hosts)

    def prepare(self, job: Job) -> Prepared:
        return self._beside.prepare(job)

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        return self._beside.check(job, acknowledged)

    def explain(self, job: Job) -> Explained:
        return self._beside.explain(job)

    def answers(self, job: Job) -> StatementsAnswered:
        return self._beside.answers(job)

    def query(self, url: str, sql: str, timeout_s: float = QUERY_TIMEOUT_S) -> list[list[str | float | None]]:
        return self._beside.query(url, sql, timeout_s)

    def begin(self, job: Job) -> Tally | None:
        for host in self._hosts:
            host.begin()
        over = self._begin(job.but(folder=""))
        if len(self._hosts) > 1:
            # All are connected, and each has looked at the data. Now they go.
            assert over is None, "hosts that share a load wait for each other"
            self._measured_from_here()
            over = self._stretch(verb="go on")
        if over is None:
            # The rest was the warm-up.
            self._measured_from_here()
        return over

    def go_on(self) -> Tally | None:
        for host in self._hosts:
            host.measure("between", TRIPS_BETWEEN)
        return self._stretch(verb="go on")

    def close(self) -> None:
        for host in self._hosts:
            host.driver.close()

    def kill(self) -> None:
        for host in self._hosts:
            host.driver.kill()

    def _measured_from_here(self) -> None:
        for host in self._hosts:
            host.measured_from_here()

    def _ask(self, timeout_s: float, **request: Any) -> Answer:
        """The answer of all hosts together."""
        drivers, urls = [host.driver for host in self._hosts], [host.url for host in self._hosts]
        answers = shares.asked(drivers, urls, request, timeout_s)
        if told := shares.told_by(answers):
            return told
        for host in self._hosts:
            host.measure("after", TRIPS)
        return {"reply": self._tally([one["reply"] for one in answers])}

    def _tally(self, counted: Sequence[Answer]) -> Answer:
        """The tally of all hosts, by the clock here."""
        here = [by_clock_here(one, host.ahead_s) for one, host in zip(counted, self._hosts, strict=True)]
        if len(here) == 1:
            return here[0]
        for host, portion, part in zip(self._hosts, here, shares.parts_of(here), strict=True):
            host.shared(*part)
            if reason := portion["total"]["saturated"]:
                portion["total"]["saturated"] = f"on {host.driver.host}, {reason}"
        return shares.merged(here)


def by_clock_here(counted: Answer, ahead_s: float) -> Answer:
    """A tally, or what a share of a load counted, whose times are those of a clock that is ahead by so many
    seconds, by the clock here."""
    if "total" in counted:
        return {**counted, "total": by_clock_here(counted["total"], ahead_s)}
    slices = [{**one, "started_unix_s": one["started_unix_s"] - ahead_s} for one in counted["slices"]]
    return {**counted, "started_unix_s": counted["started_unix_s"] - ahead_s, "slices": slices}


def install(host: str) -> str:
    """Copies the driver's file to a host and returns its path there. Raises DriverFailed where that cannot be
    done, with what would mend it."""
    file = archive()
    conversation = _over_ssh(
        host,
        f"keep({file.digest!r}, {len(file.content)})",
        lambda _verb, code, said: ssh.not_reached(host, code, said),
    )
    try:
        conversation.send(file.content, "install")
        kept: str = _first_answer(conversation, host, "install", INSTALL_S)["kept"]
    except BaseException:
        conversation.kill()
        raise
    conversation.close()
    return kept


def _over_ssh(host: str, call: str, explain: Explain) -> Conversation:
    """A program of `boot.py` on a host, with its text sent."""
    text = ssh.program(call)
    try:
        conversation = Conversation(
            ssh.command(host, text),
            explain,
            who=f"the driver on {host}",
            environment=dict(os.environ),
            before_exec=confine(),
            close_s=CLOSE_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DriverFailed(
            f"{ssh.client()[0]} cannot be started: {reason}",
            remedy(error, "install OpenSSH's client: apt install openssh-client"),
        ) from None
    conversation.send(text.encode(), "start")
    return conversation


def _first_answer(conversation: Conversation, host: str, verb: str, timeout_s: float) -> Mapping[str, Any]:
    """The first line of `boot.py`. A login shell may print lines of its own before it."""
    while True:
        line = conversation.line(verb, timeout_s)
        answer = _json_of(line)
        if "refused" in answer:
            raise ssh.refused(host, answer)
        if answer:
            return answer


def _json_of(line: bytes) -> Mapping[str, Any]:
    """An answer of `boot.py`; empty for what is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    known = ("ready", "kept", "refused")
    return found if isinstance(found, dict) and any(name in found for name in known) else {}
