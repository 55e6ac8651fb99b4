"""Checks that run a primitive and its rules on `array_api_strict`, compared with NumPy.

array_api_strict has the array API and nothing more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.backend import KERNELS, Namespace, numpy_xp
from chainrule.primitives.primitive import TABLE, Primitive, forward_of
from conformance import Case

strict = pytest.importorskip("array_api_strict")


# --- the namespace: array_api_strict, and generic versions of the extensions ----------------------


def to_strict(value: Any) -> Any:
    """Convert arrays to read-only ones of array_api_strict, dtypes to its dtypes; keep the rest."""
    if isinstance(value, np.ndarray | np.generic):
        memory = np.array(value)
        memory.setflags(write=False)
        return strict.asarray(memory, copy=False)
    if isinstance(value, np.dtype):
        return getattr(strict, value.name)
    if isinstance(value, dict):
        return {key: to_strict(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([to_strict(part) for part in value])
    return value


def to_numpy(value: Any) -> Any:
    return None if value is None else np.asarray(getattr(value, "_array", value))


def _borrowed(name: str) -> Any:
    """Return an extension of NumPy's namespace, applied to the memory of strict arrays."""
    function = getattr(numpy_xp, name)

    def extension(*arrays: Any, **settings: Any) -> Any:
        plain = [_plain(a) for a in arrays]
        return strict.asarray(function(*plain, **{k: _plain(v) for k, v in settings.items()}))

    return extension


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)([_plain(part) for part in value])
    return getattr(value, "_array", value)


NUMPYS = (
    *("exp2", "cbrt", "logaddexp2", "fmod", "fmax", "fmin", "heaviside", "nan_to_num"),
    *("gcd", "lcm"),
)
"""Functions of NumPy and CuPy that the array API does not have."""

XP = Namespace(
    strict,
    masked=lambda x, mask: strict.where(mask, x, strict.zeros((), dtype=x.dtype)),
    index=lambda x, *, key: x[key],
    index_add=_borrowed("index_add"),
    add_at=_borrowed("add_at"),
    maximum_at=_borrowed("maximum_at"),
    minimum_at=_borrowed("minimum_at"),
    diagonal=lambda x, *, offset, key: strict.linalg.diagonal(x, offset=offset),
    windows=_borrowed("windows"),
    logcumsumexp=_borrowed("logcumsumexp"),
    assign_at=_borrowed("assign_at"),
    solve_triangular=_borrowed("solve_triangular"),
    **{name: _borrowed(name) for names in (*KERNELS.values(), NUMPYS) for name in names},
    add_along_axis=_borrowed("add_along_axis"),
    to_device=lambda x, *, source, target: x,
)


# --- checks of a primitive and of both its rules --------------------------------------------------


class PrimitiveCall:
    """A primitive applied to the inputs of a case, in NumPy and in array_api_strict."""

    def __init__(self, case: Case) -> None:
        self.primitive: Primitive = TABLE[case.row.primitive]
        self.arrays = case.arrays()
        self.settings = case.settings
        self.out = forward_of(self.primitive, numpy_xp)(*self.arrays, **self.settings)
        self.strict_arrays = [to_strict(array) for array in self.arrays]
        self.strict_settings = to_strict(self.settings)
        self.rng = np.random.default_rng(7)

    def forward(self) -> Any:
        return forward_of(self.primitive, XP)(*self.strict_arrays, **self.strict_settings)

    def needs(self) -> tuple[bool, ...]:
        return tuple(array.dtype.kind in "fc" for array in self.arrays)

    def saved(self, arrays: list[Any], out: Any) -> tuple[Any, ...]:
        """Return the values that the engine would save for the rules."""
        plan = self.primitive.plan(self.needs())
        values = []
        for name, origin in zip(plan.saves, plan.origins, strict=True):
            stem, _, aspect = name.rpartition("_")
            if origin is not None:
                several = origin < 0 and self.primitive.multiple
                values.append(out[~origin] if several else out if origin < 0 else arrays[origin])
            elif name == "shapes":
                values.append(tuple(array.shape for array in arrays))
            elif aspect == "transposed":
                values.append(False)  # as of all small matrices
            else:
                values.append(getattr(arrays[self.primitive.inputs.index(stem)], aspect))
        return tuple(values)

    def random(self, array: Any) -> np.ndarray:
        values = self.rng.uniform(-1, 1, array.shape)
        if array.dtype.kind == "c":
            values = values + 1j * self.rng.uniform(-1, 1, array.shape)
        return np.asarray(values).astype(array.dtype)

    def cotangent(self) -> Any:
        if self.primitive.multiple:
            return {i: self.random(part) for i, part in enumerate(self.out)}
        return self.random(np.asarray(self.out))


def check_forward(case: Case) -> None:
    call = PrimitiveCall(case)
    _assert_same(call.forward(), call.out)


def check_vjp(case: Case) -> None:
    call = PrimitiveCall(case)
    g = call.cotangent()
    _assert_same(*_vjps(call, g))
    if call.primitive.multiple:
        _assert_same(*_vjps(call, {0: g[0]}))


def _vjps(a: PrimitiveCall, g: Any) -> tuple[Any, Any]:
    plan = a.primitive.plan(a.needs())
    saved = a.saved(a.strict_arrays, to_strict(a.out))
    got = plan.vjp(XP, to_strict(g), saved, a.strict_settings)
    return got, plan.vjp(numpy_xp, g, a.saved(a.arrays, a.out), a.settings)


def check_jvp(case: Case) -> None:
    a = PrimitiveCall(case)
    ts = tuple(a.random(x) if need else None for x, need in zip(a.arrays, a.needs(), strict=True))
    plan = a.primitive.plan(a.needs())
    saved = a.saved(a.strict_arrays, to_strict(a.out))
    got = plan.jvp(XP, tuple(to_strict(t) for t in ts), saved, a.strict_settings)
    _assert_same(got, plan.jvp(numpy_xp, ts, a.saved(a.arrays, a.out), a.settings))


def check_precision(case: Case) -> None:
    """In single precision a rule computes in single precision: no intermediate doubles."""
    call = PrimitiveCall(case)
    plan = call.primitive.plan(call.needs())
    saved = call.saved(call.arrays, call.out)
    for part in plan.vjp(numpy_xp, call.cotangent(), saved, call.settings):
        assert part is None or part.dtype in (np.float32, np.complex64)


def _assert_same(got: Any, wanted: Any) -> None:
    if not isinstance(wanted, tuple | list):
        got, wanted = [got], [wanted]
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        if b is None:
            assert a is None
            continue
        a, b = to_numpy(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        single = b.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(a, b, rtol=1e-5 if single else 1e-13, atol=1e-6 if single else 0)
