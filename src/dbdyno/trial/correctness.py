"""What the correctness gate asks of a build, what it found, and where that is kept: beside the build. And
before a build is started, whether its code is another one than the baseline's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pydantic import Field

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.engines.built import Built, built
from dbdyno.engines.engine import Settings
from dbdyno.errors import Blocked, Incorrect, Inert
from dbdyno.frozen import Frozen, Level, level_shown
from dbdyno.host.cache import keep_beside
from dbdyno.layers.build import variants_by_wish
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import BuildAccount, BuildSpecification
from dbdyno.records.record import Check
from dbdyno.study import Design, Study
from dbdyno.study.designs import LAYOUT, changed_levels, is_placebo, of_build, variants_of
from dbdyno.study.trials import Variant
from dbdyno.trial.bench import Bench

if TYPE_CHECKING:
    from dbdyno.records.binary import CodeBeside
    from dbdyno.study.trials import Trial

VERSION = 3
"""Rises with all that the gate asks differently, so that builds pass it anew."""
SHAPING = frozenset({"config", "workload"})
"""Layers whose levels shape what a build answers. The gate leaves out all others."""
SCRIPTS = ("file", "setup")
"""Options of the workload `script` that name files."""
WEIGHT = re.compile(r"@\d+$")
RECALL_LOST_MOST = 0.01
"""More than this below the recall of the baseline's build, and the distances are not what they were."""
KEPT = "correctness-"
USUAL_S = 12.0
"""What the gate takes where none was passed yet."""


class GateQuestion(Frozen):
    """What the gate asks of a build: the study's load, under the levels that shape answers. `reference` is
    the baseline's build where recall is held against that one's, and `scripts` digests the text of the files
    that a load is written in."""

    workload: str
    options: dict[str, Level]
    clients: int
    levels: dict[str, Level]
    reference: str = ""
    scripts: str = ""
    version: int = VERSION

    @property
    def digest(self) -> str:
        told = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """`tpcb, scale 1, journal_mode MEMORY`"""
        options = {name: level for name, level in self.options.items() if level is not False and level != ""}
        named = {**options, **{name.partition(".")[2]: level for name, level in self.levels.items()}}
        return ", ".join([self.workload, *(f"{name} {level_shown(level)}" for name, level in named.items())])


class Correctness(Frozen):
    """What the gate found of a build, up to the first check that does not hold. `asked` tells in words what
    was asked, and `unable` why the gate could not run, which is no pass. `recall` is that of searches."""

    asked: str = ""
    checks: tuple[Check, ...] = ()
    recall: float | None = None
    unable: str = ""
    remedy: str = ""
    took_s: float = Field(default=0.0, ge=0.0)

    @property
    def failing(self) -> Check | None:
        return next((check for check in self.checks if not check.holds), None)

    @property
    def passed(self) -> bool:
        return not self.unable and self.failing is None

    @property
    def words(self) -> str:
        """`passed`, `failed at history_complete`, `could not run`"""
        if self.failing is not None:
            return f"failed at {self.failing.name}"
        return "could not run" if self.unable else "passed"

    @property
    def cause(self) -> str:
        """Why the build did not pass; empty where it did."""
        if self.failing is not None:
            return f"the build failed the correctness gate at {self.failing.name}: {self.failing.detail}"
        return f"the correctness gate could not run: {self.unable}" if self.unable else ""

    def plus(self, other: Correctness) -> Correctness:
        """With what a further part of the gate found."""
        return self.but(
            checks=(*self.checks, *other.checks),
            recall=self.recall if other.recall is None else other.recall,
            unable=self.unable or other.unable,
            remedy=self.remedy or other.remedy,
        )

    def require_passed(self) -> None:
        """Raises Incorrect for a build that failed, and Blocked where the gate could not run."""
        if self.failing is not None:
            raise Incorrect(self.cause, "a speed of wrong answers is none: leave out what makes them wrong")
        if self.unable:
            raise Blocked("build", self.cause, self.remedy)


def recall_held(recall: float, reference: float | None) -> Check:
    """Whether searches find what those of the baseline's build find; that build itself has no reference."""
    if reference is None:
        return Check(name="recall", holds=True, detail=f"{recall:.4f}, the reference of other builds")
    detail = f"{recall:.4f}, the baseline's build has {reference:.4f}"
    return Check(name="recall", holds=recall >= reference - RECALL_LOST_MOST, detail=detail)


