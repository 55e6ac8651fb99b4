"""Signal processing under the names of `torch.signal`: window functions.

>>> import chainrule as cr
>>> cr.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from chainrule.signal import windows

__all__ = ["windows"]
