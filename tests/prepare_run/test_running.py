"""What a plan says of an account's rights on a server that runs already."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.errors import EngineMissing
from tests.cli.calls import complaint, dyno
from tests.running_server import TUNER, UsersServer, users_server

STUDY = """
engine = "{url}"
blocks = 1
[server]
[workload]
name = "tpcb"
[factors]
{factors}
"""
BY_SESSION = {
    "postgresql": '"config.work_mem" = ["1MB", "4MB"]',
    "mariadb": '"config.sort_buffer_size" = ["256K", "4M"]',
    "mysql": '"config.sort_buffer_size" = ["256K", "4M"]',
}
BY_RELOAD = '"config.checkpoint_timeout" = ["5min", "10min"]'


@pytest.fixture(params=["postgresql@15", "mariadb@11.8", "mysql@9"])
def server(request: pytest.FixtureRequest, homes_with_engines: Path) -> Iterator[UsersServer]:
    """With an account that has no right."""
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server(request.param, Path(folder)) as found:
                is_postgresql = found.installation.engine == "postgresql"
                found.tell(
                    f"CREATE ROLE {TUNER} LOGIN" if is_postgresql else f"CREATE USER {TUNER}@localhost"
                )
                if not is_postgresql:
                    found.tell(f"GRANT SELECT ON dyno.* TO {TUNER}@localhost")
                yield found
        except EngineMissing as missing:
            pytest.skip(f"{request.param} is not here: {missing.message}")


def test_all_rights_that_lack_are_told_before_anything_runs(homes: Path, server: UsersServer) -> None:
    engine, path = server.installation.engine, homes / "study.toml"
    path.write_text(STUDY.format(url=server.url, factors=BY_SESSION[engine]))
    if engine == "postgresql":
        grant = given = f"GRANT CREATE ON DATABASE dyno TO {TUNER}"
    else:
        grant, given = "GRANT ALL ON `dyno\\_%`.* TO", f"GRANT CREATE ON *.* TO {TUNER}@localhost"
    planned = dyno("plan", str(path))
    assert planned.returncode == 2, "no trial could begin"
    assert grant in planned.stderr and "may not make a schema" in " ".join(planned.stderr.split())
    assert f"{grant}" in complaint("run", str(path), "--allow-server", server.url)
    server.tell(given)
    assert "may not" not in _planned(path) and dyno("plan", str(path)).returncode == 0
    if engine == "postgresql":
        path.write_text(STUDY.format(url=server.url, factors=BY_RELOAD))
        for right in ("ALTER SYSTEM ON PARAMETER", "EXECUTE ON FUNCTION pg_reload", "SELECT ON pg_file"):
            assert f"GRANT {right}" in _planned(path)


def _planned(path: Path) -> str:
    said = dyno("plan", str(path))
    return " ".join((said.stdout + said.stderr).split())
