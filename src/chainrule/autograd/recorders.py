"""Changes to the recorders of all primitives: other kernels, modes that look on, another class."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from chainrule.autograd import record_fast
from chainrule.autograd.modes import prepare_looking
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.record import record_special
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import keep_saved, savers, sorted_savers
from chainrule.primitives.primitive import TABLE, Primitive, Substitute, for_each_primitive


def exchange(primitive: Primitive, substitute: Substitute | None) -> None:
    """Replace the kernel of a primitive for NumPy arrays; None restores its own.

    A recorder holds its kernel in a closure cell, to save a lookup in each call: the cell is set.
    """
    primitive.substitute = substitute
    function: Any = primitive.apply
    cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    cells["kernel"].cell_contents = record_fast.kernel_of(primitive)
    for plan in primitive.plans():
        plan.renew()


def show_all_operations() -> None:
    """From now on, let recorders show modes that look on the operations on constants, too.

    The recorders of no special form don't ask for the modes where no input requires grad. Now they
    leave these operations to `apply`, which takes a little longer and does.
    """
    for primitive in TABLE.values():
        function: Any = primitive.apply
        cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
        if "general" in cells:
            cells["general"].cell_contents = True


def use_class(kind: type[Tensor]) -> None:
    """Record tensors of a carried class, whose nodes keep what they save.

    The recorders are those of tensors, with the class in the place of `Tensor`.
    """
    record_fast._Carried = kind
    names = record_fast._of_carried
    names.update(vars(record_fast), Tensor=kind, _Plain=record_fast._Plain and kind)
    names.update(PrimitiveNode=_keeping_node, record_special=_record_special_keeping)

    def set_twin(primitive: Primitive) -> None:
        function: Any = primitive.apply
        if function.__globals__ is vars(record_fast):
            closure, defaults = function.__closure__, function.__kwdefaults__
            name = primitive.name
            function = FunctionType(function.__code__, names, name, None, closure)
            function.__kwdefaults__ = defaults
        primitive.apply_carried = _twins[primitive.apply] = function

    for_each_primitive(set_twin)


_twins: dict[Callable[..., Any], Callable[..., Any]] = {}


def twin_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the twin of a recorder for the class of `use_class`; other functions as they are."""
    return _twins.get(function, function)


def _keeping_node() -> PrimitiveNode:  # `keep_saved`, without the calls
    node: PrimitiveNode = _new(PrimitiveNode)
    _append(_reference(node))
    if _number(savers) > sorted_savers.limit:
        sorted_savers.drop_old()
    return node


_new, _reference, _number, _append = object.__new__, weakref.ref, len, savers.append


def _record_special_keeping(*arguments: Any) -> Tensor:
    result = record_special(*arguments)
    if type(result._node) is PrimitiveNode:
        keep_saved(result._node)
    return result


prepare_looking.append(show_all_operations)
