"""running_sums, exported by chainrule: it needs only NumPy."""

import numpy as np


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


def check_value(label, value, expected):
    """Raise unless a value is the one that the function was made with."""
    if type(value) is not type(expected) or repr(value) != repr(expected):
        raise ValueError(f"{label}: expected {expected!r}, a constant here, got {value!r}")


def running_sums(x, decay):
    """Neighbours added in place, and what is left of them summed over ten steps."""
    check_value('decay', decay, 0.5)
    (n,) = check_arrays(('x', x, 'float32', ('n',)))
    y = x * 2.0                                           # f4[n]
    t1 = y[:-1] + x[1:]                                   # f4[n - 1]
    y[1:] = t1                                            # f4[n]
    t3 = np.zeros((n,), np.float32)                       # f4[n]
    carry_0 = t3
    carry_1 = y
    for i in range(10):
        carry_0 += carry_1                                    # f4[n]
        carry_1 = carry_1 * 0.5                               # f4[n]
    return (y, carry_0)
