"""Which options of makers of file systems, and of mounts, a study may give. None of them names a path or
a device, because a volume of Dyno's is all that may be written to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NUMBER = r"-?\d+(\.\d+)?[bskmgtpe]?"
FEATURES = r"[\^~]?[a-z0-9][a-z0-9_-]*"


def _keyed(*keys: str) -> str:
    """One `KEY` or `KEY=NUMBER` of those."""
    return rf"({'|'.join(keys)})(={NUMBER})?"


@dataclass(frozen=True)
class Fault:
    """What is wrong with options, and what is allowed instead."""

    reason: str
    hint: str


# A feature of ext4 with which mke2fs makes a device for journals of other file systems.
_EXT_FEATURES = rf"(?!journal_dev$){FEATURES}"
_EXT_EXTENDED = (
    r"[a-z]*discard"
    r"|(stride|stripe[_-]width|resize|lazy_itable_init|lazy_journal_init|num_backup_sb|packed_meta_blocks"
    r"|mmp_update_interval|orphan_file_size|desc[_-]size|assume_storage_prezeroed|encoding|encoding_flags"
    r"|quotatype|hash_alg)=[a-z0-9_.:-]+"
)
_EXT: Mapping[str, str] = {
    "-b": NUMBER,
    "-C": NUMBER,
    "-E": _EXT_EXTENDED,
    "-g": NUMBER,
    "-G": NUMBER,
    "-i": NUMBER,
    "-I": NUMBER,
    "-j": "",
    "-J": _keyed("size", "fast_commit_size"),
    "-m": NUMBER,
    "-N": NUMBER,
    "-O": _EXT_FEATURES,
    "-T": r"[a-z0-9_]+",
}
EXT = ("ext2", "ext3", "ext4")
_BTRFS_PROFILE = r"single|dup|raid\d+(c\d)?"

OPTIONS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(EXT, _EXT),
    "xfs": {
        "-b": _keyed("size", "log"),
        "-d": _keyed(
            "agcount",
            "agsize",
            "su",
            "sw",
            "sunit",
            "swidth",
            "noalign",
            "sectsize",
            "concurrency",
            "extszinherit",
            "cowextsize",
            "daxinherit",
        ),
        "-i": _keyed(
            "size",
            "perblock",
            "maxpct",
            "align",
            "attr",
            "projid32bit",
            "sparse",
            "nrext64",
            "exchange",
        ),
        "-l": rf"internal(=1)?|{_keyed('size', 'su', 'sunit', 'version', 'lazy-count', 'agnum', 'sectsize')}",
        "-m": _keyed("crc", "finobt", "inobtcount", "reflink", "rmapbt", "bigtime", "autofsck"),
        "-n": rf"version=ci|{_keyed('size', 'version', 'ftype', 'parent')}",
        "-s": _keyed("size", "sectsize", "log"),
    },
    "btrfs": {
        "-d": _BTRFS_PROFILE,
        "--data": _BTRFS_PROFILE,
        "-m": _BTRFS_PROFILE,
        "--metadata": _BTRFS_PROFILE,
        "-M": "",
        "--mixed": "",
        "-n": NUMBER,
        "--nodesize": NUMBER,
        "-s": NUMBER,
        "--sectorsize": NUMBER,
        "-O": FEATURES,
        "--features": FEATURES,
        "-R": FEATURES,
        "--runtime-features": FEATURES,
        "--csum": r"[a-z0-9]+",
        "--checksum": r"[a-z0-9]+",
    },
    "jfs": {"-O": "", "-s": NUMBER},
    "f2fs": {
        "-a": "[01]",
        "-i": "",
        "-o": NUMBER,
        "-O": FEATURES,
        "-s": NUMBER,
        "-w": NUMBER,
        "-z": NUMBER,
    },
}
"""Each maker's options, with the pattern of each item of its value, commas between; empty where it takes
none."""


def maker_fault(filesystem: str, words: Sequence[str]) -> Fault | None:
    """What is wrong with the words that a study adds to a maker's command line."""
    known = OPTIONS[filesystem]
    hint = f"mkfs.{filesystem} may be given: {', '.join(known)}; nothing that names a path or a device"
    for option, value in _pairs(words, known):
        if option not in known:
            kind = "option" if option.startswith("-") else "word that belongs to no option"
            return Fault(f"{option!r} is not allowed for mkfs.{filesystem}: an unknown {kind}", hint)
        if not _takes(known[option], value):
            given = "it takes no value" if not known[option] else f"its value {value!r} is not allowed"
            return Fault(f"{option} of mkfs.{filesystem}: {given}", hint)
    return None


