"""The source layer: what an engine is built from, proved by the file that the running process holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from dbdyno.engines.built import Built
from dbdyno.engines.engine import Engine
from dbdyno.host import fingerprint
from dbdyno.host.process import of_each
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import LayerOfKnobs, proof
from dbdyno.layers.platform import OnPlatform
from dbdyno.layers.setup import Building, Request, Running
from dbdyno.obtain.source.build import DEFAULT, NONE, BuildAccount, BuildSpecification
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.files import FileKind, NamedFile


def wish_among(requests: Iterable[Request]) -> BuildSpecification | None:
    """The build that a variant's requests ask for; None where they ask for none."""
    wish: BuildSpecification | None = None
    architecture = ""
    for request in requests:
        if isinstance(request, Building):
            wish = request.added_to(wish)
        elif isinstance(request, OnPlatform):
            architecture = request.architecture
    return wish and wish.but(architecture=architecture)


def asking(knob: str) -> Callable[[str, Engine], tuple[Request, ...]]:
    """What each level of a knob of builds asks for: the default as well, because it too is built."""
    return lambda level, _engine: (Building(knob, level),)


def built_of(running: Running) -> Built:
    """The build that runs. Only for levels of builds, because each of them makes one."""
    built = running.setup.built
    assert built is not None, "a level of a build makes one"
    return built


def holds_build(running: Running) -> bool:
    """Whether a process of the server has mapped the very file that was built."""
    program = built_of(running).program
    return any(program in mapped for mapped in of_each(running.process_ids, fingerprint.mapped))


def build_evidence(factor: str, level: str, value: str, read_from: str, running: Running) -> Evidence:
    """The evidence of a level that the build's account tells: in effect where the process holds that
    build."""
    built, held = built_of(running), holds_build(running)
    network = ", which could reach the network" if built.account.network else ""
    found = Reading(
        value=value if held else "another file",
        source=f"{read_from}{network}; /proc/PID/maps holds build {built.account.key}"
        if held
        else f"/proc/PID/maps does not hold {built.program}",
    )
    remedy = "something else started in its place: look at the server's log"
    return proof(factor, level, found, held, accepted_by(built), remedy)


def accepted_by(built: Built) -> str:
    """Who took a level of a build: that build, by its key, and on which host of a fleet it was made."""
    account = built.account
    return f"build {account.key} by {account.toolchain}" + f", made on host {account.made_on}" * bool(
        account.made_on
    )


def key_in(evidence: Sequence[Evidence]) -> str:
    """The key of the build that a trial's evidence tells of; empty where it ran with none."""
    sources = (one.accepted.source for one in evidence if one.accepted is not None)
    found = (re.match(r"build ([0-9a-f]+) by ", source) for source in sources)
    return next((one[1] for one in found if one), "")


def _by_account(
    knob: str, tell: Callable[[BuildAccount], str], more: str = ""
) -> Callable[[str, Running], Evidence]:
    """The proof of a knob that leaves nothing in the file itself: what the account of its build tells."""

    def prove(level: str, running: Running) -> Evidence:
        told = tell(built_of(running).account)
        return build_evidence(f"source.{knob}", level, told, f"the build's account{more}", running)

    return prove


def _patches(level: str, _folder: Path) -> tuple[NamedFile, ...]:
    names = [] if level == NONE else level.split()
    return tuple(NamedFile(FileKind.PATCH, name) for name in names)


def _recipe(level: str, _folder: Path) -> tuple[NamedFile, ...]:
    return () if level == DEFAULT else (NamedFile(FileKind.RECIPE, level),)


PATH = r"[~/.\w][\w./~@+-]*"

SOURCE = LayerOfKnobs(
    "source",
    Knob(
        name="source.origin",
        levels="debian, debian:SUITE, debian:SUITE=VERSION, or the folder of a source or of a git repository",
        pattern=rf"debian(:[a-z-]+(=[\w.+~:-]+)?)?|{PATH}",
        effect="the engine is built from it",
        proof="the build's account; its file in /proc/PID/maps",
        ask=asking("origin"),
        prove=_by_account("origin", lambda account: account.source),
    ),
    Knob(
        name="source.revision",
        levels="none, or a branch, tag or commit of the repository that source.origin names",
        pattern=r"[\w][\w./~^@+-]*",
        effect="the engine is built from that revision",
        proof="the build's account; its file in /proc/PID/maps",
        ask=asking("revision"),
        prove=_by_account("revision", lambda account: account.source),
    ),
    Knob(
        name="source.patches",
        levels="none, or files such as a.patch, with spaces between",
        pattern=rf"none|{PATH}( {PATH})*",
        effect="the source is patched in that order",
        proof="the build's account with each patch's hash; its file in /proc/PID/maps",
        ask=asking("patches"),
        files=_patches,
        prove=_by_account(
            "patches",
            lambda account: ", ".join(account.patches) or "none",
            ": each patch with the hash of its text",
        ),
    ),
    Knob(
        name="source.recipe",
        levels="default, or a file such as recipe.toml",
        pattern=rf"default|{PATH}\.toml",
        effect="the engine is built as it says",
        proof="the build's account; its file in /proc/PID/maps",
        ask=asking("recipe"),
        files=_recipe,
        prove=_by_account("recipe", lambda account: f"recipe {account.recipe[:12]}"),
    ),
)
"""`source.KNOB = LEVEL`."""
