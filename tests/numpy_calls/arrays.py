"""The arrays that the calls take, and helpers.

The parameters of a call are filled by name, with tensors in one run and with arrays in the other.
"""

from __future__ import annotations

import numpy as np

_random = np.random.default_rng(20)


def _normal(*shape):
    return _random.standard_normal(shape)


ARRAYS = {
    "a": _normal(2, 3),
    "b": _normal(2, 3),
    "c": _normal(2, 3) + 1j * _normal(2, 3),
    "d": _normal(3),
    "e": _normal(3),
    "f": _normal(4, 5),
    "g": _normal(3, 4),
    "h": np.eye(3) * 4 + (lambda x: x + x.T)(_normal(3, 3)),
    "m": _normal(3, 3) + 2 * np.eye(3),
    "o": np.asarray(_normal()),
    "p": np.abs(_normal(2, 3)) + 0.5,
    "q": np.cumsum(np.abs(_normal(5)) + 0.5),
    "r": _normal(4, 3),
    "s": _normal(2, 3, 3) + 2 * np.eye(3),
    "t": _normal(2, 3, 4),
    "u": _normal(6),
    "v": _normal(5),
    "w": _normal(4),
    "z": _normal(4) + 1j * _normal(4),
}

TRUE = np.array([[True, False, True], [False, True, True]])
FEW = np.array([[True] * 4, [False, True, True, True], [True, False, True, True]])


def gaps(x):
    """Return an array of (3, 4) with three of its elements missing."""
    return np.where(np.isin(np.arange(12), (1, 6, 7)).reshape(3, 4), np.nan, x)


def written(function, x, *args, **kwargs):
    """Return a copy to which the function has written."""
    x = np.copy(x)
    assert function(x, *args, **kwargs) is None
    return x


def like(create, *args, **kwargs):
    """Call a creation function with `like=` the first tensor among its arguments."""
    kinds = [x for x in args if not isinstance(x, np.ndarray) and hasattr(x, "requires_grad")]
    return create(*args, **kwargs, like=kinds[0]) if kinds else create(*args, **kwargs)
