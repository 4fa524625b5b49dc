"""Whose fault a failure is: the engine's, which is measured, or that of Dyno's own driver."""

from __future__ import annotations

from dbdyno.engines.engine import Engine
from dbdyno.errors import DriverFailed, LoadDied, ServerFailed, UserError


def died(failure: Exception, engine: Engine) -> bool:
    """Whether the engine died. An embedded one lives in the load process and dies with it. The load process
    of a server that dies says nothing of the server."""
    return isinstance(failure, ServerFailed) or (isinstance(failure, LoadDied) and engine.embedded)


def of_the_engine(failure: Exception, engine: Engine) -> bool:
    """Whether the engine died, refused, was not reached or spoke nonsense."""
    return died(failure, engine) or (isinstance(failure, DriverFailed) and failure.of_the_engine)


def is_mistake(failure: Exception) -> bool:
    """Whether the user's input caused it: a file that is not there, a statement that no server takes."""
    return isinstance(failure, UserError) or (isinstance(failure, DriverFailed) and failure.kind == "user")
