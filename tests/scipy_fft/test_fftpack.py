"""`cr.scipy.fftpack`: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr

fftpack = pytest.importorskip("scipy.fftpack")
ROWS = np.random.default_rng(3).normal(size=(4, 6))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosine_and_sine_transforms(name: str) -> None:
    x = cr.tensor(ROWS, requires_grad=True)
    for setting in itertools.product((1, 2, 3, 4), (None, 5), (0, -1), (None, "ortho")):
        found = getattr(cr.scipy.fftpack, name)(x, *setting)
        wanted = getattr(fftpack, name)(ROWS, *setting)
        np.testing.assert_allclose(found.detach(), wanted, 1e-12, 1e-12)
    transform = getattr(cr.scipy.fftpack, name)
    assert cr.gradcheck(lambda x: transform(x, norm="ortho"), x, fast_mode=True)


@pytest.mark.parametrize("n", [None, 3, 4, 9])
def test_packed_spectra(n: int | None) -> None:
    x = cr.tensor(ROWS, requires_grad=True)
    for axis in (0, -1):
        found = cr.scipy.fftpack.rfft(x, n, axis)
        np.testing.assert_allclose(found.detach(), fftpack.rfft(ROWS, n, axis), 1e-12, 1e-12)
    ours = lambda x: cr.scipy.fftpack.rfft(x, n)  # noqa: E731
    assert cr.gradcheck(ours, x, check_forward_ad=True, fast_mode=True)
    np.testing.assert_allclose(cr.compile(ours)(x).detach(), ours(x).detach(), 1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "fftshift"])
def test_fourier_transforms(name: str) -> None:
    x = cr.tensor(ROWS, requires_grad=True)
    found = getattr(cr.scipy.fftpack, name)(x)
    np.testing.assert_allclose(found.detach(), getattr(fftpack, name)(ROWS), 1e-12, 1e-12)
    np.testing.assert_array_equal(cr.scipy.fftpack.fft(ROWS), fftpack.fft(ROWS))


def test_others_have_no_rule() -> None:
    with pytest.raises(cr.errors.MissingRuleError, match=r"scipy\.fftpack\.hilbert"):
        cr.scipy.fftpack.hilbert(cr.tensor(ROWS[0], requires_grad=True))
