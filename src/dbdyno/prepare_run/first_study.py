"""A first study: the text that answers make, with a comment where a newcomer may want something else; and the
studies that come with Dyno.

A wheel carries these within the package; a clone of the repository has them at its root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR, Frozen
from dbdyno.host import paths, room
from dbdyno.report.words import numbers
from dbdyno.study.document import comments, document, levels_of, line, rows, table_text, toml, values_of
from dbdyno.study.tables import GOAL, STUDY, WORKLOAD
from dbdyno.study.values import nearest

if TYPE_CHECKING:
    from dbdyno.engines.engine import Proposal
    from dbdyno.study.catalogue import WorkloadOffer
    from dbdyno.study.document import Row

GOALS = {"throughput": "throughput", "latency": "p99_ms", "cpu": "server_cpu_us_per_op"}
CLIENTS_EACH_CPU, CLIENTS_LEAST = 4, 8


@dataclass(frozen=True)
class HostCapacity:
    """What of this host decides how large a first study may be."""

    cpus: int
    memory_bytes: int
    disk_bytes: int

    @property
    def words(self) -> str:
        memory, disk = self.memory_bytes / 2**30, self.disk_bytes / 2**30
        return (
            f"{numbers.plural(self.cpus, 'CPU')}, {memory:.1f} GiB of memory available,"
            f" {disk:.0f} GiB free for data"
        )


def host_here() -> HostCapacity:
    """What of this host decides how large a first study may be."""
    # Here, because help looks at no host.
    from dbdyno.host.fingerprint import core_count

    return HostCapacity(
        cpus=core_count(),
        memory_bytes=room.available_memory_bytes(),
        disk_bytes=room.free_disk_bytes(paths.cache_place()),
    )


@dataclass(frozen=True)
class Answers:
    """What the questions found out. `sized` is the workload's option that says how large the data are."""

    response: str
    workload: WorkloadOffer
    sized: str
    size: int
    clients: int
    time: str


@dataclass(frozen=True)
class StudyOutline:
    """What the study is about: its title, its engine as TOML, its design and its factors. `left_out` are
    sentences on what it does not vary. The design `list` has `variants`, by their names, each with the
    factors that have their last level in it."""

    title: str
    engine: str
    design: str
    factors: Sequence[Proposal]
    left_out: Sequence[str] = ()
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedLoad:
    """A workload that was made of logs: its file, what is compared, its clients, and what the logs tell of
    these."""

    file: str
    response: str
    clients: int
    told: str


def text(question: StudyOutline, answers: Answers, host: HostCapacity, path: str) -> str:
    """The whole file, which `dyno plan` accepts where the engine takes the levels."""
    workload = ["[workload]", *comments(_sentence(answers.workload.description)), *_workload(answers, host)]
    run = f"dyno run {path} --budget {answers.time}"
    return document(
        [*_begin("dyno init", question, host, path, run), workload, *_end(question, answers.response)]
    )


def of_production(
    question: StudyOutline, load: RecordedLoad, data: Sequence[Row], host: HostCapacity, path: str, time: str
) -> str:
    """A study of a load that was made of logs, on the data that it brings."""
    cpus = numbers.plural(host.cpus, "CPU")
    clients = f"connections at work; this host has {cpus}"
    workload = [
        WORKLOAD.row("name", "script", "transactions of a file"),
        ("file", toml(load.file), "each statement with its share; look through it and change what you know"),
        WORKLOAD.row("clients", load.clients, f"{clients}; {load.told}" if load.told else clients),
        *_times(),
    ]
    return document(
        [
            *_begin("dyno init study", question, host, path, f"dyno run {path} --budget {time}"),
            table_text("data", data),
            table_text("workload", workload),
            *_end(question, load.response),
        ]
    )


def _begin(verb: str, question: StudyOutline, host: HostCapacity, path: str, run: str) -> list[list[str]]:
    """What stands above the tables."""
    words = comments(
        f"Written by {verb} for this host: {host.words}.",
        f"See what it does: dyno plan {path}",
        f"Run it: {run}",
    )
    return [words, rows(_head(question))]


def _end(question: StudyOutline, response: str) -> list[list[str]]:
    """What is compared, and by what."""
    first = comments("The first level of each factor is the baseline's.")
    if question.variants:
        return [*_listed(question), _goal(response)]
    return [["[factors]", *first, *_factors(question)], _goal(response)]


def _listed(question: StudyOutline) -> list[list[str]]:
    """The baseline, which gives every factor, and each other variant with what it changes."""
    last = {factor.name: factor.levels[-1] for factor in question.factors}
    first = {factor.name: factor.levels[0] for factor in question.factors}
    tables = [["[[variants]]", "[variants.levels]", *rows(levels_of(first))]]
    for name, changed in question.variants.items():
        levels = rows(levels_of({one: last[one] for one in changed}))
        tables.append(["[[variants]]", line(("name", toml(name), "")), "[variants.levels]", *levels])
    return tables + [comments(*question.left_out)] * bool(question.left_out)


