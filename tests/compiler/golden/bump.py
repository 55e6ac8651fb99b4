"""bump, exported by chainrule: it needs only NumPy."""

import numpy as np


def each_block(part, length, rows):
    """Call a function with slices of so many rows."""
    for begin in range(0, length, rows):
        part(slice(begin, min(begin + rows, length)))


def check_arrays(*arrays, least=(), c_order=False):
    """Raise unless arrays have their dtypes and shapes; return the sizes that have names."""
    sizes = dict[str, int]()
    for label, array, dtype, shape in arrays:
        if not isinstance(array, np.generic) and type(array) not in (np.ndarray, np.memmap):
            kind = type(array).__name__  # such as a matrix, whose products are others
            raise TypeError(f"{label}: expected an array, got {kind}: pass numpy.asarray() of it")
        parts = [f"{s} >= {least[s]}" if s in least else str(s) for s in shape]
        wanted = f"expected {dtype} [{', '.join(parts)}]"
        if array.dtype != np.dtype(dtype):
            raise TypeError(f"{label}: {wanted}, got {array.dtype} {list(array.shape)}")
        matches = len(shape) == len(array.shape)
        for size, found in zip(shape, array.shape, strict=False):
            expected = sizes.setdefault(size, found) if isinstance(size, str) else size
            matches = matches and found == expected and (size not in least or found >= least[size])
        if not matches:
            known = "".join([f", {s} = {sizes[s]}" for s in sizes if s in shape])
            raise ValueError(f"{label}: {wanted}, got {dtype} {list(array.shape)}{known}")
        if c_order and not array.flags.c_contiguous:
            raise ValueError(f"{label}: expected C order, got strides {array.strides}")
    return tuple(sizes.values())


def bump(x):
    """A bell curve on many points, and its gradient; the points go half a unit to the right."""
    m, k = check_arrays(('x', x, 'float32', ('m', 'k')), least={'k': 1})
    y = np.empty((m, k), np.float32)
    t1 = np.empty((m, k), np.float32)
    def part(rows):
        x2 = x[rows]
        y2 = y[rows]
        t2 = t1[rows]
        n = rows.stop - rows.start
        t3 = np.empty((n, k), np.float32)
        t4 = np.empty((n, k), np.float32)
        t5 = np.empty((n, k), np.float32)
        t6 = np.empty((n, k), np.float32)
        np.add(x[rows], 0.5, out=x2)                          # f4[max(1, 131072 // k), k]
        np.negative(x2, out=t3)                               # f4[max(1, 131072 // k), k]
        np.multiply(t3, x2, out=t4)                           # f4[max(1, 131072 // k), k]
        np.exp(t4, out=t4)                                    # f4[max(1, 131072 // k), k]
        np.sin(x2, out=t5)                                    # f4[max(1, 131072 // k), k]
        np.multiply(t4, t5, out=y2)                           # f4[max(1, 131072 // k), k]
        np.cos(x2, out=t6)                                    # f4[max(1, 131072 // k), k]
        np.multiply(t4, t6, out=t6)                           # f4[max(1, 131072 // k), k]
        t5 *= t4                                              # f4[max(1, 131072 // k), k]
        np.multiply(t5, x2, out=t4)                           # f4[max(1, 131072 // k), k]
        t5 *= t3                                              # f4[max(1, 131072 // k), k]
        t6 += t5                                              # f4[max(1, 131072 // k), k]
        np.subtract(t6, t4, out=t2)                           # f4[max(1, 131072 // k), k]
    each_block(part, m, max(1, 131072 // k))
    return (y, t1)
