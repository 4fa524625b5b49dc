"""What MySQL is asked where it is compared with another engine."""

from __future__ import annotations

from dbdyno.engines.compared import OF_INFORMATION_SCHEMA, ComparedBy

COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="DATABASE()"),
    defaults="SELECT v.variable_name, v.variable_value FROM performance_schema.global_variables v"
    " JOIN performance_schema.variables_info i ON i.variable_name = v.variable_name"
    " WHERE i.variable_source = 'COMPILED'",
)
