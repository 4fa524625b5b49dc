"""What the tests of registry share with others."""

from __future__ import annotations

from dbdyno.frozen import Level

LEVELS: dict[str, tuple[Level, Level]] = {
    "source.origin": ("debian", "/nowhere/source"),
    "source.revision": ("none", "v11.8.6"),
    "source.patches": ("none", "one.patch ../two.patch"),
    "source.recipe": ("default", "~/recipe.toml"),
    "build.compiler": ("gcc", "clang-99"),
    "build.optimisation": ("-O2", "-Ofast"),
    "build.flags": ("none", "-fno-plt -falign-functions=64"),
    "build.march": ("default", "x86-64-v3"),
    "build.lto": ("off", "full"),
    "build.pgo": ("off", "tpcb scale=2 transactions=100"),
    "build.bolt": ("off", "tpcb scale=2 transactions=100"),
    "build.linker": ("default", "mold"),
    "build.hardening": ("off", "full"),
    "build.layout": ("none", 1),
    "memory.allocator": ("libc", "jemalloc"),
    "memory.thp": ("never", "always"),
    "memory.huge_pages": ("off", "2M"),
    "memory.malloc": ("default", "glibc.malloc.arena_max=2"),
    "cpu.server": ("all", "0-3,8"),
    "cpu.driver": ("all", 0),
    "cpu.node": ("any", 4095),
    "cpu.quota": ("max", "150%"),
    "cpu.weight": (100, 250),
    "cpu.smt": ("on", "off"),
    "cpu.governor": ("performance", "powersave"),
    "cpu.boost": ("on", "off"),
    "storage.device": ("disk", "/dev/nowhere"),
    "storage.filesystem": ("host", "xfs"),
    "storage.mkfs": ("defaults", "-b 4096"),
    "storage.mount": ("defaults", "noatime"),
    "storage.scheduler": ("none", "bfq"),
    "storage.read_ahead": (64, 128),
    "storage.size": ("512M", "2G"),
    "storage.page_cache": ("keep", "drop"),
    "fault.memory": ("none", "512M"),
    "fault.disk_operations": ("none", 200),
    "fault.disk_free": ("none", "64M"),
    "fault.stolen_cpu": ("none", "50%"),
    "fault.pause": ("none", "200ms/5s"),
    "fault.network_delay": ("none", "500us"),
}
"""Two levels of every knob. Several of them no host has: asking for them must not look."""
