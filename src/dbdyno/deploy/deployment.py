"""What a recipe holds: a variant of a run as production takes it, with the evidence for its levels."""

from __future__ import annotations

import re

from dbdyno.analyse.model import Ratio, Verdict
from dbdyno.frozen import Frozen, Level, absent
from dbdyno.layers.setup import Part, PartPlace
from dbdyno.obtain.source.build import Flags
from dbdyno.study.nouns import Promise

FORMAT = 1
FOLDERS = re.compile(r"(?<![\w.~}-])~?/(?:[^\s/]+/)*(?=[^\s/])")
"""What leads to a file on a host."""


class ProductionChange(Frozen):
    """One level as production takes it, by its `parts`. `was` is the level of the baseline; None where the
    variant shares this level with it.

    `answer` is what the measured server said to `statement`; both are empty for what no statement tells.
    `why` says what the level does, `exercised` what the load showed of its use. `share` is its own part in
    the gain, where the run tells it. `gives_up` is what the level gives up for its speed.
    """

    factor: str
    level: Level
    was: Level | None = None
    parts: tuple[Part, ...] = ()
    statement: str = ""
    answer: str = ""
    why: str = ""
    exercised: str = ""
    share: Ratio | None = None
    gives_up: Promise | None = None


class DeployedBuild(Frozen):
    """The build that was measured. `build_id` is that of its program, empty where nothing could read it.
    `changed` says that the baseline was another build, or none."""

    key: str
    words: str
    source: str
    patches: tuple[str, ...]
    toolchain: str
    flags: Flags
    trained: str = ""
    build_id: str = ""
    changed: bool = False


class Deployment(Frozen):
    """A recipe: the changes of a variant against the run's baseline, and how the two were measured.

    `held` are the levels that the variant shares with the baseline. They are deployed as well where the
    recipe is `whole`. `version` is what the measured server called itself. `effect` and `costs` are ratios
    variant / baseline. The changes of a search's winner were `taken_back` in turn, and `optimism` is the
    ratio that the search itself saw over the confirmed one. `service` is the server's systemd unit, and
    `configuration` the folder of its settings; each is empty where there is none. `throughput_per_s` is the
    variant's, where it was measured.
    """

    format: int = FORMAT
    run: str
    title: str
    variant: str
    verdict: Verdict
    host: str
    measured_unix_s: float
    dyno_version: str
    engine: str
    version: str
    workload: str
    blocks: int
    response: str
    effect: Ratio | None = None
    costs: tuple[Ratio, ...] = ()
    taken_back: bool = absent(False)
    optimism: float | None = absent(None)
    throughput_per_s: float | None = None
    changes: tuple[ProductionChange, ...]
    held: tuple[ProductionChange, ...] = ()
    whole: bool = False
    build: DeployedBuild | None = absent(None)
    service: str = ""
    configuration: str = ""

    @property
    def deployed(self) -> tuple[ProductionChange, ...]:
        """The levels that the recipe puts into production."""
        return (*self.changes, *self.held) if self.whole else self.changes

    @property
    def given_up(self) -> tuple[ProductionChange, ...]:
        """Those that give something up."""
        return tuple(change for change in self.deployed if change.gives_up is not None)

    @property
    def promises(self) -> str:
        """What the recipe gives up, each once: `durability`, `durability and integrity`."""
        return " and ".join(sorted({change.gives_up for change in self.given_up if change.gives_up}))

    def parts(self, place: PartPlace) -> tuple[Part, ...]:
        """What of it goes to a place, each once: what two levels ask for is one thing."""
        found = (part for change in self.deployed for part in change.parts if part.place is place)
        by_name = {(part.name, part.value if place is PartPlace.BY_HAND else ""): part for part in found}
        return tuple(by_name.values())


def without_folders(text: str) -> str:
    """A text in which files have their names alone: where they lie on the host of a run helps nobody."""
    return FOLDERS.sub("", text)
