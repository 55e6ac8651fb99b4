"""A signature in words: what a program was made for, and what made another one necessary."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import ndarray
from chainrule.compiler.guards.discovery import Found
from chainrule.compiler.guards.names import argument_names, cell_names
from chainrule.compiler.tracing.run import Traced

_array = SLOTS["_array"]


class Signature(dict[str, str]):
    """What a program was made for: a description of each thing, by the name of it.

    Prints as lines. Two of them tell by `changes` why the later one was needed.
    """

    def __str__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self.items())

    def changes(self, before: Signature) -> list[str]:
        """Return in words what is otherwise than in a signature before."""
        found = [
            f"{name} is {text}, was {before.get(name, 'not used')}"
            for name, text in self.items()
            if before.get(name) != text
        ]
        found += [f"{name} isn't used, was {before[name]}" for name in before if name not in self]
        return found or ["an object that it finds by name is another one of the same kind"]


def signature_of(function: Callable[..., Any], call: Traced, args: Any, kwargs: Any) -> Signature:
    """Describe a call that was traced."""
    found = Signature()
    captures = {id(c.tensor): c for c in call.captures}
    order = call.trace.order_matters
    seen: set[int] = set()
    for name, value in argument_names(function, args, kwargs):
        for path, leaf in pytree.leaves(value):
            capture = captures.get(id(leaf))
            found[name + path] = _text(leaf, capture, order)
            seen.add(id(leaf))
    for key, capture in captures.items():
        if key not in seen:
            name = capture.value.hint or f"a tensor of shape {list(capture.value.shape)}"
            found[name] = _text(capture.tensor, capture, order)
    cells = cell_names(function)
    for item in call.found:
        name = _name(item, cells)
        if item.alike and name[:1].isidentifier():
            found[name] = reprlib.repr(item.value)
    found["the grad mode"] = "on" if is_grad_enabled() else "off"
    found["the default dtype"] = str(default_dtype())
    return found


def _name(item: Found, cells: dict[int, str]) -> str:
    """Return a way to something that a function finds by name, as a person would write it."""
    path = re.sub(r"^\['(\w+)'\]", r"\1", item.path)
    if path.startswith(".cell_contents"):
        path = cells.get(id(item.scope), "") + path.removeprefix(".cell_contents")
    whole = path.removesuffix(".__len__()")
    return path if path == whole or not whole else f"len({whole})"


def _text(value: Any, capture: Any, order: bool) -> str:
    """Return what a signature asks of a value."""
    if isinstance(value, ndarray):
        where = f" in memory by {value.strides}" if order else ""
        return f"an array of {value.dtype} {list(value.shape)}{where}"
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
