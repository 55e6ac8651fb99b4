"""second_derivative, exported by chainrule: it needs only NumPy."""

import numpy as np


def second_derivative(x):
    """The second derivative of x³ · exp(x), one element at a time."""
    # x f4[3]
    t1 = x ** 3                                           # f4[3]
    t2 = np.exp(x)                                        # f4[3]
    t3 = x * x                                            # f4[3]
    t4 = t3 * 3.0                                         # f4[3]
    t5 = t2 * 3.0                                         # f4[3]
    t6 = t5 * x                                           # f4[3]
    t7 = t6 + t6                                          # f4[3]
    t8 = t1 + t4                                          # f4[3]
    t9 = t8 * t2                                          # f4[3]
    t10 = t7 + t9                                         # f4[3]
    t11 = 3 * t3                                          # f4[3]
    t12 = t2 * t11                                        # f4[3]
    t13 = t10 + t12                                       # f4[3]
    return t13
