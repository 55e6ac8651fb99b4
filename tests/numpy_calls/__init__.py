"""Calls of each NumPy function that has a rule. A new rule needs a call here."""

from numpy_calls.arrays import ARRAYS
from numpy_calls.calculus import CALCULUS, POLYNOMIALS, SCIMATH
from numpy_calls.indexing import PICKING
from numpy_calls.linalg import ALGEBRA, CREATING, TRANSFORMS
from numpy_calls.manipulation import SHAPES
from numpy_calls.statistics import STATISTICS

CALLS = SHAPES | PICKING | STATISTICS | CALCULUS | POLYNOMIALS | SCIMATH
CALLS |= ALGEBRA | TRANSFORMS | CREATING

__all__ = ["ARRAYS", "CALLS"]
