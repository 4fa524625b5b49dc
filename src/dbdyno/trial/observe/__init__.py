"""Samplers that bracket the load. They run in Dyno's own process, never in the one that drives the load."""

from dbdyno.trial.observe.observer import PERIOD_S, Observer
from dbdyno.trial.observe.watch import Watch

__all__ = ["PERIOD_S", "Observer", "Watch"]
