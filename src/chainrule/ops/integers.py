"""What is defined for integers alone: divisors, multiples, shifts of bits."""

from __future__ import annotations

from chainrule.arguments import Operand
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError
from chainrule.ops.wrappers import piecewise

__all__ = ["bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"]

_of_integers = {
    name: piecewise(name) for name in ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift")
}


def _integers(name: str, x: Operand, y: Operand) -> Tensor:
    operands = as_tensors((x, y))
    for operand in operands:
        if operand.dtype.kind not in "iu":
            raise DTypeError(
                f"{name}: expected integers, got {operand.dtype}: convert it with "
                ".astype(chainrule.int64) first"
            )
    result: Tensor = _of_integers[name](*operands)
    return result


def gcd(input: Operand, other: Operand) -> Tensor:
    """Return the greatest common divisor, which is not negative; gcd(0, 0) is 0.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: integers; their shapes broadcast.

    Returns
    -------
    Tensor of integers, of the broadcast shape and the promoted dtype

    Raises
    ------
    DTypeError
        If one is not of integers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.gcd(cr.tensor([12, -4, 0]), 6)
    tensor([6, 2, 6])
    """
    return _integers("gcd", input, other)


def lcm(input: Operand, other: Operand) -> Tensor:
    """Return the least common multiple; lcm(0, n) is 0. The arguments are those of `gcd`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.lcm(cr.tensor([12, -4, 0]), 6)
    tensor([12, 12,  0])
    """
    return _integers("lcm", input, other)


def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """Return x · 2**y, by moving bits to the left; the arguments are those of `gcd`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_left_shift(cr.tensor([1, 5]), 2)
    tensor([ 4, 20])
    """
    return _integers("bitwise_left_shift", input, other)


def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """Return ⌊x / 2**y⌋, by moving bits to the right; the arguments are those of `gcd`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_right_shift(cr.tensor([5, -5]), 1)
    tensor([ 2, -3])
    """
    return _integers("bitwise_right_shift", input, other)
