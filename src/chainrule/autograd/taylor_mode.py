"""Taylor mode: power series propagated through the recorded graph.

Where an input moves along x₀ + t v, every value in the graph is a power series in t. Its
coefficients follow from the rules of forward mode alone: the derivative of an output is
y'(t) = R(x(t), y(t)) x'(t), where R is the rule of its operation, so coefficient k + 1 of y is
coefficient k of the right side, divided by k + 1. The rule is recorded once, on the values at
t = 0; what it recorded is a graph in turn, through which series are propagated in the same way as
far as they are needed. So the cost grows with a power of the order. Nested forward mode repeats all
lower orders in each traversal, which doubles the cost with each order.

Griewank and Walther, Evaluating Derivatives (2008), chapter 13; the coefficients are computed on
demand as in Karczmarczuk, Functional differentiation of computer programs (2001).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.forward import tracked
from chainrule.autograd.modes import enable_grad, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, Edge, Node, endpoint, is_collective
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import current_node
from chainrule.interrupts import errstate
from chainrule.primitives.primitive import Primitive, parameters

Coefficient = Tensor | None  # None is zero, and so are all later ones


class Series:
    """The coefficients from 1 on of a power series, computed on demand, in order."""

    __slots__ = ("_known", "_next")

    def __init__(self, coefficient: Callable[[Series, int], Coefficient]) -> None:
        self._next = coefficient  # gets the series itself, and those before it are known
        self._known: list[Coefficient] = []

    def __getitem__(self, k: int) -> Coefficient:
        while len(self._known) < k:
            self._known.append(self._next(self, len(self._known) + 1))
        return self._known[k - 1]


def taylor_of(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    directions: Sequence[Tensor | None],
    order: int,
) -> list[list[Coefficient]]:
    """Return for each output the Taylor coefficients 1 to `order` along a line of the inputs.

    The graph between `inputs`, which are leaves or new nodes, and `outputs` is recorded. A
    direction of None keeps an input constant.
    """

    @errstate(all="ignore")
    def propagate() -> list[list[Coefficient]]:
        pairs = list(zip(inputs, directions, strict=True))
        graph = SeriesGraph(min((endpoint(current_node(x))[0].seq for x in inputs), default=0))
        for x, v in pairs:
            graph.known[endpoint(current_node(x))] = None if v is None else line(v)
        found, steps = graph.series_of([current_node(t) for t in outputs])
        for k in range(1, order + 1):
            for step in steps:
                _ = step[k]  # in order of creation, which keeps the recursion shallow
        graph.known.clear()  # the series refer to it
        return [[None if s is None else s[k] for k in range(1, order + 1)] for s in found]

    return run_in(enable_grad(), propagate)


def line(direction: Tensor) -> Series:
    """Return the series of x₀ + t v."""
    return Series(lambda series, k: direction if k == 1 else None)


class SeriesGraph:
    """The series of all outputs of nodes from a number on; None for what is constant."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.known: dict[tuple[Node, int], Series | None] = {}
        self._shared: dict[Any, list[Series | None]] = {}

    def series_of(self, edges: Sequence[Edge]) -> tuple[list[Series | None], list[Series]]:
        """Return the series of edges, and all that were made for them, in order of creation."""
        steps: list[Series] = []
        for node in self._new_nodes(edges):
            for index, series in enumerate(self._outputs_of(node)):
                self.known[node, index] = series
                if series is not None:
                    steps.append(series)
        found = [None if edge is None else self.known.get(endpoint(edge)) for edge in edges]
        return found, steps

    def _new_nodes(self, edges: Sequence[Edge]) -> list[Node]:
        """Return the nodes without series that the edges depend on, in order of creation."""
        reached: set[Node] = set()
        stack = list(edges)
        while stack:
            edge = stack.pop()
            if edge is None or endpoint(edge) in self.known:
                continue
            node = endpoint(edge)[0]
            if node in reached or node.seq < self.begin or type(node) is AccumulateGrad:
                continue
            reached.add(node)
            stack.extend(node.edges)
        return sorted(reached, key=lambda node: node.seq)

    def _outputs_of(self, node: Node) -> list[Series | None]:
        """Return the series of the outputs of a node."""
        arriving = [None if edge is None else self.known.get(endpoint(edge)) for edge in node.edges]
        takes_part = is_collective(node)
        if all(series is None for series in arriving) and not takes_part:
            return [None] * node.output_count
        if not isinstance(node, PrimitiveNode):
            return self._by_rule(node, arriving)
        key = None if takes_part else _key_of(node, arriving)
        found = None if key is None else self._shared.get(key)
        if found is None:
            found = self._of_primitive(node, arriving)
            if key is not None:
                self._shared[key] = found
        return found

    def _of_primitive(
        self, node: PrimitiveNode, arriving: list[Series | None]
    ) -> list[Series | None]:
        primitive = node.plan.primitive
        moving = [series is not None for series in arriving]
        reads = _names_read(primitive, moving)
        varying = {name for name, moves in zip(primitive.inputs, moving, strict=False) if moves}
        if not reads & varying.union(primitive.outputs):
            return _linear(node, arriving)
        if primitive.series == "product":
            return [_product(node, *arriving)]
        if primitive.series == "quotient":
            return [_quotient(node, *arriving)]
        if primitive.series == "solution":
            return [_solution(node, arriving)]
        return self._by_rule(node, arriving)

    def _by_rule(self, node: Node, arriving: list[Series | None]) -> list[Series | None]:
        """Return the series of the outputs by the forward rule of the node, applied to series."""

        @functools.cache
        def slopes() -> tuple[Sequence[Coefficient], list[Series | None], list[Series]]:
            tangents: list[Coefficient] = []
            for series in arriving:
                tangents.append(None)
                if series is not None and (first := series[1]) is not None:
                    tangent = tangents[-1] = tracked(first)
                    self.known[endpoint(current_node(tangent))] = _derivative(series)
            if all(t is None for t in tangents):  # all series have ended
                return [None] * node.output_count, [None] * node.output_count, []
            result = node.jvp(tuple(tangents), TENSOR_XP)
            slope = result if isinstance(result, tuple) else (result,)
            return slope, *self.series_of([None if t is None else current_node(t) for t in slope])

        def coefficient(index: int, found: Series, k: int) -> Coefficient:
            values, series, steps = slopes()
            if k == 1:
                return values[index]
            for step in steps:
                _ = step[k - 1]
            slope = series[index]
            previous = None if slope is None else slope[k - 1]
            return None if previous is None else previous / float(k)

        return [Series(functools.partial(coefficient, i)) for i in range(node.output_count)]


