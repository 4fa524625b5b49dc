"""The options of the verbs that deploy and keep house; `body` imports what carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.options import (
    Age,
    Duration,
    ListingGroup,
    OneOf,
    devices_option,
    json_option,
    mirror_option,
    paths_option,
    store_option,
)
from dbdyno.cli.server_url import VARIABLE, ServerUrl
from dbdyno.cli.verbs import Subverbs, body
from dbdyno.records.place import LAST

TUNED, ANSIBLE = "tuned", "ansible"


class _RunOrVerb(click.Group):
    """What is no verb is a run, of which the recipe is written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asks_help = bool(args) and args[0] in ctx.help_option_names
        if not asks_help and (not args or args[0].startswith("-")):
            args = [LAST, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "write", self.commands["write"], args


@click.group(cls=_RunOrVerb)
def recipe() -> None:
    """Write a variant of a finished run as a recipe for production, or compare a running server with one.

    \b
      dyno recipe RUN                        the same as: dyno recipe write RUN
      dyno recipe check FOLDER --url URL     which levels are not in effect?
    """


@recipe.command("write")
@click.argument("run", default=LAST)
@click.option(
    "--variant", help="Its name or its number in the report. Default: the fastest of those that helped."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder to write. Default: recipe-RUN, here."
)
@click.option("--any-verdict", is_flag=True, help="Take also a variant that is not shown to be faster.")
@click.option("--whole", is_flag=True, help="Write also the levels that variant and baseline share.")
@click.option("--service", help="The systemd unit of the server. Default: that of Debian's package.")
@click.option(
    "--configuration", help="The folder of the server's settings. Default: that of Debian's package."
)
@click.option(
    "--with",
    "also",
    type=click.Choice([TUNED, ANSIBLE]),
    multiple=True,
    help="Write also a profile for TuneD, or a role for Ansible.",
)
@store_option
def recipe_write(**asked: Any) -> None:
    """Write a variant as a folder for production.

    Without RUN the latest run is taken. EVIDENCE.md in the folder says what each change gains and costs.
    """
    body("recipe:write_recipe")(**asked)


@recipe.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--url",
    type=ServerUrl(),
    envvar=VARIABLE,
    required=True,
    help="The URL of the server, as for `dyno load`. Default: DYNO_URL.",
)
@click.option(
    "--pid",
    "process_id",
    type=click.IntRange(1),
    help="The process of the server, if the URL does not lead to it.",
)
@json_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write JSON into this file.")
def recipe_check(**asked: Any) -> None:
    """Say which levels of a recipe are not in effect on a running server.

    FOLDER is the folder of the recipe. The exit code is 1 if a level differs.
    """
    body("recipe:check")(**asked)


class FleetGroup(Subverbs):
    ELSEWHERE = ("worker", "hosts", "driver")


@click.group(cls=FleetGroup)
def fleet() -> None:
    """Prepare and list the hosts of a fleet: those that measure, and those that a load comes from.

    \b
      dyno fleet worker                lend this host to runs (dyno run --fleet)
      dyno fleet hosts                 list the hosts, and take one out
      dyno fleet driver install HOST   copy the load driver to a host that a load shall come from
    """


@click.group(cls=ListingGroup)
def hosts() -> None:
    """List the hosts of a fleet, and take one out. Without a command: list."""


@hosts.command("list")
@json_option
@store_option
def hosts_list(**asked: Any) -> None:
    """List the hosts whose workers have registered with the store."""
    body("hosts:list_")(**asked)


@hosts.command("remove")
@click.argument("name")
@store_option
def hosts_remove(**asked: Any) -> None:
    """Take host NAME out. What runs that go on have not measured on it by now is left out of them."""
    body("hosts:take_out")(**asked)


class CacheGroup(Subverbs, ListingGroup):
    ELSEWHERE = ("builds", "data")


@click.group(cls=CacheGroup)
def cache() -> None:
    """List what is kept, and free it: engines, sources, compiled objects, builds, data, images, vectors,
    checked statements, what finished runs say.

    All of it can be made again. What a dyno uses at this moment is never freed. Without a command: list.
    """


@cache.command("list")
@json_option
def cache_list(**asked: Any) -> None:
    """List what is kept, with its size and its last use."""
    body("cache:list_")(**asked)


@cache.command("free")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", type=OneOf("dbdyno.host.cache:KINDS"), help="All of this kind.")
@click.option("--older-than", "age_s", type=Age(), help="All that nobody has used for so long: 12h, 30d, 4w.")
@click.option("--all", "everything", is_flag=True, help="All that is kept.")
@click.option("--dry-run", is_flag=True, help="Say what would be freed, and free nothing.")
def cache_free(**asked: Any) -> None:
    """Free things by NAME (or the beginning of one), kind or age. Images go with the data they are made from.

    --kind and --older-than together free what both name.
    """
    body("cache:free")(**asked)


