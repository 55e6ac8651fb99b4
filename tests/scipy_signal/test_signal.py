"""`cr.scipy.signal`: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_signal = pytest.importorskip("scipy.signal")

RNG = np.random.default_rng(6)
SIGNAL, ROWS = RNG.normal(size=9), RNG.normal(size=(8, 2))
B, A = scipy_signal.butter(3, 0.3)
RISING = np.array([1.0, 0.5, 0.2, 0.0, 0.1, 0.3])  # of a section, whose a[0] stays 1
SOS = scipy_signal.butter(3, 0.3, output="sos")

# Calls, and the arrays that are differentiated. The first one is the one that is batched.
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    **{
        f"{name}-{mode}-{method}": (
            lambda s, x, y, n=name, m=mode, how=method: getattr(s, n)(x, y, m, how),
            [SIGNAL, RNG.normal(size=k)],
        )
        for name in ("convolve", "correlate")
        for mode, method, k in (
            ("full", "direct", 4), ("same", "fft", 4), ("same", "direct", 12),
            ("valid", "auto", 11), ("full", "fft", 3),
        )
    },
    **{
        f"{name}-axis": (
            lambda s, x, y, n=name: getattr(s, n)(x, y, "same", axes=0),
            [ROWS, RNG.normal(size=(3, 1))],
        )
        for name in ("fftconvolve", "oaconvolve")
    },
    "convolve-3d": (
        lambda s, x, y: s.convolve(x, y, "same"),
        [RNG.normal(size=(2, 3, 2)), RNG.normal(size=(2, 1, 2))],
    ),
    **{
        f"{name}-{mode}-{boundary}": (
            lambda s, x, y, n=name, m=mode, b=boundary: getattr(s, n)(
                x, y, m, b, 0.7 if b == "pad" else 0
            ),
            [RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3))],
        )
        for name in ("convolve2d", "correlate2d")
        for mode, boundary in (
            ("full", "fill"), ("same", "wrap"), ("same", "symm"), ("same", "pad"),
            ("valid", "fill"), ("full", "symm"),
        )
    },
    "lfilter": (lambda s, x, b, a: s.lfilter(b, a, x), [SIGNAL, B, 1.5 * A]),
    "lfilter-moving": (lambda s, x, b: s.lfilter(b, 1.0, x), [SIGNAL, B]),
    "lfilter-zi": (
        lambda s, x, b, a, z: s.lfilter(b, a, x, 0, z),
        [ROWS, B[:2], A, RNG.normal(size=(3, 2))],
    ),
    "lfilter_zi": (lambda s, b, a: s.lfilter_zi(b, a), [B, A]),
    **{
        f"filtfilt-{padtype}": (
            lambda s, x, b, a, p=padtype: s.filtfilt(b, a, x, padtype=p, padlen=5 if p else None),
            [SIGNAL, B[:3], A[:3]],
        )
        for padtype in ("odd", "even", "constant", None)
    },
    "sosfilt": (lambda s, x: s.sosfilt(SOS, x), [SIGNAL]),
    "sosfilt-sections": (
        lambda s, x, r: s.sosfilt(SOS * (1 + RISING * r), x),
        [SIGNAL, RNG.normal(size=1)],
    ),
    "sosfilt-zi": (
        lambda s, x, z: s.sosfilt(SOS, x, 0, z), [ROWS, RNG.normal(size=(2, 2, 2))],
    ),
    "sosfiltfilt-0": (lambda s, x: s.sosfiltfilt(SOS, x, 0), [RNG.normal(size=(20, 2))]),
    "sosfiltfilt": (lambda s, x: s.sosfiltfilt(SOS, x, padlen=6), [SIGNAL]),
    "sosfilt_zi": (lambda s, x: s.sosfilt_zi(SOS * (1 + RISING * x)), [np.ones(2)[:1]]),
    "detrend": (lambda s, x: s.detrend(x), [SIGNAL]),
    "detrend-breaks": (lambda s, x: s.detrend(x, 0, bp=[3, 4]), [ROWS]),
    "detrend-constant": (lambda s, x: s.detrend(x, 0, "constant"), [ROWS]),
    **{
        f"savgol-{mode}-{window}": (
            lambda s, x, m=mode, w=window: s.savgol_filter(x, w, 2, 1, 0.5, mode=m, cval=0.7),
            [SIGNAL],
        )
        for mode, window in (
            ("interp", 5), ("interp", 4), ("mirror", 5), ("nearest", 6), ("wrap", 3),
            ("constant", 5),
        )
    },
    "hilbert": (lambda s, x: s.hilbert(x), [SIGNAL]),
    "hilbert-longer": (lambda s, x: s.hilbert(x, 12, 0), [ROWS]),
    "freqz": (lambda s, b, a: s.freqz(b, a, 5, fs=3.0)[1], [B, A]),
    "freqz-moving": (lambda s, b: s.freqz(b, worN=[0.3, 1.0], whole=True)[1], [B]),
    **{
        f"upfirdn-{up}-{down}-{mode}": (
            lambda s, x, h, u=up, d=down, m=mode: s.upfirdn(h, x, u, d, 0, m, 0.5),
            [ROWS, RNG.normal(size=k)],
        )
        for up, down, k, mode in (
            (1, 1, 3, "constant"), (3, 2, 7, "constant"), (2, 5, 4, "symmetric"),
            (4, 1, 2, "edge"), (2, 3, 1, "constant"), (2, 3, 9, "reflect"), (3, 4, 8, "wrap"),
        )
    },
}  # fmt: skip

# SciPy's own code on arrays that record.
RATIONAL = [RNG.normal(size=2), np.array([1.0, 0.6, 0.3])]
COMPOSED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "resample": (lambda s, x: s.resample(x, 12), [SIGNAL]),
    "resample-window": (lambda s, x: s.resample(x, 5, window="hann"), [ROWS]),
    "resample_poly": (lambda s, x: s.resample_poly(x, 3, 2), [SIGNAL]),
    "decimate": (lambda s, x: s.decimate(x, 2, ftype="fir"), [RNG.normal(size=30)]),
    "decimate-iir": (lambda s, x: s.decimate(x, 2), [RNG.normal(size=40)]),
    "deconvolve": (lambda s, x, b: s.deconvolve(x, b)[0], [SIGNAL, np.array([1.0, 0.4])]),
    "wiener": (lambda s, x: s.wiener(x, 3, 0.1), [SIGNAL]),
    "medfilt": (lambda s, x: s.medfilt(x, 3), [SIGNAL]),
    "sepfir2d": (
        lambda s, x, h: s.sepfir2d(x.reshape(3, -1), h, [0.3, 0.5, 0.25]),
        [SIGNAL, np.array([0.2, 0.6, 0.1])],
    ),
    "hilbert2": (lambda s, x: s.hilbert2(x), [ROWS]),
    "envelope": (lambda s, x: s.envelope(x), [SIGNAL]),
    "vectorstrength": (lambda s, x, p: s.vectorstrength(x, p[0]), [SIGNAL, np.array([2.0])]),
    "welch": (lambda s, x: s.welch(x, nperseg=4)[1], [SIGNAL]),
    "welch-median": (lambda s, x: s.welch(x, nperseg=4, average="median", axis=0)[1], [ROWS]),
    "periodogram": (lambda s, x: s.periodogram(x, 2.0, "hann", detrend="linear")[1], [SIGNAL]),
    "csd": (lambda s, x, y: s.csd(x, y, nperseg=4)[1], [SIGNAL, np.cos(SIGNAL)]),
    "coherence": (lambda s, x, y: s.coherence(x, y, nperseg=4)[1], [SIGNAL, np.cos(SIGNAL)]),
    "spectrogram": (lambda s, x: s.spectrogram(x, nperseg=4, noverlap=2)[2], [SIGNAL]),
    "stft": (lambda s, x: s.stft(x, nperseg=4)[2], [SIGNAL]),
    "istft": (lambda s, x: s.istft(x, nperseg=4)[1], [RNG.normal(size=(3, 4))]),
    "lombscargle": (
        lambda s, t, x: s.lombscargle(t, x, [0.4, 1.1], normalize="power"),
        [np.arange(9.0) + 0.1 * SIGNAL, SIGNAL],
    ),
    "czt": (lambda s, x: s.czt(x, 4, np.exp(-0.3j)), [SIGNAL]),
    "zoom_fft": (lambda s, x: s.zoom_fft(x, [0.1, 0.4], 5), [SIGNAL]),
    "cspline1d": (lambda s, x: s.cspline1d(x), [SIGNAL]),
    "freqs": (lambda s, b, a: s.freqs(b, a, [0.3, 2.0])[1], RATIONAL),
    "freqz_zpk": (lambda s, z, p: s.freqz_zpk(z, p, 1.5, 4)[1], [SIGNAL[:2], 0.3 * SIGNAL[2:4]]),
    "freqz_sos": (lambda s, r: s.freqz_sos(SOS * (1 + RISING * r), 4)[1], [np.ones(1)]),
    "group_delay": (lambda s, b, a: s.group_delay((b, a), 4)[1], RATIONAL),
    "firwin2": (lambda s, g: s.firwin2(9, [0.0, 0.3, 1.0], g), [np.array([1.0, 0.8, 0.0])]),
    "chirp": (
        lambda s, t, f: s.chirp(t, f[0], 2.0, f[1], "quadratic", 0.3),
        [np.linspace(0.0, 1.9, 5), np.array([1.0, 3.0])],
    ),
    "gausspulse": (lambda s, t: s.gausspulse(t, 0.7), [SIGNAL]),
    "sawtooth": (lambda s, t: s.sawtooth(t, 0.3), [SIGNAL]),
    "sweep_poly": (lambda s, t, c: s.sweep_poly(t, c), [SIGNAL, RATIONAL[1]]),
    "lsim": (
        lambda s, u, b, a: s.lsim((b, a), u, 0.2 * np.arange(9))[1], [SIGNAL, *RATIONAL],
    ),
    "dlsim": (lambda s, u, b, a: s.dlsim((b, a, 0.1), u)[1], [SIGNAL, *RATIONAL]),
    "step": (lambda s, b, a: s.step((b, a), T=np.arange(5.0))[1], RATIONAL),
    "impulse": (lambda s, b, a: s.impulse((b, a), T=np.arange(5.0))[1], RATIONAL),
    "ss2tf": (
        lambda s, a, b: s.ss2tf(a, b, np.ones((1, 2)), np.zeros((1, 1))),
        [RNG.normal(size=(2, 2)), RNG.normal(size=(2, 1))],
    ),
    "tf2ss": (lambda s, b, a: s.tf2ss(b, a), RATIONAL),
    "tf2zpk": (lambda s, b, a: s.tf2zpk(b, a), RATIONAL),
    "zpk2tf": (lambda s, z, p: s.zpk2tf(z, p, 2.0), [SIGNAL[:2], SIGNAL[2:5]]),
    "zpk2sos": (lambda s, z, p: s.zpk2sos(z, p, 2.0), [SIGNAL[:2], SIGNAL[2:4]]),
    "sos2tf": (lambda s, r: s.sos2tf(SOS * (1 + RISING * r)), [np.ones(1)]),
    "lp2bp": (lambda s, b, a: s.lp2bp(b, a, 2.0, 0.7), RATIONAL),
    "bilinear_zpk": (lambda s, z, p: s.bilinear_zpk(z, p, 1.0, 2.0), [SIGNAL[:1], SIGNAL[1:3]]),
    "cont2discrete": (
        lambda s, a, b: s.cont2discrete((a, b, np.eye(2), np.zeros((2, 1))), 0.1)[:2],
        [RNG.normal(size=(2, 2)), RNG.normal(size=(2, 1))],
    ),
    "minimum_phase": (lambda s, h: s.minimum_phase(h), [np.array([0.1, 0.3, 0.9, 0.3, 0.1])]),
}  # fmt: skip
QUICK = {"convolve-same-fft", "correlate2d-same-symm", "lfilter", "lfilter-zi", "freqz", "hilbert"}
QUICK |= {"savgol-interp-5", "detrend-breaks", "filtfilt-odd"}


def real_parts(results: Any) -> list[Any]:
    """Return results as real tensors."""
    found = results if isinstance(results, tuple) else (results,)
    return [part for x in found for part in ((x.real, x.imag) if np.iscomplexobj(x) else (x,))]


@pytest.mark.parametrize("label", CASES)
def test_values(label: str) -> None:
    call, arrays = CASES[label]
    wanted = real_parts(call(scipy_signal, *arrays))
    alone = real_parts(call(cr.scipy.signal, *arrays))
    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    found = real_parts(call(cr.scipy.signal, *tensors))
    unrecorded = real_parts(call(cr.scipy.signal, *map(cr.tensor, arrays)))
    narrow = [cr.tensor(x.astype(np.float32), requires_grad=True) for x in arrays]
    for w, a, f, u, n in zip(
        wanted, alone, found, unrecorded, real_parts(call(cr.scipy.signal, *narrow)), strict=True
    ):
        np.testing.assert_array_equal(a, w)
        np.testing.assert_allclose(f.detach().numpy(), w, 1e-10, 1e-12)
        np.testing.assert_allclose(u.numpy(), w, 1e-12, 1e-12)
        assert n.dtype == np.float32 or label.startswith("sos")  # SOS is of float64
        np.testing.assert_allclose(n.detach().numpy(), w, 1e-3, 1e-4)


@pytest.mark.parametrize(
    "label",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.thorough) for x in CASES],
)
def test_derivatives(label: str) -> None:
    call, arrays = CASES[label]
    backend = None if label in QUICK else "numpy"  # LLVM would take most of the time

    def ours(*xs: Any) -> Any:
        return tuple(real_parts(call(cr.scipy.signal, *xs)))

    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    assert cr.gradcheck(ours, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(ours, tensors, fast_mode=True)
    eager = ours(*tensors)
    # The gradient's program below has the values, too: that of the values alone takes its time.
    compiled = cr.compile(ours)(*tensors) if label in QUICK else eager
    stacked = np.stack([arrays[0], arrays[0][::-1] * 0.5])
    if label in ("lfilter_zi", "freqz", "freqz-moving"):
        stacked = np.stack([arrays[0], arrays[0] * 0.5])
    mapped = cr.vmap(lambda x: ours(x, *arrays[1:]))(stacked)
    rows = [real_parts(call(scipy_signal, x, *arrays[1:])) for x in stacked]
    for i, (e, c, m) in enumerate(zip(eager, compiled, mapped, strict=True)):
        np.testing.assert_allclose(c.detach().numpy(), e.detach().numpy(), 1e-10, 1e-12)
        np.testing.assert_allclose(m, [row[i] for row in rows], 1e-9, 1e-11)
    weighted = lambda *xs: sum((part**2).sum() for part in ours(*xs))  # noqa: E731
    every = tuple(range(len(arrays)))
    plain = cr.grad(weighted, every)(*arrays)
    of_program = cr.compile(cr.grad(weighted, every), backend=backend)(*arrays)
    for p, c in zip(plain, of_program, strict=True):
        assert type(p) is np.ndarray
        np.testing.assert_allclose(c, p, 1e-8, 1e-10)


# Of these, SciPy's code looks at values.
WITHOUT_PROGRAM = {
    "decimate-iir", "vectorstrength", "lombscargle", "freqz_sos", "group_delay", "sawtooth", "lsim",
    "dlsim", "step", "impulse", "ss2tf", "tf2ss", "tf2zpk", "zpk2sos", "sos2tf", "lp2bp",
    "minimum_phase",
}  # fmt: skip


@pytest.mark.parametrize(
    "label",
    [
        x if x in ("welch", "lsim") else pytest.param(x, marks=pytest.mark.thorough)
        for x in COMPOSED
    ],
)
@pytest.mark.filterwarnings("ignore:h does not appear")  # of a symmetric one
def test_scipys_own_code(label: str) -> None:
    call, arrays = COMPOSED[label]

    def ours(*xs: Any) -> Any:
        return tuple(real_parts(call(cr.scipy.signal, *xs)))

    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    narrow = [x.astype(np.float32) for x in arrays]
    found = ours(*tensors)
    for w, f in zip(real_parts(call(scipy_signal, *arrays)), found, strict=True):
        np.testing.assert_allclose(np.asarray(f.detach()), w, 1e-10, 1e-12)
    of_narrow = ours(*[cr.tensor(x, requires_grad=True) for x in narrow])
    for w, f in zip(real_parts(call(scipy_signal, *narrow)), of_narrow, strict=True):
        assert f.dtype == w.dtype
    assert cr.gradcheck(ours, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(ours, tensors, fast_mode=True)
    program = cr.compile(ours, backend="numpy")
    if label in WITHOUT_PROGRAM:
        with pytest.raises(cr.errors.CompileError):
            program(*tensors)
        return
    for c, f in zip(program(*tensors), found, strict=True):
        np.testing.assert_allclose(c.detach(), f.detach(), 1e-10, 1e-12)
    stacked = np.stack([arrays[0], arrays[0] * 0.5])
    mapped = cr.vmap(lambda x: ours(x, *arrays[1:]))(stacked)
    rows = [real_parts(call(scipy_signal, x, *arrays[1:])) for x in stacked]
    for i, m in enumerate(mapped):
        np.testing.assert_allclose(m, [row[i] for row in rows], 1e-9, 1e-11)


def test_complex_signals() -> None:
    z, w = RNG.normal(size=(2, 5)) + 1j * RNG.normal(size=(2, 5))
    for name in ("convolve", "correlate"):
        ours = getattr(cr.scipy.signal, name)
        x, y = cr.tensor(z, requires_grad=True), cr.tensor(w, requires_grad=True)
        wanted = getattr(scipy_signal, name)(z, w)
        for method in ("direct", "fft"):
            np.testing.assert_allclose(ours(x, y, method=method).detach().numpy(), wanted, 1e-11)
            assert cr.gradcheck(
                lambda x, y, f=ours, m=method: f(x, y, method=m), [x, y], fast_mode=True
            )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130, 1000, 5000])
def test_filters_of_all_lengths(n: int) -> None:
    x = RNG.normal(size=n)
    b, a = scipy_signal.butter(4, 0.05)
    filtered = cr.scipy.signal.lfilter(b, a, cr.tensor(x, requires_grad=True))
    np.testing.assert_allclose(
        filtered.detach().numpy(), scipy_signal.lfilter(b, a, x), 1e-7, 1e-10
    )
    # The transposed filter runs backward in time.
    weights = RNG.normal(size=n)
    found = cr.grad(lambda x: cr.scipy.signal.lfilter(b, a, x) @ weights)(x)
    np.testing.assert_allclose(found, scipy_signal.lfilter(b, a, weights[::-1])[::-1], 1e-7, 1e-10)


def test_a_missing_sample_reaches_those_after_it() -> None:
    x = np.cos(np.arange(9.0))
    x[4] = np.nan
    for n in range(1, 10):  # of signals that are shorter than the filter, too
        signal = cr.tensor(x[:n], requires_grad=True)
        found = cr.scipy.signal.lfilter(B, A, signal).detach().numpy()
        np.testing.assert_allclose(found, scipy_signal.lfilter(B, A, x[:n]), 1e-12)


def test_padding_by_the_taps_of_sections() -> None:
    x = RNG.normal(size=30)
    for column in (2, 5):
        sos = np.tile([1.0, 0.5, 0.3, 1.0, 0.1, 0.2], (2, 1))
        sos[0, column] = 0
        found = cr.scipy.signal.sosfiltfilt(sos, cr.tensor(x, requires_grad=True))
        np.testing.assert_allclose(found.detach(), scipy_signal.sosfiltfilt(sos, x), 1e-9, 1e-12)


def test_narrow_filters_are_as_exact_as_scipys() -> None:
    # Its poles are close together: of a state, rounding is amplified a thousand million times.
    b, a = scipy_signal.butter(8, 0.05)
    x = RNG.normal(size=2000)
    exact = scipy_signal.sosfilt(scipy_signal.butter(8, 0.05, output="sos"), x)
    found = cr.scipy.signal.lfilter(b, a, cr.tensor(x, requires_grad=True)).detach().numpy()
    assert abs(found - exact).max() < 10 * abs(scipy_signal.lfilter(b, a, x) - exact).max()


def test_parts_of_a_signal_are_filtered_one_after_the_other() -> None:
    x = cr.tensor(RNG.normal(size=150), requires_grad=True)
    zi = cr.scipy.signal.lfilter_zi(B, A)
    whole, _ = cr.scipy.signal.lfilter(B, A, x, zi=zi)
    first, states = cr.scipy.signal.lfilter(B, A, x[:70], zi=zi)
    second, _ = cr.scipy.signal.lfilter(B, A, x[70:], zi=states)
    np.testing.assert_allclose(cr.cat([first, second]).detach(), whole.detach(), 1e-10, 1e-12)
    parts = cr.autograd.grad((first.sum() + (second**2).sum(),), (x,))[0]
    wanted = cr.autograd.grad((whole[:70].sum() + (whole[70:] ** 2).sum(),), (x,))[0]
    np.testing.assert_allclose(parts, wanted, 1e-9, 1e-11)


MISTAKES: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("ShapeError", "same dimensionality", lambda s, x: s.convolve(x, np.ones((2, 2)))),
    ("ShapeError", "not empty", lambda s, x: s.convolve(x, np.ones(0))),
    ("ArgumentError", "mode is 'valid', 'same' or 'full'", lambda s, x: s.convolve(x, x, "all")),
    ("ArgumentError", "method is 'auto'", lambda s, x: s.correlate(x, x, method="slow")),
    ("ArgumentError", "at least as large as the other",
     lambda s, x: s.convolve(x[:, None], np.ones((2, 2)), "valid")),
    ("ArgumentError", "axes exceeds", lambda s, x: s.fftconvolve(x, x, axes=1)),
    ("ArgumentError", "must be unique", lambda s, x: s.fftconvolve(x, x, axes=[0, -1])),
    ("ShapeError", "incompatible shapes",
     lambda s, x: s.fftconvolve(x[None], np.ones((1, 2)), axes=0)),
    ("ShapeError", "must both be 2-D", lambda s, x: s.convolve2d(x, x)),
    ("ArgumentError", "boundary is", lambda s, x: s.correlate2d(x[None], x[None], boundary="no")),
    ("ShapeError", "one row of coefficients for b", lambda s, x: s.lfilter([[1.0]], [1.0], x)),
    ("ArgumentError", r"a\[0\] must not be 0", lambda s, x: s.lfilter([1.0], [0.0, 1.0], x)),
    ("ShapeError", r"shape of zi: expected \[1\]",
     lambda s, x: s.lfilter([1.0], [1.0, 0.5], x, zi=np.ones(2))),
    ("ArgumentError", "axis 1 is not one", lambda s, x: s.lfilter([1.0], [1.0], x, axis=1)),
    ("ShapeError", "at least one sample", lambda s, x: s.lfilter([1.0], [1.0], x[:0])),
    ("ArgumentError", "unknown value 'no' given to padtype",
     lambda s, x: s.filtfilt(B, A, x, padtype="no")),
    ("ArgumentError", "greater than padlen, which is 12", lambda s, x: s.filtfilt(B, A, x)),
    ("ArgumentError", "method must be 'pad'", lambda s, x: s.filtfilt(B, A, x, method="gust")),
    ("ShapeError", "n_sections, 6", lambda s, x: s.sosfilt(np.ones((2, 5)), x)),
    ("ArgumentError", "should be all ones", lambda s, x: s.sosfilt(2 * SOS, x)),
    ("ShapeError", "invalid zi shape", lambda s, x: s.sosfilt(SOS, x, zi=np.ones((1, 2)))),
    ("ArgumentError", "'linear' or 'constant'", lambda s, x: s.detrend(x, type="cubic")),
    ("ArgumentError", "breakpoints must be less", lambda s, x: s.detrend(x, bp=99)),
    ("ArgumentError", "mode must be 'mirror'", lambda s, x: s.savgol_filter(x, 5, 2, mode="no")),
    ("ArgumentError", "less than or equal to the size", lambda s, x: s.savgol_filter(x, 11, 2)),
    ("ArgumentError", "polyorder must be less", lambda s, x: s.savgol_filter(x, 3, 4)),
    ("DTypeError", "expected real numbers", lambda s, x: s.hilbert(x * 1j)),
    ("ArgumentError", "N must be positive", lambda s, x: s.hilbert(x, 0)),
    ("MissingRuleError", "scipy.signal.remez has no derivative", lambda s, x: s.remez(3, x, [1.0])),
    ("ArgumentError", "upfirdn: mode must be", lambda s, x: s.upfirdn([1.0], x, mode="line")),
    ("ArgumentError", "both up and down must be >= 1", lambda s, x: s.upfirdn([1.0], x, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "call"), MISTAKES, ids=[m[1][:24] for m in MISTAKES])
def test_mistakes(kind: str, text: str, call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(getattr(cr, kind), match=text):
        call(cr.scipy.signal, cr.tensor(SIGNAL, requires_grad=True))


def test_a_library_imported_anew_records(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_signals.py").write_text(
        "import scipy.signal as s\n\n\n"
        "def smooth(x):\n    return s.lfilter(*s.butter(2, 0.3), x) * s.windows.hann(len(x))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    smooth = importlib.import_module("chainrule.imported.of_signals").smooth
    tensor = cr.tensor(SIGNAL, requires_grad=True)
    np.testing.assert_allclose(
        smooth(tensor).detach(), importlib.import_module("of_signals").smooth(SIGNAL), 1e-11
    )
    assert cr.gradcheck(smooth, tensor, fast_mode=True)


def test_constants_are_scipys() -> None:
    np.testing.assert_array_equal(cr.scipy.signal.windows.hann(5), scipy_signal.windows.hann(5))
    numbers = cr.scipy.signal.convolve(cr.tensor([1, 2]), cr.tensor([3, 4]))
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [3, 10, 8]
    assert cr.scipy.signal.choose_conv_method(cr.tensor(SIGNAL), SIGNAL) == "direct"
