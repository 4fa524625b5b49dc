"""What lies where below the prefix of a MySQL."""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.obtain.installation import Installation


def folders(installation: Installation) -> list[str]:
    """The options that lead the server to its own messages, character sets and plug-ins."""
    prefix = Path(installation.command[-1]).parent.parent
    shares = [prefix / "share" / part for part in ("mysql", "")]
    share = next((one for one in shares if (one / "charsets").is_dir()), shares[0])
    plugins = [prefix / part for part in ("lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin")]
    plugin = next((one for one in plugins if one.is_dir()), plugins[0])
    root = ["--user=root"] if os.getuid() == 0 else []
    return [
        f"--basedir={prefix}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={plugin}",
        "--secure-file-priv=NULL",
        *root,
    ]
