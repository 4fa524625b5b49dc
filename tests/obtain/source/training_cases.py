"""What the tests of training share with others."""

from __future__ import annotations

import os
import subprocess

from dbdyno.obtain.source.profile import Train, Untrained


def trained_with(*arguments: str) -> Train:
    """Trains by one start of the program."""

    def train(untrained: Untrained) -> int:
        led = {**os.environ, **untrained.environment}
        subprocess.run([untrained.prefix / "toy", *arguments], env=led, check=True)
        return 3

    return train
