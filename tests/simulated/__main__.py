"""`python -m tests.simulated FIRST COUNT` carries out so many seeds, from the first on. It prints what is
wrong with a seed, and the command that repeats it."""

from __future__ import annotations

import sys
from collections import Counter

from tests.simulated.seed import wrong_with

TELL_EVERY = 500


def main(first: int, count: int) -> int:
    bad, tried = 0, Counter[str]()
    for seed in range(first, first + count):
        if found := wrong_with(seed, tried):
            bad += 1
            print(f"seed {seed}: again with: python -m tests.simulated {seed} 1", flush=True)
            for line in found:
                print(f"  {line}", flush=True)
        if (seed - first) % TELL_EVERY == TELL_EVERY - 1:
            print(f"{seed - first + 1} of {count} seeds, {bad} bad", file=sys.stderr, flush=True)
    print(f"{count} seeds from {first} on, {bad} bad: {dict(sorted(tried.items()))}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
