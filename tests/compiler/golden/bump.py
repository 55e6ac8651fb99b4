"""bump, exported by chainrule: it needs only NumPy."""

import numpy as np


def each_block(part, length, rows):
    """Call a function with slices of so many rows."""
    for begin in range(0, length, rows):
        part(slice(begin, min(begin + rows, length)))


def bump(x):
    """A bell curve on many points, and its gradient; the points go half a unit to the right."""
    # x f4[1000, 600]
    y = np.empty((1000, 600), np.float32)
    t1 = np.empty((1000, 600), np.float32)
    def part(rows):
        x2 = x[rows]
        y2 = y[rows]
        t2 = t1[rows]
        n = rows.stop - rows.start
        t3 = np.empty((n, 600), np.float32)
        t4 = np.empty((n, 600), np.float32)
        t5 = np.empty((n, 600), np.float32)
        t6 = np.empty((n, 600), np.float32)
        np.add(x[rows], 0.5, out=x2)                          # f4[218, 600]
        np.negative(x2, out=t3)                               # f4[218, 600]
        np.multiply(t3, x2, out=t4)                           # f4[218, 600]
        np.exp(t4, out=t4)                                    # f4[218, 600]
        np.sin(x2, out=t5)                                    # f4[218, 600]
        np.multiply(t4, t5, out=y2)                           # f4[218, 600]
        np.cos(x2, out=t6)                                    # f4[218, 600]
        np.multiply(t4, t6, out=t6)                           # f4[218, 600]
        t5 *= t4                                              # f4[218, 600]
        np.multiply(t5, x2, out=t4)                           # f4[218, 600]
        t5 *= t3                                              # f4[218, 600]
        t6 += t5                                              # f4[218, 600]
        np.subtract(t6, t4, out=t2)                           # f4[218, 600]
    each_block(part, 1000, 218)
    return (y, t1)
