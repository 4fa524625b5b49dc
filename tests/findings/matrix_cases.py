"""What the tests of matrix share with others."""

from __future__ import annotations

from dbdyno.findings.matrix import Matrix, matrix
from tests.analyse.matrix_cases import runs


def found() -> Matrix:
    return matrix(runs())
