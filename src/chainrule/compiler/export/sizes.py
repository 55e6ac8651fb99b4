"""Symbolic sizes: which dimensions of the example may have other sizes, and the program for these.

The function is traced at several sizes. A dimension keeps its name if the programs differ in
numbers only, and all these numbers are formulas of sizes. It is pinned to the example's size if the
program changes otherwise, or if user code reads the size, as a branch does.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.node import AccumulateGrad
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import ndarray
from chainrule.compiler.export.body import Body, Dim, Symbolic, signature_of
from chainrule.compiler.export.formulas import Formulas, Mismatch, Point, Template, parts_of
from chainrule.compiler.export.module import evaluate
from chainrule.compiler.ir.program import Names, format_op
from chainrule.compiler.tracing.run import Traced, trace_call
from chainrule.compiler.tracing.sizes import Read, noting_reads
from chainrule.compiler.tracing.symbol import c_strides, dummy_array

Sizes = dict[Dim, int]

_NAMES = "nmklpqrsuvwabcdefgh"
"""Names of sizes, in the order in which they are given."""

_SMALL_SIZES = (0, 1, 2, 3, 5, 8)
"""Sizes at which the program is compared with the function's, to find the least one."""

_LARGE_SIZES = (131, 1021)
"""Further sizes at which the traces are compared."""

