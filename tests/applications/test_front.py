"""Programs in front of a server: what they are given, what prepares one, and what it is that runs."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from dbdyno.applications import front
from dbdyno.applications.front import (
    Front,
    FrontPlan,
    FrontWish,
    Spent,
    filled_in,
    load_url,
    packages_digest,
    program_here,
    start_front,
)
from dbdyno.applications.registry import FRONTS
from dbdyno.engines.engine import Server
from dbdyno.errors import Blocked, EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.study import Factor
from dbdyno.study.front import FrontProgram
from tests.applications.environment_cases import ALL, PACKAGES, environment
from tests.needs import needs_haproxy, needs_pgbouncer, on_machine
from tests.trials import study_of, tried

OF_SHELL = FrontProgram(command="sh -c ${configuration}", shares=True)
URL = "mysql://dyno@localhost/dyno?socket=%2Frun%2Fa%20b%2Fmariadb.sock"


@pytest.fixture(autouse=True)
def looked_for_anew() -> None:
    program_here.cache_clear()


def started(plan: FrontPlan, url: str, runtime: Path) -> Front:
    server = cast(Server, SimpleNamespace(url=url))
    return start_front(plan, server, runtime / "data", runtime)


def of_python(served: str, **more: Any) -> FrontPlan:
    """An application that is a text of Python's, for the settings `a.x` and `a.y`."""
    program = FrontProgram(
        **{
            "command": f"{sys.executable} -c 'exec(open(\"${{configuration}}\").read())' ${{socket}}",
            "socket": "${runtime}/http.sock",
            "setting": "#[${section}] ${key}=${value}",
            "ready": "GET /",
            **more,
        }
    )
    return FrontPlan(FrontWish("served", {"a.x": 4, "a.y": False}), program, {"served.py": served})


SERVED = """
import os, socketserver, struct, sys, time
from http.server import BaseHTTPRequestHandler

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response_only(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

server = socketserver.UnixStreamServer(sys.argv[1], Answer)
main = os.getpid()
worker = os.fork()
open(f"spent-{os.getpid()}", "wb").write(struct.pack("3d", 2.0, 0.5, 0.25))
lines = ["a.x = 4", f"a.y: {'false' if worker else 'true'}", "server ${server}", "package.Served = 1.0"]
open(f"told-{os.getpid()}.making", "w").write("\\n".join(lines))
os.rename(f"told-{os.getpid()}.making", f"told-{os.getpid()}")
while not worker and os.getppid() == main:
    time.sleep(0.05)
if worker:
    server.serve_forever()
"""


def test_a_text_is_filled_in_and_a_name_that_stands_for_nothing_is_told() -> None:
    assert filled_in("a ${port} $$b", {"port": "7"}, "[front.mine]") == "a 7 $b"
    with pytest.raises(UserError, match=r"\$\{prot\} stands for nothing in \[front\.mine\]"):
        filled_in("${prot}", {"port": "7"}, "[front.mine]")
    with pytest.raises(UserError, match="begins no name"):
        filled_in("5$ ", {}, "[front.mine]")


@pytest.mark.parametrize(
    ("url", "shared", "told"),
    [
        ("postgresql://dyno@localhost/dyno?socket=%2Fr%2Fs", True, "pooled-way"),
        ("mysql://dyno@localhost/dyno?socket=%2Fr%2Fs", False, None),
        ("postgresql://dyno@localhost/dyno?socket=%2Fa%20b%2Fs", True, "pooled-way"),
    ],
)
def test_all_variants_send_statements_alike_where_one_shares_sessions(
    url: str, shared: bool, told: str | None
) -> None:
    study = study_of("postgresql", {}).but(
        factors=(Factor(name="front.kind", levels=("none", "a", "b")),),
        fronts={"a": FrontProgram(command="a"), "b": FrontProgram(command="b", shares=shared)},
    )
    led = urlsplit(load_url(url, study, "pooled-way"))
    assert parse_qs(led.query).get("statements", [None]) == [told]
    # The driver takes a `+` as it stands.
    assert "+" not in led.query
    assert parse_qs(led.query)["socket"] == parse_qs(urlsplit(url).query)["socket"]
    assert led._replace(query="") == urlsplit(url)._replace(query="")


def test_a_program_that_is_not_here_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "PLACES", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineMissing) as missing:
        program_here("pgbouncer", FRONTS["pgbouncer"].program)
    assert "apt install pgbouncer" in missing.value.hint
    with pytest.raises(EngineMissing) as missing:
        program_here("mine", FrontProgram(command="/opt/mine x"))
    assert "/opt/mine" in missing.value.hint


def test_what_a_program_does_not_show_is_blocked_before_it_starts(tmp_path: Path) -> None:
    haproxy = FRONTS["haproxy"]
    wish = FrontWish("haproxy", {"tune.bufsize": 1})
    with pytest.raises(Blocked, match=r"HAProxy does not show tune\.bufsize"):
        started(FrontPlan(wish, haproxy.program, {"front.conf": haproxy.text}), "mysql://x/y", tmp_path)


