"""Recorder of operations: rules written as functions of arrays run once, on types alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.compiler.ir.program import Op, Value


def _values(tree: Any) -> Any:
    """Return nested arguments with the values of arrays."""
    if isinstance(tree, tuple | list):
        return type(tree)(map(_values, tree))
    return tree.value if isinstance(tree, RecordedArray) else tree


class Recorder:
    """The namespace of a rule: what is called is recorded."""

    def __init__(self, ops: list[Op]) -> None:
        self.ops = ops

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.call(f"np.{name}", *args, **kwargs)

    def check(self, condition: Any) -> None:
        """Leave the computation to NumPy unless a condition holds."""
        self.ops.append(Op("check", (condition.value,), {}, ()))

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Record an operation, and return its result."""
        args, kwargs = _values(args), {name: _values(item) for name, item in kwargs.items()}
        types = abstract_eval(function, args, kwargs).types
        outs = tuple([Value(shape, dtype) for shape, dtype in types])
        self.ops.append(Op(function, args, kwargs, outs))
        found = [RecordedArray(out, self.ops) for out in outs]
        return found[0] if len(found) == 1 else tuple(found)


def _operator(name: str, is_reflected: bool = False) -> Callable[..., Any]:
    def method(self: RecordedArray, *others: Any) -> Any:
        args = (*others, self) if is_reflected else (self, *others)
        return Recorder(self.ops).call(f"np.{name}", *args)

    return method


class RecordedArray:
    """An array of a rule."""

    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to it

    def __init__(self, value: Value, ops: list[Op]) -> None:
        self.value, self.ops = value, ops
        self.shape, self.dtype, self.size = value.shape, value.dtype, value.size
        self.ndim = len(value.shape)

    __add__ = __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", True)
    __mul__ = __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", True)
    __pow__ = _operator("power")
    __neg__, __abs__ = _operator("negative"), _operator("abs")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __and__, __or__ = _operator("logical_and"), _operator("logical_or")  # of booleans
    __invert__ = _operator("logical_not")

    def __eq__(self, other: Any) -> Any:
        return Recorder(self.ops).call("np.equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return Recorder(self.ops).call("np.not_equal", self, other)

    def __getitem__(self, key: Any) -> Any:
        return Recorder(self.ops).call("getitem", self, key)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return Recorder(self.ops).call("np.astype", self, dtype)

    def reshape(self, shape: Any) -> Any:
        return Recorder(self.ops).call("np.reshape", self, shape)
