"""Where Galera comes from: its provider and the scripts of a state transfer, from packages or the host."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.engines.mariadb.server import GALERA
from dbdyno.errors import Blocked
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation

SCRIPTS = ("wsrep_sst_rsync", "wsrep_sst_common")
PROGRAMS = ("rsync", "my_print_defaults")
"""What the scripts run beside the tools of any host."""
ON_HOST = Path("/usr/lib/galera/libgalera_smm.so")
AS_ROOT = ("--dparam=uid=0", "--dparam=gid=0")
"""A daemon of rsync that root starts writes as nobody, who may not write the data."""
FACTOR = "cluster.nodes"


@dataclass(frozen=True)
class Provider:
    """The library that replicates. A `copy` of packages has the scripts; the host's own lie on its path."""

    library: Path
    copy: debian.Fetched | None = None


def provider(installation: Installation) -> Provider:
    """That of an installation's version. Raises Blocked where there is none."""
    for copy in debian.fetched(GALERA.engine):
        if copy.version == installation.version:
            return Provider(copy.prefix / GALERA.binary, copy)
    if ON_HOST.is_file() and all(shutil.which(name) for name in (*SCRIPTS, *PROGRAMS)):
        return Provider(ON_HOST)
    raise Blocked(
        FACTOR,
        f"Galera of MariaDB {installation.version} is not here",
        f"`dyno engines fetch mariadb@{'.'.join(installation.version.split('.')[:2])}` obtains it",
    )


def environment(found: Provider, folder: Path) -> Mapping[str, str]:
    """What leads a server to the scripts, which are put into a folder where they run on the C library that
    came with them."""
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
    if found.copy is not None:
        if not folder.is_dir():
            _put(found.copy, folder)
        places.insert(0, str(folder))
    return {"PATH": os.pathsep.join(places)}


def _put(copy: debian.Fetched, folder: Path) -> None:
    programs = copy.prefix / "usr/bin"
    loader, *options = debian.loader(copy.prefix)
    (folder / "loaders").mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copy(programs / name, folder / name)
    for name in PROGRAMS:
        # The scripts know a program by the name of its process, which is that of its loader.
        own = folder / "loaders" / name
        shutil.copy(loader, own)
        command = shlex.join([str(own), *options, str(programs / name)])
        more = f'case "$*" in *--daemon*) exec {command} "$@" {shlex.join(AS_ROOT)};; esac\n'
        script = folder / name
        script.write_text(f'#!/bin/sh\n{more if os.getuid() == 0 else ""}exec {command} "$@"\n')
        script.chmod(0o700)
