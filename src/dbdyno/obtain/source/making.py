"""Making builds: a source is prepared once, a build of it is made once, and both are kept."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from dbdyno.errors import BuildFailed, DiskFull, UserError
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.host.clone import tree_size_bytes
from dbdyno.host.room import require_disk
from dbdyno.obtain.source import bolt as layout
from dbdyno.obtain.source import profile
from dbdyno.obtain.source import tree as patch
from dbdyno.obtain.source.bolt import REORDERING, Bolt, Rewriting
from dbdyno.obtain.source.build import (
    EMULATE,
    ENVIRONMENT,
    NO_FLAGS,
    Bolting,
    Build,
    BuildAccount,
    Flags,
    OwnTest,
    Target,
    Trainer,
    Training,
)
from dbdyno.obtain.source.commands import LOG_BYTES, Bound, Workplace, run_step, run_tests, wrapper
from dbdyno.obtain.source.profile import (
    PROFILE,
    BuildProfile,
    Profiling,
    Train,
    lay_profile,
    mismatched,
    mismatches,
    remove_profile,
    trained,
)
from dbdyno.obtain.source.recipe import TARGET_PLACES, Recipe, expanded
from dbdyno.obtain.source.reuse import CC, CXX, place, reuse_of, reused
from dbdyno.obtain.source.reuse import is_here as ccache_is_here
from dbdyno.obtain.source.toolchain import Toolchain, native_target, toolchain
from dbdyno.obtain.source.tree import Patch, SourceTree, copy_source

MANIFEST, LOG, PREFIX, WORK = "build.json", "build.log", "prefix", "work"
TREE, SPENT, BOLT = "tree", "spent.json", "bolt"
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the system says where room is lacking."""
SCRIPT = "layout.ld"
MENDED = frozenset((".ninja_log", ".ninja_deps"))
"""What ninja itself mends. Without them it would compile everything again."""
NAMES_MOST = 3
NOTHING: Mapping[str, str] = {}
UNFIT_MOST = 0.01
"""So many of a profile's functions may have their names in other programs of the source as well."""
TRAINED_TIMES, BOLTED_TIMES = 2, 1
"""How many builds' time a training takes: for the compiler's the build is made twice."""
TORN_S = 5.0
"""What was written so shortly before a build was killed may be torn."""

_failures: dict[str, BuildFailed] = {}
"""Builds that failed in this process, by key: the next trial would only fail again, and later."""


@dataclass(frozen=True)
class Materials:
    """All that a build is made of. One that a `trainer` trains is built twice: `instrumented` are the flags
    of the first time, and `flags` those of the second. `seed` shuffles its functions. `bolt` lays them out
    anew when it is built, by what `bolt_trainer` has it execute. One of a study of platforms has a `target`.
    """

    recipe: Recipe
    source: SourceTree
    patches: tuple[Patch, ...]
    toolchain: Toolchain
    flags: Flags
    words: str
    trainer: Trainer | None = None
    instrumented: Flags | None = None
    seed: int | None = None
    bolt: Bolt | None = None
    bolt_trainer: Trainer | None = None
    target: Target | None = None

    @property
    def build(self) -> Build:
        return Build(
            engine=self.recipe.engine,
            recipe=self.recipe.digest,
            source=self.source.digest,
            patches=tuple(one.digest for one in self.patches),
            toolchain=self.toolchain.digest,
            flags=self.flags,
            target=native_target(self.toolchain, self.flags),
            trainer=self.trainer,
            instrumented=self.instrumented,
            instrumented_environment=self.recipe.instrumented_environment if self.instrumented else {},
            script=hashlib.sha256(self.script.encode()).hexdigest() if self.script else "",
            bolting=self._bolting,
            architecture=self.target.architecture.name if self.target else "",
            root=self.target.root.digest if self.target else "",
        )

    @property
    def _bolting(self) -> Bolting | None:
        if self.bolt is None or self.bolt_trainer is None:
            return None
        return Bolting(trainer=self.bolt_trainer, tool=self.bolt.digest, options=REORDERING)

    @property
    def script(self) -> str:
        """What the linker is told beside its own script; empty where it shuffles nothing."""
        return "" if self.seed is None else layout.script(self.seed)

    @property
    def title(self) -> str:
        return f"{self.recipe.engine}, {self.words}"


