"""The data that a study brings: whether its engine takes them, and what a plan and a run say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbdyno.engines import registry
from dbdyno.engines.engine import Engine, Taking
from dbdyno.errors import EngineMissing, Mistake, UserError
from dbdyno.frozen import Frozen
from dbdyno.host.cache import Tell
from dbdyno.obtain.installation import Installation
from dbdyno.records.metrics import bytes_text
from dbdyno.records.run import Data
from dbdyno.study import Factor, Study
from dbdyno.study.nouns import GivenData
from dbdyno.study.reference import Reference
from dbdyno.user_data.dump import Dump, dump_at
from dbdyno.user_data.folder import digest_of, size_of


class PlannedData(Frozen):
    """Where a study's data come from, as `dyno plan --json` tells it."""

    kind: str
    path: str
    size_bytes: int


def given_mistakes(
    data: GivenData,
    folder: Path,
    installation: Installation | None,
    reference: Reference,
    factors: Sequence[Factor],
) -> list[Mistake]:
    """What is wrong with the data that a study in a folder brings, as far as their files say it. Whoever has
    no installation yet is told of that elsewhere."""
    engine = registry.engine(reference.engine)
    found: list[Mistake] = []
    for path in data.paths(folder):
        try:
            if engine.taking is None:
                raise UserError(f"data cannot be brought for {engine.title}", "leave [data] out")
            if data.folder:
                _require_folder(engine, engine.taking, path, installation)
                _require_fixed(engine, factors)
            else:
                _require_dump(engine, engine.taking, dump_at(path), installation)
        except (UserError, OSError) as error:
            message, hint = (error.message, error.hint) if isinstance(error, UserError) else (str(error), "")
            found.append(Mistake(0, message, hint))
    return found


def planned_data(study: Study) -> tuple[PlannedData, ...]:
    """Where the data come from, and their size; nothing where the workload makes them."""
    data = study.data
    if data is None:
        return ()
    kind = "dump" if data.dump else "folder"
    return tuple(
        PlannedData(kind=kind, path=str(path), size_bytes=size_of(path)) for path in data.paths(study.folder)
    )


def data_text(planned: Sequence[PlannedData]) -> str:
    """The same as a line of a plan."""
    named = ", ".join(f"{one.path} ({bytes_text(one.size_bytes)})" for one in planned)
    how = "loaded" if planned[0].kind == "dump" else "copied"
    return f"pristine data: one copy, {how} from {named}"


def data_of(study: Study, tell: Tell) -> tuple[Data, ...]:
    """What a run keeps of the data that its study brings."""
    if study.data is None:
        return ()
    return tuple(
        Data(
            kind="dump" if study.data.dump else "folder",
            path=str(path.absolute()),
            sha256=digest_of(path, tell),
            size_bytes=size_of(path),
        )
        for path in study.data.paths(study.folder)
    )


def _require_folder(engine: Engine, taking: Taking, path: Path, installation: Installation | None) -> None:
    if not path.exists():
        raise UserError(f"there is no {path}", "a relative path counts from the study's folder")
    if path.is_dir() and engine.embedded:
        raise UserError(f"{path} is a folder", f"for {engine.title} `folder` is the database's file")
    if not path.is_dir() and not engine.embedded:
        raise UserError(f"{path} is no folder", "a dump is given as `dump`")
    taking.require_folder(installation.version if installation else "", path)


def _require_fixed(engine: Engine, factors: Sequence[Factor]) -> None:
    """What is fixed when data are made cannot differ between variants that share a folder."""
    fixed = {f"config.{name}" for name in engine.settings.CREATION}
    for factor in factors:
        if factor.name in fixed:
            raise UserError(
                f"`{factor.name}` is fixed in a folder, and varies in this study", "bring a dump instead"
            )


def _require_dump(engine: Engine, taking: Taking, dump: Dump, installation: Installation | None) -> None:
    writers = [one for one in registry.ENGINES.values() if one.taking and one.taking.writes(dump)]
    if writers and engine not in writers:
        raise UserError(
            f"{dump.path} is a dump of {writers[0].title}, and the study's engine is {engine.title}",
            "write the dump with the tool of the study's engine",
        )
    if not writers and not dump.is_text:
        raise UserError(
            f"{dump.path} is in no format that is known here",
            "a dump is SQL, as it is or packed with gzip, bzip2, xz or zstd, or an archive of pg_dump",
        )
    if installation is not None:
        try:
            taking.require_dump(installation, dump)
        except EngineMissing as missing:
            raise UserError(missing.message, missing.hint) from None
