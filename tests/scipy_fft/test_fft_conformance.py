"""`cr.scipy.fft`: SciPy's values, adjoints, both modes, compiled, vmap, SciPy's own doors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_fft = pytest.importorskip("scipy.fft")

ONE = [
    (name, settings)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for settings in ({}, {"n": 4, "axis": 0, "norm": "ortho"}, {"n": 7, "norm": "forward"})
]
MANY = [
    (name, settings)
    for stem in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for name, settings in (
        (f"{stem}2", {}),
        (f"{stem}n", {"s": (4, 3), "axes": (0, 1), "norm": "ortho", "workers": 1}),
    )
]
WAVES = [
    (name, {"type": kind, **settings})
    for name in ("dct", "idct", "dst", "idst")
    for kind in (1, 2, 3, 4)
    for settings in (
        {},
        {"norm": "ortho"},
        {"norm": "forward", "n": 4},
        {"norm": "ortho", "orthogonalize": False},
        {"orthogonalize": True, "axis": 0},
    )
]
WAVES_OF_MANY = [
    (name, {"type": kind, **settings})
    for name in ("dctn", "idctn", "dstn", "idstn")
    for kind in (1, 2, 3)
    for settings in ({}, {"s": (3, 6), "norm": "ortho"}, {"axes": (1,), "overwrite_x": True})
]
OTHERS = [
    ("fftshift", {}), ("ifftshift", {"axes": 1}),
    ("fht", {"dln": 0.3, "mu": 1.5}), ("fht", {"dln": 0.3, "mu": 0.5, "offset": 0.2, "bias": 0.3}),
    ("ifht", {"dln": 0.3, "mu": 1.5}), ("ifht", {"dln": 0.2, "mu": 1.0, "bias": -0.2}),
]  # fmt: skip
CALLS = [*ONE, *MANY, *WAVES, *WAVES_OF_MANY, *OTHERS]
IDS = [f"{name} {settings}" for name, settings in CALLS]

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 5))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 5))
OF_COMPLEX = ("fft", "ifft", "irfft", "hfft")
each = pytest.mark.parametrize(("name", "settings"), CALLS, ids=IDS)


def inputs(name: str) -> list[np.ndarray]:
    complex_too = name.rstrip("2n") in OF_COMPLEX or name[0] == "d" or "shift" in name
    return [REAL, COMPLEX] if complex_too else [REAL]


def pairing(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum(np.real(np.conj(a) * b)))


@each
def test_values_and_both_modes(name: str, settings: dict[str, Any]) -> None:
    ours, scipys = getattr(cr.scipy.fft, name), getattr(scipy_fft, name)
    for x in inputs(name):
        wanted = scipys(x.copy(), **settings)
        t = cr.tensor(x, requires_grad=True)
        out = ours(t, **settings)
        np.testing.assert_allclose(out.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)
        assert out.dtype == wanted.dtype
        g = np.asarray(RNG.normal(size=wanted.shape)).astype(wanted.dtype)
        direction = RNG.normal(size=x.shape).astype(x.dtype)
        (back,) = cr.autograd_grad(out, t, cr.tensor(g), create_graph=True)
        assert back.dtype == x.dtype
        # The transform is linear: its adjoint says it all, in both modes.
        along = scipys(direction.copy(), **settings)
        np.testing.assert_allclose(pairing(back.detach().numpy(), direction), pairing(g, along))
        _, tangent = cr.jvp(lambda t: ours(t, **settings), (cr.tensor(x),), (cr.tensor(direction),))
        np.testing.assert_allclose(tangent.numpy(), along, rtol=1e-10, atol=1e-12)
        assert not back.requires_grad or not cr.autograd_grad(
            (back * back).real.sum() if back.is_complex() else (back * back).sum(),
            t, allow_unused=True,
        )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "settings"), [*ONE[::3], *MANY[::4], *WAVES[::5], *WAVES_OF_MANY[::5], *OTHERS[::2]]
)
def test_compiled_and_mapped_equal_eager(name: str, settings: dict[str, Any]) -> None:
    function = getattr(cr.scipy.fft, name)

    def work(x: cr.Tensor) -> list[cr.Tensor]:
        x = x.detach().requires_grad_()
        out = function(x, **settings)
        return [out.detach(), *cr.autograd_grad((abs(out) ** 2).sum(), x)]

    rows = cr.tensor(np.stack([REAL, 0.5 * REAL]))
    wanted = [work(row) for row in rows]
    compiled = cr.compile(work)
    for _ in range(2):
        for got, one in zip(compiled(rows[0]), wanted[0], strict=True):
            np.testing.assert_allclose(got.numpy(), one.numpy(), rtol=1e-12, atol=1e-12)
    found = cr.vmap(work, strict=True)(rows)
    for k in range(2):
        for got, one in zip(found, wanted[k], strict=True):
            np.testing.assert_allclose(got[k].numpy(), one.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "rfftn", "dct", "dstn"])
def test_single_precision_is_kept(name: str) -> None:
    x = cr.tensor(REAL.astype("float32"), requires_grad=True)
    out = getattr(cr.scipy.fft, name)(x)
    assert out.dtype in ("float32", "complex64")
    (g,) = cr.autograd_grad(abs(out).sum(), x)
    assert g.dtype == "float32"
    assert getattr(cr.scipy.fft, name)(x.detach()).dtype == out.dtype


def test_arrays_and_numbers_are_scipys() -> None:
    assert type(cr.scipy.fft.dct(REAL)) is np.ndarray
    assert cr.scipy.fft.next_fast_len(11) == scipy_fft.next_fast_len(11)
    assert cr.scipy.fft.fftfreq(3).tolist() == scipy_fft.fftfreq(3).tolist()
    assert {"dct", "fft", "next_fast_len"} <= set(dir(cr.scipy.fft))
    ints = cr.scipy.fft.fft(cr.tensor([1, 2, 3]))
    assert ints.dtype == "complex128"
    assert type(cr.grad(lambda a: cr.scipy.fft.dct(a)[0])(REAL[0])) is np.ndarray


def test_wrong_calls() -> None:
    t = cr.tensor(REAL, requires_grad=True)
    with pytest.raises(ValueError, match="dct: expected type 1, 2, 3 or 4, got 5"):
        cr.scipy.fft.dct(t, 5)
    with pytest.raises(ValueError, match="Invalid normalization mode: 'half'"):
        cr.scipy.fft.dst(t, norm="half")
    with pytest.raises(NotImplementedError, match="fft: passing a precomputed plan"):
        cr.scipy.fft.fft(t, plan=1)
    with pytest.raises(NotImplementedError, match="fftn: passing a precomputed plan"):
        cr.scipy.fft.fftn(t, plan=1)
    with pytest.raises(cr.AutogradError, match="fht has no derivative with respect to mu"):
        cr.scipy.fft.fht(t, 0.1, cr.tensor(1.0, requires_grad=True))
    with pytest.raises(AttributeError, match="no attribute '__wavelet__'"):
        cr.scipy.fft.__wavelet__  # noqa: B018
    with pytest.raises(AttributeError, match="wavelet"):
        cr.scipy.fft.wavelet  # noqa: B018


# --- calls of scipy.fft itself --------------------------------------------------------------------


def test_scipys_functions_record_with_our_backend() -> None:
    def loss(x: Any) -> Any:
        return abs(scipy_fft.fft(scipy_fft.dct(x))).sum()

    with scipy_fft.set_backend(cr.scipy.fft):
        g = cr.grad(loss)(REAL)
        assert type(scipy_fft.fft(REAL)) is np.ndarray
    np.testing.assert_allclose(
        g, cr.grad(lambda x: abs(cr.scipy.fft.fft(cr.scipy.fft.dct(x))).sum())(REAL)
    )
    with pytest.raises(cr.AutogradError, match=r"chainrule\.scipy\.fft\.dct"):
        cr.grad(loss)(REAL)


def test_scipys_functions_record_as_the_array_api() -> None:
    code = (
        "import chainrule as cr, scipy.fft; x = cr.tensor([1.0, 2.0], requires_grad=True); "
        "scipy.fft.fft(x)[0].real.backward(); assert x.grad.tolist() == [1, 1]"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"}
    )
