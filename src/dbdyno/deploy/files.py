"""The folder of a recipe: each file, and where `apply` puts it on a host; written whole or not at all, and
read again.

A profile of TuneD holds its values of the kernel, for hosts that TuneD tunes. A role of Ansible brings the
same files to the same places, for many hosts.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from dbdyno.deploy.deployment import FORMAT, Deployment, ProductionChange
from dbdyno.engines.facts import Production
from dbdyno.errors import UserError, remedy
from dbdyno.frozen import Level, level_shown, level_text
from dbdyno.layers.registry import KNOBS, knows
from dbdyno.layers.setup import PartPlace
from dbdyno.study.designs import of_build

OF_THE_DISK = {"scheduler": "elevator", "read_ahead_kb": "readahead"}
"""What TuneD calls the attributes of a queue."""


def tuned_profile(deployment: Deployment) -> list[RecipeFile]:
    """The profile `dyno`; none where the recipe has nothing of the kernel."""
    values = {part.name: level_text(part.value) for part in deployment.parts(PartPlace.KERNEL)}
    queue = {OF_THE_DISK[part.name]: level_text(part.value) for part in deployment.parts(PartPlace.QUEUE)}
    sections = {
        "sysctl": {sysctl_name(path): value for path, value in values.items() if path.startswith(SYSCTLS)},
        "sysfs": {path: value for path, value in values.items() if not path.startswith(SYSCTLS)},
        "disk": {"devices": "NAME_OF_THE_DISK", **queue} if queue else {},
    }
    if not any(sections.values()):
        return []
    main = {"summary": f"dyno, run {deployment.run}"}
    text = "\n".join(_section(name, lines) for name, lines in {"main": main, **sections}.items() if lines)
    return [RecipeFile("tuned/dyno/tuned.conf", text.encode())]


def _section(name: str, lines: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in lines.items())


RECIPE, ROWS = "recipe.json", "recipe.tsv"
SYSCTLS = "/proc/sys/"
SCRIPTS = Path(__file__).with_name("scripts")
PROGRAMS = ("apply", "undo", "check")
PLACE = "place.sh"
SOURCED = ("writing.sh", PLACE)
"""What the programs share."""
DISK = "@DISK@"
"""Where `apply` writes the name of the disk that holds the data."""
ADDING = frozenset({"CPUAffinity"})
"""Directives of which a second one adds to the first. An empty one begins anew."""


class FilePlacement(StrEnum):
    """How a file comes to its place: as one of its own; as the first or the last lines of one that holds
    others; or with the name of the disk in it."""

    OWN = "own"
    FIRST = "first"
    LAST = "last"
    DISK = "disk"


@dataclass(frozen=True)
class RecipeFile:
    """A file of a recipe's folder by its path there. `place` is its path on a host; empty where a person
    decides on that."""

    name: str
    content: bytes
    place: str = ""
    way: FilePlacement = FilePlacement.OWN
    is_program: bool = False


def files_for_host(deployment: Deployment, production: Production) -> list[RecipeFile]:
    """What a host takes: the server's settings and environment, its unit, values of the kernel, its disk."""
    return [file for make in _MAKERS for file in make(deployment, production)]


def files_beside(
    deployment: Deployment, production: Production, for_host: Sequence[RecipeFile]
) -> list[RecipeFile]:
    """The scripts that put these files to their places, what they read, and the recipe for `dyno`."""
    rows = "".join("\t".join(row) + "\n" for row in _rows(deployment, production, for_host))
    scripts = [
        RecipeFile(name, (SCRIPTS / name).read_bytes(), is_program=name in PROGRAMS)
        for name in (*PROGRAMS, *SOURCED)
    ]
    document = deployment.model_dump_json(indent=1) + "\n"
    return [*scripts, _text(ROWS, rows), _text(RECIPE, document)]


def _text(name: str, text: str, place: str = "", way: FilePlacement = FilePlacement.OWN) -> RecipeFile:
    return RecipeFile(name, text.encode(), place, way)


def _commented(lines: Iterable[str], mark: str = "#") -> str:
    return "".join(f"{mark} {line}\n" for line in lines)


def _head(deployment: Deployment, mark: str = "#") -> str:
    """What each file begins with: one line, whatever a study's author wrote."""
    told = " ".join(f"Run {deployment.run}, variant {deployment.variant}.".split())
    return _commented([told, "EVIDENCE.md of this recipe says what each line gains and costs."], mark)


