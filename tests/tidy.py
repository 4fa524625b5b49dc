"""The rules of the house that no linter knows. Each takes sources and returns the places that break it.

`tests/test_tidy.py` applies every rule to the tree, and to an example that the rule must refuse.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.structure import PLACE, room_of


@dataclass(frozen=True)
class Source:
    """A file of the tree: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def module(self) -> str:
        """`src/dbdyno/trial/observe/observer.py` -> `trial.observe.window`; empty outside the package."""
        inside = self.path.removeprefix("src/dbdyno/")
        if inside == self.path or not inside.endswith(".py"):
            return ""
        return inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree: many rules go through it."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()


Rule = Callable[[Iterable[Source]], list[str]]

RULES: dict[str, Rule] = {}


def rule(check: Callable[[Source], Iterator[str]]) -> Rule:
    """Makes a check of one file a rule on all files, and enters it among the rules."""

    def over_all(sources: Iterable[Source]) -> list[str]:
        return [f"{source.path}: {fault}" for source in sources for fault in check(source)]

    RULES[check.__name__] = over_all
    return over_all


STAGES = frozenset({"prepare", "verify", "observe", "drive", "check"})
PARTS_OF_PREPARE = frozenset({"pristine"})
SPINE = frozenset({"run", "build_check", "prepare_run", "kinds", "cli"})
ROOT_MODULES = frozenset(
    {"__init__", "__main__", "errors", "frozen", "build_check", "interrupts", "passwords", "registry", "run"}
)
PURE_ROOMS = frozenset({"analyse", "findings", "plan", "report"})
NOT_PURE = frozenset({"engines", "obtain", "driver", "host", "layers", "trial", "records.store"})
OF_RECORDS = ("driver.tally", "driver.link")
"""What the driver counted, and how far away it was, are parts of a record, so their types are as pure as the
rooms that read records."""
IMPURE_LIBRARIES = frozenset(
    {"time", "datetime", "random", "os", "pathlib", "subprocess", "socket", "secrets"}
)
LINES_MAX, CLI_LINES_MAX, FUNCTION_LINES_MAX = 600, 400, 60
REFUSED_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|manager|service|misc|common|v2)(_|$|\.)")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(root|home/\w+|work|tmp/(?!dyno-)\w[\w-]*)/")
"""Paths that exist on one machine only. Dyno's own `/tmp/dyno-UID` is not one."""
TEMPORARY = re.compile(r"TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp")
ENGINE_ASKED = re.compile(
    r"(engine|dialect|protocol)(\.name)?\s*(==|!=|in\s*[(\[{])\s*\(?[\"'](mariadb|firebird|postgres|sqlite|mysql)"
)
KNOWS_ENGINES = ("src/dbdyno/engines/", "src/dbdyno/obtain/", "/session/", "records/store.py", "tests/")
PERCENTAGE = re.compile(r"100(\.0)? \* .* %|:[^{}]*%\}")
RUST_FUNCTION = re.compile(r'(\s*)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern "C" )*fn (\w+)')


def _stage(module: str) -> str:
    """The part of a trial that a module is: `trial.observe.window` -> `observe`."""
    parts = module.split(".")
    return parts[1] if parts[0] == "trial" and len(parts) > 1 else ""


def _imports(source: Source) -> set[str]:
    """What a module imports of Dyno, to the last name."""
    names: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and PLACE.fullmatch(str(node.value)):
            # What a registry imports when it is asked.
            module, _, name = str(node.value).partition(":")
            names |= {module, f"{module}.{name}"}
    return {name.removeprefix("dbdyno.") for name in names if name.startswith("dbdyno.")}


@rule
def a_stage_knows_no_other_stage(source: Source) -> Iterator[str]:
    if not source.module or room_of(source.module) in SPINE:
        return
    own = _stage(source.module)
    for other in sorted({_stage(name) for name in _imports(source)} & STAGES - {own}):
        yield f"knows the stage {other}"


