"""The conformance table: one row for each primitive, as data. The tests are generated from it.

A row says how a primitive is called, in chainrule, NumPy and PyTorch; from which range its inputs
are drawn; in which dtypes; and in which situations. A primitive without a row fails the suite.
"""

from __future__ import annotations

import functools
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from chainrule.autograd.record import RECORDERS
from chainrule.backend import CPU, numpy_xp
from chainrule.primitives.indexing import getitem, index
from chainrule.primitives.primitive import forward_of
from chainrule.primitives.shaping import permute_dims, reshape

REAL = ("float32", "float64")
FIELD = (*REAL, "complex128")
COMPLEX = ("complex128",)


class Strided(tuple[int, ...]):
    """The shape of an input whose elements are not next to each other in memory."""


Input = tuple[int, ...] | list[Any] | np.ndarray
"""A shape to draw; or values to take; or an array of ints or bools, which has no derivative."""


@dataclass(frozen=True)
class Situation:
    """Inputs and settings for a primitive."""

    name: str
    inputs: tuple[Input, ...]
    settings: dict[str, Any]
    smooth: bool = True  # else differences can't say what the derivative is
    dtypes: tuple[str, ...] | None = None  # else those of the row
    peer: bool = True  # whether PyTorch is right here


def situation(
    name: str,
    *inputs: Input,
    smooth: bool = True,
    dtypes: tuple[str, ...] | None = None,
    peer: bool = True,
    **settings: Any,
) -> Situation:
    return Situation(name, inputs, settings, smooth, dtypes, peer)


Spelling = str | Callable[..., Any] | None
"""A function's name in a library; or a function of library and arguments; None if it has none."""


@dataclass(frozen=True)
class Row:
    """What the table says of one primitive. `call` holds for every library that is not named."""

    primitive: str
    situations: tuple[Situation, ...]
    domains: tuple[tuple[float, float], ...] = ((-1.0, 1.0),)
    dtypes: tuple[str, ...] = FIELD
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    differentiable: bool = True

    def spelling(self, library: str) -> Spelling:
        if library == "jax.numpy":
            library = "numpy"
        return self.spellings.get(library, self.spellings.get("call", self.primitive))

    def function(self, library: ModuleType) -> Callable[..., Any]:
        """Return the primitive's function in chainrule, numpy, torch or jax.numpy."""
        spelling = self.spelling(library.__name__)
        if isinstance(spelling, str):
            return getattr(library, spelling)
        assert spelling is not None
        return functools.partial(spelling, library)


@dataclass(frozen=True)
class Case:
    """A row in one of its situations, in one dtype."""

    row: Row
    situation: Situation
    dtype: str

    @property
    def settings(self) -> dict[str, Any]:
        return self.situation.settings

    def arrays(self) -> list[np.ndarray]:
        """Return the inputs, the same ones every time."""
        seed = zlib.crc32(f"{self.row.primitive} {self.situation.name}".encode())
        rng = np.random.default_rng(seed)
        domains = self.row.domains
        return [
            _array(spec, domains[min(i, len(domains) - 1)], self.dtype, rng)
            for i, spec in enumerate(self.situation.inputs)
        ]

    def __str__(self) -> str:
        return f"{self.row.primitive}-{self.situation.name}-{self.dtype}"


def _array(spec: Input, domain: tuple[float, float], dtype: str, rng: Any) -> np.ndarray:
    if isinstance(spec, np.ndarray):
        return spec.copy()
    if isinstance(spec, list):
        return np.array(spec, dtype)
    values = rng.uniform(*domain, spec)
    if "complex" in dtype:
        values = values + 1j * rng.uniform(0.2, 0.6, spec)
    values = np.asarray(values).astype(dtype)
    if isinstance(spec, Strided):
        room = np.zeros(tuple(2 * n for n in reversed(spec)), dtype)
        memory = room[(slice(None, None, 2),) * len(spec)].T
        memory[...] = values
        return memory
    return values


def cases_of(row: Row) -> Iterator[Case]:
    for situation_ in row.situations:
        dtypes = situation_.dtypes or row.dtypes
        yield from [Case(row, situation_, dtype) for dtype in dtypes]
        if situation_.dtypes is None and "complex128" in dtypes:
            yield Case(row, situation_, "complex64")


