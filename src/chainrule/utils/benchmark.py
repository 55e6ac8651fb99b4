"""Measurements of run time under the names of `torch.utils.benchmark`."""

from __future__ import annotations

import math
import statistics
import textwrap
import time
import timeit
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule.errors import ArgumentError

__all__ = ["Compare", "Measurement", "Timer"]

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def _in_units(seconds: float) -> str:
    unit, size = next((each for each in _UNITS if seconds >= each[1]), _UNITS[-1])
    return f"{seconds / size:.2f} {unit}"


class Measurement:
    """Run times of a statement.

    Attributes
    ----------
    number_per_run : int
        How often the statement ran for each time.
    raw_times : list of float
        Seconds of each run.
    times : list of float
        Seconds for the statement once: `raw_times` / `number_per_run`.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], titles: Mapping[str, Any]):
        self.number_per_run, self.raw_times, self._titles = number_per_run, raw_times, dict(titles)

    @property
    def times(self) -> list[float]:
        """Seconds for the statement once, by run."""
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of `times`, in seconds."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of `times`, in seconds."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The range between the quartiles of `times`, in seconds."""
        if len(self.raw_times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def title(self) -> str:
        """What was measured: the labels, or the statement."""
        given = [self._titles[name] for name in ("label", "sub_label") if self._titles[name]]
        return ": ".join(given) or self._titles["stmt"]

    def __getattr__(self, name: str) -> Any:
        titles = self.__dict__.get("_titles", {})
        if name not in titles:
            raise AttributeError(f"Measurement has no attribute {name!r}")
        return titles[name]

    def __repr__(self) -> str:
        runs = f"{len(self.raw_times)} x {self.number_per_run} runs, {self.num_threads} thread(s)"
        return f"<{type(self).__name__} of {self.title}\n  {_in_units(self.median)}\n  {runs}>"


class Timer:
    """A statement to be measured.

    Parameters
    ----------
    stmt, setup, global_setup : str, default "pass"
        The statement, and what runs once before it is measured.
    timer : callable, default time.perf_counter
        The clock, in seconds.
    globals : dict, optional
        The variables of the statement; it may change.
    label, sub_label, description : str, optional
        Titles, for `Compare`.
    env : str, optional
        A title of the environment.
    num_threads : int, default 1
        A title: the number of threads stays as it is, see `set_num_threads`.

    Examples
    --------
    >>> from chainrule.utils.benchmark import Timer
    >>> measured = Timer("x + 1", globals={"x": 1}).timeit(100)
    >>> measured.number_per_run, len(measured.times)
    (100, 1)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = None,
    ) -> None:
        if global_setup or language is not None:
            raise ArgumentError("Timer: statements are of Python: leave out global_setup, language")
        stmt, setup = textwrap.dedent(stmt).strip("\n"), textwrap.dedent(setup).strip("\n")
        self._timer = timeit.Timer(stmt, setup, timer, {} if globals is None else globals)
        self._titles = {
            "stmt": stmt,
            "label": label,
            "sub_label": sub_label,
            "description": description,
            "env": env,
            "num_threads": num_threads,
        }

    def _measured(self, number: int, raw_times: list[float]) -> Measurement:
        return Measurement(number, raw_times, self._titles)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of one run that does the statement `number` times."""
        self._timer.timeit(max(number // 100, 2))  # first calls
        return self._measured(number, [self._timer.timeit(number)])

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return the times of runs that take about `min_run_time` seconds together."""
        number = self._number_for(min_run_time / 100)
        raw_times: list[float] = []
        while not raw_times or math.fsum(raw_times) < min_run_time:
            raw_times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, raw_times[-1])
        return self._measured(number, raw_times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Return times, of runs until their quartiles are close to the median."""
        number, raw_times = self._number_for(min_run_time), list[float]()
        while True:
            raw_times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, raw_times[-1])
            measured = self._measured(number, raw_times)
            close = len(raw_times) > 3 and measured.iqr < threshold * measured.median
            if close or math.fsum(raw_times) > max_run_time:
                return measured

    def _number_for(self, seconds: float) -> int:
        """Return how often the statement runs in at least that time: a power of ten."""
        number = 1
        self._timer.timeit(1)  # the first call
        while self._timer.timeit(number) < seconds and number < 10**9:
            number *= 10
        return number


class Compare:
    """A table of measurements: a row for each `sub_label`, a column for each `description`.

    Examples
    --------
    >>> from chainrule.utils.benchmark import Compare, Timer
    >>> results = [Timer("1 + 1", description=word).timeit(10) for word in ("a", "b")]
    >>> str(Compare(results)).splitlines()[0].split()
    ['a', 'b']
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results += results

    def trim_significant_figures(self) -> None:
        """Do nothing: times are printed with two digits after the point."""

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing: the table is plain text."""

    def __str__(self) -> str:
        columns = dict.fromkeys(each.description or "" for each in self._results)
        rows = dict.fromkeys((each.title, each.num_threads) for each in self._results)
        cells: dict[Any, str] = {}
        for each in self._results:
            place = each.title, each.num_threads, each.description or ""
            cells[place] = _in_units(each.median)
        table = [["", *columns]]
        for title, threads in rows:
            texts = [cells.get((title, threads, column), "") for column in columns]
            table.append([f"{title} ({threads} thread(s))", *texts])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
            for line in table
        )

    def print(self) -> None:
        """Print the table."""
        print(self)