_MAX_TRACED_SIZE = 1 << 18
"""Largest number of elements of an argument in a trace at another size than the example's."""

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
        if all(_data(a).flags.c_contiguous for a in self.arrays):
            return self
        return Example(
            *self.call(
                lambda _, a: a if _data(a).flags.c_contiguous else _like(a, np.array(_data(a)))
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
            lambda number, array: np.resize(_data(array), self.shape(number, sizes)).astype(
                array.dtype
            )
        )


def _data(array: Any) -> Any:
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


def run(function: Any, args: Any, kwargs: Any) -> Run:
    """Trace a call."""
    with noting_reads() as reads:
        call = trace_call(function, args, kwargs)
    return Run(function, call, args, kwargs, _text(call), reads)


def _text(call: Traced) -> str:
    """Return the ops, writes and the result of a trace, not yet optimised, as text."""
    trace, names = call.trace, Names()
    for value in call.inputs:
        _ = names[value]
    lines = [format_op(op, names) for op in trace.ops]
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
        self.random = random.Random(0)
        self.avoid = {int(t) for t in parts_of(first.text)[1::2] if t.isdigit()}
        self.groups: dict[str, list[Dim]] = {}

    def try_run(self, sizes: Sizes) -> Run | None:
        """Return the trace at some sizes; None if the function refuses them."""
        shapes = [self.example.shape(i, sizes) for i in range(len(self.example.arrays))]
        if max(map(_product, shapes), default=0) > _MAX_TRACED_SIZE + self._largest:
            return None
        try:
            return run(self.function, *self.example.with_sizes(sizes))
        except Exception:  # of any kind: the function itself may check sizes
            return None

    @property
    def _largest(self) -> int:
        return max((int(np.prod(a.shape)) for a in self.example.arrays), default=0)

    def at(self, point: Point) -> Run | None:
        """Return the trace at a point."""
        return self.try_run(self.sizes(point))

    def sizes(self, point: Point) -> Sizes:
        """Return the sizes of dimensions at a point."""
        return {d: point[name] for name, dims in self.groups.items() for d in dims if name in point}

    # --- equal dimensions ---

    def find_groups(self) -> None:
        """Group the dimensions: those of a group can have another size, if they have the same."""
        found, rest = [], []
        for dim in self.example.sizes:
            (found if self._varies([dim]) else rest).append([dim])
        tied = [dim for (dim,) in rest]
        budget = _MAX_TIES
        for count in (2, 3):
            for dims in itertools.combinations(tied, count):
                same = len({self.example.sizes[d] for d in dims}) == 1
                if same and budget > 0 and all(d in tied for d in dims):
                    budget -= 1
                    if self._varies(dims):
                        found.append(list(dims))
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
        taken = set(self.avoid)
        choices: dict[str, list[int]] = {}
        for name in self.groups:
            base = max(self.base(name), 14)
            wanted = count + 3
            free = [n for n in range(base, 2 * base + 9 * wanted) if n not in taken]
            near = free[: max(3 * wanted, len([n for n in free if n < 1.3 * base]))]
            choices[name] = self.random.sample(near, wanted)
            taken.update(choices[name])
        first = {name: sizes[0] for name, sizes in choices.items()}
        found = [first]
        for name, sizes in choices.items():
            found += [first | {name: size} for size in sizes[1:4]]
        for i in range(4, count + 3):
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
                self._pin_what_is_read()
                try:
                    return self._symbolic()
                except Mismatch as mismatch:
                    import os, traceback
                    if os.environ.get("DBG"): traceback.print_exc()
                    self.drop(mismatch.names or list(self.groups))
        except _Pinned:
            pass
        return None

    def _pin_what_is_read(self) -> None:
        """Pin sizes that user code reads, and those that change the structure of the trace."""
        while self.groups:
            points = self.points(0)
            first = self.at(points[0])
            if first is None:
                self.drop(list(self.groups)[:1])
                continue
            guilty = []
            for point in points[1:]:
                name = next(n for n in point if point[n] != points[0][n])
                other = self.at(point)
                if other is None or _differ(first, other):
                    guilty.append(name)
            if not guilty:
                return
            import os
            if os.environ.get("DBG"): print("GUILTY", guilty, self.groups, first.reads[:5])
            self.drop(guilty)

    def _symbolic(self) -> Symbolic:
        points = self.points(8)
        runs = [self.at(point) for point in points]
        if any(r is None for r in runs):
            raise Mismatch
        traces = [r for r in runs if r is not None]
        formulas = Formulas(points)
        raw = Template([r.text for r in traces], formulas)
        for point, other in self._large(points[0]):
            if other is not None and not raw.equals(other.text, point):
                raise Mismatch([n for n in point if point[n] != points[0][n]])
        plain = [r.body(any_size=True) for r in traces]
        found = None
        if self.first.body().text() != self.first.body(any_size=True).text():
            with suppress(Mismatch):  # some may be above thresholds of sizes, some below
                found = self._assemble([r.body() for r in traces], formulas)
        found = found or self._assemble(plain, formulas)
        found.least.update(self._least(found, raw, points[0]))
        return found

    def _assemble(self, bodies: list[Body], formulas: Formulas) -> Symbolic:
        constants = _constants(bodies, formulas)
        template = Template([body.text(set(constants)) for body in bodies], formulas)
        names = {d: name for name, dims in self.groups.items() for d in dims}
        return Symbolic(bodies[0], names, {}, template.text(), constants)

    def _large(self, first: Point) -> Iterator[tuple[Point, Run | None]]:
        """Yield points with one large size each, and their traces where they are possible."""
        for name in self.groups:
            for size in _LARGE_SIZES:
                point = first | {name: size}
                yield point, self.at(point)

    # --- small sizes ---

    def _least(self, found: Symbolic, raw: Template, first: Point) -> dict[str, int]:
        """Return the least size of each name for which the program is the function's."""
        least = {}
        for name in self.groups:
            least[name] = max(_SMALL_SIZES) + 1
            for size in reversed(_SMALL_SIZES):
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
        if not equal or found.parameters or min(point.values()) < 2:
            same = self._same_results(found, traced, point)
        return equal if same is None else same

    def _same_results(self, found: Symbolic, traced: Run, point: Point) -> bool | None:
        """Whether the program gives at a point what the program for these sizes gives.

        None if the program for these sizes fails, as it may for the data of the example.
        """
        sizes = self.sizes(point)
        calls = [self.example.arrays_with(sizes) for _ in range(2)]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                one = evaluate(traced.body(), None, calls[0])
            except Exception:
                return None
            try:
                two = evaluate(found.body, found, calls[1])
            except Exception:
                return False
        return _same(one, two) and _same(calls[0], calls[1])


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
        path == other and _close(a, b)
        for (path, a), (other, b) in zip(ones, twos, strict=True)
    )


def _close(a: Any, b: Any) -> bool:
    if not hasattr(a, "dtype"):
        return type(a) is type(b) and (a == b or a != a)
    if np.shape(a) != np.shape(b) or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    rounding = float(np.finfo(a.dtype).eps) * 100
    scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0))
    return bool(np.allclose(a, b, rtol=rounding, atol=rounding * scale, equal_nan=True))


