"""The tree keeps each rule of `tidy.py` and `tidy_prose.py`, and each refuses an example that breaks it."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from dbdyno.cli import VERBS
from tests import tidy, tidy_prose
from tests.conftest import LONG
from tests.structure import ROOT, absent_imports, python_arrows, python_rooms
from tests.structure_rust import Arrows, circles, rust_arrows
from tests.structure_rust import rooms as rust_rooms
from tests.tidy import RULES, Source

ENDINGS = (".py", ".rs", ".toml", ".md", ".html", ".txt", ".sql")
PROGRAMS = ("Makefile", ".ci/")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


@cache
def tree() -> tuple[Source, ...]:
    """All files of text that git tracks. The rules and their examples name what they refuse."""
    paths = [
        path for path in git("ls-files").splitlines() if path.endswith(ENDINGS) or path.startswith(PROGRAMS)
    ]
    rules = {"tests/tidy.py", "tests/tidy_prose.py", "tests/test_tidy.py"}
    there = (path for path in paths if path not in rules and (ROOT / path).is_file())
    return tuple(Source(path, (ROOT / path).read_text(encoding="utf-8")) for path in there)


@pytest.fixture(scope="module", autouse=True)
def trees_are_let_go() -> Iterator[None]:
    """Each process that a worker begins later would have to copy where they lie in its memory."""
    yield
    tree.cache_clear()


def lines(count: int, first: str, line: str, last: str = "") -> str:
    return "\n".join([first, *[line] * count, last])


BROKEN = {
    "a_stage_knows_no_other_stage": Source(
        "src/dbdyno/trial/check.py", "from dbdyno.trial.drive import drive"
    ),
    "the_parts_of_prepare_are_its_own": Source(
        "src/dbdyno/trial/observe/observer.py", "from dbdyno.trial import pristine"
    ),
    "only_the_command_line_prints": Source("src/dbdyno/host/journal.py", "def f():\n    print('undone')"),
    "the_pure_rooms_need_no_database": Source("src/dbdyno/report/html.py", "import dbdyno.engines.registry"),
    "numbers_are_written_in_one_place": Source(
        "src/dbdyno/findings/split.py", 'text = f"{100.0 * share:.1f} %"'
    ),
    "an_analysis_follows_from_its_records": Source("src/dbdyno/findings/gap.py", "from pathlib import Path"),
    "one_way_leads_from_blocks_to_a_ratio": Source(
        "src/dbdyno/findings/gap.py", "from dbdyno.analyse.intervals import ratio_of"
    ),
    "a_run_says_how_it_differs": Source(
        "src/dbdyno/findings/junit.py", "if found.run.kind is RunKind.IMPORTED: pass"
    ),
    "only_engines_know_an_engines_name": Source(
        "src/dbdyno/trial/check.py", 'if engine.name == "mariadb": pass'
    ),
    "one_place_reads_what_the_kernel_tells": Source(
        "src/dbdyno/host/probe.py",
        "def f():\n    files = PROC.glob('*/stat')\n    return [one.read_text() for one in files]",
    ),
    "a_hint_is_for_its_cause": Source(
        "src/dbdyno/obtain/wheel.py",
        "try:\n    f()\nexcept OSError as error:\n    raise DynoError('x', 'check the space on the disk')",
    ),
    "one_table_says_what_excludes_what": Source(
        "src/dbdyno/cli/plan.py", 'raise UserError(f"--{name} does not go with --blocks", "leave it out")'
    ),
    "only_the_study_reads_its_format": Source("src/dbdyno/plan/budget.py", "import tomllib"),
    "the_driver_knows_nothing_of_python": Source("crates/driver/Cargo.toml", 'pyo3 = "0.26"'),
    "the_root_holds_what_all_stand_on_and_the_spine": Source("src/dbdyno/store.py", ""),
    "files_are_short": Source("tests/test_run.py", "\n" * 601),
    "functions_are_short": Source("src/dbdyno/run.py", lines(60, "def long():", "    pass")),
    "a_test_imports_no_other_test": Source("tests/cli/test_plan.py", "from tests.cli.test_cli import dyno"),
    "tests_ask_their_fixtures_and_not_the_machine": Source(
        "tests/cli/test_plan.py", 'found = shutil.which("gcc")'
    ),
    "a_noun_is_changed_with_its_checks": Source(
        "src/dbdyno/plan/budget.py", 'longer = run.model_copy(update={"blocks": 8})'
    ),
    "names_say_what_they_hold": Source("src/dbdyno/report/html_utils.py", ""),
    "no_path_of_a_machine_is_written_down": Source("docs/guide.md", "See /home/me/dyno/study.toml"),
    "what_a_kill_leaves_is_found_again": Source(
        "src/dbdyno/host/probe.py", "with TemporaryDirectory() as folder:\n    print(folder)\n"
    ),
    "the_lock_holds_hashes_and_no_address": Source(
        "requirements.txt", lines(21, "--index-url x", "polars==1.0 --hash=sha256:0")
    ),
    "each_version_has_a_date": Source("CHANGELOG.md", "## 0.1.0\n"),
    "no_text_names_a_verb_by_its_old_name": Source("docs/guide.md", "See `dyno " + "hosts`."),
    "a_change_is_told_in_a_line": Source("CHANGELOG.md", "- It runs\n  faster."),
    "the_map_fits_two_hundred_lines_and_a_decision_six": Source(
        "docs/decisions/host.md", lines(6, "- **Long**", "  because it is so")
    ),
    "prose_is_wrapped": Source("docs/guide.md", lines(1, "## Long", "long " * 21)),
    "links_lead_somewhere": Source("docs/guide.md", "See [this](#there) and [that](guide.md).\n## Here"),
    "the_documentation_is_short": Source("docs/guide.md", lines(401, "# Long", "four words a line")),
    "nothing_is_declared_for_nobody": Source("src/dbdyno/frozen.py", "UNUSED = 1\n"),
}


@pytest.mark.parametrize("name", RULES)
def test_the_tree_keeps_the_rule(name: str) -> None:
    assert RULES[name](tree()) == []


@pytest.mark.parametrize("name", RULES)
def test_the_rule_refuses_what_breaks_it(name: str) -> None:
    assert len(RULES[name]([BROKEN[name]])) == 1


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            Source("crates/driver/src/data.rs", lines(60, "    pub fn run() {", "        a;", "    }")),
            "run has 62",
        ),
        (Source("src/dbdyno/cli/plan.py", "\n" * 401), "at most 400"),
        (Source("src/dbdyno/records/metrics.py", "import dbdyno.host.perf"), "imports host.perf"),
        (Source("src/dbdyno/host/probe.py", "sys.stderr.write('')"), "sys.stderr.write"),
        (
            Source("src/dbdyno/plan/budget.py", "def f():\n    from dbdyno.records import store"),
            "records.store",
        ),
        (Source("src/dbdyno/frozen.py", "class Outcome(StrEnum):\n    INERT = 'inert result'"), "line 1"),
        *(
            (Source("tests/cli/test_plan.py", text), "tests/needs.py asks")
            for text in (
                "Path.home()",
                "os.geteuid() == 0",
                "path.expanduser()",
                "os.environ.get('XDG_CACHE_HOME', '')",
                "os.environ['LANG']",
                "Path('/usr/lib/postgresql').glob('*')",
            )
        ),
        *(
            (Source("src/dbdyno/layers/cpu.py", f"def f(group):\n    {text}"), "host/kernel_files.py reads")
            for text in (
                "Path('/proc/stat').read_text()",
                "os.listdir(f'/proc/{process_id}/task')",
                "(group / 'cpu.max').read_text()",
                "with suppress(FileNotFoundError):\n        open('/sys/block')",
                "try:\n        pass\n    except OSError:\n        Path('/proc/stat').read_bytes()",
            )
        ),
        (Source("requirements.txt", "a==1\n" * 21), "no hash"),
        (Source("docs/guide.md", "See [that](../nowhere.md)."), "nothing is at ../nowhere.md"),
        (Source("docs/guide.md", "```\n## There\n```\n[this](#there)"), "no such heading: #there"),
    ],
    ids=lambda value: value.path if isinstance(value, Source) else "",
)
def test_a_rule_refuses_its_other_cases(broken: Source, said: str) -> None:
    assert any(said in fault for check in RULES.values() for fault in check([broken]))


@pytest.mark.parametrize(
    "kept",
    [
        Source("src/dbdyno/cli/plan.py", "from dbdyno.trial import drive, pristine\nprint()"),
        Source("src/dbdyno/run.py", lines(59, "def long():", "    pass")),
        Source("src/dbdyno/trial/prepare.py", "from dbdyno.trial import pristine"),
        Source("src/dbdyno/driver/load_process.py", 'if __name__ == "__main__":\n    print()'),
        Source("crates/driver/src/io/mod.rs", lines(90, "fn one(&self);", "fn other() {}")),
        Source("docs/wide.md", f"| {'cell ' * 30}|\n\n```\n{'shown ' * 30}\n```\n"),
        Source("docs/linked.md", "[a](#own--name) [b](#own--name-1)\n\n## Own & name\n## Own & name"),
        Source("tests/needs.py", "found = shutil.which('gcc')"),
        Source(
            "src/dbdyno/layers/cpu.py",
            "def f():\n    try:\n        open('/proc/stat')\n    except OSError:\n        pass",
        ),
        Source("src/dbdyno/layers/cpu.py", "def f():\n    os.open('/proc/self/uid_map', os.O_WRONLY)"),
        Source("tests/test_run.py", "os.environ['PATH'], os.geteuid() == owner, mock.patch('shutil.which')"),
        Source("CHANGELOG.md", "## 0.2.0, unreleased\n\n## 0.1.0, 2026-01-31\n"),
    ],
    ids=lambda source: source.path,
)
def test_what_is_allowed_is_not_refused(kept: Source) -> None:
    assert [fault for check in RULES.values() for fault in check([kept]) if "nothing uses" not in fault] == []


ARROWS = {
    "Python": lambda: python_arrows(),
    "Python's rooms": lambda: python_rooms(python_arrows()),
    "Rust": lambda: rust_arrows(),
    "Rust's rooms": lambda: rust_rooms(rust_arrows()),
}


def test_what_a_text_imports_is_there() -> None:
    """Programs in strings and in scripts go stale unseen, because no linter reads them."""
    absent = [(source.path, name) for source in tree() for name in absent_imports(source.text)]
    assert absent == []
    assert absent_imports("python -c 'from dbdyno.cli import main, nobody'") == ["dbdyno.cli.nobody"]
    assert absent_imports("from dbdyno.nowhere import main") == ["dbdyno.nowhere.main"]


@pytest.mark.parametrize("language", ARROWS)
def test_no_circle_leads_through_the_rooms(language: str) -> None:
    arrows: Arrows = ARROWS[language]()
    assert len(arrows) > 10
    assert circles(arrows) == []


def test_the_map_of_the_architecture_names_every_room() -> None:
    rooms = {f"crates/driver/src/{name}" for name in rust_rooms(rust_arrows()) if name != "crate"}
    rooms |= set(python_rooms(python_arrows()))
    found = tidy_prose.the_map_names_every_room(section("ARCHITECTURE.md", "Rooms"), rooms)
    assert found == []


def test_the_map_of_the_architecture_names_what_lies_beside_the_package() -> None:
    folders = {path.partition("/")[0] for path in git("ls-files").splitlines() if "/" in path} - {"src"}
    assert (
        tidy_prose.the_map_names_every_room(section("ARCHITECTURE.md", "Beside the package"), folders) == []
    )


def test_the_map_of_the_architecture_tells_who_knows_whom() -> None:
    arrows = dict(python_arrows())
    for module, targets in rust_arrows().items():
        arrows[tidy_prose.DRIVER + module] = frozenset(tidy_prose.DRIVER + target for target in targets)
    found = tidy_prose.the_map_tells_who_knows_whom(section("ARCHITECTURE.md", "Rooms"), arrows)
    assert found == []


def section(path: str, heading: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_a_map_that_differs_from_the_tree_is_refused() -> None:
    table = "| room | holds |\n|---|---|\n| `study/`, `run.py` | x |\n"
    assert tidy_prose.the_map_names_every_room(table, {"study", "plan"}) == [
        "not in the map: plan",
        "no room: run",
    ]


def test_a_map_that_an_import_contradicts_is_refused() -> None:
    table = (
        "| `study/` | x | engines, the flow |\n"
        "| `run.py` | x | how a stage works |\n"
        "| `errors.py` | x | everything |\n"
        "| `crates/driver/src/io/` | x | sessions; the weather |\n"
    )
    io = f"{tidy_prose.DRIVER}io"
    arrows = {
        "study.read": {"engines.registry", "trial", "records"},
        "run": {"trial.drive", "trial.observe.window", "gate"},
        "errors": {"frozen"},
        f"{io}::slots": {f"{tidy_prose.DRIVER}session::mysql", f"{io}::stream"},
    }
    assert tidy_prose.the_map_tells_who_knows_whom(table, arrows) == [
        "study knows study.read -> engines.registry",
        "study knows study.read -> trial",
        "run knows run -> trial.observe.window",
        "errors knows errors -> frozen",
        f"{io} knows {io}::slots -> {tidy_prose.DRIVER}session::mysql",
        f"{io} knows the weather: no rule knows what that is",
    ]


def test_what_rules_name_is_there() -> None:
    """A rule on a module that is gone holds nothing."""
    known = set(python_arrows())
    of_trial = {module.split(".")[1] for module in known if module.startswith("trial.")}
    assert of_trial >= tidy.STAGES | tidy.PARTS_OF_PREPARE
    assert tidy.SPINE | tidy.PURE_ROOMS | tidy.NOT_PURE | tidy.OF_NO_BLOCKS | {*tidy.OF_RECORDS} <= known


def test_the_package_has_no_more_modules_than_before() -> None:
    assert len(python_arrows()) <= tidy.MODULES_MOST


def test_a_stranger_meets_no_more_than_before() -> None:
    """Imports, long functions, and questions about what a run is, that its kind could answer."""
    code = [source for source in tree() if source.module]
    nodes = [node for source in code for node in source.nodes]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    importing = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
    assert importing <= tidy.IMPORTS_SHARE_MOST * sum(len(source.lines) for source in code)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    long = [one for one in functions if (one.end_lineno or one.lineno) - one.lineno >= 20]
    assert len(long) <= tidy.LONG_FUNCTIONS_SHARE_MOST * len(functions)
    asking = {
        (source.path, node.lineno)
        for source in code
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in ("untimed", "in_guest")
        if not source.module.startswith(("records.record", "trial.record_builder", "sql_logs"))
    }
    assert len(asking) <= tidy.ASKS_UNTIMED_MOST, asking


def test_small_modules_with_one_user_become_fewer() -> None:
    found = tidy.small_modules_with_one_user(tree(), python_arrows())
    assert len(found) <= tidy.SMALL_MODULES_MOST, "\n".join(found)


def test_a_small_module_with_one_user_is_found_unless_it_says_why() -> None:
    small, large = "\n" * 59, "\n" * 60
    sources = [
        Source("src/dbdyno/study/act.py", small),
        Source("src/dbdyno/study/soak.py", large),
        Source("src/dbdyno/study/size.py", f'"""Alone, because it is slow to import."""{small[1:]}'),
        Source("src/dbdyno/errors.py", small),
    ]
    arrows = {"study.soak": {"study.act", "study.size", "errors"}, "study": {"study.soak"}}
    assert tidy.small_modules_with_one_user(sources, arrows) == ["study.act is a part of study.soak"]


def test_files_of_tests_mirror_the_modules() -> None:
    found = tidy.tests_of_no_module((source.path for source in tree()), python_arrows())
    assert len(found) <= tidy.TESTS_OF_NO_MODULE_MOST, "\n".join(found)


def test_a_file_of_tests_without_its_module_is_found() -> None:
    paths = ["tests/host/test_probe.py", "tests/host/test_luck.py", "tests/conformance/test_all.py"]
    assert tidy.tests_of_no_module(paths, {"host", "host.probe"}) == ["tests/host/test_luck.py"]


def test_a_name_has_one_meaning() -> None:
    assert tidy.names_in_several_modules(tree(), ast.ClassDef) == {}
    assert tidy.names_of_two_meanings(tree()) == []
    shared = tidy.names_in_several_modules(tree(), ast.FunctionDef)
    assert len(shared) <= tidy.FUNCTION_NAMES_MOST, shared


def test_a_name_of_two_meanings_is_refused_unless_it_is_a_contract() -> None:
    sources = [
        Source("src/dbdyno/host/probe.py", "class Finding: ...\ndef keep(): ...\ndef _own(): ..."),
        Source("src/dbdyno/calibrate/kept.py", "class Finding: ...\ndef keep(): ...\ndef _own(): ..."),
        Source("src/dbdyno/findings/gap.py", "from dbdyno.host.probe import keep\ndef find(): ..."),
        Source("src/dbdyno/findings/split.py", "from dbdyno.calibrate.kept import keep\ndef find(): ..."),
    ]
    assert tidy.names_in_several_modules(sources, ast.ClassDef) == {
        "Finding": ["host.probe", "calibrate.kept"]
    }
    assert [*tidy.names_in_several_modules(sources, ast.FunctionDef)] == ["keep"]
    assert tidy.names_of_two_meanings(sources) == ["keep: calibrate.kept, host.probe"]
    assert tidy.names_of_two_meanings(sources[:3]) == []


def test_the_files_that_take_longest_are_there() -> None:
    assert [name for name in LONG if not (ROOT / "tests" / name).exists()] == []


def test_commits_say_why() -> None:
    """Those after the style guide came; none where there is no history."""
    try:
        added = git("log", "--diff-filter=A", "--format=%H", "--", "STYLE.md").split()
        messages = git("log", "--no-merges", "--format=%B%x00", f"{added[-1]}..HEAD").split("\0")
    except (subprocess.CalledProcessError, IndexError):
        pytest.skip("git has no history here")
    assert tidy_prose.subjects_are_short_and_bodies_say_why(filter(str.strip, messages)) == []


def test_a_commit_that_does_not_say_why_is_refused() -> None:
    messages = ["Restore the governor\n\nIt stayed.", "Say\n", f"{'long ' * 13}\n\nWhy."]
    found = tidy_prose.subjects_are_short_and_bodies_say_why(messages)
    assert [fault.partition(":")[0] for fault in found] == ["no body", "65 characters"]


def test_every_command_has_its_file() -> None:
    assert {path.stem for path in (ROOT / "src" / "dbdyno" / "cli").glob("*.py")} >= set(VERBS)