def failures() -> dict[str, BuildFailed]:
    """The builds that failed in this process, by key."""
    return dict(_failures)


def forget_failures() -> None:
    """Has the next one who asks for a build try again what failed, because something may have been mended."""
    _failures.clear()


def note_failures(found: Mapping[str, BuildFailed]) -> None:
    """Notes the `failures` of another process, so that this one does not try those builds again."""
    _failures.update(found)


def is_made(build: Build) -> bool:
    return cache.shelf("builds").holds(build.name)


def kept(build: Build) -> BuildAccount | None:
    """The account of a build, where it is here."""
    return readable_account(folder_of(build.name))


def made(materials: Materials, tell: Tell, train: Train | None = None) -> Path:
    """The folder of a build, which is made where it is not there yet. One with trainers is made only with a
    way to `train` it. Raises BuildFailed, and Blocked where this machine lacks what it takes."""
    build = materials.build
    if build.key in _failures:
        earlier = _failures[build.key]
        raise type(earlier)(earlier.message, earlier.hint, earlier.log)
    try:
        return cache.shelf("builds").once(
            build.name, partial(_make, materials=materials, tell=tell, train=train), tell, resume=True
        )
    except BuildFailed as failure:
        _failures[build.key] = failure
        raise
    except OSError as error:
        _failures[build.key] = _refused(error)
        raise _failures[build.key] from None


def _refused(error: OSError) -> BuildFailed:
    """What the system refused to a build, or to its training."""
    if error.errno in FULL:
        return DiskFull("the disk is full", "make room below the cache folder")
    place = error.filename or "the cache folder"
    reason = f"the build cannot go on: {error.strerror or error}: {place}"
    return BuildFailed(reason, f"look whether {place} is there, and whether Dyno may use it")


def note_host(folder: Path, host: str) -> BuildAccount:
    """Notes which host of a fleet made a build, unless that is known; returns its account."""
    account = account_of(folder)
    if not account.made_on:
        account = account.but(made_on=host)
        cache.keep_beside(folder / MANIFEST, account.model_dump_json(indent=1) + "\n")
    return account


def taken_over(name: str, fill: Callable[[Path], tuple[str, str]], tell: Tell) -> Path:
    """Puts a build that another host made where this one keeps its builds, in the place of one of that name.
    `fill` puts it into a folder, checks it, and says what it is and where it comes from. Raises UserError
    where another process uses the one that is here."""
    shelf = cache.shelf("builds")
    with shelf.making(f"{name}-taken", tell) as folder:
        said = fill(folder)
        if shelf.holds(name) and not shelf.drop(name):
            raise UserError(
                f"build {name} is another file here than the fleet's, and a Dyno of this host uses it",
                "let that end, and go on",
            )
        # What a making of it that was killed has left is of no use any more.
        with shelf.making(name, tell):
            return shelf.keep(folder, name, *said)


def account_of(folder: Path) -> BuildAccount:
    """What is kept of a whole build."""
    return BuildAccount.model_validate_json((folder / MANIFEST).read_text())


def names() -> list[str]:
    """The names of all builds that are kept."""
    return cache.shelf("builds").names()


def folder_of(name: str) -> Path:
    """Where the build of a name is kept."""
    return cache.shelf("builds").folder / name


def readable_account(folder: Path) -> BuildAccount | None:
    """What is kept of a whole build; None where another version wrote it."""
    try:
        return account_of(folder)
    except (OSError, ValueError):
        return None


def all_made() -> list[BuildAccount]:
    """The accounts of all builds that are kept; one that another version wrote is left out."""
    found = (readable_account(folder_of(name)) for name in names())
    return [account for account in found if account is not None]