@rule
def the_parts_of_prepare_are_its_own(source: Source) -> Iterator[str]:
    own = _stage(source.module)
    if not source.module or room_of(source.module) in SPINE or own in PARTS_OF_PREPARE | {"prepare"}:
        return
    for part in sorted({_stage(name) for name in _imports(source)} & PARTS_OF_PREPARE):
        yield f"uses {part}, a part of prepare"


@rule
def only_the_command_line_prints(source: Source) -> Iterator[str]:
    """A report prints on the console that it is given. A module that runs as a child speaks to its parent."""
    if not source.module or room_of(source.module) == "cli" or '__name__ == "__main__"' in source.text:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTING:
            yield f"line {node.lineno}: {ast.unparse(node.func)}"


PRINTING = frozenset({"print", "click.echo", "sys.stdout.write", "sys.stderr.write", "Console"})


@rule
def the_pure_rooms_need_no_database(source: Source) -> Iterator[str]:
    if room_of(source.module) not in PURE_ROOMS and source.module not in ("records.metrics", *OF_RECORDS):
        return
    for name in sorted(_imports(source)):
        if name in NOT_PURE or (room_of(name) in NOT_PURE and not name.startswith(OF_RECORDS)):
            yield f"imports {name}"


@rule
def numbers_are_written_in_one_place(source: Source) -> Iterator[str]:
    if not source.module.startswith("findings"):
        return
    for number, line in enumerate(source.lines, 1):
        if PERCENTAGE.search(line):
            yield f"line {number}: a percentage; report/words/numbers.py writes them"


@rule
def an_analysis_follows_from_its_records(source: Source) -> Iterator[str]:
    """No clock, no file, no chance: the same records always give the same analysis."""
    if room_of(source.module) not in ("analyse", "findings"):
        return
    for node in source.nodes:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (f"imports {name}" for name in names if name.split(".")[0] in IMPURE_LIBRARIES)


@rule
def one_way_leads_from_blocks_to_a_ratio(source: Source) -> Iterator[str]:
    """`analyse/estimate.py` knows what blocks have in common. What takes an interval beside it is over runs,
    or of one variant's values, or of groups that are judged as short studies."""
    if room_of(source.module) not in ("analyse", "findings") or source.module in OF_NO_BLOCKS:
        return
    for name in sorted({name.rpartition(".")[2] for name in _imports(source)} & OF_VALUES):
        yield f"uses {name}; Estimator.ratio knows of images, hosts and looks"


OF_VALUES = frozenset({"ratio_of", "half_width", "centre_of"})
OF_NO_BLOCKS = frozenset(
    f"analyse.{name}" for name in ("intervals", "estimate", "compare", "trend", "second")
)


@rule
def only_engines_know_an_engines_name(source: Source) -> Iterator[str]:
    if not source.path.endswith((".py", ".rs")) or any(part in source.path for part in KNOWS_ENGINES):
        return
    for number, line in enumerate(source.lines, 1):
        if ENGINE_ASKED.search(line):
            yield f"line {number}: {line.strip()}"


@rule
def one_place_reads_what_the_kernel_tells(source: Source) -> Iterator[str]:
    """A sandbox may hide any file below /proc and /sys, so a read is by `host/kernel_files.py`, or inside of
    what takes an OSError."""
    if not source.module or source.module == "host.kernel_files" or not KERNEL_NAMED.search(source.text):
        return
    of_module = _of_kernel(source.tree.body, KERNEL_ROOTS)
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef):
            yield from _bare_reads(node, _of_kernel(tuple(ast.walk(node)), of_module), caught=False)


KERNEL_NAMED = re.compile(r"/proc\b|/sys\b|\b(PROC|CPUS|NODES|THP_MODE|HUGE_PAGES|group|sysfs)\b")
KERNEL_ROOTS = frozenset({"PROC", "CPUS", "NODES", "THP_MODE", "HUGE_PAGES", "group", "sysfs"})
"""Names that stand for a place of the kernel's in more than one module; others are found by their values."""
READS = {"read_text", "read_bytes", "open", "readlink", "iterdir", "listdir", "scandir"}


