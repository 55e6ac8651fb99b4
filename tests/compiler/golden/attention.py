"""attention, exported by chainrule: it needs only NumPy."""

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


def attention(q, k, v):
    """Scaled dot-product attention, and its gradient in `q`."""
    n, l, p, r = check_arrays(
        ('q', q, 'float32', ('n', 5, 'l')),
        ('k', k, 'float32', ('n', 'p', 'l')),
        ('v', v, 'float32', ('n', 'p', 'r')),
        least={'p': 1},
    )
    t1 = q @ k.transpose(0, 2, 1)                         # f4[n, 5, p]
    t2 = t1 / (l ** 0.5)                                  # f4[n, 5, p]
    t3 = t2.max(axis=2, keepdims=True)                    # f4[n, 5, 1]
    t4 = t2 - t3                                          # f4[n, 5, p]
    t5 = np.exp(t4)                                       # f4[n, 5, p]
    t6 = t5.sum(axis=2, keepdims=True)                    # f4[n, 5, 1]
    scores = t5 / t6                                      # f4[n, 5, p]
    out = scores @ v                                      # f4[n, 5, r]
    t7 = np.broadcast_to(np.float32(1.0), (n, 5, r)) @ v.transpose(0, 2, 1)  # f4[n, 5, p]
    t8 = t7 * scores                                      # f4[n, 5, p]
    t9 = t8.sum(axis=2, keepdims=True)                    # f4[n, 5, 1]
    t10 = t7 - t9                                         # f4[n, 5, p]
    t11 = t10 * scores                                    # f4[n, 5, p]
    t12 = t11 / (l ** 0.5)                                # f4[n, 5, p]
    t13 = t12 @ k                                         # f4[n, 5, l]
    return (out, t13)
