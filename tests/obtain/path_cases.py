"""What the tests of path share with others."""

from __future__ import annotations

from pathlib import Path


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