@click.group(cls=ListingGroup)
def builds() -> None:
    """List the builds that are kept, here or in the store of a fleet. Without a command: list."""


@builds.command("list")
@json_option
def builds_list(**asked: Any) -> None:
    """List the builds that are kept: what they were made from, how large they are, how long they took.

    A study makes the builds that its levels of `build` and `source` ask for. `dyno diff` compares two of
    them function by function. `dyno cache free` frees them.
    """
    body("builds:list_")(**asked)


@builds.command("make")
@click.argument("study", type=click.Path(path_type=Path))
@click.option(
    "--only",
    "names",
    metavar="VARIANT",
    multiple=True,
    help="Make this variant's build alone; can be given again.",
)
@paths_option
@json_option
def builds_make(**asked: Any) -> None:
    """Make and train the builds of a study ahead of its run. Measures nothing.

    What is there already is not made again, so after an interruption the same command goes on. Others can
    measure meanwhile: this host is locked only while a build is trained, and the command waits for that as
    long as another Dyno measures.
    """
    body("builds:make")(**asked)


@builds.command("stored")
@json_option
@store_option
def builds_stored(**asked: Any) -> None:
    """List the builds that a fleet keeps in its store: each was made on one host, and all others take it.

    They stay there for the next runs, until `dyno cache builds unstore` removes them.
    """
    body("builds:stored")(**asked)


@builds.command("unstore")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Remove all that no run needs.")
@store_option
def builds_unstore(**asked: Any) -> None:
    """Remove builds from the store of a fleet. What hosts hold of them stays there.

    A build that a run needs which is not over stays as well.
    """
    body("builds:unstore")(**asked)


@click.group(cls=ListingGroup)
def engines() -> None:
    """List the engines, and obtain them. Without a command: list."""


@engines.command("list")
@json_option
def engines_list(**asked: Any) -> None:
    """List the engines that are here, and those that can be obtained."""
    body("engines:list_")(**asked)


@engines.command("fetch")
@click.argument("reference", metavar="[ENGINE[@VERSION]]", required=False)
@mirror_option
@click.option(
    "--study",
    type=click.Path(path_type=Path),
    help="All that this study needs and that is not here: its engines, and their packages of other"
    " architectures.",
)
@click.option(
    "--platform",
    metavar="ARCHITECTURE",
    help="The engine's packages of this architecture, which run here under an emulator.",
)
@click.option(
    "--machine",
    is_flag=True,
    help="With --platform: also a kernel, so that a whole machine of it is emulated here.",
)
def engines_fetch(**asked: Any) -> None:
    """Obtain an engine into Dyno's own cache: no root, nothing installed on the host."""
    body("engines:fetch")(**asked)


@engines.command("add")
@click.argument("file", type=click.Path(path_type=Path))
def engines_add(**asked: Any) -> None:
    """Take up an engine that you brought as a file, so that studies name it by its version.

    FILE is a vendor's tarball for Linux, or an image: the file that `docker save` or `podman save` wrote, or
    a folder in the OCI layout. Nothing of it is installed, and no daemon is asked.
    """
    body("engines:add")(**asked)


class WorkerGroup(ListingGroup):
    """`dyno fleet worker` alone starts one."""

    LIST = "start"


@click.group(cls=WorkerGroup)
def worker() -> None:
    """Lend this host to the runs of a fleet (`dyno run --fleet`), until Ctrl-C.

    Without a command: start.
    """


of_host_option = click.option(
    "--name", metavar="NAME", help="The host's name in the fleet. Default: its own."
)
tags_option = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="A word that `--fleet tag:TAG` finds this host by."
)


@worker.command("start")
@of_host_option
@tags_option
@devices_option
@paths_option
@click.option(
    "--for",
    "served",
    metavar="RUN",
    help="Serve this run alone, and end with its last block here. A launcher starts workers in this way.",
)
@click.option("--lease", "least_s", type=Duration(), default=None, hidden=True)
@store_option
def worker_start(**asked: Any) -> None:
    """Start this host's worker. It carries out what runs give to this host, and nothing else.

    It listens nowhere: it opens a connection to the store's PostgreSQL, and sleeps until that has something
    for this host. While a slice is measured, nothing of the worker is awake.
    """
    body("worker:start")(**asked)


@worker.command("install")
@of_host_option
@tags_option
@click.option("--system", is_flag=True, help="Write a unit of the system, which runs as root.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the unit into this file instead."
)
@store_option
def worker_install(**asked: Any) -> None:
    """Write a unit for systemd that starts this host's worker, and say how to enable it.

    The store's URL goes into a file beside the unit that only its user reads, because it may hold a password.
    """
    body("worker:install")(**asked)


@click.command()
@click.argument("output", type=OneOf("dbdyno.cli.schema:SCHEMAS"), default="study")
def schema(**asked: Any) -> None:
    """Print the JSON Schema of a study: editors complete and check with it. With the name of an OUTPUT, print
    the schema of what that verb prints with --json.
    """
    body("schema:main")(**asked)
