"""The tables of a fleet, beside those of the store in its PostgreSQL.

A host's number stands for it where an index of ranges is needed: a range type needs no extension for numbers,
and the exclusion constraint then refuses two leases of one host that overlap, whoever writes them. All times
are the database's.
"""

TABLES = (
    """CREATE TABLE IF NOT EXISTS dyno_hosts (
        host VARCHAR(64) NOT NULL PRIMARY KEY,
        number INTEGER GENERATED ALWAYS AS IDENTITY UNIQUE,
        worker VARCHAR(32) NOT NULL,
        signed_at TIMESTAMPTZ NOT NULL,
        document TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_leases (
        fence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        number INTEGER NOT NULL,
        run VARCHAR(64) NOT NULL,
        released BOOLEAN NOT NULL DEFAULT FALSE,
        during TSTZRANGE NOT NULL CHECK (NOT isempty(during)),
        EXCLUDE USING gist (int4range(number, number, '[]') WITH &&, during WITH &&))""",
    "CREATE INDEX IF NOT EXISTS dyno_leases_of_host ON dyno_leases (number, fence)",
    """CREATE TABLE IF NOT EXISTS dyno_asked (
        run VARCHAR(64) NOT NULL PRIMARY KEY,
        asked_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
        document TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS dyno_parts (
        run VARCHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        state VARCHAR(16) NOT NULL,
        told TEXT NOT NULL,
        PRIMARY KEY (run, host))""",
    """CREATE TABLE IF NOT EXISTS dyno_late (
        run VARCHAR(64) NOT NULL,
        trial INTEGER NOT NULL,
        fence BIGINT NOT NULL,
        refused_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())""",
)
