"""A recipe's folder on disk: written whole or not at all, and read again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from dbdyno.deploy.deployment import FORMAT, Change, Deployment
from dbdyno.deploy.files import RECIPE, File
from dbdyno.errors import UserError, remedy
from dbdyno.layers.registry import KNOBS, knows
from dbdyno.study.designs import of_build

ANOTHER_DYNO = "use the Dyno that wrote it"


def require_free(folder: Path) -> None:
    """Raises UserError where something is there already."""
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} is there already", "name another folder by --output, or remove that one")


def write_folder(folder: Path, files: Iterable[File]) -> None:
    """Makes the folder with all files. Raises UserError where it is there already, or cannot be made."""
    require_free(folder)
    making = folder.with_name(f".{folder.name}.making")
    try:
        shutil.rmtree(making, ignore_errors=True)
        for file in files:
            path = making / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(0o755 if file.is_program else 0o644)
        making.rename(folder)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        raise UserError(
            f"cannot write {folder}: {error.strerror or error}", "choose another folder"
        ) from None


def read_folder(folder: Path) -> Deployment:
    """The recipe in a folder, or in its `recipe.json`. Raises UserError where there is none that this Dyno
    reads."""
    path = folder / RECIPE if folder.is_dir() else folder
    try:
        deployment = Deployment.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"there is no recipe in {folder}: {error.strerror or error}",
            remedy(error, "write one: dyno recipe RUN"),
        ) from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(
            f"{path} is no recipe that this Dyno reads: {where} {error.errors()[0]['msg']}",
            "use the Dyno that wrote it, or write it again: dyno recipe RUN",
        ) from None
    if deployment.format != FORMAT:
        raise UserError(f"{path} has format {deployment.format}, this Dyno reads {FORMAT}", ANOTHER_DYNO)
    for change in (*deployment.changes, *deployment.held):
        _require_known(change, path)
    return deployment


def _require_known(change: Change, path: Path) -> None:
    """Raises UserError for a factor, or a level of one, that no layer here could prove."""
    if not knows(change.factor):
        raise UserError(f"{path}: this Dyno does not know {change.factor}", ANOTHER_DYNO)
    knob = KNOBS.get(change.factor)
    wrong = None if knob is None or of_build(change.factor) else knob.mistake(change.level)
    if wrong is not None:
        raise UserError(f"{path}: {wrong.message}", wrong.hint)
