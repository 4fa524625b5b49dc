"""Dyno: a performance laboratory for database servers."""

__version__ = "0.2.0"
