"""Data sets that a workload is given. They are large, so what they are made with is imported where it is
used."""

VECTOR_SEARCH = "vector_search"
"""The workload that searches a set of vectors."""
