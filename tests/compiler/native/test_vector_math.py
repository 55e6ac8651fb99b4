"""Elementary functions of machine code: rounding errors against mpmath, and special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from chainrule.compiler.native import jit, trigonometry
from chainrule.compiler.native.code import cached_code

pytest.importorskip("llvmlite", reason="machine code needs LLVM")
mpmath = pytest.importorskip("mpmath", reason="the reference of the results")

ALL = {"f4": (-3.4e38, 3.4e38), "f8": (-1e300, 1e300)}
BOUNDS = {
    **{"exp": 1.5, "expm1": 2.5, "log": 1.5, "log1p": 2, "tanh": 2.5, "erf": 2.5},
    **{"sin": 2, "cos": 2, "tan": 2.5, "asin": 2, "acos": 2, "atan": 2},
    **{"sinh": 2, "cosh": 2, "exp2": 1.5, "log2": 2, "log10": 2.5},
}
CODES = ("f4", "f8")
PERIODIC = ("sin", "cos", "tan")
RANGES = {
    "exp": {"f4": (-104, 89), "f8": (-745, 710)},
    "expm1": {"f4": (-20, 89), "f8": (-40, 710)},
    "log": {"f4": (0, 3e38), "f8": (0, 1e308)},
    "log1p": {"f4": (-1, 3e38), "f8": (-1, 1e308)},
    "tanh": {"f4": (-11, 11), "f8": (-22, 22)},
    "erf": {"f4": (-5, 5), "f8": (-7, 7)},
    **{name: ALL for name in (*PERIODIC, "atan")},
    **{name: {"f4": (-1, 1), "f8": (-1, 1)} for name in ("asin", "acos")},
    **{name: {"f4": (-89.4, 89.4), "f8": (-710.4, 710.4)} for name in ("sinh", "cosh")},
    **{name: {"f4": (0, 3e38), "f8": (0, 1e308)} for name in ("log2", "log10")},
    "exp2": {"f4": (-151, 128), "f8": (-1076, 1024)},
}


def applied(name: str, *arrays: Any) -> Any:
    """Return an elementary function of arrays, as a vectorised loop."""
    code, x = name[-2:], ("x", "y")[: len(arrays)]
    elements = ", ".join(f"{each}[i]" for each in x)
    text = f"def loop({', '.join(x)}, out):\n"
    text += f"    for i in range(u8({len(arrays[0])})):\n        out[i] = {name}({elements})\n"
    out = np.empty_like(arrays[0])
    cached_code(text, (code,) * (len(x) + 1)).function()(*arrays, out)
    return out


def points(dtype: Any, low: float, high: float) -> Any:
    """Return numbers of all magnitudes between two limits."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    tiny = math.log(float(info.smallest_subnormal))
    sizes = np.exp(rng.uniform(tiny, math.log(min(high, 1e300)), 1500))
    parts = [rng.uniform(low, min(high, 100), 1500), sizes, rng.uniform(-3, 3, 1000)]
    found = np.concatenate([*parts, -sizes, 1 + 0.3 * rng.normal(size=1000)]).astype(dtype)
    return found[(found > low) & (found < high)]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", BOUNDS)
def test_rounding(name: str, code: str) -> None:
    dtype = np.dtype(code).type
    x = points(dtype, *RANGES[name][code])
    assert largest_error(name, code, x) <= BOUNDS[name]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", PERIODIC)
def test_angles(name: str, code: str) -> None:
    rng = np.random.default_rng(3)
    quarters = np.concatenate([np.arange(-99, 99), rng.integers(-670000, 670000, 1000)])
    limit = trigonometry.LIMIT * (1 + 1e-3 * rng.uniform(-1, 1, 200))
    x = np.concatenate([rng.uniform(-1, 1, 3000) * 2.0**20, quarters * (np.pi / 2), limit])
    x = np.concatenate([x, rng.uniform(-20, 20, 2000), quarters[:198] * (np.pi / 4)]).astype(code)
    assert largest_error(name, code, x) <= BOUNDS[name]


@pytest.mark.parametrize("name", PERIODIC)
def test_angles_beyond_the_limit_are_computed_by_libm(name: str) -> None:
    nearest = 6381956970095103.0 * 2.0**797  # to a multiple of π/2: Muller, Elementary Functions
    x = np.array([0.5, nearest, 1e300, -1e22, 2.0, *[0.25] * 40])
    found = applied(f"{name}_f8", x)[1:4]
    np.testing.assert_array_equal(found, [getattr(math, name)(v) for v in x[1:4]])


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", [*BOUNDS])
def test_results_do_not_depend_on_the_position(name: str, code: str) -> None:
    x = points(np.dtype(code).type, *RANGES[name][code])[-700:]
    x[::50] = np.nan
    x[7::100] = RANGES[name][code][1]
    wanted = applied(f"{name}_{code}", x)
    for first, last in [(1, 700), (3, 90), (0, 33), (2, 9), (5, 6), (10, 31)]:
        found = applied(f"{name}_{code}", x[first:last].copy())
        np.testing.assert_array_equal(found, wanted[first:last])


