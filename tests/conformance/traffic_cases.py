"""What the tests of traffic share with others."""

from __future__ import annotations

from dbdyno.frozen import Level

POSTGRESQL_LOGS: dict[str, Level] = {
    "logging_collector": "on",
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "log",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_min_duration_statement": 0,
}
