"""Data sets: examples by index or in order, and parts and combinations of them."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.random import randperm

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Base of data sets with an index: a subclass implements ``__getitem__`` and ``__len__``.

    ``__getitems__(indices)``, if there is one, returns the list of examples of a batch.

    Examples
    --------
    >>> from chainrule.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 5
    ...     def __getitem__(self, index):
    ...         return index, index**2
    >>> (Squares() + Squares())[7]
    (2, 4)
    """

    def __getitem__(self, index: Any) -> T:
        """Return an example; a subclass implements it."""
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index)")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        """Return the examples of both."""
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Base of data sets that are a stream: a subclass implements ``__iter__``.

    In each worker of a `DataLoader` the whole stream is a copy: `get_worker_info` says which part
    is the worker's.
    """

    def __add__(self, other: Dataset[Any]) -> Any:
        """Return the examples of both, one stream after the other."""
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of the same length: example i is the tuple of their rows i.

    Raises
    ------
    ArgumentError
        If the lengths differ, or there is no tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.data import TensorDataset
    >>> TensorDataset(cr.arange(3), cr.arange(3) * 10)[2]
    (tensor(2), tensor(20))
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {len(tensor) for tensor in tensors}
        if len(lengths) != 1:
            raise ArgumentError(
                "TensorDataset: size mismatch between tensors: expected one or more of the same "
                f"length, but got lengths {[len(tensor) for tensor in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def collated(self, indices: Sequence[int]) -> list[Tensor] | None:
        """Return the batch that `default_collate` makes of examples, by one gather for each tensor.

        None for a subclass whose examples are others.
        """
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return None
        if hasattr(self, "__getitems__"):
            return None
        rows = np.asarray(indices, dtype=np.intp)
        return [tensor[rows] for tensor in self.tensors]


class Subset(Dataset[T]):
    """The examples of a data set at some indices.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.data import Subset, TensorDataset
    >>> Subset(TensorDataset(cr.arange(10)), [7, 3])[0]
    (tensor(7),)
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        chosen = [self.indices[index] for index in indices]
        getitems = getattr(self.dataset, "__getitems__", None)
        if callable(getitems):
            return list(getitems(chosen))
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)

    def collated(self, indices: Sequence[int]) -> Any:
        """Return a batch by one gather, where the data set can: see `TensorDataset`."""
        own = type(self).__getitem__, type(self).__getitems__
        collated = getattr(self.dataset, "collated", None)
        if collated is None or own != (Subset.__getitem__, Subset.__getitems__):
            return None
        return collated([self.indices[index] for index in indices])


class ConcatDataset(Dataset[T]):
    """The examples of several data sets, one after the other.

    Raises
    ------
    ArgumentError
        If there are none, or one is an `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise ArgumentError(
                "ConcatDataset does not support IterableDataset: say ChainDataset, or a + b"
            )
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(
                f"ConcatDataset: index {index} is out of range for {len(self)} examples"
            )
        number = bisect.bisect_right(self.cumulative_sizes, place)
        before = self.cumulative_sizes[number - 1] if number else 0
        example: T = self.datasets[number][place - before]
        return example


class StackDataset(Dataset[Any]):
    """Examples made of those of several data sets: tuples by position, or dicts by name.

    Raises
    ------
    ArgumentError
        If there are none, both kinds, or the lengths differ.

    Examples
    --------
    >>> from chainrule.utils.data import StackDataset
    >>> StackDataset(x=[1, 2], y=[10, 20])[1]
    {'x': 2, 'y': 20}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError(
                "StackDataset takes data sets either by position (for tuples) or by name (for "
                f"dicts), at least one; got {len(args)} and {len(kwargs)}"
            )
        self.datasets: Any = args or kwargs
        self._parts: list[Any] = list(args or kwargs.values())
        if len({len(part) for part in self._parts}) != 1:
            raise ArgumentError(
                "StackDataset: size mismatch between datasets, of lengths "
                f"{[len(part) for part in self._parts]}"
            )

    def _example(self, values: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, values, strict=True))
        return tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._example(part[index] for part in self._parts)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        columns = []
        for part in self._parts:
            getitems = getattr(part, "__getitems__", None)
            column = getitems(indices) if callable(getitems) else [part[i] for i in indices]
            if len(column) != len(indices):
                raise ArgumentError(
                    f"StackDataset: __getitems__ of {type(part).__name__} returned "
                    f"{len(column)} examples for {len(indices)} indices"
                )
            columns.append(column)
        return [self._example(values) for values in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return len(self._parts[0])


class ChainDataset(IterableDataset[T]):
    """The streams of several `IterableDataset`, one after the other."""

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentTypeError(
                    "ChainDataset only supports IterableDataset, but got "
                    f"{type(dataset).__name__}: say ConcatDataset"
                )
            yield from dataset

    def __len__(self) -> int:
        lengths: Iterable[int] = map(len, self.datasets)  # type: ignore[arg-type]  # or they have no length
        return sum(lengths)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T]]:
    """Return parts of a data set, drawn at random without overlap.

    Parameters
    ----------
    dataset : Dataset
        With a length.
    lengths : sequence of int or of float
        Numbers of examples, which sum to ``len(dataset)``, or fractions, which sum to 1: those
        are rounded down, and the examples left over go to the first parts, one each.
    generator : Generator, optional
        The source of the order; the default one otherwise.

    Returns
    -------
    list of Subset

    Raises
    ------
    ArgumentError
        If the lengths don't sum to the length, or a fraction is not between 0 and 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.data import TensorDataset, random_split
    >>> train, test = random_split(TensorDataset(cr.arange(10)), [0.75, 0.25])
    >>> len(train), len(test)
    (8, 2)
    """
    total = len(dataset)  # type: ignore[arg-type]  # or they have no length
    sizes: list[Any] = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        if any(not 0 <= part <= 1 for part in sizes):
            raise ArgumentError(f"random_split: fractions {sizes} must be between 0 and 1")
        sizes = [math.floor(total * part) for part in sizes]
        for number in range(total - sum(sizes)):
            sizes[number % len(sizes)] += 1
    if sum(sizes) != total:
        raise ArgumentError(
            "Sum of input lengths does not equal the length of the input dataset: random_split "
            f"got {list(lengths)} for {total} examples"
        )
    order = randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
