"""Rows of elementwise functions."""

from __future__ import annotations

import numpy as np

from chainrule.backend import CPU
from conformance.row import (
    COMPLEX,
    REAL,
    Strided,
    StridedRows,
    kink,
    row,
    situation,
)
from conformance.situations import (
    BINARY,
    MASK,
    UNARY,
    recorded,
)

ARITHMETIC = (
    row("add", BINARY),
    row("subtract", BINARY),
    row("multiply", BINARY),
    row("divide", BINARY, (-1, 1), (0.5, 2)),
    row("negative", UNARY),
    row(
        "pow",
        (
            *BINARY,
            situation("exponent-0", [2, 0.5], [0, 0], peer=False),  # it drops ∂²/∂x∂y
            kink("base-0", [0, 0, 0], [0, 2, 3]),
        ),
        (0.5, 2),
        (-2, 3),
    ),
    row(
        "power",
        (
            *[situation(f"{s.name}-{p}", *s.inputs, exponent=p) for s in UNARY for p in (1.5, 3)],
            situation("non-contiguous", Strided((2, 3)), exponent=-0.5),
            situation("size-0", (0,), exponent=0.5),
            situation("root", (3,), exponent=0.5),
            situation("zero", (3,), exponent=0),
            situation("one", (3,), exponent=1),
            situation("two", (3,), exponent=2.0),
            kink("base-0", [0, 0], exponent=0),
            kink("base-0-positive", [0, 0], exponent=3),
        ),
        (0.5, 2),
        cr=recorded("power"),
        call=lambda library, x, exponent: x**exponent,
    ),
    row("square", UNARY),
    row("reciprocal", UNARY, (0.5, 2)),
    row("remainder", BINARY, (5, 6), (1.5, 1.9), dtypes=REAL),
)

EXPONENTIAL = (
    row("sqrt", UNARY, (0.5, 2)),
    row(
        "root_of_spread",
        (*UNARY, kink("zero", [0, 4, 0], peer=False)),  # a root of PyTorch's has inf there
        (0.5, 2),
        dtypes=REAL,
        call=lambda library, x: library.sqrt(x),
        cr=recorded("root_of_spread"),
    ),
    row("exp", UNARY),
    row("expm1", UNARY),
    row("log", UNARY, (0.5, 2)),
    row("log1p", UNARY, (-0.5, 1)),
    row("log2", UNARY, (0.5, 2)),
    row("log10", UNARY, (0.5, 2)),
    row("sigmoid", UNARY, (-3, 3), np=lambda np, x: 1 / (1 + np.exp(-x))),
)

TRIGONOMETRIC = tuple(
    row(name, UNARY, domain)
    for name, domain in {
        "sin": (-3, 3),
        "cos": (-3, 3),
        "tan": (-1, 1),
        "asin": (-0.8, 0.8),
        "acos": (-0.8, 0.8),
        "atan": (-2, 2),
        "sinh": (-2, 2),
        "cosh": (-2, 2),
        "tanh": (-2, 2),
        "asinh": (-2, 2),
        "acosh": (1.2, 3),
        "atanh": (-0.8, 0.8),
    }.items()
)

_TIES = kink("ties", [1, 2, 3, -1], [1, 2, 0, 5])
_NAN = kink("nan", [np.nan, 2, np.nan, -1], [1, np.nan, np.nan, 5])
_NAN_BOUND = kink("nan", [np.nan, 2, np.nan, -1], [1, np.nan, np.nan, 5], peer=False)

