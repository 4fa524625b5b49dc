"""`dyno compare`: runs of one study, on different hosts or days."""

from __future__ import annotations

from pathlib import Path

from dbdyno.analyse import Analysis
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.cli.stored_run import chosen
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.passwords import without_passwords
from dbdyno.prepare_run import stored_run
from dbdyno.prepare_run.stored_run import compared_sides, require_comparable, side_of, tell_unknown
from dbdyno.records.place import from_root, place_of_store, store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store, store_there
from dbdyno.report.words.safe import argument


def main(
    left: str,
    right: str,
    left_variant: str | None,
    right_variant: str | None,
    right_store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    form = format_of(form, as_json, output)
    if right_store is not None:
        _require_there(right_store)
    sides = _analyses(left, store_url(store)), _analyses(right, right_store or store_url(store))
    require_comparable(*sides)
    first, *others = [one.run for side in sides for one in side]
    for other in others:
        tell_unknown((first, other), tell)
    ends = _ends((sides[0][0], sides[1][0]), left_variant, right_variant)
    found = compared_sides(*sides, ends=ends)
    given = {"--from": left_variant, "--to": right_variant, "--right-store": right_store}
    options = "".join(
        f" {name} {argument(without_passwords(value))}" for name, value in given.items() if value
    )
    deliver("compare", found, form, output, options=options)


def _require_there(url: str) -> None:
    """Raises UserError for a file that is not there: a store of another machine is not to be made here."""
    with store_there(url) as found:
        if found is None:
            place = place_of_store(url)
            raise UserError(
                f"no store {place}", from_root(place) or "name the file of the other machine's store"
            )


def _analyses(names: str, url: str) -> list[Analysis]:
    """The runs of one side; a run's name holds no comma."""
    with Store(url) as opened:
        return side_of(opened, *(name.strip() for name in names.split(",")))


def require_one_study(left: Run, right: Run) -> None:
    """Raises UserError where two runs ask different things; says where that is not known."""
    stored_run.require_one_study(left, right)
    tell_unknown((left, right), tell)


def _ends(sides: tuple[Analysis, Analysis], left: str | None, right: str | None) -> tuple[str, str] | None:
    if left is None and right is None:
        return None
    given = left or right or "", right or left or ""
    slow, fast = (
        chosen([variant.name for variant in analysis.variants], name, f"run {analysis.run.run}")
        for analysis, name in zip(sides, given, strict=True)
    )
    return slow, fast
