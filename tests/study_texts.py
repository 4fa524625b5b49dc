"""Studies that many tests write."""

from __future__ import annotations

STUDY = """
title  = "Which synchronous?"
engine = "sqlite"
blocks = 2
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.5s"
[factors]
"config.synchronous" = ["FULL", "OFF"]
"""
