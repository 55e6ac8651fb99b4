"""Kinds of results: arrays for arrays, numbers for numbers, labelled data for labelled data."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy, NumberProxy
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_array
from chainrule.numpy.array_class import as_ndarrays

Kind = Callable[[Tensor], Any]


def kind_of(leaf: Any) -> Kind:
    """Return the function that gives a derivative by `leaf` in the kind that `leaf` has.

    A result that depends on what an outer transform differentiates, or on a tensor that requires
    grad, stays a tensor: its history would be lost.
    """
    if isinstance(leaf, Tensor):
        return as_ndarrays if leaf.is_carried else _same
    if is_array(leaf):
        return _array
    if isinstance(leaf, np.generic):
        return _scalar
    if isinstance(leaf, float | complex):
        return _number
    if (labels := _pandas_labels(leaf)) is not None:
        return lambda t: labels(_array(t))
    return _same


def common_kind(leaves: Sequence[Any]) -> Kind:
    """Return the function that gives a value of a function of `leaves` in their kind.

    That is a tensor if one of them is a tensor, else a number if all are, else what NumPy gives.
    """
    return common_kind_of([kind_of(leaf) for leaf in leaves if leaf is not None])


def common_kind_of(found: Sequence[Kind]) -> Kind:
    """Return `common_kind` of leaves of these kinds."""
    kinds = set(found)
    if not kinds or _same in kinds:
        return _same
    if as_ndarrays in kinds:
        return as_ndarrays
    return _number if kinds == {_number} else _scalar


def has_numbers(kinds: Sequence[Kind]) -> bool:
    """Return whether there are Python's numbers among arguments, and no tensors."""
    return _number in kinds and _same not in kinds


def in_kind(kind: Kind, tree: Any, *, copy: bool = False) -> Any:
    """Return a tree with its tensors in a kind; `copy` arrays, if a graph still needs the memory.

    Writes to a tensor are noticed, those to an array aren't.
    """
    if kind is _same:
        return tree

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return kind(leaf.clone() if copy and not leaf.requires_grad else leaf)

    return pytree.map_leaves(tree, convert)


def _same(t: Tensor) -> Any:
    return t


def _array(t: Tensor) -> Any:
    """Return the array of a tensor without history."""
    array = t._array
    is_proxy = isinstance(array, ArrayProxy)
    if t.requires_grad or (is_proxy and not array.is_visible):
        return t
    return array[...] if is_proxy else array


def _scalar(t: Tensor) -> Any:
    """Return the array of a tensor without history, of one without dimensions the NumPy scalar."""
    array = _array(t)
    return array[()] if isinstance(array, np.ndarray | ArrayProxy) else array


def _number(t: Tensor) -> Any:
    """Return a tensor without history or dimensions as Python's number, another as an array."""
    array = _array(t)
    if array is t or array.ndim:
        return array
    return array.finished_by(_item) if isinstance(array, ArrayProxy) else array.item()


_item = operator.methodcaller("item")


def values_of(leaf: Any) -> Any:
    """Return the array of a pandas object, Python's float or complex in double precision."""
    if isinstance(leaf, float | complex) and not isinstance(leaf, np.generic):
        return leaf.as_array() if isinstance(leaf, NumberProxy) else np.asarray(leaf)
    return leaf if _pandas_labels(leaf) is None else leaf.to_numpy()


def _pandas_labels(leaf: Any) -> Callable[[Any], Any] | None:
    """Return the function that gives an array the labels of a pandas object; None for others."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(leaf, pandas.Series | pandas.DataFrame):
        return None

    def labelled(array: Any) -> Any:
        if isinstance(array, ArrayProxy):
            return array.finished_by(labelled)
        if not isinstance(array, np.ndarray) or array.shape != leaf.shape:
            return array
        if array.ndim == 1:
            return leaf._constructor(array, index=leaf.index, name=leaf.name)
        return leaf._constructor(array, index=leaf.index, columns=leaf.columns)

    return labelled
