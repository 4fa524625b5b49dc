"""Small programs that gcc builds, which two builds are made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

STORE = r"""
#include <string.h>
#include <stdio.h>

__thread int depth, width;
static const char *const names[] = {"read", "write", "commit"};
const int sizes[] = {4096, 8192, 16384, 32768, 65536};
static long counters[64];
int (*chosen)(const char *, int) = 0;

__attribute__((noinline)) static double scaled(double value) { return value * 1.0625 + 0.3; }

__attribute__((noinline)) int hashed(const char *text, int length)
{
    int sum = 17;
    for (int at = 0; at < length; at++) sum = sum * 31 + text[at];
    return sum ^ sizes[length & 3];
}

int step(int kind, char *into)
{
    depth++;
    switch (kind) {
    case 0: strcpy(into, "begin the transaction"); return hashed(into, 5);
    case 1: return snprintf(into, 64, "%s at %f", names[width % 3], scaled(width));
    case 2: counters[kind]++; return 12;
    case 3: return (int)counters[width & 63] * 3;
    case 4: return kind << width;
    case 5: chosen = hashed; return chosen(into, 9);
    case 6: puts(names[1]); return 8;
    default: return -1;
    }
}
"""
EARLIER = r"""
const char banner[] = "something that stands before all others and moves them";
const double weights[] = {1.5, 2.5, 3.5};
int bits(unsigned long word) { return __builtin_ctzl(word); }
double earlier(int at) { return weights[at] * 2.25 + banner[at]; }
"""


MAIN = "int step(int, char *); int main(int count, char **words) { return step(count, words[0]); }"


def built(folder: Path, name: str, *arguments: str, program: bool = False, **sources: str) -> Path:
    """A shared library, or a program, of these sources in the order of linking, with `-O2` unless an argument
    says otherwise."""
    place = folder / name
    place.mkdir()
    texts = sources or {"store": STORE}
    for source, text in texts.items():
        (place / f"{source}.c").write_text(text)
    kind = () if program else ("-fPIC", "-shared")
    command = ["gcc", "-O2", *kind, *arguments, *(f"{source}.c" for source in texts), "-o", "built"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
    return place / "built"


def stripped(path: Path) -> Path:
    """The same build without its symbols."""
    bare = path.with_name("stripped")
    subprocess.run(["strip", "-o", str(bare), str(path)], check=True)
    return bare
