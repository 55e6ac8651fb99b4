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

from chainrule.scipy.signal import convolutions, filters, spectra
from chainrule.scipy.signal.arguments import TABLE as _TABLE

_FAMILIES = (convolutions, filters, spectra)

_TABLE.of_values = frozenset(["choose_conv_method"])

__getattr__, __dir__ = _TABLE.namespace()
