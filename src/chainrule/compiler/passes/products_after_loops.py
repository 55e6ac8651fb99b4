"""Sums of matrix products over the steps of a loop become one product after the loop.

The gradient of a weight that a recurrence reads in each step is such a sum. Its product of many
terms reads and writes the sum once, where the loop does in each step.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.vectorize_loops import MAX_BATCH_SIZE


class _Term(NamedTuple):
    """The product that each step adds to a carry: of `left` and `right`, transposed if said so."""

    carry: int
    left: Value
    right: Value
    transposed: tuple[bool, bool]


def multiply_after_loops(program: Program) -> Program:
    """Return the program with products after the loops whose steps only add them up."""
    ops: list[Op] = []
    for op in program.ops:
        terms = _terms(op) if op.function == "for" else []
        ops += _Split(op, terms).ops if terms else [op]
    return program.with_ops(ops)


def _terms(loop: Op) -> list[_Term]:
    """Return the terms that carries are sums of, where a product after the loop pays."""
    (body,) = loop.regions
    definitions = {v: op for op in body.ops for v in op.outs}
    uses = Counter([v for op in body.ops for v in op.inputs] + body.outputs)
    local = definitions.keys() | set(body.inputs)
    found = []
    for i in range(len(loop.args[0])):
        term = _term(i, body, definitions, uses)
        if term is not None and local.issuperset((term.left, term.right)):
            missing = {v for v in (term.left, term.right) if _stack_of(loop, v) is None}
            size = sum([v.size for v in missing])
            if size < loop.outs[i].size and size * loop.kwargs["length"] <= MAX_BATCH_SIZE:
                found.append(term)
    return found


def _term(
    i: int, body: Program, definitions: dict[Value, Op], uses: Counter[Value]
) -> _Term | None:
    """Return the product that a step adds to a carry, if nothing else uses either."""
    carry, total = body.inputs[i], body.outputs[i]
    op = definitions.get(total)
    if op is None or op.function != "np.add" or uses[carry] != 1 or uses[total] != 1:
        return None
    if carry not in op.args or len(op.args) != 2:
        return None
    product = op.args[0] if op.args[1] is carry else op.args[1]
    if not isinstance(product, Value) or (product.shape, product.dtype) != (
        carry.shape,
        carry.dtype,
    ):
        return None
    op = definitions.get(product)
    if op is None or op.function != "np.matmul" or uses[product] != 1:
        return None
    if any(len(v.shape) != 2 or v.dtype != carry.dtype for v in op.args):
        return None
    left, right = (_untransposed(v, definitions) for v in op.args)
    return _Term(i, left[0], right[0], (left[1], right[1]))


def _untransposed(value: Value, definitions: dict[Value, Op]) -> tuple[Value, bool]:
    """Return the matrix that a value is the transpose of, and whether it is one."""
    op = definitions.get(value)
    if op is None or op.function != "np.permute_dims" or tuple(op.args[1]) != (1, 0):
        return value, False
    return op.args[0], True


def _stack_of(loop: Op, value: Value) -> Value | None:
    """Return the array that holds a value of each step, None if there is none yet."""
    (body,), count = loop.regions, len(loop.args[0])
    for inner, stack in zip(body.inputs[count:], loop.args[1], strict=True):
        if inner is value:
            return stack if isinstance(stack, Value) else None
    for inner, stack in zip(body.outputs[count:], loop.outs[count:], strict=True):
        if inner is value:
            found: Value = stack
            return found
    return None


class _Split:
    """A loop without the carries that are sums of products, and these products."""

    def __init__(self, loop: Op, terms: list[_Term]) -> None:
        (body,) = loop.regions
        self.loop, self.length = loop, loop.kwargs["length"]
        carries = {term.carry for term in terms}
        sums = {body.outputs[i] for i in carries}
        body = body.with_ops([op for op in body.ops if sums.isdisjoint(op.outs)])
        kept = [i for i in range(len(loop.args[0])) if i not in carries]
        tail = range(len(loop.args[0]), len(loop.outs))
        outs = [loop.outs[i] for i in (*kept, *tail)]
        outputs = [body.outputs[i] for i in (*kept, *tail)]
        self.stacks: dict[Value, Value] = {}
        for value in dict.fromkeys([v for term in terms for v in (term.left, term.right)]):
            stack = _stack_of(loop, value)
            if stack is None:
                stack = Value((self.length, *value.shape), value.dtype)
                outs.append(stack)
                outputs.append(value)
            self.stacks[value] = stack
        body.outputs = outputs
        body.inputs = [v for i, v in enumerate(body.inputs) if i not in carries]
        args = (tuple([loop.args[0][i] for i in kept]), loop.args[1])
        self.ops = [Op("for", args, loop.kwargs, tuple(outs), loop.location, (body,))]
        for term in terms:
            self._multiply(term)

    def _multiply(self, term: _Term) -> None:
        """Append the product of all steps, and its sum with the first value of the carry."""
        left_transposed, right_transposed = term.transposed
        left = self._rows(term.left, 0 if left_transposed else 1)
        right = self._rows(term.right, 1 if right_transposed else 0)
        product = self._add("np.matmul", self._add("np.permute_dims", left, (1, 0)), right)
        out = self.loop.outs[term.carry]
        first = self.loop.args[0][term.carry]
        self.ops.append(Op("np.add", (first, product), {}, (out,), self.loop.location))

    def _rows(self, value: Value, axis: int) -> Value:
        """Return the matrices of all steps as one, whose rows are their entries along an axis."""
        stack = self.stacks[value]
        if axis:
            stack = self._add("np.permute_dims", stack, (0, 2, 1))
        return self._add("np.reshape", stack, (-1, stack.shape[-1]))

    def _add(self, function: str, *args: Any) -> Value:
        """Append an op; return its result."""
        ((shape, dtype),) = abstract_eval(function, args, {}).types
        out = Value(shape, dtype)
        self.ops.append(Op(function, args, {}, (out,), self.loop.location))
        return out
