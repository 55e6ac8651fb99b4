"""line_loss, exported by chainrule: it needs only NumPy."""

import numpy as np


def line_loss(slope, offset, x, y):
    """The mean squared distance of a line from points."""
    # slope f4[1], offset f4[1], x f4[20], y f4[20]
    t1 = slope * x                                        # f4[20]
    t2 = t1 + offset                                      # f4[20]
    t3 = t2 - y                                           # f4[20]
    t4 = np.vdot(t3, t3)                                  # f4[]
    t5 = t4 / 20                                          # f4[]
    return t5