def _of_kernel(nodes: Sequence[ast.AST], known: frozenset[str]) -> frozenset[str]:
    """The names that statements give to places of the kernel's, beside those that are known."""
    found = set(known)
    for _ in range(2):
        for node in nodes:
            if isinstance(node, ast.Assign) and _is_kernels(node.value, found):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            if isinstance(node, ast.For | ast.comprehension) and _is_kernels(node.iter, found):
                found |= {node.target.id} if isinstance(node.target, ast.Name) else set()
    return frozenset(found)


def _is_kernels(node: ast.AST, names: Collection[str]) -> bool:
    """Whether an expression is a place below /proc or /sys, by the text or the name that it begins with."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and re.match(r"/(proc|sys)(/|$)", node.value) is not None
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        return node.attr in names or _is_kernels(node.value, names)
    if isinstance(node, ast.JoinedStr):
        return bool(node.values) and _is_kernels(node.values[0], names)
    if isinstance(node, ast.BinOp):
        return _is_kernels(node.left, names)
    if isinstance(node, ast.Call):
        first = node.args[0] if node.args else None
        named = ast.unparse(node.func) in ("Path", "str", "sorted", "list", "open", "os.open", "os.listdir")
        if named or (isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "os"):
            return first is not None and _is_kernels(first, names)
        return isinstance(node.func, ast.Attribute) and _is_kernels(node.func.value, names)
    return isinstance(node, ast.FormattedValue) and _is_kernels(node.value, names)


def _bare_reads(node: ast.AST, names: Collection[str], caught: bool) -> Iterator[str]:
    if isinstance(node, ast.Call) and not caught and _is_kernels(node, names):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if called in READS and "O_WRONLY" not in (text := ast.unparse(node)):
            yield f"line {node.lineno}: {text}; host/kernel_files.py reads what the kernel tells"
    guarded = isinstance(node, ast.Try) and any("OSError" in ast.unparse(one) for one in node.handlers)
    if isinstance(node, ast.With):
        guarded = any("suppress(" in (text := ast.unparse(one)) and "OSError" in text for one in node.items)
    for name, value in ast.iter_fields(node):
        within = caught or (guarded and name == "body")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.FunctionDef):
                yield from _bare_reads(child, names, within)


@rule
def a_hint_is_for_its_cause(source: Source) -> Iterator[str]:
    """An OSError has many causes, so `remedy` chooses the hint by its number."""
    if not source.module:
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and node.type and "OSError" in ast.unparse(node.type):
            raised = (one.exc for one in ast.walk(node) if isinstance(one, ast.Raise))
            for hint in (one.args[-1] for one in raised if isinstance(one, ast.Call) and one.args[1:]):
                if isinstance(hint, ast.Constant | ast.JoinedStr) and ONE_CAUSE.search(ast.unparse(hint)):
                    yield f"line {node.lineno}: a hint for any OSError; errors.remedy asks for its cause"


ONE_CAUSE = re.compile(
    r"\broom\b|space on|disk full|^.install|apt-get|apt install|as root|owner|rights|make one"
)
"""Words of a hint that is for a full disk, for a lack of rights, or for what is not there."""


@rule
def one_table_says_what_excludes_what(source: Source) -> Iterator[str]:
    if not source.module or source.module == "study.excludes":
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and (found := EXCLUDING.search(" ".join(_texts_of(node)))):
            yield f"line {node.lineno}: {found[0]}; study/excludes.py holds what does not go together"


EXCLUDING = re.compile(r"exclude each other|contradict each other|does not go with|do not go with")


def _texts_of(call: ast.Call) -> Iterator[str]:
    """The texts among the arguments of a call."""
    for argument in call.args:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        yield from (
            part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )


@rule
def only_the_study_reads_its_format(source: Source) -> Iterator[str]:
    if source.module and room_of(source.module) != "study":
        yield from (f"uses {reader}" for reader in ("tree_sitter", "tomllib") if reader in source.text)


@rule
def the_driver_knows_nothing_of_python(source: Source) -> Iterator[str]:
    if source.path == "crates/driver/Cargo.toml" and "pyo3" in source.text:
        yield "depends on pyo3"


@rule
def the_root_holds_what_all_stand_on_and_the_spine(source: Source) -> Iterator[str]:
    folder, _, name = source.path.rpartition("/")
    if folder == "src/dbdyno" and name.endswith(".py") and name.removesuffix(".py") not in ROOT_MODULES:
        yield "belongs in a room"


@rule
def files_are_short(source: Source) -> Iterator[str]:
    limit = CLI_LINES_MAX if "/cli/" in source.path else LINES_MAX
    if source.path.endswith((".py", ".rs", ".lua", ".js", ".css", ".html")) and len(source.lines) > limit:
        yield f"{len(source.lines)} lines, at most {limit}"


@rule
def functions_are_short(source: Source) -> Iterator[str]:
    for name, first, last in _functions(source):
        if last - first >= FUNCTION_LINES_MAX:
            yield f"{name} has {last - first + 1} lines, at most {FUNCTION_LINES_MAX}"


def _functions(source: Source) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of each function."""
    if source.path.endswith(".py"):
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, node.lineno, node.end_lineno or node.lineno
    elif source.path.endswith(".rs"):
        for first, line in enumerate(source.lines):
            found = RUST_FUNCTION.match(line)
            # rustfmt puts the closing brace under the first letter of the function.
            if found and not line.endswith((";", "}")):
                ends = (
                    last for last in range(first, len(source.lines)) if _closes(source.lines[last], found[1])
                )
                yield found[2], first, next(ends, first)


