"""stft and istft, compared with PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

RNG = np.random.default_rng(0)
SIGNAL = RNG.normal(size=(2, 37))
WINDOW = RNG.uniform(0.5, 1.5, size=8)

STFT = {
    "plain": {},
    "hop": {"hop_length": 3},
    "window": {"window": True},
    "short window": {"win_length": 5, "window": True, "hop_length": 2},
    "short ones": {"win_length": 5},
    "not centred": {"center": False},
    "constant": {"pad_mode": "constant"},
    "replicate": {"pad_mode": "replicate"},
    "circular": {"pad_mode": "circular"},
    "normalized": {"normalized": True},
    "two-sided": {"onesided": False},
    "parts": {"return_complex": False},
    "long hop": {"hop_length": 11},
}


def spectrogram(lib, x, n_fft=8, **settings):
    window = settings.pop("window", None)
    if window is True:
        window = lib.tensor(WINDOW[: settings.get("win_length", n_fft)])
    settings = {"return_complex": True, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lib.stft(x, n_fft, window=window, **settings)


@pytest.mark.parametrize("rows", [slice(None), 0], ids=["rows", "vector"])
@pytest.mark.parametrize("settings", STFT.values(), ids=STFT.keys())
def test_stft(settings, rows):
    def program(lib):
        x = lib.leaf(SIGNAL[rows])
        out = spectrogram(lib, x, **settings)
        return [out + 1, *lib.grad((out * out).abs().sum(), x)]

    same_as_torch(program, rtol=1e-9)


@pytest.mark.parametrize("n_fft", [1, 2, 7, 16])
def test_stft_of_other_lengths(n_fft):
    same_as_torch(
        lambda lib: spectrogram(lib, lib.tensor(SIGNAL), n_fft, hop_length=2) + 1, rtol=1e-9
    )


def test_complex_signals_and_windows():
    def program(lib):
        x = lib.leaf(SIGNAL + 1j * SIGNAL[::-1], "complex128")
        real = lib.tensor(SIGNAL)
        window = lib.tensor(WINDOW + 1j, "complex128")
        out = lib.stft(x, 8)
        return [out, lib.stft(real, 8, window=window), *lib.grad(out.abs().sum(), x)]

    same_as_torch(program, rtol=1e-9)


ISTFT = {
    "plain": {},
    "window": {"window": True},
    "hop": {"hop_length": 3, "window": True},
    "short window": {"win_length": 5, "window": True, "hop_length": 2},
    "not centred": {"center": False},
    "normalized": {"normalized": True},
    "two-sided": {"onesided": False},
    "length": {"length": 33},
    "its own length": {"length": 37},
    "too long": {"length": 60},
    "complex": {"onesided": False, "return_complex": True},
    "told": {"onesided": True},
}


@pytest.mark.parametrize("rows", [slice(None), 0], ids=["rows", "vector"])
@pytest.mark.parametrize("settings", ISTFT.values(), ids=ISTFT.keys())
def test_istft(settings, rows):
    shared = {k: v for k, v in settings.items() if k not in ("length", "return_complex")}
    with np.errstate(all="ignore"):
        base = spectrogram(cr, cr.tensor(SIGNAL[rows]), **shared).numpy()
    base = base + 0.1 * np.arange(base.size).reshape(base.shape)  # no signal's spectrogram

    def program(lib):
        z = lib.leaf(base, "complex128")
        options = dict(settings)
        if options.pop("window", False):
            options["window"] = lib.tensor(WINDOW[: options.get("win_length", 8)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = lib.istft(z, 8, **options)
        return [out, *lib.grad((out * out).abs().sum(), z)]

    same_as_torch(program, rtol=1e-8)


def test_the_signal_comes_back():
    x, window = cr.tensor(SIGNAL), cr.hann_window(8, dtype="float64")
    z = x.stft(8, window=window, return_complex=True)
    back = z.istft(8, window=window, length=37)
    np.testing.assert_allclose(back.numpy(), SIGNAL, atol=1e-12)


def test_a_complex_window_covers_too():
    x, window = cr.tensor(SIGNAL) * (1 + 1j), cr.tensor(1j * WINDOW)
    z = x.stft(8, window=window, onesided=False, return_complex=True)
    back = z.istft(8, window=window, onesided=False, return_complex=True, length=36)
    np.testing.assert_allclose(back.numpy(), x.numpy()[:, :36], atol=1e-12)


def test_derivatives_of_signal_and_window():
    x, w = leaf(SIGNAL[0, :12]), leaf(WINDOW[:4])
    z = leaf(RNG.normal(size=(3, 7)) + 1j * RNG.normal(size=(3, 7)), "complex128")

    def forth(x, w):
        return cr.stft(x, 4, window=w, return_complex=True)

    def back(z, w):
        return cr.istft(z, 4, window=w)

    assert gradcheck(forth, (x, w), fast_mode=True)
    assert gradcheck(back, (z, w), fast_mode=True)
    assert gradgradcheck(forth, (x, w), fast_mode=True)
    assert gradgradcheck(back, (z, w), fast_mode=True)


def test_a_signal_too_short_is_padded_with_a_warning():
    z = cr.stft(cr.ones(16), 8, return_complex=True)
    with pytest.warns(UserWarning, match="padded with zeros in the tail"):
        assert cr.istft(z, 8, length=40)[-10:].abs().sum().item() == 0


def test_single_precision_is_kept():
    x = cr.ones(16)
    assert cr.stft(x, 8, win_length=5, return_complex=True).dtype == cr.complex64
    assert cr.istft(cr.stft(x, 8, return_complex=True), 8).dtype == cr.float32


X = cr.ones(16)
Z = cr.stft(X, 8, return_complex=True)
ERRORS = {
    "left out": (lambda: cr.stft(X, 8), "requires the return_complex parameter"),
    "dims": (lambda: cr.stft(cr.ones(1, 1, 9), 4, return_complex=True), "expected a 1D or 2D"),
    "hop": (lambda: cr.stft(X, 8, 0, return_complex=True), "expected hop_length > 0"),
    "n_fft": (lambda: cr.stft(X, 0, 1, return_complex=True), "expected 0 < win_length"),
    "short": (
        lambda: cr.stft(X, 20, center=False, return_complex=True),
        "expected 0 < n_fft <=",
    ),
    "reflect": (lambda: cr.stft(X, 64, return_complex=True), "Padding size should be less than"),
    "win_length": (lambda: cr.stft(X, 8, win_length=9, return_complex=True), "win_length <= n_fft"),
    "window": (lambda: cr.stft(X, 8, window=cr.ones(7), return_complex=True), "window with size"),
    "mode": (lambda: cr.stft(X, 8, pad_mode="odd", return_complex=True), "pad_mode is one of"),
    "one side": (lambda: cr.stft(X * 1j, 8, onesided=True), "Cannot have onesided output"),
    "real": (lambda: cr.istft(X, 8), "istft requires a complex-valued input"),
    "shape": (lambda: cr.istft(Z[0], 8), "expected a tensor with 2 or 3 dimensions"),
    "frequencies": (lambda: cr.istft(Z, 12), "expected the frequency dimension"),
    "complex": (lambda: cr.istft(Z, 8, return_complex=True), "cannot have onesided input"),
    "inverse hop": (lambda: cr.istft(Z, 8, 0), "istft: expected hop_length > 0"),
    "inverse n_fft": (lambda: cr.istft(Z, 0, 1), "istft: expected n_fft > 0"),
    "uncovered": (
        lambda: cr.istft(Z, 8, window=cr.hann_window(8), center=False),
        "window overlap add min",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises((ValueError, RuntimeError), match=text):
        call()
