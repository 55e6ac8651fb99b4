"""Rows of functions without a derivative: integers, bools, piecewise constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.row import (
    FIELD,
    Strided,
    constant,
    situation,
)
from conformance.situations import (
    BINARY,
    EMPTY_REDUCTION,
    REDUCTION,
    UNARY,
    all_dims,
)

_COMPARED = (*BINARY, situation("ties", [1, 2, 3], [1, 0, 4]))
_STRANGE = (*UNARY, situation("strange", [np.nan, np.inf, -np.inf, -0.0]))
_LOGICAL = (
    *BINARY,
    situation("bools", np.array([True, True, False]), np.array([True, False, False])),
)
_BITS = (
    situation("ints", np.array([1, 6, 255]), np.array([3, 5, 16])),
    situation("bools", np.array([True, True, False]), np.array([True, False, False])),
)
_POSITIONS = (
    situation("rows", (2, 3), axis=1, keepdims=False),
    situation("keepdims", (3, 2), axis=0, keepdims=True),
    situation("everything", (2, 3), axis=None, keepdims=False),
    situation("ties", [[1, 3, 3], [2, 2, 2]], axis=1, keepdims=False),
    situation("non-contiguous", Strided((2, 3)), axis=0, keepdims=False),
)
_TRUTHS = (
    *REDUCTION,
    *EMPTY_REDUCTION,
    situation("zeros", [[0, 1], [0, 0], [1, 1]], axis=(1,), keepdims=False),
)


def _torch_truth(name: str) -> Callable[..., Any]:
    def truth(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        for dim in reversed(all_dims(x, axis)):
            x = getattr(torch, name)(x, dim, keepdim=keepdims)
        return x.bool()

    return truth


ROWS = (
    *[constant(name, _STRANGE, dtypes=FIELD) for name in ("isnan", "isinf", "isfinite")],
    constant("equal", _COMPARED, dtypes=FIELD, cr="eq", torch="eq"),
    constant("not_equal", _COMPARED, dtypes=FIELD),
    *[constant(name, _COMPARED) for name in ("less", "less_equal", "greater", "greater_equal")],
    *[constant(name, _LOGICAL) for name in ("logical_and", "logical_or", "logical_xor")],
    constant("logical_not", (*UNARY, situation("bools", np.array([True, False])))),
    constant("bitwise_and", _BITS, call=lambda library, x, y: operator.and_(x, y)),
    constant("bitwise_or", _BITS, call=lambda library, x, y: operator.or_(x, y)),
    constant("bitwise_xor", _BITS, call=lambda library, x, y: operator.xor(x, y)),
    constant(
        "bitwise_invert",
        tuple(situation(s.name, s.inputs[0]) for s in _BITS),
        call=lambda library, x: operator.invert(x),
    ),
    constant("argmax", _POSITIONS, torch=None),  # of ties PyTorch may name any
    constant("argmin", _POSITIONS, torch=None),
    constant(
        "argsort",
        (
            situation("rows", (2, 3), axis=1, stable=True),
            situation("ties", [2, 1, 2, 1], axis=0, stable=True),
            situation("size-0", (2, 0), axis=1, stable=True),
        ),
        cr=lambda cr, x, axis, stable: cr.argsort(x, axis),
        torch=lambda torch, x, axis, stable: torch.argsort(x, dim=axis, stable=stable),
    ),
    constant("all", _TRUTHS, torch=_torch_truth("all")),
    constant("any", _TRUTHS, torch=_torch_truth("any")),
    constant(
        "count_nonzero",
        _TRUTHS,
        torch=lambda torch, x, axis, keepdims: (x != 0).sum(all_dims(x, axis), keepdim=keepdims),
    ),
)
