"""attention, exported by chainrule: it needs only NumPy."""

import numpy as np


def check_arrays(*arrays, least=(), c_order=False):
    """Raise unless arrays have their dtypes and shapes; return the sizes that have names."""
    sizes = dict[str, int]()
    for label, array, dtype, shape in arrays:
        if not hasattr(array, "dtype"):
            raise TypeError(f"{label}: expected an array, got {type(array).__name__}")
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
    n, m, l, p, r = check_arrays(
        ('q', q, 'float32', ('n', 'm', 'l')),
        ('k', k, 'float32', ('n', 'p', 'l')),
        ('v', v, 'float32', ('n', 'p', 'r')),
        least={'p': 1},
    )
    scores = np.empty((n, m, p), np.float32)
    t7 = np.empty((n, m, p), np.float32)
    t8 = np.empty((n, m, p), np.float32)
    out = np.empty((n, m, r), np.float32)
    t13 = np.empty((n, m, l), np.float32)
    np.matmul(q, k.transpose(0, 2, 1), out=scores)        # f4[n, m, p]
    scores /= (l ** 0.5)                                  # f4[n, m, p]
    t2 = scores.max(axis=2, keepdims=True)                # f4[n, m, 1]
    scores -= t2                                          # f4[n, m, p]
    np.exp(scores, out=scores)                            # f4[n, m, p]
    t5 = np.ones((p,), np.float32)                        # f4[p]
    t6 = scores @ t5                                      # f4[n, m]
    scores /= t6.reshape(n, m, 1)                         # f4[n, m, p]
    np.matmul(scores, v, out=out)                         # f4[n, m, r]
    np.matmul(np.broadcast_to(np.float32(1.0), (n, m, r)), v.transpose(0, 2, 1), out=t7)  # f4[n, m, p]
    np.multiply(t7, scores, out=t8)                       # f4[n, m, p]
    t9 = t8 @ t5                                          # f4[n, m]
    t7 -= t9.reshape(n, m, 1)                             # f4[n, m, p]
    t7 *= scores                                          # f4[n, m, p]
    t7 /= (l ** 0.5)                                      # f4[n, m, p]
    np.matmul(t7, k, out=t13)                             # f4[n, m, l]
    return (out, t13)
