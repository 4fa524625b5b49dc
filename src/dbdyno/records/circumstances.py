"""What is known of the circumstances of a run: what sets it apart from other runs of its study, and what its
noise goes by."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

from dbdyno.frozen import level_shown
from dbdyno.records.run import Run
from dbdyno.study import Arrangement, Study
from dbdyno.study.differences import meaning_of


class Circumstance(StrEnum):
    """What is known to set runs of one study apart. Where one of them changes a stretch begins."""

    HOST = "host"
    ENGINE = "engine"
    CALIBRATION = "calibration"
    ARRANGEMENT = "arrangement"
    DURATION = "duration"
    DYNO = "Dyno"
    FILES = "files"


def circumstances_of(study: Study, run: Run, engine: str) -> dict[Circumstance, str]:
    """Those of a run of a study, of an engine in the version that answered."""
    return {
        Circumstance.HOST: _host(run),
        Circumstance.ENGINE: _build(engine, run),
        Circumstance.CALIBRATION: _calibration(run),
        Circumstance.ARRANGEMENT: _arrangement(run),
        Circumstance.DURATION: _duration(study, run),
        Circumstance.DYNO: run.dyno_version,
        Circumstance.FILES: _files(study, run),
    }


def noise_of(run: Run) -> list[object]:
    """What the noise of a run goes by. The host's name is left out, because a container has another one each
    day."""
    cpu = run.host.cpu
    settings = run.calibrated.settings if run.calibrated else {}
    return [
        run.blocks,
        run.dyno_version,
        settings,
        run.arrangement,
        run.slice_s,
        cpu.model,
        cpu.usable_cores,
        run.host.memory.total_bytes,
        run.host.virtualisation,
    ]


def _host(run: Run) -> str:
    """What tells the host from others. A container's name is left out, because it has another one each
    day."""
    cpu, virtual, kernel = run.host.cpu, run.host.virtualisation or "", run.host.kernel
    name = "container" if virtual.startswith("container") else run.host.name
    cores = " x ".join(str(fact) for fact in (cpu.usable_cores, cpu.model) if fact)
    return ", ".join(filter(None, (name, cores, kernel and f"kernel {kernel}"))) or "not known"


def _build(engine: str, run: Run) -> str:
    """The engine with the beginning of its build's hash: a version can be built twice."""
    digest = run.installation.digest
    return f"{engine}, build {digest[:8]}" if digest else engine


def _calibration(run: Run) -> str:
    if run.calibrated is None:
        return "none"
    settings = [f"{name}={level_shown(level)}" for name, level in sorted(run.calibrated.settings.items())]
    interval = [f"interval {run.calibrated.interval}"] if run.calibrated.interval else []
    return ", ".join([*settings, *interval]) or "none"


def _arrangement(run: Run) -> str:
    arrangement = run.arrangement or Arrangement.ONE_AFTER_THE_OTHER
    sliced = arrangement is Arrangement.SIDE_BY_SIDE and run.slice_s
    return f"{arrangement}, slices of {run.slice_s:g} s" if sliced else str(arrangement)


def _duration(study: Study, run: Run) -> str:
    """The measured part of a trial, which a budget may shorten."""
    return f"{run.duration_s or study.workload.duration_s:g} s"


def _files(study: Study, run: Run) -> str:
    """The files and data that the study refers to, with a hash of what each says. Comments in TOML change
    nothing."""
    if run.files is None and study.names_files:
        return "not known"
    data = [f"{one.path.rpartition('/')[2]} {one.sha256[:8]}" for one in run.data]
    hashed = ((path, sha256(said.encode()).hexdigest()[:8]) for path, said in meaning_of(run.files))
    return ", ".join([*(f"{path} {digest}" for path, digest in hashed), *data]) or "none"
