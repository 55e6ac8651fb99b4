"""Fourier transforms as machine code: NumPy's values, for all lengths that have passes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native.fourier_codegen import MAX_FACTOR

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

RNG = np.random.default_rng(0)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 60, 64)
BEYOND = 37  # the next prime after MAX_FACTOR
TOLERANCE = {"complex64": 1e-6, "complex128": 1e-14}


def compiled(function: Any, *arrays: Any) -> Any:
    """Return the results of a function as machine code, of which it is one function."""
    native = cr.compile(function, backend="native", verify=False)
    assert len(cr.profile(native, *arrays, calls=1).rows) == 1
    return native(*arrays)


def assert_close(got: Any, wanted: Any) -> None:
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    scale = TOLERANCE[np.result_type(wanted, np.complex64).name] * np.abs(wanted).max()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=10 * scale)


def complex_numbers(shape: Any, dtype: str) -> Any:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_lengths(dtype: str) -> None:
    """Along the last axis lines follow each other, along others they are interleaved."""
    widths = [(), (6,)] if dtype == "complex128" else [(6,), ()]
    shapes = [(3, n, *width) for n, width in zip(LENGTHS, itertools.cycle(widths), strict=False)]
    arrays = [complex_numbers(shape, dtype) for shape in shapes]

    def transforms(*arrays: Any) -> Any:
        there = [np.fft.fft(x, axis=1) for x in arrays]
        return there, [np.fft.ifft(x * 2, axis=1, norm="ortho") for x in arrays]

    for found, wanted in zip(compiled(transforms, *arrays), transforms(*arrays), strict=True):
        for got, want in zip(found, wanted, strict=True):
            assert_close(got, want)


@pytest.mark.parametrize("rows", [3, 4])  # of an even number, two are transformed together
def test_real_transforms(rows: int) -> None:
    arrays = [RNG.standard_normal((rows, n)) for n in (1, 6, 7, 8, 9, 15)]  # 8: together

    def transforms(*arrays: Any) -> Any:
        half = [np.fft.rfft(x) for x in arrays]
        odd = 1 + 2j  # imaginary parts of frequencies 0 and n/2 don't count
        back = [np.fft.irfft(y * odd, n=x.shape[1]) for x, y in zip(arrays, half, strict=True)]
        return half, back, [np.fft.rfftn(x, norm="forward") for x in arrays]

    for found, wanted in zip(compiled(transforms, *arrays), transforms(*arrays), strict=True):
        for got, want in zip(found, wanted, strict=True):
            assert_close(got, want)


def test_axes_and_views() -> None:
    z, x = complex_numbers((4, 6, 10), "complex128"), RNG.standard_normal((6, 4, 8))

    def transforms(z: Any, x: Any) -> Any:
        rest = np.fft.fftn(z.real[1:, ::2]), np.fft.irfft(np.fft.rfft(x, axis=0), n=6, axis=0)
        return np.fft.fft2(z.T, axes=(0, 2)), np.fft.ifftn(z[:, ::-1, 2:]), *rest

    for got, wanted in zip(compiled(transforms, z, x), transforms(z, x), strict=True):
        assert_close(got, wanted)


SPELLINGS = {
    "positions": (lambda z: np.fft.fft(z, 5, 0, "ortho"), True),
    "points": (lambda z: np.fft.ifft(z, n=6, axis=-2), True),
    "all axes": (np.fft.fftn, True),
    "the last axes": (lambda z: np.fft.ifftn(z, s=(6, 4), axes=(1, 2)), True),
    "points of all axes": (lambda z: np.fft.fftn(z, z.shape, (0, 1, 2)), True),
    "two axes": (lambda z: np.fft.irfft2(z, norm="forward"), True),
    "real numbers": (lambda z: np.fft.irfftn(z, (6, 7), (1, 2)), True),
    "fewer points": (lambda z: np.fft.fft(z, 3), False),
    "more points": (lambda z: np.fft.irfft(z, 12), False),
    "fewer of others": (lambda z: np.fft.ifft2(z, (2, 4)), False),
    "an empty spectrum": (lambda z: np.fft.irfft(z[..., :2], 1), False),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    """Arrays of other lengths than are transformed are left to NumPy, which cuts or pads them."""
    function, has_code = SPELLINGS[name]
    z = complex_numbers((5, 6, 4), "complex128")
    native = cr.compile(lambda z: function(z) + 1.0, backend="native", verify=False)
    assert_close(native(z), function(z) + 1.0)
    statements = "".join(row.statement for row in cr.profile(native, z, calls=1).rows)
    assert ("np.fft" not in statements) is has_code


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite_spoil_their_line_alone(number: float) -> None:
    x = RNG.standard_normal((4, 8))
    x[1, 3] = number

    def there_and_back(x: Any) -> Any:
        half = np.fft.rfft(x)
        return half, np.fft.irfft(half * 2, n=8)

    with np.errstate(invalid="ignore"):
        for got, wanted in zip(compiled(there_and_back, x), there_and_back(x), strict=True):
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))


@pytest.mark.filterwarnings("ignore::chainrule.errors.PerformanceWarning")
@pytest.mark.parametrize(("n", "has_code"), [(31 * 4, True), (BEYOND, False)])
def test_steps_with_transforms_are_machine_code(n: int, has_code: bool) -> None:
    """Up to a prime factor; beyond it, a remark says why Python runs the loop."""
    assert (n % MAX_FACTOR == 0) is has_code
    turn = cr.tensor(np.exp(-0.01j * np.arange(n)))

    @cr.compile(backend="native", verify=False)
    def energy(u: Any) -> Any:
        v = u
        for _ in range(20):
            v = cr.fft.ifft(turn * cr.fft.fft(v)) * turn
        loss = (v.abs() ** 2)[: n // 2].sum()
        return loss, *cr.autograd_grad(loss, (u,))

    u = cr.tensor(RNG.standard_normal(n), requires_grad=True)
    for got, wanted in zip(energy(u), energy.__wrapped__(u), strict=True):
        np.testing.assert_allclose(got.detach(), wanted.detach(), rtol=1e-9, atol=1e-12)
    remarks = [remark.text for remark in cr.profile(energy, u, calls=1).remarks]
    assert any(f"the factor {BEYOND}" in text for text in remarks) is not has_code


def test_a_loop_of_transforms_beside_large_arrays() -> None:
    @cr.compile(backend="native", verify=False)
    def mixed(x: Any, y: Any) -> Any:
        scale = (y @ y).sum() * 1e-6
        for _ in range(10):
            x = cr.fft.ifft(cr.fft.fft(x * scale) * cr.arange(8)).real
        return x

    x, y = cr.tensor(RNG.standard_normal(8)), cr.tensor(RNG.standard_normal((200, 200)))
    got = mixed(x, y).numpy()
    np.testing.assert_allclose(got, mixed.__wrapped__(x, y).numpy(), rtol=1e-9)
    assert not any("fft" in row.statement for row in cr.profile(mixed, x, y, calls=1).rows)
