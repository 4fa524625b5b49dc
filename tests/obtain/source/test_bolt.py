"""BOLT lays out anew what it can, leaves alone what it cannot, and what it does not take is an outcome."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import Blocked, BuildFailed, DiskFull
from dbdyno.host import cache
from dbdyno.host.cache import silently
from dbdyno.obtain.binary import read_code
from dbdyno.obtain.source.bolt import MERGED, RUNTIME, Bolt, Rewriting, complaint, newest_bolt, proved_bolt
from dbdyno.obtain.source.build import GUIDED, INSTRUMENTING, Flags, Trainer, flags_of
from dbdyno.obtain.source.commands import Workplace
from dbdyno.obtain.source.making import Materials, account_of, made
from dbdyno.obtain.source.profile import Untrained
from dbdyno.obtain.source.toolchain import recorded, toolchain
from tests.needs import needs_any_gcc, skip_blocked
from tests.obtain.source import making_cases
from tests.obtain.source.training_cases import trained_with

pytestmark = [
    pytest.mark.usefixtures("homes"),
    needs_any_gcc,
]

CODE = """
#include <stdio.h>
__attribute__((noinline)) int seldom(int count) { return count % 7 ? count * 3 : 0; }
__attribute__((noinline)) int often(int count) { return count % 5 ? count + 1 : seldom(count); }
__attribute__((noinline)) int never(int count) { return count - 1; }
int main(int argc, char **argv) {
    int sum = 0;
    for (int number = 0; number < 1000 * argc; number++) sum += often(number);
    printf("%d\\n", argc > 100 ? never(sum) : sum);
    return 0;
}
"""
RELOCATED = flags_of("bolt", "toy", "gcc")


@pytest.fixture
def bolt() -> Bolt:
    """The machine's BOLT; without one the test is skipped."""
    try:
        return proved_bolt(toolchain("gcc"), RELOCATED)
    except Blocked as blocked:
        skip_blocked(blocked.message, blocked.hint)


def materials(folder: Path, bolt: Bolt, flags: Flags = RELOCATED, *steps: tuple[str, ...]) -> Materials:
    """A program that BOLT lays out anew."""
    plain = making_cases.materials(folder, *steps, code=CODE)
    trainer = Trainer(workload="toy", transactions=3)
    return replace(plain, flags=plain.flags + flags, bolt=bolt, bolt_trainer=trainer)


