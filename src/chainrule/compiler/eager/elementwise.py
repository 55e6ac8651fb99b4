"""Native loops of elementwise primitives, generated from their rules.

The forward function and the VJP rule of a primitive are traced on arrays of one shape, and the
trace becomes a single loop over memory that works for all sizes. There is one loop for each
combination of dtypes and of scalar operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import ndarray
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.native.fusion_groups import find_groups
from chainrule.compiler.native.kernel import PART, is_plain
from chainrule.compiler.native.loop_codegen import generate_loop
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.native.threads.tasks import Task
from chainrule.compiler.passes import optimize
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import TRACING
from chainrule.compiler.tracing.trace import Trace
from chainrule.interrupts import call_with
from chainrule.primitives.primitive import Plan, Primitive, Rule, forward_of

Array = Any
Settings = dict[str, Any] | None
Formula = Callable[[Any, Sequence[Array], Sequence[Any]], None]

MAX_LOOPS = 12
"""Number of loops made from one rule; NumPy computes settings beyond it, which vary a lot."""

_TRACED_SHAPE = (PART, 2)  # any large shape


class Elementwise:
    """Substitute of a primitive by a native loop, for arrays of `min_size` elements or more."""

    def __init__(self, primitive: Primitive, min_size: int) -> None:
        self.primitive = primitive
        self.min_size = min_size

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        min_size, multiple = self.min_size, self.primitive.multiple
        loops = _Loops(forward_of(self.primitive, SYMBOL_XP))

        def forward(x: Array, *others: Array, **settings: Any) -> Any:
            if x.size >= min_size:
                found = loops.run((x, *others), settings)
                if found is not None:
                    return tuple(found) if multiple else found[0]
            return plain(x, *others, **settings)

        def unary(x: Array, **settings: Any) -> Any:
            if x.size >= min_size and is_plain(x):
                found = loops.run_one(x, settings)
                if found is not None:
                    return found
            return plain(x, **settings)

        return unary if len(self.primitive.inputs) == 1 and not multiple else forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan."""
        min_size, needs, multiple = self.min_size, plan.needs, self.primitive.multiple

        def rule(g: Any, *saved: Any, **settings: Any) -> list[Any]:
            found = plain(SYMBOL_XP, {0: g} if multiple else g, saved, settings)
            return [x for x in found if x is not None]

        loops = _Loops(rule)

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> tuple[Any, ...]:
            first = g.get(0) if g.__class__ is dict and len(g) == 1 else g
            if first.__class__ is ndarray and first.size >= min_size:
                found = loops.run((first, *saved), settings)
                if found is not None:
                    parts = iter(found)
                    return tuple([next(parts) if need else None for need in needs])
            grads: tuple[Any, ...] = plain(xp, g, saved, settings)
            return grads

        return vjp


class Updates:
    """Native loops of formulas that write to arrays of one shape, such as steps of optimisers."""

    def __init__(self) -> None:
        self.known: dict[Any, _Update | None] = {}
        self.last: Any = (None, None, None, None, ())  # found again for the next parameter

    def __call__(
        self, key: Any, formula: Formula, arrays: tuple[Array, ...], numbers: Sequence[Any]
    ) -> bool:
        """Run `formula(xp, arrays, numbers)` as one loop, if there is one for these arrays.

        Numbers are arrays of shape (), or constants of the formula, which `key` identifies. Return
        whether it ran; otherwise nothing has changed.
        """
        first = arrays[0]
        dtype, shape = first.dtype, first.shape
        if not is_plain(first):
            return False
        for x in arrays:
            if x.dtype is not dtype or x.shape != shape or not x.flags.carray:
                return False
        last = self.last
        if numbers is not last[0] or dtype is not last[1] or key != last[2]:
            loop = self._loop(key, formula, arrays, numbers)
            scalars = [n for n in numbers if n.__class__ is ndarray]
            self.last = last = numbers, dtype, key, loop, scalars
        loop, scalars = last[3:]
        if loop is None:
            return False
        task, order, targets = loop
        inputs = [*arrays, *scalars]
        if order is not None:
            inputs = [inputs[i] for i in order]
        task(first.size, PART, *inputs, *[arrays[i] for i in targets])
        return True

    def _loop(self, key: Any, formula: Formula, arrays: Any, numbers: Any) -> _Update | None:
        kinds = [n.dtype.char if n.__class__ is ndarray else n for n in numbers]
        key = key, arrays[0].dtype.char, *kinds
        if key not in self.known:
            self.known[key] = _make_update(formula, arrays, numbers)
        return self.known[key]


class _Update(NamedTuple):
    """A loop that writes to some of its arrays."""

    task: Task
    order: tuple[int, ...] | None  # as of a kernel
    targets: list[int]  # the array that each output is written to


