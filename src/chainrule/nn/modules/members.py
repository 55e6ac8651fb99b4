"""Registered members of a module: parameters, buffers and submodules, which are its attributes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

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

    def __repr__(self) -> str:
        return repr(dict(self))
