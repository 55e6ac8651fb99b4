"""Comparisons, tests, logical and bitwise operations: none has a derivative."""

from __future__ import annotations

from numbers import Number
from typing import Any

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.error_messages import broadcast_text, check_devices
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.wrappers import function_of_operator, nondifferentiable_operator
from chainrule.primitives import elementwise

_equal_operator = nondifferentiable_operator(elementwise.equal)
_not_equal_operator = nondifferentiable_operator(elementwise.not_equal)
_less_operator = nondifferentiable_operator(elementwise.less)
_less_equal_operator = nondifferentiable_operator(elementwise.less_equal)
_greater_operator = nondifferentiable_operator(elementwise.greater)
_greater_equal_operator = nondifferentiable_operator(elementwise.greater_equal)
_bitwise_and_operator = nondifferentiable_operator(elementwise.bitwise_and)
_bitwise_or_operator = nondifferentiable_operator(elementwise.bitwise_or)
_bitwise_xor_operator = nondifferentiable_operator(elementwise.bitwise_xor)
_eq = function_of_operator(_equal_operator, "eq")
_not_equal = function_of_operator(_not_equal_operator, "not_equal")
_less = function_of_operator(_less_operator, "less")
_less_equal = function_of_operator(_less_equal_operator, "less_equal")
_greater = function_of_operator(_greater_operator, "greater")
_greater_equal = function_of_operator(_greater_equal_operator, "greater_equal")
_logical_and = function_of_operator(
    nondifferentiable_operator(elementwise.logical_and), "logical_and"
)
_logical_or = function_of_operator(nondifferentiable_operator(elementwise.logical_or), "logical_or")
_logical_xor = function_of_operator(
    nondifferentiable_operator(elementwise.logical_xor), "logical_xor"
)
_bitwise_and = function_of_operator(_bitwise_and_operator, "bitwise_and")
_bitwise_or = function_of_operator(_bitwise_or_operator, "bitwise_or")
_bitwise_xor = function_of_operator(_bitwise_xor_operator, "bitwise_xor")

__all__ = [
    "equal",
    "eq",
    "not_equal",
    "ne",
    "less",
    "lt",
    "less_equal",
    "le",
    "greater",
    "gt",
    "greater_equal",
    "ge",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_invert",
    "bitwise_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "isclose",
    "allclose",
]