@pytest.fixture
def blank_in_runtime(homes_with_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sockets and files of servers lie in a folder with a blank in its name."""
    with tempfile.TemporaryDirectory(prefix="dyno a ") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield


@pytest.mark.engine
@needs_pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_pgbouncer_passes_a_load_on_and_shows_its_settings(blank_in_runtime: None, mode: str) -> None:
    levels: dict[str, Level] = {
        "front__pool_mode": mode,
        "front__default_pool_size": 30,
        "front__kind": "pgbouncer",
    }
    with tried("postgresql", **levels) as found:
        passing = found.running.front
        assert passing is not None and passing.passes_sql
        assert found.value("front.kind").startswith("PgBouncer 1.")
        assert (found.value("front.pool_mode"), found.value("front.default_pool_size")) == (mode, "30")
        assert passing.process.url.partition("?")[0] == found.running.server.url.partition("?")[0]
        assert passing.process.url != found.running.server.url
        assert "statements=unnamed" in found.running.setup.job.url
        assert "s of CPU" in found.exercised("front.kind")
        process = psutil.Process(passing.process.child.pid)
    assert not process.is_running()
    assert passing.process.log_problems() == []


@pytest.mark.engine
@needs_haproxy
@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_haproxy_passes_a_load_on(blank_in_runtime: None, engine: str) -> None:
    with tried(engine, front__kind="haproxy", front__nbthread=1) as found:
        assert (found.value("front.kind").split()[0], found.value("front.nbthread")) == ("HAProxy", "1")
        assert "statements=" not in found.running.setup.job.url
        assert "s of CPU" in found.exercised("front.kind")


@pytest.mark.engine
def test_without_a_front_the_load_goes_to_the_server(homes_with_data: Path) -> None:
    with tried("postgresql", front__kind="none", front__pool_mode="session") as found:
        assert found.value("front.kind") == "none"
        assert found.value("front.pool_mode") == "nothing stands in front"
        assert found.running.front is None
        assert found.running.setup.job.url == found.running.server.url


@pytest.mark.engine
@needs_pgbouncer
def test_a_setting_that_the_program_refuses_is_told_with_its_words(homes_with_data: Path) -> None:
    with (
        pytest.raises(ServerFailed) as failed,
        tried("postgresql", front__kind="pgbouncer", front__pool_modus=1),
    ):
        pass
    assert "PgBouncer" in failed.value.message and "pool_modus" in failed.value.log


@pytest.mark.engine
def test_one_that_ends_at_once_or_answers_nothing_fails_with_its_log(tmp_path: Path) -> None:
    assert on_machine("sh")
    behind = "postgresql://dyno@localhost/dyno?socket=%2Fnowhere%2F.s.PGSQL.5432"
    with pytest.raises(ServerFailed) as failed:
        started(FrontPlan(FrontWish("mine", {}), OF_SHELL, {"front.conf": ""}), behind, tmp_path / "one")
    assert failed.value.message.startswith("mine ended with exit code")
    assert "front.conf" in failed.value.log + failed.value.hint


def test_files_are_filled_in_with_settings_in_sections(tmp_path: Path) -> None:
    plan = of_python("${user} ${database} ${server} ${workers}\n${settings}\n", workers=3)
    given = plan.written(URL, tmp_path / "data", tmp_path / "runtime")
    written = (tmp_path / "runtime" / "served.py").read_text()
    assert written == "dyno dyno /run/a b/mariadb.sock 3\n#[a] x=4\n#[a] y=false\n"
    assert given["configuration"] == str(tmp_path / "runtime" / "served.py")
    assert "data" not in given and "environment" not in given


def test_what_all_workers_tell_is_proved(tmp_path: Path) -> None:
    front = started(of_python(SERVED, workers=2), URL, tmp_path / "run")
    try:
        assert front.process.title == "served" and not front.passes_sql
        assert front.shown()["a.x"] == "4" and front.shown()["a.y"] == "false / true"
        proofs = {one.factor: one for one in front.prove()}
        assert proofs["front.workers"].in_effect and proofs["front.server"].in_effect
        packages = proofs["front.packages"]
        assert packages.effective is not None and not packages.in_effect
        assert packages.effective.value == packages_digest({"served": "1.0"})
        assert front.spent() == Spent(4.0, 1.0, 0.5)
        elsewhere = started(of_python(SERVED, workers=2), URL.replace("a%20b", "c"), tmp_path / "other")
        elsewhere.process.stop()
        assert front.process.log_problems() == []
    finally:
        front.process.stop()


def test_an_application_can_listen_on_a_port(tmp_path: Path) -> None:
    served = SERVED.replace(
        "socketserver.UnixStreamServer(sys.argv[1], Answer)",
        "socketserver.TCPServer(('127.0.0.1', int(sys.argv[1])), Answer)",
    )
    plan = of_python(served, socket="", command=of_python("").program.command.replace("${socket}", "${port}"))
    found = started(plan, URL, tmp_path)
    found.process.stop()
    assert urlsplit(found.process.url).hostname == "127.0.0.1" and found.process.url.startswith("http://")


def test_workers_that_tell_nothing_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "WORKERS_S", 0.5)
    with pytest.raises(ServerFailed, match="2 of the 3 workers of served told what they run with") as failed:
        started(of_python(SERVED, workers=3), URL, tmp_path)
    assert "told-PID" in failed.value.hint


def test_an_application_that_does_not_start_says_why(tmp_path: Path) -> None:
    lacking = of_python("print('[7] [ERROR] Exception in worker process'); raise SystemExit(3)")
    with pytest.raises(
        ServerFailed, match=r"exit code 3 while it was starting.*Exception in worker"
    ) as failed:
        started(lacking, URL, tmp_path)
    assert "served.py" in failed.value.hint


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        (
            ("true", "sh -c 'echo first; echo no such table; exit 1'"),
            "command 2 of `prepare` in .* failed: no such",
        ),
        (
            ("/nowhere/manage sync",),
            r"command 1 of `prepare` in \[front.served\] cannot be started: .*No such file",
        ),
        (("sleep 600",), r"command 1 .* did not end within 0.2 s"),
    ],
)
def test_a_command_that_prepares_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: tuple[str, ...], told: str
) -> None:
    monkeypatch.setattr(front, "PREPARE_S", 0.2 if "sleep" in commands[0] else 60.0)
    with pytest.raises(ServerFailed, match=told):
        of_python("", prepare=commands).populate(URL, tmp_path / "data", tmp_path / "run")


def test_what_an_application_keeps_is_for_nobody_else(tmp_path: Path) -> None:
    keeping = of_python("", prepare=("mkdir ${data}/keys", "touch ${data}/keys/0"))
    keeping.populate(URL, tmp_path / "data", tmp_path / "run")
    places = (tmp_path / "data", tmp_path / "data" / "keys", tmp_path / "data" / "keys" / "0")
    assert [place.stat().st_mode & 0o077 for place in places] == [0, 0, 0]


KEYSTONE = FrontProgram(command="${environment}/bin/gunicorn x", packages=PACKAGES, ready="GET /v3")


def test_an_environment_is_identified_by_all_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = environment(tmp_path / "dyno" / "applications" / "keystone-30.0.0", ALL)
    found = program_here("keystone", KEYSTONE)
    assert (found.version, found.command) == ("30.0.0", (str(here / "bin" / "gunicorn"), "x"))
    other = environment(tmp_path / "other", {**ALL, "SQLAlchemy": "2.0.1"})
    by_path = program_here("keystone", FrontProgram(command=f"{other}/bin/gunicorn x"))
    assert by_path.version == "30.0.0" and by_path.digest != found.digest
    same = environment(tmp_path / "same", ALL)
    # pip leaves a folder without a name behind when it is interrupted.
    (same / "lib" / "python3.11" / "site-packages" / "~ip-24.0.dist-info").mkdir()
    assert program_here("keystone", FrontProgram(command=f"{same}/bin/gunicorn")).digest == found.digest


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        ({}, r"\[front.keystone\] needs keystone==30.0.0, and .* lacks it"),
        (
            {**ALL, "keystone": "29.0.0"},
            r"\[front.keystone\] needs keystone==30.0.0, and .* holds 29.0.0",
        ),
        ({"keystone": "30.0.0", "PyMySQL": "1.2.4"}, "needs gunicorn, and .* lacks it"),
    ],
)
def test_an_environment_without_its_packages_is_told_with_what_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: dict[str, str], told: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prefix = environment(tmp_path / "dyno" / "applications" / "keystone-30.0.0", packages)
    with pytest.raises(EngineMissing, match=told) as missing:
        program_here("keystone", KEYSTONE)
    assert f"{prefix}/bin/pip install keystone==30.0.0 gunicorn PyMySQL" in missing.value.hint


def test_an_application_is_looked_for_until_it_is_there_and_then_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = KEYSTONE.but(packages=("keystone==30.0.0",))
    with pytest.raises(EngineMissing):
        program_here("keystone", program)
    prefix = environment(tmp_path / "dyno" / "applications" / "keystone-30.0.0", ALL)
    found = program_here("keystone", program)
    shutil.rmtree(prefix)
    assert program_here("keystone", program) is found


def test_only_lines_of_errors_are_problems() -> None:
    log = "1 INFO keystone [-] ready\n2 WARNING keystone [-] ERRORS are rare\n3 ERROR keystone [-] oh\n"
    assert front._problems(log) == ["3 ERROR keystone [-] oh"]
