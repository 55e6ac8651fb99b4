"""Draws of random numbers: one function makes all of them, so that a compiler can record them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import DTypeLike, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.backend import CPU, move
from chainrule.errors import ArgumentTypeError, CompileError, DTypeError

if TYPE_CHECKING:
    from numpy.random import Generator

    from chainrule.random import generator as generators


OF_RANK: ContextVar[generators.Generator | None] = ContextVar("generator of a rank", default=None)
"""The generator for calls without one on a rank of `run_ranks`: processes have their own, too."""


def default_generator() -> generators.Generator:
    """Return the generator for calls without one."""
    return OF_RANK.get() or _of_process()


@cache
def _of_process() -> generators.Generator:
    from chainrule.random.generator import (
        Generator,  # numpy.random loads when first used, not before
    )

    return Generator()


WATCHER: ContextVar[Callable[..., Any] | None] = ContextVar("chainrule draws", default=None)
"""A compiler's or vmap's function for draws: ``(generator, method, args, settings)``."""


def draw(
    method: str | Callable[..., Any], rng: Generator | None, *args: Any, **settings: Any
) -> Any:
    """Draw by a method of a generator, or by a function that draws from it.

    All draws go through here, so that a tracer takes none for a constant.
    """
    generator = rng or default_generator()
    watcher = WATCHER.get()
    if watcher is not None:
        return watcher(generator, method, args, settings)
    if isinstance(method, str):
        return getattr(generator, method)(*args, **settings)
    return method(generator, *args, **settings)


def seedable_generator(name: str) -> generators.Generator:
    """Return the default generator, to read or set its state; raise under a tracer."""
    if WATCHER.get() is not None:
        raise CompileError(
            f"{name}() would run only once in a compiled function, while it is compiled: call it "
            "outside"
        )
    return default_generator()


def bounds_by_name(title: str, named: dict[str, Any], start: Any, end: Any) -> tuple[Any, Any]:
    """Return bounds, of which some are given by PyTorch's names: `from` and `to`."""
    for name in named.keys() - {"from", "to"}:
        raise ArgumentTypeError(f"{title}() got an unexpected keyword argument {name!r}")
    return named.get("from", start), named.get("to", end)


def uniform_array(shape: tuple[int, ...], dtype: np.dtype[Any], rng: Generator | None) -> Any:
    """Draw from [0, 1) in the precision of `dtype`."""
    return _draw_array("random", shape, dtype, rng)


def normal_array(shape: tuple[int, ...], dtype: np.dtype[Any], rng: Generator | None) -> Any:
    """Draw from the standard normal distribution in the precision of `dtype`."""
    return _draw_array("standard_normal", shape, dtype, rng)


def _draw_array(
    method: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: Generator | None
) -> Any:
    if dtype.kind == "f":
        precision = np.float64 if dtype.itemsize > 4 else np.float32
        return draw(method, rng, shape, dtype=precision).astype(dtype, copy=False)
    if dtype.kind == "c":
        return draw(_draw_complex, rng, method, shape, dtype)
    raise DTypeError(
        f"random numbers of dtype {dtype} are drawn by randint(), not by this function"
    )


def _draw_complex(
    generator: Generator, method: str, shape: tuple[int, ...], dtype: DTypeLike
) -> Any:
    """Return complex numbers, each from two draws."""
    precision = np.float64 if np.dtype(dtype).itemsize > 8 else np.float32
    pairs = getattr(generator, method)((*shape, 2), dtype=precision)
    return pairs.view(dtype)[..., 0]


def values_of(x: Operand) -> Any:
    """Return the array of a tensor or of numbers on the CPU, where all draws are made."""
    return move(x._array, CPU) if isinstance(x, Tensor) else np.asarray(x)
