"""An engine's own configuration file as the base of a study: what of it is taken, and what is not and why."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.engines.engine import Engine
from dbdyno.engines.facts import A_PATH, A_PROGRAM, ConfigurationLine, Include, NoConfiguration
from dbdyno.engines.values import as_text
from dbdyno.frozen import Configuration, IncludedFile, Level, LineCount, NotTaken
from dbdyno.obtain.installation import Installation
from dbdyno.passwords import without_passwords


def read_configuration(
    engine: Engine, installation: Installation | None, name: str, folder: Path
) -> Configuration:
    """The settings of a file, and of those that it includes, that this engine takes. `name` counts from the
    folder. Without an installation only the lines that are never taken are left out. Raises OSError and
    UnicodeDecodeError where the file cannot be read, and NoConfiguration where the server would refuse it.
    """
    known = engine.settings.names(installation) if installation else None
    follower = Follower(lambda text: engine.settings.configured(text, installation))
    # PostgreSQL and Firebird read the names of settings in any case.
    spelled = {one.lower(): one for one in known or ()}
    named = (
        replace(one, name=spelled.get(one.name.lower(), one.name)) for one in follower.lines(name, folder)
    )
    lines = [_judged(line, engine, installation, known) for line in named]
    # As in a server, the last line of a setting counts.
    last = {line.name: line for line in lines if not line.untaken}
    settings = {one: line.level for one, line in last.items()}
    refused = engine.settings.refused(installation, settings) if installation else {}
    faults = {last[one]: f"{engine.title} {fault.reason}" for one, fault in refused.items()}
    whole, *included = follower.files
    told = _told(_without(line, faults[line]) if line in faults else line for line in lines)
    length = sum(exported_lines(file.text) for file in follower.files)
    count = LineCount(
        whole=length,
        silent=length - len(lines),
        again=sum(not line.untaken and last[line.name] is not line for line in lines),
    )
    return Configuration(
        path=name,
        text=whole.text,
        digest=whole.digest,
        settings={f"config.{one}": level for one, level in settings.items() if one not in refused},
        not_taken=told,
        included=tuple(included),
        lines=count,
    )


def require_settings(found: Configuration) -> Configuration:
    """The same. Raises NoConfiguration where nothing of it is taken, because a study would call the server's
    defaults the user's file."""
    if found.settings:
        return found
    first = next(iter(found.not_taken), None)
    why = f": {first.text}: {first.reason}" if first is not None else ""
    raise NoConfiguration(f"no line of it sets what a study can take{why}", "leave it out, or name another")


def _judged(
    line: ConfigurationLine, engine: Engine, installation: Installation | None, known: frozenset[str] | None
) -> ConfigurationLine:
    if line.untaken or line.include is not None:
        return line
    # A run refuses such a level, and no variant would be left.
    if reach(line.name, line.level, engine.settings.CONFINED) is not None:
        return _without(line, A_PROGRAM if line.name in engine.settings.CONFINED else A_PATH)
    if known is None or line.name in known or installation is None:
        return line
    return _without(line, f"{engine.title} {installation.version} has no such setting")


def _without(line: ConfigurationLine, why: str) -> ConfigurationLine:
    return replace(line, untaken=why)


def _told(lines: Iterable[ConfigurationLine]) -> tuple[NotTaken, ...]:
    """In the order in which a server reads them."""
    return tuple(
        NotTaken(line=line.number, text=line.text, reason=line.untaken, file=line.file)
        for line in lines
        if line.untaken
    )


DEPTH_MOST = 10
"""How deep MariaDB, MySQL and PostgreSQL follow includes."""
CHARACTERS_MOST = 1 << 20
"""A file of settings is a short text."""

SECRET = (
    r"(?<![\w.-])[\w.-]*(?:password|passwd|pwd|passphrase(?:_command)?|secret(?:[-_](?:key|id))?"
    r"|access[-_]key|filekey|token|sst[-_]auth)"
)
"""How the names of secrets end."""
QUOTE = r"(?:''|\\')"
"""A quote within a text in quotes."""
ESCAPED = rf"\\\\(?:{QUOTE}|\\\\|[^'\n])|\\[^'\n]"
"""A character whose meaning a connection's backslash, which is written twice, or the file's own takes."""
WORD = rf"""(?:{ESCAPED}|{QUOTE}|[^\s'"\\]|"(?=\S))"""
KEPT_BEFORE_SECRETS = (
    # An option: all of its line, also in a comment.
    re.compile(
        rf"^([ \t#;]*{SECRET}(?:[ \t]*=[ \t]*(?=\S)|[ \t]+(?=[^\s=#]))).+$", re.IGNORECASE | re.MULTILINE
    ),
    # Within the text of a connection, or of a command.
    re.compile(
        rf"""({SECRET}[ \t]*=[ \t]*)"""
        rf"""(?:{QUOTE}(?:{ESCAPED}|[^'\\\n])*{QUOTE}?|(?:'[^'\n]*'|"[^"\n]*"){WORD}*|{WORD}+)""",
        re.IGNORECASE,
    ),
    # A URL.
    re.compile(r"(://[^\s:/@]*:)[^\s/]*(?=@)"),
)
"""Each matches a secret; its group is what stands before it."""

