"""What the tests of search share with others."""

from __future__ import annotations

SEARCH = """\
engine = "mariadb"
design = "search"
[workload]
name = "tpcb"
[factors]
"config.pool"    = { from = "64M", to = "8G", scale = "log", baseline = "128M" }
config.log       = ["ON", "OFF"]
config.capacity  = { from = 200, to = 20000, scale = "log", only_if = { "config.log" = "ON" } }
"config.threads" = { levels = [1, 2, 4], only_if = { config.log = ["OFF"] } }
[search]
time        = "20m"
constraints = ["config.pool + 2 * config.capacity <= 6G"]
[[variants]]
name   = "the manual"
levels = { "config.pool" = "10G" }
"""
