"""Registration of public operations: one decorator declares all other spellings of a function.

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
from chainrule.errors import ArgumentTypeError
from chainrule.primitives.primitive import Primitive

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
P = ParamSpec("P")

UFUNCS: dict[str, Function] = {}
"""Functions of tensors by the name of the NumPy ufunc that they implement."""

SCIPY_UFUNCS: dict[str, Function] = {}
"""Functions of tensors by the `__name__` of the `scipy.special` ufunc that they implement."""

NUMPY_FUNCTIONS: list[tuple[str, Function]] = []
"""NumPy functions as "name parameter ..." with the functions of tensors that implement them.

`interop.binding.rule` documents the spelling of parameters."""

ARRAY_API: dict[str, Function] = {}
"""Functions of the array API standard that `chainrule` implements unchanged."""

_IN_PLACE: dict[tuple[Function, str], Function] = {}
"""In-place forms by function and name."""


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
    """Register a public function under its other spellings, and return it unchanged.

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
        Special methods of `Tensor`, such as ``__add__``, and the functions that they call: often
        the primitive itself, which saves a Python call. None: the in-place form.
    ufunc, scipy : str
        Names of the ufuncs of NumPy and of `scipy.special` that this function implements.
    numpy : str or tuple of str
        Other NumPy functions that this function implements, with their parameters.
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


def _names(option: bool | str, default: list[str]) -> list[str]:
    """Return the names that an option of `operation` lists: `default` if it is True."""
    if isinstance(option, str):
        return option.split()
    return default if option else []


# --- in-place forms -------------------------------------------------------------------------------


def inplace_form(function: Callable[P, Any], name: str = "") -> Callable[P, Tensor]:
    """Return the in-place form of a function that was registered with `inplace`."""
    return _IN_PLACE[function, name or f"{function.__name__}_"]


def _in_place_form(function: Function, name: str) -> Callable[..., Tensor]:
    def form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_tensor(name, input)
        if "out" in kwargs:
            raise ArgumentTypeError(
                f"{name}() got an unexpected keyword argument 'out': it writes to its first "
                "argument"
            )
        return in_place(input, name, lambda t: function(t, *args, **kwargs))

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"Do `{function.__name__}` in place."
    return form


def check_tensor(name: str, input: Any) -> None:
    """Raise TypeError if the first argument of an in-place function is not a tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' must be a Tensor, not {type(input).__name__}: only "
            "a Tensor can be modified in place"
        )


# --- operators ------------------------------------------------------------------------------------

_COMMON_OPERANDS = frozenset([Tensor, float, int])
"""Types of operands that are accepted without calling `is_operand`."""


def reflected(operator: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Return a reflected special method, such as ``__rsub__``, of an operator."""

    def method(x: Tensor, y: Any) -> Any:
        return operator(y, x)

    return method


def in_place_operator(form: Function) -> Callable[[Tensor, Any], Any]:
    """Return an in-place special method, such as ``__ipow__``, of an in-place function."""

    def method(x: Tensor, y: Any) -> Any:
        return form(x, y) if y.__class__ in _COMMON_OPERANDS or is_operand(y) else NotImplemented

    return method


def ufunc_in_place_operator(name: str, primitive: Primitive) -> Callable[[Tensor, Any], Any]:
    """Return an in-place special method, such as ``__iadd__``, of a ufunc with `out`."""

    def method(x: Tensor, y: Any) -> Any:
        if y.__class__ in _COMMON_OPERANDS or is_operand(y):
            return ufunc_in_place(x, name, primitive, y)
        return NotImplemented

    return method


# --- properties and lazily imported methods -------------------------------------------------------


def tensor_property(
    name: str, get: Function, set: Callable[[Any, Any], None] | None = None, *, doc: str
) -> None:
    """Add a property to `Tensor`."""
    setattr(Tensor, name, property(get, set, doc=doc))


def lazy_methods(module: str, names: str) -> None:
    """Add methods to `Tensor` that import `module` when they are called."""
    for name in names.split():
        setattr(Tensor, name, _lazy_method(module, name))


def _lazy_method(module: str, name: str) -> Function:
    def method(x: Tensor, *arguments: Any, **settings: Any) -> Any:
        return getattr(import_module(module), name)(x, *arguments, **settings)

    method.__name__ = name
    method.__doc__ = f"Return `{module}.{name}` of the tensor."
    return method
