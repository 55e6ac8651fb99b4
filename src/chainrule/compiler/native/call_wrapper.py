"""The Python wrapper of a loop: allocation of arrays, and partition for threads."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Names, Value
from chainrule.compiler.native.complex_codegen import (
    REAL_DTYPES,
    element_code,
    scalar_or_complex,
)
from chainrule.compiler.native.loop_nest import LOOP_NAME, RESERVED, Address, Nest
from chainrule.compiler.native.scalar_codegen import CODES

PART_NS = 5_000
"""Nanoseconds of work that a thread takes at a time."""

MIN_PARALLEL_NS = 2 * PART_NS
"""Nanoseconds of work from which several threads pay, if they are spinning."""

JOIN_NS = 1_500
"""Additional nanoseconds for each result that is joined from partial ones."""

_MAX_PARTS = 256
"""Largest number of parts; large parts suit loops that are bound by memory."""

_MIN_PARTIAL_ROWS = 4
"""Number of partial results that is always allowed; more if they are an eighth of the work."""

_JOIN_UFUNCS = {"sum": "np.add", "max": "np.maximum", "min": "np.minimum"}
_IDENTITIES = {"sum": "0", "max": "-np.inf", "min": "np.inf"}


class _Result(NamedTuple):
    """An array that a loop fills: the source that creates it, and that of the return value."""

    name: str
    created: str
    returned: str
    is_partial: bool  # one row for each part of the work


class Arrays:
    """Assigns an array to each value of a loop, whose outermost loop threads may share.

    An output that overwrites an input has the input's array.
    """

    expression = staticmethod(scalar_or_complex)
    is_split = True

    def __init__(self, name: str, cost: float) -> None:
        self.name, self.cost = name, cost  # nanoseconds per element
        self.joined_sizes: list[int] = []  # sizes of reductions over the outermost loop
        self.over: dict[Value, Value] = {}  # outputs and the inputs that they overwrite
        self.names = Names(RESERVED | {name})
        self.inputs: dict[Value, str] = {}  # names of the arrays that are read
        self.codes: dict[str, str] = {}  # element type of each array
        self.parts: dict[str, str] = {}  # dtype of the parts of each complex array
        self.results: list[_Result] = []

    def address(self, value: Value) -> Address:
        """Return the array of an input."""
        if value not in self.inputs:
            name = self.names.another(f"{value.hint or self.names[value]}_in")
            self.inputs[value] = name
            self._set_type(name, value)
        return Address(self.inputs[value], "")

    def allocate(self, value: Value) -> Address:
        """Return the array of an output, and record how the wrapper creates it."""
        target = self.over.get(value)
        if target is not None:
            name = self.address(target).array
            created = f"over({self._out_item()}, {name})"
        else:
            name = self.names.another(f"{self.names[value]}_out")
            created = f"fresh({self._out_item()}, {value.shape}, {_dtype(value)})"
            self._set_type(name, value)
        self.results.append(_Result(name, created, name, is_partial=False))
        return Address(name, "")

    def allocate_reduction(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Address, list[str]]:
        """Return the array of a reduction, which the wrapper initialises."""
        out, shape, dtype = self._out_item(), value.shape, _dtype(value)
        name = returned = self.names.another(f"{self.names[value]}_out")
        self.codes[name] = CODES[value.dtype]
        is_split = not steps[0] and self.is_parallel(nest)
        start = f"part * u8({value.size})" if is_split else ""
        if is_split:
            returned = f"np.asarray({_JOIN_UFUNCS[kind]}.reduce({name}), {dtype}).reshape({shape})"
            out, shape = "None", (self._part_count(nest), value.size)
            if kind == "sum" and not any(steps) and CODES[value.dtype] == "f4":
                dtype, self.codes[name] = "np.float64", "f8"
        arguments = f"{out}, {shape}, {dtype}"
        created = f"filled({arguments}, {_IDENTITIES[kind]})" if fills else f"fresh({arguments})"
        self.results.append(_Result(name, created, returned, is_split))
        return Address(name, start), []

    def _set_type(self, name: str, value: Value) -> None:
        self.codes[name] = element_code(value.dtype)
        part = REAL_DTYPES.get(value.dtype)
        if part is not None:
            self.parts[name] = f"np.{part.name}"

    def _out_item(self) -> str:
        return f"out[{len(self.results)}]"

    def loop(self, nest: Nest) -> str:
        """Return the source of the loop, for LLVM."""
        step = ["step"] if self._has_partial_results() else []
        lines = [f"def {LOOP_NAME}({', '.join(['start', 'stop', *step, *self._flat()])}):"]
        lines += ["    part = u8(start) // u8(step)"] * len(step)
        lines += [f"    {line}" for line in nest.lines()]
        return "\n".join(lines) + "\n"

    def types(self, nest: Nest) -> tuple[str, ...]:
        """Return the types of the loop's arguments; parallel loops omit start and stop."""
        ends = () if self.is_parallel(nest) else ("n", "n")
        step = ("n",) if self._has_partial_results() else ()
        return (*ends, *step, *(self.codes[name] for name in self._flat()))

    def wrapper(self, nest: Nest) -> str:
        """Return the source of the function that Python calls, with arrays of any layout."""
        none = "None, " * len(self.results)
        lines = [f"def {self.name}({', '.join([*self.inputs.values(), f'out=({none})'])}):"]
        iterations, step = nest.sizes[0], self._part_iterations(nest)
        is_parallel = self.is_parallel(nest)
        sharing = f", the outermost in parallel parts of {step}" if is_parallel else ""
        lines.append(f"    # {' · '.join(map(str, nest.sizes))} iterations{sharing}")
        lines += [f"    {result.name} = {result.created}" for result in self.results]
        arguments = [f"{iterations}, {step}" if is_parallel else f"0, {iterations}"]
        arguments += [str(step)] if self._has_partial_results() else []
        for name in self._flat():
            view = f".view({self.parts[name]})" if name in self.parts else ""
            arguments.append(f"{name}.ravel(){view}")
        lines.append(f"    {LOOP_NAME}({', '.join(arguments)})")
        returns = [f"to_out(out[{i}], {result.returned})" for i, result in enumerate(self.results)]
        lines.append(f"    return {', '.join(returns)}")
        return "\n".join(lines) + "\n"

    def _flat(self) -> list[str]:
        results = [result.name for result in self.results]
        return list(dict.fromkeys([*self.inputs.values(), *results]))

    def _has_partial_results(self) -> bool:
        return any(result.is_partial for result in self.results)

    # --- partition of the work ---

    def is_parallel(self, nest: Nest) -> bool:
        """Return whether the work is divided into parts that threads share."""
        minimum = MIN_PARALLEL_NS + JOIN_NS * len(self.joined_sizes)
        return (
            self.cost * math.prod(nest.sizes) >= minimum
            and self._part_iterations(nest) < nest.sizes[0]
        )

    def _part_iterations(self, nest: Nest) -> int:
        """Return the number of iterations of the outermost loop in a part.

        It depends on the work only, so results do not depend on the number of threads.
        """
        iterations, inner = nest.sizes[0], math.prod(nest.sizes[1:])
        step = max(int(PART_NS / (self.cost * inner)), -(-iterations // _MAX_PARTS), 1)
        if self.joined_sizes:
            rows = max(iterations * inner // (8 * max(self.joined_sizes)), _MIN_PARTIAL_ROWS)
            step = max(step, -(-iterations // rows))
        return step

    def _part_count(self, nest: Nest) -> int:
        return -(-nest.sizes[0] // self._part_iterations(nest))


def _dtype(value: Value) -> str:
    return "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"


# --- runtime functions of the wrappers ------------------------------------------------------------


def fresh(out: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array for a result: the given one if it is contiguous, else a new one."""
    if out is not None and out.flags.c_contiguous:
        return out
    return np.empty(shape, dtype)


def filled(out: Any, shape: tuple[int, ...], dtype: Any, number: float) -> Any:
    """Return an array for a result, filled with a number."""
    array = fresh(out, shape, dtype)
    array.fill(number)
    return array


def over(out: Any, array: Any) -> Any:
    """Return the array that a loop updates in place: the given one, or a copy."""
    return array if out is array and array.flags.c_contiguous else np.array(array, order="C")


def to_out(out: Any, created: Any) -> Any:
    """Return a result, copied to the given array if there is one."""
    if out is None or out is created:
        return created
    out[...] = created
    return out


RUNTIME = {function.__name__: function for function in (fresh, filled, over, to_out)}
"""Functions that wrappers call by name."""
