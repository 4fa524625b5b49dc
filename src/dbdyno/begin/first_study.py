"""The text of a first study: what was answered, with a comment where a newcomer may want something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.host import paths, room
from dbdyno.report.words import numbers
from dbdyno.study.format import STUDY
from dbdyno.study.tables import GOAL, WORKLOAD
from dbdyno.study.toml import comments, document, levels_of, line, rows, table, toml

if TYPE_CHECKING:
    from dbdyno.engines.engine import Proposal
    from dbdyno.study.catalogue import WorkloadOffer
    from dbdyno.study.toml import Row

GOALS = {"throughput": "throughput", "latency": "p99_ms", "cpu": "server_cpu_us_per_op"}
CLIENTS_EACH_CPU, CLIENTS_LEAST = 4, 8


@dataclass(frozen=True)
class Host:
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


def host_here() -> Host:
    """What of this host decides how large a first study may be."""
    # Here, because help looks at no host.
    from dbdyno.host.fingerprint import core_count

    return Host(
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
class Question:
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
class Load:
    """A workload that was made of logs: its file, what is compared, its clients, and what the logs tell of
    these."""

    file: str
    response: str
    clients: int
    told: str


def text(question: Question, answers: Answers, host: Host, path: str) -> str:
    """The whole file, which `dyno plan` accepts where the engine takes the levels."""
    workload = ["[workload]", *comments(_sentence(answers.workload.description)), *_workload(answers, host)]
    run = f"dyno run {path} --budget {answers.time}"
    return document(
        [*_begin("dyno init", question, host, path, run), workload, *_end(question, answers.response)]
    )


def of_production(
    question: Question, load: Load, data: Sequence[Row], host: Host, path: str, time: str
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
            table("data", data),
            table("workload", workload),
            *_end(question, load.response),
        ]
    )


def _begin(verb: str, question: Question, host: Host, path: str, run: str) -> list[list[str]]:
    """What stands above the tables."""
    words = comments(
        f"Written by {verb} for this host: {host.words}.",
        f"See what it does: dyno plan {path}",
        f"Run it: {run}",
    )
    return [words, rows(_head(question))]


def _end(question: Question, response: str) -> list[list[str]]:
    """What is compared, and by what."""
    first = comments("The first level of each factor is the baseline's.")
    if question.variants:
        return [*_listed(question), _goal(response)]
    return [["[factors]", *first, *_factors(question)], _goal(response)]


def _listed(question: Question) -> list[list[str]]:
    """The baseline, which gives every factor, and each other variant with what it changes."""
    last = {factor.name: factor.levels[-1] for factor in question.factors}
    first = {factor.name: factor.levels[0] for factor in question.factors}
    tables = [["[[variants]]", "[variants.levels]", *rows(levels_of(first))]]
    for name, changed in question.variants.items():
        levels = rows(levels_of({one: last[one] for one in changed}))
        tables.append(["[[variants]]", line(("name", toml(name), "")), "[variants.levels]", *levels])
    return tables + [comments(*question.left_out)] * bool(question.left_out)


GUARDS = "A guard is what must hold as well before a variant counts as faster. For example:"


def _head(question: Question) -> list[Row]:
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


def _workload(answers: Answers, host: Host) -> list[str]:
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


def _factors(question: Question) -> Iterator[str]:
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
    return [*table("goal", entries), *comments(GUARDS, 'guards = ["p99_ms <= 1.2x"]')]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