def build_expected_s(
    recipe: Recipe, is_trained: bool, is_bolted: bool = False, is_placebo: bool = False
) -> float:
    """About how long a build takes: by those that were made before, else as the recipe says. A placebo takes
    the objects of the baseline's build, where ccache is here."""
    made_before = [
        one
        for one in all_made()
        if one.recipe == recipe.digest
        and (one.training is not None, one.bolt is not None) == (is_trained, is_bolted)
    ]
    takes = [one.took_s for one in made_before if one.reused and one.reused.nearly_all]
    if takes and is_placebo and ccache_is_here():
        return median(takes)
    # Another source may find fewer objects of earlier builds.
    seen = [one.took_s for one in made_before if not (one.reused and one.reused.taken)]
    if seen:
        return median(seen)
    if not (is_trained or is_bolted):
        return recipe.seconds
    times = 1 + TRAINED_TIMES * is_trained + BOLTED_TIMES * is_bolted
    return times * build_expected_s(recipe, is_trained=False)


def _make(folder: Path, materials: Materials, tell: Tell, train: Train | None) -> tuple[str, str]:
    recipe = materials.recipe
    # What a build that was interrupted has made takes no room again.
    require_disk(folder, (recipe.room_mib << 20) - tree_size_bytes(folder), f"a build of {recipe.engine}")
    shared = prepared(materials, tell)
    began, spent_s = time.monotonic(), spent_before_s(folder)
    training = _trained_by_compiler(folder, shared, materials, tell, train)
    prefix = _carry_out(folder, shared, materials, materials.flags, tell)
    if training is not None:
        remove_profile(prefix)
        unfit = _unfit(folder / LOG, training.functions)
        training = training.but(unfit=unfit)
    bolted = _trained_by_bolt(folder, materials, tell, train)
    trainings = {"profile": training, "bolt_profile": bolted}
    profiles = {name: one.profile for name, one in trainings.items() if one is not None}
    account = BuildAccount(
        key=materials.build.but(**profiles).key,
        engine=recipe.engine,
        words=materials.words,
        source=materials.source.title,
        patches=tuple(f"{one.name} {one.digest[:12]}" for one in materials.patches),
        toolchain=materials.toolchain.version,
        flags=materials.flags,
        recipe=recipe.digest,
        program=recipe.program,
        took_s=round(spent_s + time.monotonic() - began, 3),
        network=wrapper() is None,
        training=training,
        bolt=bolted,
        tests=_tested(folder, materials, tell),
        layout="" if materials.seed is None else str(materials.seed),
        reused=reused(folder),
    )
    shutil.rmtree(folder / WORK)
    shutil.rmtree(folder / TREE)
    (folder / EMULATE).unlink(missing_ok=True)
    shutil.rmtree(folder / BOLT / WORK, ignore_errors=True)
    (folder / SPENT).unlink()
    (folder / MANIFEST).write_text(account.model_dump_json(indent=1) + "\n")
    # A name must not outlive a loss of power that the contents do not.
    os.sync()
    return materials.title, materials.source.title


def _carry_out(
    folder: Path,
    shared: Path,
    materials: Materials,
    flags: Flags,
    tell: Tell,
    besides: Mapping[str, str] = NOTHING,
) -> Path:
    """Carries out a recipe's steps with these flags, in a build's folder, with something `besides` in their
    environment; returns the prefix."""
    recipe, work, prefix, log = materials.recipe, folder / WORK, folder / PREFIX, folder / LOG
    tree = folder / TREE
    _have_objects_taken(folder, materials, flags, tell)
    if work.exists():
        tell(f"going on with a build of {recipe.engine} that was interrupted")
        remove_torn(work)
        remove_torn(tree)
    for own in (work, prefix):
        own.mkdir(exist_ok=True)
    # A copy of its own, because what one build writes into its source must not reach the next one.
    needed_bytes = tree_size_bytes(shared) - tree_size_bytes(tree)
    require_disk(folder, needed_bytes, f"the source of {recipe.engine}")
    copy_source(shared, tree)
    lay_profile(folder)
    own_flags = flags + _shuffling(folder, materials)
    workplace = _workplace(materials, tree, work, prefix, log, own_flags, besides)
    objects = _objects(materials, tell)
    if objects is not None:
        copy_source(objects / WORK, work)
        if not log.exists():
            shutil.copy(objects / LOG, log)
    for number, step in enumerate(recipe.steps, 1):
        if not (step.shared and objects):
            tell(f"{materials.title}: {step.name}, {number} of {len(recipe.steps)}")
            run_step(step, workplace, tell)
    _require_program(prefix, recipe.program, log)
    return prefix


