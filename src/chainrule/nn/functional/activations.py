"""Activations that are smooth: derivatives of every order have no jumps."""

from __future__ import annotations

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.nn.functional.inplace import applied
from chainrule.ops.wrappers import real_floating

__all__ = [
    "sigmoid",
    "tanh",
    "gelu",
    "silu",
    "mish",
    "softplus",
    "softsign",
    "logsigmoid",
    "tanhshrink",
]


def sigmoid(input: Operand) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    Parameters
    ----------
    input : Tensor
        Numbers x, of any shape. Integers become numbers of the default dtype.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: out (1 - out).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.sigmoid(cr.tensor([0.0, -1000.0]))
    tensor([0.5000, 0.0000])
    """
    return RECORDERS["sigmoid"](floating(input))


def tanh(input: Operand) -> Tensor:
    """Return the hyperbolic tangent; the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: 1 - out².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.tanh(cr.tensor([0.0, 1000.0]))
    tensor([0., 1.])
    """
    return RECORDERS["tanh"](floating(input))


def silu(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · sigmoid(x), also called swish.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    inplace : bool, default False
        Write the result over `input`, and return that.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: s + x s (1 - s), where s is the sigmoid of x [1]_.

    References
    ----------
    .. [1] S. Elfwing, E. Uchibe, K. Doya, Neural Networks 107, 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.silu(cr.tensor([-1.0, 3.0]))
    tensor([-0.2689,  2.8577])
    """
    return applied(
        lambda x: RECORDERS["multiply"](x, RECORDERS["sigmoid"](x)), input, "silu", inplace
    )


def mish(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · tanh(softplus(x)); the arguments are those of `silu`.

    Notes
    -----
    Derivative: t + x (1 - t²) sigmoid(x), where t = tanh(softplus(x)) [1]_.

    References
    ----------
    .. [1] D. Misra, Mish: a self regularized non-monotonic activation function, BMVC 2020.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.mish(cr.tensor([-1.0, 3.0]))
    tensor([-0.3034,  2.9865])
    """
    return applied(RECORDERS["mish"], input, "mish", inplace)


def gelu(input: Operand, approximate: str = "none") -> Tensor:
    """Return x · Φ(x), where Φ is the distribution function of the standard normal.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    approximate : {"none", "tanh"}
        "tanh" takes 1/2 + tanh(√(2/π) (x + 0.044715 x³)) / 2 for Φ, which is off by up to 5e-4.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `approximate` is another word.

    Notes
    -----
    Derivative: Φ(x) + x φ(x), where φ is the density [1]_. In single precision Φ is off by up to
    2e-7.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, Gaussian error linear units, arXiv 1606.08415.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.gelu(cr.tensor([-1.0, 3.0]))
    tensor([-0.1587,  2.9960])
    >>> cr.nn.functional.gelu(cr.tensor([-1.0, 3.0]), approximate="tanh")
    tensor([-0.1588,  2.9964])
    """
    if approximate == "tanh":
        return RECORDERS["gelu_tanh"](floating(input))
    if approximate != "none":
        raise ArgumentError(
            f"gelu: approximate argument must be either none or tanh, but got {approximate!r}"
        )
    return RECORDERS["gelu"](floating(input))[0]


def softplus(input: Operand, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, a smooth `relu`.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    beta : number, default 1
        How sharp the bend at 0 is.
    threshold : number, default 20
        Where beta x is above this, the result is x itself.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: sigmoid(beta x), and 1 above the threshold. Nothing overflows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softplus(cr.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
    """
    x = real_floating(input, "softplus")
    return RECORDERS["softplus"](x, beta=float(beta), threshold=float(threshold))


def logsigmoid(input: Operand) -> Tensor:
    """Return log sigmoid(x), precise where that is tiny or near 1; the argument is `sigmoid`'s.

    Notes
    -----
    Derivative: sigmoid(-x) = 1 - exp(out).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.logsigmoid(cr.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return RECORDERS["logsigmoid"](floating(input))


def softsign(input: Operand) -> Tensor:
    """Return x / (1 + |x|); the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: 1 / (1 + |x|)².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softsign(cr.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    x = floating(input)
    if x.is_complex():  # |x| has a derivative of its own
        return ops.divide(x, ops.add(ops.abs(x), 1))
    return RECORDERS["softsign"](x)


def tanhshrink(input: Operand) -> Tensor:
    """Return x - tanh(x); the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: tanh(x)².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.tanhshrink(cr.tensor([-1.0, 3.0]))
    tensor([-0.2384,  2.0049])
    """
    x = floating(input)
    return RECORDERS["subtract"](x, RECORDERS["tanh"](x))
