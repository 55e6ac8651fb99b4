"""Signatures as text: a description of the call for which a program was compiled."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.remarks import Remark
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import ndarray
from chainrule.compiler.tracing.found import Found
from chainrule.compiler.tracing.names import argument_names, cell_names
from chainrule.compiler.tracing.run import Traced
from chainrule.compiler.tracing.varying_numbers import VaryingNumber

_array = SLOTS["_array"]


class Signature(dict[str, str]):
    """Description of each object that a program depends on, by its name.

    Prints as lines. `changes` compares two signatures. `remarks` names what runs slower than as
    machine code, or for one example of a `vmap` after the other: each has an `operation`, and a
    `text` with reason and mend.
    """

    remarks: tuple[Remark, ...] = ()

    def __str__(self) -> str:
        lines = [f"{name}: {text}" for name, text in self.items()]
        return "\n".join([*lines, *(remark.text for remark in self.remarks)])

    def changes(self, before: Signature) -> list[str]:
        """Return a sentence for each difference from an earlier signature."""
        found = [
            f"{name} is {text}, was {before.get(name, 'not used')}"
            for name, text in self.items()
            if before.get(name) != text
        ]
        found += [f"{name} isn't used, was {before[name]}" for name in before if name not in self]
        return found or ["an object that it finds by name is another one of the same kind"]


def signature_of(function: Callable[..., Any], call: Traced) -> Signature:
    """Return the signature of a traced call."""
    found = Signature()
    captures = {id(c.tensor): c for c in call.captures}
    order = call.trace.order_matters
    seen: set[int] = set()
    for name, value in argument_names(function, *call.arguments):
        for path, leaf in pytree.leaves(value):
            capture = captures.get(id(leaf))
            found[name + path] = _describe(leaf, capture, order)
            seen.add(id(leaf))
    for key, capture in captures.items():
        if key not in seen:
            name = capture.value.hint or f"a tensor of shape {list(capture.value.shape)}"
            found[name] = _describe(capture.tensor, capture, order)
    cells = cell_names(function)
    for item in call.found:
        if item.by_value and (name := _readable_path(item, cells))[:1].isidentifier():
            found[name] = reprlib.repr(item.value)
    for place, number in call.trace.numbers.places:
        if place.scope is not None:
            item = Found(place.scope, place.path, number)
            found[_readable_path(item, cells)] = _describe(number, None, order)
    found["the grad mode"] = "on" if is_grad_enabled() else "off"
    found["the default dtype"] = str(default_dtype())
    return found


def _readable_path(item: Found, cells: dict[int, str]) -> str:
    """Return the path to an object as a person would write it."""
    path = re.sub(r"^\['(\w+)'\]", r"\1", item.path)
    if path.startswith(".cell_contents"):
        path = cells.get(id(item.scope), "") + path.removeprefix(".cell_contents")
    container = path.removesuffix(".__len__()")
    return path if path == container or not container else f"len({container})"


def _describe(value: Any, capture: Any, order: bool) -> str:
    """Return the properties of a value that the guards check."""
    if type(value) is VaryingNumber:
        return value.description
    if isinstance(value, ndarray):
        strides = f" in memory by {value.strides}" if order else ""
        return f"an array of {value.dtype} {list(value.shape)}{strides}"
    if not isinstance(value, Tensor):
        return reprlib.repr(value)
    array = _array.__get__(value)
    text = f"{array.dtype} {list(array.shape)}"
    if capture is None:
        return f"{text}, not used"
    if order:
        text += f" in memory by {array.strides}"
    if capture.found is not None:
        text += ", requires grad"
    return text if capture.grads[0] is None else f"{text}, has .grad"
