"""Programs that pass SQL on: what they are given, what stands in front of a server, and its proof."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from dbdyno.applications import front
from dbdyno.applications.front import FrontWish, SqlFront, filled_in, load_url, program_here
from dbdyno.applications.registry import FRONTS
from dbdyno.errors import Blocked, EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.study import Factor
from dbdyno.study.nouns import FrontProgram
from tests.needs import needs_haproxy, needs_pgbouncer, on_machine
from tests.trials import study_of, tried

OF_SHELL = FrontProgram(command="sh -c ${configuration}", shares=True)


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
    program_here.cache_clear()
    with pytest.raises(EngineMissing) as missing:
        program_here("pgbouncer", "pgbouncer x")
    assert "apt install pgbouncer" in missing.value.hint
    with pytest.raises(EngineMissing) as missing:
        program_here("mine", "/opt/mine x")
    assert "/opt/mine" in missing.value.hint
    program_here.cache_clear()


def test_what_a_program_does_not_show_is_blocked_before_it_starts(tmp_path: Path) -> None:
    haproxy = FRONTS["haproxy"]
    wish = FrontWish("haproxy", {"tune.bufsize": 1})
    with pytest.raises(Blocked, match=r"HAProxy does not show tune\.bufsize"):
        front.start_front(wish, haproxy.program, haproxy.text, SimpleNamespace(url="mysql://x/y"), tmp_path)


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
        assert isinstance(passing, SqlFront)
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
    behind = SimpleNamespace(url="postgresql://dyno@localhost/dyno?socket=%2Fnowhere%2F.s.PGSQL.5432")
    with pytest.raises(ServerFailed) as failed:
        front.start_front(FrontWish("mine", {}), OF_SHELL, "", behind, tmp_path / "one")
    assert failed.value.message.startswith("mine ended with exit code")
    assert "front.conf" in failed.value.log + failed.value.hint
