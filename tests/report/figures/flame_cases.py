"""What the tests of flame share with others."""

from __future__ import annotations

from dbdyno.analyse.profile import Profile, profile_of

MODULE, KERNEL = "/opt/server", "[kernel.kallsyms]"


UNKNOWN = ("[unknown]", "/lib/libc.so.6")


def a_profile(variant: str, miss: int, us: float) -> Profile:
    main = ("main", MODULE)
    profile = profile_of(
        variant,
        [
            *[(1, (main, ("search", MODULE), ("distance", MODULE)))] * 60,
            *[(1, (main, ("search", MODULE), ("load_node", MODULE), UNKNOWN))] * miss,
            *[(1, (main, ("send", MODULE), ("tcp_sendmsg", KERNEL)))] * 10,
        ],
        us,
        way="frame pointers",
        event="cpu-clock",
    )
    assert profile is not None
    return profile


SLOW, FAST = a_profile("baseline", 330, 4000.0), a_profile("config.cache=4G", 30, 1000.0)
