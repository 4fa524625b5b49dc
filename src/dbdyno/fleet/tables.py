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
    """CREATE TABLE IF NOT EXISTS dyno_builds (
        name VARCHAR(128) NOT NULL PRIMARY KEY,
        host VARCHAR(64) NOT NULL,
        words TEXT NOT NULL,
        content CHAR(64) NOT NULL,
        sha256 CHAR(64) NOT NULL,
        packed_bytes BIGINT NOT NULL,
        kept_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())""",
    """CREATE TABLE IF NOT EXISTS dyno_build_pieces (
        name VARCHAR(128) NOT NULL REFERENCES dyno_builds ON DELETE CASCADE,
        number INTEGER NOT NULL,
        piece BYTEA NOT NULL,
        PRIMARY KEY (name, number))""",
    # What is packed gets no smaller by being packed again.
    "ALTER TABLE dyno_build_pieces ALTER COLUMN piece SET STORAGE EXTERNAL",
    """CREATE TABLE IF NOT EXISTS dyno_build_gates (
        name VARCHAR(128) NOT NULL REFERENCES dyno_builds ON DELETE CASCADE,
        asked VARCHAR(64) NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (name, asked))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_runs (
        run VARCHAR(64) NOT NULL,
        name VARCHAR(128) NOT NULL,
        content CHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        PRIMARY KEY (run, name))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_failures (
        run VARCHAR(64) NOT NULL,
        name VARCHAR(128) NOT NULL,
        host VARCHAR(64) NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (run, name))""",
    """CREATE TABLE IF NOT EXISTS dyno_build_makers (
        what VARCHAR(160) NOT NULL PRIMARY KEY,
        run VARCHAR(64) NOT NULL,
        host VARCHAR(64) NOT NULL,
        fence BIGINT NOT NULL,
        words TEXT NOT NULL,
        pid INTEGER NOT NULL)""",
)
LAST = "dyno_build_makers"
"""The table that is made last: where it is, all others are."""
