"""The normal distribution function, quick in single precision: what gelu multiplies by."""

from __future__ import annotations

from typing import Any

from chainrule.kernels import special
from chainrule.kernels.blocks import shared

Array = Any

# tanh(x P(x²)) = erf(x/√2), for |x| up to 5.5: beyond, both are 1. Of all P of this degree the one
# with the smallest error, found by linear programming.
_CURVE = (
    *(1.7548858e-09, -1.3221851e-07, 3.9642061e-06, -5.5303500e-05, -3.2600296e-05),
    *(3.6333087e-02, 7.9788494e-01),
)


@shared(by_rows=False)
def normal_cdf(np: Any, out: Array, x: Array) -> None:
    """Fill in Φ(x): to 1e-7 in single precision, to the last digits in double precision.

    A polynomial and one tanh take a tenth of the time of an error function.
    """
    if x.dtype.itemsize > 4:
        np.multiply(special._kernel("erfc", np)(x * -0.7071067811865476), 0.5, out=out)
        return
    wide = x.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):
        square = wide * wide
        if x.size < 4096:
            square = np.minimum(square, 30.25)
        else:
            np.clip(square, 0.0, 30.25, out=square)  # with two bounds, vectorised
        curve = square * _CURVE[0]
        for coefficient in _CURVE[1:-1]:
            curve += coefficient
            curve *= square
        curve += _CURVE[-1]
        curve *= wide
    curve = np.tanh(curve)
    curve *= 0.5
    np.add(curve, 0.5, out=out, casting="same_kind")
