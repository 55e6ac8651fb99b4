"""Rows of Fourier transforms."""

from __future__ import annotations

from typing import Any

from conformance.row import COMPLEX, REAL, Strided, row, situation


def _complex(library: Any, x: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    return (library.fft.ifftn if inverse else library.fft.fftn)(x, None, axes, norm)


def _half(library: Any, x: Any, axes: Any, norm: Any) -> Any:
    return library.fft.rfftn(x, None, axes, norm)


def _real(library: Any, x: Any, axes: Any, norm: Any, n: int) -> Any:
    sizes = [*(x.shape[axis] for axis in axes[:-1]), n]
    return library.fft.irfftn(x, sizes, axes, norm)


def _norms(*inputs: Any, **settings: Any) -> tuple[Any, ...]:
    return tuple(situation(name, *inputs, norm=name, **settings) for name in ("ortho", "forward"))


# PyTorch with MKL refuses to transform nothing.
ROWS = (
    row(
        "fft_c2c",
        (
            situation("plain", (4,), axes=(0,), norm="backward", inverse=False),
            situation("odd", (2, 5), axes=(1,), norm="backward", inverse=False),
            situation("inverse", (4, 2), axes=(0,), norm="backward", inverse=True),
            situation("axes", (2, 3, 2), axes=(0, 1), norm="backward", inverse=False),
            situation("axes-inverse", (3, 4), axes=(1, 0), norm="backward", inverse=True),
            *_norms((2, 3), axes=(0, 1), inverse=True),
            situation("one", (1,), axes=(0,), norm="backward", inverse=False),
            situation("two", (2,), axes=(0,), norm="backward", inverse=True),
            situation("size-0", (0, 2), axes=(1,), norm="backward", inverse=False, peer=False),
            situation("non-contiguous", Strided((3, 2)), axes=(0,), norm="ortho", inverse=False),
        ),
        call=_complex,
    ),
    row(
        "fft_r2c",
        (
            situation("plain", (4,), axes=(0,), norm="backward"),
            situation("odd", (2, 5), axes=(1,), norm="backward"),
            situation("axes", (2, 3, 2), axes=(2, 1), norm="backward"),
            *_norms((3, 4), axes=(0, 1)),
            situation("one", (1,), axes=(0,), norm="backward"),
            situation("two", (2,), axes=(0,), norm="ortho"),
            situation("size-0", (0, 2), axes=(1,), norm="backward", peer=False),
            situation("non-contiguous", Strided((3, 2)), axes=(0,), norm="ortho"),
        ),
        dtypes=REAL,
        call=_half,
    ),
    row(
        "fft_c2r",
        (
            situation("plain", (3,), axes=(0,), norm="backward", n=4),
            situation("odd", (2, 3), axes=(1,), norm="backward", n=5),
            situation("axes", (3, 3, 2), axes=(0, 1), norm="backward", n=4),
            *_norms((3, 2), axes=(0, 1), n=3),
            situation("one", (1,), axes=(0,), norm="backward", n=1),
            situation("two", (2,), axes=(0,), norm="ortho", n=2),
            situation("size-0", (0, 2), axes=(1,), norm="backward", n=2, peer=False),
            situation("non-contiguous", Strided((3, 2)), axes=(0,), norm="ortho", n=4),
        ),
        dtypes=COMPLEX,
        call=_real,
    ),
)
