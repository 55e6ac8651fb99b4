"""Transforms by NumPy's ufuncs: the results of `numpy.fft`, which runs for other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import fft_ufuncs

ONE = {"fft": "FD", "ifft": "FD", "rfft": "fd", "irfft": "FD"}
SEVERAL = {"fftn": "FD", "ifftn": "FD", "rfftn": "fd"}
NORMS = (None, "backward", "ortho", "forward")


def numbers(shape: tuple[int, ...], char: str) -> Any:
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if char in "FD" else x).astype(char)


def assert_equal_up_to_rounding(found: Any, wanted: Any) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    digits = 2e-6 if wanted.dtype.char in "fF" else 1e-14
    np.testing.assert_allclose(found, wanted, rtol=0, atol=digits * np.abs(wanted).max())


@pytest.fixture(params=[False, True], ids=["one thread", "several threads"])
def parallel(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(fft_ufuncs, "PARALLEL_MIN_WORK", 1)
        monkeypatch.setattr(fft_ufuncs.threads, "get_num_threads", lambda: 3)


@pytest.mark.sampled(7)
@pytest.mark.usefixtures("parallel")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axis", [0, 1, -1, 2])
@pytest.mark.parametrize(("name", "char"), [(n, c) for n, kinds in ONE.items() for c in kinds])
def test_along_one_axis(name: str, char: str, axis: int, norm: str | None) -> None:
    x = numbers((4, 5, 6), char)
    for given in (x, x[:, ::-1], x.T):
        size = given.shape[axis]
        for n in (2 * size - 1, 2 * size - 2) if name == "irfft" else (None, size):
            found = getattr(fft_ufuncs, name)(given, n, axis, norm)
            assert_equal_up_to_rounding(found, getattr(np.fft, name)(given, n, axis, norm))
            out = np.empty_like(found)
            assert getattr(fft_ufuncs, name)(given, n=n, axis=axis, norm=norm, out=out) is out
            np.testing.assert_array_equal(out, found)


@pytest.mark.sampled(7)
@pytest.mark.usefixtures("parallel")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes", [(0,), (0, 1), (2, 0), (-1, 1, 0)], ids=str)
@pytest.mark.parametrize(("name", "char"), [(n, c) for n, kinds in SEVERAL.items() for c in kinds])
def test_along_several_axes(name: str, char: str, axes: Any, norm: str | None) -> None:
    x = numbers((4, 5, 6), char)
    kept = x.copy()
    found = getattr(fft_ufuncs, name)(x, axes=axes, norm=norm)
    assert_equal_up_to_rounding(found, getattr(np.fft, name)(x, axes=axes, norm=norm))
    out = np.empty_like(found)
    assert getattr(fft_ufuncs, name)(x, axes=axes, norm=norm, out=out) is out
    np.testing.assert_array_equal(out, found)
    np.testing.assert_array_equal(x, kept)


def test_the_ufuncs_of_this_numpy_are_used() -> None:
    assert fft_ufuncs._ufuncs() is not None


def test_other_arguments_are_numpys() -> None:
    real, half = numbers((4, 6), "d"), numbers((4, 6), "D")
    for call in (
        lambda fft: fft.fft(real),
        lambda fft: fft.fft(real.astype("g")),
        lambda fft: fft.rfft(real.tolist()),
        lambda fft: fft.rfft(real, 9),
        lambda fft: fft.irfft(half, 4),
        lambda fft: fft.irfft(half),
        lambda fft: fft.fftn(real),
        lambda fft: fft.rfftn(real, (3, 4), (0, 1)),
        lambda fft: fft.irfftn(half),
        lambda fft: fft.fftfreq(5),
        lambda fft: fft.fft(half.astype(">c16")),
    ):
        np.testing.assert_allclose(call(fft_ufuncs), call(np.fft), rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"axis": 2}, IndexError), ({"axis": -3}, IndexError), ({"norm": "x"}, ValueError)],
    ids=str,
)
def test_errors_are_numpys(settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fft_ufuncs.fft(numbers((2, 3), "D"), **settings)


def test_unexpected_ufuncs_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    known = fft_ufuncs._ufuncs()
    assert known is not None
    assert fft_ufuncs._agree(known)
    for name in known:

        def doubled(x: Any, *args: Any, ufunc: Any = known[name], **settings: Any) -> Any:
            return ufunc(2 * x, *args, **settings)

        assert not fft_ufuncs._agree(known | {name: doubled})
    monkeypatch.setattr(fft_ufuncs, "_ufuncs", lambda: None)
    x = numbers((3, 8), "D")
    np.testing.assert_allclose(fft_ufuncs.fft(x), np.fft.fft(x), rtol=1e-12)
    np.testing.assert_allclose(fft_ufuncs.fftn(x, axes=(0, 1)), np.fft.fft2(x), rtol=1e-12)