def _settings(deployment: Deployment, production: Production) -> Iterator[RecipeFile]:
    """The settings, and as comments those that the variant shares with the baseline."""
    chosen = {part.name: part.value for part in deployment.parts(PartPlace.SETTING)}
    if not chosen:
        return
    text = _head(deployment, production.comment) + production.written(chosen)
    held = _held_settings(deployment)
    if held:
        lines = (line for line in production.written(held).splitlines() if not line.startswith("["))
        told = "The gain was measured with these levels, which this file leaves as they are:"
        text += _commented([told, *lines], production.comment)
    place = f"{deployment.configuration}/{production.file}" if deployment.configuration else ""
    yield _text(production.file, text, place, FilePlacement.FIRST if production.shared else FilePlacement.OWN)


def _held_settings(deployment: Deployment) -> dict[str, Level]:
    held = () if deployment.whole else deployment.held
    return {part.name: part.value for each in held for part in each.parts if part.place is PartPlace.SETTING}


def _environment(deployment: Deployment, production: Production) -> Iterator[RecipeFile]:
    """For a server that does not take the environment of its unit."""
    variables = deployment.parts(PartPlace.ENVIRONMENT)
    if variables and production.environment:
        lines = "".join(f"{one.name} = '{level_text(one.value)}'\n" for one in variables)
        place = production.of(production.environment, deployment.version)
        yield _text("environment", _head(deployment) + lines, place, FilePlacement.LAST)


def _unit(deployment: Deployment, production: Production) -> Iterator[RecipeFile]:
    """A drop-in of the server's unit."""
    variables = () if production.environment else deployment.parts(PartPlace.ENVIRONMENT)
    lines = [f'Environment="{one.name}={_unit_text(one.value)}"' for one in variables]
    for directive in deployment.parts(PartPlace.UNIT):
        lines += [f"{directive.name}="] * (directive.name in ADDING)
        lines.append(f"{directive.name}={level_text(directive.value)}")
    if lines:
        service = deployment.service
        place = f"/etc/systemd/system/{service}.service.d/90-dyno.conf" if service else ""
        yield _text("systemd.conf", _head(deployment) + "[Service]\n" + "\n".join(lines) + "\n", place)


def _unit_text(value: Level) -> str:
    """A value in quotes, in which systemd sees specifiers and escapes."""
    return level_text(value).replace("%", "%%").replace("\\", r"\\").replace('"', r"\"")


def _kernel(deployment: Deployment, _production: Production) -> Iterator[RecipeFile]:
    """The kernel's values for each start of the host."""
    values = {part.name: level_text(part.value) for part in deployment.parts(PartPlace.KERNEL)}
    sysctls = {path: value for path, value in values.items() if path.startswith(SYSCTLS)}
    if sysctls:
        lines = "".join(f"{sysctl_name(path)} = {value}\n" for path, value in sysctls.items())
        yield _text("sysctl.conf", _head(deployment) + lines, "/etc/sysctl.d/90-dyno.conf")
    others = "".join(f"w {path} - - - - {value}\n" for path, value in values.items() if path not in sysctls)
    if others:
        yield _text("tmpfiles.conf", _head(deployment) + others, "/etc/tmpfiles.d/90-dyno.conf")


def sysctl_name(path: str) -> str:
    """A value below /proc/sys as sysctl(8) names it."""
    return path.removeprefix(SYSCTLS).replace("/", ".")


def _queue(deployment: Deployment, _production: Production) -> Iterator[RecipeFile]:
    """A rule for the disk that holds the data."""
    attributes = deployment.parts(PartPlace.QUEUE)
    if attributes:
        match = f'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{DISK}"'
        sets = [f'ATTR{{queue/{one.name}}}="{level_text(one.value)}"' for one in attributes]
        rule = ", ".join([match, *sets]) + "\n"
        yield _text(
            "udev.rules", _head(deployment) + rule, "/etc/udev/rules.d/90-dyno.rules", FilePlacement.DISK
        )


def _mount(deployment: Deployment, _production: Production) -> Iterator[RecipeFile]:
    """A line for a person, who knows which file system it is and where."""
    for mount in deployment.parts(PartPlace.MOUNT):
        line = f"UUID=FILE_SYSTEM FOLDER_OF_THE_DATA {mount.name} {level_text(mount.value)} 0 2\n"
        yield _text("fstab", _head(deployment) + line)


_MAKERS: tuple[Callable[[Deployment, Production], Iterator[RecipeFile]], ...] = (
    _settings,
    _environment,
    _unit,
    _kernel,
    _queue,
    _mount,
)


Row = tuple[str, ...]


