"""The host that a study's load comes from: whether it is ready, before the first trial, and what is told of
it."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.driver.remote.load import RemoteDriver
from dbdyno.engines.network import free_port
from dbdyno.study import Study


def require_load_host(study: Study) -> None:
    """Raises UserError where this host cannot listen on the study's address, and DriverFailed where the load
    host is not reached or has no driver that runs."""
    if study.driver is None:
        return
    free_port(study.driver.address)
    RemoteDriver(study.driver.host).close()


def load_host_lines(study: Study) -> Iterator[str]:
    """Where the load comes from, where that is another host."""
    if study.driver is None:
        return
    found = study.driver
    how = "encrypted" if found.tls else "on a network that the study states to be private"
    yield (
        f"the load comes from {found.host} over SSH; each server listens on {found.address} during its trial,"
        f" {how}, for an account with a random password"
    )
