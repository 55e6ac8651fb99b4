"""Symbolic sizes: which dimensions of the example may have other sizes, and the program for these.

The function is traced at several sizes. A dimension keeps its name if the programs differ in
numbers only, and all these numbers are formulas of sizes. It is pinned to the example's size if the
program changes otherwise, or if user code reads the size, as a branch does.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import ndarray
from chainrule.compiler.export.array_formulas import close, varying_constants
from chainrule.compiler.export.body import Body, Dim, Symbolic, signature_of
from chainrule.compiler.export.formulas import Formulas, Mismatch, Point, Template, parts_of
from chainrule.compiler.export.module import evaluate
from chainrule.compiler.ir.program import Names, every_op, format_op
from chainrule.compiler.tracing.run import Traced, trace_call
from chainrule.compiler.tracing.size_reads import LIMIT, READS, Read, TooLargeError
from chainrule.compiler.tracing.symbol import c_strides, dummy_array
from chainrule.interrupts import call_with, without_warnings

Sizes = dict[Dim, int]

_NAMES = "nmklpqrsuvwabcdefgh"
"""Names of sizes, in the order in which they are given."""

_SMALL_SIZES = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)
"""Sizes below the traced ones at which programs are compared, to find the least right one."""

_LARGE_SIZES = (131, 1021)
"""Further sizes at which the traces are compared."""

_MAX_TRACED_SIZE = 1 << 20
"""Largest number of elements of an array in a trace at another size than the example's."""

_MIN_POINTS = 7
"""Least number of points that determine formulas."""

_MAX_TIES = 120
"""Number of traces after which dimensions that must be equal are no longer told apart."""


class Example:
    """The arguments of an example call, and the same with arrays of other shapes."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        arrays: dict[int, Any] = {}
        for _, leaf in pytree.leaves((args, kwargs)):
            if isinstance(leaf, Tensor | ndarray):
                arrays.setdefault(id(leaf), leaf)
        self.args, self.kwargs = args, kwargs
        self.arrays = list(arrays.values())
        self.numbers = {key: number for number, key in enumerate(arrays)}
        self.sizes: Sizes = {
            (number, axis): size
            for number, array in enumerate(self.arrays)
            for axis, size in enumerate(array.shape)
        }

    def contiguous(self) -> Example:
        """Return the example with arrays in C order, as exported functions get them."""
        if all(data_of(a).flags.c_contiguous for a in self.arrays):
            return self
        return Example(
            *self.call(
                lambda _, a: a if data_of(a).flags.c_contiguous else _like(a, np.array(data_of(a)))
            )
        )

    @property
    def can_vary(self) -> bool:
        """Whether the arrays can be replaced by others of other shapes."""
        return all(
            type(a) is ndarray or (type(a) is Tensor and a._grad is None) for a in self.arrays
        )

    def call(self, change: Callable[[int, Any], Any]) -> tuple[Any, Any]:
        """Return the arguments with `change(number, array)` in place of each array."""
        made: dict[int, Any] = {}

        def leaf_of(leaf: Any) -> Any:
            number = self.numbers.get(id(leaf))
            if number is None:
                return leaf
            if number not in made:
                made[number] = change(number, leaf)
            return made[number]

        args, kwargs = pytree.map_leaves((self.args, self.kwargs), leaf_of)
        return args, kwargs

    def shape(self, number: int, sizes: Sizes) -> tuple[int, ...]:
        """Return the shape of an array for some sizes; other dimensions are the example's."""
        axes = range(self.arrays[number].ndim)
        return tuple([sizes.get((number, i), self.sizes[number, i]) for i in axes])

    def with_sizes(self, sizes: Sizes) -> tuple[Any, Any]:
        """Return the arguments with arrays of other sizes, which take no memory."""

        def resized(number: int, array: Any) -> Any:
            shape = self.shape(number, sizes)
            dummy = dummy_array(shape, array.dtype, c_strides(shape, array.dtype.itemsize))
            return _like(array, dummy)

        return self.call(resized)

    def arrays_with(self, sizes: Sizes) -> tuple[Any, Any]:
        """Return the arguments with NumPy arrays of other sizes that repeat the example's data."""
        return self.call(
            lambda number, array: np.resize(data_of(array), self.shape(number, sizes)).astype(
                array.dtype
            )
        )