def largest_error(name: str, code: str, x: Any) -> float:
    """Return the largest error of a function in units in the last place."""
    dtype = np.dtype(code).type
    found = applied(f"{name}_{code}", x)
    others = {"exp2": lambda v: mpmath.mpf(2) ** v, "log2": lambda v: mpmath.log(v, 2)}
    exact_function = others.get(name) or getattr(mpmath, name)
    with mpmath.workprec(120):
        exact = [exact_function(mpmath.mpf(float(v))) for v in x]
        nearest = np.array([float(v) for v in exact])
        with np.errstate(over="ignore"):
            spacing = np.spacing(np.abs(nearest).astype(dtype)).astype(float)
        finite = np.isfinite(spacing)
        errors = [
            abs((mpmath.mpf(float(a)) - b) / c)
            for a, b, c in zip(found[finite], np.array(exact)[finite], spacing[finite], strict=True)
        ]
    assert not np.isnan(found[finite]).any()
    return float(max(errors))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", [*BOUNDS, "sign"])
def test_special_values(name: str, code: str) -> None:
    info = np.finfo(code)
    edges = [0.0, 1.0, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan]
    x = np.array([*edges, *(-e for e in edges)], code)
    found = applied(f"{name}_{code}", x)
    with np.errstate(all="ignore"):
        wanted = np.vectorize(math.erf)(x) if name == "erf" else getattr(np, name)(x)
    np.testing.assert_allclose(found, wanted.astype(code), rtol=3 * info.eps, atol=0)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


def test_powers() -> None:
    edges = [0.0, 0.5, 1.0, 2.0, 3.0, 1e30, 1e-30, 1e-42, 16777217.0, np.inf, np.nan]
    values = np.array([*edges, *(-e for e in edges)], "f4")
    rng = np.random.default_rng(7)
    x = np.concatenate([np.repeat(values, values.size), np.exp(rng.normal(size=2000) * 9)])
    y = np.concatenate([np.tile(values, values.size), rng.normal(size=2000) * 3])
    x, y = x.astype("f4"), y.astype("f4")
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype("f8"), y.astype("f8")).astype("f4")
        found = applied("pow_f4", x, y)
    np.testing.assert_allclose(found, wanted, rtol=1.2e-7, atol=1e-45)


def test_loops_are_vector_code() -> None:
    stems = {*BOUNDS} - {"log", "log1p"}
    for name in ("log_f4", "log1p_f4", *(f"{stem}_{code}" for stem in stems for code in CODES)):
        text = f"def loop(n, x, out):\n    for i in range(u8(n)):\n        out[i] = {name}(x[i])\n"
        module = jit.optimized_module(text, ("n", name[-2:], name[-2:]), False, "entry")
        code = jit.target_machine().emit_assembly(module)
        packed = "ps" if name.endswith("4") else "pd"
        assert f"mul{packed}" in code or f"fmadd213{packed}" in code or "fmla" in code, name


@pytest.mark.parametrize("code", CODES)
def test_hypotenuses(code: str) -> None:
    dtype = np.dtype(code).type
    x = points(dtype, -1e300 if code == "f8" else -3e38, 1e300 if code == "f8" else 3e38)
    y = np.random.default_rng(8).permutation(x)
    near = x * np.random.default_rng(9).uniform(0.01, 1, x.size).astype(dtype)
    x, y = np.concatenate([x, x]), np.concatenate([y, near])
    found = applied(f"hypot_{code}", x, y)
    with np.errstate(over="ignore"):
        wanted = np.hypot(x.astype("g"), y.astype("g"))
        spacing = np.spacing(wanted.astype(dtype))
    finite = np.isfinite(spacing)
    assert (np.abs(found[finite] - wanted[finite]) <= 1.5 * spacing[finite]).all()
    edges = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan, np.finfo(dtype).max], dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(applied(f"hypot_{code}", x, y), np.hypot(x, y))


@pytest.mark.parametrize("code", CODES)
def test_angles_of_points(code: str) -> None:
    dtype = np.dtype(code).type
    x = points(dtype, *ALL[code])
    y = np.random.default_rng(8).permutation(x)
    with np.errstate(all="ignore"):
        near = x * np.random.default_rng(9).uniform(-3, 3, x.size).astype(dtype)
        x, y = np.concatenate([x, x]), np.concatenate([y, near])
        wanted = np.arctan2(y.astype("g"), x.astype("g"))
        spacing = np.spacing(np.abs(wanted).astype(dtype))
        found = applied(f"atan2_{code}", y, x)
    assert (np.abs(found - wanted) <= 2.5 * spacing).all()
    info = np.finfo(dtype)
    edges = [0, 1, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    y, x = (a.ravel() for a in np.meshgrid(*[np.array([*edges, *(-e for e in edges)], dtype)] * 2))
    found, wanted = applied(f"atan2_{code}", y, x), np.arctan2(y, x)
    np.testing.assert_allclose(found, wanted, rtol=2 * info.eps, atol=0)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("code", CODES)
def test_logarithms_and_powers_of_whole_numbers_are_exact(code: str) -> None:
    exponents = np.arange(-140, 120).astype(code)
    powers = np.ldexp(np.ones_like(exponents), exponents.astype(int))
    np.testing.assert_array_equal(applied(f"exp2_{code}", exponents), powers)
    np.testing.assert_array_equal(applied(f"log2_{code}", powers), exponents)
    exponents = np.arange(0, 11 if code == "f4" else 23).astype(code)
    powers = np.array([10.0 ** int(e) for e in exponents], code)
    np.testing.assert_array_equal(applied(f"log10_{code}", powers), exponents)