def _rows(deployment: Deployment, production: Production, for_host: Sequence[RecipeFile]) -> Iterator[Row]:
    """What the scripts read: a kind, and its columns. A shell's `read` passes over empty columns, so there is
    none: a setting that is empty has its quotes."""
    facts = {"service": deployment.service, "client": production.client, "data": production.data_sql}
    yield from ((kind, text) for kind, text in facts.items() if text)
    yield "version", production.release(deployment.version), production.version_sql
    yield from (("file", file.name, file.way.value, file.place) for file in for_host if file.place)
    for change in deployment.deployed:
        if change.statement and any(one.place is PartPlace.SETTING for one in change.parts):
            answer = level_shown(change.answer)
            yield _plain("setting", change.factor.partition(".")[2], answer, change.statement)
    for place in (PartPlace.ENVIRONMENT, PartPlace.KERNEL, PartPlace.QUEUE, PartPlace.MOUNT):
        for part in deployment.parts(place):
            yield _plain(place.value, part.name, level_text(part.value))
    yield from (_plain("hand", name, deed) for name, deed in by_hand(deployment, for_host).items())


def _plain(*columns: str) -> Row:
    """Columns without what would end one: no server gives tabs or lines in the value of a setting that can be
    deployed by a line of a file."""
    return tuple(re.sub(r"\s+", " ", column) for column in columns)


def by_hand(deployment: Deployment, for_host: Iterable[RecipeFile]) -> Mapping[str, str]:
    """What a person must do, by its title."""
    deeds = {part.name: level_text(part.value) for part in deployment.parts(PartPlace.BY_HAND)}
    if deployment.build is not None and deployment.build.changed:
        deeds["build"] = "build the server from the source and with the flags of EVIDENCE.md, and install it"
    for file in for_host:
        if not file.place:
            deeds[file.name] = _DEEDS.get(file.name, "have the application run it on each of its connections")
    return deeds


_DEEDS = {
    "systemd.conf": "make it a drop-in of the unit of your application: systemctl edit SERVICE",
    "fstab": "put its options into /etc/fstab, and remount the file system of the data",
}
"""What to do with files that have no place of their own; all others are statements for connections."""


ANOTHER_DYNO = "use the Dyno that wrote it"


def require_absent(folder: Path) -> None:
    """Raises UserError where something is there already."""
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} is there already", "name another folder by --output, or remove that one")


def write_recipe_folder(folder: Path, files: Iterable[RecipeFile]) -> None:
    """Makes the folder with all files. Raises UserError where it is there already, or cannot be made."""
    require_absent(folder)
    making = folder.with_name(f".{folder.name}.making")
    try:
        shutil.rmtree(making, ignore_errors=True)
        for file in files:
            path = making / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(0o755 if file.is_program else 0o644)
        making.rename(folder)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        raise UserError(
            f"cannot write {folder}: {error.strerror or error}", "choose another folder"
        ) from None


def read_recipe_folder(folder: Path) -> Deployment:
    """The recipe in a folder, or in its `recipe.json`. Raises UserError where there is none that this Dyno
    reads."""
    path = folder / RECIPE if folder.is_dir() else folder
    try:
        deployment = Deployment.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"there is no recipe in {folder}: {error.strerror or error}",
            remedy(error, "write one: dyno recipe RUN"),
        ) from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(
            f"{path} is no recipe that this Dyno reads: {where} {error.errors()[0]['msg']}",
            "use the Dyno that wrote it, or write it again: dyno recipe RUN",
        ) from None
    if deployment.format != FORMAT:
        raise UserError(f"{path} has format {deployment.format}, this Dyno reads {FORMAT}", ANOTHER_DYNO)
    for change in (*deployment.changes, *deployment.held):
        _require_known(change, path)
    return deployment


def _require_known(change: ProductionChange, path: Path) -> None:
    """Raises UserError for a factor, or a level of one, that no layer here could prove."""
    if not knows(change.factor):
        raise UserError(f"{path}: this Dyno does not know {change.factor}", ANOTHER_DYNO)
    knob = KNOBS.get(change.factor)
    wrong = None if knob is None or of_build(change.factor) else knob.mistake(change.level)
    if wrong is not None:
        raise UserError(f"{path}: {wrong.message}", wrong.hint)


