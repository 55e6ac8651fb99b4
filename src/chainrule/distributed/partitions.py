"""Partitions of data as tasks that load them: on any worker, and again after one is lost."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.backend.extensions import LazyModule
from chainrule.distributed.extra import cloudpickle, dask, dask_delayed, distributed
from chainrule.errors import ArgumentError, ArgumentTypeError, FormatError, ShapeError


class Partition(NamedTuple):
    """A part of the data: how messages call it, and what loads it."""

    label: str
    source: Any  # a `Loader`, or objects of Dask, whose results tasks get


class Loader:
    """A function without arguments that returns the data of a partition, as its pickle."""

    def __init__(self, function: Callable[[], Any], label: str) -> None:
        self._pickled = pickled(function, f"the loader of {label}")

    def load(self) -> Any:
        """Return the data."""
        return pickle.loads(self._pickled)()

    def __dask_tokenize__(self) -> int:
        """Return what stands for it in the name of a graph, whose keys are new each time."""
        return id(self)


def pickled(function: Any, what: str) -> bytes:
    """Return the pickle of a function for workers.

    Raises
    ------
    ArgumentTypeError
        If the function or something that it refers to has no pickle.
    """
    dumps = cloudpickle.dumps  # first: it may be missing
    try:
        found: bytes = dumps(function)
    except Exception as error:
        raise ArgumentTypeError(
            f"distributed: {what} can't be sent to workers: {type(error).__name__}: {error}. Make "
            "files, locks and connections in the function, not around it"
        ) from error
    return found


def load(source: Any) -> Any:
    """Return the data of a partition, in a task that got what Dask computes itself."""
    return source.load() if isinstance(source, Loader) else source


def arguments_of(data: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a loss for the data of a partition, after the parameters.

    A tuple has them by position, a dict by name; anything else is a single one.
    """
    if isinstance(data, tuple):
        return tuple(data), {}
    if isinstance(data, Mapping):
        return (), dict(data)
    return (data,), {}


def number_of_examples(data: Any) -> int:
    """Return the length of the first dimension, which all arrays of a partition have in common.

    Raises
    ------
    ShapeError
        If the lengths differ, or nothing has one.
    """
    if isinstance(data, list):  # a partition of a bag
        return len(data)
    leaves = [leaf for _, leaf in pytree.leaves(dict(data) if isinstance(data, Mapping) else data)]
    lengths = {leaf.shape[0] for leaf in leaves if getattr(leaf, "shape", ())}
    if len(lengths) != 1:
        raise ShapeError(
            "distributed: the number of examples is the length of the first dimension, but the "
            f"arrays have the lengths {sorted(lengths)}: return arrays with one row an example"
        )
    return int(lengths.pop())


# --- what partitions are made of ------------------------------------------------------------------


def partitions(parts: Any) -> list[Partition]:
    """Return the partitions of the data that a user gave.

    Parameters
    ----------
    parts : iterable, Dask collection, or tuple or dict of these
        Functions without arguments, paths of files, Delayed objects or futures, one for each
        partition. Or arrays, bags or data frames of Dask, whose chunks are the partitions;
        several in a tuple or dict must be divided alike.

    Raises
    ------
    ArgumentError
        If there is no partition, or collections are divided differently.
    ArgumentTypeError
        If a partition is something else, such as an array: it could not be loaded again.
    """
    if isinstance(parts, Mapping):
        found = _joined({f"[{name!r}]": each for name, each in parts.items()}, list(parts))
    elif isinstance(parts, tuple) and any(map(_is_collection, parts)):
        found = _joined({f"[{i}]": each for i, each in enumerate(parts)}, None)
    elif _is_collection(parts):
        found = [Partition(label, source) for label, source in _blocks("", parts)]
    elif isinstance(parts, Iterable) and not isinstance(parts, str | np.ndarray):
        found = [_partition(i, each) for i, each in enumerate(parts)]
    else:
        raise ArgumentTypeError(
            "distributed: the parts are a list of functions or files, or a collection of Dask, "
            f"got {type(parts).__name__}"
        )
    if not found:
        raise ArgumentError("distributed: there are no partitions: give at least one")
    return found


def _is_collection(value: Any) -> bool:
    """Whether a value is an array, bag or data frame of Dask, which has several partitions."""
    return dask.is_dask_collection(value) and not isinstance(value, dask_delayed.Delayed)


