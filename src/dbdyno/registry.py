"""Tables whose entries are imported when they are asked for: a command uses few of those that Dyno knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pkgutil import resolve_name
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


class LazyTable(Mapping[str, T]):
    """Entries by name, each made when it is first asked for. To go through the names makes none."""

    def __init__(self, names: Set[str] | Mapping[str, object], make: Callable[[str], T]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def registry(places: Mapping[str, str]) -> LazyTable[T]:
    """A table of what stands at each `module:attribute`."""
    return LazyTable(places, lambda name: resolve_name(places[name]))


class Those(Set[str]):
    """The names of a table whose entries `hold` something. Whether a name is one of them asks its entry
    alone."""

    def __init__(self, table: Mapping[str, T], hold: Callable[[T], object]) -> None:
        self._names: Mapping[str, object] = table
        self._holds: Callable[[str], object] = lambda name: hold(table[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names and bool(self._holds(str(name)))

    def __iter__(self) -> Iterator[str]:
        return filter(self._holds, self._names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @classmethod
    def _from_iterable(cls, names: Iterable[S]) -> Set[S]:
        """What Set makes of unions and differences."""
        return frozenset(names)
