"""Which levels a MariaDB or a MySQL takes. The server says so itself: `--verbose --help` reads all options,
complains, prints the values that it would run with, and ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from dbdyno.engines.engine import Refused, not_taken
from dbdyno.engines.mariadb.prefix import folders
from dbdyno.engines.values import FALSE, TRUE, as_text, quantity, respelled, same_value
from dbdyno.frozen import Level
from dbdyno.obtain import path
from dbdyno.obtain.installation import Installation

UNITS = ("K", "M", "G", "T", "P", "E")
SMALLEST, LARGEST = ("-9223372036854775808", "0"), ("18446744073709551615", "9223372036854775807")
"""Numbers beyond every range: the server brings them to the nearest that it takes. Not each type takes the
first."""
OF_THE_MACHINE = frozenset(
    {"max_connections", "open_files_limit", "table_definition_cache", "table_open_cache"}
)
"""What the server lowers to the files that it may open, and that other settings change."""
NAMING_FILES = frozenset({"log_bin"})
"""Settings whose value names a file: `ON` and `OFF` would be names as well."""
DESCRIPTION_MAX = 240


@dataclass(frozen=True)
class Shown:
    """What a server would run with, by name, and what it complained of."""

    values: Mapping[str, str]
    help: str
    complaints: tuple[str, ...]
    failed: bool

    @property
    def groups(self) -> frozenset[str]:
        """The groups of an option file that this server reads, by its own word."""
        told = re.search(r"^The following groups are read:(.*)$", self.help, re.MULTILINE)
        return frozenset(told[1].split()) if told else frozenset()

    def complaints_about(self, name: str) -> list[str]:
        spelt = re.compile(rf"(?<![\w-]){re.escape(name).replace('_', '[-_]')}(?![\w-])")
        return [line for line in self.complaints if spelt.search(line)]


Try = Callable[[Mapping[str, Level]], Shown]


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    return refused_by(
        lambda tried: shown_by(installation.command, tuple(folders(installation)), tried), settings
    )


def refused_by(ask: Try, settings: Mapping[str, Level]) -> dict[str, Refused]:
    def content(tried: Mapping[str, Level]) -> bool:
        shown = ask(tried)
        return not shown.failed and all(_taken(shown, name, level) for name, level in tried.items())

    return {
        name: Refused(_reason(ask({name: settings[name]}), name, settings[name]), _takes(ask, name, settings))
        for name in not_taken(content, settings)
    }


def option(name: str, level: Level) -> str:
    """A setting as the server's command line takes it."""
    spelt, text = name.replace("_", "-"), as_text(level)
    if name in NAMING_FILES and text.lower() in FALSE:
        return f"--skip-{spelt}"
    if is_switched_on(name, level):
        # Without a name the server warns that it depends on the host's.
        return f"--{spelt}={spelt}"
    return f"--{spelt}={text}"


def is_switched_on(name: str, level: Level) -> bool:
    """Whether a setting whose value names a file is on, and names none."""
    return name in NAMING_FILES and as_text(level).lower() in TRUE


def shown_by(command: tuple[str, ...], folders: tuple[str, ...], settings: Mapping[str, Level]) -> Shown:
    return _shown(command, folders, tuple(option(name, level) for name, level in settings.items()))


def listed(shown: str) -> dict[str, str]:
    """The settings and their values in what `--verbose --help` prints."""
    table = shown.split("\n--------", 1)[-1].split("\n\n", 1)[0]
    pairs = [line.split(None, 1) for line in table.splitlines()[1:]]
    return {pair[0].replace("-", "_"): pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair}


@lru_cache
def _shown(command: tuple[str, ...], folders: tuple[str, ...], options: tuple[str, ...]) -> Shown:
    done = path.answer(command, "--no-defaults", *folders, *options, "--verbose", "--help")
    complaints = [line for line in done.stderr.splitlines() if re.search(r"\[ERROR\]|\[Warning\]", line)]
    return Shown(
        listed(done.stdout), done.stdout, tuple(complaints or done.stderr.splitlines()), done.returncode != 0
    )


def _taken(shown: Shown, name: str, level: Level) -> bool:
    if any(
        re.search(r"\[ERROR\]|adjusted to|wasn't recognized", line) for line in shown.complaints_about(name)
    ):
        return False
    value = shown.values.get(name, "")
    # Words and paths are shown in other spellings than they are given in.
    return not quantity(value) or name in OF_THE_MACHINE or same_value(level, value)


def _reason(shown: Shown, name: str, level: Level) -> str:
    written = as_text(level)
    about = shown.complaints_about(name)
    if not shown.failed and not any("[ERROR]" in line for line in about):
        return f"would run with {shown.values.get(name, 'another value')} instead of {written}"
    return f"does not take {written!r}"


def _takes(ask: Try, name: str, settings: Mapping[str, Level]) -> str:
    """The nearest spelling that the server takes, and all that it takes as far as it says so."""
    shown, written = ask({name: settings[name]}), as_text(settings[name])
    if _good(ask, name, written):
        return "it takes it, but not beside the other settings"
    description = described(shown.help or ask({}).help, name)
    words = re.findall(r"[A-Za-z][\w-]*", description)
    folded = {word.lower(): word for word in words}
    near = [folded[word] for word in get_close_matches(written.lower(), folded, n=3)]
    good = next((one for one in [*respelled(written, UNITS), *near] if _good(ask, name, one)), "")
    guess = f'did you mean "{good}"? ' if good else ""
    limits = [_brought_to(ask, name, extremes) for extremes in (SMALLEST, LARGEST)]
    if all(limits):
        return f"{guess}it takes {limits[0]} to {limits[1]}"
    return f"{guess}the server says: {description}" if description else guess.strip()


def _good(ask: Try, name: str, written: str) -> bool:
    shown = ask({name: written})
    return not shown.failed and _taken(shown, name, written)


def _brought_to(ask: Try, name: str, extremes: Sequence[str]) -> str:
    """What the server makes of the first extreme that it reads; empty where it reads none as a number."""
    for extreme in extremes:
        shown = ask({name: extreme})
        refused = shown.failed or any("[ERROR]" in line for line in shown.complaints_about(name))
        value = shown.values.get(name, "")
        if not refused and quantity(value):
            return value
    return ""


def described(help: str, name: str) -> str:
    """What the server's help says of a setting, on one line."""
    option = re.escape(name).replace("_", "[-_]")
    found = re.search(
        rf"^  (?:-\w, )?--{option}(?:\[?=\S+)? *\n?((?: {{20,}}.*\n)+| .*\n(?: {{20,}}.*\n)*)",
        help,
        re.MULTILINE,
    )
    text = " ".join(found[1].split()) if found else ""
    return text if len(text) <= DESCRIPTION_MAX else f"{text[:DESCRIPTION_MAX].rsplit(' ', 1)[0]} ..."
