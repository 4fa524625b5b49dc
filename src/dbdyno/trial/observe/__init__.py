"""Samplers that bracket the load. They run in Dyno's own process, never in the one that drives the load."""

from dbdyno.trial.observe.observer import Observer

__all__ = ["Observer"]
