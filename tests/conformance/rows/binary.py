"""Rows of binary functions, and of further elementwise functions."""

from __future__ import annotations

import numpy as np

from conformance.row import COMPLEX, REAL, constant, kink, row, situation
from conformance.situations import BINARY, UNARY, recorded

NAN, INF = np.nan, np.inf


ROWS = (
    row("atan2", (*BINARY, kink("origin", [0, 0, 0, 3], [0, -2, 2, 0])), dtypes=REAL, np="arctan2"),
    row(
        "hypot",
        (*BINARY, kink("origin", [0, 0, 2], [0, -2, 0], peer=False)),  # it has nan there
        dtypes=REAL,
    ),
    row(
        "logaddexp",
        (
            *BINARY,
            situation("ties", [1, 7, -7], [1, 7, -7]),
            kink("infinities", [INF, -INF, -INF, 0], [0, 0, INF, -INF]),
            kink("equal-infinities", [INF, -INF], [INF, -INF], peer=False),  # it has nan there
        ),
        (-3, 3),
        dtypes=REAL,
    ),
    row("logaddexp2", (*BINARY, situation("ties", [1, 7, -7], [1, 7, -7])), (-3, 3), dtypes=REAL),
    row(
        "xlogy",
        (
            *BINARY,
            situation("x-0", [0, 0], [0.5, 2]),
            kink("corner", [0, 0, 2], [0, NAN, 1], peer=False),  # it has nan for y there
        ),
        (-1, 1),
        (0.5, 2),
        dtypes=REAL,
        np=lambda np, x, y: np.where((x == 0) & (y == y), 0.0, x * np.log(y)).astype(x.dtype),
    ),
    row(
        "xlog1py",
        (
            *BINARY,
            situation("x-0", [0, 0], [-0.5, 1]),
            kink("corner", [0, 0, 2], [-1, NAN, 0], peer=False),
        ),
        (-1, 1),
        (-0.5, 1),
        dtypes=REAL,
        cr=lambda cr, x, y: cr.special.xlog1py(x, y),
        np=lambda np, x, y: np.where((x == 0) & (y == y), 0.0, x * np.log1p(y)).astype(x.dtype),
        torch=lambda torch, x, y: torch.special.xlog1py(x, y),
    ),
    row(
        "copysign",
        (
            *[situation(s.name, *s.inputs) for s in BINARY],
            kink("zeros", [0, -0.0, 1, -2, 3], [1, -1, -0.0, 0, -INF]),
        ),
        dtypes=REAL,
    ),
    row("nextafter", BINARY, dtypes=REAL),
    row(
        "fmod", (*BINARY, situation("signs", [-5.5, 5.5], [2, -2])), (5, 6), (1.5, 1.9), dtypes=REAL
    ),
    row(
        "truncated_quotient",
        BINARY,
        (-3, 3),
        (0.5, 2),
        dtypes=REAL,
        call=lambda library, x, y: library.div(x, y, rounding_mode="trunc"),
        np=lambda np, x, y: np.trunc(x / y),
    ),
    *[
        row(
            name,
            (
                *BINARY,
                kink("ties", [1, 2, 3, -1], [1, 2, 0, 5]),
                kink("nan", [NAN, 2, NAN, -1], [1, NAN, NAN, 5]),
            ),
            (-3, 3),
            (-2, 3),
            dtypes=REAL,
        )
        for name in ("fmax", "fmin")
    ],
    row(
        "heaviside",
        (
            *BINARY,
            situation("values", [0, 0, 1], [0.5, 2, 3], smooth=False),
            kink("nan", [NAN], [1]),
        ),
        dtypes=REAL,
        torch=None,  # it has no derivative
    ),
    row(
        "nan_to_num",
        (
            *[situation(s.name, *s.inputs, nan=0.0, posinf=None, neginf=None) for s in UNARY],
            kink("strange", [NAN, INF, -INF, 2], nan=1.5, posinf=9.0, neginf=None),
            situation(  # PyTorch refuses these
                "complex", (2, 3), nan=0.0, posinf=None, neginf=None, dtypes=COMPLEX, peer=False
            ),
        ),
        dtypes=REAL,
    ),
    row("exp2", UNARY, (-3, 3), dtypes=REAL),
    row("cbrt", UNARY, (0.5, 2), dtypes=REAL, cr=recorded("cbrt"), torch=None),
    row(
        "complex",
        BINARY,
        dtypes=REAL,
        np=lambda np, x, y: x + np.complex64(1j) * y,
    ),
)

_INTEGERS = (
    situation("ints", np.array([12, -4, 0, 7]), np.array([18, 6, 0, 5])),
    situation("broadcast", np.array([[12], [5]]), np.array([18, 10])),
    situation("narrow", np.array([12, 4], np.int32), np.array([18, 6], np.int32)),
)
_SHIFTS = (
    situation("ints", np.array([12, -4, 0, 7]), np.array([1, 2, 3, 0])),
    situation("broadcast", np.array([[12], [5]]), np.array([1, 4])),
)

CONSTANTS = (
    constant("signbit", (*UNARY, situation("strange", [NAN, INF, -INF, -0.0, 0.0]))),
    constant(
        "exponent",
        (*UNARY, situation("strange", [NAN, INF, -INF, -0.0, 1.0, 1024.0])),
        (-100, 100),
        cr=recorded("exponent"),
        np=lambda np, x: np.frexp(x)[1],
        torch=lambda torch, x: torch.frexp(x)[1],
    ),
    constant("gcd", _INTEGERS),
    constant("lcm", _INTEGERS),
    constant("bitwise_left_shift", _SHIFTS),
    constant("bitwise_right_shift", _SHIFTS),
)