def _objects(materials: Materials, tell: Tell) -> Path | None:
    """The folder of what the shared steps of a recipe make, once for all builds that differ in the linker's
    flags alone. None for a recipe without such steps, and for a build that is trained, because a compiler
    finds an object's profile by the object's path."""
    if materials.trainer is not None or not any(step.shared for step in materials.recipe.steps):
        return None
    flags = Flags(compile=materials.flags.compile)
    alike = materials.build.but(flags=flags, script="", bolting=None)
    name = f"{materials.recipe.engine}-objects-{alike.key}"
    return cache.shelf("sources").once(
        name, partial(_compile, materials=materials, flags=flags, tell=tell), tell
    )


def _compile(folder: Path, materials: Materials, flags: Flags, tell: Tell) -> tuple[str, str]:
    tree, work = folder / TREE, folder / WORK
    _have_objects_taken(folder, materials, flags, tell)
    copy_source(prepared(materials, tell), tree)
    work.mkdir()
    workplace = _workplace(materials, tree, work, folder / PREFIX, folder / LOG, flags)
    for step in materials.recipe.steps:
        if step.shared:
            tell(f"{materials.title}: {step.name}")
            run_step(step, workplace, tell)
    shutil.rmtree(tree)
    reused(folder)
    return f"objects of {materials.title}", materials.source.title


def _tested(folder: Path, materials: Materials, tell: Tell) -> tuple[OwnTest, ...]:
    """What the source's own tests say of a build, while its folder is there."""
    tree, work, prefix, log = folder / TREE, folder / WORK, folder / PREFIX, folder / LOG
    workplace = _workplace(materials, tree, work, prefix, log, materials.flags)
    if materials.target is None or not materials.recipe.tests:
        return run_tests(materials.recipe.tests, workplace, tell)
    libraries = materials.recipe.libraries(prefix)
    with materials.target.fronted(tree, work, prefix, libraries=libraries):
        return run_tests(materials.recipe.tests, workplace, tell)


def _have_objects_taken(folder: Path, materials: Materials, flags: Flags, tell: Tell) -> None:
    """Has the build in a folder take objects of others where it can, which one that is trained never does.
    One that began otherwise was configured for other paths, and begins anew."""
    toolchain, trained = materials.toolchain, materials.trainer is not None
    reuse = None if trained else reuse_of(toolchain, materials.build.target, flags, tell)
    if _takes_objects(folder) != (reuse is not None):
        for made_by in (WORK, TREE):
            shutil.rmtree(folder / made_by, ignore_errors=True)
        reused(folder)
    if reuse is not None:
        reuse.lay(folder, toolchain)


def _takes_objects(folder: Path) -> bool:
    """Whether the commands of the build in a folder see it in the place of all."""
    return (folder / CC).exists()


def _shuffling(folder: Path, materials: Materials) -> Flags:
    """What has the linker put functions where the seed says, by a script in a build's folder."""
    if not materials.script:
        return NO_FLAGS
    (folder / SCRIPT).write_text(materials.script)
    return Flags(link=(f"-Wl,-T,{folder / SCRIPT}",))


