"""What the tests of reader share with others."""

from __future__ import annotations

EXAMPLE = """\
title    = "Which file system?"
engine   = "firebird@5"
design   = "factorial"
blocks   = 4

[workload]
name     = "tpcb"
scale    = 10
clients  = [1, 8]
warmup   = "500ms"
duration = "1.5m"

[settings]
config.page_size = 8192

[factors]
"storage.filesystem" = ["ext4", "xfs"]
storage.scheduler    = [
    "none",
    "bfq",
]

[goal]
response = "p99_ms"
margin   = "0.5%"
guards   = ["invariants", "p99_ms <= 1.2x", "server_cpu_us_per_op >= 50"]
"""


SHORT = """\
engine = "mariadb"
[workload]
name = "tpcb"
[factors]
"config.a" = [1, 2]
"""


LIST = """\
engine = "mariadb"
design = "list"
[workload]
name = "tpcb"
[[variants]]
levels = { "config.a" = 1, config.b = "x" }
[[variants]]
name = "both"
levels = { "config.a" = 2, config.b = "y" }
[[variants]]
name = "only a"
[variants.levels]
config.a = 3
"""
