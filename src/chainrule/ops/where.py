"""Selection of elements by a condition: where and masked_fill."""

from __future__ import annotations

from typing import Any, overload

from chainrule.arguments import Operand, cast, number_for, tensor_of, written
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace, promoted
from chainrule.errors import ArgumentTypeError
from chainrule.operation import operation
from chainrule.ops.sort_search import nonzero
from chainrule.primitives import elementwise

__all__ = ["where", "masked_fill"]

_where = elementwise.where.apply


@overload
def where(condition: Operand) -> tuple[Tensor, ...]: ...


@overload
def where(
    condition: Operand, input: Operand, other: Operand, *, out: Tensor | None = None
) -> Tensor: ...


@operation(method=False, array_api=True)
def where(
    condition: Operand, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """Return `input` where `condition` is true, else `other`.

    Parameters
    ----------
    condition : Tensor of bools
        Numbers count as true if they are not zero.
    input, other : Tensor, array or number
        The three shapes broadcast. Without both, the indices where `condition` is true are
        returned.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype of `input` and `other`; or tuple of
    vectors, an index for each dimension, as ``nonzero(condition, as_tuple=True)``

    Notes
    -----
    The gradient flows to the selected elements; the others get zero, never nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([-1.0, 2.0])
    >>> cr.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None or other is None:
        if input is not other:
            raise ArgumentTypeError(
                "where() takes a condition alone, or with both input and other: one of these is "
                "missing, or None"
            )
        return nonzero(condition, as_tuple=True)
    if not (type(input) is Tensor is type(other)):
        constants = not (isinstance(input, Tensor) or isinstance(other, Tensor))
        input, other = as_tensors((input, other))
        are_numbers = constants and input.ndim == other.ndim == 0
        if are_numbers and isinstance(condition, Tensor) and condition.is_cuda:
            input, other = input.to(condition.device), other.to(condition.device)
    mask = _as_mask(condition)
    if input._array.dtype is not other._array.dtype and input.dtype != other.dtype:
        dtype = promoted(input.dtype, other.dtype)
        input, other = cast(input, dtype), cast(other, dtype)
    found = _where(mask, input, other)
    return found if out is None else written(found, out)


def _as_mask(condition: Operand) -> Tensor:
    """Return a condition as a tensor of bools."""
    mask = tensor_of(condition)
    return mask if mask._array.dtype.kind == "b" else elementwise.not_equal.apply(mask, 0)


@operation(inplace=True)
def masked_fill(input: Operand, mask: Operand, value: Operand) -> Tensor:
    """Return `input` with `value` where `mask` is true.

    Parameters
    ----------
    input : Tensor
        The elements where `mask` is false.
    mask : Tensor of bools
        Its shape broadcasts with that of `input`.
    value : number or 0-d Tensor
        Converted to the dtype of `input`.

    Returns
    -------
    Tensor, of the broadcast shape and the dtype of `input`

    Raises
    ------
    TypeError
        If `mask` does not have the dtype bool.
    DTypeError
        If `value` is complex and `input` is real.

    Notes
    -----
    Derivatives: for `input` 1 where `mask` is false, else 0; for `value` the opposite.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked_fill(cr.tensor([1.0, 2.0]), cr.tensor([True, False]), 9)
    tensor([9., 2.])
    """
    input, mask = tensor_of(input), tensor_of(mask)
    if mask.dtype.kind != "b":
        raise ArgumentTypeError(
            f"masked_fill only supports boolean masks, but got mask of {mask.dtype}: write "
            "mask.bool()"
        )
    value = number_for("masked_fill", value, input.dtype)
    if not isinstance(value, Tensor):
        value = tensor_of(namespace(input._array).asarray(value, dtype=input.dtype))
    return elementwise.where.apply(mask, cast(value, input.dtype), input)


@operation(method="where")
def where_method(x: Tensor, condition: Any, other: Any) -> Tensor:
    """Return the tensor's elements where `condition` is true, else those of `other`."""
    return where(condition, x, other)