# --- the situations that many primitives share ----------------------------------------------------

UNARY = (
    situation("plain", (2, 3)),
    situation("0-d", ()),
    situation("size-0", (2, 0)),
    situation("non-contiguous", Strided((2, 3))),
)

BINARY = (
    situation("plain", (2, 3), (2, 3)),
    situation("broadcast", (2, 1), (3,)),
    situation("broadcast-lead", (3,), (2, 3)),
    situation("0-d", (), ()),
    situation("0-d-and-vector", (), (3,)),
    situation("size-0", (2, 0), (2, 1)),
    situation("non-contiguous", Strided((2, 3)), Strided((2, 3))),
)

REDUCTION = (
    situation("everything", (2, 3), axis=None, keepdims=False),
    situation("axis", (2, 3), axis=(1,), keepdims=False),
    situation("axes", (2, 3, 2), axis=(0, 2), keepdims=False),
    situation("keepdims", (2, 3), axis=(0,), keepdims=True),
    situation("everything-keepdims", (2, 2), axis=None, keepdims=True),
    situation("0-d", (), axis=None, keepdims=False),
    situation("size-0-beside", (0, 2), axis=(1,), keepdims=False),
    situation("non-contiguous", Strided((2, 3)), axis=(0,), keepdims=False),
)

EMPTY_REDUCTION = (
    situation("size-0", (0,), axis=None, keepdims=False),
    situation("size-0-axis", (2, 0), axis=(1,), keepdims=False),
)

RUNNING = (
    situation("plain", (4,), axis=0),
    situation("rows", (2, 3), axis=1),
    situation("middle", (2, 3, 2), axis=1),
    situation("one", (1,), axis=0),
    situation("size-0", (0,), axis=0),
    situation("size-0-beside", (0, 2), axis=1),
    situation("non-contiguous", Strided((2, 3)), axis=0),
)


# --- spellings ------------------------------------------------------------------------------------


def _recorded(name: str) -> Callable[..., Any]:
    """Return what has no public function (yet): the recorder itself."""
    return lambda cr, *inputs, **settings: RECORDERS[name](*inputs, **settings)


def _all_dims(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis


def _over_dims(name: str) -> Callable[..., Any]:
    """Return PyTorch's function that wants its dimensions listed."""
    return lambda torch, x, axis, keepdims: getattr(torch, name)(x, _all_dims(x, axis), keepdims)


def _torch_prod(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    for dim in reversed(_all_dims(x, axis)):
        x = torch.prod(x, dim, keepdim=keepdims)
    return x


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


def _split(split: Callable[..., Any], x: Any, axis: int, sizes: tuple[int, ...]) -> Any:
    return split(x, np.cumsum(sizes)[:-1].tolist(), axis)


def _cr_assign(cr: Any, base: Any, value: Any, path: Any) -> Any:
    out = base.clone()
    part = out
    for primitive, settings in path[:-1]:
        part = RECORDERS[primitive.name](part, **settings)
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


# --- the rows -------------------------------------------------------------------------------------


def row(
    primitive: str,
    situations: tuple[Situation, ...],
    *domains: tuple[float, float],
    dtypes: tuple[str, ...] = FIELD,
    **spellings: Spelling,
) -> Row:
    if "cr" in spellings:
        spellings["chainrule"] = spellings.pop("cr")
    if "np" in spellings:
        spellings["numpy"] = spellings.pop("np")
    return Row(primitive, situations, domains or ((-1.0, 1.0),), dtypes, spellings)


def kink(name: str, *inputs: Input, **settings: Any) -> Situation:
    """Return a situation where the derivative is a convention: real numbers, no differences."""
    return situation(name, *inputs, smooth=False, dtypes=REAL, **settings)


def step(*path: tuple[Any, dict[str, Any]]) -> tuple[Any, ...]:
    return path


_MASK = np.array([[True, False, True], [False, False, True]])

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
    row("square", UNARY),
    row("reciprocal", UNARY, (0.5, 2)),
    row("remainder", BINARY, (5, 6), (1.5, 1.9), dtypes=REAL),
)

EXPONENTIAL = (
    row("sqrt", UNARY, (0.5, 2)),
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
            situation("plain", _MASK, (2, 3), (2, 3)),
            situation("broadcast", np.array([True, False, True]), (2, 1), ()),
            situation("broadcast-condition", np.array([[True], [False]]), (3,), (2, 3)),
            situation("0-d", np.array(True), (), ()),
            situation("0-d-condition", np.array(False), (2,), (2,)),
            situation("size-0", np.zeros((0, 1), bool), (0, 2), (2,)),
            situation("non-contiguous", _MASK, Strided((2, 3)), Strided((2, 3))),
        ),
    ),
    row(
        "masked",
        (
            situation("plain", (2, 3), _MASK),
            situation("broadcast", (2, 1), np.array([True, False, True])),
            situation("broadcast-mask", (2, 3), np.array([True, False, True])),
            situation("0-d", (), np.array(True)),
            situation("0-d-and-mask", (), np.array([True, False])),
            situation("size-0", (0,), np.zeros(0, bool)),
            situation("non-contiguous", Strided((2, 3)), _MASK),
        ),
        cr=_recorded("masked"),
        np=lambda np, x, mask: np.where(mask, x, np.zeros((), x.dtype)),
        torch=lambda torch, x, mask: torch.where(mask, x, torch.zeros((), dtype=x.dtype)),
    ),
)

