"""The rules of the house on prose: pages, links, the map, the changelog, and what commits say."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from dbdyno.cli.verbs import OLD_NAMES
from tests.structure import ROOT
from tests.tidy import PARTS_OF_PREPARE, RULES, STAGES, Source, rule

PROSE_COLUMNS_MAX = 100
PAGE_WORDS_MAX = 1_600
LONG_PAGES_WORDS_MAX = {
    "docs/reference/commands.md": 2_400,
    "docs/reference/json.md": 1_800,
    "docs/reference/layers.md": 5_200,
    "docs/reference/study-format.md": 4_900,
}
"""What these hold is declared elsewhere: knobs, keys, metrics, parameters of URLs."""
DOCUMENTATION_WORDS_MAX = 45_000
WRITTEN_BY_THE_COMMANDS = "docs/reference/options.md"
"""What a command's help says once more: nobody writes it, and nobody reads it whole."""
MAP_LINES_MAX = 200
DECISION_LINES_MAX = 6
OLD_VERB = re.compile(rf"\bdyno\s+({'|'.join(OLD_NAMES)})\b(?!-)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLOW = ("build_check", "plan", "run", "trial")
DRIVER = "crates/driver/src/"
UNKNOWN_TO_A_ROOM: dict[str, tuple[str, ...]] = {
    "analysis": ("analyse", "findings"),
    "counting": (f"{DRIVER}count",),
    "engines": ("engines",),
    "how a load is run": (f"{DRIVER}run",),
    "how a stage works": tuple(f"trial.{stage}." for stage in sorted(STAGES | PARTS_OF_PREPARE)),
    "how a trial is carried out": ("run", "trial"),
    "how records were captured": ("engines", "host", "layers", "trial"),
    "layers": ("layers",),
    "protocols": tuple(f"{DRIVER}session::{one}" for one in ("firebird", "mysql", "postgresql", "sqlite")),
    "records": ("records",),
    "servers": ("engines", "host"),
    "sessions": (f"{DRIVER}session",),
    "studies": ("study",),
    "the flow": FLOW,
    "trials": ("trial",),
    "verbs": ("cli",),
    "workloads": (f"{DRIVER}workload",),
}
"""What the map says that a room knows nothing of, and the modules that it means."""
HELD_BY_A_RULE = frozenset({"clocks", "engines' names", "files", "the other stages"})


@rule
def each_version_has_a_date(source: Source) -> Iterator[str]:
    if source.path != "CHANGELOG.md":
        return
    for heading in re.findall(r"^## (.*)", source.text, re.MULTILINE):
        if not re.fullmatch(r"\d+\.\d+\.\d+, (\d{4}-\d{2}-\d{2}|unreleased)", heading):
            yield f"{heading}: not VERSION, YYYY-MM-DD or VERSION, unreleased"


@rule
def no_text_names_a_verb_by_its_old_name(source: Source) -> Iterator[str]:
    """The changelog tells what was, and the table of old names says them."""
    if source.path in ("CHANGELOG.md", "src/dbdyno/cli/verbs/__init__.py"):
        return
    for found in OLD_VERB.finditer(source.text):
        number = source.text.count("\n", 0, found.start()) + 1
        yield f"line {number}: {found[0]} is now dyno {OLD_NAMES[found[1]]}"


@rule
def a_change_is_told_in_a_line(source: Source) -> Iterator[str]:
    if source.path == "CHANGELOG.md":
        for number, line in enumerate(source.lines, 1):
            if line.startswith("  "):
                yield f"line {number}: goes on from the line before: {line.strip()[:60]}"


@rule
def the_map_fits_two_hundred_lines_and_a_decision_six(source: Source) -> Iterator[str]:
    if source.path == "ARCHITECTURE.md" and len(source.lines) > MAP_LINES_MAX:
        yield f"has {len(source.lines)} lines; decisions belong to docs/decisions"
    if source.path.startswith("docs/decisions/"):
        for decision in re.findall(r"^- .*(?:\n  .*)*", source.text, re.MULTILINE):
            if (lines := decision.count("\n") + 1) > DECISION_LINES_MAX:
                yield f"{lines} lines: {decision[2:60]}"


@rule
def prose_is_wrapped(source: Source) -> Iterator[str]:
    """Tables, and what a fence shows as it stands, may be wider."""
    if not source.path.endswith(".md"):
        return
    for line in _prose(source.text).splitlines():
        if len(line) > PROSE_COLUMNS_MAX and not line.lstrip().startswith("|"):
            yield f"{len(line)} columns: {line.strip()[:60]}"


def links_lead_somewhere(sources: Iterable[Source]) -> list[str]:
    """Links of a page to a file that is not there, or to a heading that its page has not."""
    pages = {source.path: source for source in sources if source.path.endswith(".md")}
    faults = []
    for page in pages.values():
        for link in LINK.findall(_prose(page.text)):
            path, _, heading = link.partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), path)) if path else page.path
            if "://" in link or link.startswith("mailto:"):
                continue
            if to not in pages and not (ROOT / to).exists():
                faults.append(f"{page.path}: nothing is at {link}")
            elif heading and (to not in pages or heading not in set(_anchors(pages[to].text))):
                faults.append(f"{page.path}: no such heading: {link}")
    return faults


