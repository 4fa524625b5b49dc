"""`dyno soak`: whether a setup stands, rung by rung, and what of it drifts."""

from __future__ import annotations

from pathlib import Path

from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.measuring import Measuring, measure
from dbdyno.cli.options import refuse_both
from dbdyno.cli.resume import study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import Beginning
from dbdyno.kinds.soak import SOAK, begin_soak, beginning_of_soak
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store


def main(
    study: Path | None,
    resume: str | None,
    smoke: bool,
    clients: tuple[int, ...] | None,
    duration_s: float | None,
    seed: int | None,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    form = verdict_format_of(form, as_json, output)
    study, resume = study_and_run(study, resume)
    allowed = Allowed.of(devices, allowed_paths)
    refuse_both("--resume", resume, smoke=smoke or None, clients=clients, duration=duration_s, seed=seed)

    def begin(_store: Store, run: Run | None) -> Beginning:
        if run is not None:
            return beginning_of_soak(SOAK.goes_on(run))
        if study is None:
            raise UserError("no study was named", "dyno soak STUDY, or dyno soak --resume")
        return beginning_of_soak(begin_soak(study, smoke, clients, duration_s, seed, allowed, tell))

    url = store_url(store)
    measure(
        Measuring("dyno soak", study, resume, allowed, wait_s, quiet, url, form, output),
        begin,
    )
