"""What the tests of virtual environments share with others."""

from __future__ import annotations

from pathlib import Path

ALL = {"keystone": "30.0.0", "gunicorn": "27.0.1", "PyMySQL": "1.2.4"}
PACKAGES = ("keystone==30.0.0", "gunicorn", "PyMySQL")


def environment(prefix: Path, packages: dict[str, str]) -> Path:
    """A virtual environment that holds the packages' names, and programs that do nothing."""
    for name, version in packages.items():
        folder = prefix / "lib" / "python3.11" / "site-packages" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    (prefix / "pyvenv.cfg").touch()
    for name in ("gunicorn", "keystone-manage"):
        program = prefix / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return prefix