def _partition(index: int, source: Any) -> Partition:
    label = f"partition {index}"
    if isinstance(source, str | os.PathLike):
        label += f" ({os.fspath(source)})"
        return Partition(label, Loader(functools.partial(read, os.fspath(source)), label))
    if isinstance(source, dask_delayed.Delayed | distributed.Future):
        return Partition(f"{label} ({source.key})", source)
    if callable(source):
        label += f" ({getattr(source, '__qualname__', None) or repr(source)[:80]})"
        return Partition(label, Loader(source, label))
    raise ArgumentTypeError(
        f"distributed: {label} is {type(source).__name__}: a worker that is lost takes its data "
        "with it, so give a function that loads it, or the path of a file. Arrays in memory can be "
        "divided by dask.array.from_array(X, chunks=(1000, -1))"
    )


def _joined(collections: dict[str, Any], names: list[str] | None) -> list[Partition]:
    """Return the partitions of collections that are divided alike, as tuples or dicts."""
    for path, each in collections.items():
        if not _is_collection(each):
            raise ArgumentTypeError(
                f"distributed: parts{path} is {type(each).__name__}: beside a collection of Dask "
                "there must be others, divided alike"
            )
    blocks = {path: _blocks(path, each) for path, each in collections.items()}
    (first, wanted), *others = blocks.items()
    for path, found in others:
        if len(found) != len(wanted):
            raise _unlike(first, f"{len(wanted)} partitions", path, f"{len(found)} partitions")
        for one, other in zip(wanted, found, strict=True):
            if len({label for label, _ in (one, other) if "rows" in label}) == 2:
                raise _unlike(first, one[0], path, other[0])
    columns = [[source for _, source in each] for each in blocks.values()]
    rows = zip((label for label, _ in wanted), zip(*columns, strict=True), strict=True)
    return [
        Partition(label, row if names is None else dict(zip(names, row, strict=True)))
        for label, row in rows
    ]


def _unlike(first: str, one: str, path: str, other: str) -> ArgumentError:
    return ArgumentError(
        f"distributed: parts{first} has {one}, but parts{path} has {other}: divide them alike, "
        "such as by y.rechunk(X.chunks[0])"
    )


def _blocks(path: str, collection: Any) -> list[tuple[str, Any]]:
    """Return the partitions of a collection as labels and Delayed objects."""
    if not hasattr(collection, "numblocks"):
        return [(f"partition {i}", each) for i, each in enumerate(collection.to_delayed())]
    if not collection.ndim or any(count != 1 for count in collection.numblocks[1:]):
        raise ArgumentError(
            f"distributed: parts{path} is divided along {list(collection.numblocks)}, and "
            "partitions are rows: call .rechunk({0: 'auto', **dict.fromkeys(range(1, X.ndim), -1)})"
            " for whole rows"
        )
    ends = np.cumsum(collection.chunks[0])
    starts = ends - collection.chunks[0]
    blocks = collection.to_delayed().reshape(-1)
    return [
        (f"partition {i}" + (f" (rows {a}:{b})" if b == b else ""), block)
        for i, (a, b, block) in enumerate(zip(starts, ends, blocks, strict=True))
    ]


# --- files ----------------------------------------------------------------------------------------


def read(path: str) -> Any:
    """Return the arrays of a file: of .npy the array, of .npz, .zarr and .parquet a dict by name.

    Raises
    ------
    FormatError
        If the ending is another one.
    MissingExtraError
        If the package that reads it is not installed.
    """
    try:
        reader = _READERS[Path(path).suffix]
    except KeyError:
        raise FormatError(
            f"distributed: {path} is none of the files that can be read, {', '.join(_READERS)}: "
            "give a function that reads it"
        ) from None
    return reader(path)


def _read_npz(path: str) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _read_zarr(path: str) -> Any:
    found = _ZARR.open(path, mode="r")
    if hasattr(found, "shape"):
        return found[...]
    return {name: array[...] for name, array in found.arrays()}


def _read_parquet(path: str) -> dict[str, Any]:
    frame = _PANDAS.read_parquet(path)
    return {str(name): column.to_numpy() for name, column in frame.items()}


_ZARR = LazyModule("zarr", "Zarr, which is not installed: pip install zarr")
_PANDAS = LazyModule("pandas", "pandas, which is not installed: pip install pandas pyarrow")

_READERS: dict[str, Callable[[str], Any]] = {
    ".npy": functools.partial(np.load, allow_pickle=False),
    ".npz": _read_npz,
    ".zarr": _read_zarr,
    ".parquet": _read_parquet,
}
