"""The conformance table: one row for each primitive, as data. The tests are generated from it.

A row says how a primitive is called, in chainrule, NumPy and PyTorch; from which range its inputs
are drawn; in which dtypes; and in which situations. A primitive without a row fails the suite.
"""

from cases import (
    activations,
    contraction,
    convolution,
    distances,
    elementwise,
    fourier,
    indexing,
    linalg,
    losses,
    normalisation,
    pairs,
    pooling,
    reductions,
    shaping,
    special,
    steps,
)
from cases.model import Case, Row, cases_of, situation

__all__ = ["CONSTANTS", "ROWS", "Case", "Row", "cases_of", "situation"]

FAMILIES = (
    elementwise,
    pairs,
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
"""What has derivatives."""

CONSTANTS = (
    *steps.ROWS,
    *pairs.CONSTANTS,
    *distances.CONSTANTS,
    *pooling.CONSTANTS,
    *linalg.CONSTANTS,
)
"""What has none: results of integers or bools, or piecewise constant ones."""
