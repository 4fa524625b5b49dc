"""The run: one carrying-out of a study, or what was imported, and what all its records share.

A stored run says what `kind` it is. One that was stored before runs did is known by what it holds
(`run_of_document`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter

from dbdyno.frozen import Configuration, Frozen, Level, absent
from dbdyno.host.fingerprint import Host, Installed
from dbdyno.records.chain import Registered
from dbdyno.records.in_use import InUse
from dbdyno.study.files import StudyFile
from dbdyno.study.nouns import Arrangement, Design, Interval, Promise, Study
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Line, on_line

RUN_FORMAT = 1
"""Of a run."""
BLOCKS_IN_PAIR = 2
"""The second block of a pair runs the order of the first backwards."""


class Counting(Frozen):
    """How a run that compares builds counts what each executes: `by` Valgrind, in one more trial of each; by
    the CPU's own counters, in the timed trials; or not at all, for the reason in `why_not`."""

    by: Literal["valgrind", "counters", "nothing"]
    why_not: str = ""


class Calibrated(Frozen):
    """What a run takes from a calibration of its host: levels of all variants, and the `interval` and the
    length of slices where the study names none."""

    made_unix_s: float
    settings: dict[str, Level] = Field(default_factory=dict)
    interval: Interval | None = None
    slice_s: float | None = absent(None)


class Brought(Frozen):
    """What a run is that Dyno did not carry out: the logs of a `tool`, each a repetition of a variant.

    `paired` says that the user stated that repetition i of every variant belongs together. `clients` and
    `duration_s` are those of the repetitions, or 0 where they differ or are not known. `remarks` tell what a
    reader of the figures must know of the logs.
    """

    tool: str
    title: str
    variants: tuple[str, ...]
    paired: bool = False
    response: str
    margin: float
    clients: int = 0
    duration_s: float = 0.0
    remarks: tuple[str, ...] = ()


class Data(Frozen):
    """Data that a study brought: a `dump` or a `folder`, where it was, and what it held."""

    kind: Literal["dump", "folder"]
    path: str
    sha256: str
    size_bytes: int


class SourceCommit(Frozen):
    """The commit of a git `repository` on this machine that the source of a build is. `changed` is how many
    files of the work tree were not as the commit has them."""

    repository: str
    hash: str
    committed_unix_s: float
    changed: int = absent(0)


class FleetHost(Frozen):
    """A host of a fleet, by its `name` in the fleet: its fingerprint, and the engine there. One that was
    `left_out` was taken out before all its blocks were over."""

    name: str
    host: Host
    installation: Installed = Field(default_factory=Installed)
    left_out: bool = absent(False)


class RunKind(StrEnum):
    """What a run is. Its records are analysed in the way of its kind."""

    COMPARISON = "comparison"
    SEARCH = "search"
    SOAK = "soak"
    BISECTION = "bisection"
    EVALUATION = "evaluation"
    IMPORTED = "imported"


