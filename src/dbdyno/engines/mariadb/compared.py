"""What MariaDB is asked where it is compared with another engine."""

from __future__ import annotations

from dbdyno.engines.compared import OF_INFORMATION_SCHEMA, ComparedBy

COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="DATABASE()"),
    defaults="SELECT LOWER(variable_name), default_value FROM information_schema.system_variables",
)
