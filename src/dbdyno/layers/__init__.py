"""Layers of factors: one file each. A layer sets its knobs before the server starts and proves them on the
running system."""

from dbdyno.layers.base import Layer
from dbdyno.layers.config import ConfigLayer
from dbdyno.layers.cpu import CpuLayer
from dbdyno.layers.memory import MemoryLayer
from dbdyno.layers.storage import StorageLayer
from dbdyno.layers.workload import WorkloadLayer

LAYERS: dict[str, Layer] = {
    layer.name: layer for layer in (WorkloadLayer(), ConfigLayer(), MemoryLayer(), CpuLayer(), StorageLayer())
}
"""Every layer by name, in the order in which they put their levels: memory needs what config has put."""
