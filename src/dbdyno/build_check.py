"""The correctness gate of a build: what is asked of it once before its speed counts, the cheapest first.

Faster and wrong is broken. So each build answers a short load and fixed queries under the study's own
settings, recovers from a kill in the midst of a load, and passes those of its source's own tests that its
recipe names. What was found is kept beside the build, and trials read it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver.job import Closed
from dbdyno.driver.tally import Acknowledged
from dbdyno.engines.built import Built, code_beside
from dbdyno.engines.engine import Ask, Engine
from dbdyno.errors import BaselineFailed, DriverFailed, DynoError, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell, silently
from dbdyno.layers.setup import Running
from dbdyno.layers.source import holds_build
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.records.record import Check, Doubt, Observation
from dbdyno.study import Workload
from dbdyno.study.designs import WRITING
from dbdyno.study.trials import Trial, Variant
from dbdyno.trial.acts.engine import kill_under_load, start_again
from dbdyno.trial.answers import known_answers, known_vectors
from dbdyno.trial.bench import Bench
from dbdyno.trial.check import judge_trial
from dbdyno.trial.correctness import (
    Correctness,
    GateQuestion,
    asked_of_each,
    baselines_build,
    baselines_wish,
    build_at_bench,
    durable,
    equal_text,
    keep_correctness,
    kept,
    own_tests,
    recall_held,
    variants_of_each_build,
)
from dbdyno.trial.nodes import checks_of_invariants
from dbdyno.trial.prepare import prepare
from dbdyno.trial.record_builder import died, of_the_engine

OPERATIONS, LOAD_MOST_S = 5000, 10.0
"""A fault that shows once in a thousand transactions shows in so many, unless they take too long."""
OF_A_BUILD = ("build.", "source.")
GATE = -1
"""In place of a trial's number."""


def pass_gate(bench: Bench, tell: Tell, wish: BuildSpecification) -> None:
    """Has a build of a study pass the gate before the first trial, so that nothing of it disturbs one. What
    is kept of a build holds; only what could not be asked is asked again.

    Raises BaselineFailed where the baseline's build did not pass, because nothing can be compared with it.
    """
    try:
        built, reference = build_at_bench(bench, wish), baselines_build(bench)
    except DynoError:
        # One of them cannot be built, and its trials end with the same cause.
        return
    each = asked_of_each(bench.study, variants_of_each_build(bench)[wish], reference)
    found = _first_to_run(built, each, bench, tell, again=True)
    if found.passed:
        return
    if wish == baselines_wish(bench):
        remedy = found.remedy or "nothing can be compared with it: mend it first"
        raise BaselineFailed(f"baseline: {found.cause}", remedy)
    tell(f"{wish.words}: {found.cause}")


def is_answered(bench: Bench, wish: BuildSpecification) -> bool:
    """Whether the gate has nothing to ask of a build, because what it found is kept. Raises like `built`."""
    each = asked_of_each(bench.study, variants_of_each_build(bench)[wish], baselines_build(bench))
    found = kept(build_at_bench(bench, wish).name, each[0])
    return found is not None and not found.unable


def gated(built: Built, bench: Bench) -> Correctness:
    """What the gate found of a build of the bench's study: now, where it did not ask yet."""
    variants = variants_of_each_build(bench)[built.wish]
    return _first_to_run(built, asked_of_each(bench.study, variants, baselines_build(bench)), bench, silently)


def _first_to_run(
    built: Built, each: Sequence[GateQuestion], bench: Bench, tell: Tell, again: bool = False
) -> Correctness:
    """What the gate finds under the first variant of a build under which it can run: a setting that keeps the
    engine from starting says nothing of the build. Where there is no such variant, what the first one showed.
    What could not be asked is asked `again`, or left as it is kept."""
    unable: list[Correctness] = []
    for asked in each:
        found = kept(built.name, asked)
        if found is None or (again and found.unable):
            under = asked.words if len(each) > 1 else asked.workload
            tell(f"{built.wish.words}: the correctness gate, with {under}")
            found = _ask(built, asked, bench)
        if not found.unable:
            return found
        unable.append(found)
        if len(unable) < len(each):
            tell(f"{built.wish.words}: {found.cause}; its next variant is asked")
    return unable[0]


def _ask(built: Built, asked: GateQuestion, bench: Bench) -> Correctness:
    """Asks all that the gate asks, up to the first check that does not hold, and keeps what it found."""
    began, found = time.monotonic(), Correctness(asked=asked.words)
    for question in _questions(built, asked, bench):
        found = found.plus(_answered(question, bench.engine))
        if not found.passed:
            break
    found = found.but(took_s=round(time.monotonic() - began, 3))
    keep_correctness(built.name, asked, found)
    return found


def _questions(built: Built, asked: GateQuestion, bench: Bench) -> tuple[Callable[[], Correctness], ...]:
    """What is asked of a build. Its source's own tests come first, because they have run already. One with
    the baseline's code has its answers, wherever its functions lie."""
    tests = partial(own_tests, built.account)
    if built.wish.architecture and bench.engine.shell is not None:
        # No load process loads it. Its rounds ask all else of it.
        return (tests,)
    if (same := _baselines_code(built, bench)) is not None:
        return tests, partial(Correctness, checks=(same,))
    on_build = replace(bench, built=built, callgrind=None)
    return tests, partial(answers, asked, on_build), partial(recovery, asked, on_build)


