"""What Firebird is asked where it is compared with another engine."""

from __future__ import annotations

from dbdyno.engines.compared import ComparedBy

COMPARED_BY = ComparedBy(
    columns="SELECT TRIM(f.RDB$RELATION_NAME), TRIM(f.RDB$FIELD_NAME) FROM RDB$RELATION_FIELDS f"
    " JOIN RDB$RELATIONS r ON r.RDB$RELATION_NAME = f.RDB$RELATION_NAME"
    " WHERE r.RDB$SYSTEM_FLAG = 0 AND r.RDB$VIEW_BLR IS NULL ORDER BY 1, f.RDB$FIELD_POSITION",
    defaults="SELECT TRIM(RDB$CONFIG_NAME), RDB$CONFIG_DEFAULT FROM RDB$CONFIG",
)