def merged(filesystem: str, own: Sequence[str], words: Sequence[str]) -> list[str]:
    """Dyno's own options of a maker with those of a study. Makers of ext file systems take the last `-E`
    alone, so both go into one; of a key that stands in both, the study's counts, which is the later one."""
    extended, rest = list[str](), list[str]()
    for option, value in _pairs([*own, *words], OPTIONS[filesystem]):
        if option == "-E" and value is not None:
            extended.append(value)
        else:
            rest += [option] if value is None else [option, value]
    return [*rest, "-E", ",".join(extended)] if extended else rest


def any_maker_fault(words: Sequence[str]) -> Fault | None:
    """What is wrong with words that no maker may be given; None where at least one may."""
    faults = [maker_fault(filesystem, words) for filesystem in OPTIONS]
    if None in faults:
        return None
    allowed = "; ".join(f"{name}: {' '.join(known)}" for name, known in OPTIONS.items() if name[:3] != "ext")
    found = " ".join(words)
    return Fault(
        f"no maker of file systems may be given {found!r}",
        f"allowed are options that name no path and no device: ext2, ext3, ext4: {' '.join(_EXT)}; {allowed}",
    )


def _takes(pattern: str, value: str | None) -> bool:
    if not pattern:
        return value is None
    return value is not None and all(
        re.fullmatch(pattern, item, re.IGNORECASE) is not None for item in value.split(",")
    )


def _pairs(words: Sequence[str], known: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The options with their values, which may stand in the same word: `-b4096`, `--csum=sha256`."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, value = _split(word)
        if value is None and known.get(option):
            value = rest.pop(0) if rest else None
        yield option, value


def _split(word: str) -> tuple[str, str | None]:
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    if word.startswith("-") and len(word) > 2:
        return word[:2], word[2:]
    return word, None


_ELSEWHERE = re.compile(r"(?!(no)?dev$).*(dev|path|file|helper).*", re.IGNORECASE)
"""Names of options that lead to another device, a path or a program: `logdev`, `journal_path`."""
_NOT_A_MOUNT_OF_THE_VOLUME = re.compile(
    r"(r?bind|move|remount|loop|offset|sizelimit|encryption|r?(shared|private|slave|unbindable)"
    r"|make-.*|x-.*|verity.*|users?|owner|group|auto|noauto|nofail|comment|uuid|label)$",
    re.IGNORECASE,
)
_PANICS = frozenset({"errors=panic", "fatal_errors=panic", "onerror=panic"})


def mount_fault(options: Sequence[str]) -> Fault | None:
    """What is wrong with mount options: another source than the volume, another point, a halted host."""
    for option in options:
        name = option.partition("=")[0]
        if _ELSEWHERE.match(name) or "/" in option:
            reason = f"{option} names a device, a path or a program outside of the volume"
        elif _NOT_A_MOUNT_OF_THE_VOLUME.match(name):
            reason = f"{option} is an option of mount(8) for something else than the volume"
        elif option in _PANICS:
            reason = f"{option} halts the host where the file system finds an error"
        else:
            continue
        return Fault(reason, "leave it out: a study's volume is all that is mounted")
    return None