ROLE = "ansible"
MARKS = {"marker": "# {mark} dyno", "marker_begin": "begin", "marker_end": "end"}
"""Those of the blocks that `apply` writes, so that role and script know each other's."""
ONE_BLOCK = r"""awk '/^# (begin|end) dyno[ \t\r]*$/ { seen = seen $2 } END { exit seen != "beginend" }' %s"""
"""What must hold of a shared file before it comes to its place: one pair of marks, as `apply` asks."""
COPIED = {"mode": "0644", "follow": "{{ dyno_place.stdout | trim == 'own' }}"}
"""Of a file of its own. A link at its place stays, and what it leads to is written, unless another account
may write a folder on the way."""
KEEPING = {"backup": True}
"""The modules write beside a file and rename; this has them keep what was there too."""
RELOADING = {
    "/etc/sysctl.d/90-dyno.conf": ("values of the kernel", "sysctl --load /etc/sysctl.d/90-dyno.conf"),
    "/etc/tmpfiles.d/90-dyno.conf": (
        "files of /sys",
        "systemd-tmpfiles --create /etc/tmpfiles.d/90-dyno.conf",
    ),
    "/etc/udev/rules.d/90-dyno.rules": ("rules of disks", "udevadm control --reload"),
}
"""What makes a host read a file anew: a name for it, and the command."""


def ansible_role(files: Iterable[RecipeFile], service: str) -> list[RecipeFile]:
    """The role's own copies of the files that have a place, its tasks and its handlers; none where no file
    has one."""
    placed = [file for file in files if file.place]
    if not placed:
        return []
    copies = [
        replace(file, name=f"{ROLE}/files/{file.name}", place="", way=FilePlacement.OWN) for file in placed
    ]
    folders = dict.fromkeys(file.place.rpartition("/")[0] for file in placed)
    tasks = "\n".join(
        [
            *map(_place, [file.place for file in placed]),
            *map(_folder, folders),
            *(task for file in placed for task in (_place(file.place), _task(file, service))),
        ]
    )
    handlers = "\n".join(_handlers(placed, service))
    return [
        *copies,
        RecipeFile(f"{ROLE}/files/{PLACE}", (SCRIPTS / PLACE).read_bytes(), is_program=True),
        RecipeFile(f"{ROLE}/tasks/main.yml", f"---\n{tasks}".encode()),
        RecipeFile(f"{ROLE}/handlers/main.yml", f"---\n{handlers}".encode()),
    ]


def _place(path: str) -> str:
    """Ends the role where another account leads to the place by a link."""
    keys = {"register": "dyno_place", "changed_when": False, "check_mode": False}
    return _yaml(f"Find {path}", "ansible.builtin.script", {"cmd": f"{PLACE} {path}"}, keys)


def _folder(path: str) -> str:
    """Makes a folder. That of a unit's drop-ins is rarely there, and no module for files makes it."""
    return _yaml(f"Make {path}", "ansible.builtin.file", {"path": path, "state": "directory"}, {})


def _task(file: RecipeFile, service: str) -> str:
    """Puts a file to its place. That of a disk takes the variable `dyno_disk`."""
    if file.way in (FilePlacement.FIRST, FilePlacement.LAST):
        where = {"insertbefore": "BOF"} if file.way is FilePlacement.FIRST else {"insertafter": "EOF"}
        block = f"{{{{ lookup('ansible.builtin.file', '{file.name}') }}}}"
        keys = {"path": file.place, "create": True, **MARKS, **where, "block": block, "validate": ONE_BLOCK}
        module = "blockinfile"
    elif file.way is FilePlacement.DISK:
        content = f"{{{{ lookup('ansible.builtin.file', '{file.name}') | replace('{DISK}', dyno_disk) }}}}\n"
        module, keys = "copy", {"content": content, "dest": file.place, **COPIED}
    else:
        module, keys = "copy", {"src": file.name, "dest": file.place, **COPIED}
    notified = RELOADING.get(file.place, ("restart of the server", ""))[0]
    notify = {"notify": notified} if service or file.place in RELOADING else {}
    return _yaml(f"Write {file.place}", f"ansible.builtin.{module}", {**keys, **KEEPING}, notify)


def _handlers(placed: Iterable[RecipeFile], service: str) -> Iterator[str]:
    for file in placed:
        if file.place in RELOADING:
            name, command = RELOADING[file.place]
            yield _yaml(name, "ansible.builtin.command", {"cmd": command}, {"changed_when": True})
    if service:
        keys = {"name": service, "state": "restarted", "daemon_reload": True}
        yield _yaml("restart of the server", "ansible.builtin.systemd_service", keys, {})


def _yaml(name: str, module: str, keys: Mapping[str, object], rest: Mapping[str, object]) -> str:
    """One task. A value in JSON is one in YAML."""
    lines = [f"- name: {json.dumps(name)}", f"  {module}:"]
    lines += [f"    {key}: {json.dumps(value)}" for key, value in keys.items()]
    lines += [f"  {key}: {json.dumps(value)}" for key, value in rest.items()]
    return "\n".join(lines) + "\n"