def answer(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_program_is_laid_out_anew_and_tells_how(tmp_path: Path, bolt: Bolt) -> None:
    wanted, told = materials(tmp_path, bolt), list[str]()
    folder = made(wanted, told.append, trained_with())
    program, account = folder / "prefix" / "toy", account_of(folder)
    plain = made(replace(wanted, bolt=None, bolt_trainer=None), silently) / "prefix" / "toy"
    assert answer(program) == answer(plain)
    training = account.bolt
    assert training is not None and account.training is None
    assert (training.trainer, training.transactions, training.files) == (wanted.bolt_trainer, 3, 1)
    assert training.functions > training.executed >= 3
    assert training.moved is not None and not training.left
    assert training.words in told and "laid out anew" in training.words
    assert f"toy, gcc -O1: instrumented by BOLT {bolt.version}" in told
    assert [path.name for path in (folder / "prefix").iterdir()] == ["toy"]
    assert not (folder / "bolt" / "work").exists() and not (folder / "bolt" / "raw").exists()


def test_the_program_tells_that_bolt_wrote_it_and_not_where(tmp_path: Path, bolt: Bolt) -> None:
    wanted = materials(tmp_path, bolt)
    found = recorded(made(wanted, silently, trained_with()) / "prefix" / "toy")
    assert "-reorder-blocks" in found.bolt and str(tmp_path) not in found.bolt
    assert any("-O1" in line for line in found.command_lines)
    plain = made(replace(wanted, bolt=None, bolt_trainer=None), silently)
    assert recorded(plain / "prefix" / "toy").bolt == ""


def test_the_profile_is_in_the_key_and_the_same_key_gives_the_same_file(tmp_path: Path, bolt: Bolt) -> None:
    wanted, keys, programs = materials(tmp_path, bolt), list[str](), list[bytes]()
    for arguments in ((), (), ("a", "b")):
        folder = made(wanted, silently, trained_with(*arguments))
        keys.append(account_of(folder).key)
        programs.append((folder / "prefix" / "toy").read_bytes())
        cache.release()
        shutil.rmtree(folder)
    assert keys[0] == keys[1] != keys[2]
    assert programs[0] == programs[1]
    assert replace(wanted, bolt=None, bolt_trainer=None).build.key != wanted.build.key
    other = bolt.but(digest="another")
    assert replace(wanted, bolt=other).build.key != wanted.build.key


def test_a_build_that_a_profile_guides_is_laid_out_anew_by_another_one(tmp_path: Path, bolt: Bolt) -> None:
    wanted = materials(tmp_path, bolt)
    both = replace(
        wanted,
        flags=wanted.flags + GUIDED["gcc"],
        instrumented=wanted.flags + INSTRUMENTING["gcc"],
        trainer=Trainer(workload="other", transactions=1),
    )
    seen: list[str] = []

    def train(untrained: Untrained) -> int:
        seen.append(untrained.trainer.workload)
        return trained_with()(untrained)

    account = account_of(made(both, silently, train))
    assert seen == ["other", "toy"]
    assert account.training is not None and account.bolt is not None
    assert (account.training.moved, account.training.trainer.workload) == (None, "other")
    assert account.key != both.build.key


@pytest.mark.parametrize(
    ("flags", "more", "message", "hint"),
    [
        (Flags(), "", "instrumentation runtime libraries require relocations", "{ldflags}"),
        (RELOCATED, "strip {prefix}/toy", "stripped binaries are not supported", "no strip"),
    ],
    ids=["no relocations", "stripped"],
)
def test_a_program_that_bolt_cannot_take_is_the_builds_cause(
    tmp_path: Path, bolt: Bolt, flags: Flags, more: str, message: str, hint: str
) -> None:
    steps = [making_cases.COMPILE, *([tuple(more.split())] if more else [])]
    with pytest.raises(BuildFailed, match=f"BOLT cannot lay the program out: {message}") as failed:
        made(materials(tmp_path, bolt, flags, *steps), silently, trained_with())
    assert hint in failed.value.hint
    assert cache.shelf("builds").names() == []


def test_a_profile_that_is_not_written_fails_the_build(tmp_path: Path, bolt: Bolt) -> None:
    with pytest.raises(BuildFailed, match="the training wrote no profile"):
        made(materials(tmp_path, bolt), silently, lambda untrained: 3)


def test_a_training_that_was_interrupted_begins_anew(tmp_path: Path, bolt: Bolt) -> None:
    def interrupted(untrained: Untrained) -> int:
        trained_with("a", "b", "c")(untrained)
        raise KeyboardInterrupt

    wanted = materials(tmp_path, bolt)
    expected = account_of(made(wanted, silently, trained_with()))
    cache.release()
    shutil.rmtree(cache.shelf("builds").folder / wanted.build.name)
    with pytest.raises(KeyboardInterrupt):
        made(wanted, silently, interrupted)
    account = account_of(made(wanted, silently, trained_with()))
    assert account.key == expected.key


def test_a_build_that_was_interrupted_after_its_training_is_not_trained_again(
    tmp_path: Path, bolt: Bolt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: Rewriting) -> None:
        raise KeyboardInterrupt

    wanted = materials(tmp_path, bolt)
    with monkeypatch.context() as until_then:
        until_then.setattr(Rewriting, "put_in_place", stopped)
        with pytest.raises(KeyboardInterrupt):
            made(wanted, silently, trained_with())
    folder = made(wanted, silently)
    assert recorded(folder / "prefix" / "toy").bolt and account_of(folder).bolt is not None


def test_the_functions_that_bolt_moved_are_read_once(tmp_path: Path, bolt: Bolt) -> None:
    folder = made(materials(tmp_path, bolt), silently, trained_with())
    names = [function.name for function in read_code(folder / "prefix" / "toy").functions]
    assert {"often", "seldom", "never", "main"} <= set(names)
    assert not [name for name in names if ".org" in name]


FAKE = """#!/bin/sh
case "$*" in
*--skip-funcs=interpret/1*)
    echo 'BOLT-INFO: 3 out of 9 functions in the binary (33.3%) have non-empty execution profile'
    echo 'BOLT-INFO: basic block reordering modified layout of 2 functions (66.7% of profiled, 22% of total)'
    cp "$1" "$3" ;;
*)
    echo 'BOLT-ERROR: unable to get new address corresponding to input address 0x2a in function' \\
        'interpret/1(*2). Consider adding this function to --skip-funcs=...'
    exit 1 ;;
esac
"""
MERGES = '#!/bin/sh\ncat "$3" "$4" >"$2"\n'


def faked(folder: Path, says: str = FAKE) -> Rewriting:
    """A program in the hands of a script that says what BOLT would say."""
    for name, text in {"llvm-bolt": says, "merge-fdata": MERGES}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    program, work = folder / "server", folder / "work"
    program.write_text("as it was linked")
    work.mkdir()
    shutil.copy2(program, work / "original")
    merge = str(folder / "merge-fdata")
    bolt = Bolt(program=str(folder / "llvm-bolt"), merge=merge, version="19.1.7", digest="0")
    workplace = Workplace({}, {"PATH": os.environ["PATH"]}, folder / "log")
    return Rewriting(bolt, program, work, workplace, silently)


def written(folder: Path) -> Path:
    """The profiles of two processes."""
    raw = folder / "raw"
    raw.mkdir()
    for name in ("process.1.fdata", "process.2.fdata"):
        (raw / name).write_text("1 main 5f 1 often 0 0 2000\n")
    return raw


def test_a_function_that_bolt_cannot_rewrite_is_left_as_it_was(tmp_path: Path) -> None:
    found = faked(tmp_path).lay_out(written(tmp_path), tmp_path / "profile")
    assert (found.files, found.functions, found.executed) == (2, 9, 3)
    assert (found.moved, found.left) == (2, ("interpret/1",))
    assert (tmp_path / "profile" / MERGED).read_text().count("often") == 2


@pytest.mark.parametrize(
    ("says", "kind", "message"),
    [
        (FAKE.replace("*--skip-funcs", "*--never"), BuildFailed, "in function interpret/1"),
        ("#!/bin/sh\necho 'BOLT-ERROR: No space left on device'\nexit 1\n", DiskFull, "the disk is full"),
        ("#!/bin/sh\nexit 3\n", BuildFailed, "the command ended with exit code 3"),
        (
            "#!/bin/sh\necho 'BOLT-INFO: 0 out of 9 functions in the binary (0.0%) have non-empty execution"
            " profile'\n",
            BuildFailed,
            "holds no executed function",
        ),
        (
            "#!/bin/sh\necho 'BOLT-WARNING: 1 (16.7% of all profiled) function have invalid (possibly stale)"
            " profile.'\n",
            BuildFailed,
            "does not fit 1 of the functions",
        ),
    ],
    ids=["stuck", "full", "mute", "idle", "unfit"],
)
def test_whatever_else_bolt_says_is_the_cause(
    tmp_path: Path, says: str, kind: type[BuildFailed], message: str
) -> None:
    with pytest.raises(kind) as failed:
        faked(tmp_path, says).lay_out(written(tmp_path), tmp_path / "profile")
    assert message in failed.value.message and failed.value.hint


def test_the_complaint_is_found_in_what_bolt_prints() -> None:
    again = "/llvm-bolt: 'a': BOLT-ERROR: input file was processed by BOLT. Cannot re-optimize."
    assert complaint(f"BOLT-INFO: x\n{again}\n", 1) == "input file was processed by BOLT. Cannot re-optimize."
    assert complaint("ERROR: no valid profile data found\nBOLT-ERROR: y\n", 1).startswith("no valid profile")


def llvm(folder: Path, number: int, *parts: str) -> None:
    """A folder of LLVM with these parts of BOLT."""
    for part in parts:
        place = folder / f"llvm-{number}" / part
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\necho 'Debian LLVM version {number}.1.7'\n")
        place.chmod(0o755)


WHOLE = ("bin/llvm-bolt", "bin/merge-fdata", f"lib/{RUNTIME}")


def test_the_newest_bolt_is_taken_from_llvms_own_folder(tmp_path: Path) -> None:
    for number in (9, 16, 15):
        llvm(tmp_path, number, *WHOLE)
    found = newest_bolt(tmp_path)
    assert (found.program, found.version) == (str(tmp_path / "llvm-16/bin/llvm-bolt"), "16.1.7")


@pytest.mark.parametrize(
    ("parts", "message", "hint"),
    [
        ((), "there is no llvm-bolt below", "apt-get install bolt-19"),
        (WHOLE[:1], "merge-fdata, which BOLT needs", "apt-get install bolt-16"),
        (WHOLE[:2], f"{RUNTIME}, which BOLT needs", "apt-get install libbolt-16-dev"),
    ],
    ids=["nothing", "no merge-fdata", "no runtime"],
)
def test_without_a_whole_bolt_nothing_is_built(
    tmp_path: Path, parts: tuple[str, ...], message: str, hint: str
) -> None:
    llvm(tmp_path, 16, *parts)
    with pytest.raises(Blocked, match=message) as refused:
        newest_bolt(tmp_path)
    assert (refused.value.factor, refused.value.hint) == ("build.bolt", hint)


def test_a_bolt_that_instruments_nothing_is_blocked(tmp_path: Path) -> None:
    llvm(tmp_path, 16, *WHOLE)
    with pytest.raises(Blocked, match=r"BOLT 16\.1\.7 makes no program of gcc that writes a profile"):
        proved_bolt(toolchain("gcc"), Flags(), tmp_path)