def _trained_by_compiler(
    folder: Path, shared: Path, materials: Materials, tell: Tell, train: Train | None
) -> Training | None:
    """Makes a build that the compiler instruments, and trains it; None for one that no profile guides."""
    trainer, flags, toolchain = materials.trainer, materials.instrumented, materials.toolchain
    if trainer is None or flags is None:
        return None

    def instrument(_: Path) -> Path:
        tell(f"{materials.title}: instrumented at first")
        return _carry_out(folder, shared, materials, flags, tell, materials.recipe.instrumented_environment)

    def collect(raw: Path, into: Path) -> BuildProfile:
        found = profile.collected(raw, folder, into, toolchain)
        # The guided build begins with none of this one's objects, also where it is interrupted and goes on.
        for made_by in (PREFIX, WORK, TREE):
            shutil.rmtree(folder / made_by)
        return found

    profiling = Profiling(instrument, partial(profile.environment, toolchain.family), collect)
    return trained(folder, trainer, profiling, train, tell)


def _trained_by_bolt(folder: Path, materials: Materials, tell: Tell, train: Train | None) -> Training | None:
    """Has BOLT lay out anew the program of a build that is installed, by what its training executes; None for
    a build without BOLT."""
    if materials.bolt is None or materials.bolt_trainer is None:
        return None
    prefix = folder / PREFIX
    places = folder / TREE, folder / WORK, prefix, folder / LOG
    program = (prefix / materials.recipe.program).resolve()
    workplace = _workplace(materials, *places, materials.flags)
    rewriting = Rewriting(materials.bolt, program, folder / BOLT / WORK, workplace, tell)

    def instrument(raw: Path) -> Path:
        tell(f"{materials.title}: instrumented by BOLT {rewriting.bolt.version}")
        rewriting.instrument(raw)
        return prefix

    profiling = Profiling(instrument, lambda _: {}, rewriting.lay_out)
    training = trained(folder / BOLT, materials.bolt_trainer, profiling, train, tell)
    rewriting.put_in_place()
    return training


def _unfit(log: Path, functions: int) -> int:
    """How many functions the profile does not fit, because they bear a name of the trained program in another
    one. Raises BuildFailed where the profile is of other code than what was compiled with it."""
    said = log.read_text(errors="replace")
    named, count = mismatched(said), mismatches(said)
    if named or count > UNFIT_MOST * functions:
        raise BuildFailed(
            "the profile does not fit all of the code that it guides: "
            + (_some(named) if named else f"{count:,} functions, and it knows {functions:,}"),
            "the source's build system makes other code each time: look for what differs in the build's log",
            said[-LOG_BYTES:],
        )
    return count


def _some(names: list[str]) -> str:
    rest = len(names) - NAMES_MOST
    return ", ".join(names[:NAMES_MOST]) + (f" and {rest} more" if rest > 0 else "")


def spent_before_s(folder: Path) -> float:
    """Seconds that the earlier parts of an interrupted build took, each from its beginning to the last line
    of its log. Notes that another part begins."""
    note, log = folder / SPENT, folder / LOG
    spent_s = 0.0
    if note.exists() and log.exists():
        earlier = json.loads(note.read_text())
        spent_s = earlier["spent_s"] + max(0.0, log.stat().st_mtime - earlier["began_unix_s"])
    draft = folder / f"{SPENT}.part"
    draft.write_text(json.dumps({"spent_s": spent_s, "began_unix_s": time.time()}))
    draft.rename(note)
    return spent_s


def prepared(materials: Materials, tell: Tell) -> Path:
    """The source with its patches, and with the files that it generates of itself: made once for all builds
    of it."""
    told = [materials.source.digest, *(one.digest for one in materials.patches)]
    told += [step.model_dump_json() for step in materials.recipe.generate]
    name = f"{materials.recipe.engine}-{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]}"
    return cache.shelf("sources").once(name, partial(_prepare, materials=materials, tell=tell), tell) / TREE


def _prepare(folder: Path, materials: Materials, tell: Tell) -> tuple[str, str]:
    tree = folder / TREE
    # What makes files of a source runs here, whatever the builds of it are for.
    here = replace(materials, toolchain=toolchain("gcc"), target=None) if materials.target else materials
    tell(f"preparing the source of {materials.recipe.engine}: {materials.source.title}")
    materials.source.lay(tree)
    for one in materials.patches:
        patch.apply(one, tree)
    workplace = _workplace(here, tree, tree, tree, folder / LOG, NO_FLAGS)
    for step in materials.recipe.generate:
        run_step(step, workplace, tell)
    patched = "".join(f", {one.name}" for one in materials.patches)
    return f"the source of {materials.recipe.engine}{patched}", materials.source.title


