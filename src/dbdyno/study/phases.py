"""Loads that follow one another on one server, as a study's [[phases]] say them."""

from __future__ import annotations

from dbdyno.frozen import Frozen, Level


def options_of(file: str) -> dict[str, Level]:
    """The workload's options for another script, which has variables of its own."""
    return {"file": file, "variables": ""}


class LoadPhase(Frozen):
    """Clients send the transactions of the script `file`, in open loop where there is a rate, until so many
    `operations` are done or `duration_s` is over. As many more send those of the script `beside` at a
    rate of their own. What is not given is the workload's."""

    name: str
    file: str = ""
    duration_s: float | None = None
    clients: int | None = None
    rate_per_s: float | None = None
    operations: int | None = None
    beside: str = ""
    beside_rate_per_s: float | None = None

    @property
    def files(self) -> dict[str, str]:
        """Those that it names, by their keys."""
        given = {"file": self.file, "beside": self.beside}
        return {key: name for key, name in given.items() if name}
