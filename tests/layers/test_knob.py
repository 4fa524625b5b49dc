"""A knob's facts can be read where no host may be touched."""

from __future__ import annotations

import subprocess
import sys

IMPORTED = """
import sys
import dbdyno.layers.knob
print(*(name for name in sys.modules if name.startswith(("dbdyno.host", "dbdyno.engines", "dbdyno.driver"))))
"""


def test_a_knob_is_made_without_host_engine_or_driver() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
