"""What lies where below the prefix of a MariaDB."""

from __future__ import annotations

from pathlib import Path

from dbdyno.obtain.installation import Installation


def folders(installation: Installation) -> list[str]:
    """The options that lead the server to its own messages, character sets and plug-ins."""
    prefix = Path(installation.command[-1]).parent.parent
    options = [f"--basedir={prefix}"]
    share = share_folder(installation)
    if share is not None:
        options += [f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
    plugins = [prefix / part for part in ("lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin")]
    # Without a folder of its own, an unpacked server would load the host's plugins, built for other
    # libraries.
    return [*options, f"--plugin-dir={next((one for one in plugins if one.is_dir()), plugins[0])}"]


def share_folder(installation: Installation) -> Path | None:
    """The folder with the messages and the SQL that makes the system tables; None when it is elsewhere."""
    prefix = Path(installation.command[-1]).parent.parent
    folders = [prefix / "share" / part for part in ("mariadb", "mysql", "")]
    return next((one for one in folders if (one / "english/errmsg.sys").is_file()), None)
