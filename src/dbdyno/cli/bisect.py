"""`dyno bisect`: which commit, which version, or which of many settings, made a server slower."""

from __future__ import annotations

from pathlib import Path

from dbdyno.cli.formats import format_of
from dbdyno.cli.measuring import Measuring, measure
from dbdyno.cli.options import refuse_both
from dbdyno.cli.resume import study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.writers import Allowed
from dbdyno.kinds.bisection import BISECTION, BisectOptions, begin_bisection, beginning_of_bisection
from dbdyno.kinds.kind import Beginning
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study.trials import Along


def main(
    study: Path | None,
    good: str | None,
    bad: str | None,
    settings: bool,
    versions: bool,
    engines: Path | None,
    statements: bool,
    resume: str | None,
    blocks: int | None,
    seed: int | None,
    name: str | None,
    note: str,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    form = format_of(form, as_json, output)
    study, resume = study_and_run(study, resume)
    allowed = Allowed.of(devices, allowed_paths)
    refuse_both("--engines", engines, settings=settings or None)
    along = _along(settings, versions or engines is not None)
    asked = {
        "settings": settings or None,
        "versions": versions or None,
        "engines": engines,
        "statements": statements or None,
    }
    refuse_both("--resume", resume, good=good, bad=bad, **asked, blocks=blocks, seed=seed)

    def begin(_store: Store, run: Run | None) -> Beginning:
        if run is not None:
            return beginning_of_bisection(BISECTION.goes_on(run))
        if study is None:
            raise UserError("no study was named", "dyno bisect STUDY --good REV --bad REV")
        options = BisectOptions(study, good, bad, along, blocks, seed, allowed, engines, statements)
        return beginning_of_bisection(begin_bisection(options, tell))

    url = store_url(store)
    measure(
        Measuring("dyno bisect", study, resume, allowed, wait_s, quiet, url, form, output, name, note),
        begin,
    )


def _along(settings: bool, versions: bool) -> Along:
    """What the line goes over. Raises UserError where both options are given."""
    refuse_both("--versions", versions or None, settings=settings or None)
    if versions:
        return Along.VERSIONS
    return Along.SETTINGS if settings else Along.COMMITS
