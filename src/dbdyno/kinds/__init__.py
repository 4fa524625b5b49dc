"""Kinds of runs, a file each: how one begins and goes on, what comes next, and what it found."""