PARTS = (
    row("conj", UNARY, dtypes=COMPLEX, call=lambda library, x: x.conj()),
    row("real", UNARY, dtypes=COMPLEX, cr=_recorded("real")),
    row("imag", UNARY, dtypes=COMPLEX, cr=_recorded("imag")),
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
        cr=_recorded("to_device"),
        np=lambda np, x, source, target: x,
        torch=lambda torch, x, source, target: x.to(str(target), copy=True),
    ),
    row("clone", UNARY, np="copy"),
)

_REPEATED = np.array([2, 0, 2])

INDEXING = (
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
            situation("mask", (2, 3), key=_MASK),
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
        cr=_recorded("index_add"),
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
            situation("mask", (2, 3), (3,), path=step((index, {"key": _MASK}))),
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
        cr=_recorded("add_along_axis"),
        np=_add_along_axis,
        torch=lambda torch, x, index, shape, axis: torch.zeros(shape, dtype=x.dtype).scatter_add(
            axis, index, x
        ),
    ),
)

_EXTREMUM = (
    *REDUCTION,
    kink("ties", [[1, 3, 3], [2, 2, 2]], axis=(1,), keepdims=False),
    kink("ties-everywhere", [[3, 1], [3, 3]], axis=None, keepdims=False),
)

_EMPTY_KINKS = tuple(kink(s.name, *s.inputs, **s.settings) for s in EMPTY_REDUCTION)  # nan or -inf

_ZEROS = (
    situation("one-zero", [2, 0, 3], axis=None, keepdims=False),
    situation("two-zeros", [[2, 0, 3, 0], [1, 2, 3, 4]], axis=(1,), keepdims=False),
    situation("all-zeros", [[0, 0], [0, 0]], axis=None, keepdims=True),
)

REDUCTIONS = (
    row("sum", (*REDUCTION, *EMPTY_REDUCTION)),
    row("mean", REDUCTION),
    row("max", _EXTREMUM, dtypes=REAL, cr="amax", torch=_over_dims("amax")),
    row("min", _EXTREMUM, dtypes=REAL, cr="amin", torch=_over_dims("amin")),
    row("prod", (*REDUCTION, *EMPTY_REDUCTION, *_ZEROS), torch=_torch_prod),
    row("cumulative_sum", RUNNING, torch=lambda torch, x, axis: torch.cumsum(x, axis)),
    row(
        "cumulative_prod",
        (
            *RUNNING,
            situation("one-zero", [2, 0, 3, 4], axis=0),
            situation("two-zeros", [[2, 0, 3, 0], [1, 2, 0, 4]], axis=1),
        ),
        torch=lambda torch, x, axis: torch.cumprod(x, axis),
    ),
    row(
        "logsumexp",
        (*REDUCTION, *_EMPTY_KINKS),
        dtypes=REAL,
        np=lambda np, x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
        torch=_over_dims("logsumexp"),
    ),
    row(
        "softmax",
        RUNNING,
        dtypes=REAL,
        np=lambda np, x, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
        torch=lambda torch, x, axis: torch.softmax(x, axis),
    ),
    row(
        "log_softmax",
        RUNNING,
        dtypes=REAL,
        np=lambda np, x, axis: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)),
        torch=lambda torch, x, axis: torch.log_softmax(x, axis),
    ),
)

