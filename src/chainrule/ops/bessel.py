"""Bessel functions, of real numbers; integers are taken as numbers of the default dtype.

They need SciPy (the extra `scipy`), but for the spherical one. The derivative of each is a
difference or a sum of its neighbours' in order (DLMF 10.6.1, 10.29.1, 10.51.2), which holds at 0
and to every order.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops.wrappers import of_reals

__all__ = [
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "spherical_bessel_j0",
    "i0e",
    "i1",
    "i1e",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
]


def _of_order(
    primitive: str, order: int, name: str, text: str, derivative: str, shown: str
) -> Callable[[Operand], Tensor]:
    """Return the public function of one order of a family."""
    recorded = of_reals(primitive, name)

    def function(input: Operand) -> Tensor:
        return recorded(input, order=order)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {text}.

    Notes
    -----
    Derivative: {derivative}.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.{name}(cr.tensor([1.0, 2.0]))
    tensor([{shown}])
    """
    return function


bessel_j0 = _of_order(
    *("bessel_j", 0, "bessel_j0", "the Bessel function of the first kind of order 0"),
    *("-bessel_j1(x)", "0.7652, 0.2239"),
)
bessel_j1 = _of_order(
    *("bessel_j", 1, "bessel_j1", "the Bessel function of the first kind of order 1"),
    *("(J₀(x) - J₂(x)) / 2", "0.4401, 0.5767"),
)
bessel_y0 = _of_order(
    *("bessel_y", 0, "bessel_y0", "the Bessel function of the second kind of order 0"),
    *("-bessel_y1(x)", "0.0883, 0.5104"),
)
bessel_y1 = _of_order(
    *("bessel_y", 1, "bessel_y1", "the Bessel function of the second kind of order 1"),
    *("(Y₀(x) - Y₂(x)) / 2", "-0.7812, -0.1070"),
)
spherical_bessel_j0 = _of_order(
    *("spherical_bessel_j", 0, "spherical_bessel_j0", "sin(x) / x, which is 1 at 0"),
    *("(cos x - out) / x, and 0 at 0", "0.8415, 0.4546"),
)
modified_bessel_i0 = _of_order(
    *("bessel_i", 0, "modified_bessel_i0", "the modified Bessel function of the first kind, I₀"),
    *("i1(x)", "1.2661, 2.2796"),
)
modified_bessel_i1 = _of_order(
    *("bessel_i", 1, "modified_bessel_i1", "the modified Bessel function of the first kind, I₁"),
    *("(I₀(x) + I₂(x)) / 2", "0.5652, 1.5906"),
)
modified_bessel_k0 = _of_order(
    *("bessel_k", 0, "modified_bessel_k0", "the modified Bessel function of the second kind, K₀"),
    *("-modified_bessel_k1(x)", "0.4210, 0.1139"),
)
modified_bessel_k1 = _of_order(
    *("bessel_k", 1, "modified_bessel_k1", "the modified Bessel function of the second kind, K₁"),
    *("-(K₀(x) + K₂(x)) / 2", "0.6019, 0.1399"),
)
scaled_modified_bessel_k0 = _of_order(
    *("bessel_ke", 0, "scaled_modified_bessel_k0", "exp(x) modified_bessel_k0(x)"),
    *("out - scaled_modified_bessel_k1(x)", "1.1445, 0.8416"),
)
scaled_modified_bessel_k1 = _of_order(
    *("bessel_ke", 1, "scaled_modified_bessel_k1", "exp(x) modified_bessel_k1(x)"),
    *("out - exp(x) (K₀(x) + K₂(x)) / 2", "1.6362, 1.0335"),
)
i0e = _of_order(
    *("bessel_ie", 0, "i0e", "exp(-|x|) i0(x)", "i1e(x) - sign(x) · out", "0.4658, 0.3085")
)
i1 = _of_order(
    *("bessel_i", 1, "i1", "the modified Bessel function of the first kind of order 1"),
    *("(I₀(x) + I₂(x)) / 2", "0.5652, 1.5906"),
)
i1e = _of_order(
    *("bessel_ie", 1, "i1e", "exp(-|x|) i1(x)"),
    *("exp(-|x|) (I₀(x) + I₂(x)) / 2 - sign(x) · out", "0.2079, 0.2153"),
)
