"""A build that is trained is made in two passes, and nothing of a half training is taken for whole."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import Blocked, BuildFailed
from dbdyno.host import cache, paths
from dbdyno.host.cache import silently
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import GUIDED, INSTRUMENTING, Trainer
from dbdyno.obtain.source.making import Materials, account_of, made
from dbdyno.obtain.source.profile import Untrained, require_profiles
from dbdyno.obtain.source.recipe import BuildStep
from dbdyno.obtain.source.toolchain import recorded, toolchain
from dbdyno.obtain.source.tree import local_tree
from tests.needs import needs_any_gcc
from tests.obtain.source import making_cases
from tests.obtain.source.training_cases import trained_with

pytestmark = [
    pytest.mark.usefixtures("homes"),
    needs_any_gcc,
]

CODE = """
int never(int argc) { return argc > 100; }
int often(int argc) { return argc > 3; }
int main(int argc, char **argv) {
    for (int number = 0; number < 1000; number++) if (often(argc)) return never(argc);
    return 0;
}
"""


def skip_without(family: str) -> None:
    """Skips where a compiler is not here, or cannot make what writes a profile."""
    try:
        require_profiles(toolchain(family), INSTRUMENTING[family])
    except Blocked as blocked:
        pytest.skip(f"needs a compiler that writes profiles: {blocked.message}; {blocked.hint}")


def materials(folder: Path, family: str = "gcc", flags: tuple[str, ...] = (), **more: object) -> Materials:
    """A program that is built twice. `flags` are the user's."""
    plain = making_cases.materials(folder, code=CODE, **more)
    own = plain.flags.but(compile=flags)
    return replace(
        plain,
        toolchain=toolchain(family),
        flags=plain.flags + GUIDED[family] + own,
        instrumented=plain.flags + INSTRUMENTING[family] + own,
        trainer=Trainer(workload="toy", transactions=3),
    )


def test_a_trained_build_is_guided_by_its_profile_and_tells_how(tmp_path: Path) -> None:
    wanted, told = materials(tmp_path), list[str]()
    folder = made(wanted, told.append, trained_with())
    training = account_of(folder).training
    assert training is not None and training.trainer == wanted.trainer
    assert (training.transactions, training.files, training.functions, training.executed) == (3, 1, 3, 2)
    assert training.words in told and "2 of 3 functions executed" in training.words
    lines = recorded(folder / "prefix" / "toy").command_lines
    assert all("-fprofile-use" in line and "-fprofile-generate" not in line for line in lines)
    assert [path.name for path in (folder / "prefix").iterdir()] == ["toy"]
    assert not (folder / "raw").exists() and not (folder / "work").exists()


def test_commands_of_the_first_pass_alone_have_what_instrumenting_needs(tmp_path: Path) -> None:
    told = ("sh", "-c", 'printf "%s\\n" "${PASS:-guided}" >> {prefix}/../passes')
    wanted = materials(tmp_path, instrumented_environment={"PASS": "instrumented"})
    plain = wanted.recipe
    steps = (*plain.steps, BuildStep(name="tell", command=told))
    telling = replace(wanted, recipe=plain.but(steps=steps))
    folder = made(telling, silently, trained_with())
    assert (folder / "passes").read_text().split() == ["instrumented", "guided"]
    other = replace(telling, recipe=telling.recipe.but(instrumented_environment={}))
    assert other.build.key != telling.build.key
    untrained = [replace(one, trainer=None, instrumented=None).build.key for one in (telling, other)]
    assert untrained[0] == untrained[1]


def test_the_profile_is_in_the_key_and_what_was_counted_decides_on_it(tmp_path: Path) -> None:
    wanted = materials(tmp_path)
    accounts = []
    for arguments in ((), (), ("a", "b", "c", "d")):
        folder = made(wanted, silently, trained_with(*arguments))
        accounts.append(account_of(folder))
        cache.release()
        shutil.rmtree(folder)
    assert accounts[0].key == accounts[1].key != accounts[2].key
    assert wanted.build.key not in {account.key for account in accounts}


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_what_several_processes_executed_adds_up(tmp_path: Path, family: str) -> None:
    skip_without(family)

    def train(untrained: Untrained) -> int:
        led = {**os.environ, **untrained.environment}
        for arguments in ((), ("a", "b", "c"), ()):
            subprocess.run([untrained.prefix / "toy", *arguments], env=led, check=False)
        return 3

    training = account_of(made(materials(tmp_path, family), silently, train)).training
    assert training is not None
    assert (training.functions, training.executed) == (3, 3)