SHAPING = (
    row(
        "reshape",
        (
            situation("plain", (2, 3), shape=(3, 2)),
            situation("flat", (2, 3), shape=(6,)),
            situation("0-d", (), shape=(1, 1)),
            situation("to-0-d", (1,), shape=()),
            situation("size-0", (2, 0), shape=(0, 3)),
            situation("non-contiguous", Strided((2, 3)), shape=(2, 1, 3)),
        ),
        call=lambda library, x, shape: library.reshape(x, shape),
    ),
    row(
        "reshape_copy",
        (situation("non-contiguous", Strided((2, 3)), shape=(6,)),),
        call=lambda library, x, shape: library.reshape(x, shape),
    ),
    row(
        "permute_dims",
        (
            situation("plain", (2, 3), axes=(1, 0)),
            situation("cycle", (2, 3, 1), axes=(2, 0, 1)),
            situation("0-d", (), axes=()),
            situation("size-0", (2, 0, 3), axes=(1, 2, 0)),
            situation("non-contiguous", Strided((2, 3)), axes=(1, 0)),
        ),
        torch=lambda torch, x, axes: torch.permute(x, axes),
    ),
    row(
        "transpose",
        (
            situation("plain", (2, 3), axes=(1, 0)),
            situation("last-two", (2, 3, 2), axes=(0, 2, 1)),
            situation("size-0", (2, 0), axes=(1, 0)),
            situation("non-contiguous", Strided((2, 3)), axes=(1, 0)),
        ),
        cr=lambda cr, x, axes: cr.transpose(x, *[i for i, axis in enumerate(axes) if i != axis]),
        torch=lambda torch, x, axes: torch.permute(x, axes),
    ),
    row(
        "broadcast_to",
        (
            situation("plain", (3,), shape=(2, 3)),
            situation("stretched", (2, 1), shape=(2, 3)),
            situation("both", (2, 1), shape=(2, 2, 3)),
            situation("0-d", (), shape=(2, 2)),
            situation("to-0-d", (), shape=()),
            situation("size-0", (2, 1), shape=(2, 0)),
            situation("one-to-none", (1,), shape=(0,)),
            situation("non-contiguous", Strided((2, 1)), shape=(2, 3)),
        ),
        call=lambda library, x, shape: library.broadcast_to(x, shape),
    ),
    row(
        "flip",
        (
            situation("plain", (2, 3), axis=(0,)),
            situation("both", (2, 3), axis=(0, 1)),
            situation("everything", (2, 3), axis=None),
            situation("0-d", (), axis=None),
            situation("size-0", (2, 0), axis=(1,)),
            situation("non-contiguous", Strided((2, 3)), axis=(1,)),
        ),
        torch=lambda torch, x, axis: torch.flip(x, _all_dims(x, axis)),
    ),
    row(
        "roll",
        (
            situation("plain", (4,), shift=(1,), axis=(0,)),
            situation("both", (2, 3), shift=(1, -2), axis=(0, 1)),
            situation("size-0", (2, 0), shift=(1,), axis=(1,)),
            situation("non-contiguous", Strided((2, 3)), shift=(2,), axis=(1,)),
        ),
        call=lambda library, x, shift, axis: library.roll(x, shift, axis),
    ),
    row(
        "concat",
        (
            situation("plain", (2, 2), (1, 2), axis=0),
            situation("second-axis", (2, 1), (2, 2), (2, 1), axis=1),
            situation("one", (3,), axis=0),
            situation("size-0-part", (2,), (0,), (1,), axis=0),
            situation("size-0", (0, 2), (0, 2), axis=1),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 1)), axis=1),
        ),
        call=lambda library, *arrays, axis: library.concat(arrays, axis=axis),
    ),
    row(
        "stack",
        (
            situation("plain", (3,), (3,), axis=0),
            situation("last", (2, 2), (2, 2), (2, 2), axis=2),
            situation("middle", (2, 3), (2, 3), axis=1),
            situation("0-d", (), (), axis=0),
            situation("one", (2,), axis=1),
            situation("size-0", (0,), (0,), axis=1),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 3)), axis=0),
        ),
        call=lambda library, *arrays, axis: library.stack(arrays, axis=axis),
        torch=lambda torch, *arrays, axis: torch.stack(arrays, axis),
    ),
    row(
        "unbind",
        (
            situation("plain", (3, 2), axis=0),
            situation("second-axis", (2, 3), axis=1),
            situation("vector", (3,), axis=0),
            situation("size-0", (2, 0), axis=0),
            situation("non-contiguous", Strided((2, 3)), axis=1),
        ),
        cr=lambda cr, x, axis: cr.unbind(x, axis),
        np=lambda np, x, axis: np.unstack(x, axis=axis),
        torch=lambda torch, x, axis: torch.unbind(x, axis),
    ),
    row(
        "split",
        (
            situation("plain", (4,), axis=0, sizes=(1, 3)),
            situation("second-axis", (2, 4), axis=1, sizes=(1, 2, 1)),
            situation("size-0-part", (3,), axis=0, sizes=(1, 0, 2)),
            situation("size-0", (2, 0), axis=0, sizes=(1, 1)),
            situation("non-contiguous", Strided((2, 3)), axis=1, sizes=(2, 1)),
        ),
        cr=lambda cr, x, axis, sizes: cr.split(x, sizes, axis),
        np=lambda np, x, axis, sizes: _split(np.split, x, axis, sizes),
        torch=lambda torch, x, axis, sizes: torch.split(x, sizes, axis),
    ),
)

