"""What PostgreSQL is asked where it is compared with another engine."""

from __future__ import annotations

from dbdyno.engines.compared import OF_INFORMATION_SCHEMA, ComparedBy

COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="'public'"),
    defaults="SELECT name, boot_val || COALESCE(' ' || unit, '') FROM pg_settings",
)
