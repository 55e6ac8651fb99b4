"""Utilities for training: `checkpoint`, `data`, as in `torch.utils`, and `progress`."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from chainrule.missing_names import submodule
from chainrule.utils import checkpoint as checkpoint

__all__ = ["checkpoint", "progress"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def progress(
    iterable: Iterable[T], description: str = "", total: int | None = None, **options: Any
) -> ProgressBar[T]:
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
        tqdm's bar, in a notebook that of notebooks. Without tqdm, one that writes a line to the
        terminal at most ten times a second; where stderr is no terminal, only the last one. Its
        ``set_postfix_str(text)`` sets the text behind the bar.

    Examples
    --------
    >>> from chainrule.utils import progress
    >>> sum(progress(range(4), disable=True))
    6
    """
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _Progress(iterable, description, total, bool(options.get("disable")))
    bar: ProgressBar[T] = tqdm(iterable, desc=description or None, total=total, **options)
    return bar


class ProgressBar(Protocol[T_co]):
    """An iterable that shows how far a loop over it is, with a text that the loop may set."""

    def __iter__(self) -> Iterator[T_co]: ...

    def set_postfix_str(self, s: str) -> None:
        """Set the text behind the bar."""


_CLEAR = "\033[K"
"""Erases what a longer text has left in the line of a terminal."""


class _Progress(Iterable[T]):
    """A line that is written again, at most ten times a second."""

    def __init__(
        self, iterable: Iterable[T], description: str, total: int | None, disable: bool
    ) -> None:
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        self._iterable, self._description, self._total = iterable, description, total
        self._disable, self._postfix = disable, ""

    def set_postfix_str(self, s: str) -> None:
        """Set the text behind the bar."""
        self._postfix = f", {s}" if s else ""

    def __iter__(self) -> Iterator[T]:
        if self._disable:
            yield from self._iterable
            return
        start = shown = time.monotonic()
        live = sys.stderr.isatty()
        number = 0
        try:
            for item in self._iterable:
                yield item
                number += 1
                if live and time.monotonic() - shown > 0.1:
                    shown = time.monotonic()
                    self._show(number, shown - start, _CLEAR)
        finally:
            self._show(number, time.monotonic() - start, f"{_CLEAR if live else ''}\n")

    def _show(self, number: int, seconds: float, end: str) -> None:
        total = self._total
        of = f"/{total} ({100 * number // max(total, 1)} %)" if total is not None else ""
        text = f"{self._description}: " if self._description else ""
        line = f"\r{text}{number}{of} in {seconds:.1f} s{self._postfix}"
        print(line, end=end, file=sys.stderr, flush=True)


if TYPE_CHECKING:
    from chainrule.utils import benchmark as benchmark
    from chainrule.utils import data as data
else:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name in ("benchmark", "data"):
            return importlib.import_module(f"chainrule.utils.{name}")
        return submodule(__name__, name)
