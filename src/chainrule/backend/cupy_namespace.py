"""CuPy's namespace. A module of its own: importing CuPy waits for the first CuPy array."""

from __future__ import annotations

import functools
from functools import cache
from typing import Any

from chainrule.backend.devices import cupy_module, move
from chainrule.backend.extensions import SCIPY, LazyModule, Namespace, kernels_of, windows
from chainrule.kernels.triangular import solve_triangular

Array = Any


@cache
def cupy_namespace() -> Namespace:
    cupy = cupy_module()

    def index_add(value: Array, *, shape: tuple[int, ...], key: Any) -> Array:
        import cupyx

        out = cupy.zeros(shape, value.dtype)
        cupyx.scatter_add(out, key, value)
        return out

    def masked(x: Array, mask: Array) -> Array:
        return cupy.where(mask, x, cupy.zeros((), x.dtype))

    def assign_at(base: Array, value: Array, key: Any) -> Array:
        out = cupy.array(base)
        out[key] = value
        return out

    def combine_at(name: str, base: Array, value: Array, key: Any) -> Array:
        out = cupy.array(base)
        getattr(cupy, name).at(out, key, value)
        return out

    return Namespace(
        cupy,
        **kernels_of(cupy),
        special=LazyModule("cupyx.scipy.special", SCIPY),
        index=lambda x, key: x[key],
        index_add=index_add,
        add_at=lambda base, value, *, key: combine_at("add", base, value, key),
        maximum_at=lambda base, value, *, key: combine_at("maximum", base, value, key),
        minimum_at=lambda base, value, *, key: combine_at("minimum", base, value, key),
        masked=masked,
        assign_at=assign_at,
        solve_triangular=solve_triangular,  # NumPy passes CuPy arrays on to CuPy
        diagonal=lambda x, *, offset, key: cupy.diagonal(x, offset, -2, -1),
        windows=functools.partial(windows, cupy.lib.stride_tricks.as_strided),
        to_device=lambda x, *, source, target: move(x, target),
    )
