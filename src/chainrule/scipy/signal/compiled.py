"""Functions that SciPy computes in compiled code: peaks, whose places are constants, and images.

Heights, prominences and widths of peaks follow by looking up samples. SciPy's own code in Python
does the rest of `find_peaks`, `peak_prominences` and `peak_widths`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.interop.operands import array_of
from chainrule.scipy import ndimage
from chainrule.scipy.own_code import replace_compiled
from chainrule.scipy.signal.arguments import TABLE

_scipys = LazyModule("scipy.signal._peak_finding_utils", SCIPY)


def _prominences(x: Any, peaks: Any, wlen: Any) -> tuple[Any, Any, Any]:
    """Return the height of peaks above the higher of their bases, and the bases."""
    _, left, right = _scipys._peak_prominences(array_of(x), array_of(peaks), wlen)
    return x[peaks] - cnp.maximum(x[left], x[right]), left, right


def _widths(
    x: Any, peaks: Any, rel_height: Any, prominences: Any, left: Any, right: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the widths of peaks, their heights, and where lines between samples cross them."""
    numbers = [array_of(each) for each in (x, peaks, prominences, left, right)]
    *_, lefts, rights = _scipys._peak_widths(*numbers[:2], rel_height, *numbers[2:])
    height = x[peaks] - prominences * rel_height
    # A crossing at a sample lies on the line on that side, on which the sample is the lower end.
    start, end = _crossing(x, height, lefts, 1), _crossing(x, height, rights, -1)
    return end - start, height, start, end


def _crossing(x: Any, height: Any, places: Any, step: int) -> Any:
    low = (np.floor(places) if step > 0 else np.ceil(places)).astype(int)
    apart = array_of(x[low]) < array_of(height)
    low, high = low[apart], low[apart] + step
    found = cnp.array(places)
    found[apart] = low + step * (height[apart] - x[low]) / (x[high] - x[low])
    return found


@TABLE.function("medfilt2d", "selection")
def _medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    return import_module("chainrule.scipy.signal").medfilt(input, kernel_size)


@TABLE.function("sepfir2d", "linear in the image and in each row of coefficients")
def _sepfir2d(input: Any, hrow: Any, hcol: Any) -> Any:
    for axis, row in ((1, hrow), (0, hcol)):
        input = ndimage.convolve1d(input, row, axis, mode="reflect")
    return input


replace_compiled(
    "scipy.signal._peak_finding_utils", _peak_prominences=_prominences, _peak_widths=_widths
)
