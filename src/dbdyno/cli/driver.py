"""`dyno fleet driver`: the load driver on another host."""

from __future__ import annotations

import click

from dbdyno.cli.patience import patient
from dbdyno.driver.remote.load import DriverOnHost, install
from dbdyno.study import grammars
from dbdyno.study.catalogue import NOTHING
from dbdyno.study.values import ValueFault


class HostName(click.ParamType[str]):
    """A host as a study names it."""

    name = "host"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return grammars.HOST.read(value, NOTHING)
        except ValueFault as fault:
            self.fail(f"{fault.message}; {fault.hint}", param, ctx)


@click.group()
def command() -> None:
    """Prepare other hosts to drive loads from there."""


@command.command("install")
@click.argument("host", type=HostName())
def install_(host: str) -> None:
    """Copy this Dyno's driver to HOST, by which `ssh HOST` reaches it, and try that it starts there.

    One file is copied, and checked by its hash. HOST needs Linux, Python 3.11 or later, and CPUs of this
    host's kind. Nothing runs there between trials. DYNO_SSH is the command that logs in, where that is not
    `ssh`.
    """
    with patient() as patience:
        patience.tell(f"copying the driver to {host}")
        path = install(host)
        driver = DriverOnHost(host)
        driver.close()
    about = driver.about
    click.echo(f"{host}: {path}; Python {about['python']}, {about['cpus']} CPUs, Linux {about['kernel']}")
