"""Fourier transforms: PyTorch's values and gradients, to second order; sizes, norms and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch, random_array

COMPLEX = ("fft", "ifft", "irfft", "hfft")
REAL = ("fft", "ifft", "rfft", "ihfft", "irfft")
SEVERAL = ("fftn", "ifftn", "irfftn", "hfftn")
PLANES = ("fft2", "ifft2", "irfft2", "hfft2")


def transform(name: str, *args: Any, **settings: Any) -> Any:
    return lambda lib, x: getattr(lib.fft, name)(x, *args, **settings)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 2, 5, 6, 9])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((n, "complex128") for n in COMPLEX), *((n, "float64") for n in REAL)],
)
def test_along_one_dimension(name: str, dtype: str, n: int | None, norm: str | None) -> None:
    compare_with_torch(transform(name, n, 1, norm), random_array((2, 6, 2), dtype))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dim": (0, 2)},
        {"dim": (2, 0)},
        {"s": (3, 4)},
        {"s": (5, 2), "dim": (1, 0)},
        {"s": (-1, 4), "dim": (0, 1)},
        {"dim": -1, "norm": "ortho"},
        {"s": (2, 3), "norm": "forward"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((n, "complex128") for n in SEVERAL),
        *((n, "float64") for n in ("fftn", "ifftn", "rfftn", "ihfftn", "hfftn")),
    ],
)
def test_along_several_dimensions(name: str, dtype: str, settings: dict[str, Any]) -> None:
    compare_with_torch(transform(name, **settings), random_array((3, 4, 3), dtype))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((n, "complex128") for n in PLANES), *((n, "float64") for n in ("fft2", "rfft2", "ihfft2"))],
)
@pytest.mark.parametrize("settings", [{}, {"s": (3, 5)}, {"dim": (0, 1)}], ids=str)
def test_along_two_dimensions(name: str, dtype: str, settings: dict[str, Any]) -> None:
    compare_with_torch(transform(name, **settings), random_array((3, 4, 3), dtype))


@pytest.mark.parametrize(
    ("name", "inverse"),
    [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft"), ("fftn", "ifftn"), ("rfftn", "irfftn")],
)
def test_inverses(name: str, inverse: str) -> None:
    x = cr.tensor(random_array((4, 6)))
    back = getattr(cr.fft, inverse)(getattr(cr.fft, name)(x))
    np.testing.assert_allclose(cr.real(back).numpy(), x.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfft2"])
def test_precision_is_kept(name: str) -> None:
    single = getattr(cr.fft, name)(cr.ones(3, 4))
    double = getattr(cr.fft, name)(cr.ones(3, 4, dtype=cr.float64))
    assert single.dtype in (cr.float32, cr.complex64)
    assert double.dtype in (cr.float64, cr.complex128)


@pytest.mark.parametrize("dtype", [cr.int64, cr.bool, cr.float16])
def test_integers_bools_and_half_precision_become_single_precision(dtype: Any) -> None:
    x = cr.tensor([1, 0, 1, 1], dtype=dtype)
    assert cr.fft.fft(x).dtype == cr.fft.rfft(x).dtype == cr.fft.ifftn(x).dtype == cr.complex64
    assert cr.fft.irfft(x).dtype == cr.float32


def test_half_precision_has_gradients_of_its_own() -> None:
    x = cr.ones(4, dtype=cr.float16, requires_grad=True)
    cr.fft.rfft(x).real.sum().backward()
    assert x.grad.dtype == cr.float16
    assert x.grad.tolist() == [3, 0, 1, 0]


@pytest.mark.parametrize("real", [False, True])
def test_nothing_to_transform(real: bool) -> None:
    x = cr.tensor(random_array((2,), "float64" if real else "complex128"), requires_grad=True)
    out = cr.fft.fftn(x, dim=())
    assert out.dtype == cr.complex128
    assert out.tolist() == x.tolist()
    assert cr.fft.fftn(cr.tensor(2.0)).item() == 2


def test_array_api_spellings() -> None:
    x = cr.tensor(random_array((3, 4)))
    assert cr.fft.fft(x, n=2, axis=0, norm="ortho").equal(cr.fft.fft(x, 2, 0, "ortho"))
    assert cr.fft.rfftn(x, s=(2,), axes=(0,)).equal(cr.fft.rfftn(x, (2,), (0,)))
    assert cr.fft.fftshift(x, axes=0).equal(cr.fft.fftshift(x, 0))
    with pytest.raises(TypeError, match="dim and axis are two names of one argument"):
        cr.fft.fft(x, dim=0, axis=0)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        ours = getattr(cr.fft, name)(n, 0.1, dtype=cr.float64)
        np.testing.assert_allclose(ours.numpy(), getattr(np.fft, name)(n, 0.1), rtol=1e-15)
        assert getattr(cr.fft, name)(n).dtype == cr.float32
        assert getattr(cr.fft, name)(n, requires_grad=True).requires_grad


@pytest.mark.parametrize("dim", [None, 0, (1,), (0, 1)], ids=str)
def test_shifts(dim: Any) -> None:
    x = random_array((3, 4))
    for name in ("fftshift", "ifftshift"):
        ours = getattr(cr.fft, name)(cr.tensor(x), dim)
        np.testing.assert_array_equal(ours.numpy(), getattr(np.fft, name)(x, dim))
    leaf = cr.tensor(x, requires_grad=True)
    (g,) = cr.autograd_grad(cr.fft.fftshift(leaf, dim), leaf, cr.tensor(x))
    assert g.equal(cr.fft.ifftshift(cr.tensor(x), dim))


def test_numpys_functions_are_recorded() -> None:
    x = cr.tensor(random_array((3, 4)), requires_grad=True)
    assert np.fft.rfft(x, axis=0).equal(cr.fft.rfft(x, dim=0))
    assert np.fft.fftn(x, axes=(0,)).requires_grad
    assert np.fft.fftshift(x).equal(cr.fft.fftshift(x))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: f.fft(cr.tensor(1.0)), cr.OutOfBoundsError, "tensor has no dimensions"),
        (lambda f: f.fft(cr.ones(3), 0), cr.ShapeError, r"Invalid number of data points \(0\)"),
        (lambda f: f.fft(cr.ones(0)), cr.ShapeError, r"Invalid number of data points \(0\)"),
        (lambda f: f.irfft(cr.ones(1)), cr.ShapeError, r"irfft: Invalid number of data points"),
        (lambda f: f.fft(cr.ones(3), dim=1), IndexError, "Dimension out of range"),
        (lambda f: f.fft(cr.ones(3), norm="x"), ValueError, "Invalid normalization mode: 'x'"),
        (lambda f: f.hfft(cr.ones(3), norm="x"), ValueError, "Invalid normalization mode: 'x'"),
        (lambda f: f.rfft(cr.ones(3) * 1j), cr.DTypeError, "rfft expects a real input tensor"),
        (lambda f: f.ihfftn(cr.ones(3) * 1j), cr.DTypeError, "ihfftn expects a real input"),
        (lambda f: f.fftn(cr.ones(3), (1, 2)), cr.ShapeError, "Got shape with 2 values but input"),
        (lambda f: f.fftn(cr.ones(3), (1, 2), 0), cr.ShapeError, "must have the same length"),
        (lambda f: f.fftn(cr.ones(3), dim=(0, 0)), ValueError, "dim 0 appears multiple times"),
        (lambda f: f.rfftn(cr.ones(3), dim=()), cr.ShapeError, "must transform at least one axis"),
        (lambda f: f.irfftn(cr.tensor(1.0)), cr.ShapeError, "must transform at least one axis"),
        (lambda f: f.fftfreq(0), cr.ShapeError, r"fftfreq: Invalid number of data points \(0\)"),
    ],
    ids=range(15),
)
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(cr.fft)
