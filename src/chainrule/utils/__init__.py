"""Utilities for training: `checkpoint`, `data`, as in `torch.utils`, and `progress`."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from chainrule.missing_names import missing
from chainrule.utils import checkpoint as checkpoint

__all__ = ["checkpoint", "progress"]

T = TypeVar("T")


def progress(
    iterable: Iterable[T], description: str = "", total: int | None = None, **options: Any
) -> Iterable[T]:
    """Return an iterable that shows how far a loop over it is.

    Parameters
    ----------
    iterable : iterable
        What is iterated.
    description : str, optional
        Text in front of the bar.
    total : int, optional
        Number of iterations; ``len(iterable)`` by default, where there is one.
    **options
        For tqdm, where it is installed.

    Returns
    -------
    iterable
        tqdm's bar, in a notebook that of notebooks. Without tqdm, a generator that writes a line to
        the terminal at most ten times a second; where stderr is no terminal, only the last one.

    Examples
    --------
    >>> from chainrule.utils import progress
    >>> sum(progress(range(4), disable=True))
    6
    """
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return iterable if options.get("disable") else _plain(iterable, description, total)
    bar: Iterable[T] = tqdm(iterable, desc=description or None, total=total, **options)
    return bar


def _plain(iterable: Iterable[T], description: str, total: int | None) -> Iterator[T]:
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    start = shown = time.monotonic()
    live = sys.stderr.isatty()
    number = 0

    def show(end: str) -> None:
        seconds = time.monotonic() - start
        of = f"/{total} ({100 * number // max(total, 1)} %)" if total is not None else ""
        text = f"{description}: " if description else ""
        print(f"\r{text}{number}{of} in {seconds:.1f} s", end=end, file=sys.stderr, flush=True)

    try:
        for item in iterable:
            yield item
            number += 1
            if live and time.monotonic() - shown > 0.1:
                shown = time.monotonic()
                show("")
    finally:
        show("\n")


if TYPE_CHECKING:
    from chainrule.utils import data as data
else:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "data":
            return importlib.import_module("chainrule.utils.data")
        raise missing(__name__, name)