def _make_update(
    formula: Formula, arrays: tuple[Array, ...], numbers: Sequence[Any]
) -> _Update | None:
    """Return the loop of a formula; None if it isn't one."""
    targets: list[int] = []

    def written(*inputs: Any) -> list[Any]:
        symbols, scalars = inputs[: len(arrays)], iter(inputs[len(arrays) :])
        before = [symbol.value for symbol in symbols]
        given = [next(scalars) if n.__class__ is ndarray else n for n in numbers]
        formula(SYMBOL_XP, symbols, given)
        targets[:] = [i for i, s in enumerate(symbols) if s.value is not before[i]]
        return [symbols[i] for i in targets]

    scalars = [n for n in numbers if n.__class__ is ndarray]
    kernel = _make_kernel(written, (*arrays, *scalars), {})
    if kernel is None:
        return None
    results = kernel.results or tuple(range(len(targets)))
    targets = [targets[results.index(i)] for i in range(len(targets))]  # of each output
    if any(arrays[i].dtype != out for i, out in zip(targets, kernel.outs, strict=True)):
        return None
    return _Update(kernel.task, kernel.order, targets)


class _Kernel(NamedTuple):
    """A loop with its inputs and outputs."""

    task: Task
    order: tuple[int, ...] | None  # the operand of each input; None if they are in order
    outs: tuple[Any, ...]  # the dtypes of its output arrays
    results: tuple[int, ...] | None  # the output of each result; None if they are in order


class _Loops:
    """The loops of one function of arrays, made when first needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.known: dict[Any, _Kernel | None] = {}

    def run(self, arrays: tuple[Array, ...], settings: Settings) -> list[Array] | None:
        """Return the results for these arrays; None if there is no loop for them."""
        shape, key = None, ""
        for x in arrays:
            if not is_plain(x):
                return None
            if x.shape == shape:
                key += x.dtype.char
            elif x.ndim == 0:
                key += "0" + x.dtype.char
            elif shape is None:
                shape, size = x.shape, x.size
                key += x.dtype.char
            else:
                return None
        if shape is None:
            return None
        kernel = self._kernel(key, arrays, settings)
        if kernel is None:
            return None
        task, order, outs, results = kernel
        if order is not None:
            arrays = tuple([arrays[i] for i in order])
        if len(outs) == 1:
            made = [np.empty(shape, outs[0])]
        else:
            made = [np.empty(shape, dtype) for dtype in outs]
        task(size, PART, *arrays, *made)
        return made if results is None else [made[i] for i in results]

    def run_one(self, x: Array, settings: Settings) -> Array | None:
        """Return the result for a single array that `is_plain`: as `run`, with fewer checks."""
        kernel = self._kernel(x.dtype.char, (x,), settings)
        if kernel is None:
            return None
        out = np.empty(x.shape, kernel.outs[0])
        kernel.task(x.size, PART, x, out)
        return out

    def _kernel(self, key: Any, arrays: tuple[Array, ...], settings: Settings) -> _Kernel | None:
        if settings:
            values = settings.values()
            # 0.0 and -0.0 compare equal, but need different loops.
            key = (key, str(settings)) if 0 in values else (key, *values)
        try:
            return self.known[key]
        except KeyError:
            if len(self.known) >= MAX_LOOPS:
                return None
            kernel = self.known[key] = _make_kernel(self.function, arrays, settings or {})
            return kernel


def _make_kernel(
    function: Callable[..., Any], arrays: tuple[Array, ...], settings: dict[str, Any]
) -> _Kernel | None:
    """Return the loop of a function over arrays of one shape and scalars; None if it isn't one."""
    if any(x.dtype not in CODES for x in arrays):
        return None
    program = _program(function, arrays, settings)
    outputs = set(program.outputs)
    if len(outputs) < len(program.outputs) or outputs & set(program.inputs) or program.constants:
        return None
    accesses = Accesses(program, {})
    groups = find_groups(program, accesses)
    if len(groups) != 1 or groups[0].shape != _TRACED_SHAPE:
        return None
    loop = generate_loop(groups[0], "kernel", accesses, outputs, {})
    if any(out.shape != _TRACED_SHAPE for out in loop.outs):
        return None
    kinds = tuple([CODES[value.dtype] for value in (*loop.inputs, *loop.outs)])
    order = tuple([program.inputs.index(value) for value in loop.inputs])
    results = tuple([loop.outs.index(value) for value in program.outputs])
    return _Kernel(
        Task(loop.text, kinds),
        None if order == tuple(range(len(arrays))) else order,
        tuple([value.dtype for value in loop.outs]),
        None if results == tuple(range(len(loop.outs))) else results,
    )


def _program(
    function: Callable[..., Any], arrays: tuple[Array, ...], settings: dict[str, Any]
) -> Program:
    """Return the program of a function for large arrays and scalars of these dtypes."""
    trace = Trace("kernel")
    inputs = trace.to_symbols(
        [np.empty(() if x.ndim == 0 else _TRACED_SHAPE, x.dtype) for x in arrays]
    )

    def run() -> list[Value]:
        found = function(*inputs, **settings)
        results = found if isinstance(found, tuple | list) else [found]
        return [symbol.value for symbol in results]

    outputs = call_with({TRACING: trace}, run)
    values = [value for _, _, value in trace.arrays]
    return optimize(Program(trace.name, values, trace.constants, trace.ops, outputs, []))
