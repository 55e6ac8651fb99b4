"""Source of reductions in order, of triangles, and of sorts along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Op, Shape, Value
from chainrule.compiler.native.indexing_codegen import Operands, contiguous, nested
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Memory
from chainrule.compiler.native.scalar_codegen import CODES, literal

_SETTINGS = {"axis", "keepdims"}


class _Fold(NamedTuple):
    """A reduction: its initial value, and its value after an element {x}."""

    first: str
    following: str
    is_position: bool = False  # whether the result is the position of the value


_FOLDS = {
    "np.sum": _Fold("{code}(0)", "{total} + {x}"),
    "np.prod": _Fold("{code}(1)", "{total} * {x}"),
    "np.any": _Fold("i8(0)", "i8(1) if {x} != 0 else {total}"),
    "np.all": _Fold("i8(1)", "{total} if {x} != 0 else i8(0)"),
    "np.count_nonzero": _Fold("i8(0)", "{total} + i8({x} != 0)"),
    "np.max": _Fold("{low}", "{x} if {x} > {total} else {total}"),
    "np.min": _Fold("{high}", "{x} if {x} < {total} else {total}"),
    "np.argmax": _Fold("{low}", "({x} > {total}) | (({x} != {x}) & ({total} == {total}))", True),
    "np.argmin": _Fold("{high}", "({x} < {total}) | (({x} != {x}) & ({total} == {total}))", True),
}
"""Reductions. The first extremum, or nan, is the one whose position is found."""

FOLDED = tuple(_FOLDS)


class Reductions(Operands):
    """Writer of operations along axes that visit one element after the other."""

    def fold(self, op: Op) -> Iterator[str]:
        """Reduce along axes."""
        x, rule = op.args[0], _FOLDS[op.function]
        if op.kwargs.keys() - _SETTINGS or len(op.args) > 1:
            raise UnfitError("a reduction with other arguments")
        code = self._code(op.out if op.function in ("np.sum", "np.prod") else x)
        if op.function in ("np.max", "np.min") and code[0] == "f":
            raise UnfitError("a reduction with other arguments")  # nan has an order of its own
        axis = op.kwargs.get("axis")
        axes = range(len(x.shape)) if axis is None else axis if type(axis) is tuple else (axis,)
        reduced = [a % len(x.shape) for a in axes]
        kept = [a for a in range(len(x.shape)) if a not in reduced]
        sizes = [x.shape[a] for a in kept]
        element = self.element_at(x, x.shape, kept + sorted(reduced))
        value, total = self._names("value", "total")
        low, high = _limits(CODES[x.dtype])
        terms = {"code": code, "x": value, "total": total, "low": low, "high": high}
        self.layout.allocate(op.out)
        target = self._target(op.out, sizes)
        body = [f"{value} = {code}({element})"]
        before = [f"{total} = {rule.first.format(**terms)}"]
        following = rule.following.format(**terms)
        if rule.is_position:
            place, better = self._names("place", "better")
            before.append(f"{place} = i8(0)")
            position = _position(x.shape, sorted(reduced), len(kept))
            body += [f"{better} = {following}", f"{total} = {value} if {better} else {total}"]
            body.append(f"{place} = {position} if {better} else {place}")
            total = place
        else:
            body.append(f"{total} = {following}")
        loops = nested([x.shape[a] for a in sorted(reduced)], body, len(kept))
        yield from nested(sizes, [*before, *loops, f"{target} = {total}"])

    def triangle(self, op: Op) -> Iterator[str]:
        """Copy the elements on one side of a diagonal."""
        x, *rest = op.args
        offset = rest[0] if rest else op.kwargs.get("k", 0)
        if len(x.shape) < 2:
            raise UnfitError("a triangle of a vector")
        self.layout.allocate(op.out)
        axes = [*range(len(x.shape))]
        source, target = (self.element_at(v, x.shape, axes) for v in (x, op.out))
        i, j = INDICES[len(axes) - 2], INDICES[len(axes) - 1]
        order = ">=" if op.function == "np.triu" else "<="
        zero = literal(0, x.dtype)
        element = f"{self._code(x)}({source})" if x.dtype.kind != "b" else source
        line = f"{target} = {element} if i8({j}) - i8({i}) {order} i8({offset}) else {zero}"
        yield from nested(list(x.shape), [line])

    def sort(self, op: Op) -> Iterator[str]:
        """Sort along one axis, or find the order: elements, or their positions."""
        x = op.args[0]
        if len(op.args) > 1 or op.kwargs.keys() - {"axis", "kind", "stable"} or not x.shape:
            raise UnfitError("a sort with other arguments")
        axis = op.kwargs.get("axis", -1)
        if axis is None:
            raise UnfitError("a sort of all elements")
        axis %= len(x.shape)
        kept, n = [a for a in range(len(x.shape)) if a != axis], x.shape[axis]
        sizes = [x.shape[a] for a in kept]
        access = self.accesses.of(x)
        if access.strides[axis] < 0 or self.accesses.uniform_value(x) is not None:
            copy = Value(x.shape, x.dtype)
            yield from self.layout.copy_lines(x, self.accesses, self.layout.allocate(copy))
            access = contiguous(copy, copy)
        source = self.layout.address(access.base)
        start = Memory(source.array, access.offset, [access.strides[a] for a in kept], source.start)
        work = self.layout.allocate(Value((2 * n,), np.dtype(np.int64)))
        order = f"{work.array}, u8({work.start or 0})"
        row = f"{source.array}, u8({start.position}), u8({access.strides[axis]})"
        self.layout.allocate(op.out)
        target = self._target(op.out, sizes, kept, axis)
        letter = INDICES[len(kept)]
        place = f"{work.array}[u8({work.start or 0}) + {letter}]"
        found = f"i8({place})"
        if op.function == "np.sort":
            found = (
                f"{source.array}[u8({start.position}) + u8({access.strides[axis]}) * u8({place})]"
            )
        moves = nested([n], [f"{target} = {found}"], len(kept))
        yield from nested(sizes, [f"sort_order({row}, u8({n}), {order})", *moves])

    def _target(self, out: Value, sizes: list[int], kept: Any = None, axis: int = 0) -> str:
        """Return the element of a result in loops over the axes that are kept, then one more."""
        address = self.layout.address(out)
        if kept is None:
            part = Value(tuple(sizes), out.dtype)
            strides = [*contiguous(part, part).strides]
        else:
            steps = contiguous(out, out).strides
            strides = [*(steps[a] for a in kept), steps[axis]]
        return Memory(address.array, 0, strides, address.start).element

    def _code(self, value: Value) -> str:
        code = CODES.get(value.dtype)
        if code is None:
            raise UnfitError(f"{value.dtype} is not among the types of machine code")
        return "i8" if code == "b1" else code

    def _names(self, *stems: str) -> list[str]:
        return [self.layout.names.another(stem) for stem in stems]


def _limits(code: str) -> tuple[str, str]:
    """Return the smallest and the largest number of a type as source."""
    if code[0] == "f":
        return f"{code}(-INF)", f"{code}(INF)"
    if code == "b1":
        return "i8(0)", "i8(1)"
    info = np.iinfo(code)
    return f"{code}({info.min})", f"{code}({info.max})"


def _position(shape: Shape, axes: list[int], depth: int) -> str:
    """Return the position in flattened axes that are the loops from a depth on."""
    text, step = "i8(0)", 1
    for i, axis in reversed([*enumerate(axes)]):
        text, step = f"{text} + i8({step}) * i8({INDICES[depth + i]})", step * shape[axis]
    return text
