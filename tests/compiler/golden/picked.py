"""picked, exported by chainrule: it needs only NumPy."""

import numpy as np


def index_add(value, *, shape, key, out=None):
    """Return zeros of a shape with value added at key, repeated indices adding up."""
    if out is None:
        out = np.zeros(shape, value.dtype)
    else:
        out.fill(0)
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        np.add.at(out, key, value)
    else:
        out[key] = value
    return out


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


def picked(table, rows):
    """The gradient of a sum of squares of some rows of a table."""
    n, m, k = check_arrays(
        ('table', table, 'float32', ('n', 'm')),
        ('rows', rows, 'int64', ('k',)),
        least={'n': 1},
    )
    t1 = table[rows]                                      # f4[k, m]
    t2 = t1 + t1                                          # f4[k, m]
    t3 = index_add(t2, shape=(n, m), key=rows)            # f4[n, m]
    return t3