# --- constants that depend on sizes ---------------------------------------------------------------


def _constants(bodies: list[Body], formulas: Formulas) -> dict[str, str]:
    """Return the constants that differ between bodies, each with an expression for it."""
    names = {tuple(body.parameters) for body in bodies}
    if len(names) > 1:
        raise Mismatch
    found = {}
    for name in bodies[0].parameters:
        arrays = [body.parameters[name] for body in bodies]
        if any(a is not arrays[0] and not _same_bits(a, arrays[0]) for a in arrays):
            found[name] = _expression(arrays, formulas)
    return found


def _same_bits(a: Any, b: Any) -> bool:
    same_type = a.shape == b.shape and a.dtype == b.dtype
    return bool(same_type and a.tobytes() == b.tobytes())


def _expression(arrays: list[Any], formulas: Formulas) -> str:
    """Return the expression of an array: uniform, evenly spaced, or triangular."""
    shapes = list(zip(*(a.shape for a in arrays), strict=True))
    if len({(a.ndim, a.dtype) for a in arrays}) > 1 or any(a.size == 0 for a in arrays):
        raise Mismatch
    lengths = [formulas.find(list(s)) if len(set(s)) > 1 else str(s[0]) for s in shapes]
    shape = f"({', '.join(lengths)},)"
    dtype = f"np.{arrays[0].dtype.name}"
    if arrays[0].dtype.kind not in "biuf":
        raise Mismatch
    if all(_same_bits(a, np.full_like(a, a.flat[0])) for a in arrays):
        return f"np.full({shape}, {_number_text([a.flat[0] for a in arrays], formulas)}, {dtype})"
    if arrays[0].ndim == 1 and all(a.size > 1 for a in arrays):
        return _spaced(arrays, lengths[0], dtype, formulas)
    if arrays[0].ndim == 2:
        return _triangular(arrays, lengths, dtype, formulas)
    raise Mismatch


def _number_text(numbers: list[Any], formulas: Formulas) -> str:
    values = [n.item() for n in numbers]
    if len(set(map(repr, values))) == 1:
        special = {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}
        return special.get(repr(values[0]), repr(values[0]))
    if any(v < 0 for v in values):
        return f"-{formulas.find([-v for v in values])}"
    return formulas.find(values)


def _spaced(arrays: list[Any], length: str, dtype: str, formulas: Formulas) -> str:
    """Return the expression of evenly spaced numbers."""
    if arrays[0].dtype.kind == "b":
        raise Mismatch
    starts, steps = [a[0] for a in arrays], [(a[-1] - a[0]) / (a.size - 1) for a in arrays]
    for a, start, step in zip(arrays, starts, steps, strict=True):
        made = (start + np.arange(a.size) * float(step)).astype(a.dtype)
        if not _close(made, a):
            raise Mismatch
    if arrays[0].dtype.kind in "iu":
        steps = [np.asarray(round(float(s))) for s in steps]
    start, step = _number_text(starts, formulas), _number_text(steps, formulas)
    text = f"np.arange({length})"
    text = text if step in ("1", "1.0") else f"({text} * {step})"
    text = text if start in ("0", "0.0") else f"({start} + {text})"
    return f"{text}.astype({dtype})"


def _triangular(arrays: list[Any], lengths: list[str], dtype: str, formulas: Formulas) -> str:
    """Return the expression of matrices of two numbers: a triangle or diagonal, and the rest."""
    for form in ("np.tri({0}, {1}, {2}, bool)", "np.eye({0}, {1}, {2}, bool)"):
        for k in (0, -1, 1):
            made = [
                eval(form.format(*a.shape, k), {"np": np, "bool": bool}) for a in arrays
            ]
            inside = [a[m] for a, m in zip(arrays, made, strict=True)]
            outside = [a[~m] for a, m in zip(arrays, made, strict=True)]
            if all(_is_uniform(part) for part in (*inside, *outside)):
                one = _number_text([part[0] for part in inside], formulas)
                two = _number_text([part[0] for part in outside], formulas)
                mask = form.format(*lengths, k)
                return f"np.where({mask}, {one}, {two}).astype({dtype})"
    raise Mismatch


def _is_uniform(array: Any) -> bool:
    return bool(array.size and (array.tobytes() == np.full_like(array, array[0]).tobytes()))
