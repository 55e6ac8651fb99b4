"""Rows of reads and writes at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.backend import numpy_xp
from chainrule.primitives.indexing import getitem, index
from chainrule.primitives.primitive import forward_of
from chainrule.primitives.shaping import permute_dims, reshape
from conformance.row import (
    REAL,
    Strided,
    kink,
    row,
    situation,
    step,
)
from conformance.situations import (
    MASK,
    recorded,
)


def _torch_index(torch: Any, key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(torch.from_numpy(p) if isinstance(p, np.ndarray) else p for p in parts)


def _index_add(np: Any, x: Any, shape: Any, key: Any) -> Any:
    out = np.zeros(shape, x.dtype)
    np.add.at(out, key, x)
    return out


def _add_along_axis(np: Any, x: Any, index: Any, shape: Any, axis: int) -> Any:
    out = np.zeros(shape, x.dtype)
    for where in np.ndindex(index.shape):
        target = list(where)
        target[axis] = index[where]
        out[tuple(target)] += x[where]
    return out


def _cr_assign(cr: Any, base: Any, value: Any, path: Any) -> Any:
    out = base.clone()
    part = out
    for primitive, settings in path[:-1]:
        part = primitive.apply(part, **settings)
    if path:
        part[path[-1][1]["key"]] = value
    else:
        part.copy_(value)
    return out


def _np_assign(np: Any, base: Any, value: Any, path: Any) -> Any:
    out = base.copy()
    part = out
    for primitive, settings in path[:-1]:
        part = forward_of(primitive, numpy_xp)(part, **settings)
    part[path[-1][1]["key"] if path else ...] = value
    return out


def _torch_assign(torch: Any, base: Any, value: Any, path: Any) -> Any:
    steps = {
        "permute_dims": lambda x, axes: x.permute(axes),
        "reshape": lambda x, shape: x.view(shape),
        "getitem": lambda x, key: x[key],
    }
    out = base.clone()
    part = out
    for primitive, settings in path[:-1]:
        part = steps[primitive.name](part, **settings)
    part[_torch_index(torch, path[-1][1]["key"]) if path else ...] = value
    return out


_REPEATED = np.array([2, 0, 2])


def _np_at(ufunc: str) -> Any:
    def function(np: Any, x: Any, value: Any, key: Any, own: bool = True) -> Any:
        out = x.copy()
        if not own:
            out[key] = -np.inf if ufunc == "maximum" else np.inf
        getattr(np, ufunc).at(out, key, value)
        return out

    return function


def _torch_extreme_at(way: str) -> Any:
    def function(torch: Any, x: Any, value: Any, key: Any, own: bool) -> Any:
        index = torch.from_numpy(key[0]).reshape((-1,) + (1,) * (x.ndim - 1)).expand(value.shape)
        return torch.scatter_reduce(x, 0, index, value, way, include_self=own)

    return function


_EXTREMES_AT = (
    situation("plain", (3,), (3,), key=(_REPEATED,), own=True),
    situation("not-included", (3,), (3,), key=(_REPEATED,), own=False),
    situation("rows", (3, 2), (3, 2), key=(_REPEATED,), own=True),
    situation("size-0", (3,), (0,), key=(np.zeros(0, np.int64),), own=True),
    situation("non-contiguous", Strided((3, 2)), Strided((3, 2)), key=(_REPEATED,), own=True),
    kink("ties", [1, 2, 3], [3, 1, 3], key=(_REPEATED,), own=True),
)


def _corner(length: int, offset: int) -> tuple[Any, ...]:
    """Return the index of a diagonal."""
    steps = np.arange(length)
    return (Ellipsis, steps + max(-offset, 0), steps + max(offset, 0))


def _stretches(count: int, size: int, step: int) -> tuple[Any, ...]:
    """Return the index of all windows."""
    return (Ellipsis, np.arange(count)[:, None] * step + np.arange(size))


ROWS = (
    row(
        "getitem",
        (
            situation("plain", (3, 2), key=(slice(1, None), ...)),
            situation("step", (5,), key=(slice(None, None, 2), ...)),
            situation("backwards", (3,), key=(slice(None, None, -1), ...), dtypes=("float64",)),
            situation("new-axis", (2, 3), key=(None, 1, ..., slice(0, 2))),
            situation("0-d", (), key=(..., None)),
            situation("size-0", (2, 0), key=(slice(0, 1), ...)),
            situation("to-size-0", (3,), key=(slice(1, 1), ...)),
            situation("non-contiguous", Strided((2, 3)), key=(..., slice(1, 3))),
        ),
        cr=lambda cr, x, key: x[key],
        np=lambda np, x, key: x[key],
        torch=lambda torch, x, key: x[key] if key[0] != slice(None, None, -1) else x.flip(0),
    ),
    row(
        "select",
        (
            situation("plain", (3, 2), key=(1, ...)),
            situation("element", (2, 3), key=(1, 2, ...)),
            situation("last", (3,), key=(-1, ...)),
            situation("size-0", (2, 0), key=(1, ...)),
            situation("non-contiguous", Strided((2, 3)), key=(0, ...)),
        ),
        call=lambda library, x, key: x[key[:-1]],
    ),
    row(
        "index",
        (
            situation("repeated", (3, 2), key=_REPEATED),
            situation("pairs", (3, 2), key=(_REPEATED, np.array([1, 0, 1]))),
            situation("negative", (3,), key=np.array([-1, 0, 2])),
            situation("second-axis", (2, 3), key=(slice(None), _REPEATED)),
            situation("mask", (2, 3), key=MASK),
            situation("mask-of-rows", (2, 3), key=np.array([True, False])),
            situation("mask-of-nothing", (2,), key=np.array([False, False])),
            situation("size-0", (0, 2), key=np.zeros(0, np.int64)),
            situation("non-contiguous", Strided((3, 2)), key=_REPEATED),
        ),
        call=lambda library, x, key: x[key],
        torch=lambda torch, x, key: x[_torch_index(torch, key)],
    ),
    row(
        "index_add",
        (
            situation("repeated", (3, 2), shape=(4, 2), key=(_REPEATED,)),
            situation("pairs", (3,), shape=(3, 3), key=(_REPEATED, np.array([0, 1, 0]))),
            situation("size-0", (0,), shape=(3,), key=(np.zeros(0, np.int64),)),
            situation("non-contiguous", Strided((3, 2)), shape=(4, 2), key=(_REPEATED,)),
        ),
        cr=recorded("index_add"),
        np=_index_add,
        torch=lambda torch, x, shape, key: torch.zeros(shape, dtype=x.dtype).index_put(
            _torch_index(torch, key), x, accumulate=True
        ),
    ),
    row(
        "assign",
        (
            situation("slice", (3, 2), (2, 2), path=step((getitem, {"key": (slice(1, 3), ...)}))),
            situation("broadcast", (3, 2), (2,), path=step((getitem, {"key": (slice(1, 3), ...)}))),
            situation("number", (3, 2), (), path=step((getitem, {"key": (1, ...)}))),
            situation("array", (3, 2), (2, 2), path=step((index, {"key": np.array([2, 0])}))),
            situation("mask", (2, 3), (3,), path=step((index, {"key": MASK}))),
            situation("everything", (2, 3), (3,), path=()),
            situation(
                "transposed",
                (2, 3),
                (2,),
                path=step((permute_dims, {"axes": (1, 0)}), (getitem, {"key": (1, ...)})),
            ),
            situation(
                "reshaped",
                (2, 3),
                (2,),
                path=step((reshape, {"shape": (6,)}), (getitem, {"key": (slice(1, 3), ...)})),
            ),
            situation(
                "slice-of-slice",
                (3, 3),
                (1, 2),
                path=step(
                    (getitem, {"key": (slice(1, None), ...)}),
                    (getitem, {"key": (slice(0, 1), slice(0, 2))}),
                ),
            ),
            situation("0-d", (), (), path=step((getitem, {"key": (...,)}))),
            situation("size-0", (2, 0), (0,), path=step((getitem, {"key": (1, ...)}))),
            situation(
                "non-contiguous",
                Strided((2, 3)),
                Strided((2, 2)),
                path=step((getitem, {"key": (..., slice(1, 3))})),
            ),
        ),
        cr=_cr_assign,
        np=_np_assign,
        torch=_torch_assign,
    ),
    row(
        "take_along_axis",
        (
            situation("rows", (3, 2), np.array([[2, 0], [2, 1]]), axis=0),
            situation("repeated", (2, 3), np.array([[0, 0, 2, 0], [1, 1, 1, 1]]), axis=1),
            situation("negative", (3,), np.array([-1, 0]), axis=0),
            situation("size-0", (2, 3), np.zeros((2, 0), np.int64), axis=1),
            situation("non-contiguous", Strided((2, 3)), np.array([[0, 0], [2, 1]]), axis=1),
        ),
        call=lambda library, x, index, axis: library.take_along_axis(x, index, axis=axis),
        torch=lambda torch, x, index, axis: torch.take_along_dim(
            x, torch.where(index < 0, index + x.shape[axis], index), axis
        ),
    ),
    row(
        "add_along_axis",
        (
            situation("rows", (2, 2), np.array([[2, 0], [2, 1]]), shape=(3, 2), axis=0),
            situation(
                "repeated",
                (2, 4),
                np.array([[0, 0, 2, 0], [1, 1, 1, 1]]),
                shape=(2, 3),
                axis=1,
            ),
            situation("size-0", (2, 0), np.zeros((2, 0), np.int64), shape=(2, 3), axis=1),
            situation(
                "non-contiguous", Strided((2, 2)), np.array([[0, 0], [2, 1]]), shape=(2, 3), axis=1
            ),
        ),
        cr=recorded("add_along_axis"),
        np=_add_along_axis,
        torch=lambda torch, x, index, shape, axis: torch.zeros(shape, dtype=x.dtype).scatter_add(
            axis, index, x
        ),
    ),
    row(
        "add_at",
        (
            situation("repeated", (3, 2), (3, 2), key=(_REPEATED,)),
            situation("pairs", (3, 3), (3,), key=(_REPEATED, np.array([0, 1, 0]))),
            situation("vector", (3,), (3,), key=(_REPEATED,)),
            situation("mask", (2, 3), (3,), key=(MASK,)),
            situation("size-0", (3,), (0,), key=(np.zeros(0, np.int64),)),
            situation("non-contiguous", Strided((3, 2)), Strided((3, 2)), key=(_REPEATED,)),
        ),
        cr=recorded("add_at"),
        np=_np_at("add"),
        torch=lambda torch, x, value, key: x.index_put(
            _torch_index(torch, key), value, accumulate=True
        ),
    ),
    row(
        "maximum_at",
        _EXTREMES_AT,
        dtypes=REAL,
        cr=recorded("maximum_at"),
        np=_np_at("maximum"),
        torch=_torch_extreme_at("amax"),
    ),
    row(
        "minimum_at",
        _EXTREMES_AT,
        dtypes=REAL,
        cr=recorded("minimum_at"),
        np=_np_at("minimum"),
        torch=_torch_extreme_at("amin"),
    ),
    row(
        "diagonal",
        (
            situation("plain", (2, 3), offset=0, key=_corner(2, 0)),
            situation("above", (3, 3), offset=1, key=_corner(2, 1)),
            situation("below", (3, 2), offset=-1, key=_corner(2, -1)),
            situation("batch", (2, 3, 3), offset=0, key=_corner(3, 0)),
            situation("beyond", (2, 2), offset=2, key=_corner(0, 2)),
            situation("size-0", (2, 0), offset=0, key=_corner(0, 0)),
            situation("non-contiguous", Strided((2, 3)), offset=1, key=_corner(2, 1)),
        ),
        cr=recorded("diagonal"),
        np=lambda np, x, offset, key: np.diagonal(x, offset, -2, -1),
        torch=lambda torch, x, offset, key: torch.diagonal(x, offset, -2, -1),
    ),
    row(
        "windows",
        (
            situation("overlapping", (5,), size=3, step=1, key=_stretches(3, 3, 1)),
            situation("apart", (2, 7), size=2, step=3, key=_stretches(2, 2, 3)),
            situation("whole", (3,), size=3, step=2, key=_stretches(1, 3, 2)),
            situation("size-0", (0, 3), size=2, step=1, key=_stretches(2, 2, 1)),
            situation("non-contiguous", Strided((2, 4)), size=2, step=1, key=_stretches(3, 2, 1)),
        ),
        cr=recorded("windows"),
        np=lambda np, x, size, step, key: np.lib.stride_tricks.sliding_window_view(x, size, -1)[
            ..., ::step, :
        ],
        torch=lambda torch, x, size, step, key: x.unfold(-1, size, step),
    ),
)
