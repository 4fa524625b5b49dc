"""A recipe's values of the kernel as a profile of TuneD, for hosts that TuneD tunes."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.deploy.deployment import Deployment
from dbdyno.deploy.files import SYSCTLS, File, sysctl_name
from dbdyno.frozen import level_text
from dbdyno.layers.part import Place

OF_THE_DISK = {"scheduler": "elevator", "read_ahead_kb": "readahead"}
"""What TuneD calls the attributes of a queue."""


def profile(deployment: Deployment) -> list[File]:
    """The profile `dyno`; none where the recipe has nothing of the kernel."""
    values = {part.name: level_text(part.value) for part in deployment.parts(Place.KERNEL)}
    queue = {OF_THE_DISK[part.name]: level_text(part.value) for part in deployment.parts(Place.QUEUE)}
    sections = {
        "sysctl": {sysctl_name(path): value for path, value in values.items() if path.startswith(SYSCTLS)},
        "sysfs": {path: value for path, value in values.items() if not path.startswith(SYSCTLS)},
        "disk": {"devices": "NAME_OF_THE_DISK", **queue} if queue else {},
    }
    if not any(sections.values()):
        return []
    main = {"summary": f"dyno, run {deployment.run}"}
    text = "\n".join(_section(name, lines) for name, lines in {"main": main, **sections}.items() if lines)
    return [File("tuned/dyno/tuned.conf", text.encode())]


def _section(name: str, lines: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in lines.items())
