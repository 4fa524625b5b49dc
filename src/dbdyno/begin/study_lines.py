"""On which line of a study's file something stands."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.study.document import parse_document

OF_BUILDS = ("source.", "build.")


class StudyLines:
    """The lines of a study by the names of factors. 0 is the file as a whole."""

    def __init__(self, text: str) -> None:
        self._document = parse_document(text.encode())

    def of_engine(self) -> int:
        named = self._document.line(("engine", "name")) or self._document.line(("engine",))
        return self.of_factor(ENGINE_FACTOR) or named

    def of_data(self) -> int:
        """Where the study says what its data are."""
        keys = (("data", "dump"), ("data", "folder"), ("data",))
        return next((line for key in keys if (line := self._document.line(key))), 0)

    def of_factor(self, name: str) -> int:
        """Where a factor, a setting or a knob of the workload stands. What a configuration file of the
        engine's sets stands where that is named."""
        for path, line in self._document.lines.items():
            section, *rest = path
            if section == "variants":
                rest = rest[1:]
            if section == "variants" and rest[:1] == ["levels"]:
                rest = rest[1:]
            if section in ("factors", "settings", "variants") and ".".join(map(str, rest)) == name:
                return line
            if section == "workload" and f"workload.{'.'.join(map(str, rest))}" == name:
                return line
        if name.startswith("config."):
            return self._document.line(("engine", "configuration"))
        return 0

    def of_build(self, levels: Mapping[str, Level], baseline: Mapping[str, Level]) -> int:
        """Where what a variant's build differs by from the baseline's stands, or else where the first of the
        factors does, or of the settings."""
        names = [name for name in levels if name.startswith(OF_BUILDS)]
        own = [name for name in names if levels[name] != baseline.get(name, levels[name])]
        varied = [name for name in names if name in baseline]
        return next(filter(None, map(self.of_factor, own + varied + names)), 0)