def data_of(array: Any) -> Any:
    """Return the NumPy array of an argument."""
    return array.detach().numpy() if isinstance(array, Tensor) else array


def _like(array: Any, dummy: Any) -> Any:
    """Return a tensor of a dummy array that requires grad as another does; or the dummy."""
    if not isinstance(array, Tensor):
        return dummy
    tensor = make(dummy, None)
    return tensor.requires_grad_() if array.requires_grad else tensor


class Run(NamedTuple):
    """A trace at some sizes, its text, and what user code read of the sizes."""

    function: Any
    call: Traced
    args: Any
    kwargs: Any
    text: str
    reads: list[Read]

    def body(self, any_size: bool = False) -> Body:
        """Return the body of the exported function for these sizes."""
        signature = signature_of(self.function)
        return Body(self.call, self.args, self.kwargs, signature, any_size)


def run(function: Any, args: Any, kwargs: Any, limit: float = math.inf) -> Run:
    """Trace a call, with arrays of at most so many elements."""
    reads: list[Read] = []
    call = call_with({READS: reads, LIMIT: limit}, trace_call, function, args, kwargs)
    return Run(function, call, args, kwargs, _text(call), reads)


def _text(call: Traced) -> str:
    """Return the ops, writes and the result of a trace, not yet optimised, as text."""
    trace, names = call.trace, Names()
    for value in call.inputs:
        _ = names[value]
    lines = [format_op(op, names) for op in trace.ops]
    for value, array in trace.constants.items():
        shown = array.tolist() if array.size == 1 else ""
        lines.append(f"{names[value]} {value.type_text} {shown}")
    for op in trace.ops:
        lines += [line for region in op.regions for line in region.format_body(names)]
    lines += [f"{names[target]} = {names[value]}" for target, value in call.writes]
    for path, leaf in pytree.leaves(call.result):
        kind = type(leaf)
        lines.append(f"{path} {kind.__name__} {leaf!r}" if _is_plain(leaf) else f"{path} {kind}")
    return "\n".join(lines)


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, int | float | complex | str | bytes | None)


class _Pinned(Exception):
    """No dimension may have another size."""


