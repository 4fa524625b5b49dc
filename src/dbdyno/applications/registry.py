"""The programs that pass SQL on and that Dyno knows how to start, by the names that a study writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.study.front import FrontProgram, StopSignal

WORKER_BYTES = 150 << 20
"""About what a worker of an application takes of memory."""


@dataclass(frozen=True)
class KnownFront:
    """A program that Dyno knows how to start. It passes on what servers of one of `protocols` are sent, and
    reads back every setting or those that are `shown` alone, by the names that it shows them by. It tells its
    version for the `version_option`."""

    title: str
    package: str
    protocols: frozenset[str]
    program: FrontProgram
    text: str
    shown: Mapping[str, str] | None = None
    version_option: str = "--version"


FRONTS: Mapping[str, KnownFront] = {
    "pgbouncer": KnownFront(
        title="PgBouncer",
        package="pgbouncer",
        protocols=frozenset(("postgresql",)),
        program=FrontProgram(
            command="pgbouncer ${configuration}",
            socket="${runtime}/.s.PGSQL.6432",
            show="SHOW CONFIG",
            show_at="pgbouncer",
            shares=True,
            stop=StopSignal.INT,
        ),
        text=(
            "[databases]\n${database} = host='${folder}' port=${server_port} user=${user}\n[pgbouncer]\n"
            "unix_socket_dir = ${runtime}\nlisten_port = 6432\nauth_type = any\nadmin_users = ${user}\n"
            "ignore_startup_parameters = extra_float_digits\n${settings}\n"
        ),
    ),
    "haproxy": KnownFront(
        title="HAProxy",
        package="haproxy",
        protocols=frozenset(("postgresql", "mysql")),
        program=FrontProgram(
            command="haproxy -db -f ${configuration}",
            socket="${runtime}/.s.PGSQL.6432",
            setting="  ${name} ${value}",
            show="show info",
            show_at="${runtime}/admin.sock",
        ),
        text=(
            "global\n  stats socket '${runtime}/admin.sock'\n${settings}\n"
            "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
            "listen through\n  bind 'unix@${socket}'\n  server behind 'unix@${server}'\n"
        ),
        shown={"maxconn": "Maxconn", "nbthread": "Nbthread"},
        version_option="-v",
    ),
}
