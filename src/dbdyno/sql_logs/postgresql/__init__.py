"""What PostgreSQL tells of statements in its log.

`prefix` knows what stands before a line of a text; `entries` cuts text, CSV and JSON into entries;
`messages` makes statements of these.
"""
