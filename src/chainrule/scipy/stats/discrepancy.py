"""Functions that SciPy computes in compiled code: discrepancies, and medians of slopes.

SciPy's own code in Python does the rest of `qmc.discrepancy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.errors import AutogradError
from chainrule.interop.operands import are_known, arrays_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.own_code import replace_compiled
from chainrule.scipy.stats.description import scipy_stats

__all__ = ["siegelslopes"]

# --- discrepancies: K.-T. Fang, R. Li, A. Sudjianto, Design and Modeling for Computer Experiments

_KERNELS: dict[str, tuple[float, Any, Any]] = {
    "centered": (
        13 / 12,
        lambda x: 1 + 0.5 * _off(x) - 0.5 * _off(x) ** 2,
        lambda x, y: 1 + 0.5 * (_off(x) + _off(y) - abs(x - y)),
    ),
    "wrap_around": (
        -4 / 3,
        lambda x: 0 * x,
        lambda x, y: 1.5 - abs(x - y) * (1 - abs(x - y)),
    ),
    "mixture": (
        19 / 12,
        lambda x: 5 / 3 - 0.25 * _off(x) - 0.25 * _off(x) ** 2,
        lambda x, y: 1.875 - 0.25 * (_off(x) + _off(y)) - 0.75 * abs(x - y) + 0.5 * (x - y) ** 2,
    ),
    "l2_star": (
        1 / 3,
        lambda x: (1 - x**2) / 2,
        lambda x, y: 1 - np.maximum(x, y),
    ),
}
"""The number, and the functions of a point and of two, whose products are summed."""


def _off(x: Any) -> Any:
    return abs(x - 0.5)


def _discrepancy(name: str) -> Callable[..., Any]:
    constant, of_point, of_pair = _KERNELS[name]

    def discrepancy(sample: Any, iterative: bool, workers: Any = 1) -> Any:
        count, size = sample.shape
        count += bool(iterative)  # for a point that is to come
        single = cnp.prod(of_point(sample), axis=1).sum()
        pairs = cnp.prod(of_pair(sample[:, None], sample[None]), axis=2).sum()
        total = abs(constant) ** size * (1 if constant > 0 else -1)
        found = total - 2 / count * single + pairs / count**2
        return cnp.sqrt(found) if name == "l2_star" else found

    return discrepancy


replace_compiled(
    "scipy.stats._qmc_cy",
    **{f"_cy_wrapper_{name}_discrepancy": _discrepancy(name) for name in _KERNELS},
)

# --- medians of slopes ----------------------------------------------------------------------------


def siegelslopes(y: Any, x: Any = None, method: str = "hierarchical", **settings: Any) -> Any:
    """Return the median of the medians of the slopes from each point, and an intercept."""
    given = (y, np.arange(np.size(y), dtype=float) if x is None else x)
    if settings or np.ndim(y) != 1 or not are_known(given):
        raise AutogradError(
            "siegelslopes has derivatives of one row of numbers that are known, without further "
            "settings: in a compiled function and under vmap, call it outside"
        )
    found = scipy_stats.siegelslopes(*arrays_of(given), method)
    y, x = [cnp.asarray(as_ndarrays(part)) for part in given]
    steps, rises = x[:, None] - x, y[:, None] - y
    products = y * x[:, None] - y[:, None] * x
    slopes, intercepts = [], []
    for j, moves in enumerate(arrays_of(steps) != 0):
        slopes.append(cnp.median(rises[j, moves] / steps[j, moves]))
        intercepts.append(cnp.median(products[j, moves] / steps[j, moves]))
    slope = cnp.median(cnp.stack(slopes))
    is_separate = method == "separate"
    intercept = cnp.median(cnp.stack(intercepts) if is_separate else y - slope * x)
    return type(found)(slope=slope, intercept=intercept)
