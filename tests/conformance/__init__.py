"""The conformance table: one row for each primitive, as data. The tests are generated from it.

A row holds the calls of a primitive in chainrule, NumPy and PyTorch, the range of its inputs, its
dtypes and its situations. A primitive without a row fails the suite.
"""

from conformance.row import Case, Row, cases_of, situation
from conformance.rows import (
    activations,
    binary,
    contraction,
    convolution,
    distances,
    elementwise,
    fourier,
    indexing,
    linalg,
    losses,
    nondifferentiable,
    normalisation,
    pooling,
    reductions,
    shaping,
    special,
)

__all__ = ["CONSTANTS", "ROWS", "Case", "Row", "cases_of", "situation"]

FAMILIES = (
    elementwise,
    binary,
    special,
    activations,
    losses,
    normalisation,
    reductions,
    shaping,
    indexing,
    pooling,
    contraction,
    convolution,
    fourier,
    linalg,
    distances,
)

ROWS: tuple[Row, ...] = sum([family.ROWS for family in FAMILIES], ())
"""Differentiable primitives."""

CONSTANTS = (
    *nondifferentiable.ROWS,
    *binary.CONSTANTS,
    *distances.CONSTANTS,
    *pooling.CONSTANTS,
    *linalg.CONSTANTS,
)
"""Primitives without a derivative: integer, boolean or piecewise constant results."""
