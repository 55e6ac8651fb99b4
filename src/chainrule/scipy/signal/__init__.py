"""`scipy.signal` over tensors: convolutions, digital filters, smoothing and responses.

Given arrays, a function is SciPy's own; see `docs/stats.md` for the derivatives.

>>> import numpy as np
>>> import chainrule as cr
>>> signal = cr.scipy.signal
>>> step = np.ones(4)
>>> cr.grad(lambda decay: signal.lfilter([1.0], [1.0, -decay], step)[-1])(0.5)
2.75
>>> cr.grad(lambda x: signal.convolve(x, [1.0, 2.0], mode="same")[1])(np.zeros(3))
array([2., 1., 0.])
"""

from __future__ import annotations

from chainrule.scipy.own_code import compose as _compose
from chainrule.scipy.own_code import compose_others as _compose_others
from chainrule.scipy.signal import compiled, convolutions, filters, spectra
from chainrule.scipy.signal.arguments import TABLE as _TABLE

_FAMILIES = (compiled, convolutions, filters, spectra)

_COMPOSED = """
    resample resample_poly decimate deconvolve wiener medfilt order_filter hilbert2 envelope
    vectorstrength cspline1d qspline1d welch periodogram csd coherence spectrogram stft istft
    lombscargle czt zoom_fft freqs freqs_zpk freqz_zpk sosfreqz freqz_sos group_delay minimum_phase
    firwin2 chirp gausspulse sawtooth square sweep_poly lsim dlsim impulse step dimpulse dstep
    normalize cont2discrete bilinear_zpk lp2lp lp2hp lp2bp lp2bs
    tf2ss ss2tf tf2zpk zpk2tf tf2sos sos2tf zpk2sos sos2zpk zpk2ss ss2zpk
"""
_compose(_TABLE, _COMPOSED.split())
_TABLE.of_values = frozenset(["choose_conv_method", "find_peaks_cwt"])

_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