class Search:
    """Find the dimensions of a function's arguments that may have other sizes."""

    def __init__(self, function: Any, example: Example, first: Run) -> None:
        self.function, self.example, self.first = function, example, first
        self.avoid = {int(t) for t in parts_of(first.text)[1::2] if t.isdigit()}
        self.groups: dict[str, list[Dim]] = {}
        values = [v for op in every_op(first.call.trace.ops) for v in op.outs]
        self.too_large = False  # whether the last trace ended for that reason
        self.limit = max([_MAX_TRACED_SIZE, *(4 * v.size for v in values)])

    def try_run(self, sizes: Sizes) -> Run | None:
        """Return the trace at some sizes; None if the function refuses them."""
        self.too_large = False
        try:
            example = self.example.with_sizes(sizes)
            return without_warnings(run, self.function, *example, self.limit)
        except TooLargeError:
            self.too_large = True
            return None
        except Exception:  # of any kind: the function itself may check sizes
            return None

    def at(self, point: Point) -> Run | None:
        """Return the trace at a point."""
        return self.try_run(self.sizes(point))

    def sizes(self, point: Point) -> Sizes:
        """Return the sizes of dimensions at a point."""
        return {d: point[name] for name, dims in self.groups.items() for d in dims if name in point}

    # --- equal dimensions ---

    def find_groups(self) -> None:
        """Group the dimensions: those of a group can have another size, if they have the same."""
        found: list[list[Dim]] = []
        rest: list[list[Dim]] = []
        for dim in self.example.sizes:
            (found if self._varies([dim]) else rest).append([dim])
        tied = [dim for (dim,) in rest]
        budget = _MAX_TIES
        for count in (2, 3):
            for group in itertools.combinations(tied, count):
                dims = list(group)
                same = len({self.example.sizes[d] for d in dims}) == 1
                if same and budget > 0 and all(d in tied for d in dims):
                    budget -= 1
                    if self._varies(dims):
                        found.append(dims)
                        tied = [d for d in tied if d not in dims]
        for size in dict.fromkeys(self.example.sizes[d] for d in tied):
            dims = [d for d in tied if self.example.sizes[d] == size]
            if len(dims) > 3 and self._varies(dims):
                found.append(dims)
        found.sort()
        names = iter(_names(self.first))
        self.groups = {next(names): dims for dims in found}

    def _varies(self, dims: Iterable[Dim]) -> bool:
        size = self._other_size(self.example.sizes[next(iter(dims))])
        return self.try_run(dict.fromkeys(dims, size)) is not None

    def _other_size(self, size: int) -> int:
        base = max(size, 12)
        return next(n for n in itertools.count(base + 1) if n not in self.avoid)

    # --- points ---

    def base(self, name: str) -> int:
        """Return the example's size of a name."""
        return self.example.sizes[self.groups[name][0]]

    def points(self, count: int) -> list[Point]:
        """Return distinct points: a first one, some that differ in one size, then any others."""
        taken, generator = set(self.avoid), random.Random(0)
        choices: dict[str, list[int]] = {}
        for name in self.groups:
            base = max(self.base(name), 14)
            wanted = count + 2
            free = [n for n in range(base, 2 * base + 9 * wanted) if n not in taken]
            near = free[: max(wanted + 4, len([n for n in free if n < 1.3 * base]))]
            choices[name] = generator.sample(near, wanted)
            taken.update(choices[name])
        first = {name: sizes[0] for name, sizes in choices.items()}
        found = [first]
        for name, sizes in choices.items():
            found += [first | {name: size} for size in sizes[1:3]]
        for i in range(3, count + 2):
            found.append({name: sizes[i] for name, sizes in choices.items()})
        return found

    def drop(self, names: Iterable[str]) -> None:
        """Pin names to the sizes of the example."""
        before = len(self.groups)
        for name in names:
            self.groups.pop(name, None)
        if len(self.groups) == before or not self.groups:
            raise _Pinned

    # --- programs ---

    def find(self) -> Symbolic | None:
        """Return the function with symbolic sizes; None if all dimensions are pinned."""
        if not self.example.can_vary or not self.example.sizes:
            return None
        again = self.try_run({})
        if again is None or again.text != self.first.text or again.reads != self.first.reads:
            return None  # each call changes what the next one does
        self.find_groups()
        try:
            while self.groups:
                try:
                    return self._symbolic()
                except Mismatch as mismatch:
                    self.drop(mismatch.names or list(self.groups)[:1])
        except _Pinned:
            pass
        return None

    def _symbolic(self) -> Symbolic:
        wanted = self.points(7)
        large = self._large_points(wanted[0])
        points: list[Point] = []
        traces: list[Run] = []
        for point in [*wanted, *large]:
            traced = self.at(point)
            if traced is None and self.too_large and point in large:
                continue
            if traced is None or _differ(traces[0] if traces else traced, traced):
                raise Mismatch(self._to_blame(wanted[0], traces, point))
            points.append(point)
            traces.append(traced)
        formulas = Formulas(points)
        raw = Template([r.text for r in traces], formulas)
        found = self._assemble(points, traces)
        found.least.update(self._least(found, raw, points))
        return found

    def _to_blame(self, first: Point, traces: list[Run], point: Point) -> list[str]:
        """Return the names whose change makes another program: alone, or else all together."""
        changed = [name for name in point if point[name] != first[name]]
        if len(changed) > 1 and traces:
            alone = {name: self.at(first | {name: point[name]}) for name in changed}
            found = [n for n, r in alone.items() if r is None or _differ(traces[0], r)]
            return found or changed
        return changed

    def _assemble(self, points: list[Point], traces: list[Run]) -> Symbolic:
        """Return the body with formulas.

        Passes choose among forms of a program by the sizes: the form for the example is taken if
        enough points have it, else the most frequent one. Each form is right for all sizes.
        """
        plain, planned = self.first.body(any_size=True), self.first.body()
        for any_size in (True,) if planned.text() == plain.text() else (False, True):
            variants = [r.body(any_size) for r in traces]
            forms = [_form(body) for body in variants]
            most_frequent = max(forms, key=forms.count)
            for form in dict.fromkeys([_form(plain if any_size else planned), most_frequent]):
                chosen = [i for i, other in enumerate(forms) if other == form]
                if len(chosen) >= _MIN_POINTS:
                    with suppress(Mismatch):
                        return self._with_formulas(
                            [variants[i] for i in chosen], Formulas([points[i] for i in chosen])
                        )
        raise Mismatch

    def _with_formulas(self, variants: list[Body], formulas: Formulas) -> Symbolic:
        constants = varying_constants([body.parameters for body in variants], formulas)
        template = Template([body.text(set(constants)) for body in variants], formulas)
        names = {d: name for name, dims in self.groups.items() for d in dims}
        return Symbolic(variants[0], names, {}, template.text(), constants)

    def _large_points(self, first: Point) -> list[Point]:
        """Return points with one large size each, where arrays are not too large."""
        numbers = range(len(self.example.arrays))
        found = [first | {name: size} for name in self.groups for size in _LARGE_SIZES]
        return [
            point
            for point in found
            if all(
                _product(self.example.shape(i, self.sizes(point))) <= _MAX_TRACED_SIZE
                for i in numbers
            )
        ]

    # --- small sizes ---

    def _least(self, found: Symbolic, raw: Template, points: list[Point]) -> dict[str, int]:
        """Return the least size of each name for which the program is the function's."""
        least = {}
        first = points[0]
        lowest = {name: min(point[name] for point in points) for name in first}
        for name in self.groups:
            least[name] = min(lowest[name], self.base(name))
            for size in [n for n in reversed(_SMALL_SIZES) if n < least[name]]:
                if not self._is_right(found, raw, first | {name: size}):
                    break
                least[name] = size
        low = {name: max(size, 1) for name, size in least.items()}
        for point in (dict.fromkeys(first, max(14, *least.values())), low):
            if not self._is_right(found, raw, point):
                raise Mismatch
        wrong = [n for n in self.groups if self.base(n) < least[n]]
        if wrong:
            raise Mismatch(wrong)
        if not self._is_right(found, raw, {name: self.base(name) for name in self.groups}):
            raise Mismatch
        return least

    def _is_right(self, found: Symbolic, raw: Template, point: Point) -> bool:
        """Whether the program is the function's at a point: its trace, or else its results."""
        traced = self.at(point)
        if traced is None:
            return False
        same = None
        equal = raw.equals(traced.text, point)
        shown = all(a.size == 1 for a in traced.call.trace.constants.values())
        if not equal or not shown or min(point.values()) < 2:
            same = self._same_results(found, traced, point)
        return equal if same is None else same

    def _same_results(self, found: Symbolic, traced: Run, point: Point) -> bool | None:
        """Whether the program gives at a point what the program for these sizes gives.

        None if the program for these sizes fails, as it may for the data of the example.
        """
        sizes = self.sizes(point)
        calls = [self.example.arrays_with(sizes) for _ in range(2)]
        try:
            one = without_warnings(evaluate, traced.body(), None, calls[0])
        except Exception:
            return None
        try:
            two = without_warnings(evaluate, found.body, found, calls[1])
        except Exception:
            return False
        return _same(one, two) and _same(calls[0], calls[1])


