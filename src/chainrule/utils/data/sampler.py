"""Samplers: the order in which a `DataLoader` takes examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from chainrule.creation import tensor
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.random import multinomial, randint, randperm

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Base of samplers: a subclass implements ``__iter__``, over indices, and maybe ``__len__``."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__()")


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        if not hasattr(self.data_source, "__len__"):
            name = type(self.data_source).__name__
            raise ArgumentTypeError(
                f"object of type {name!r} has no len(): define __len__(self) in {name}, or make it "
                "an IterableDataset with __iter__(self)"
            )
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_DRAWN_AT_ONCE = 4096
"""Number of indices that a sampler with replacement draws before it hands them out."""


class RandomSampler(Sampler[int]):
    """Indices in random order: all, or `num_samples` of them.

    Parameters
    ----------
    data_source : Dataset
        With a length.
    replacement : bool, default False
        Draw each index from all, so that some come twice.
    num_samples : int, optional
        Number of indices; ``len(data_source)`` by default. Without replacement, more than that go
        on with another permutation.
    generator : Generator, optional
        The source; the default one otherwise.

    Raises
    ------
    ArgumentError
        If `num_samples` is not a positive integer, or the data set is empty.

    Examples
    --------
    >>> from chainrule.utils.data import RandomSampler
    >>> sorted(RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(
                f"replacement should be a boolean value, but got {replacement!r}"
            )
        if not hasattr(data_source, "__len__"):
            raise ArgumentTypeError(
                f"shuffling needs the number of examples: {type(data_source).__name__} has no "
                "__len__. Define it, or give a sampler of your own in the place of shuffle=True"
            )
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(self.num_samples, int) or self.num_samples < 1:
            mend = ": the data set is empty" if num_samples is None else ""
            raise ArgumentError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}{mend}"
            )

    @property
    def num_samples(self) -> int:
        """Number of indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        number, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            while wanted > 0:  # in parts: scripts ask for more than they take, 1e10 for example
                count = min(wanted, _DRAWN_AT_ONCE)
                yield from randint(0, number, (count,), generator=self.generator).tolist()
                wanted -= count
            return
        while number and wanted > 0:
            order = randperm(number, generator=self.generator).tolist()
            yield from order[:wanted]
            wanted -= number

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with the given weights.

    Parameters
    ----------
    weights : sequence of float
        Weight of each index; they need not sum to 1.
    num_samples : int
        Number of indices.
    replacement : bool, default True
        Draw each index from all.
    generator : Generator, optional
        The source; the default one otherwise.

    Raises
    ------
    ArgumentError
        If `num_samples` is not a positive integer, or `weights` not one-dimensional.

    Examples
    --------
    >>> from chainrule.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ArgumentError(
                f"num_samples should be a positive integer value, but got {num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ArgumentTypeError(
                f"replacement should be a boolean value, but got {replacement!r}"
            )
        self.weights = tensor(weights, dtype="float64")
        if self.weights.ndim != 1:
            raise ArgumentError(
                f"weights should be a 1d sequence, but their shape is {self.weights.shape}"
            )
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last may be shorter.

    Parameters
    ----------
    sampler : iterable of int
        The indices.
    batch_size : int
        Number of indices in a list.
    drop_last : bool
        Leave out a last list that is shorter.

    Raises
    ------
    ArgumentError
        If `batch_size` is not a positive integer.

    Examples
    --------
    >>> from chainrule.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ArgumentError(
                f"batch_size should be a positive integer value, but got {batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ArgumentTypeError(f"drop_last should be a boolean value, but got {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        number = len(self.sampler)  # type: ignore[arg-type]  # or it has no length
        return number // self.batch_size if self.drop_last else -(-number // self.batch_size)
