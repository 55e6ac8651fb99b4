"""Times of named parts of a program under the names of `torch.profiler`.

What `record_function` names is measured, not single operations: `chainrule.profile` has the times
of a function's lines, or of a compiled function's statements.
"""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

from chainrule.errors import ArgumentError

__all__ = [
    "ProfilerActivity",
    "ProfilerAction",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is measured, of which the CPU is."""

    CPU = 0
    CUDA = 2
    XPU = 1


class ProfilerAction(enum.Enum):
    """What a step of a schedule does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_recording: ContextVar[tuple[profile, ...]] = ContextVar("chainrule profilers", default=())


class record_function(ContextDecorator):
    """Name a part of a program, as a block or a decorator, for `profile`.

    Examples
    --------
    >>> from chainrule.profiler import profile, record_function
    >>> with profile() as prof:
    ...     for _ in range(3):
    ...         with record_function("step"):
    ...             pass
    >>> [(event.key, event.count) for event in prof.key_averages()]
    [('step', 3)]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self._starts = name, list[float]()

    def __enter__(self) -> record_function:
        self._starts.append(time.perf_counter())
        return self

    def __exit__(self, *error: object) -> None:
        start, end = self._starts.pop(), time.perf_counter()
        for profiler in _recording.get():
            profiler._add(self.name, start, end)


class _Average:
    """The times of the parts of one name."""

    def __init__(self, key: str, seconds: list[float]) -> None:
        self.key, self.count = key, len(seconds)
        self.cpu_time_total = 1e6 * sum(seconds)
        self.cpu_time = self.cpu_time_total / self.count


class _Averages(list[_Average]):
    """The times by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return the times as text, the longest first if `sort_by` is given."""
        rows = sorted(self, key=lambda row: -row.cpu_time_total) if sort_by else list(self)
        lines = [f"{'Name':<40}{'CPU total (us)':>18}{'CPU time avg (us)':>20}{'# of Calls':>12}"]
        lines += [
            f"{row.key:<40}{row.cpu_time_total:>18.1f}{row.cpu_time:>20.1f}{row.count:>12}"
            for row in rows[:row_limit]
        ]
        return "\n".join(lines)

    def total_average(self) -> _Average:
        """Return the times of all parts."""
        return _Average("Total", [row.cpu_time_total / 1e6 for row in self] or [0.0])


class profile:
    """Measure the parts of a program that `record_function` names, while the block runs.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Accepted, without effect, as are the options of PyTorch that are not listed here.
    schedule : callable, optional
        Of the number of a step: what it does. Steps end by `step`.
    on_trace_ready : callable, optional
        Is called with the profiler where recording ends.
    enabled : bool, default True
        Whether anything is recorded.

    Examples
    --------
    >>> from chainrule.profiler import profile, record_function
    >>> with profile(record_shapes=True) as prof, record_function("model"):
    ...     total = sum(range(10))
    >>> prof.key_averages().table(sort_by="cpu_time_total").split()[0]
    'Name'
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | bool | None = None,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        enabled: bool = True,
        **options: Any,
    ) -> None:
        unknown = options.keys() - _OPTIONS
        if unknown:
            raise ArgumentError(f"profile: no option is called {', '.join(sorted(unknown))}")
        self._enabled = enabled and activities is not False
        self._schedule, self._ready = schedule, on_trace_ready
        self._events: list[tuple[str, float, float]] = []
        self.step_num = 0

    def _add(self, name: str, start: float, end: float) -> None:
        self._events.append((name, start, end))

    def _action(self) -> ProfilerAction:
        if not self._enabled:
            return ProfilerAction.NONE
        return self._schedule(self.step_num) if self._schedule else ProfilerAction.RECORD

    def _follow(self, action: ProfilerAction) -> None:
        records = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        active = _recording.get()
        if records and self not in active:
            self._events.clear()
            _recording.set((*active, self))
        elif not records:
            _recording.set(tuple(each for each in active if each is not self))

    def start(self) -> None:
        """Begin to record."""
        self._start = time.perf_counter()
        self._follow(self._action())

    def step(self) -> None:
        """End a step: the schedule says what the next one does."""
        saves = self._action() is ProfilerAction.RECORD_AND_SAVE
        if self in _recording.get():
            self._add(f"ProfilerStep#{self.step_num}", self._start, time.perf_counter())
        if saves:
            self._follow(ProfilerAction.NONE)
            if self._ready is not None:
                self._ready(self)
        self.step_num += 1
        self.start()

    def stop(self) -> None:
        """Stop recording."""
        recorded = self in _recording.get()
        self._follow(ProfilerAction.NONE)
        if recorded and self._ready is not None:
            self._ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def key_averages(self, *grouping: Any, **options: Any) -> _Averages:
        """Return the times by name; grouping is by name alone."""
        times: dict[str, list[float]] = {}
        for name, start, end in self._events:
            times.setdefault(name, []).append(end - start)
        return _Averages(_Average(name, seconds) for name, seconds in times.items())

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all named parts."""
        return self.key_averages().total_average().cpu_time_total

    def table(self, *args: Any, **options: Any) -> str:
        """Return ``key_averages().table(...)``."""
        return self.key_averages().table(*args, **options)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write the parts as a file for ``chrome://tracing``."""
        events = [
            {
                "name": name,
                "ph": "X",
                "pid": 0,
                "tid": 0,
                "ts": 1e6 * start,
                "dur": 1e6 * (end - start),
            }
            for name, start, end in self._events
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


_OPTIONS = frozenset(
    [
        "use_cuda",
        "use_cpu",
        "use_device",
        "record_shapes",
        "with_flops",
        "profile_memory",
        "with_stack",
        "with_modules",
        "use_kineto",
        "experimental_config",
        "execution_trace_observer",
        "acc_events",
        "custom_trace_id_callback",
        "post_processing_timeout_s",
    ]
)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **options: int
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: in turns, some steps wait, some warm up, and some are recorded.

    Parameters
    ----------
    wait, warmup, active : int
        Numbers of steps.
    repeat : int, default 0
        Number of turns; 0 for all.
    skip_first : int, default 0
        Steps before the first turn.

    Examples
    --------
    >>> from chainrule.profiler import schedule
    >>> [schedule(wait=1, warmup=0, active=2)(step).name for step in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    def action(step: int) -> ProfilerAction:
        turn, place = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and turn >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes a trace to a folder."""

    def write(profiler: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{worker_name or 'worker'}.{profiler.step_num}.pt.trace.json"
        profiler.export_chrome_trace(str(folder / name))

    return write