def _form(body: Body) -> Any:
    """Return what variants have in common that differ in numbers only."""
    constants = {name for name in body.parameters if name not in body.captured}
    return tuple(body.parameters), tuple(parts_of(body.text(constants))[::2])


def _product(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=float))


def _names(first: Run) -> Iterator[str]:
    """Yield names of sizes that the program doesn't use."""
    taken = first.body().names_in_use
    for suffix in itertools.chain([""], itertools.count(2)):
        yield from (f"{name}{suffix}" for name in _NAMES if f"{name}{suffix}" not in taken)


def _differ(first: Run, other: Run) -> bool:
    """Whether traces differ otherwise than in numbers, or user code read other sizes."""
    if parts_of(first.text)[::2] != parts_of(other.text)[::2]:
        return True
    if len(first.reads) != len(other.reads):
        return True
    for (kind, numbers), (other_kind, others) in zip(first.reads, other.reads, strict=True):
        equal = len(numbers) == 2 == len(set(numbers)) + len(set(others))
        if kind != other_kind or (numbers != others and not equal):
            return True
    return False


def _same(one: Any, two: Any) -> bool:
    """Whether trees of results are equal up to rounding."""
    ones, twos = list(pytree.leaves(one)), list(pytree.leaves(two))
    return len(ones) == len(twos) and all(
        path == other and close(a, b) for (path, a), (other, b) in zip(ones, twos, strict=True)
    )
