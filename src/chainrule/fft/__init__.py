"""Discrete Fourier transforms, under the names of `torch.fft`, `numpy.fft` and the array API.

>>> import chainrule as cr
>>> cr.fft.rfft(cr.tensor([1.0, 2.0, 3.0, 4.0]))
tensor([10.+0.j, -2.+2.j, -2.+0.j])
"""

from chainrule.fft.helpers import fftfreq, fftshift, ifftshift, rfftfreq
from chainrule.fft.n_dim import (
    fft2,
    fftn,
    hfft2,
    hfftn,
    ifft2,
    ifftn,
    ihfft2,
    ihfftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)
from chainrule.fft.one_dim import fft, hfft, ifft, ihfft, irfft, rfft
from chainrule.out_argument import give_out as _give_out

__all__ = [
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "hfft",
    "ihfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "hfft2",
    "ihfft2",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
    "hfftn",
    "ihfftn",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]

_give_out(globals(), __name__)