class BaseRun(Frozen):
    """What runs of all kinds keep. `study_text` is the study's own text, `host` the fingerprint. `seed` drew
    the order of its trials; where it is `mirrored`, every second block runs the order of the one before it
    backwards. A `sequential` run leaves out a variant once its verdict stands; `blocks` is then the most it
    takes. Its `looks_planned` are those up to that most, where nobody looked before they were. `duration_s`
    is the measured part of each trial where it is not the study's own. A run with a
    `budget_s` leaves out what its first block found blocked. `configuration` is the engine's own file where
    the study starts from one. `arrangement` says how the trials of a block shared the host: side by side, in
    slices of about `slice_s` each, or, without one, one after the other. `data` are those that the study
    brought, in the order in which they were loaded. A study's paths count from `study_folder`, and `files`
    are those that it refers to; None in a run of a Dyno that kept none. `given_up` is what variants give up
    that the baseline keeps, by name and without those that keep all; None where nobody looked. Where engines
    are a factor, `engines` has for each level but the baseline's what `installation` has for that one.
    `commit` is that of the last variant whose source a git repository holds. Runs with the same `question`
    ask the same; it is empty in a run of a Dyno that kept none. `registered` is the registration that the run
    carries out; None where its study was not registered before it began. `in_use` is the server that ran
    already, where the run started none. A run on a `fleet` has the blocks of all its hosts; `host` and
    `installation` are then those of the first one. `launcher` is what starts the workers there, in the words
    of `--fleet`; empty where somebody else does. `dyno_code` and `dyno_driver` are the
    digests of the code that goes on with it; empty in a run of a Dyno that kept none."""

    verb: ClassVar[str] = "dyno run"
    """The command that carries such a run out."""
    words: ClassVar[str] = "no soak and no bisection"
    """What it is, beside what other commands carry out."""
    compares: ClassVar[bool] = True
    """Whether its variants have speeds that are held against each other."""
    in_blocks: ClassVar[bool] = False
    """Whether what it compares is known before it begins, and is measured in blocks alone."""
    searches: ClassVar[bool] = False
    """Whether it finds its variants itself, in the time that it has."""
    open_ended: ClassVar[bool] = False
    """Whether nobody knows how many trials it has before it ends."""
    one_load: ClassVar[bool] = True
    """Whether each of its trials has one load, so that what else it took can be told from that."""
    asks_as_its_study: ClassVar[bool] = True
    """Whether it compares what its study names, and not points of a line of its own."""

    kind: RunKind
    format: int = RUN_FORMAT
    run: str
    study_path: str
    study_text: str
    study_digest: str
    study_folder: str = absent("")
    files: tuple[StudyFile, ...] | None = absent(None)
    seed: int
    blocks: int
    created_unix_s: float
    dyno_version: str
    host: Host
    installation: Installed = Field(default_factory=Installed)
    mirrored: bool = False
    sequential: bool = False
    looks_planned: bool = absent(False)
    duration_s: float | None = None
    budget_s: float | None = None
    configuration: Configuration | None = absent(None)
    calibrated: Calibrated | None = absent(None)
    arrangement: Arrangement | None = absent(None)
    slice_s: float | None = absent(None)
    data: tuple[Data, ...] = absent(())
    given_up: dict[str, tuple[Promise, ...]] | None = absent(None)
    engines: dict[str, Installed] = absent({})
    commit: SourceCommit | None = absent(None)
    question: str = absent("")
    registered: Registered | None = absent(None)
    in_use: InUse | None = absent(None)
    fleet: tuple[FleetHost, ...] = absent(())
    launcher: str = absent("")
    dyno_code: str = absent("")
    dyno_driver: str = absent("")

    @property
    def held(self) -> bool:
        """Whether it was begun to be held against another run."""
        return False

    @property
    def of_logs(self) -> Brought | None:
        """What was brought, where another tool measured: there are no host, proof, checks or order then."""
        return None

    @property
    def counting_builds(self) -> Counting | None:
        """How the work of builds is counted beside what is compared; None where that is no question."""
        return None

    @property
    def baselines_chosen(self) -> int | None:
        """How often each block measures the baseline, where a budget decided that; else None."""
        return None

    @property
    def took_turns_with(self) -> str:
        """The run that took turns with this one; empty where none did."""
        return ""

    @property
    def soaked(self) -> Soak | None:
        """What its server had to stand, where it compares nothing but soaks one."""
        return None

    @property
    def bisected(self) -> Line | None:
        """The line whose points it probed, where it looked for the one that changed the speed."""
        return None

    @property
    def named_by_others(self) -> bool:
        """Whether a searcher of others named its candidates."""
        return False

    @property
    def no_speeds(self) -> tuple[str, str]:
        """Why its variants have no speeds to hold against each other, and what to do, in words; empty where
        they have some."""
        return "", ""

    def on_line(self, study: Study) -> Study:
        """The study with the points that it probes, where those are not the study's own."""
        return study

    @property
    def held_against(self) -> str:
        """What the user named to hold it against; empty where nothing was named."""
        return ""

    def host_of(self, block: int) -> FleetHost | None:
        """The host of a fleet that carries a block out; None where the run has no fleet. Pairs of blocks go
        round the hosts, because a pair is mirrored as a whole. The first host has what is in no block."""
        return self.fleet[max(block, 0) // BLOCKS_IN_PAIR % len(self.fleet)] if self.fleet else None

    def pair_on_host(self, block: int) -> int:
        """How many pairs of blocks its host has before that of this block."""
        return max(block, 0) // BLOCKS_IN_PAIR // max(1, len(self.fleet))


class ComparisonRun(BaseRun):
    """A run that compares variants in blocks. `reference` is the run that took turns with this one, so that
    the two can be held against each other. `against` is what the user named it: a run, or the file of a
    study. Without a reference it is the run that this one is held against. `counting` says how builds are
    counted where the study leaves that open, and `baselines` how often a block measures the baseline."""

    in_blocks: ClassVar[bool] = True
    kind: Literal[RunKind.COMPARISON] = RunKind.COMPARISON
    reference: str | None = absent(None)
    against: str = absent("")
    counting: Counting | None = absent(None)
    baselines: int | None = absent(None)

    @property
    def baselines_chosen(self) -> int | None:
        return self.baselines

    @property
    def held(self) -> bool:
        return bool(self.reference or self.against)

    @property
    def counting_builds(self) -> Counting | None:
        return self.counting

    @property
    def took_turns_with(self) -> str:
        return self.reference or ""

    @property
    def held_against(self) -> str:
        return self.against


class SearchRun(BaseRun):
    """A search, which has its time. Its servers take at most `room_bytes` of memory together; None in a run
    of a Dyno that kept no limit."""

    searches: ClassVar[bool] = True
    open_ended: ClassVar[bool] = True
    kind: Literal[RunKind.SEARCH] = RunKind.SEARCH
    budget_s: float
    room_bytes: int | None = absent(None)


class SoakRun(BaseRun):
    """A soak, which has a rung in each block, and no speeds to compare."""

    verb: ClassVar[str] = "dyno soak"
    words: ClassVar[str] = "a soak"
    compares: ClassVar[bool] = False
    one_load: ClassVar[bool] = False
    kind: Literal[RunKind.SOAK] = RunKind.SOAK
    soak: Soak

    @property
    def soaked(self) -> Soak | None:
        return self.soak

    @property
    def no_speeds(self) -> tuple[str, str]:
        shows = f"dyno report {self.run} shows it"
        return "compares no speeds", f"{shows}; dyno run {self.study_path} compares speeds"


class BisectionRun(BaseRun):
    """A bisection, which probes points of a `line`. Each question takes at most `blocks` blocks. `counting`
    says whether the instructions of builds are counted. With `statements` each has a way of its own."""

    verb: ClassVar[str] = "dyno bisect"
    words: ClassVar[str] = "a bisection"
    compares: ClassVar[bool] = False
    open_ended: ClassVar[bool] = True
    asks_as_its_study: ClassVar[bool] = False
    kind: Literal[RunKind.BISECTION] = RunKind.BISECTION
    line: Line
    counting: Counting
    statements: bool = absent(False)

    @property
    def bisected(self) -> Line | None:
        return self.line

    @property
    def no_speeds(self) -> tuple[str, str]:
        return "compares no variants", f"dyno report {self.run} shows it"

    def on_line(self, study: Study) -> Study:
        return on_line(study, self.line)


class EvaluationRun(BaseRun):
    """An evaluation: a searcher of others names the candidates, one after the other, and Dyno measures and
    confirms them. It has the time of a search. With `own`, Dyno's own search has as much of it as the other
    one took. Where it `confirms`, the best of each are measured again at its end."""

    verb: ClassVar[str] = "dyno evaluate"
    words: ClassVar[str] = "an evaluation"
    searches: ClassVar[bool] = True
    open_ended: ClassVar[bool] = True
    kind: Literal[RunKind.EVALUATION] = RunKind.EVALUATION
    budget_s: float
    room_bytes: int | None = absent(None)
    own: bool = absent(False)
    confirms: bool = absent(True)

    @property
    def named_by_others(self) -> bool:
        return True


class ImportedRun(BaseRun):
    """Logs of another tool. It has no study but what it says of itself; `study_text` lists the logs."""

    kind: Literal[RunKind.IMPORTED] = RunKind.IMPORTED
    brought: Brought

    @property
    def of_logs(self) -> Brought | None:
        return self.brought


def _with_kind(document: Any) -> Any:
    """A stored run with its kind. What a run without one does not have stands in it as null."""
    if not isinstance(document, dict) or "kind" in document:
        return document
    held = {name: value for name, value in document.items() if value is not None}
    return {"kind": _kind_of(held), **held}


def _kind_of(held: dict[str, Any]) -> RunKind:
    if "brought" in held:
        return RunKind.IMPORTED
    if "soak" in held:
        return RunKind.SOAK
    # What is measured again of a search, in turn with a run, has no time of its own.
    timed = "budget_s" in held
    searches = timed and ("room_bytes" in held or _asks_a_search(str(held.get("study_text", ""))))
    return RunKind.SEARCH if searches else RunKind.COMPARISON


def _asks_a_search(study_text: str) -> bool:
    """The first searches differ from a comparison with a budget by their studies alone."""
    if Design.SEARCH not in study_text:
        return False
    # Here, because it takes long to import, and most runs say what they are.
    from dbdyno.study.document import UnreadableStudy, values_of

    try:
        return values_of(study_text).get("design") == Design.SEARCH
    except UnreadableStudy:
        return False


Run = Annotated[
    ComparisonRun | SearchRun | SoakRun | BisectionRun | EvaluationRun | ImportedRun,
    Field(discriminator="kind"),
    BeforeValidator(_with_kind),
]
"""A run of any kind."""

KINDS_OF_RUN: tuple[type[BaseRun], ...] = (
    *(ComparisonRun, SearchRun, SoakRun, BisectionRun),
    *(EvaluationRun, ImportedRun),
)

OfKind = TypeVar("OfKind", bound=BaseRun)


def of_kind(kind: type[OfKind], run: Run, /, **changes: Any) -> OfKind:
    """A run of this kind with all that `run` has of what such a run keeps, and with other values."""
    shared = {name: value for name, value in run if name in kind.model_fields and name != "kind"}
    return kind.model_validate({**shared, **changes})


def run_of_document(document: str) -> Run:
    """A stored run, of any version, from its JSON. Raises pydantic's ValidationError for what is none."""
    return _reader().validate_json(document)


@cache
def _reader() -> TypeAdapter[Run]:
    # Most commands read no run, and the types of all kinds take longer to build than those commands run.
    return TypeAdapter(Run)


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How far a run of a store is. `name` is the one that its user gave it; `baselines` name it as well."""

    finished: bool
    outcomes: dict[str, int]
    name: str = ""
    note: str = ""
    baselines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunSummary(RunState):
    """One line of `dyno runs`."""

    run: Run


@dataclass(frozen=True, kw_only=True)
class RunLine(RunState):
    """What a store knows of a run without reading it."""

    run: str
    created_unix_s: float

    def read(self, run: Run) -> RunSummary:
        """The same with the run itself."""
        return RunSummary(
            run=run,
            finished=self.finished,
            outcomes=self.outcomes,
            name=self.name,
            note=self.note,
            baselines=self.baselines,
        )


@dataclass(frozen=True)
class UnreadableRun:
    """A run of the store that this Dyno cannot read, and why: it is damaged, or of a later version."""

    run: str
    created_unix_s: float
    why: str
