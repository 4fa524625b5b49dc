"""What PostgreSQL tells of statements: its log in three formats, plans of auto_explain in it, and the view
pg_stat_statements.

`stderr_log`, `csv_log` and `json_log` cut a log into entries; `messages` makes statements of these.
"""
