"""`dyno register`, `dyno publish` and `dyno verify`: from a study to a folder that a stranger checks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.cli.trend_cases import keep
from tests.conftest import homes_in
from tests.study_texts import STUDY

MAIN = "from dbdyno.cli import main; main()"
SCRIPT = """
function prepare()
  sysbench.sql.driver():connect():query("CREATE TABLE t (a INTEGER)")
end
function thread_init()
  con = sysbench.sql.driver():connect()
end
function event()
  con:query("SELECT a FROM t")
end
"""
LUA = (
    STUDY.replace('"tpcb"', '"lua"')
    .replace('duration = "0.5s"', 'duration = "0.5s"\nfile     = "one.lua"')
    .replace("Which synchronous?", "Which synchronous, by a script?")
)


@dataclass(frozen=True)
class Published:
    """A folder on disk, the keys beside it, the entry that was registered, and the two runs of the study."""

    folder: Path
    public: Path
    entry: str
    runs: tuple[str, str]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """A registered study, run twice with SQLite, the second time with more blocks; that one is published."""
    home = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch, homes_in(home, patch):
        study, key, public, folder = (home / name for name in ("s.toml", "k.key", "k.pub", "out"))
        study.write_text(LUA)
        (home / "one.lua").write_text(SCRIPT)
        made = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)]
        subprocess.run(made, check=True, capture_output=True)
        read = ["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(public)]
        subprocess.run(read, check=True, capture_output=True)
        registered = dyno("register", str(study))
        assert registered.returncode == 0, registered.stderr
        for blocks in ("2", "3"):
            said = dyno("run", str(study), "--quiet", "--blocks", blocks)
            assert said.returncode == 0, said.stderr
        told = " ".join(dyno("report", "last").stdout.split())
        assert "was carried out otherwise: blocks 3 in place of 2" in told
        assert "knows 1 other run of this study" in told
        said = dyno("publish", "last", str(folder), "--key", str(key))
        assert said.returncode == 0, said.stderr
        with Store(store_url()) as store:
            first, second = (one.run.run for one in reversed(store.runs()))
        yield Published(folder, public, registered.stdout.strip(), (first, second))


@pytest.fixture
def elsewhere(published: Published, homes: Path) -> Path:
    """A copy of the folder where there is no store."""
    return Path(shutil.copytree(published.folder, homes / "copy"))


def test_a_stranger_without_a_store_verifies_the_folder(published: Published, elsewhere: Path) -> None:
    said = dyno("verify", str(elsewhere), "--key", str(published.public))
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.startswith("Holds: all was checked, by the key ")
    assert "BROKEN" not in said.stdout and "not checked" not in said.stdout
    whose = dyno("verify", str(elsewhere)).stdout.splitlines()[0]
    assert whose == "Holds. Whose folder it is was not checked: name the key by --key."
    assert "digit by digit" in said.stdout
    hidden = f"1 run ({published.runs[0]}) of the same study was not published"
    assert hidden in " ".join(said.stdout.split())
    assert not (elsewhere.parent / "data").exists(), "no store was made"
    chain = json.loads((elsewhere / "registrations.json").read_text())
    assert chain[0]["digest"] == published.entry
    [script] = (elsewhere / "files").iterdir()
    assert script.read_text() == SCRIPT


def test_one_changed_byte_ends_with_its_own_code(published: Published, elsewhere: Path) -> None:
    records = elsewhere / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"finished_unix_s":1', b'"finished_unix_s":2', 1))
    said = dyno("verify", str(elsewhere), "--key", str(published.public))
    assert said.returncode == 9 and "exit code 9" in said.stderr
    assert "records.jsonl was changed" in said.stdout
    assert said.stdout.startswith("BROKEN: the folder is not as it was published\n")


def test_a_file_of_any_size_takes_no_memory(published: Published, elsewhere: Path) -> None:
    for name in ("report.html", "more"):
        with (elsewhere / name).open("ab") as grown:
            grown.truncate(3 << 30)
    limited = ("prlimit", f"--as={4 << 30}:{4 << 30}", sys.executable, "-c", MAIN)
    said = subprocess.run([*limited, "verify", str(elsewhere)], capture_output=True, text=True)
    assert said.returncode == 9, said.stdout + said.stderr
    assert "report.html was changed; 1 more" in said.stdout
    assert "report.html: it is larger than 512 MiB" in " ".join(said.stdout.split())


def test_what_verify_prints_for_programs_is_as_its_schema_says(published: Published, elsewhere: Path) -> None:
    said = dyno("verify", str(elsewhere), "--json")
    require_valid("verify", said.stdout)
    found = json.loads(said.stdout)
    assert not found["trusted"] and found["run"] == published.runs[1]


def test_what_was_published_is_noted_in_the_chain(published: Published) -> None:
    with pytest.MonkeyPatch.context() as patch, homes_in(published.folder.parent, patch):
        assert "published" in dyno("report", published.runs[0], "--details").stdout
        listed = dyno("register", "--json").stdout
        require_valid("register-list", listed)
        [entry] = json.loads(listed)
        require_valid("register", json.dumps(entry))
        assert entry["digest"] == published.entry
        assert complaint("publish", "last", str(published.folder), "--unsigned")


def test_a_run_is_not_published_without_a_key_unawares(homes: Path) -> None:
    keep("first")
    refused = complaint("publish", "first", str(homes / "out"))
    assert "openssl genpkey -algorithm ed25519 -out dyno.key" in refused and "--unsigned" in refused
    assert not (homes / "out").exists()
    assert dyno("publish", "first", str(homes / "out"), "--unsigned").returncode == 0
    said = dyno("verify", str(homes / "out"))
    assert said.returncode == 12 and "not signed" in said.stdout
    first = said.stdout.splitlines()[0]
    assert first == "Not all was checked: signature. What was checked holds."
    assert "exit code 12, not all was checked" in said.stderr


def test_a_run_that_goes_on_is_not_published(homes: Path) -> None:
    keep("first", finished=False)
    assert "is not finished" in complaint("publish", "first", str(homes / "out"), "--unsigned")


def test_a_folder_that_nobody_published_is_told(homes: Path) -> None:
    assert "is no folder" in complaint("verify", str(homes / "none"))
    assert "nobody published it" in complaint("verify", str(homes))


def test_nobody_else_waits_for_the_libraries_that_sign() -> None:
    seen = "print([name for name in sys.modules if name.startswith(('securesystemslib', 'cryptography'))])"
    verbs = ", ".join(f"dbdyno.cli.{verb}" for verb in ("run", "report", "register", "schema", "publish"))
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {verbs}; {seen}"], capture_output=True, text=True
    )
    assert said.stdout == "[]\n", said.stderr