def _baselines_code(built: Built, bench: Bench) -> Check | None:
    """That a build has the code of the baseline's, which passed the gate; None where that is not shown."""
    baseline = baselines_wish(bench)
    try:
        if built.wish == baseline or not gated(build_at_bench(bench, baseline), bench).passed:
            return None
    except DynoError:
        # It cannot be built, and its trials end with that cause.
        return None
    code = code_beside(bench.engine, built.wish, baseline, bench.study.folder)
    if code is None or not code.same:
        return None
    return Check(name="baselines_code", holds=True, detail=f"not asked again, because {equal_text(code)}")


def _answered(question: Callable[[], Correctness], engine: Engine) -> Correctness:
    """An engine that dies when it is asked, or answers with an error of its own, has failed. Whatever else
    goes wrong says nothing of the engine."""
    try:
        return question()
    except DynoError as failure:
        if died(failure, engine):
            return _failed("survives", failure)
        return _failed("answers", failure) if of_the_engine(failure, engine) else _unable(failure)
    except OSError as failure:
        return _unable(DynoError(str(failure)))


def _failed(name: str, failure: DynoError) -> Correctness:
    return Correctness(checks=(Check(name=name, holds=False, detail=failure.message),))


def _unable(failure: DynoError) -> Correctness:
    return Correctness(unable=failure.message, remedy=failure.hint)


def answers(asked: GateQuestion, bench: Bench) -> Correctness:
    """Fixed queries, then a short load under the study's own settings: its invariants, and the recall of its
    searches where it searches vectors."""
    with _up(asked.levels, bench, bench.study.workload) as (running, _):
        known = _known(running.ask, bench)
        if not holds_build(running):
            raise DynoError("the process does not hold the build", "something else started in its place")
        job = running.setup.job
        tally = running.load.run(
            job.but(load=Closed(), ramp_s=0.0, warmup_s=0.0, duration_s=LOAD_MOST_S, operations=OPERATIONS)
        )
        invariants = running.load.check(running.data_job, Acknowledged.by([tally]))
        problems = running.log_problems()
    checks, doubts = judge_trial(tally, invariants, problems, Observation(duration_s=0.0), bench.cores)
    found = Correctness(checks=(*known, *checks, *_doubtful(doubts)))
    if tally.recall is None:
        return found
    recall = tally.recall.mean
    held = recall_held(recall, _reference(bench))
    return found.plus(Correctness(checks=(held,), recall=recall))


def _known(ask: Ask, bench: Bench) -> tuple[Check, ...]:
    """Checks of all whose answer is known: queries, and vectors where the study searches them."""
    installation = bench.built.installation if bench.built else bench.installation
    known = known_answers(ask, bench.engine, installation.version)
    if bench.study.workload.name != VECTOR_SEARCH or bench.engine.vectors is None:
        return known
    return (*known, *known_vectors(ask, bench.engine.vectors))


def _doubtful(doubts: Mapping[Doubt, str]) -> tuple[Check, ...]:
    """Statements that end with errors are no answers, so they fail a build. Lines of the log only show what
    to look at, because right engines write some too."""
    errors, log = (doubts.get(one, "") for one in (Doubt.ERRORS_IN_LOAD, Doubt.SERVER_LOG))
    return (
        Check(name="errors_in_load", holds=not errors, detail=errors),
        Check(name="server_log", holds=True, detail=log),
    )


def _reference(bench: Bench) -> float | None:
    """The recall of the baseline's build; None for that build itself. Raises DynoError where it has none."""
    baseline = build_at_bench(bench, baselines_wish(bench))
    if bench.built == baseline:
        return None
    recall = gated(baseline, bench).recall
    if recall is None:
        raise DynoError("the baseline's build has no recall to compare with", "mend that build first")
    return recall


def recovery(asked: GateQuestion, bench: Bench) -> Correctness:
    """A kill in the midst of a load that writes, with settings that make commits durable. After the next
    start all invariants hold, and all is there that clients were told: of an embedded engine, up to the last
    wait before the kill."""
    with _up(durable(asked.levels, bench.engine.settings), bench, WRITING) as (running, undo):
        told = kill_under_load(running)
        again = start_again(running, bench.open_load, undo)
        invariants = again.load.check(again.setup.job, told)
    return Correctness(checks=checks_of_invariants(invariants, after="a_kill"))


@contextmanager
def _up(levels: Mapping[str, Level], bench: Bench, workload: Workload) -> Iterator[tuple[Running, ExitStack]]:
    """An engine that runs with these levels alone, on its own copy of the workload's data."""
    settings = {name: level for name, level in bench.study.settings.items() if name.startswith(OF_A_BUILD)}
    # An application takes requests; another load than the study's own is SQL.
    settings |= bench.study.application_levels if workload is bench.study.workload else {}
    # What it asks does not depend on the network.
    study = bench.study.but(settings=settings, workload=workload, driver=None)
    variant = Variant(name="gate", levels=dict(levels))
    trial = Trial(index=GATE, block=0, position=0, variant=variant, phases=())
    with bench.journal.scope(), ExitStack() as undo:
        with _no_fault_of_the_build():
            running, _ = prepare(trial, replace(bench, study=study), undo)
        yield running, undo
        with _no_fault_of_the_build():
            undo.close()


@contextmanager
def _no_fault_of_the_build() -> Iterator[None]:
    """What goes wrong before the first question or after the last one may be the machine's fault, or that of
    a setting or of the pristine data: it is told as what kept the gate from running."""
    try:
        yield
    except (ServerFailed, DriverFailed) as failure:
        raise DynoError(failure.message, failure.hint) from failure
