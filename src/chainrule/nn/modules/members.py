"""Registered members of a module: parameters, buffers and submodules, which are its attributes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentTypeError

if TYPE_CHECKING:
    from chainrule.nn.modules.module import Module

PARAMETER, BUFFER, TRANSIENT, MODULE = "parameter", "buffer", "transient", "module"
"""Kinds of members; a transient buffer is not part of the state dict."""

BUFFERS = (BUFFER, TRANSIENT)


class Members(MutableMapping[str, Any]):
    """The members of one kind by name: a view of the attributes of a module.

    PyTorch's `_parameters`, `_buffers` and `_modules`, which some code writes to.
    """

    def __init__(self, module: Module, *kinds: str) -> None:
        self._values, self._all, self._of = vars(module), module._kinds, kinds

    def __getitem__(self, name: str) -> Any:
        if self._all.get(name) not in self._of:
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if self._all.get(name) not in self._of:
            self._all.pop(name, None)
            self._values[name] = value
            self._all[name] = self._of[0]
        else:
            self._values[name] = value

    def __delitem__(self, name: str) -> None:
        if self._all.get(name) not in self._of:
            raise KeyError(name)
        del self._values[name], self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._all.items() if kind in self._of])

    def __len__(self) -> int:
        return sum(kind in self._of for kind in self._all.values())

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    # Those of a dict can be reversed.
    def keys(self) -> KeysView[str]:
        return self.copy().keys()

    def values(self) -> ValuesView[Any]:
        return self.copy().values()

    def items(self) -> ItemsView[str, Any]:
        return self.copy().items()

    def copy(self) -> dict[str, Any]:
        return {name: self._values[name] for name in self}

    def __repr__(self) -> str:
        return repr(self.copy())


# --- errors ---------------------------------------------------------------------------------------


class NotInitialized:
    """An attribute of modules until `Module.__init__` has set it."""

    def __get__(self, module: Any | None, owner: type) -> Any:
        if module is not None:
            raise not_initialized(module, "Module.__init__() has not been called")


def missing_forward(module: Module) -> str:
    """Return what an error says of a module that is called and has no `forward`."""
    import difflib  # for errors alone

    mend = "define forward(self, ...) in the class"
    if isinstance(module, Iterable):
        mend = "it holds modules alone: call each, as in for layer in layers: x = layer(x)"
    elif close := difflib.get_close_matches("forward", vars(type(module)), 1, 0.8):
        mend = f"is {close[0]!r} misspelt?"
    return f'Module [{type(module).__name__}] is missing the required "forward" function: {mend}'


def not_initialized(module: Any, text: str) -> AttributeError:
    kind = type(module).__name__
    return AttributeError(f"{text}: {kind} has to call super().__init__() in its __init__, first")


def check_member(name: str, kind: str, value: Any) -> None:
    """Raise if a member is assigned something of another kind."""
    if value is None or (kind in BUFFERS and isinstance(value, Tensor)):
        return
    expected = {PARAMETER: "nn.Parameter", MODULE: "nn.Module"}.get(kind, "Tensor")
    title = {MODULE: "child module", TRANSIENT: BUFFER}.get(kind, kind)
    raise ArgumentTypeError(
        f"cannot assign {type(value).__name__!r} object as {title} {name!r} ({expected} or None "
        f"expected): write {expected}(...) of it, or use another name"
    )