Parse = Callable[[str], list[ConfigurationLine]]
"""The lines of one file's text that concern the server."""


class Follower:
    """Reads a configuration file and what it includes. `files` are those that were read, the first one first.

    No text that is kept holds a secret, because it goes into a store.
    """

    def __init__(self, parse: Parse) -> None:
        self._parse = parse
        self.files: list[IncludedFile] = []

    def lines(self, name: str, folder: Path) -> list[ConfigurationLine]:
        """All lines in the order in which a server reads them. `name` counts from the folder. Raises OSError
        and UnicodeDecodeError where the file itself cannot be read."""
        return list(self._lines(_resolved(folder, name), (), name))

    def _lines(self, file: Path, above: tuple[Path, ...], name: str) -> Iterator[ConfigurationLine]:
        text = _text(file)
        digest, kept = hashlib.sha256(text.encode()).hexdigest(), without_secrets(text)
        self.files.append(IncludedFile(path=name, text=kept, digest=digest))
        for line in self._parse(kept):
            if line.fatal and not above:
                raise NoConfiguration(line.fatal, "mend the file, or name another")
            here = replace(line, file=name) if above else line
            if line.include is None:
                yield here
            else:
                yield from self._included(here, line.include, (*above, file))

    def _included(
        self, line: ConfigurationLine, include: Include, above: tuple[Path, ...]
    ) -> Iterator[ConfigurationLine]:
        """The lines of the files that a line leads to; the line itself, with why, if one cannot be read."""
        try:
            files = _files(include, above[-1].parent)
        except OSError as error:
            yield replace(line, untaken=_why(error))
            return
        for file in files:
            try:
                if why := _refused(file, above):
                    yield replace(line, untaken=why)
                else:
                    yield from self._lines(file, above, _name(file, above[0].parent))
            except OSError as error:
                yield replace(line, untaken=_why(error))
            except UnicodeDecodeError:
                yield replace(line, untaken=f"{file.name} is not a text in UTF-8")
            except NoConfiguration as refused:
                yield replace(line, untaken=f"{file.name}: {refused}")


def without_secrets(text: str) -> str:
    """A file's text with *** in the place of each secret."""
    for secret in KEPT_BEFORE_SECRETS:
        text = secret.sub(r"\1***", text)
    return without_passwords(text)


def _resolved(folder: Path, path: str) -> Path:
    """Where a path leads. Raises OSError where that is nowhere."""
    try:
        return (folder / Path(path).expanduser()).resolve()
    except (RuntimeError, ValueError) as error:
        # Symbolic links in a circle, a home that nobody has, a zero byte.
        raise OSError(errno.EINVAL, str(error), path) from None


def _text(file: Path) -> str:
    """The text of a file. Raises OSError for a pipe or a device, which may not end, and for a large file."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
    with file.open(encoding="utf-8") as opened:
        text = opened.read(CHARACTERS_MOST + 1)
    if len(text) > CHARACTERS_MOST:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB", str(file))
    return text


def _refused(file: Path, above: tuple[Path, ...]) -> str:
    if file in above:
        return f"{file.name} is being read already, so this line leads in a circle"
    return f"a server follows no more than {DEPTH_MOST} includes in a row" if len(above) > DEPTH_MOST else ""


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is not on this machine: copy it here, or write what matters of it here"
    return f"{error.filename} cannot be read: {error.strerror}"


def _files(include: Include, folder: Path) -> list[Path]:
    """A relative path counts from the folder of the file that holds it. A folder's files come by name."""
    place = _resolved(folder, include.path)
    if not include.ending:
        return [place]
    found = [file for file in place.iterdir() if file.name.endswith(include.ending) and file.is_file()]
    return [file.resolve() for file in sorted(found) if not file.name.startswith(".")]


def _name(file: Path, folder: Path) -> str:
    """The path from the first file's folder, where the file lies in there."""
    return str(file.relative_to(folder) if file.is_relative_to(folder) else file)


_WORD = re.compile(r"""[^\s,;:='"()|<>]+""")
"""A word of a level: of a list of files, of a statement, of `NAME=PATH`."""
NO_PROGRAM = (
    "leave the setting out, because no option allows a program: nobody knows what it writes. "
    "To measure with it, start the server yourself and drive it with `dyno load`"
)


@dataclass(frozen=True)
class LevelReach:
    """Where a level leads, and what the study's user can do."""

    reason: str
    remedy: str