def test_a_whole_build_is_not_trained_again(tmp_path: Path) -> None:
    folder = made(materials(tmp_path), silently, trained_with())
    cache.release()
    assert made(materials(tmp_path), silently) == folder


def test_without_a_way_to_train_it_nothing_is_built(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="the build that toy trains is no longer here"):
        made(materials(tmp_path), silently)
    assert cache.shelf("builds").names() == []


def test_profiles_that_are_not_written_fail_the_build(tmp_path: Path) -> None:
    silent = materials(tmp_path, flags=("-fno-profile-generate",))
    for _ in range(2):
        with pytest.raises(BuildFailed, match="the training wrote no profile"):
            made(silent, silently, trained_with())
    assert cache.shelf("builds").names() == []


def test_a_profile_in_which_nothing_was_executed_fails_the_build(tmp_path: Path) -> None:
    """Only what is never called is instrumented."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "toy" / "idle.c").write_text("int idle(int x) { return x; }\n")
    wanted = materials(tmp_path)
    link = ("{cc}", "-o", "{prefix}/toy", "toy.o", "idle.o", "{ldflags}")
    steps = [
        wanted.recipe.steps[0].but(command=("{cc}", "-c", "{source}/toy.c")),
        wanted.recipe.steps[0].but(command=("{cc}", "{cflags}", "-c", "{source}/idle.c")),
        wanted.recipe.steps[0].but(command=link),
    ]
    idle = replace(wanted, recipe=wanted.recipe.but(steps=tuple(steps)))
    with pytest.raises(BuildFailed, match="holds no executed function, of 1 in all"):
        made(idle, silently, trained_with())


def test_a_training_that_fails_is_the_builds_cause_and_nothing_is_kept(tmp_path: Path) -> None:
    tried = []

    def train(untrained: Untrained) -> int:
        tried.append(untrained.prefix)
        raise BuildFailed("the training by toy failed: it crashed", "mend it")

    for _ in range(2):
        with pytest.raises(BuildFailed, match="it crashed"):
            made(materials(tmp_path), silently, train)
    assert len(tried) == 1, "the next trial would only fail again"
    assert cache.shelf("builds").names() == []
    assert not list((paths.cache() / "builds").glob("*.making"))


def test_a_profile_of_other_code_fails_the_build(tmp_path: Path) -> None:
    """A source whose build system makes other code where the profile is."""
    changing = (
        "sh",
        "-c",
        'more=; if test -e "{prefix}/toy.gcda"; then more=-DCHANGED; fi; exec "$@" $more',
        "sh",
        *making_cases.COMPILE,
    )
    source = tmp_path / "toy" / "toy.c"
    source.parent.mkdir()
    source.write_text(
        CODE.replace("return argc > 3;", "if (CHANGED + 0) { if (argc > 7) return 2; } return argc > 3;")
    )
    source.write_text("#ifndef CHANGED\n#define CHANGED 0\n#endif\n" + source.read_text())
    wanted = materials(tmp_path)
    step = wanted.recipe.steps[0].but(command=changing)
    changed = replace(wanted, recipe=wanted.recipe.but(steps=(step,)))
    with pytest.raises(BuildFailed, match=r"does not fit all of the code that it guides: often$") as failed:
        made(changed, silently, trained_with())
    assert "coverage-mismatch" in failed.value.log


@pytest.mark.parametrize("after", [False, True], ids=["in the training", "after it"])
def test_a_training_that_was_interrupted_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    def interrupted(untrained: Untrained) -> int:
        # A part of a profile: the program was called, and more was to come.
        trained_with("a", "b", "c", "d")(untrained)
        if not after:
            raise KeyboardInterrupt
        return 3

    def stopped(prefix: Path) -> None:
        raise KeyboardInterrupt

    whole = made(materials(tmp_path), silently, trained_with())
    expected = account_of(whole).training
    cache.release()
    shutil.rmtree(whole)
    with monkeypatch.context() as until_then:
        if after:
            until_then.setattr(making, "remove_profile", stopped)
        with pytest.raises(KeyboardInterrupt):
            made(materials(tmp_path), silently, interrupted)
    assert cache.shelf("builds").names() == []
    told: list[str] = []
    training = account_of(made(materials(tmp_path), told.append, trained_with())).training
    assert training is not None and expected is not None
    # What was trained to its end stays; what was not is not even a part of what came after.
    assert (training.profile == expected.profile) is not after
    assert "going on with a build of toy that was interrupted" in told


TRAINS_WITHIN_S = 240.0
"""A bound for a victim that hangs, far above what its build takes."""
KILLED = """
import sys, time
from pathlib import Path
from tests.obtain.source.test_training import materials, trained_with
from dbdyno.obtain.source.making import made
def train(untrained):
    trained_with("a", "b", "c", "d")(untrained)
    print("training", flush=True)
    time.sleep(600)