CONTRACTION = (
    row(
        "matmul",
        (
            situation("plain", (2, 3), (3, 2)),
            situation("vectors", (3,), (3,)),
            situation("matrix-vector", (2, 3), (3,)),
            situation("vector-matrix", (3,), (3, 2)),
            situation("batch", (2, 1, 3), (2, 3, 2)),
            situation("batch-of-one-side", (2, 2), (3, 2, 1)),
            situation("batch-broadcast", (2, 1, 1, 2), (3, 2, 2)),
            situation("vector-batch", (2,), (2, 2, 3)),
            situation("batch-vector", (2, 2, 3), (3,)),
            situation("one-by-one", (1, 1), (1, 1)),
            situation("size-0-inside", (2, 0), (0, 3)),
            situation("size-0-outside", (0, 2), (2, 3)),
            situation("size-0-batch", (0, 2, 2), (2, 1)),
            situation("non-contiguous", Strided((2, 3)), Strided((3, 2))),
        ),
    ),
)

ROWS = (
    *ARITHMETIC,
    *EXPONENTIAL,
    *TRIGONOMETRIC,
    *KINKS,
    *PARTS,
    *INDEXING,
    *REDUCTIONS,
    *SHAPING,
    *CONTRACTION,
)
"""What has derivatives."""


def constant(
    primitive: str,
    situations: tuple[Situation, ...],
    *domains: tuple[float, float],
    dtypes: tuple[str, ...] = REAL,
    **spellings: Spelling,
) -> Row:
    made = row(primitive, situations, *domains, dtypes=dtypes, **spellings)
    return Row(primitive, made.situations, made.domains, dtypes, made.spellings, False)


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
        for dim in reversed(_all_dims(x, axis)):
            x = getattr(torch, name)(x, dim, keepdim=keepdims)
        return x.bool()

    return truth


CONSTANTS = (
    *[constant(name, _STRANGE, dtypes=FIELD) for name in ("isnan", "isinf", "isfinite")],
    constant("equal", _COMPARED, dtypes=FIELD, torch="eq"),
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
        torch=lambda torch, x, axis, keepdims: (x != 0).sum(_all_dims(x, axis), keepdim=keepdims),
    ),
)
"""What has none: results of integers or bools, or piecewise constant ones."""
