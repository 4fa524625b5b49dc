"""A study whose workload plays a recording: its file, and what the recording says in the study's place."""

from __future__ import annotations

from pathlib import Path

from dbdyno.driver.job import REPLAY
from dbdyno.errors import UserError
from dbdyno.study.document import Place
from dbdyno.study.nouns import Factor, Workload
from dbdyno.study.section import SectionReader

FILE: Place = ("workload", "file")
PACED = ("clients", "ramp", "rate_per_s", "arrivals", "schedule", "think_time")
"""Keys of a workload that a recording has by itself."""
SHORTEST_S = 0.1


def read_replay(
    reader: SectionReader, folder: Path, workload: Workload, factors: tuple[Factor, ...]
) -> Workload:
    """The workload with the times of its recording, whose path counts from `folder`. Unless told otherwise it
    has no warm-up, and lasts as long as the recording. Other workloads stay as they are."""
    if workload.name != REPLAY:
        return workload
    varied = {factor.name for factor in factors}
    for key in PACED:
        place: Place = ("workload", key) if reader.at(("workload", key)) is not None else ("factors",)
        if reader.at(("workload", key)) is not None or f"workload.{key}" in varied:
            reader.note(place, f"a replay has no `{key}`: its recording says it", "leave it out")
    if "workload.file" in varied:
        reader.note(FILE, "`file` cannot vary within a study", "make a study of each recording")
        return workload
    file = workload.options.get("file")
    if not file:
        hint = 'make one from a log with dyno init replay, and write file = "NAME.replay"'
        reader.note(("workload", "name"), "the replay has no recording", hint)
        return workload
    return _lasting(reader, folder / str(file), workload)


def _lasting(reader: SectionReader, path: Path, workload: Workload) -> Workload:
    """The workload with the recording's sessions as its clients, and with its own times."""
    if reader.catalogue.recorded is None:
        return workload
    try:
        recorded = reader.catalogue.recorded(path)
    except UserError as error:
        reader.note(FILE, error.message, error.hint)
        return workload
    warmup_s = workload.warmup_s if reader.at(("workload", "warmup")) is not None else 0.0
    rest_s = recorded.length_s - warmup_s
    if rest_s < SHORTEST_S and warmup_s:
        told = f"a warm-up of {warmup_s:g} s leaves nothing of a recording of {recorded.length_s:.1f} s"
        reader.note(("workload", "warmup"), told, "give a shorter one, or leave it out")
        return workload
    given = reader.at(("workload", "duration")) is not None
    duration_s = min(workload.duration_s, rest_s) if given else rest_s
    return workload.but(clients=recorded.open_most, warmup_s=warmup_s, duration_s=max(SHORTEST_S, duration_s))
