"""A recipe as a role of Ansible: the same files at the same places, for many hosts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dbdyno.deploy.files import DISK, PLACE, SCRIPTS, FilePlacement, RecipeFile

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


def role(files: Iterable[RecipeFile], service: str) -> list[RecipeFile]:
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
