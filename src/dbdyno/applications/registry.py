"""The applications that Dyno knows, and the programs that pass SQL on, by the names that a study writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dbdyno.applications.product import InstalledApplication, KnownFront, Product
from dbdyno.obtain.installation import Installation
from dbdyno.registry import LazyTable, registry
from dbdyno.study.nouns import Application, FrontProgram, StopSignal

PRODUCTS: LazyTable[Product] = registry({"keystone": "dbdyno.applications.keystone:KEYSTONE"})

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


def installed(wish: Application | None) -> InstalledApplication | None:
    """The application that a study asks for; None where it asks for none. Raises EngineMissing with the
    commands that install it. It is looked for once in a process."""
    if wish is None:
        return None
    return InstalledApplication(PRODUCTS[wish.name], _located(wish.name, wish.version, wish.path), wish)


# A run asks before its first trial and for its bench, and reading all packages takes a while.
@cache
def _located(name: str, version: str, path: str) -> Installation:
    return PRODUCTS[name].locate(Application(name=name, version=version, path=path))