KINKS = (
    row("abs", (*UNARY, kink("kinks", [-1, 0, 2]))),
    row(
        "relu",
        (*UNARY, kink("kinks", [-1, 0, 2, np.nan])),
        dtypes=REAL,
        np=lambda np, x: np.maximum(x, 0),
    ),
    *[
        row(name, (*UNARY, kink("kinks", [-1, 0, 1.5])), (-3, 3), dtypes=REAL)
        for name in ("sign", "floor", "ceil", "trunc", "round")
    ],
    row("floor_divide", BINARY, (-3, 3), (0.5, 2), dtypes=REAL, torch=None),  # refused there
    row("maximum", (*BINARY, _TIES, _NAN), dtypes=REAL),
    row("minimum", (*BINARY, _TIES, _NAN), dtypes=REAL),
    row(
        "clamp_min",
        (*BINARY, kink("ties", [1, 2, 3], [1, 2, 0], peer=False), _NAN_BOUND),  # JAX halves ties
        dtypes=REAL,
        np="maximum",
    ),
    row(
        "clamp_max",
        (*BINARY, kink("ties", [1, 2, 3], [1, 2, 0], peer=False), _NAN_BOUND),
        dtypes=REAL,
        np="minimum",
    ),
    row(
        "clamp",
        (
            situation("plain", (2, 3), low=-0.4, high=0.5),
            situation("low", (2, 3), low=0.1, high=None),
            situation("high", (2, 3), low=None, high=0.1),
            situation("0-d", (), low=-0.5, high=0.5),
            situation("size-0", (0,), low=0.0, high=1.0),
            situation("non-contiguous", Strided((2, 3)), low=-0.4, high=0.5),
            kink("kinks", [-2, -1, 0, 1, 2, np.nan], low=-1.0, high=1.0),
            kink("crossed-bounds", [-2, 0, 2], low=1.0, high=-1.0),
        ),
        dtypes=REAL,
        call=lambda library, x, low, high: library.clip(x, low, high),
    ),
    row(
        "where",
        (
            situation("plain", MASK, (2, 3), (2, 3)),
            situation("broadcast", np.array([True, False, True]), (2, 1), ()),
            situation("broadcast-condition", np.array([[True], [False]]), (3,), (2, 3)),
            situation("0-d", np.array(True), (), ()),
            situation("0-d-condition", np.array(False), (2,), (2,)),
            situation("size-0", np.zeros((0, 1), bool), (0, 2), (2,)),
            situation("non-contiguous", MASK, Strided((2, 3)), Strided((2, 3))),
        ),
    ),
    row(
        "masked",
        (
            situation("plain", (2, 3), MASK),
            situation("broadcast", (2, 1), np.array([True, False, True])),
            situation("broadcast-mask", (2, 3), np.array([True, False, True])),
            situation("0-d", (), np.array(True)),
            situation("0-d-and-mask", (), np.array([True, False])),
            situation("size-0", (0,), np.zeros(0, bool)),
            situation("non-contiguous", Strided((2, 3)), MASK),
        ),
        cr=recorded("masked"),
        np=lambda np, x, mask: np.where(mask, x, np.zeros((), x.dtype)),
        torch=lambda torch, x, mask: torch.where(mask, x, torch.zeros((), dtype=x.dtype)),
    ),
)

PARTS = (
    row("conj", UNARY, dtypes=COMPLEX, call=lambda library, x: x.conj()),
    row("real", UNARY, dtypes=COMPLEX, cr=recorded("real")),
    row("imag", UNARY, dtypes=COMPLEX, cr=recorded("imag")),
    row("real_part", UNARY, dtypes=COMPLEX, call=lambda library, x: x.real),
    row("imag_part", UNARY, dtypes=COMPLEX, call=lambda library, x: x.imag),
    row(
        "real_pairs",
        (
            situation("values", (2, 3)),
            situation("0-d", ()),
            situation("size-0", (0, 3), peer=False),
            situation("non-contiguous", Strided((2, 3))),
        ),
        dtypes=COMPLEX,
        cr=recorded("real_pairs"),
        np=lambda np, x: np.stack([x.real, x.imag], -1),
        torch=lambda torch, x: torch.view_as_real(x),
    ),
    row(
        "complex_pairs",
        (
            situation("values", (3, 2)),
            situation("0-d", (2,)),
            situation("size-0", (0, 2), peer=False),
            situation("non-contiguous", StridedRows((3, 2))),
        ),
        dtypes=REAL,
        cr=recorded("complex_pairs"),
        np=lambda np, x: x[..., 0] + np.asarray(1j, np.result_type(x, np.complex64)) * x[..., 1],
        torch=lambda torch, x: torch.view_as_complex(x),
    ),
    row(
        "astype",
        (
            situation("to-complex", (2, 3), dtype=np.dtype("complex128"), dtypes=REAL),
            situation("to-complex-0-d", (), dtype=np.dtype("complex128"), dtypes=REAL),
            situation("wider", (2, 3), dtype=np.dtype("float64"), dtypes=("float32",)),
            situation(
                "narrower", (2, 3), dtype=np.dtype("float32"), dtypes=("float64",), smooth=False
            ),
            situation(
                "narrower-complex", (3,), dtype=np.dtype("complex64"), dtypes=COMPLEX, smooth=False
            ),
            situation("size-0", (0, 2), dtype=np.dtype("complex64"), dtypes=REAL),
            situation("non-contiguous", Strided((2, 3)), dtype=np.dtype("complex128"), dtypes=REAL),
        ),
        cr=lambda cr, x, dtype: cr.astype(x, dtype),
        np=lambda np, x, dtype: np.astype(x, dtype),
        torch=lambda torch, x, dtype: x.to(getattr(torch, dtype.name)),
    ),
    row(
        "to_device",
        tuple(situation(s.name, *s.inputs, source=CPU, target=CPU) for s in UNARY),
        cr=recorded("to_device"),
        np=lambda np, x, source, target: x,
        torch=lambda torch, x, source, target: x.to(str(target), copy=True),
    ),
    row("clone", UNARY, np="copy"),
)

ROWS = (*ARITHMETIC, *EXPONENTIAL, *TRIGONOMETRIC, *KINKS, *PARTS)