def own_tests(account: BuildAccount) -> Correctness:
    """What the source's own tests said of the build when it was made."""
    if not account.tests:
        told = Check(name="own_tests", holds=True, detail="the source carries no tests that its recipe runs")
        return Correctness(checks=(told,))
    last = account.tests[-1]
    if last.verdict == "unable":
        free = f"dyno cache free {account.engine}-{account.key}"
        return Correctness(
            unable=f"the source's own tests, {last.name}: {last.detail}",
            remedy=f"mend that, then `{free}` has the build made and tested anew",
        )
    return Correctness(
        checks=tuple(
            Check(name=f"own_tests_{one.name}", holds=not one.holds_up, detail=one.detail)
            for one in account.tests
        )
    )


def variants_of_each_build(bench: Bench) -> dict[BuildSpecification, tuple[Variant, ...]]:
    """Each build of a bench's study, the baseline's first, with the variants that run it."""
    return variants_by_wish(bench.study, variants_of(bench.study), bench.layers, bench.engine)


def baselines_wish(bench: Bench) -> BuildSpecification:
    """The build that the others of a bench's study are held against."""
    return next(iter(variants_of_each_build(bench)))


def build_at_bench(bench: Bench, wish: BuildSpecification) -> Built:
    """A build of the bench's study. Raises like `built`."""
    return built(bench.engine, wish, bench.study.folder)


def baselines_build(bench: Bench) -> str:
    """The name of the baseline's build, which the recall of others is held against; empty where the study
    searches no vectors."""
    if bench.study.workload.name != VECTOR_SEARCH:
        return ""
    return build_at_bench(bench, baselines_wish(bench)).name


def durable(levels: Mapping[str, Level], settings: Settings) -> dict[str, Level]:
    """The levels with settings that make commits durable: the study's own where they do, else others. Levels
    of its workload are left out, because another one is driven."""
    found = {name: level for name, level in levels.items() if not name.startswith("workload.")}
    for name, enough in settings.DURABLE.items():
        factor = f"config.{name}"
        if not any(factor in found and settings.same(name, found[factor], str(level)) for level in enough):
            found[factor] = enough[0]
    return found


def asked_of_each(study: Study, variants: Iterable[Variant], reference: str) -> list[GateQuestion]:
    """What the gate can ask of the build of these variants, in their order and each thing once. `reference`
    is the `baselines_build`."""
    found: dict[str, GateQuestion] = {}
    for variant in variants:
        asked = asked_of(study, variant, reference)
        found.setdefault(asked.digest, asked)
    return list(found.values())


def asked_of(study: Study, variant: Variant, reference: str) -> GateQuestion:
    """What the gate asks of a variant's build. `reference` is the `baselines_build`."""
    workload, levels = study.workload, {**study.settings, **variant.levels}
    shaping = {name: level for name, level in levels.items() if name.partition(".")[0] in SHAPING}
    given = {name: shaping.get(f"workload.{name}", level) for name, level in workload.options.items()}
    return GateQuestion(
        workload=workload.name,
        options=workload.options,
        clients=workload.clients,
        levels=shaping,
        reference=reference,
        scripts=_digest_of_scripts([str(given.get(name, "")) for name in SCRIPTS]),
    )


def _digest_of_scripts(options: Sequence[str]) -> str:
    """A digest of the files that options name, each option as `a.sql@2,b.sql`; empty where there are none.
    A file that cannot be read is left to the load, which says so."""
    names = [part.strip() for option in options for part in option.split(",")]
    files = [Path(WEIGHT.sub("", name)) for name in names]
    told = [file.read_bytes() for file in files if file.is_file()]
    return (
        hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in told)).hexdigest() if told else ""
    )


def kept(build: str, asked: GateQuestion) -> Correctness | None:
    """What the gate found of the build of a name; None where it did not ask this yet."""
    return _read(_place(build, asked))


def keep_correctness(build: str, asked: GateQuestion, found: Correctness) -> None:
    """Keeps it beside the build, where this user can write there."""
    keep_beside(_place(build, asked), found.model_dump_json(indent=1) + "\n")


def all_kept(build: str) -> list[Correctness]:
    """All that the gate found of a build, whatever it asked."""
    places = sorted(making.folder_of(build).glob(f"{KEPT}*.json"))
    return [found for place in places if (found := _read(place)) is not None]


def documents_of(build: str) -> dict[str, str]:
    """All that the gate found of a build and could ask, as it is kept, by the digest of what it asked."""
    places = making.folder_of(build).glob(f"{KEPT}*.json")
    return {
        place.stem.removeprefix(KEPT): place.read_text()
        for place in sorted(places)
        if (found := _read(place)) is not None and not found.unable
    }


