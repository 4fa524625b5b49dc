"""How an engine is deployed: its file of settings, its service, and what a running server says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dbdyno.frozen import Level

RELEASE = "{release}"


@dataclass(frozen=True)
class Production:
    """An engine as its packages lay it out. `{release}` in a text stands for the release.

    `written` is the text of `file` that gives the server these settings; the server reads it in `folder`. A
    file that is `shared` holds other lines too, of which the first counts. A line that begins with `comment`
    says nothing to it. `service` is the systemd unit, or empty for an engine that lives in its application. A
    URL of the engine begins with one of `protocols`, and `port` is where its server listens. `environment` is
    the file that a server takes its environment from where it does not take that of its unit. `client` is the
    shell command that a statement follows, empty where none can ask all settings; it prints the value last on
    its line, behind a tab.

    `limits` are the directives of a unit without which settings have no effect, and `in_data` how those
    settings are set that stand in the data themselves. `version_sql` and `data_sql` ask a server for its
    version and for the place of its data. A release is the first `release_parts` of a version: settings may
    differ between two.
    """

    file: str
    written: Callable[[Mapping[str, Level]], str]
    version_sql: str
    data_sql: str
    protocols: tuple[str, ...]
    folder: str = ""
    shared: bool = False
    comment: str = "#"
    service: str = ""
    port: int = 0
    environment: str = ""
    client: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    in_data: Mapping[str, Callable[[Level], str]] = field(default_factory=dict)
    release_parts: int = 1

    def release(self, version: str) -> str:
        """Of a version: `11.8` of `11.8.6`."""
        return ".".join(version.split(".")[: self.release_parts])

    def of(self, text: str, version: str) -> str:
        """A text of these with the release of a version."""
        return text.replace(RELEASE, self.release(version))
