"""`dyno compare`: runs of one study, on different hosts or days."""

from __future__ import annotations

from pathlib import Path

from dbdyno.analyse import Analysis
from dbdyno.analyse.compare import compare
from dbdyno.begin.stored_run import analysed, tell_unknown
from dbdyno.begin.stored_study import asked_of, is_of, require_one_data, require_speeds, study_of
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.cli.stored_run import chosen
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.layers.registry import related_factors
from dbdyno.passwords import without_passwords
from dbdyno.records.place import from_root, place_of, store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store, store_there
from dbdyno.report.words.safe import argument
from dbdyno.study.differences import difference


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
    _require_comparable(sides)
    ends = _ends((sides[0][0], sides[1][0]), left_variant, right_variant)
    found = compare(*sides, ends=ends, related=related_factors())
    if not found.gaps:
        raise UserError("no variant was measured in both runs", "see: dyno report RUN")
    given = {"--from": left_variant, "--to": right_variant, "--right-store": right_store}
    options = "".join(
        f" {name} {argument(without_passwords(value))}" for name, value in given.items() if value
    )
    deliver("compare", found, form, output, options=options)


def _require_there(url: str) -> None:
    """Raises UserError for a file that is not there: a store of another machine is not to be made here."""
    with store_there(url) as found:
        if found is None:
            place = place_of(url)
            raise UserError(
                f"no store {place}", from_root(place) or "name the file of the other machine's store"
            )


def _analyses(names: str, url: str) -> list[Analysis]:
    """The runs of one side; a run's name holds no comma."""
    with Store(url) as opened:
        runs = [opened.run(name.strip()) for name in names.split(",")]
        for run in runs:
            require_speeds(run)
        return [analysed(study_of(run), run, opened.records(run.run)) for run in runs]


def _require_comparable(sides: tuple[list[Analysis], list[Analysis]]) -> None:
    """Raises UserError where a run is named twice, the runs ask different things, or a side has two hosts."""
    first, *others = [one.run for side in sides for one in side]
    names = [run.run for run in (first, *others)]
    if len(set(names)) < len(names):
        raise UserError("a run cannot be compared with itself", "name each run once; see: dyno runs")
    for other in others:
        require_one_study(first, other)
    for side in sides:
        hosts = sorted({one.run.host.name or "" for one in side})
        if len(hosts) > 1:
            raise UserError(
                f"the runs of one side were measured on different hosts: {', '.join(hosts)}",
                "name runs of one host on each side",
            )


def require_one_study(left: Run, right: Run) -> None:
    """Raises UserError where two runs ask different things."""
    if not is_of(left, asked_of(right)):
        raise UserError(
            f"these are runs of different studies: {left.run} of {left.study_path}, "
            f"{right.run} of {right.study_path}",
            "compare runs of one study; its file may be spelled otherwise",
        )
    if found := difference(left.files, right.files):
        raise UserError(
            f"{left.run} and {right.run} asked different things: {found}",
            "compare runs whose files say the same; see: dyno report RUN --trials --json",
        )
    require_one_data(left, right)
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
