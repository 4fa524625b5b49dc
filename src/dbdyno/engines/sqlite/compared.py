"""What SQLite is asked where it is compared with another engine.

A library has no settings of its own: its defaults are what it was compiled with.
"""

from __future__ import annotations

from dbdyno.engines.compared import ComparedBy

COMPARED_BY = ComparedBy(
    columns="SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid",
    defaults="SELECT CASE instr(compile_options, '=') WHEN 0 THEN compile_options"
    " ELSE substr(compile_options, 1, instr(compile_options, '=') - 1) END,"
    " CASE instr(compile_options, '=') WHEN 0 THEN 'yes'"
    " ELSE substr(compile_options, instr(compile_options, '=') + 1) END"
    " FROM pragma_compile_options",
)
