"""Recompute and print the polynomials of `compiler/native/vector_math.py` and of gelu.

    python3 tools/polynomials.py

Each is a minimax polynomial, found by the Remez exchange algorithm. This needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

Real = Any
Function = Callable[[Real], Real]

LN2 = mpf("0.6931471805599453094172321214581765680755001343602553")
CENTRE = 2  # exp(x²) erfc(x) is a polynomial in (x - 2) / (x + 2)


class Problem(NamedTuple):
    """An approximation problem: function, interval, degree and weight of the error."""

    name: str
    dtype: str
    degree: int
    low: Real
    high: Real
    function: Function
    weight: Function


def remez(problem: Problem) -> tuple[list[Real], Real]:
    """Return the coefficients, lowest degree first, and the largest weighted error."""
    count = problem.degree + 2
    points = chebyshev(problem.low, problem.high, count)
    grid = chebyshev(problem.low, problem.high, 40 * count)
    for _ in range(12):
        coefficients = equioscillating(problem, points)
        errors = [
            problem.weight(x) * (mpmath.polyval(coefficients[::-1], x) - problem.function(x))
            for x in grid
        ]
        extrema = alternating_extrema(errors, count)
        if len(extrema) < count:
            break
        points = [grid[i] for i in extrema]
    return coefficients, max(map(abs, errors))


def chebyshev(low: Real, high: Real, count: int) -> list[Real]:
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    return [middle - half * mpmath.cos(mpmath.pi * (i + mpf(0.5)) / count) for i in range(count)]


def equioscillating(problem: Problem, points: list[Real]) -> list[Real]:
    """Return the polynomial whose errors at the points have one size and alternating signs."""
    n = problem.degree + 1
    matrix, values = mpmath.matrix(n + 1, n + 1), mpmath.matrix(n + 1, 1)
    for i, x in enumerate(points):
        for k in range(n):
            matrix[i, k] = x**k
        matrix[i, n] = (-1) ** i / problem.weight(x)
        values[i] = problem.function(x)
    return list(mpmath.lu_solve(matrix, values))[:n]


def alternating_extrema(errors: list[Real], count: int) -> list[int]:
    """Return the indices of the largest error between each two sign changes."""
    found: list[int] = []
    for i, error in enumerate(errors):
        if found and (error > 0) == (errors[found[-1]] > 0):
            if abs(error) > abs(errors[found[-1]]):
                found[-1] = i
        else:
            found.append(i)
    while len(found) > count:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return found


def near_zero(function: Function, value: Function) -> Function:
    """Return a function that uses another formula near 0, where its own would lose all digits."""
    return lambda x: value(x) if abs(x) < mpf(10) ** -15 else function(x)


def from_unit_interval(t: Real) -> Real:
    """Return the x with t = (x - 2) / (x + 2)."""
    return CENTRE * (1 + t) / (1 - t)


exp = near_zero(lambda r: (mpmath.expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6)
exp2 = near_zero(lambda r: (mpf(2) ** r - 1) / r, lambda r: LN2)
log = near_zero(lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3, lambda f: mpf(1) / 3 - f / 4)
log_odd = near_zero(
    lambda z: 2 * (mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda z: mpf(2) / 3 + z * 2 / 5,
)
erf = near_zero(
    lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z),
    lambda z: 2 / mpmath.sqrt(mpmath.pi) * (1 - z / 3),
)

sin = near_zero(
    lambda z: (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda z: mpf(-1) / 6 + z / 120,
)
cos = near_zero(
    lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2,
    lambda z: mpf(1) / 24 - z / 720,
)

asin = near_zero(
    lambda z: (mpmath.asin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda z: mpf(1) / 6 + z * 3 / 40,
)
atan = near_zero(
    lambda z: (mpmath.atan(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda z: mpf(-1) / 3 + z / 5,
)
sinh = near_zero(
    lambda z: (mpmath.sinh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
    lambda z: mpf(1) / 6 + z / 120,
)


def problems() -> list[Problem]:
    half, low, high = LN2 / 2 * 1.002, mpmath.sqrt(0.5) - 1, mpmath.sqrt(2) - 1
    odd, tiny = (high / (2 + high)) ** 2 * 1.002, mpf(10) ** -9
    eighth = (mpmath.pi / 4) ** 2 * 1.002
    return [
        Problem("exp", "f4", 4, -half, half, exp, lambda r: half**2),
        Problem("exp", "f8", 9, -half, half, exp, lambda r: half**2),
        Problem("exp2", "f4", 4, -0.5, 0.5, exp2, lambda r: abs(r) / mpf(2) ** r + tiny),
        Problem("log", "f4", 7, low * 1.001, high * 1.001, log, lambda f: f**2 + tiny),
        Problem("log", "f8", 6, 0, odd, log_odd, lambda z: z + tiny),
        Problem("erf below 1", "f4", 6, 0, 1, erf, lambda z: 1 / erf(z)),
        Problem("erf below 1", "f8", 11, 0, 1, erf, lambda z: 1 / erf(z)),
        Problem("sin", "f4", 2, 0, eighth, sin, lambda z: z + tiny),
        Problem("sin", "f8", 5, 0, eighth, sin, lambda z: z + tiny),
        Problem("cos", "f4", 2, 0, eighth, cos, lambda z: z**2 + tiny),
        Problem("cos", "f8", 5, 0, eighth, cos, lambda z: z**2 + tiny),
        Problem("asin", "f4", 4, 0, 0.2505, asin, lambda z: z + tiny),
        Problem("asin", "f8", 12, 0, 0.2505, asin, lambda z: z + tiny),
        Problem("atan", "f4", 5, 0, 0.2505, atan, lambda z: z + tiny),
        Problem("atan", "f8", 12, 0, 0.2505, atan, lambda z: z + tiny),
        Problem("sinh", "f4", 3, 0, 1, sinh, lambda z: z + tiny),
        Problem("sinh", "f8", 6, 0, 1, sinh, lambda z: z + tiny),
        Problem("power of 2", "f4", 5, -0.501, 0.501, exp2, lambda r: abs(r) + tiny),
        Problem("power of 2", "f8", 10, -0.501, 0.501, exp2, lambda r: abs(r) + tiny),
        Problem(
            "-log(erfc)",
            "f4",
            6,
            1,
            4,
            lambda x: -mpmath.log(mpmath.erfc(x)),
            lambda x: mpmath.erfc(x),
        ),
        Problem(
            "exp(x²) erfc(x)",
            "f8",
            11,
            mpf(1 - CENTRE) / (1 + CENTRE),
            mpf(6 - CENTRE) / (6 + CENTRE),
            lambda t: mpmath.exp(from_unit_interval(t) ** 2) * mpmath.erfc(from_unit_interval(t)),
            lambda t: mpmath.exp(-(from_unit_interval(t) ** 2)),
        ),
    ]


def main() -> None:
    mpmath.mp.dps = 60
    for problem in problems():
        coefficients, error = remez(problem)
        kind = np.dtype(problem.dtype).type
        print(f"{problem.name}, {problem.dtype}, weighted error {mpmath.nstr(error, 3)}")
        for c in coefficients:
            print(f"    {kind(mpmath.nstr(c, 30))!s}")


if __name__ == "__main__":
    main()
