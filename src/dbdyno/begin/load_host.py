"""The hosts that a study's load comes from: whether they are ready, before the first trial, and what is told
of them."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.study import Study


def require_load_host(study: Study) -> None:
    """Raises UserError where this host cannot listen on the study's address, and DriverFailed where a load
    host is not reached or has no driver that runs."""
    if study.driver is None:
        return
    # Here, because most loads come from this host.
    from dbdyno.driver.remote.load import RemoteDriver
    from dbdyno.engines.server import free_port

    free_port(study.driver.address)
    for host in study.driver.hosts:
        RemoteDriver(host).close()


def load_host_lines(study: Study) -> Iterator[str]:
    """Where the load comes from, where that is another host."""
    if study.driver is None:
        return
    found = study.driver
    how = "encrypted" if found.tls else "on a network that the study states to be private"
    yield (
        f"the load comes from {found.hosts_text} over SSH; each server listens on {found.address} during its"
        f" trial, {how}, for an account with a random password"
    )
