"""Which engines a study compares: the one that it names, or the levels of the factor `engine`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.study.builds import of_build
from dbdyno.study.document import Place
from dbdyno.study.nouns import Design, Factor
from dbdyno.study.reference import Reference
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import ENGINE
from dbdyno.study.values import Fault

NAME = ENGINE.key("name")


def read_engines(reader: SectionReader) -> None:
    """Reads the engine of the baseline and those of all variants. A study whose engines are a factor may
    leave its own out; one that it names is the baseline's, and so the first level."""
    place: Place = ("engine", "name") if isinstance(reader.at(("engine",)), dict) else ("engine",)
    varied = tuple(_varied(reader))
    if varied and reader.at(("engine",)) is None:
        reader.engine = varied[0]
    else:
        reader.engine = reader.value(NAME, place)
    if varied and reader.engine is not None and reader.engine != varied[0]:
        reader.note(
            place,
            f"the study's engine is {reader.engine.written}, and the first level of the factor"
            f" `{ENGINE_FACTOR}` is {varied[0].written}",
            "the study's engine is the baseline's: name it first among the levels, or leave it out here",
        )
    own = (reader.engine,) if reader.engine is not None else ()
    reader.engines = tuple(dict.fromkeys((*own, *varied)))


def _varied(reader: SectionReader) -> Iterator[Reference]:
    """The levels of the factor, in their order. Those that are none are noted where the factor is read."""
    levels = reader.at(("factors", ENGINE_FACTOR))
    found = levels if isinstance(levels, list) else []
    variants = reader.at(("variants",))
    for index in range(len(variants) if isinstance(variants, list) else 0):
        found = [*found, reader.at(("variants", index, "levels", ENGINE_FACTOR))]
    for level in found:
        try:
            if level is not None:
                yield NAME.grammar.read(level, reader.catalogue)
        except Fault:
            continue


def require_comparable(
    reader: SectionReader, design: Design, factors: tuple[Factor, ...], settings: Collection[str]
) -> None:
    """Notes what does not go with engines as a factor: a search, and builds, which are installations too."""
    if all(factor.name != ENGINE_FACTOR for factor in factors):
        return
    path: Place = ("factors", ENGINE_FACTOR)
    if reader.at(path) is None:
        path = ("variants",)
    if design is Design.SEARCH:
        hint = "search on each engine by itself, and compare the winners in a study of another design"
        reader.note(path, "a search does not vary its engine", hint)
    built = [name for name in (*(factor.name for factor in factors), *settings) if of_build(name)]
    if built:
        told = f"`{ENGINE_FACTOR}` and `{built[0]}` exclude each other: a build takes the engine's place"
        reader.note(path, told, "keep one of the two; a build that is there is a level by its path")
