"""Git repositories of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def commit(folder: Path, text: str, title: str, name: str = "a.c") -> None:
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-m", title)
    git(folder, "tag", title.split(maxsplit=1)[0])
