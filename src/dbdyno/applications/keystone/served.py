"""What each worker of gunicorn loads: Keystone, which then tells what it runs with.

Keystone's own interpreter runs this file, which Dyno copies and never imports. The variable DYNO_ASKED names
the settings that are told, with spaces between.
"""

import json
import os
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path

application = import_module("keystone.wsgi.api").application


def _setting(name: str) -> object:
    section, _, key = name.rpartition(".")
    options = import_module("keystone.conf").CONF
    holder = options if section in ("", "DEFAULT") else getattr(options, section, None)
    return getattr(holder, key, None)


_told = {
    "packages": {one.name.lower(): one.version for one in distributions() if one.name},
    "settings": {name: _setting(name) for name in os.environ["DYNO_ASKED"].split()},
}
_written = Path(f"told-{os.getpid()}.making")
_written.write_text(json.dumps(_told, default=str))
_written.rename(_written.with_suffix(".json"))