GUARDS = "A guard is what must hold as well before a variant counts as faster. For example:"


def _head(question: StudyOutline) -> list[Row]:
    return [
        STUDY.row("title", question.title),
        ("engine", question.engine, "NAME@VERSION or NAME:/PATH/TO/SERVER takes another build"),
        STUDY.row("design", question.design, DESIGNS[question.design]),
        STUDY.row("blocks", comment="a block measures every variant once; a verdict needs six of them"),
    ]


DESIGNS = {
    "one-at-a-time": "the baseline, then each other level alone",
    "factorial": "all combinations of levels: they explain the whole gap of what is varied",
    "fractional-factorial": "some of all combinations: they nearly explain the whole gap of what is varied",
    "list": "the first variant is the baseline; the last one has all that differs",
}


def _workload(answers: Answers, host: HostCapacity) -> list[str]:
    """What is asked of the workload; its other options as comments, with their defaults."""
    offer = answers.workload
    size = offer.option(answers.sized) if answers.sized else None
    cpus = numbers.plural(host.cpus, "CPU")
    chosen = [WORKLOAD.row("name", offer.name)]
    if size is not None:
        chosen.append((size.name, str(answers.size), size.help))
    chosen += [
        WORKLOAD.row("clients", answers.clients, f"connections at work; this host has {cpus}"),
        *_times(),
    ]
    others = [
        (f"# {option.name}", toml(option.default), option.help)
        for option in offer.options
        if option.name != answers.sized and option.default is not None
    ]
    return rows([*chosen, *others])


def _factors(question: StudyOutline) -> Iterator[str]:
    for factor in question.factors:
        yield from comments(factor.why) if factor.why else ()
        yield line((toml(factor.name), toml(list(factor.levels)), ""))
    for sentence in question.left_out:
        yield from comments(sentence)


def _times() -> list[Row]:
    return [
        WORKLOAD.row("warmup", comment="load before the measured part"),
        WORKLOAD.row("duration", comment="the measured part of a trial; a longer one has less noise"),
    ]


def _goal(response: str) -> list[str]:
    entries = [
        GOAL.row("response", response, "what is compared; reports show the other metrics as well"),
        GOAL.row("margin", comment="a smaller difference counts as no effect"),
    ]
    return [*table_text("goal", entries), *comments(GUARDS, 'guards = ["p99_ms <= 1.2x"]')]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


STUDIES = "studies"
DEMO = "quickstart"
_PATH = re.compile(r"(?<=[\s\"'])(?:\.\./)?([\w.-]+/[\w./-]+)")
"""What may be the path of a file that a study refers to: from the folder of the studies, or beside it."""


class Example(Frozen):
    """A study that comes with Dyno: what it is called, what it asks, and of which engine or engines."""

    name: str
    title: str
    engine: str


def examples() -> list[Example]:
    """Each study that comes with Dyno, by name. Raises UserError where none came along."""
    return [_example(path) for path in _paths().values()]


def study_file_named(name: str) -> Path:
    """The file of the study of this name. Raises UserError where there is none."""
    paths = _paths()
    if (found := paths.get(name.removesuffix(".toml"))) is None:
        raise UserError(f"no study that comes with Dyno is called {name!r}", nearest(name, paths))
    return found


def files(name: str) -> dict[str, str]:
    """The text of the study of this name and of each file that it refers to, by the path from the folder that
    they are written into. Raises UserError where there is no such study."""
    path = study_file_named(name)
    text = path.read_text(encoding="utf-8")
    referred = {
        found[1]: (path.parent / found[0]).read_text(encoding="utf-8")
        for found in _PATH.finditer(text)
        if (path.parent / found[0]).is_file()
    }
    return {path.name: _PATH.sub(lambda found: found[1], text)} | dict(sorted(referred.items()))


def _paths() -> dict[str, Path]:
    """The files of the studies by name. Raises UserError where there are none."""
    folder = paths.carried_place() / STUDIES
    found = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise UserError(
            f"no studies came with this Dyno: {folder} holds none",
            "install the wheel again, or run Dyno from a clone of its repository",
        )
    return found


def _example(path: Path) -> Example:
    asked = values_of(path.read_text(encoding="utf-8"))
    # Engines that are compared stand among the factors.
    engines = asked.get("factors", {}).get(ENGINE_FACTOR) or [asked["engine"]]
    named = [engine["name"] if isinstance(engine, dict) else engine for engine in engines]
    return Example(name=path.stem, title=asked["title"], engine=", ".join(named))
