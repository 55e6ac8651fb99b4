"""line_gradient, exported by chainrule: it needs only NumPy."""


def line_gradient(slope, offset, x, y):
    """The gradient of `line_loss` with respect to the line."""
    # slope f4[1], offset f4[1], x f4[20], y f4[20]
    t1 = slope * x                                        # f4[20]
    t2 = t1 + offset                                      # f4[20]
    t3 = t2 - y                                           # f4[20]
    t4 = t3 + t3                                          # f4[20]
    t5 = 0.05 * t4                                        # f4[20]
    t6 = t5.sum(axis=0, keepdims=True)                    # f4[1]
    t7 = t5 * x                                           # f4[20]
    t8 = t7.sum(axis=0, keepdims=True)                    # f4[1]
    return {'slope': t8, 'offset': t6}
