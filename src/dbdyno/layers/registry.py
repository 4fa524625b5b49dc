"""The layers that Dyno knows, by the name that a study writes before the dot."""

from __future__ import annotations

from dbdyno.layers.config import ConfigLayer
from dbdyno.layers.cpu import CpuLayer
from dbdyno.layers.layer import Layer
from dbdyno.layers.memory import MemoryLayer
from dbdyno.layers.storage import StorageLayer
from dbdyno.layers.workload import WorkloadLayer

LAYERS: dict[str, Layer] = {
    layer.name: layer for layer in (WorkloadLayer(), ConfigLayer(), MemoryLayer(), CpuLayer(), StorageLayer())
}
"""Every layer by name, in the order in which they put their levels: memory needs what config has put."""
