"""Complex values in small programs and loops: as pairs of real ones, with NumPy's values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

EDGES = [0.0, -0.0, 1.0, -1.5, 2.25, np.inf, -np.inf, np.nan, 0.0078125, 30.0]
Z = np.array([complex(a, b) for a in EDGES for b in EDGES])
W = np.random.default_rng(0).permutation(Z)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda z, w: z + w,
    "subtract a number": lambda z, w: z - 2.0,
    "multiply": lambda z, w: z * w,
    "multiply by j": lambda z, w: 1j * z,
    "multiply by a real": lambda z, w: z * w.real,
    "divide": lambda z, w: z / w,
    "divide a number": lambda z, w: (1 - 2j) / z,
    "divide by a number": lambda z, w: z / (2 + 1j),
    "divide by a real": lambda z, w: z / w.real,
    "square": lambda z, w: np.square(z),
    "conj": lambda z, w: np.conj(z),
    "abs": lambda z, w: np.abs(z),
    "angle": lambda z, w: np.angle(z),
    "equal": lambda z, w: np.where(z == w, z, w),
    "not_equal": lambda z, w: np.where(z != w, z, 0),
    "isfinite": lambda z, w: np.where(np.isfinite(z), z, 1.5),
    "exp": lambda z, w: np.exp(z),
    "log": lambda z, w: np.log(z),
    "sqrt": lambda z, w: np.sqrt(z),
    "cos": lambda z, w: np.cos(z),
    "sin": lambda z, w: np.sin(z),
    "cosh": lambda z, w: np.cosh(z),
    "sinh": lambda z, w: np.sinh(z),
    "broadcast": lambda z, w: (z[:5] + w.real[:50].reshape(10, 5)) * w.real[50:].reshape(10, 5),
    "stack": lambda z, w: np.stack([z, w.real, w]).sum(0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, dtype: Any) -> None:
    def function(z: Any, w: Any) -> Any:
        return FUNCTIONS[name](z, w)

    z, w = Z.astype(dtype), W.astype(dtype)
    if name in ("multiply", "square"):  # NumPy's vectors fuse a product and a sum
        z, w = z[np.isfinite(z)], w[np.isfinite(z)]
    found = cr.compile(function, backend="native", verify=False)(z, w)
    wanted = function(z, w)
    assert found.dtype == wanted.dtype
    rtol = 1e-12 if dtype == np.complex128 else 3e-6
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=rtol, atol=0)


def transfer_matrices(d: Any) -> Any:
    """Return the mean reflectance of a stack of thin films (Macleod, Thin-Film Optical Filters)."""
    index = np.array([1.0, 1.38, 2.1, 1.38, 1.52 - 0.01j])
    waves = np.linspace(400, 800, 9)
    matrix = np.zeros((9, 2, 2), complex) + np.eye(2)
    for i, n in enumerate(index[1:4]):
        phase = 2 * np.pi * n * d[i] / waves
        cos, sin = np.cos(phase), 1j * np.sin(phase)
        rows = np.stack([cos, sin / n], -1), np.stack([sin * n, cos], -1)
        matrix = matrix @ np.stack(rows, -2)
    ends = matrix @ np.stack([np.ones(2), index[[4, 4]]])[:, 0]
    ratio = (ends[:, 0] - ends[:, 1]) / (ends[:, 0] + ends[:, 1])
    return (np.abs(ratio) ** 2).mean()


def two_levels(w: Any) -> Any:
    """Return the population of the second of two levels, by steps of Runge and Kutta."""
    hamiltonian = np.array([[0, 0.5], [0.5, 0]]) * w[0] + np.diag(np.array([0.5, -0.5])) * w[1]
    state, dt = np.array([1.0 + 0j, 0.0]), 0.05
    for _ in range(40):
        a = -1j * (hamiltonian @ state)
        b = -1j * (hamiltonian @ (state + dt / 2 * a))
        state = state + dt * b
    return np.abs(state[1]) ** 2


def wave_packet(p: Any) -> Any:
    """Return the mean position of a wave packet in a harmonic trap."""
    x = np.linspace(-4, 4, 32)
    u = np.exp(-((x - p[0]) ** 2) + 1j * p[1] * x)
    for _ in range(40):
        bend = np.concatenate([u[1:], u[:1]]) - 2 * u + np.concatenate([u[-1:], u[:-1]])
        u = u - 0.002j * (-8 * bend + 0.5 * x**2 * u)
    return (np.abs(u) ** 2 * x).sum()


def oscillator(p: Any) -> Any:
    amplitude, total = p[0] + 1j * p[1], 0.0
    for _ in range(60):
        amplitude = amplitude * np.exp(0.1j) * (1 - 0.01 * np.abs(amplitude) ** 2)
        total = total + amplitude.real
    return total


def written(p: Any) -> Any:
    field = cr.zeros(8, dtype=cr.complex128)
    for i in range(40):
        field = field * np.exp(0.05j)
        field[1:-1] += 0.1 * (p[0] + 1j * p[1]) / (1 + field[2:].clone().abs() + i)
        field[0] = field[-2]
    return (field * field.conj()).real.sum()


PROGRAMS = [transfer_matrices, two_levels, wave_packet, oscillator, written]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_have_the_gradients_of_eager_mode(program: Any) -> None:
    x = np.array([90.0, 60.0, 75.0]) if program is transfer_matrices else np.array([0.9, 0.4])
    wanted = cr.value_and_grad(program)(x)
    compiled = cr.compile(cr.value_and_grad(program), backend="native")
    with warnings.catch_warnings():
        warnings.simplefilter("error", cr.PerformanceWarning)  # no loop in Python
        found = compiled(x)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_loops_and_branches_with_complex_carries(dtype: str) -> None:
    def function(z: Any, zs: Any, x: Any) -> Any:
        def step(h: Any, item: Any) -> Any:
            w, a = item
            h = cr.cond(a > 0, lambda: h * w + a, lambda: h - 1j * w)
            return h, (h.conj(), a * 2)

        return cr.scan(step, z, (zs, x), reverse=True)

    rng = np.random.default_rng(1)
    zs = cr.tensor(rng.normal(size=(40, 3)) + 1j * rng.normal(size=(40, 3)), dtype=dtype) * 0.6
    x = cr.tensor(rng.normal(size=40), dtype=zs.real.dtype)
    found = cr.compile(function, backend="native", verify=False)(zs[0], zs, x)
    wanted = function(zs[0], zs, x)
    for got, want in zip(cr.tree.leaves(found), cr.tree.leaves(wanted), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_complex_arguments_are_written_in_place() -> None:
    def function(z: Any, steps: Any) -> Any:
        for s in steps:
            z.mul_(cr.exp(1j * s)).add_(z.conj() * 0.1)
        return z.abs().sum()

    start, steps = cr.tensor([1 + 2j, 0.5 - 1j]), cr.linspace(0, 1, 40)
    mine, other = start.clone(), start.clone()
    compiled = cr.compile(function, backend="native", verify=False)
    np.testing.assert_allclose(compiled(mine, steps), function(other, steps), rtol=1e-5)
    np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-5)
    strided = cr.stack([start, start], 1)
    compiled(strided[:, 0], steps)  # an argument with gaps
    np.testing.assert_allclose(strided[:, 0].numpy(), other.numpy(), rtol=1e-5)
    assert strided[:, 1].tolist() == start.tolist()
