"""Sums, means, variances and centres of images and of their labelled parts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of
from chainrule.scipy.ndimage.arguments import TABLE, doubles, image


class _Parts(NamedTuple):
    """Parts of an image by numbers: 0, 1, … for those that are asked for, the last for the rest."""

    number: Any  # of each element of the image
    size: int
    asked: Any  # the number of each part that is asked for

    def sums(self, x: Tensor) -> Tensor:
        """Return the sum of each part, and of the rest."""
        start = x.new_zeros(self.size + 1)
        return ops.index_add(start, 0, self.number, ops.reshape(x, (-1,)))

    def sizes(self) -> Any:
        """Return the number of elements of each part, and of the rest."""
        return np.bincount(self.number, minlength=self.size + 1).astype(float)


def _parts(x: Tensor, labels: Any, index: Any) -> _Parts:
    if labels is None:
        return _Parts(np.zeros(math.prod(x.shape), np.intp), 1, 0)
    labels = np.broadcast_to(array_of(labels), x.shape).ravel()
    if index is None:
        return _Parts(np.where(labels > 0, 0, 1), 1, 0)
    index = np.asarray(array_of(index))
    known, asked = np.unique(index, return_inverse=True)
    number = np.minimum(np.searchsorted(known, labels), known.size - 1)
    number = np.where(known[number] == labels, number, known.size)
    return _Parts(number, known.size, asked.reshape(index.shape))


def _means(x: Tensor, parts: _Parts) -> Tensor:
    found: Tensor = parts.sums(x) / parts.sizes()
    return found


def _variances(x: Tensor, parts: _Parts) -> Tensor:
    centred = ops.reshape(x, (-1,)) - _means(x, parts)[parts.number]
    return _means(ops.square(centred), parts)


def _of_parts(name: str, function: Any, input: Any, labels: Any, index: Any) -> Tensor:
    (x,) = doubles(name, image(name, input))
    parts = _parts(x, labels, index)
    found: Tensor = function(x, parts)[parts.asked]
    return found


@TABLE.function("sum", "linear")
@TABLE.function("sum_labels", "linear")
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Tensor:
    """Return the sum of an image, or of labelled parts of it."""
    return _of_parts("sum_labels", lambda x, parts: parts.sums(x), input, labels, index)


@TABLE.function("mean", "linear")
def mean(input: Any, labels: Any = None, index: Any = None) -> Tensor:
    """Return the mean of an image, or of labelled parts of it."""
    return _of_parts("mean", _means, input, labels, index)


@TABLE.function("variance", "composite")
def variance(input: Any, labels: Any = None, index: Any = None) -> Tensor:
    """Return the variance of an image, or of labelled parts of it."""
    return _of_parts("variance", _variances, input, labels, index)


@TABLE.function("standard_deviation", "composite")
def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Tensor:
    """Return the standard deviation of an image, or of labelled parts of it."""
    return ops.sqrt(variance(input, labels, index))


@TABLE.function("center_of_mass", "composite")
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Return the coordinates of the centre of an image, or of labelled parts of it."""
    (x,) = doubles("center_of_mass", image("center_of_mass", input))
    total = sum_labels(x, labels, index)
    found = []
    for axis, n in enumerate(x.shape):
        place = np.arange(float(n)).reshape([-1 if axis == i else 1 for i in range(x.ndim)])
        found.append(sum_labels(x * place, labels, index) / total)
    if not total.ndim:
        return tuple(found)
    return [tuple([part[i] for part in found]) for i in range(total.shape[0])]
