"""The defaults of a server's settings, as the server itself knows them."""

from __future__ import annotations

from dbdyno.layers.setup import Running
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench


def has_defaults(trial: Trial, bench: Bench) -> bool:
    """Whether a trial asks its server: each variant does so once where engines are compared."""
    return bool(bench.engines) and trial.block == 0 and bench.engine.compared is not None


def defaults_of(running: Running) -> dict[str, str]:
    """The value of each setting where nobody sets it, by its name."""
    asked = running.setup.engine.compared
    rows = running.ask(asked.defaults) if asked is not None else []
    return {str(name): _text(value) for name, value in rows if value is not None}


def _text(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
