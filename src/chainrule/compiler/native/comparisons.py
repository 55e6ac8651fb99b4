"""What is put at one place of each row, by comparing: so that loops can do it."""

from __future__ import annotations

import numpy as np

from chainrule.compiler.ir.program import Line, Program, Value


def with_comparisons(program: Program) -> Program:
    """Return a program that compares positions where it adds one number to each row of zeros.

    Only with an index by which the same program also takes elements: NumPy looks there whether it
    is in range, which a comparison wouldn't.
    """
    taken = [line for line in program.lines if line.function == "take_along_axis"]
    checked = {(line.args[1], *_along(line, line.args[0])) for line in taken}
    if not checked:
        return program
    found = program.with_lines([])
    found.constants = dict(program.constants)
    for line in program.lines:
        if line.function == "add_along_axis" and _is_one_of_each(line):
            axis, size = _along(line, line.out)
            if (line.args[1], axis, size) in checked:
                found.lines += _compared(line, axis, found)
                continue
        found.lines.append(line)
    return found


def _along(line: Line, array: Value) -> tuple[int, int]:
    """Return the axis of a line, and the size of an array there."""
    axis = line.kwargs["axis"] % len(array.shape)
    return axis, array.shape[axis]


def _is_one_of_each(line: Line) -> bool:
    x, index = line.args
    axis, _ = _along(line, line.out)
    row = (*line.out.shape[:axis], 1, *line.out.shape[axis + 1 :])
    return bool(x.shape == index.shape == row)


def _compared(line: Line, axis: int, program: Program) -> list[Line]:
    x, index = line.args
    size, after = line.out.shape[axis], len(line.out.shape) - axis - 1
    places = np.arange(size).reshape((size,) + (1,) * after)
    here = []
    for array in (places, places - size):  # from the end, too
        constant = Value(array.shape, array.dtype)
        program.constants[constant] = array
        equal = Value(line.out.shape, np.dtype(bool))
        here.append(Line("np.equal", (index, constant), {}, (equal,), line.location))
    either = Value(line.out.shape, np.dtype(bool))
    args = (here[0].out, here[1].out)
    return [
        *here,
        Line("np.logical_or", args, {}, (either,), line.location),
        Line("np.where", (either, x, 0), {}, line.outs, line.location),
    ]
