"""`profile`: measure the time of each statement of a function, compiled or not."""

from __future__ import annotations

import itertools
import statistics
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from chainrule.autograd.remarks import Remark
from chainrule.compiler.api import Compiled
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import scope_of
from chainrule.compiler.line_profiling import LineProfile, profile_lines
from chainrule.errors import ArgumentError
from chainrule.interrupts import errstate


class Row(NamedTuple):
    """One statement of the source, and its median time in seconds."""

    statement: str
    seconds: float


class Profile:
    """The statements of a program in order, with their times, and remarks: print it."""

    def __init__(self, name: str, rows: list[Row], remarks: Sequence[Remark] = ()) -> None:
        self.name = name
        self.rows = rows
        self.remarks = tuple(remarks)

    @property
    def seconds(self) -> float:
        """Total time of all statements, in seconds."""
        return sum(row.seconds for row in self.rows)

    def __str__(self) -> str:
        total = self.seconds or 1.0
        lines = [f"{self.name}: {total * 1e6:.1f} µs", "      µs     %"]
        for statement, seconds in self.rows:
            lines.append(f"{seconds * 1e6:8.1f} {100 * seconds / total:5.1f}  {statement}")
        lines += [remark.text for remark in self.remarks]
        return "\n".join(lines)

    __repr__ = __str__


@overload
def profile(function: Compiled, *args: Any, calls: int = 25, **kwargs: Any) -> Profile: ...
@overload
def profile(
    function: Callable[..., Any], *args: Any, calls: int = 25, **kwargs: Any
) -> LineProfile: ...
def profile(function: Callable[..., Any], *args: Any, calls: int = 25, **kwargs: Any) -> Any:
    """Measure the time of a function: by statement if it is compiled, else by line.

    Parameters
    ----------
    function : callable
        A compiled function, or any other.
    *args, **kwargs
        Arguments of the call. A compiled function runs on copies of its arrays, so writes change
        nothing; any other function is simply called.
    calls : int, default 25
        Number of runs, of which the medians are returned. A function that isn't compiled runs for
        about three seconds at most.

    Returns
    -------
    Profile or LineProfile
        Of a compiled function: prints as a table; its `rows` are pairs of a statement and its
        seconds. Its `remarks` name what runs slower than as machine code: loops whose steps Python
        runs, operations that are left to NumPy, lines beyond the compile budget, and what `vmap`
        runs for one example after the other. Each has an `operation`, and a `text` with the reason
        and what to write instead.
        Of any other function: its `rows` are the lines of the user's code, each with the seconds
        `forward` of its own work, and `backward` of the rules of the operations that the line
        recorded. The backward pass begins at the results, and changes no `.grad`.

    Raises
    ------
    ArgumentError
        If `function` is no function.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.compile
    ... def f(x):
    ...     return (x @ x).exp()
    >>> [row.statement.split("  #")[0].strip() for row in cr.profile(f, cr.ones(3, 3)).rows]
    ['t1 = x @ x', 't2 = np.exp(t1)']
    >>> def g(x):
    ...     y = x.exp()
    ...     return (y * y).sum()
    >>> [row.location.line for row in cr.profile(g, cr.ones(3, requires_grad=True)).rows]
    [2, 3]
    """
    compiled: Any = function
    if isinstance(function, types.MethodType):
        compiled, args = function.__func__, (function.__self__, *args)
    if not callable(compiled):
        raise ArgumentError(
            f"profile: expected a function, got {type(function).__name__}: write "
            "cr.profile(function, *arguments) in the place of cr.profile(function(*arguments))"
        )
    if not isinstance(compiled, Compiled):
        name = getattr(compiled, "__name__", type(compiled).__name__)
        return profile_lines(name, compiled, args, kwargs, calls)
    built = compiled.built_for(args, kwargs)
    arrays, clock = built.arrays(args, kwargs), _Clock()
    found = built.emitted.statements()
    if found is None:  # a single function of machine code
        name, statements = built.emitted.source.program.name, ["the program as machine code"]
        run = _timed_call(built.emitted.run, clock)
    else:
        source, others = found
        name, statements = source.program.name, source.body
        run = _timed_statements(source, others, clock)
    run, times = errstate(all="ignore")(run), []
    for _ in range(max(1, calls)):
        copies = [a.copy() for a in arrays]
        clock.ticks.clear()
        run(*copies)
        times.append([after - before for before, after in itertools.pairwise(clock.ticks)])
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    rows = [Row(*pair) for pair in zip(statements, medians, strict=True)]
    return Profile(name, rows, built.signature.remarks)


class _Clock:
    """Clock that records the time of each call, in seconds."""

    def __init__(self) -> None:
        self.ticks: list[float] = []

    def __call__(self) -> None:
        self.ticks.append(time.perf_counter())


def _timed_call(run: Callable[..., Any], clock: _Clock) -> Callable[..., None]:
    def timed(*arrays: Any) -> None:
        clock()
        run(*arrays)
        clock()

    return timed


def _timed_statements(source: Source, others: dict[str, Any], clock: _Clock) -> Callable[..., None]:
    """Return the function of a program with a clock reading between its statements."""
    memory = [*source.buffers, *source.large]
    names = [source.names[v] for v in (*source.program.inputs, *source.constants, *memory)]
    lines = [f"def timed({', '.join(names)}):", "    _tick()"]
    for statement in source.body:
        lines += [f"    {statement}", "    _tick()"]
    scope = scope_of(source) | others | {"_tick": clock}
    exec("\n".join(lines), scope)
    constants = [source.program.constants[v] for v in source.constants]
    scratch = [np.empty(v.shape, v.dtype) for v in memory]
    return lambda *arrays: scope["timed"](*arrays, *constants, *scratch)
