"""`derivation`: the derivative of what was recorded, step by step, as text, LaTeX and source."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chainrule.autograd.location import Location, own_frame
from chainrule.autograd.node import AccumulateGrad
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import scope_of
from chainrule.compiler.expansion import expanded
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.passes import optimize
from chainrule.compiler.recorded_graph import evaluate
from chainrule.errors import ArgumentError, AutogradError
from chainrule.visualization.backward_trace import BackwardTrace, End, Step, value_of
from chainrule.visualization.formulas_text import (
    GRADIENT,
    Formula,
    derivative,
    latex,
    shown,
    symbol,
)
from chainrule.visualization.formulas_text import lines as lines_of_formula
from chainrule.visualization.naming import Naming
from chainrule.visualization.recording import (
    ALL_EXAMPLES,
    ONE_EXAMPLE,
    Recording,
    Vertex,
    read,
)


def derivation(t: Tensor, x: Tensor, *, values: bool = False, names: Any = None) -> Derivation:
    """Return the derivative of a recorded tensor by another, step by step with its rules.

    Parameters
    ----------
    t : Tensor
        A result that was recorded. If it has several elements, the derivative of their sum.
    x : Tensor
        A leaf, or an intermediate result that `t` was computed from.
    values : bool, default False
        Whether the text has the numbers of each step.
    names : dict of Tensors and Modules by name, or Module, optional
        Names for the text, as for `graph`; else those of the caller's variables.

    Returns
    -------
    Derivation
        ``print`` shows each recorded operation, then the chain rule from `t` back to `x`: the rule
        of each operation, and the gradient that it gives. Notebooks show LaTeX. Its `source` is
        the gradient as a function of NumPy arrays; `arguments` are the arrays to call it with,
        and `value` is the gradient.

    Raises
    ------
    AutogradError
        If `t` does not depend on `x`, or a step has no formula, such as the solution of an
        equation.
    FreedGraphError
        If a backward pass has freed the graph.
    ArgumentError
        If `t` or `x` is no Tensor.

    Notes
    -----
    The formulas are not a second list of rules: the rules of the backward pass run on symbols, and
    what they do is written down. Compiled functions show the operations that they were traced
    from, loops each of their steps, and `vmap` the operations of one example; numbers are those of
    all examples, along the first axis.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(2.0, requires_grad=True)
    >>> y = (x * x).sin()
    >>> d = cr.derivation(y, x, names={"x": x, "y": y})
    >>> for rule in d.rules:
    ...     print(rule)
    ∂/∂x sin(x) = cos(x)
    ∂/∂x (x * y) = y
    ∂/∂y (x * y) = x
    >>> d.value
    tensor(-2.6146)
    """
    for name, value in (("t", t), ("x", x)):
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"derivation: {name} must be a Tensor, got {type(value).__name__}: write "
                "cr.derivation(loss, w)"
            )
        if value._edge is None:
            raise AutogradError(
                f"derivation: {name} has no history: nothing was recorded for it. cr.why({name}) "
                "tells the reason"
            )
    naming = Naming(names, own_frame(sys._getframe(1)))
    (t, x), replaced = expanded([t, x])
    for node, outputs in replaced.items():
        naming.rename(node, outputs)
    recording = read([t], naming, "derivation")
    return Derivation(recording, t, x, values)


@dataclass(frozen=True)
class DerivationStep:
    """One step of the chain rule: what one operation gives to the gradients of its operands."""

    operation: str
    """The operation, such as ``t2 = sin(t1)``."""
    rules: tuple[str, ...]
    """The partial derivatives of an elementwise operation, such as ``∂/∂x sin(x) = cos(x)``."""
    formulas: tuple[tuple[str, str], ...]
    """The name of each operand, and the formula of what it gets."""
    values: tuple[Tensor, ...]
    """The numbers of the formulas."""
    location: Location | None


class Derivation:
    """A derivative step by step, made by `derivation`."""

    def __init__(self, recording: Recording, t: Tensor, x: Tensor, with_values: bool) -> None:
        self._with_values = with_values
        self._traced = BackwardTrace(recording, t, x)
        self._names = self._forward_names()
        self.root = self._traced.name(self._traced.root)
        self.variable = self._traced.name(self._traced.target)

    # --- numbers ---

    @cached_property
    def _arrays(self) -> dict[Value, Any]:
        traced = self._traced
        arrays: dict[Value, Any] = {**traced.trace.constants, **traced.arrays}
        seed = traced.seed
        arrays[seed] = np.ones(seed.shape, seed.dtype)
        evaluate(traced.trace.ops, arrays)
        return arrays

    @property
    def value(self) -> Tensor:
        """The gradient."""
        return make(np.asarray(self._arrays[self._traced.gradients[self._traced.target]]), None)

    # --- steps ---

    def _forward_names(self) -> dict[Value, str]:
        traced = self._traced
        names = {value: value.hint for value in traced.inputs}
        names.update((value_of(found), traced.name(end)) for end, found in traced.results.items())
        return names

    def _formula(self, step: Step, value: Value) -> str:
        """Return the formula of what an operand gets, of the gradient of the result."""
        traced, names = self._traced, dict(self._names)
        for index in range(step.node.output_count):
            if (step.node, index) in traced.gradients:
                name = f"{GRADIENT}{traced.name((step.node, index))}"
                names[traced.gradients[step.node, index]] = name
        return Formula(step.ops, names, traced.trace.constants).of(value)

    @cached_property
    def steps(self) -> list[DerivationStep]:
        """The steps from `t` back to `x`."""
        return [self._step(step) for step in self._traced.steps]

    def _step(self, step: Step) -> DerivationStep:
        formulas = [(self._traced.name(p.end), self._formula(step, p.value)) for p in step.parts]
        values = [make(np.asarray(self._arrays[p.value]), None) for p in step.parts]
        return DerivationStep(
            self._operation(step.node),
            tuple(self._rules(step)),
            tuple(formulas),
            tuple(values),
            step.vertex.location,
        )

    def _operation(self, node: Any) -> str:
        vertex = self._traced.recording.nodes[node]
        name = self._traced.name((node, 0))
        if node.output_count > 1:
            name = ", ".join(self._traced.name((node, i)) for i in range(node.output_count))
        return f"{name} = {call_text(vertex, [self._operand(o) for o in vertex.operands])}"

    def _operand(self, operand: Any) -> str:
        if isinstance(operand, str):
            return operand.partition(" (")[0]
        name = self._traced._names[operand.vertex]
        several = len(operand.vertex.types) > 1
        return f"{name}_{operand.output}" if several else name

    def _rules(self, step: Step) -> Iterator[str]:
        if not isinstance(step.node, PrimitiveNode):
            return
        inputs = list(step.node.plan.primitive.inputs)
        whole = call_text(step.vertex, inputs)
        for name, ops, value in step.partials:
            known = {v: v.hint for op in ops for v in op.inputs if v.hint}
            known[value] = value.hint or ""
            if value in _made(ops):
                del known[value]
            known = {v: (f"({whole})" if n == "out" else n) for v, n in known.items() if n}
            found = Formula(ops, known, self._traced.trace.constants).of(value)
            shape = whole if re.fullmatch(r"\w+\([^()]*\)", whole) else f"({whole})"
            yield f"∂/∂{name} {shape} = {_unwrapped(found, whole)}"

    @property
    def rules(self) -> list[str]:
        """The partial derivatives of the elementwise operations, each once."""
        return list(dict.fromkeys(rule for step in self.steps for rule in step.rules))

    # --- text ---

    def __str__(self) -> str:
        traced, root = self._traced, self.root
        lines = [f"The derivative of {root} by {self.variable}", "", "Recorded:"]
        used = [node for node in traced.nodes if not isinstance(node, AccumulateGrad)]
        table = [(self._operation(n), traced.recording.nodes[n]) for n in used]
        width = min(max(len(text) for text, _ in table), 60) if table else 0
        for text, vertex in table:
            lines.append(f"  {text:<{width}}  {vertex.type_text:<18} {_line(vertex.location)}")
            if self._with_values:
                lines.append(f"      = {self._number(vertex)}")
        lines += ["", "Chain rule, from the end to the beginning:", f"  ∂{root}/∂{root} = 1"]
        for step, raw in zip(self.steps, traced.steps, strict=True):
            lines += ["", f"  {step.operation}"]
            for rule in step.rules:
                lines += _hanging("      ", rule)
            rows = zip(raw.parts, step.formulas, step.values, strict=True)
            for part, (name, formula), number in rows:
                via = f"  [via {part.label}]" if part.label else ""
                lines += _hanging("    ", f"∂{root}/∂{name}{via} = {shown(formula, root)}")
                if self._with_values:
                    lines.append(f"      = {_numbers(number)}")
            for end in self._complete_sums(raw):
                terms = " + ".join(f"[via {part.label}]" for part in traced.sums[end])
                lines.append(f"    ∂{root}/∂{traced.name(end)} = {terms}")
                if self._with_values:
                    total = np.asarray(self._arrays[traced.gradients[end]])
                    lines.append(f"      = {_numbers(make(total, None))}")
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _complete_sums(self, step: Step) -> list[End]:
        """Return the operands whose gradients are sums that are complete after a step."""
        ends = dict.fromkeys(part.end for part in step.parts if part.label)
        return [end for end in ends if self._traced.sums[end][-1] in step.parts]

    def _number(self, vertex: Vertex) -> str:
        node = next(n for n, v in self._traced.recording.nodes.items() if v is vertex)
        found = self._traced.results.get((node, 0))
        array = None if found is None else self._arrays.get(value_of(found))
        return "not kept" if array is None else _numbers(make(np.asarray(array), None))

    def _repr_latex_(self) -> str:
        rows = [rf"{derivative(self.root, self.root)} &= 1"]
        for step, raw in zip(self.steps, self._traced.steps, strict=True):
            for part, (name, formula) in zip(raw.parts, step.formulas, strict=True):
                left = self._latex_part(name, part.label)
                rows.append(f"{left} &= {latex(formula, self.root)}")
            for end in self._complete_sums(raw):
                name = self._traced.name(end)
                parts = self._traced.sums[end]
                terms = " + ".join(self._latex_part(name, part.label) for part in parts)
                rows.append(f"{derivative(self.root, name)} &= {terms}")
        body = " \\\\\n".join(rows)
        return f"$$\\begin{{aligned}}\n{body}\n\\end{{aligned}}$$"

    def _latex_part(self, name: str, label: str) -> str:
        found = derivative(self.root, name)
        via, _, number = label.partition(" ")
        return rf"\left.{found}\right|_{{{symbol(via)}{number}}}" if label else found

    # --- source ---

    @cached_property
    def _source(self) -> Source:
        traced = self._traced
        trace = traced.trace
        seed = traced.seed
        constants = {**trace.constants, seed: np.ones(seed.shape, seed.dtype)}
        outputs = [traced.gradients[traced.target]]
        program = Program("gradient", list(traced.inputs), constants, list(trace.ops), outputs, [])
        program = optimize(program)
        used = {v for op in program.ops for v in op.inputs} | set(program.outputs)
        program.inputs = [v for v in program.inputs if v in used]
        return Source(program, any_size=True)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arrays to call the function of `source` with, by name."""
        source = self._source
        values = [*source.program.inputs, *source.constants]
        known = {**source.program.constants, **self._arrays}
        return {source.names[v]: known[v] for v in values}

    @property
    def source(self) -> str:
        """The gradient as Python source: a function of NumPy arrays, for these shapes and dtypes.

        Where NumPy has no function for a step, it is imported from chainrule.

        Raises
        ------
        AutogradError
            If a setting of an operation has no literal.
        """
        held = [name for name, found in self._source.objects.items() if not callable(found)]
        if held:
            raise AutogradError(
                f"derivation: the source would need {', '.join(held)}, settings of an operation "
                "that can't be written as literals. Take `value`, or the steps"
            )
        text, scope = self._source.text, scope_of(self._source)
        lines = ["import numpy as np"]
        used = [name for name in scope if name != "np" and re.search(rf"\b{name}\b", text)]
        for name in used:
            found = scope[name]
            module = getattr(found, "__module__", None)
            if name in ("kernels", "scipy"):
                lines.append(f"from chainrule.backend import numpy_xp as {name}")
            elif module is not None and re.search(rf"\b{name}\(", text):
                renamed = "" if found.__name__ == name else f" as {name}"
                lines.append(f"from {module} import {found.__name__}{renamed}")
        return "\n".join([*lines, "", "", text])


