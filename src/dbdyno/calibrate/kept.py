"""Calibrations on disk: one file for each host, engine, workload with its options, and number of clients; and
whether it still holds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import ValidationError

from dbdyno.calibrate.finding import BindingFinding, binds_itself
from dbdyno.frozen import Frozen, Level
from dbdyno.host import paths
from dbdyno.host.fingerprint import Host, host_identity
from dbdyno.records.run import Calibrated
from dbdyno.study import Interval, Study

FOLDER = "calibrations"
DAY_S = 86_400.0
AGE_MOST_S = 30 * DAY_S


class CalibratedHost(Frozen):
    """The host of a calibration, by what of its fingerprint tells hosts apart."""

    name: str
    cpu: str
    usable_cores: int
    virtualisation: str | None
    kernel: str


class Calibration(Frozen):
    """What was found for one engine and workload on one host. `best` is the binding that studies use,
    `why` what decided for it and `why_slice` for its slices, `interval` the one that suits how log ratios
    vary here."""

    engine: str
    workload: str
    clients: int
    options: dict[str, Level]
    place: CalibratedHost
    made_unix_s: float
    best: BindingFinding
    interval: Interval
    findings: tuple[BindingFinding, ...]
    why: str = ""
    why_slice: str = ""

    @property
    def used(self) -> Calibrated:
        """What a study takes from it."""
        return Calibrated(
            made_unix_s=self.made_unix_s,
            settings=self.best.arrangement.settings,
            interval=self.interval,
            slice_s=self.best.arrangement.slice_s,
        )


def calibrated_host(host: Host) -> CalibratedHost:
    """From a host's fingerprint."""
    return CalibratedHost(
        name=host.name or "",
        cpu=host.cpu.model or "",
        usable_cores=host.cpu.usable_cores or 0,
        virtualisation=host.virtualisation,
        kernel=host.kernel or "",
    )


def keep_calibration(calibration: Calibration) -> Path:
    """Puts it in the place of the one before it."""
    folder = paths.data() / FOLDER
    folder.mkdir(exist_ok=True)
    host = calibration.place.model_dump_json(exclude={"kernel"})
    what = json.dumps([calibration.engine, calibration.workload, calibration.clients, calibration.options])
    path = folder / f"{hashlib.sha256((host + what).encode()).hexdigest()[:16]}.json"
    with paths.made_whole(path) as making:
        making.write_text(calibration.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return path


def found_for(study: Study, place: CalibratedHost, now_unix_s: float) -> tuple[Calibration | None, str]:
    """The calibration that a study uses here; or none, and why the latest one does not hold (empty: there is
    none). A study that says itself where server or driver run uses none."""
    if binds_itself(study):
        return None, ""
    made = [one for one in _all() if is_for(one, study)]
    why = {one.made_unix_s: _why_stale(one, place, now_unix_s) for one in made}
    latest = sorted(made, key=lambda one: one.made_unix_s, reverse=True)
    holds = next((one for one in latest if not why[one.made_unix_s]), None)
    return holds, "" if holds or not latest else why[latest[0].made_unix_s]


def kept_here(now_unix_s: float) -> list[Calibration]:
    """The calibrations that hold on this host now, of whatever studies."""
    place = calibrated_host(host_identity())
    return [one for one in _all() if not _why_stale(one, place, now_unix_s)]


def is_for(calibration: Calibration, study: Study) -> bool:
    """Whether engine, workload and clients are those of the study's baseline."""
    return load_of(study) == (
        calibration.engine,
        calibration.workload,
        calibration.clients,
        calibration.options,
    )


def load_of(study: Study) -> tuple[str, str, int, dict[str, Level]]:
    """What a baseline's spreads belong to on a host: engine, workload, clients and options."""
    load = study.workload
    return study.engine.engine, load.name, load.clients, dict(load.options)


def _why_stale(calibration: Calibration, place: CalibratedHost, now_unix_s: float) -> str:
    made = calibration.place
    if made.but(kernel=place.kernel) != place:
        return f"it was made on another host ({made.name}, {made.usable_cores} x {made.cpu})"
    if made.kernel != place.kernel:
        return f"it was made under the kernel {made.kernel}"
    age_s = now_unix_s - calibration.made_unix_s
    return f"it is {age_s / DAY_S:.0f} days old" if age_s > AGE_MOST_S else ""


def _all() -> list[Calibration]:
    """Those that can be read: another version of Dyno may have left others."""
    found = []
    for path in sorted((paths.data_place() / FOLDER).glob("*.json")):
        try:
            found.append(Calibration.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue
    return found