def _closes(line: str, indent: str) -> bool:
    return line == f"{indent}}}" or (line.startswith(f"{indent})") and line.endswith(";"))


@rule
def a_test_imports_no_other_test(source: Source) -> Iterator[str]:
    """What tests share has a module of its own, whose name says what it holds."""
    if not source.path.endswith(".py") or not source.path.startswith(("tests/", "benches/")):
        return
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            names = [(node.module or ""), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if any(name.rpartition(".")[2].startswith("test_") for name in names):
            yield f"line {node.lineno} imports a test"


@rule
def tests_ask_their_fixtures_and_not_the_machine(source: Source) -> Iterator[str]:
    """What a machine has changes which tests are skipped, and never which pass."""
    if not source.path.startswith("tests/") or not source.path.endswith(".py") or source.path == ASKS:
        return
    if not MACHINE_NAMED.search(source.text):
        return
    for node in source.nodes:
        if not isinstance(node, ASKING) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        if MACHINE_ASKED.fullmatch(text := ast.unparse(node)):
            yield f"line {node.lineno}: {text}; {ASKS} asks the machine"


ASKS = "tests/needs.py"
ASKING = (ast.Attribute, ast.Call, ast.Compare, ast.Subscript)
MACHINE_ASKED = re.compile(
    r"shutil\.which|Path\.home|.*\.expanduser\(.*\)|getpass\.getuser|os\.getlogin|socket\.gethostname"
    r"|locale\.(get|set)locale|platform\.node|os\.gete?uid\(\) [!=]= 0"
    r"|(Path|open)\('/(bin|etc|home|opt|root|sbin|usr|var)\b.*"
    r"|os\.(getenv\(|environ(\.get\(|\[))'(HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|XDG_\w+)'.*"
)
"""Programs, homes, users, locale, zone and places of the machine that tests run on."""
MACHINE_NAMED = re.compile(
    r"\bshutil\b|\bhome\(|expanduser|getpass|getlogin|gethostname|locale\b|platform\.node|gete?uid|Path\(.?/|open\(.?/"
    r"|getenv|environ"
)
"""A text without these words asks nothing of that."""


@rule
def a_noun_is_changed_with_its_checks(source: Source) -> Iterator[str]:
    """pydantic's `model_copy` takes any name and any value."""
    if source.module and "model_copy(update" in source.text:
        yield "changes a noun by model_copy; `but` validates"


@rule
def names_say_what_they_hold(source: Source) -> Iterator[str]:
    if REFUSED_NAMES.search(source.path.rpartition("/")[2].lower()):
        yield "is named for nothing"


@rule
def no_path_of_a_machine_is_written_down(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        if MACHINE_PATHS.search(line):
            yield f"line {number}: {line.strip()[:80]}"


@rule
def what_a_kill_leaves_is_found_again(source: Source) -> Iterator[str]:
    """A folder or file with a name is noted in the journal, or lies where `sweep` looks."""
    if source.module and (found := TEMPORARY.search(source.text)):
        yield f"makes a {found[0]}; `Journal.folder` or `cache.scratch` is found again after a kill"


@rule
def the_lock_holds_hashes_and_no_address(source: Source) -> Iterator[str]:
    if source.path != "requirements.txt":
        return
    if "://" in source.text or "--index" in source.text:
        yield "holds an address"
    pinned = re.findall(r"^[\w.-]+==", source.text, re.MULTILINE)
    if not 20 < len(pinned) <= source.text.count("--hash=sha256:"):
        yield "a package has no hash"


KIND_ASKED = re.compile(r"isinstance\([^)]*Run\b|\brun\.kind (is|==|!=|in|not)\b|\bRunKind\.[A-Z]")


@rule
def a_run_says_how_it_differs(source: Source) -> Iterator[str]:
    """Whoever has a run asks it by a property that says what differs, and not for its kind."""
    declares = room_of(source.module) == "kinds" or source.module == "records.run"
    if source.module and not declares and KIND_ASKED.search(source.text):
        yield "asks for the kind of a run"


CALLED_BY_LIBRARIES = frozenset({"convert", "format_commands", "model_config", "readinto"})
"""Names that click, pydantic and io look up."""


def nothing_is_declared_for_nobody(sources: Iterable[Source]) -> list[str]:
    """Functions, classes and constants of the package that nothing in the package names.

    A field of a noun is left out, because a record or a report in JSON holds it.
    """
    package = [source for source in sources if source.path.startswith("src/dbdyno/")]
    code = [source for source in package if source.module]
    named = Counter(name for source in code for name in _named(source.tree))
    named.update(word for source in package if not source.module for word in re.findall(r"\w+", source.text))
    return [
        f"{source.path}: line {line}: nothing uses {name}"
        for source in code
        for name, line in _declared(source.tree)
        if not named[name] and not name.startswith("__") and name not in CALLED_BY_LIBRARIES
    ]


RULES["nothing_is_declared_for_nobody"] = nothing_is_declared_for_nobody


def _declared(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not node.decorator_list):
            yield node.name, node.lineno
        if isinstance(node, ast.ClassDef | ast.Module):
            for one in node.body:
                for target in _targets(one, isinstance(node, ast.Module)):
                    if isinstance(target, ast.Name):
                        yield target.id, one.lineno


def _targets(statement: ast.stmt, in_module: bool) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if in_module and isinstance(statement, ast.AnnAssign) else []


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            # Forward references, getattr, names of verbs.
            yield from re.findall(r"\w+", node.value)


MODULES_MOST = 517
"""How many modules the package has. The number may only fall: a thing is a file, and a part of it is none."""
IMPORTS_SHARE_MOST, ASKS_UNTIMED_MOST, LONG_FUNCTIONS_SHARE_MOST = 0.079, 28, 0.068
"""The share of lines that import, the lines that ask whether a study is timed or in a guest, and the share of
functions above 20 lines. Each may only fall."""
SMALL_LINES = 60
SMALL_MODULES_MOST = 5
"""How many small modules with one user there are. The number may only fall."""


def small_modules_with_one_user(
    sources: Iterable[Source], arrows: Mapping[str, Collection[str]]
) -> list[str]:
    """Modules of fewer than 60 lines that one module alone imports, which lies in the same folder. They are
    a part of it. A module may have a reason: the first line of its docstring says "because"."""
    users: dict[str, list[str]] = {}
    for module, targets in arrows.items():
        for target in targets:
            users.setdefault(target, []).append(module)
    found = []
    for source in sources:
        module, is_folder = source.module, source.path.endswith("__init__.py")
        if is_folder or len(source.lines) >= SMALL_LINES or len(users.get(module, ())) != 1:
            continue
        reason = (ast.get_docstring(source.tree) or "").partition("\n")[0]
        if _folder(users[module][0], arrows) == module.rpartition(".")[0] and "because" not in reason:
            found.append(f"{module} is a part of {users[module][0]}")
    return found


def _folder(module: str, modules: Collection[str]) -> str:
    """The folder that a module lies in; of a folder's own module, the folder."""
    inside = any(other.startswith(f"{module}.") for other in modules)
    return module if inside else module.rpartition(".")[0]


TESTS_OF_NO_MODULE_MOST = 123
"""How many files of tests in the folders of rooms are named for no module. The number may only fall."""


def tests_of_no_module(paths: Iterable[str], modules: Collection[str]) -> list[str]:
    """Files of tests in the folder of a room, `tests/a/test_b.py`, without a module `a.b`. What a module does
    is looked for in the file of its name. A topic of several modules may have one of its own."""
    rooms = {room_of(module) for module in modules}
    found = []
    for path in paths:
        folder, _, name = path.removeprefix("tests/").rpartition("/")
        is_test = path.startswith("tests/") and name.startswith("test_") and name.endswith(".py")
        of_module = f"{folder}/{name[5:-3]}".replace("/", ".")
        if is_test and folder.partition("/")[0] in rooms and of_module not in modules:
            found.append(path)
    return found


FUNCTION_NAMES_MOST = 114
"""How many names of functions stand in more than one module. The number may only fall."""
OF_CONTRACTS = re.compile(
    # Each engine, each verb and each place of programs, asked by one name.
    r"engines\.(?!registry)\w+\.\w+:.*|cli\..*|obtain\.\w+:(fetch|offers|copies|file)|imported\.\w+:read"
    # Each finding, by the names in `findings/run.py`, and each answer of `plan/`.
    r"|findings\.\w+:(find|sections|document|headline|title|facts|note|notes|figure)|plan\.[\w.]+:ask"
    # What shows a document, and what another program imports or starts.
    r"|(report\.renderers|findings)\.\w+:render|applications\.\w+\..*|driver\.remote\.boot:.*"
)
"""Functions by which several modules answer the same question, as `module:function`."""


def names_in_several_modules(sources: Iterable[Source], what: type[ast.AST]) -> dict[str, list[str]]:
    """Public classes, or functions beside those of a contract, that more than one module defines, with these
    modules."""
    found: dict[str, list[str]] = {}
    for source in sources:
        for node in source.tree.body if source.module else ():
            name = getattr(node, "name", "_") if isinstance(node, what) else "_"
            if not name.startswith("_") and not OF_CONTRACTS.fullmatch(f"{source.module}:{name}"):
                found.setdefault(name, []).append(source.module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def names_of_two_meanings(sources: Sequence[Source]) -> list[str]:
    """Functions that are imported by their names alone, although one of the same name is imported so from
    another module. `module.function` says which one is meant."""
    shared = names_in_several_modules(sources, ast.FunctionDef)
    imported: dict[str, set[str]] = {}
    for source in sources:
        for node in source.nodes if source.module else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                module = node.module.removeprefix("dbdyno.")
                for name in (alias.name for alias in node.names):
                    if module in shared.get(name, ()):
                        imported.setdefault(name, set()).add(module)
    return [f"{name}: {', '.join(sorted(modules))}" for name, modules in imported.items() if len(modules) > 1]
