"""A real server's password arrives by every way that a user has, and is found nowhere afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from dbdyno.driver.passwords import query
from dbdyno.frozen import Level
from tests.cli.calls import complaint, dyno
from tests.cli.import_cases import logs as logs
from tests.conformance.conftest import shelf as shelf
from tests.conformance.conftest import started
from tests.conftest import DYNO
from tests.loopback import drawn_address

HOSTS = {"mariadb": drawn_address(), "postgresql": drawn_address()}
SECRET = "S3cret ä@:x/2#1"
LEAST = 9
"""So many characters of it, as they are or escaped, are no accident."""
LOAD = ("point_select", "--table-size", "100")


@dataclass(frozen=True)
class Account:
    """Who may log in with the password, and the URL without one."""

    engine: str
    url: str
    scheme: str = ""

    @property
    def with_password(self) -> str:
        return self.url.replace("me@", f"me:{quote(SECRET, safe='')}@")


@pytest.fixture(scope="module")
def accounts(
    tmp_path_factory: pytest.TempPathFactory, shelf: Path, fetched_engines: Path
) -> Iterator[dict[str, Account]]:
    folder = tmp_path_factory.mktemp("servers")
    rules = folder / "pg_hba.conf"
    rules.write_text("local all all trust\nhost all all all scram-sha-256\n")
    mariadb: dict[str, Level] = {
        "skip_networking": "OFF",
        "bind_address": HOSTS["mariadb"],
        "port": 3306,
    }
    postgresql: dict[str, Level] = {"listen_addresses": HOSTS["postgresql"], "hba_file": str(rules)}
    with (
        started("mariadb", mariadb, folder / "mariadb", shelf) as one,
        started("postgresql", postgresql, folder / "postgresql", shelf) as other,
    ):
        query(one.url, f"CREATE USER me@'%' IDENTIFIED BY '{SECRET}'")
        query(one.url, "GRANT ALL ON *.* TO me@'%'")
        query(other.url, f"CREATE ROLE me SUPERUSER LOGIN PASSWORD '{SECRET}'")
        query(other.url, "CREATE DATABASE runs")
        found = {
            "mariadb": Account("mariadb", f"mysql://me@{HOSTS['mariadb']}/dyno"),
            "postgresql": Account("postgresql", f"postgresql://me@{HOSTS['postgresql']}/dyno"),
        }
        for account in found.values():
            done = dyno("load", "prepare", *LOAD, "--url", account.with_password)
            assert done.returncode == 0, done.stderr
        yield found


def by_variable(account: Account, _folder: Path, patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    patch.setenv("DYNO_URL", account.with_password)
    return ()


def by_file(account: Account, folder: Path, _patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    file = folder / "url"
    file.touch(mode=0o600)
    file.write_text(account.with_password + "\n")
    return "--url", f"@{file}"


def by_the_clients_place(account: Account, folder: Path, patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    file = folder / (".my.cnf" if account.engine == "mariadb" else "passwords")
    file.touch(mode=0o600)
    patch.setenv("HOME", str(folder))
    patch.setenv("PGPASSFILE", str(folder / "passwords"))
    escaped = SECRET.replace(":", "\\:")
    of_file = {
        "mariadb": f'[client]\npassword="{SECRET}"\n',
        "postgresql": f"{HOSTS['postgresql']}:5432:*:me:{escaped}\n",
    }
    file.write_text(of_file[account.engine])
    return "--url", account.url


def by_argument(account: Account, _folder: Path, _patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    return "--url", account.with_password


WAYS = (
    ("mariadb", by_file),
    ("mariadb", by_the_clients_place),
    ("postgresql", by_variable),
    ("postgresql", by_the_clients_place),
    ("postgresql", by_argument),
)


def holds_it(text: str) -> bool:
    """Whether any long part of the password is in a text, as it is or escaped."""
    forms = (SECRET, quote(SECRET, safe=""), quote(SECRET), json.dumps(SECRET)[1:-1])
    return any(
        form[start : start + LEAST] in text for form in forms for start in range(len(form) - LEAST + 1)
    )


def shown_by_the_host(child: subprocess.Popen[str]) -> list[str]:
    """The arguments of all processes, as often as they were read while a child ran."""
    seen = []
    while child.poll() is None:
        texts = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                texts.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        seen.append("\n".join(texts))
        time.sleep(0.05)
    return seen


def left_below(folder: Path, given: set[Path]) -> list[Path]:
    """The files below a folder that hold the password, but for those that gave it."""
    files = (place for place in folder.rglob("*") if place.is_file() and place not in given)
    return [place for place in files if holds_it(place.read_bytes().decode(errors="replace"))]


@pytest.mark.parametrize(("engine", "way"), WAYS)
def test_a_load_leaves_its_password_nowhere(
    engine: str, way: object, accounts: dict[str, Account], homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(way)
    options = way(accounts[engine], homes, monkeypatch)
    given = {place for place in homes.rglob("*") if place.is_file()}
    written = ("--hdr-log", str(homes / "latencies"), "--json")
    command = [*DYNO, "load", "run", *LOAD, *options, "--warmup", "0", "--time", "1", *written]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    arguments = shown_by_the_host(child)
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    assert json.loads(output)["operations"] > 0
    assert any("point_select" in one for one in arguments)
    # What is given as an argument can be seen until Dyno hides it, which it does before it loads anything.
    assert not any(map(holds_it, arguments[len(arguments) // 2 :] if way is by_argument else arguments))
    assert not holds_it(output + errors)
    assert left_below(homes, given) == []


@pytest.mark.parametrize("engine", HOSTS)
def test_a_load_that_fails_tells_no_password(engine: str, accounts: dict[str, Account], homes: Path) -> None:
    url = accounts[engine].with_password
    wrong = (
        url.replace("/dyno", "/there_is_none"),
        url.replace("me:", "nobody:"),
        url.replace("@127", "@127.0.0.1:1/127"),
        url + "?unknown=1",
        url.replace("://", ":"),
        url.replace("@127", "@127:x"),
        accounts[engine].url.replace("me@", f"me:{SECRET}@").replace(" ", ""),
    )
    for one in wrong:
        said = dyno("load", "run", *LOAD, "--url", one, "--time", "1")
        assert said.returncode != 0, one
        assert said.stderr and not holds_it(said.stdout + said.stderr)
    assert left_below(homes, set()) == []


def test_a_store_with_a_password_shows_it_in_no_form(accounts: dict[str, Account], logs: Path) -> None:
    url = accounts["postgresql"].with_password.replace("/dyno", "/runs")
    file = logs / "store-url"
    file.touch(mode=0o600)
    file.write_text(url)
    said = []
    store = ("--store", f"@{file}")
    for arguments in (
        (
            "import",
            "pgbench",
            "--as",
            f"old={logs / 'old/pgbench_log.10'}",
            "--as",
            f"new={logs / 'new/pgbench_log.10'}",
        ),
        ("runs", "list", "--json"),
        ("runs",),
        ("report", "last", "--output", str(logs / "page.html")),
        ("report", "last", "--format", "json"),
        ("export", "last", "--csv", str(logs / "tables")),
        ("show", "last"),
        ("report", "nobody"),
        ("config",),
    ):
        done = dyno(*arguments, *(() if arguments == ("config",) else store))
        said.append((arguments, done.returncode, done.stdout + done.stderr))
    assert [(arguments, text) for arguments, code, text in said if code and "nobody" not in arguments] == []
    assert not any(holds_it(text) for _, _, text in said)
    assert left_below(logs, {file}) == []


@pytest.mark.parametrize("option", ["--url", "--store"])
def test_a_file_that_others_may_read_gives_no_url(option: str, homes: Path) -> None:
    file = homes / "url"
    file.write_text("postgresql://me:s3cret-word@127.0.0.1:1/x\n")
    file.chmod(0o640)
    verb = ("load", "run", "tpcb") if option == "--url" else ("runs",)
    said = complaint(*verb, option, f"@{file}")
    assert "other users may read or change it (its mode is 0640)" in said
    assert f"chmod 600 {file}" in said
    assert "s3cret" not in said
    file.chmod(0o600)
    assert "other users" not in complaint(*verb, option, f"@{file}", code=1)
