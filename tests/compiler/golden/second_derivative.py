"""second_derivative, exported by chainrule: it needs only NumPy."""

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


def second_derivative(x):
    """The second derivative of x³ · exp(x), one element at a time."""
    (n,) = check_arrays(('x', x, 'float32', ('n',)))
    t1 = x * x                                            # f4[n]
    t2 = t1 * x                                           # f4[n]
    t3 = np.exp(x)                                        # f4[n]
    t4 = t1 * 3.0                                         # f4[n]
    t5 = t3 * 3.0                                         # f4[n]
    t6 = t5 * x                                           # f4[n]
    t7 = t6 + t6                                          # f4[n]
    t8 = t2 + t4                                          # f4[n]
    t9 = t8 * t3                                          # f4[n]
    t10 = t7 + t9                                         # f4[n]
    t11 = 3 * t1                                          # f4[n]
    t12 = t3 * t11                                        # f4[n]
    t13 = t10 + t12                                       # f4[n]
    return t13