def keep_document(build: str, asked: str, document: str) -> None:
    """Keeps what the gate found of a build on another host, where nothing is kept here."""
    if (
        re.fullmatch(r"[0-9a-f]+", asked)
        and not (place := making.folder_of(build) / f"{KEPT}{asked}.json").exists()
    ):
        keep_beside(place, document)


def gate_expected_s(engine: str) -> float:
    """About how long the gate takes: as it took for the engine's builds, or else by a rule."""
    builds = [name for name in making.names() if name.startswith(f"{engine}-")]
    seen = [found.took_s for build in builds for found in all_kept(build)]
    return median(seen) if seen else USUAL_S


def _place(build: str, asked: GateQuestion) -> Path:
    return making.folder_of(build) / f"{KEPT}{asked.digest}.json"


def _read(place: Path) -> Correctness | None:
    try:
        return Correctness.model_validate_json(place.read_text())
    except (OSError, ValueError):
        # Nobody asked, or another version wrote it.
        return None


EACH_CELL = (Design.FACTORIAL, Design.FRACTIONAL)
"""Designs whose effects need every variant, an inert one as well."""


def code_beside_baseline(trial: Trial, bench: Bench) -> CodeBeside | None:
    """How the code of a trial's build differs from that of the baseline's. None where it is the same build,
    where one of the two is none, and where they cannot be compared. Raises like `built`."""
    study = bench.study
    if not any(of_build(factor) for factor in changed_levels(trial.variant.levels, study.baseline)):
        return None
    # Here and below, because most trials run no build.
    from dbdyno.engines.built import code_beside

    wish, baseline = (_wish(levels, bench) for levels in (trial.variant.levels, study.baseline))
    if wish is None or baseline is None or wish == baseline:
        return None
    return code_beside(bench.engine, wish, baseline, study.folder)


def require_own_code(trial: Trial, study: Study, code: CodeBeside | None) -> None:
    """Raises Inert where a trial would only measure the baseline again, and Blocked where a placebo is
    none."""
    changed = changed_levels(trial.variant.levels, study.baseline)
    if is_placebo(changed):
        _require_placebo(code)
    elif code is not None and code.same and _by_code_alone(changed) and study.design not in EACH_CELL:
        raise Inert(equal_text(code), _remedy(code))


def equal_text(code: CodeBeside) -> str:
    """What was compared, and found to be equal."""
    equal = f"{code.functions.equal:,} functions and all constants and variables are equal to the baseline's"
    return f"{equal}; {code.moved:,} of the functions lie elsewhere" if code.moved else equal


def _by_code_alone(changed: Mapping[str, Level]) -> bool:
    """Whether a variant can differ from the baseline by its code alone. A layout is asked for on purpose."""
    return LAYOUT not in changed and all(of_build(factor) for factor in changed)


def _remedy(code: CodeBeside) -> str:
    if code.moved:
        return f'only the luck of layout is left: {LAYOUT} = ["none", 1, 2, 3] shows how far that goes'
    return "take it out of the study: the compiler makes the same code with it and without it"


def _require_placebo(code: CodeBeside | None) -> None:
    """Raises Blocked where the code of a placebo is not shown to be the baseline's, or lies where that
    lies."""
    if code is None or not code.named:
        reason = (
            "the code cannot be compared with the baseline's, so nothing shows that only its place changed"
        )
        remedy = "have the recipe leave the symbols in (no -s, no strip), on x86-64"
    elif not code.same_program:
        reason = f"it is no placebo: {_differing(code)} differ from the baseline's"
        remedy = "have the recipe compile and link by {cflags} and {ldflags} alone"
    elif not code.moved:
        reason = "all functions lie where the baseline's lie"
        remedy = "have the recipe compile with {cflags} and link with {ldflags}"
    else:
        return
    raise Blocked(LAYOUT, f"{LAYOUT}: {reason}", remedy)


def _differing(code: CodeBeside) -> str:
    """What of a program differs, in the order of gravity."""
    if code.changed:
        return f"{code.changed:,} functions"
    if code.other_constants:
        return f"the constants of {code.other_constants:,} functions"
    if not code.data.all_equal:
        return f"{code.data.differing + code.data.only_left + code.data.only_right:,} constants and variables"
    return "the libraries or the protections"


def _wish(levels: Mapping[str, Level], bench: Bench) -> BuildSpecification | None:
    try:
        from dbdyno.layers.build import wish_of

        return wish_of(bench.study, levels, bench.layers, bench.engine)
    except Blocked:
        # What the levels of this side ask for is refused when its own trial is prepared.
        return None