def _derivative(series: Series) -> Series:
    """Return the series of the derivative; its value at 0 is coefficient 1 of `series`."""

    def coefficient(found: Series, k: int) -> Coefficient:
        next_one = series[k + 1]
        return None if next_one is None else next_one * float(k + 1)

    return Series(coefficient)


def _names_read(primitive: Primitive, moving: Sequence[bool]) -> set[str]:
    """Return the values that the forward rules of some inputs read."""
    rules: Sequence[Any] = ()
    if callable(primitive.jvp):
        rules = (primitive.jvp,)
    elif primitive.jvp is not None:
        rules = [rule for rule, moves in zip(primitive.jvp, moving, strict=True) if moves]
    return {name for rule in rules if rule is not None for name in parameters(rule)[0]}


def _linear(node: PrimitiveNode, arriving: Sequence[Series | None]) -> list[Series | None]:
    """Return the series of the outputs of a linear node: it applies to each coefficient."""

    @functools.cache
    def applied(k: int) -> Sequence[Coefficient]:
        tangents = tuple([None if series is None else series[k] for series in arriving])
        if all(t is None for t in tangents) and not is_collective(node):
            return [None] * node.output_count
        result = node.jvp(tangents, TENSOR_XP)
        return result if isinstance(result, tuple) else (result,)

    def coefficient(index: int, found: Series, k: int) -> Coefficient:
        return applied(k)[index]

    return [Series(functools.partial(coefficient, i)) for i in range(node.output_count)]


