"""Complex numbers in loops: both parts agree with the eager engine, and with NumPy's limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import native
from chainrule.compiler.native import fusion_groups

pytest.importorskip("llvmlite", reason="machine code needs LLVM")


@pytest.fixture(autouse=True)
def loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)
    monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)  # fuse small arrays, too
    monkeypatch.setenv("CHAINRULE_CACHE", "")


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sums": lambda z, w: (z + w) - 2 * z + (1 - 2j) + w.real,
    "products": lambda z, w: z * w * (0.5 + 2j) * w.real * 3.0,
    "squares": lambda z, w: cr.square(z) + w**2 - z**3,
    "quotients": lambda z, w: z / w + w / (z.real + 3) + z / 4 + 1 / (w * (1 + 2j)),
    "conjugates": lambda z, w: cr.conj(z) * w - cr.conj(w * z),
    "absolute values": lambda z, w: (z.abs() * 2 + (z * w).abs()) * w,
    "parts": lambda z, w: cr.complex((z * w).real + z.imag, (w * 2).imag * w.real),
    "casts": lambda z, w: (z.real * 2).to(z.dtype) * w + (z.abs() + 1).to(w.dtype),
    "selections": lambda z, w: cr.where(z.real > 0, z * w, 2 * w) + cr.where(w.imag < 0, z, 0),
    "real results": lambda z, w: (z * cr.conj(w)).real * z.imag + (z + w).abs(),
    "broadcasts": lambda z, w: z * w[:, :1] + w[0] * 2j - z[:, 3:4].abs(),
    "sums of all": lambda z, w: ((z * w).abs() ** 2).sum() + (z.real * w.imag).sum(0),
    "views": lambda z, w: (z.T * 2j + w.T)[::-1, 1:] * z.T[:, :-1],
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("rows", [6, 1400])  # in one function, in loops of their own
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, rows: int, dtype: str) -> None:
    function = FUNCTIONS[name]

    def job(z: Any, w: Any) -> Any:
        out = function(z, w)
        loss = (out.abs() ** 2).sum() + (3j * out).real.sum()
        return (out, *cr.autograd_grad(loss, (z, w), allow_unused=True))

    compiled, found = cr.compile(job, backend="native"), []
    for call in (job, compiled, compiled):
        arrays = numbers(rows, 7), numbers(rows, 7, seed=1)
        tensors = [cr.tensor(a.astype(dtype), requires_grad=True) for a in arrays]
        found.append([out.detach().numpy() for out in call(*tensors) if out is not None])
    digits = 2e-5 if dtype == "complex64" else 1e-12
    for later in found[1:]:
        for got, wanted in zip(later, found[0], strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=digits * np.abs(wanted).max())
    assert ("_imag = " if rows > 6 else "def loop") in compiled.source_native


EDGES = [0.0, -0.0, 1.0, -3.0, 2.0**-100, 2.0**100, np.inf, -np.inf, np.nan]


def compiled_parts(function: Any, *arrays: Any) -> Any:
    compiled = cr.compile(lambda *z: 1 * function(*z), backend="native", verify=False)
    found = compiled(*map(cr.tensor, arrays)).numpy()
    assert "_imag" in compiled.source_native
    return found


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["add", "multiply", "divide"])
def test_edges_of_binary_operations(name: str, dtype: str) -> None:
    plane = np.array([complex(a, b) for a in EDGES for b in EDGES], dtype)
    x, y = (a.ravel() for a in np.meshgrid(plane, plane))
    with np.errstate(all="ignore"):
        wanted = 1 * getattr(np, name)(x, y)
    found = compiled_parts(getattr(cr, name), x, y)
    for part in ("real", "imag"):
        got, want = getattr(found, part), getattr(wanted, part)
        np.testing.assert_allclose(got, want, rtol=2e-6 if dtype == "complex64" else 1e-14)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_absolute_values_neither_overflow_nor_vanish(dtype: str) -> None:
    info = np.finfo(dtype)
    edges = [*EDGES, info.max / 2, info.tiny, info.smallest_subnormal]
    z = np.array([complex(a, b) for a in edges for b in edges], dtype)
    with np.errstate(over="ignore"):
        wanted = np.abs(z)
    compiled = cr.compile(lambda z: 1 * z.abs(), backend="native", verify=False)
    np.testing.assert_allclose(compiled(cr.tensor(z)).numpy(), wanted, rtol=3 * info.eps, atol=0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_exponentials_of_single_precision(backend: Any) -> None:
    edges = [*EDGES[:4], -np.inf, np.nan, 88.9, -200.0]
    z = np.array([complex(a, b) for a in edges for b in edges], np.complex64)
    z = np.concatenate([z, (20 * numbers(500)).astype(np.complex64)])
    found = cr.compile(cr.exp, backend=backend, verify=False)(cr.tensor(z)).numpy()
    with np.errstate(all="ignore"):
        wanted = np.exp(z)
    tiny = np.finfo(np.float32).tiny
    np.testing.assert_allclose(found.real, wanted.real, rtol=2e-6, atol=tiny)
    np.testing.assert_allclose(found.imag, wanted.imag, rtol=2e-6, atol=tiny)
