"""two_layers, exported by chainrule: it needs only NumPy."""

import numpy as np


def masked(x, mask, out=None):
    """Return x where mask, else 0, even where x is nan: bit patterns times 0 or 1."""
    integer = {"f": np.int32, "d": np.int64, "e": np.int16}.get(x.dtype.char)
    if integer is None or x.ndim == 0:
        found = np.where(mask, x, np.zeros((), x.dtype))
        if out is None:
            return found
        out[...] = found
        return out
    if out is None:
        return np.multiply(x.view(integer), mask).view(x.dtype)
    np.multiply(x.view(integer), mask, out=out.view(integer))
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


def check_keys(label, value, keys, ordered=False):
    """Raise unless a dict has these keys, in their order if that matters."""
    if not isinstance(value, dict) or set(value) != set(keys) or (ordered and list(value) != keys):
        found = list(value) if isinstance(value, dict) else type(value).__name__
        order = ", in this order" if ordered else ""
        raise ValueError(f"{label}: expected a dict with the keys {keys}{order}, got {found}")


def two_layers(x, y, weights):
    """One step of gradient descent of the tutorial's network; returns the loss and new weights."""
    check_keys('weights', weights, ['w1', 'w2'])
    n, m, k, l = check_arrays(
        ('x', x, 'float32', ('n', 'm')),
        ('y', y, 'float32', ('n', 'k')),
        ("weights['w1']", weights['w1'], 'float32', ('m', 'l')),
        ("weights['w2']", weights['w2'], 'float32', ('l', 'k')),
    )
    weights_w1 = weights['w1']
    weights_w2 = weights['w2']
    t1 = np.empty((n, l), np.float32)
    hidden = np.empty((n, l), np.float32)
    t5 = np.empty((n, l), np.float32)
    t9 = np.empty((m, l), np.float32)
    t10 = np.empty((m, l), np.float32)
    np.matmul(x, weights_w1, out=t1)                      # f4[n, l]
    np.maximum(0, t1, out=hidden)                         # f4[n, l]
    t2 = hidden @ weights_w2                              # f4[n, k]
    t3 = t2 - y                                           # f4[n, k]
    loss = np.vdot(t3, t3)                                # f4[]
    t4 = t3 + t3                                          # f4[n, k]
    np.matmul(t4, weights_w2.T, out=t5)                   # f4[n, l]
    t6 = t1 >= 0                                          # b1[n, l]
    masked(t5, t6, out=t5)                                # f4[n, l]
    t8 = x.T * 0.01                                       # f4[m, n]
    np.matmul(t8, t5, out=t9)                             # f4[m, l]
    np.subtract(weights_w1, t9, out=t10)                  # f4[m, l]
    t11 = t4 * 0.01                                       # f4[n, k]
    t12 = hidden.T @ t11                                  # f4[l, k]
    t13 = weights_w2 - t12                                # f4[l, k]
    return (loss, {'w1': t10, 'w2': t13})