def _total(terms: Sequence[Coefficient]) -> Coefficient:
    found = [term for term in terms if term is not None]
    return functools.reduce(operator.add, found) if found else None


def _values(node: PrimitiveNode) -> tuple[Tensor, Tensor]:
    """Return the values at 0 of both inputs of a node that saves them."""
    saved = dict(zip(node.plan.origins, node.as_tensors(node.saved_values()), strict=True))
    return saved[0], saved[1]


def _product(node: PrimitiveNode, x: Series | None, y: Series | None) -> Series:
    """Return the series of a bilinear function of two series: the sum of B(xᵢ, yⱼ), i + j = k."""
    apply, settings = node.plan.primitive.apply, node.settings or {}

    def times(a: Coefficient, b: Coefficient) -> Coefficient:
        return None if a is None or b is None else apply(a, b, **settings)

    def coefficient(found: Series, k: int) -> Coefficient:
        x0, y0 = _values(node)
        factors = [(_at(x, i), _at(y, k - i)) for i in range(1, k)]
        return _total([times(a, b) for a, b in [(_at(x, k), y0), *factors, (x0, _at(y, k))]])

    return Series(coefficient)


def _quotient(node: PrimitiveNode, x: Series | None, y: Series | None) -> Series:
    """Return the series of z = x / y, from z y = x."""

    @functools.cache
    def value() -> Tensor:
        x0, y0 = _values(node)
        return x0 / y0

    def coefficient(found: Series, k: int) -> Coefficient:
        factors = [*[(found[k - j], _at(y, j)) for j in range(1, k)], (value(), _at(y, k))]
        products = [a * b for a, b in factors if a is not None and b is not None]
        remainder = _total([_at(x, k), *[-product for product in products]])
        return None if remainder is None else remainder / _values(node)[1]

    return Series(coefficient)


def _solution(node: PrimitiveNode, arriving: Sequence[Series | None]) -> Series:
    """Return the series of the solution z of a system A z = b.

    The rules for the tangents of A and b are -A⁻¹ (t z) and A⁻¹ t: with coefficients of z in the
    place of its value, these are the terms of A⁻¹ (bₖ - Σ Aⱼ zₖ₋ⱼ).
    """
    a, b, *_ = arriving

    def term(index: int, t: Coefficient, z: Any) -> Coefficient:
        if t is None or z is None:
            return None
        tangents = [t if i == index else None for i in range(len(arriving))]
        origins, saved = node.plan.origins, node.as_tensors(node.saved_values())
        values = [z if i == -1 and index == 0 else x for i, x in zip(origins, saved, strict=True)]
        found: Tensor = node.plan.jvp(
            TENSOR_XP.beside(t), tuple(tangents), tuple(values), node.settings
        )
        return found

    def coefficient(found: Series, k: int) -> Coefficient:
        terms = [term(0, _at(a, j), found[k - j]) for j in range(1, k)]
        origins, saved = node.plan.origins, node.as_tensors(node.saved_values())
        value = saved[origins.index(-1)] if a is not None else True
        return _total([term(1, _at(b, k), True), *terms, term(0, _at(a, k), value)])

    return Series(coefficient)


def _at(series: Series | None, k: int) -> Coefficient:
    return None if series is None else series[k]


def _key_of(node: PrimitiveNode, arriving: Sequence[Series | None]) -> Any:
    """Return what two applications with the same series have in common, None if it is unknown.

    Rules such as those of Bessel functions lead to the same functions of the same values by several
    ways; without this, their number would double with each order.
    """
    plan, settings = node.plan, node.settings or {}
    parts: list[Any] = []
    for position, series in enumerate(arriving):
        if series is not None:
            parts.append(id(series))
        elif position in plan.origins and node.saved is not None:
            value = node.saved[plan.origins.index(position)]
            if not isinstance(value, np.ndarray | np.generic) or value.size > MAX_COMPARED:
                return None
            parts.append((value.dtype, value.shape, value.tobytes()))
        else:
            return None
    key = (plan.primitive.name, tuple(parts), tuple(sorted(settings.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key


MAX_COMPARED = 64
"""Elements of a constant operand up to which its values are compared."""