def _workplace(
    materials: Materials,
    tree: Path,
    work: Path,
    prefix: Path,
    log: Path,
    flags: Flags,
    besides: Mapping[str, str] = NOTHING,
) -> Workplace:
    """Where a build's commands run. Those of one that takes objects see its folder in the place of all, with
    what stands for the compilers there."""
    recipe, toolchain, bound = materials.recipe, materials.toolchain, None
    cc, cxx = toolchain.cc, toolchain.cxx
    if _takes_objects(log.parent):
        bound = Bound(log.parent, place())
        tree, work = bound.place / TREE, bound.place / WORK
        cc, cxx = (str(bound.place / name) for name in (CC, CXX))
    # Where a build lies must not show in it: two builds would differ by their paths.
    paths = (f"-ffile-prefix-map={tree}=/source", f"-ffile-prefix-map={work}=/build")
    target = materials.target
    if target is not None:
        target.lay(log.parent)
        flags += target.flags
    compiled = (*expanded(flags.compile, {"profile": str(log.with_name(PROFILE))}), *paths)
    places: dict[str, str | tuple[str, ...]] = {
        "source": str(tree),
        "build": str(work),
        "prefix": str(prefix),
        "cc": cc,
        "cxx": cxx if toolchain.cxx else "",
        "cflags": compiled,
        "ldflags": flags.link,
        "jobs": str(len(os.sched_getaffinity(0))),
        **dict.fromkeys(TARGET_PLACES, ""),
        **({**target.places, "emulator": str(log.with_name(EMULATE))} if target else {}),
    }
    compilers = {"CC": cc, "CXX": cxx} if toolchain.cxx else {"CC": cc}
    told = {**recipe.environment, **besides}
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(work),
        # A compiler that is killed leaves its temporary files.
        "TMPDIR": str(bound.place if bound else log.parent),
        **ENVIRONMENT,
        **compilers,
        **_archivers(toolchain),
        "CFLAGS": " ".join(compiled),
        "CXXFLAGS": " ".join(compiled),
        "LDFLAGS": " ".join(flags.link),
        **{name: " ".join(expanded([value], places)) for name, value in told.items()},
    }
    return Workplace(places, environment, log, toolchain.cc, bound)


def _archivers(toolchain: Toolchain) -> dict[str, str]:
    """The archive tools that understand the compiler's own objects, which LTO makes."""
    found = {}
    # What a link such as `cc` leads to comes last, because its name tells the version.
    for cc in (Path(toolchain.cc), Path(toolchain.cc).resolve()):
        cross, _, ending = cc.name.partition("gcc") if toolchain.family == "gcc" else ("", "", "")
        prefix = f"{cross}gcc" if toolchain.family == "gcc" else "llvm"
        for name, tool in {"AR": "ar", "NM": "nm", "RANLIB": "ranlib"}.items():
            program = cc.with_name(f"{prefix}-{tool}{ending}")
            if program.exists():
                found[name] = str(program)
    return found


def remove_torn(work: Path) -> None:
    """Removes the files that a killed build wrote last, so that they are made again."""
    files = [path for path in work.rglob("*") if path.is_file() and path.name not in MENDED]
    latest_s = max((path.stat().st_mtime for path in files), default=0.0)
    for path in files:
        if path.stat().st_mtime > latest_s - TORN_S:
            path.unlink()


def _require_program(prefix: Path, program: str, log: Path) -> None:
    """Raises BuildFailed where there is none, or a link to one that was not built."""
    file = (prefix / program).resolve()
    if not file.is_file() or not file.is_relative_to(prefix.resolve()):
        raise BuildFailed(
            f"the recipe's commands succeeded, and made no {program} below the prefix",
            "look at `program` and at the last step of the recipe",
            log.read_text(errors="replace")[-4096:],
        )
