"""Short-time Fourier transform and its inverse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import holds_somewhere, namespace
from chainrule.errors import ArgumentError, AutogradError, DTypeError, ShapeError
from chainrule.fft.one_dim import fft, ifft, irfft, rfft
from chainrule.ops import cat, multiply, view_as_real
from chainrule.ops.permute import transpose
from chainrule.primitives import indexing

__all__ = ["istft", "stft"]

_MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def stft(
    input: Operand,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Operand | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the short-time Fourier transform: the spectra of overlapping frames of a signal.

    Parameters
    ----------
    input : Tensor, shape (n,) or (b, n)
        Real or complex signals.
    n_fft : int
        The length of a frame, in samples.
    hop_length : int, default n_fft // 4
        The distance between frames, in samples.
    win_length : int, default n_fft
        The length of the window, which is centred in the frame.
    window : Tensor, shape (win_length,), optional
        Weights of the samples of a frame; ones if left out.
    center : bool, default True
        Pad the signal by n_fft // 2 at both ends, so that frame t is centred at t · hop_length.
    pad_mode : "reflect", "replicate", "circular" or "constant"
        The padding, as of `nn.functional.pad`.
    normalized : bool, default False
        Divide by √n_fft.
    onesided : bool, optional
        Return only the non-negative frequencies: by default for real signals and windows.
    return_complex : bool
        True returns complex numbers, False real and imaginary parts in a last dimension. It may be
        left out where the signal or the window is complex.

    Returns
    -------
    Tensor, shape (..., frequencies, frames); complex

    Raises
    ------
    ShapeError
        If a shape or a length doesn't fit.
    ArgumentError
        If `return_complex` is left out, or a length is not positive.

    Notes
    -----
    Derivatives: linear in the signal and in the window [1]_.

    References
    ----------
    .. [1] J. B. Allen, L. R. Rabiner, Proc. IEEE 65(11), 1977, 1558–1564.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.stft(cr.ones(8), 4, 2, center=False, return_complex=True).real
    tensor([[4., 4., 4.],
            [0., 0., 0.],
            [0., 0., 0.]])
    """
    signal = floating(input)
    if signal.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a 1D or 2D tensor, got the shape {list(signal.shape)}")
    weights = _full_window("stft", n_fft, win_length, window, signal)
    mixed = signal.is_complex() or (weights is not None and weights.is_complex())
    if return_complex is None and not mixed:
        raise ArgumentError(
            "stft requires the return_complex parameter be given for real inputs: "
            "return_complex=True"
        )
    if center:
        signal = _pad_signal(signal, n_fft // 2, pad_mode)
    hop = _hop("stft", n_fft, hop_length)
    if n_fft > signal.shape[-1]:
        raise ShapeError(
            f"stft: expected 0 < n_fft <= {signal.shape[-1]}, but got n_fft={n_fft}: the signal is "
            "shorter than a frame"
        )
    frames = signal.unfold(-1, n_fft, hop)
    if weights is not None:
        frames = multiply(frames, weights)
    if onesided and mixed:
        raise ArgumentError("stft: Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else "backward"
    spectra = (fft if mixed or onesided is False else rfft)(frames, norm=norm)
    result = transpose(spectra, -2, -1)
    return result if return_complex is None or return_complex else view_as_real(result)


def istft(
    input: Operand,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Operand | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal of a spectrogram: the inverse of `stft`.

    Parameters
    ----------
    input : Tensor, shape (..., frequencies, frames)
        The result of `stft`, with at most one dimension before these; complex.
    n_fft, hop_length, win_length, window, center, normalized
        The arguments of `stft`.
    onesided : bool, optional
        Whether there are only non-negative frequencies: by default if there are n_fft // 2 + 1.
    length : int, optional
        The length of the signal: without it, samples after the last complete frame are missing.
    return_complex : bool, default False
        Whether the signal is complex.

    Returns
    -------
    Tensor, shape (..., n)
        The signal whose spectrogram is nearest in the least-squares sense [1]_.

    Raises
    ------
    ShapeError
        If a shape or a length doesn't fit.
    DTypeError
        If the spectrogram is not complex.
    AutogradError
        If a sample is covered by no window.

    Notes
    -----
    Derivatives: linear in the spectrogram; exact for the window, too.

    References
    ----------
    .. [1] D. W. Griffin, J. S. Lim, IEEE Trans. Acoust. Speech Signal Process. 32(2), 1984.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, w = cr.arange(8.0), cr.hann_window(4)
    >>> cr.istft(cr.stft(x, 4, window=w, return_complex=True), 4, window=w).round(decimals=4) + 0
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    spectra = _check_spectra(input)
    hop = _hop("istft", n_fft, hop_length)
    frequencies, count = spectra.shape[-2:]
    if _check_onesided(frequencies, n_fft, onesided) and return_complex:
        raise ArgumentError(
            "istft: cannot have onesided input and a complex result: return_complex"
        )
    weights = _full_window("istft", n_fft, win_length, window, spectra)
    norm: Any = "ortho" if normalized else "backward"
    rows = transpose(spectra, -2, -1)
    if return_complex:
        frames = ifft(rows, norm=norm)
    else:  # for a real signal the negative frequencies are redundant
        frames = irfft(rows[..., : n_fft // 2 + 1], n_fft, norm=norm)
    if weights is None:
        xp = namespace(spectra._array)
        weights = make(xp.ones((n_fft,), dtype=spectra.real.dtype), None)
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    signal = _overlap_add_normalised(frames, weights, hop, slice(start, end))
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        signal = _pad_zeros(signal, 0, end - total)
    return signal


def _check_spectra(input: Operand) -> Tensor:
    spectra = tensor_of(input)
    if not spectra.is_complex():
        raise DTypeError(
            f"istft requires a complex-valued input tensor, got {spectra.dtype}: "
            "view_as_complex() makes one from real and imaginary parts"
        )
    if spectra.ndim not in (2, 3) or 0 in spectra.shape:
        raise ShapeError(
            "istft: expected a tensor with 2 or 3 dimensions and elements, got the shape "
            f"{list(spectra.shape)}"
        )
    return spectra


def _check_onesided(frequencies: int, n_fft: int, onesided: bool | None) -> bool:
    """Tell whether these are only the non-negative frequencies; raise if the number is wrong."""
    if onesided is None:
        onesided = frequencies != n_fft
    if frequencies != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(
            "istft: expected the frequency dimension of the input tensor to match "
            f"n_fft / 2 + 1 when onesided=True or n_fft when onesided=False, got {frequencies}"
        )
    return onesided


def _hop(name: str, n_fft: int, hop_length: int | None) -> int:
    """Return the distance between frames; raise if it or n_fft is not positive."""
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft <= 0:
        raise ArgumentError(f"{name}: expected n_fft > 0, but got n_fft={n_fft}")
    if hop <= 0:
        raise ArgumentError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    return hop


def _full_window(
    name: str, n_fft: int, win_length: int | None, window: Operand | None, like: Tensor
) -> Tensor | None:
    """Return the window centred in n_fft zeros; None if all weights are 1."""
    size = n_fft if win_length is None else win_length
    if not 0 < size <= n_fft:
        raise ArgumentError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is None:
        if size == n_fft:
            return None
        xp = namespace(like._array)
        weights = make(xp.ones((size,), dtype=xp.real(like._array).dtype), None)
    else:
        weights = tensor_of(window)
    if weights.shape != (size,):
        raise ShapeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={size}, but got "
            f"window with size {list(weights.shape)}"
        )
    left = (n_fft - size) // 2
    return _pad_zeros(weights, left, n_fft - size - left) if size < n_fft else weights


def _pad_zeros(x: Tensor, before: int, after: int) -> Tensor:
    xp = namespace(x._array)
    parts = [make(xp.zeros((*x.shape[:-1], n), dtype=x.dtype), None) for n in (before, after)]
    return cat([parts[0], x, parts[1]], -1)


def _pad_signal(x: Tensor, pad: int, mode: str) -> Tensor:
    if mode == "constant":
        return _pad_zeros(x, pad, pad)
    if mode not in _MODES:
        raise ArgumentError(
            f"stft: pad_mode is one of reflect, replicate, circular and constant, got {mode!r}"
        )
    n = x.shape[-1]
    min_length = pad + 1 if mode == "reflect" else pad if mode == "circular" else 1
    if n < min_length:
        raise ShapeError(
            f"stft: Padding size should be less than the corresponding input dimension: {pad} at "
            f"both ends of a signal of {n}, by {mode!r}: take a smaller n_fft, or center=False"
        )
    positions: Any = np.pad(np.arange(n), pad, mode=_MODES[mode])
    return indexing.index.apply(x, key=(Ellipsis, positions))


def _overlap_add_normalised(frames: Tensor, weights: Tensor, hop: int, part: slice) -> Tensor:
    """Return a part of the least-squares signal of frames: overlap-add divided by the coverage."""
    count, length = frames.shape[-2:]
    signal = _overlap_add(multiply(frames, weights), hop)[..., part]
    cover = _overlap_add((weights * weights).expand(count, length), hop)[part]
    if not cover.numel() or holds_somewhere(~(abs(cover._array) > 1e-11)):
        raise AutogradError(
            "istft: window overlap add min: a sample is covered by no window (sum of squares up to "
            "1e-11): take a smaller hop_length, center=True, or a window without zeros at its ends"
        )
    return signal / cover


def _overlap_add(frames: Tensor, hop: int) -> Tensor:
    """Return the sum of frames placed `hop` apart: the adjoint of taking them."""
    count, length = frames.shape[-2:]
    positions = hop * np.arange(count)[:, None] + np.arange(length)
    shape = (*frames.shape[:-2], length + hop * (count - 1))
    return indexing.index_add.apply(frames, shape=shape, key=(Ellipsis, positions))
