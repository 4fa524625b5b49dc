"""What is said of an engine that is not here and cannot be fetched, because nothing answers."""

from __future__ import annotations

from dbdyno.errors import Unreachable
from dbdyno.host import cache


def absent(
    engine: str, version: str, source: str, unreachable: Unreachable, architecture: str = ""
) -> Unreachable:
    """What is missing, who did not answer, and how to bring it from a machine that has a network. An
    `architecture` is named where the engine is wanted for another machine."""
    wanted, folder = f"{engine}@{version}" if version else engine, cache.shelf("engines").folder
    if architecture:
        return Unreachable(
            f"{wanted} of {architecture} is not on this machine, and {source} cannot be reached:"
            f" {unreachable.message}",
            f"{unreachable.hint}. Or `dyno engines fetch {wanted} --platform {architecture}` on a machine"
            f" with a network, and copy ~/.cache/dyno/engines/{architecture}-of-{engine}-* from there into"
            f" {folder}",
        )
    return Unreachable(
        f"{wanted} is not on this machine, and {source} cannot be reached: {unreachable.message}",
        f"{unreachable.hint}. Or `dyno engines fetch {wanted}` on a machine with a network and this one's "
        f"architecture, and copy ~/.cache/dyno/engines/*{engine}-* from there into {folder}",
    )
