"""A stored run that is carried out again, from its study and files as they were kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dbdyno.begin.catalogue import catalogue
from dbdyno.begin.stored_study import asked_of, require_measured
from dbdyno.begin.study_file import study_at
from dbdyno.datasets import SET_FILE
from dbdyno.errors import DynoError, Mistake, StudyError, UserError, remedy
from dbdyno.host import paths
from dbdyno.host.allowed import Allowed
from dbdyno.host.cache import silently
from dbdyno.records.run import BisectionRun, Run, SoakRun
from dbdyno.study import Study
from dbdyno.study.files import FileKind, StudyFile, digest_of
from dbdyno.user_data.digest import digest_of as given_digest_of

ORIGIN = "source.origin"
DEBIAN = "debian"


def study_again(run: Run, name: str, blocks: int | None, seed: int | None, allowed: Allowed) -> Study:
    """The study of a stored run, read from a folder of the new run `name` that holds all that was kept, with
    what the command line changes.

    What was too large to be kept, and what the study names by an absolute path, is looked for at its place.
    Raises StudyError with all that is missing there or is another file now, and UserError for a run that no
    `dyno run` carried out.
    """
    require_measured(run)
    if isinstance(run, SoakRun):
        raise UserError(
            f"run {run.run} is a soak, which is not carried out again", f"dyno report {run.run} --trials"
        )
    if isinstance(run, BisectionRun):
        told = f"run {run.run} is a bisection, which is not carried out again"
        raise UserError(told, f"dyno report {run.run} shows it")
    asked = asked_of(run)
    if run.files is None and asked.names_files:
        raise UserError(
            f"run {run.run} was made by a Dyno that kept no files, and its study names some",
            f"carry out the study itself: dyno run {run.study_path}",
        )
    files = run.files or ()
    if missing := [*_missing(files), *_missing_data(run)]:
        raise StudyError(f"run {run.run}", missing)
    folder = _folder(run, files, paths.data() / "again" / name)
    study = folder / Path(run.study_path).name
    try:
        _write(study, run.study_text)
        for file in files:
            _lay_out(file, folder)
        for path in (*_origins(asked), *_data_of(asked)):
            _link(folder / path, Path(run.study_folder, path))
    except OSError as error:
        raise DynoError(f"cannot write {folder}: {error.strerror}", remedy(error)) from None
    kept = run.configuration
    names = catalogue(allowed=allowed)
    names = replace(names, configure=(lambda *_: kept) if kept else names.configure)
    return study_at(study, blocks, seed, names=names)


def _missing(files: tuple[StudyFile, ...]) -> Iterator[Mistake]:
    """What of the files that are not laid out is not there, or is another file now."""
    for file in files:
        if file.text is not None and not Path(file.path).is_absolute():
            if file.digest != hashlib.sha256(file.text.encode()).hexdigest():
                told = f"the password in {file.path} was not kept"
                yield Mistake(0, told, f"carry out the study itself: it was {file.place}")
            continue
        why = (
            "an absolute path names it"
            if file.text is not None
            else "it was too large to be kept, or no text"
        )
        try:
            there = digest_of(Path(file.place))
        except OSError as error:
            told = f"{file.place} cannot be read: {error.strerror}"
        else:
            told = f"{file.place} is another file now" if there != file.digest else ""
        if told:
            hint = f"{why}: put the one with sha256 {file.digest} there"
            yield Mistake(0, told, hint)


def _missing_data(run: Run) -> Iterator[Mistake]:
    """What of the data that the study brought is not there, or holds something else now."""
    for data in run.data:
        place = Path(data.path)
        if not place.exists():
            told = f"there is no {place}"
        elif given_digest_of(place, silently) != data.sha256:
            told = f"{place} holds other data now"
        else:
            continue
        yield Mistake(0, told, f"a run keeps no data: put those with sha256 {data.sha256} there")


def _data_of(study: Study) -> Iterator[str]:
    """The data that a study names from its own folder."""
    named = (*study.data.dump, study.data.folder) if study.data is not None else ()
    yield from (path for path in named if path and not Path(path).expanduser().is_absolute())


def _folder(run: Run, files: tuple[StudyFile, ...], root: Path) -> Path:
    """Where the study is laid out: so deep below the root that no path of a file leads out of that."""
    relative = [os.path.normpath(file.path) for file in files if not Path(file.path).is_absolute()]
    up = max((Path(path).parts.count("..") for path in relative), default=0)
    above = [part for part in Path(run.study_folder).parts if part not in ("/", "..")]
    names = [*["above"] * up, *above][-up:] if up else []
    return root.joinpath(*names)


def _lay_out(file: StudyFile, folder: Path) -> None:
    if Path(file.path).is_absolute():
        return
    target, place = Path(os.path.normpath(folder / file.path)), Path(file.place)
    if file.text is not None:
        _write(target, file.text)
    elif file.kind is FileKind.VECTORS and place.name == SET_FILE:
        # A set of vectors is a folder.
        _link(target.parent, place.parent)
    else:
        _link(target, place)


def _origins(study: Study) -> Iterator[str]:
    """The folders of sources that a study names from its own folder."""
    varied = [level for factor in study.factors if factor.name == ORIGIN for level in factor.levels]
    for level in map(str, [*varied, *filter(None, [study.settings.get(ORIGIN)])]):
        if level.partition(":")[0] != DEBIAN and not Path(level).expanduser().is_absolute():
            yield level


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def _link(path: Path, place: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        # A link of an earlier layout may lead nowhere by now.
        path.unlink(missing_ok=True)
        path.symlink_to(place)
