"""What of the host, beside Dyno's own folders, the study's user allows trials to change."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allowed:
    """`devices` may be overwritten by levels of `storage.device`; levels of `config` may lead to `paths`, and
    to all below them. The settings of `servers` that run already may be moved, by their URLs. With `writes`
    the load may change tables there that are not Dyno's."""

    devices: frozenset[Path] = frozenset()
    paths: frozenset[Path] = frozenset()
    servers: frozenset[str] = frozenset()
    writes: bool = False

    @classmethod
    def of(
        cls, devices: Iterable[Path], paths: Iterable[Path], servers: Iterable[str] = (), writes: bool = False
    ) -> Allowed:
        """What the command line gave. A path counts from the folder in which that was typed."""
        resolved = frozenset(path.expanduser().resolve() for path in paths)
        return cls(frozenset(devices), resolved, frozenset(servers), writes)

    @property
    def options(self) -> str:
        """The options that allow the same again, each with a space before it."""
        given = "".join(f" {option} {shlex.quote(str(value))}" for option, value in self._each())
        return f"{given} --allow-writes" if self.writes else given

    def _each(self) -> Iterator[tuple[str, Path | str]]:
        yield from (("--allow-device", device) for device in sorted(self.devices))
        yield from (("--allow-path", path) for path in sorted(self.paths))
        yield from (("--allow-server", server) for server in sorted(self.servers))


NOTHING_ALLOWED = Allowed()