RULES["links_lead_somewhere"] = links_lead_somewhere


def the_documentation_is_short(sources: Iterable[Source]) -> list[str]:
    """A page that is too long for one look, and a documentation that nobody reads whole. A word has a letter
    or a digit, so the bars of tables are none. Decisions are not the documentation, and the page of options
    is written by the commands themselves."""
    pages = {
        source.path: sum(bool(re.search(r"\w", word)) for word in source.text.split())
        for source in sources
        if source.path == "README.md" or re.match(r"docs/(?!decisions/).*\.md$", source.path)
        if source.path != WRITTEN_BY_THE_COMMANDS
    }
    faults = [
        f"{path} has {words} words"
        for path, words in pages.items()
        if words > LONG_PAGES_WORDS_MAX.get(path, PAGE_WORDS_MAX)
    ]
    if (words := sum(pages.values())) > DOCUMENTATION_WORDS_MAX:
        faults.append(f"the documentation has {words} words")
    return faults


RULES["the_documentation_is_short"] = the_documentation_is_short


def _prose(text: str) -> str:
    return FENCED.sub("", text)


def _anchors(text: str) -> Iterator[str]:
    """The names that forges give to the headings of a page: the second of a name has `-1` at its end."""
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+)$", _prose(text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        yield f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1


def subjects_are_short_and_bodies_say_why(messages: Iterable[str]) -> list[str]:
    """Subjects of commits over 60 characters, and commits without a body."""
    faults = []
    for message in messages:
        subject, _, body = message.strip().partition("\n")
        if len(subject) > 60:
            faults.append(f"{len(subject)} characters: {subject}")
        if not body.strip():
            faults.append(f"no body: {subject}")
    return faults


def the_map_names_every_room(table: str, rooms: Iterable[str]) -> list[str]:
    """Rooms that the first column of a Markdown table lacks, and names in it that are no room."""
    listed = {name for row in _rows(table) for name in _rooms_in(row[0])}
    there = set(rooms)
    return [f"not in the map: {room}" for room in sorted(there - listed)] + [
        f"no room: {name}" for name in sorted(listed - there)
    ]


def the_map_tells_who_knows_whom(table: str, arrows: Mapping[str, Collection[str]]) -> list[str]:
    """Imports that contradict the last column of the map, and words of it that no rule holds.

    `arrows` are those of both languages, between modules; a module of the driver has its room's path before
    its name.
    """
    faults = []
    for first, *_, last in _rows(table):
        terms = {term for part in last.split(";") for term in part.strip().split(", ")} - {""}
        for room in _rooms_in(first):
            ways = {(module, to) for module in arrows if _lies_in(module, room) for to in arrows[module]}
            for term in sorted(terms - HELD_BY_A_RULE):
                if term == "everything":
                    known = sorted(f"{module} -> {to}" for module, to in ways if not _lies_in(to, room))
                elif term in UNKNOWN_TO_A_ROOM:
                    known = sorted(
                        f"{module} -> {to}"
                        for module, to in ways
                        if any(_lies_in(to, one) for one in UNKNOWN_TO_A_ROOM[term])
                    )
                else:
                    known = [f"{term}: no rule knows what that is"]
                faults += [f"{room} knows {one}" for one in known]
    return faults


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _rooms_in(cell: str) -> list[str]:
    names = re.findall(r"`([^`]+)`", cell)
    return [name.rstrip("/").removesuffix(".py").removesuffix(".rs") for name in names]


def _lies_in(module: str, room: str) -> bool:
    """Whether a module is a room or stands in it; one that ends in a dot holds only what stands below it."""
    return module == room or module.startswith(room if room.endswith(".") else (f"{room}.", f"{room}::"))
