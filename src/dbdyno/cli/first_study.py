"""The text of a first study: what was answered, with a comment where a newcomer may want something else."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.engines.engine import Proposal
from dbdyno.report.words import numbers
from dbdyno.study.catalogue import WorkloadOffer
from dbdyno.study.written import toml

WIDTH, VALUE_MOST = 100, 30
WARMUP, DURATION, BLOCKS, MARGIN = "5s", "20s", 6, "2%"


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
    sentences on what it could vary as well."""

    title: str
    engine: str
    design: str
    factors: Sequence[Proposal]
    left_out: Sequence[str] = ()


Row = tuple[str, str, str]
"""A key, its value as TOML, and what a newcomer may want to know."""


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
    parts = [
        _comments(
            f"Written by dyno init for this host: {host.words}.",
            f"See what it does: dyno plan {path}",
            f"Run it: dyno run {path} --budget {answers.time}",
        ),
        _rows(_head(question)),
        ["[workload]", *_comments(_sentence(answers.workload.description)), *_workload(answers, host)],
        ["[factors]", *_comments("The first level of each factor is the baseline's."), *_factors(question)],
        _goal(answers.response),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def of_production(
    question: Question, load: Load, data: Sequence[Row], host: Host, path: str, time: str
) -> str:
    """A study of a load that was made of logs, on the data that it brings."""
    cpus = numbers.plural(host.cpus, "CPU")
    clients = f"connections at work; this host has {cpus}"
    rows = [
        ("name", toml("script"), "transactions of a file"),
        ("file", toml(load.file), "each statement with its share; look through it and change what you know"),
        ("clients", str(load.clients), f"{clients}; {load.told}" if load.told else clients),
        *_times(),
    ]
    parts = [
        _comments(
            f"Written by dyno init study for this host: {host.words}.",
            f"See what it does: dyno plan {path}",
            f"Run it: dyno run {path} --budget {time}",
        ),
        _rows(_head(question)),
        ["[data]", *_rows(data)],
        ["[workload]", *_rows(rows)],
        ["[factors]", *_comments("The first level of each factor is the baseline's."), *_factors(question)],
        _goal(load.response),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


GUARDS = "A guard is what must hold as well before a variant counts as faster. For example:"


def _head(question: Question) -> list[Row]:
    return [
        ("title", toml(question.title), ""),
        ("engine", question.engine, "NAME@VERSION or NAME:/PATH/TO/SERVER takes another build"),
        ("design", toml(question.design), DESIGNS[question.design]),
        ("blocks", str(BLOCKS), "a block measures every variant once; a verdict needs six of them"),
    ]


DESIGNS = {
    "one-at-a-time": "the baseline, then each other level alone",
    "factorial": "all combinations of levels: they explain the whole gap",
    "fractional-factorial": "some of all combinations: they nearly explain the whole gap",
}


def _workload(answers: Answers, host: Host) -> list[str]:
    """What is asked of the workload; its other options as comments, with their defaults."""
    offer = answers.workload
    size = offer.option(answers.sized) if answers.sized else None
    cpus = numbers.plural(host.cpus, "CPU")
    chosen = [("name", toml(offer.name), "")]
    if size is not None:
        chosen.append((size.name, str(answers.size), size.help))
    chosen += [
        ("clients", str(answers.clients), f"connections at work; this host has {cpus}"),
        *_times(),
    ]
    others = [
        (f"# {option.name}", toml(option.default), option.help)
        for option in offer.options
        if option.name != answers.sized and option.default is not None
    ]
    return _rows([*chosen, *others])


def _factors(question: Question) -> Iterator[str]:
    for factor in question.factors:
        yield from _comments(factor.why) if factor.why else ()
        yield f"{toml(factor.name)} = {toml(list(factor.levels))}"
    for sentence in question.left_out:
        yield from _comments(sentence)


def _times() -> list[Row]:
    return [
        ("warmup", toml(WARMUP), "load before the measured part"),
        ("duration", toml(DURATION), "the measured part of a trial; a longer one has less noise"),
    ]


def _goal(response: str) -> list[str]:
    rows = [
        ("response", toml(response), "what is compared; reports show the other metrics as well"),
        ("margin", toml(MARGIN), "a smaller difference counts as no effect"),
    ]
    return ["[goal]", *_rows(rows), *_comments(GUARDS, 'guards = ["p99_ms <= 1.2x"]')]


def _rows(rows: Sequence[Row]) -> list[str]:
    """Keys, values and comments below each other. A comment that is too long stands above its line."""
    key_width = max(len(key) for key, _, _ in rows)
    value_width = max((len(value) for _, value, _ in rows if len(value) <= VALUE_MOST), default=0)
    lines: list[str] = []
    for key, value, comment in rows:
        line = f"{key.ljust(key_width)} = {value}"
        beside = f"{line.ljust(key_width + 3 + value_width)}  # {comment}"
        if not comment:
            lines.append(line)
        elif len(beside) <= WIDTH:
            lines.append(beside)
        else:
            lines += [*_comments(comment), line]
    return lines


def _comments(*sentences: str) -> list[str]:
    wrapped = (textwrap.wrap(sentence, WIDTH - 2, break_long_words=False) for sentence in sentences)
    return [f"# {line}" for lines in wrapped for line in lines]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
