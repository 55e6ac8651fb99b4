"""The elements of a tensor as a set: each distinct value once. Results are in ascending order."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, namespace, promote
from chainrule.ops.indexing import get_item
from chainrule.ops.reshape import reshape

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values", "isin"]


class UniqueAll(NamedTuple):
    """Distinct values, where each is first, which one each element is, and how often each is."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each is there."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values, and for each element which of them it is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(input: Operand) -> UniqueAll:
    """Return the distinct values of `input`, with all that there is to know of where they are.

    Parameters
    ----------
    input : Tensor
        Its elements are taken as one row; each nan is distinct from every other.

    Returns
    -------
    named tuple (values, indices, inverse_indices, counts) of Tensors
        `values` ascend; ``x.flatten()[indices]`` is `values`, first occurrences;
        ``values[inverse_indices]`` is `input`, in its shape; `counts` says how often each is there.

    Notes
    -----
    Derivative: the gradient of a value goes to its first occurrence, the one that was picked.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_all(cr.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    input = tensor_of(input)
    array: Any = input._array
    check_known(array, "unique", "sort() it")
    _, first, inverse, counts = namespace(array).unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAll(
        get_item(reshape(input, -1), first),
        make(first, None),
        make(inverse.reshape(array.shape), None),
        make(counts, None),
    )


def unique_counts(input: Operand) -> UniqueCounts:
    """Return the distinct values of `input` and how often each is there; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_counts(cr.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    found = unique_all(input)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(input: Operand) -> UniqueInverse:
    """Return the distinct values of `input` and which of them each element is; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_inverse(cr.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(input)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(input: Operand) -> Tensor:
    """Return the distinct values of `input`; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_values(cr.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(input).values


def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Say of each element whether it is one of others.

    Parameters
    ----------
    elements : Tensor, array or number
        What is asked about.
    test_elements : Tensor, array or number
        What they are looked for in. nan equals nothing.
    assume_unique : bool, default False
        Promise that no value is there twice in either, which may save time.
    invert : bool, default False
        Say the opposite.

    Returns
    -------
    Tensor of bools, shape of `elements`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isin(cr.tensor([1, 2, 3]), cr.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    x, y = [t._array for t in as_tensors((elements, test_elements))]
    found = namespace(x).isin(*promote(x, y), assume_unique=assume_unique, invert=invert)
    return make(namespace(x).asarray(found), None)
