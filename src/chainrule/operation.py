"""Registration of public operations: every other spelling follows from one line above a function.

>>> from chainrule.operation import UFUNCS
>>> import chainrule as cr
>>> import numpy as np
>>> UFUNCS["exp"] is cr.exp is cr.Tensor.exp
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from chainrule.autograd.inplace import in_place, ufunc_in_place
from chainrule.autograd.operands import is_operand
from chainrule.autograd.tensor import Tensor
from chainrule.primitives.primitive import Primitive

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
P = ParamSpec("P")

UFUNCS: dict[str, Function] = {}
"""Functions of tensors by the name of the NumPy ufunc that they are."""

SCIPY_UFUNCS: dict[str, Function] = {}
"""The same for the ufuncs of `scipy.special`, by their `__name__`."""

NUMPY_FUNCTIONS: list[tuple[str, Function]] = []
"""NumPy functions as "name parameter ..." and the functions of tensors that they are: see
`interop.binding.rule` for how parameters are spelled."""

ARRAY_API: dict[str, Function] = {}
"""Functions of the array API standard that are the same in `chainrule`."""

_IN_PLACE: dict[tuple[Function, str], Function] = {}


def operation(
    *,
    aliases: str = "",
    method: bool | str = True,
    inplace: bool | str = False,
    operators: Mapping[str, Function | None] | None = None,
    ufunc: str = "",
    scipy: str = "",
    numpy: str | tuple[str, ...] = (),
    array_api: bool | str = False,
) -> Callable[[F], F]:
    """Register a public function under its other spellings, and return it as it is.

    Lists of names are separated by spaces. True stands for the function's own name and `aliases`.

    Parameters
    ----------
    aliases : str
        Other public names of the function in its module.
    method : bool or str
        Names of methods of `Tensor`.
    inplace : bool or str
        Names, without the underscore, of methods that write the result over their first argument.
        `inplace_form` returns them.
    operators : mapping of str to callable or None
        Special methods of `Tensor`, such as ``__add__``, and what they call: often the primitive
        itself, since small tensors notice each Python call. None: the in-place form.
    ufunc, scipy : str
        Names of the ufuncs of NumPy and of `scipy.special` that are this function.
    numpy : str or tuple of str
        Other NumPy functions that are this one, with the parameters that it takes.
    array_api : bool or str
        Names in the array API standard.
    """

    def register(function: F) -> F:
        names = [function.__name__, *aliases.split()]
        for name in _names(method, names):
            setattr(Tensor, name, function)
        for name in _names(inplace, names):
            form = _IN_PLACE[function, f"{name}_"] = _in_place_form(function, f"{name}_")
            setattr(Tensor, f"{name}_", form)
        for name, operator in (operators or {}).items():
            if operator is None:
                form = _IN_PLACE.get((function, f"{function.__name__}_"), function)
                operator = in_place_operator(form)
            setattr(Tensor, name, operator)
        UFUNCS.update(dict.fromkeys(ufunc.split(), function))
        SCIPY_UFUNCS.update(dict.fromkeys(scipy.split(), function))
        for spelling in (numpy,) if isinstance(numpy, str) else numpy:
            NUMPY_FUNCTIONS.append((spelling, function))
        ARRAY_API.update(dict.fromkeys(_names(array_api, names[:1]), function))
        return function

    return register


def _names(chosen: bool | str, own: list[str]) -> list[str]:
    if isinstance(chosen, str):
        return chosen.split()
    return own if chosen else []


# --- in place -------------------------------------------------------------------------------------


def inplace_form(function: Callable[P, Any], name: str = "") -> Callable[P, Tensor]:
    """Return the in-place form of a function that was registered with `inplace`."""
    return _IN_PLACE[function, name or f"{function.__name__}_"]


def _in_place_form(function: Function, name: str) -> Callable[..., Tensor]:
    def form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_tensor(name, input)
        return in_place(input, name, lambda t: function(t, *args, **kwargs))

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"Do `{function.__name__}` in place."
    return form


def check_tensor(name: str, input: Any) -> None:
    """Raise if the first argument of a function that writes in place is no tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' must be a Tensor, not {type(input).__name__}: what is "
            "written to in place has to be one already"
        )


# --- operators ------------------------------------------------------------------------------------

_USUAL = frozenset([Tensor, float, int])


def reflected(operator: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Return the special method for where the tensor is the right operand, as ``__rsub__``."""

    def method(x: Tensor, y: Any) -> Any:
        return operator(y, x)

    return method


def in_place_operator(form: Function) -> Callable[[Tensor, Any], Any]:
    """Return the special method, as ``__ipow__``, of a function that writes in place."""

    def method(x: Tensor, y: Any) -> Any:
        return form(x, y) if y.__class__ in _USUAL or is_operand(y) else NotImplemented

    return method


def ufunc_in_place_operator(name: str, primitive: Primitive) -> Callable[[Tensor, Any], Any]:
    """Return the special method, as ``__iadd__``, of a ufunc that writes straight into memory."""

    def method(x: Tensor, y: Any) -> Any:
        if y.__class__ in _USUAL or is_operand(y):
            return ufunc_in_place(x, name, primitive, y)
        return NotImplemented

    return method


# --- methods that are no functions, or not yet ----------------------------------------------------


def tensor_property(
    name: str, get: Function, set: Callable[[Any, Any], None] | None = None, *, doc: str
) -> None:
    """Give `Tensor` a property."""
    setattr(Tensor, name, property(get, set, doc=doc))


def lazy_methods(module: str, names: str) -> None:
    """Give `Tensor` methods whose functions are imported when they are first called."""
    for name in names.split():
        setattr(Tensor, name, _of_module(module, name))


def _of_module(module: str, name: str) -> Function:
    def method(x: Tensor, *arguments: Any, **settings: Any) -> Any:
        return getattr(import_module(module), name)(x, *arguments, **settings)

    method.__name__ = name
    method.__doc__ = f"Return `{module}.{name}` of the tensor."
    return method