def _made(ops: Any) -> set[Value]:
    return {v for op in ops for v in op.outs}


def _unwrapped(text: str, whole: str) -> str:
    """Return a formula without parentheses around it, or around a call within it."""
    if re.fullmatch(r"\w+\([^()]*\)", whole):
        return text.replace(f"({whole})", whole)
    return whole if text == f"({whole})" else text


def _hanging(indent: str, text: str) -> list[str]:
    """Return a formula as lines, those of the parts that it names further in."""
    first, *parts = lines_of_formula(text)
    words = ["with ", *["     "] * len(parts)]
    more = [f"{indent}  {word}{part}" for word, part in zip(words, parts, strict=False)]
    return [f"{indent}{first}", *more]


def _line(location: Location | None) -> str:
    return "" if location is None else f"line {location.line}"


def _numbers(tensor: Tensor) -> str:
    text = repr(tensor)
    if tensor.size > 12:
        return (
            f"{tensor.dtype}, shape {tensor.shape}: norm {float(np.linalg.norm(tensor._array)):.6g}"
        )
    return " ".join(text.split())


_SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "matmul": "@",
    "power": "**",
}


def call_text(vertex: Vertex, operands: list[str]) -> str:
    """Return an operation as a person would write it."""
    sign = _SIGNS.get(vertex.title)
    if sign is not None and len(operands) == 2:
        return f"{operands[0]} {sign} {operands[1]}"
    if vertex.title == "negative":
        return f"-{operands[0]}"
    power = re.fullmatch(r"exponent=(\S+)", vertex.settings)
    if vertex.title == "square" or (vertex.title == "power" and power):
        return f"{operands[0]} ** {power[1] if power else 2}"
    if vertex.title == "permute_dims" and vertex.settings == "axes=(1, 0)":
        return f"{operands[0]}.T"
    index = re.fullmatch(r"key=\((-?\d+(?:, -?\d+)*),?(?: Ellipsis)?\)", vertex.settings)
    if vertex.title == "select" and index:
        return f"{operands[0]}[{index[1]}]"
    if vertex.title == ONE_EXAMPLE:
        return f"{operands[0]}, one example"
    if vertex.title == ALL_EXAMPLES:
        return f"{operands[0]}, all examples"
    settings = [vertex.settings] if vertex.settings else []
    if vertex.title == "diagonal":
        settings = [vertex.settings.partition(", key=")[0]]
    return f"{vertex.title}({', '.join([*operands, *settings])})"
