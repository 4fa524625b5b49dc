"""The keys of the configuration file, and what they stand for where nobody set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Value = str | bool | tuple[str, ...] | None
FOREVER = "forever"
"""What `wait` may be beside a time."""


@dataclass(frozen=True)
class Key:
    """One thing to set; `name` is what the file calls it. `otherwise` says what is used where it has no
    value."""

    name: str
    about: str
    default: Value = None
    otherwise: str = ""

    @property
    def option(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return f"DYNO_{self.name.upper().replace('-', '_')}"


KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key("store", "where runs are kept"),
        Key("format", "how reports are printed", "terminal"),
        Key("fail-on", "verdicts that end a report with an exit code of their own", ()),
        Key("quiet", "whether a run shows no progress", False),
        Key("wait", "how long to wait while another Dyno measures on this machine", "0s"),
        Key("mirror", "where engines are fetched from", otherwise="the machine's mirror"),
    )
}