made(materials(Path(sys.argv[1])), lambda line: None, train)
"""


def test_a_training_that_was_killed_begins_anew(tmp_path: Path) -> None:
    victim = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert victim.stdout is not None
    try:
        ready, _, _ = select.select([victim.stdout], [], [], TRAINS_WITHIN_S)
        assert ready and victim.stdout.readline() == "training\n"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    killed = account_of(made(materials(tmp_path), silently, trained_with()))
    cache.release()
    shutil.rmtree(cache.shelf("builds").folder / materials(tmp_path).build.name)
    whole = account_of(made(materials(tmp_path), silently, trained_with()))
    assert killed.key == whole.key


def test_clang_trains_as_gcc_does(tmp_path: Path) -> None:
    skip_without("clang")
    folder = made(materials(tmp_path, family="clang"), silently, trained_with())
    training = account_of(folder).training
    assert training is not None
    assert (training.functions, training.executed) == (3, 2)
    assert any("-fprofile-instr-use" in line for line in recorded(folder / "prefix" / "toy").command_lines)


OTHER = """
int main(int argc, char **argv) {
    int sum = 0;
    for (int number = 0; number < argc; number++) { if (number % 3) sum += number; else sum -= 1; }
    return sum;
}
"""


@pytest.mark.parametrize(("share", "is_made"), [(0.5, True), (0.01, False)])
def test_a_name_in_another_program_of_the_source_is_told_and_many_fail_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, is_made: bool
) -> None:
    """clang finds counts by names alone."""
    skip_without("clang")
    monkeypatch.setattr(making, "UNFIT_MOST", share)
    wanted = materials(tmp_path, "clang")
    (tmp_path / "toy" / "other.c").write_text(OTHER)
    [one] = wanted.recipe.steps
    other = one.but(command=tuple(part.replace("toy", "other") for part in one.command))
    two = replace(
        wanted,
        recipe=wanted.recipe.but(steps=(one, other)),
        source=local_tree(tmp_path / "toy"),
    )
    if is_made:
        training = account_of(made(two, silently, trained_with())).training
        assert training is not None and training.unfit == 1
        assert "1 of other programs without it" in training.words
    else:
        with pytest.raises(BuildFailed, match="guides: 1 functions, and it knows 3"):
            made(two, silently, trained_with())


def test_a_training_is_expected_to_take_as_long_as_the_last_ones(tmp_path: Path) -> None:
    recipe = materials(tmp_path).recipe
    assert [making.build_expected_s(recipe, is_trained) for is_trained in (False, True)] == [600.0, 1800.0]
    plain = account_of(made(making_cases.materials(tmp_path, code=CODE), silently)).took_s
    assert making.build_expected_s(recipe, is_trained=True) == 3 * plain
    trained = account_of(made(materials(tmp_path), silently, trained_with())).took_s
    assert [making.build_expected_s(recipe, is_trained) for is_trained in (False, True)] == [plain, trained]
