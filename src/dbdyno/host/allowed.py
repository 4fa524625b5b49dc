"""What of the host, beside Dyno's own folders, the study's user allows trials to change."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allowed:
    """`devices` may be overwritten by levels of `storage.device`; levels of `config` may lead to `paths`, and
    to all below them."""

    devices: frozenset[Path] = frozenset()
    paths: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, devices: Iterable[Path], paths: Iterable[Path]) -> Allowed:
        """What the command line gave. A path counts from the folder in which that was typed."""
        return cls(frozenset(devices), frozenset(path.expanduser().resolve() for path in paths))

    @property
    def options(self) -> str:
        """The options that allow the same again, each with a space before it."""
        return "".join(f" {option} {shlex.quote(str(path))}" for option, path in self._each())

    def _each(self) -> Iterator[tuple[str, Path]]:
        yield from (("--allow-device", device) for device in sorted(self.devices))
        yield from (("--allow-path", path) for path in sorted(self.paths))


NOTHING_ALLOWED = Allowed()