@operation(inplace=True, operators={"__eq__": _equal_operator}, ufunc="equal", array_api="equal")
def eq(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x = y. `equal` compares two tensors as a whole.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: their shapes broadcast.

    Returns
    -------
    Tensor of bools, of the broadcast shape

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.eq(cr.tensor([1.0, 2.0]), 2)
    tensor([False,  True])
    """
    return _eq(input, other)


@operation(
    aliases="ne",
    inplace=True,
    operators={"__ne__": _not_equal_operator},
    ufunc="not_equal",
    array_api=True,
)
def not_equal(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x ≠ y; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.not_equal(cr.tensor([1.0, 2.0]), 2)
    tensor([ True, False])
    """
    return _not_equal(input, other)


ne = not_equal


@operation(
    aliases="lt", inplace=True, operators={"__lt__": _less_operator}, ufunc="less", array_api=True
)
def less(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x < y; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.less(cr.tensor([1.0, 2.0]), 2)
    tensor([ True, False])
    """
    return _less(input, other)


lt = less


@operation(
    aliases="le",
    inplace=True,
    operators={"__le__": _less_equal_operator},
    ufunc="less_equal",
    array_api=True,
)
def less_equal(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x ≤ y; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.less_equal(cr.tensor([1.0, 2.0]), 2)
    tensor([True, True])
    """
    return _less_equal(input, other)


le = less_equal


@operation(
    aliases="gt",
    inplace=True,
    operators={"__gt__": _greater_operator},
    ufunc="greater",
    array_api=True,
)
def greater(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x > y; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.greater(cr.tensor([1.0, 2.0]), 1)
    tensor([False,  True])
    """
    return _greater(input, other)


gt = greater


@operation(
    aliases="ge",
    inplace=True,
    operators={"__ge__": _greater_equal_operator},
    ufunc="greater_equal",
    array_api=True,
)
def greater_equal(input: Operand, other: Operand) -> Tensor:
    """Return for each element whether x ≥ y; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.greater_equal(cr.tensor([1.0, 2.0]), 2)
    tensor([False,  True])
    """
    return _greater_equal(input, other)


ge = greater_equal


@operation(ufunc="isnan", array_api=True)
def isnan(input: Operand) -> Tensor:
    """Test each element for nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isnan(cr.tensor([1.0, cr.nan]))
    tensor([False,  True])
    """
    return elementwise.isnan.apply(tensor_of(input))


@operation(ufunc="isinf", array_api=True)
def isinf(input: Operand) -> Tensor:
    """Test each element for inf or -inf.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isinf(cr.tensor([1.0, -cr.inf]))
    tensor([False,  True])
    """
    return elementwise.isinf.apply(tensor_of(input))


@operation(ufunc="isfinite", array_api=True)
def isfinite(input: Operand) -> Tensor:
    """Test each element for a finite number: not inf, -inf or nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isfinite(cr.tensor([1.0, cr.nan]))
    tensor([ True, False])
    """
    return elementwise.isfinite.apply(tensor_of(input))


@operation(inplace=True, ufunc="logical_not", array_api=True)
def logical_not(input: Operand) -> Tensor:
    """Test each element for zero or False.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logical_not(cr.tensor([True, False]))
    tensor([False,  True])
    """
    return elementwise.logical_not.apply(tensor_of(input))


@operation(inplace=True, ufunc="logical_and", array_api=True)
def logical_and(input: Operand, other: Operand) -> Tensor:
    """Return x AND y for each element, where nonzero is true; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logical_and(cr.tensor([True, True]), cr.tensor([True, False]))
    tensor([ True, False])
    """
    return _logical_and(input, other)


@operation(inplace=True, ufunc="logical_or", array_api=True)
def logical_or(input: Operand, other: Operand) -> Tensor:
    """Return x OR y for each element, where nonzero is true; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logical_or(cr.tensor([True, False]), cr.tensor([False, False]))
    tensor([ True, False])
    """
    return _logical_or(input, other)


@operation(inplace=True, ufunc="logical_xor", array_api=True)
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """Return x XOR y for each element, where nonzero is true; the arguments are those of `eq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logical_xor(cr.tensor([True, True]), cr.tensor([True, False]))
    tensor([False,  True])
    """
    return _logical_xor(input, other)


@operation(
    aliases="bitwise_not",
    method="bitwise_not",
    inplace="bitwise_not",
    operators={"__invert__": elementwise.bitwise_invert.apply},
    ufunc="invert",
    array_api=True,
)
def bitwise_invert(input: Operand) -> Tensor:
    """Invert each bit of integers, or each bool: ``~x``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_invert(cr.tensor([0, 5]))
    tensor([-1, -6])
    """
    return elementwise.bitwise_invert.apply(tensor_of(input))


bitwise_not = bitwise_invert


@operation(
    inplace=True,
    operators={
        "__and__": _bitwise_and_operator,
        "__rand__": _bitwise_and_operator,
        "__iand__": None,
    },
    ufunc="bitwise_and",
    array_api=True,
)
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """Return the bitwise AND of integers or bools: ``x & y``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_and(cr.tensor([6, 3]), 2)
    tensor([2, 2])
    """
    return _bitwise_and(input, other)


@operation(
    inplace=True,
    operators={"__or__": _bitwise_or_operator, "__ror__": _bitwise_or_operator, "__ior__": None},
    ufunc="bitwise_or",
    array_api=True,
)
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """Return the bitwise OR of integers or bools: ``x | y``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_or(cr.tensor([6, 3]), 1)
    tensor([7, 3])
    """
    return _bitwise_or(input, other)


@operation(
    inplace=True,
    operators={
        "__xor__": _bitwise_xor_operator,
        "__rxor__": _bitwise_xor_operator,
        "__ixor__": None,
    },
    ufunc="bitwise_xor",
    array_api=True,
)
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """Return the bitwise XOR of integers or bools: ``x ^ y``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bitwise_xor(cr.tensor([6, 3]), 2)
    tensor([4, 1])
    """
    return _bitwise_xor(input, other)


# --- closeness, and equality of whole tensors -----------------------------------------------------


@operation()
def isclose(
    input: Operand,
    other: Operand,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Test for each element whether |x - y| ≤ atol + rtol |y|, or x = y.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: their shapes broadcast.
    rtol, atol : float
        Relative and absolute tolerance.
    equal_nan : bool, default False
        Treat two nan as close.

    Returns
    -------
    Tensor of bools, of the broadcast shape

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isclose(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if isinstance(tolerance, int | float) and tolerance < 0:
            raise ArgumentError(
                f"isclose: {name} must be greater than or equal to zero, but got {tolerance}"
            )
    a, b = [t._array for t in as_tensors((input, other))]
    mismatch = broadcast_text([a.shape, b.shape])
    if mismatch:
        raise ShapeError(f"isclose: {mismatch}")
    if a.__class__ is not b.__class__:
        check_devices((a, b), "isclose")
    return make(namespace(a).isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan), None)


@operation()
def allclose(
    input: Operand,
    other: Operand,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Test whether all elements of x and y are close; the arguments are those of `isclose`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.allclose(cr.ones(2), cr.ones(2) + 1e-7)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@operation()
def equal(input: Operand, other: Tensor | Any) -> bool:
    """Test whether two tensors have the same shape and equal elements. `eq` is elementwise.

    Parameters
    ----------
    input, other : Tensor or array
        Nothing is broadcast.

    Raises
    ------
    ArgumentTypeError
        If one of them is a number.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.equal(cr.ones(2), cr.ones(2)), cr.equal(cr.ones(2), cr.ones(3))
    (True, False)
    """
    for title, operand in (("input", input), ("other", other)):
        if isinstance(operand, Number):
            raise ArgumentTypeError(
                f"equal(): argument '{title}' must be Tensor, not {type(operand).__name__}: it "
                "compares two tensors as a whole. For a comparison of each element write eq"
            )
    x, y = tensor_of(input), tensor_of(other)
    return x.shape == y.shape and bool(_eq(x, y)._array.all())