def reach(
    name: str, level: Level, confined: Mapping[str, Collection[str]], allowed: Collection[Path] = ()
) -> LevelReach | None:
    """What a level makes the server write, read or run outside of its own folders; None where it does not.

    `confined` names the settings that do so without naming a path, with the levels that do not. Files and
    folders in `allowed`, and all below those, are as good as the server's own.
    """
    text = as_text(level)
    kept = confined.get(name)
    if kept is not None and text.lower() not in {one.lower() for one in kept}:
        named = " or ".join(repr(one) for one in kept)
        told = f"{text!r} lets the server run a program or open files of the host; allowed is {named}"
        return LevelReach(told, NO_PROGRAM)
    if "$(" in text or "${" in text:
        told = f"{text!r} has a variable that can lead outside of the server's own folder"
        return LevelReach(told, "write the file's name without a variable, or leave the setting out")
    for word in _WORD.finditer(text):
        if _is_outside(word[0]) and not _is_allowed(text, word.start(), allowed):
            return LevelReach(
                f"{word[0]!r} leads outside of the server's own folder", _remedy(word[0], allowed)
            )
    return None


def _is_outside(word: str) -> bool:
    """A path from the root or a home, or one that climbs. A slash alone is a sign and no path."""
    return re.match(r"/.|~\w*(/|$)", word) is not None or _climbs(word)


def _climbs(word: str) -> bool:
    return ".." in word.split("/")


def _is_allowed(text: str, begin: int, allowed: Collection[Path]) -> bool:
    """Whether the path that begins there is allowed wherever it ends: only the server knows whether `/a b:c`
    is one path or three words."""
    paths = [text[begin : word.end()] for word in _WORD.finditer(text, begin)]
    return all(_is_below(path, allowed) for path in paths)


def _is_below(path: str, allowed: Collection[Path]) -> bool:
    # A link that lies in an allowed folder may lead anywhere.
    return (
        path.startswith("/")
        and not _climbs(path)
        and any(Path(os.path.realpath(path)).is_relative_to(one) for one in allowed)
    )


def _remedy(word: str, allowed: Collection[Path]) -> str:
    within = "name a file within the server's own folder, or leave the setting out"
    if not word.startswith("/") or _climbs(word):
        return f"{within}; --allow-path can allow a path that is written from the root, without `..`"
    if _is_below(word, allowed):
        folder = Path(word).parent
        return f"more follows the path, which may belong to its name: allow its folder, --allow-path {folder}"
    return f"{within}; to let the server write and read there: --allow-path {word}"


A_FORMULA = "it is a formula of the service: write the number that the server runs with"
FLAGS = re.compile(r"^([ ]*)databaseFlags:[ ]*\n((?:\1[ -].*\n?)+)", re.MULTILINE)
FLAG = re.compile(r"^[ ]*-[ ]+name:[ ]*(\S+)[ ]*\n[ ]*value:[ ]*(.*?)[ ]*$", re.MULTILINE)


@dataclass(frozen=True)
class SettingEntry:
    """A setting of an export, the how-manieth it is, and its value, which is empty where none is set."""

    number: int
    name: str
    value: str

    def untaken(self, written: str) -> ConfigurationLine | None:
        """The line that the entry is where it is no setting for a study; None where it may be one."""
        if self.value.startswith("*") or re.search(r"[{}]", self.value):
            return ConfigurationLine(self.number, written, self.name, self.value, A_FORMULA)
        return None


def entries(text: str) -> list[SettingEntry] | None:
    """The settings that an export gives a value; None for a text that is no export. Raises NoConfiguration
    for JSON of another kind."""
    found = _all(text)
    return None if found is None else [one for one in found if one.value]


def exported_lines(text: str) -> int:
    """How many lines a file has, or how many settings an export lists."""
    found = _all(text)
    return len(text.splitlines()) if found is None else len(found)


def _all(text: str) -> list[SettingEntry] | None:
    if text.lstrip()[:1] in ("{", "["):
        try:
            pairs = list(_of_json(json.loads(text)))
        except (ValueError, TypeError, KeyError, AttributeError):
            if text.lstrip()[0] == "[" and not re.match(r'\s*\[\s*["{\]]', text):
                return None
            raise _other() from None
    elif flags := FLAGS.search(text):
        pairs = [(name, value.strip("'\"")) for name, value in FLAG.findall(flags[2])]
    else:
        return None
    return [SettingEntry(number, name, value) for number, (name, value) in enumerate(pairs, 1)]


def _of_json(found: Any) -> Iterator[tuple[str, str]]:
    """Names and values. Raises one of several errors for JSON of another kind."""
    if isinstance(found, list):
        [found] = found
    if "Parameters" in found:
        for one in found["Parameters"]:
            yield one["ParameterName"], str(one.get("ParameterValue", ""))
    else:
        for one in found["settings"].get("databaseFlags", ()):
            yield one["name"], str(one["value"])


def _other() -> NoConfiguration:
    return NoConfiguration(
        "it is JSON, and no settings of RDS or Cloud SQL",
        "give what `aws rds describe-db-parameters` or `gcloud sql instances describe --format json` prints",
    )
