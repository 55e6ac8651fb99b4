"""The backward pass of some of the outputs: what the others' gradients would lead to is left out.

All that a backward pass computes is linear in the gradients that come. So what is made of none that
comes doesn't come either, and where it is added to another one, that is the sum. Zeros in its place
would not be the same: 0 times infinity is nan, and a `.grad` of zeros is not None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from chainrule.compiler.ir.program import Line, Program, Value


def partial_pass(
    program: Program, count: int, present: Collection[int]
) -> tuple[Program, list[int | None]]:
    """Return a backward program that gets some of its `count` cotangents, its first inputs.

    And for each output, which one of the new program it is; None if it isn't one.
    """
    cotangents = program.inputs[:count]
    come = [v for i, v in enumerate(cotangents) if i in present]
    part = _Part(come, [v for v in cotangents if v not in come])
    lines = [left for line in program.lines for left in part.lines_of(line)]
    outputs = [v for v in program.outputs if v not in part.absent]
    places = {v: i for i, v in enumerate(outputs)}
    results = [part.same.get(v, v) for v in outputs]
    inputs = [*come, *program.inputs[count:]]
    found = Program(program.name, inputs, program.constants, lines, results, [])
    return found, [places.get(v) for v in program.outputs]


class _Part:
    """What is left of a pass, line by line."""

    def __init__(self, come: Collection[Value], absent: Collection[Value]) -> None:
        self.made = {*come}  # of cotangents that come
        self.absent = {*absent}  # and of those that don't, and nothing else
        self.same: dict[Value, Value] = {}  # sums of one part

    def lines_of(self, line: Line) -> Iterator[Line]:
        """Yield what is left of a line."""
        line = line.replaced(lambda v: self.same.get(v, v))
        inputs = set(line.inputs)
        missing = inputs & self.absent
        if missing and inputs.isdisjoint(self.made):
            self.absent.update(line.outs)
            return
        if not inputs.isdisjoint(self.made):
            self.made.update(line.outs)
        if missing and line.function == "np.add":
            (other,) = inputs - missing
            if (other.shape, other.dtype) == (line.out.shape, line.out.dtype):
                self.same[line.out] = other
                return
        zeros = {v: Value(v.shape, v.dtype) for v in missing}
        for value, zero in zeros.items():
            yield Line("np.zeros", (value.shape, value.dtype), {}, (zero,), line.location)
        yield line.replaced(lambda v: zeros.get(v, v)) if zeros else line
