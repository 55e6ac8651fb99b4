"""Compiled programs with Fourier transforms: the eager engine's values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native import jit
from helpers.torch_comparison import random_array

BACKENDS = ["numpy", *(["native"] if jit.is_usable() else [])]
NORMS = ("backward", "ortho", "forward")


def assert_as_eager(job: Callable[..., Any], *arrays: Any, backend: Any) -> Any:
    """Compare a compiled function, called twice, with the eager one; return it."""
    compiled, found = cr.compile(job, backend=backend), []
    for call in (job, compiled, compiled):
        tensors = [cr.tensor(a, requires_grad=True) for a in arrays]
        outs = call(*tensors)
        found.append([out.detach().numpy() for out in outs])
    single = found[0][0].dtype.name in ("float32", "complex64")
    for later in found[1:]:
        for got, wanted in zip(later, found[0], strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            atol = (2e-5 if single else 1e-12) * np.abs(wanted).max()
            np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)
    return compiled


def with_gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def job(x: Any) -> Any:
        out = function(x)
        loss = (out.abs() ** 2).sum() * 0.5 + (out * (1 + 2j)).real.sum()
        return out, *cr.autograd_grad(loss, (x,))

    return job


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [30, 33])
def test_transforms_write_into_memory_of_the_program(
    size: int, norm: str, dtype: str, backend: Any
) -> None:
    """Results of 8 kB and more are in scratch memory, which is used again."""
    x = random_array((40, size), dtype)
    fft = cr.fft

    def there_and_back(x: Any) -> Any:
        if x.is_complex():
            y = fft.ifft2(fft.fft2(x, norm=norm) * 2, norm=norm) + fft.fft(x, dim=0, norm=norm)
            return fft.ifft(y * fft.fft(y, norm=norm), norm=norm)
        half = fft.rfft2(x, norm=norm) * (2 + 1j)
        y = fft.irfft2(half, s=x.shape, norm=norm) + fft.irfft(fft.rfft(x, norm=norm), n=size)
        return fft.hfft(fft.ihfft(y * x, norm=norm) * 3, n=size, norm=norm)

    compiled = assert_as_eager(with_gradient(there_and_back), x, backend=backend)
    assert f"norm={norm!r}, out=" in compiled.source or f"norm='{norm}'" in compiled.source


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [5, 8, 9, 64])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_sizes_beside_the_input(name: str, n: int, backend: Any) -> None:
    x = random_array((3, 8, 2), "float64" if name in ("rfft", "ihfft") else "complex128")
    job = with_gradient(lambda x: getattr(cr.fft, name)(x * x, n, 1))
    assert_as_eager(job, x, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_of_a_spectral_method(backend: Any) -> None:
    """Each step of the loop, and of its backward pass, reads stacks at a counter."""
    k = cr.tensor(2j * np.pi * np.fft.rfftfreq(64, 1 / 64) / 20)

    def job(u: Any) -> Any:
        v = u
        for _ in range(12):
            first = cr.fft.irfft(k * cr.fft.rfft(v), n=64)
            second = cr.fft.irfft(k * k * cr.fft.rfft(v), n=64)
            v = v + 1e-3 * (0.1 * second - v * first)
        return v, *cr.autograd_grad((v**2).sum(), (u,))

    assert_as_eager(job, random_array((64,)), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(6, 7), (130, 140)], ids=str)
def test_deconvolution_with_total_variation(shape: Any, backend: Any) -> None:
    blur = cr.tensor(np.fft.rfft2(random_array(shape)))

    def job(x: Any) -> Any:
        rest = cr.fft.irfft2(cr.fft.rfft2(x) * blur, s=shape) - 1
        down, right = (x[1:] - x[:-1])[:, 1:], (x[:, 1:] - x[:, :-1])[1:]
        loss = (rest**2).sum() + 0.1 * cr.sqrt(down**2 + right**2 + 1e-3).sum()
        return loss, *cr.autograd_grad(loss, (x,))

    assert_as_eager(job, random_array(shape), backend=backend)


@pytest.mark.parametrize("n", [8, 9])
@pytest.mark.parametrize("name", ["rfft", "irfft"])
def test_adjoints_are_one_real_transform(name: str, n: int) -> None:
    transform, back = getattr(cr.fft, name), {"rfft": "irfft", "irfft": "rfft"}[name]
    x = random_array((4, n) if name == "rfft" else (4, n // 2 + 1), "float64")
    x = x if name == "rfft" else x + 1j * x[::-1]

    def vjp(x: Any, g: Any) -> Any:
        return cr.autograd_grad(transform(x, n), (x,), g)[0]

    g = np.asarray((np.fft.rfft if name == "rfft" else np.fft.irfft)(x, n))
    compiled = cr.compile(vjp, backend="numpy")
    compiled(cr.tensor(x, requires_grad=True), cr.tensor(g))
    calls = [line.split("(")[0] for line in compiled.source.split("np.fft.")[1:]]
    assert calls == [back]
