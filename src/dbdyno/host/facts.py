"""What is known of a machine and of an engine on it, as it was read and as runs keep it."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from dbdyno.frozen import Frozen


class Facts(Frozen):
    """Facts by name. None stands for what could not be read. What was not looked at is left out of what is
    written, and facts that only another version knows stay as they are."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _as_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}


class Cpu(Facts):
    """The CPUs. `cache_bytes` is the size of the cache that is farthest from the first core."""

    model: str | None = None
    usable_cores: int | None = None
    online_cores: int | None = None
    threads_per_core: int | None = None
    frequency_mhz: float | None = None
    governor: str | None = None
    numa_nodes: int | None = None
    cache_bytes: int | None = None


class Memory(Facts):
    """Memory, its pages and swap."""

    total_bytes: int | None = None
    swap_bytes: int | None = None
    page_bytes: int | None = None
    huge_page_bytes: int | None = None
    transparent_huge_pages: str | None = None


class DataPlace(Facts):
    """The file system that holds the data of every trial."""

    filesystem: str | None = None
    device: str | None = None
    options: str | None = None
    free_bytes: int | None = None


class Disk(Facts):
    """A block device."""

    name: str | None = None
    model: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    scheduler: str | None = None


class Host(Facts):
    """What a machine is: its fingerprint, or the part of it that tells it from others."""

    name: str | None = None
    cpu: Cpu = Field(default_factory=Cpu)
    memory: Memory = Field(default_factory=Memory)
    kernel: str | None = None
    system: str | None = None
    virtualisation: str | None = None
    data: DataPlace = Field(default_factory=DataPlace)
    disks: tuple[Disk, ...] = ()
    privileges: str | None = None
    servers: str | None = None
    dyno: str | None = None
    python: str | None = None


class Installed(Facts):
    """The engine that a run measured, and the application in front of it. Engines tell more of their
    builds."""

    engine: str = ""
    version: str = ""
    origin: str = ""
    digest: str = ""
    application: str | None = None
