"""picked, exported by chainrule: it needs only NumPy."""

import numpy as np


def index_add(value, *, shape, key):
    """Return zeros of a shape with value added at key, repeated indices adding up."""
    out = np.zeros(shape, value.dtype)
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        np.add.at(out, key, value)
    else:
        out[key] = value
    return out


def picked(table, rows):
    """The gradient of a sum of squares of some rows of a table."""
    # table f4[6, 3], rows i8[3]
    t1 = table[rows]                                      # f4[3, 3]
    t2 = t1 + t1                                          # f4[3, 3]
    t3 = index_add(t2, shape=(6, 3), key=rows)            # f4[6, 3]
    return t3
