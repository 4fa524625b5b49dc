"""Folded stacks: what flame graph tools read."""

from __future__ import annotations

import re

from dbdyno.analyse.profile import Profile, Stack
from dbdyno.findings.profile import folded


def profile_of(*stacks: tuple[tuple[str, ...], float]) -> Profile:
    return Profile(
        variant="baseline",
        samples=len(stacks),
        cpu_us_per_op=sum(us for _, us in stacks),
        unresolved_share=0.0,
        stacks=tuple(Stack(frames=frames, us=us) for frames, us in stacks),
    )


def test_a_stack_is_a_line_with_its_nanoseconds() -> None:
    profile = profile_of((("main", "read_[k]"), 1.5), (("main", "parse"), 0.25), (("main", "parse"), 0.25))
    assert folded([profile]) == "main;parse 500\nmain;read_[k] 1500\n"


def test_what_rounds_to_nothing_is_left_out() -> None:
    assert folded([profile_of((("main",), 0.0001))]) == ""


def test_a_second_profile_stands_before_the_first() -> None:
    first, second = profile_of((("main", "a"), 2.0)), profile_of((("main", "a"), 1.0), (("main", "b"), 3.0))
    assert folded([first, second]) == "main;a 1000 2000\nmain;b 3000 0\n"


def test_a_name_cannot_part_a_line_or_a_frame() -> None:
    (line,) = folded([profile_of((("operator;\n()", "std::f<a b>"), 1.0))]).splitlines()
    assert re.fullmatch(r"operator: ⏎ \(\);std::f<a b> 1000", line)
