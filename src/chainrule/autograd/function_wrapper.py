"""Functions made of others by a transform, and how they are pickled.

A pickle holds the name of such a function, or how it was made, and the settings of the process that
affect its results, so that another process computes what this one would have.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.modes import ModeContext, run_in
from chainrule.autograd.tensor import default_dtype

# --- settings -------------------------------------------------------------------------------------


class Settings(NamedTuple):
    """The settings of a process; `num_threads` is None unless it was set."""

    default_dtype: str
    kernels: str
    num_threads: int | None


def settings() -> Settings:
    """Return the settings in force."""
    eager = sys.modules.get(_KERNELS)
    kernels = "numpy" if eager is None else eager.get_kernels()
    threads = sys.modules.get(_THREADS)
    number = threads.get_num_threads() if threads and threads.has_chosen() else None
    return Settings(default_dtype().name, kernels, number)


_KERNELS = "chainrule.compiler.eager"  # a layer above this module
_THREADS = "chainrule.kernels.threads"  # which few processes need


def _adopt(name: str, wanted: Settings) -> np.dtype[Any] | None:
    """Take over the settings of a pickle; return the default dtype if it is another one.

    The default dtype is that of each call. Kernels and threads are those of the process: a process
    that has not chosen them gets those of the pickle, and any other refuses it.
    """
    here = settings()
    if wanted.kernels != here.kernels:
        eager = importlib.import_module(_KERNELS)
        if eager.has_chosen():
            raise _refusal(name, "kernels", wanted.kernels, here.kernels)
        eager.set_kernels(wanted.kernels)
    if wanted.num_threads not in (None, here.num_threads):
        threads = importlib.import_module(_THREADS)
        if threads.has_chosen():
            raise _refusal(name, "num_threads", wanted.num_threads, here.num_threads)
        threads.set_num_threads(wanted.num_threads)
    return None if wanted.default_dtype == here.default_dtype else np.dtype(wanted.default_dtype)


def _refusal(name: str, setting: str, wanted: Any, here: Any) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        f"{name} was pickled where {setting} is {wanted!r}, but this process has set it to "
        f"{here!r}: call cr.set_{setting}({wanted!r}) here before the pickle is read, or "
        f"cr.set_{setting}({here!r}) before it is written"
    )


class _DefaultDType(ModeContext):
    """The default dtype in a block, in this thread."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._changes = {"default_dtype": dtype}


def under(dtype: np.dtype[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs with another default dtype."""
    return functools.partial(run_in, _DefaultDType(dtype), function)


# --- pickles --------------------------------------------------------------------------------------


class Made(NamedTuple):
    """The call that made a function."""

    maker: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def reduced(function: Any, made: Made, owner: type | None = None) -> tuple[Any, ...]:
    """Return what a pickle holds of a function: its name, or how it was made; and settings.

    `owner` is a class that has the function as its attribute `apply`.
    """
    own = settings()
    if function.default_dtype is not None:
        own = own._replace(default_dtype=function.default_dtype.name)
    title = getattr(function, "__qualname__", made.maker.__name__)
    names = [(getattr(function, "__module__", None), title)]
    if owner is not None:
        names.append((owner.__module__, f"{owner.__qualname__}.apply"))
    name = function.found_as or next((each for each in names if _find(*each) is function), None)
    if name is None or _by_value(sys._getframe(2), name[0]):
        return restored, (title, tuple(own), None, *made)
    return restored, (title, tuple(own), name)


def restored(
    title: str,
    wanted: tuple[Any, ...],
    name: tuple[str, str] | None,
    maker: Any = None,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return a function of a pickle."""
    dtype = _adopt(title, Settings(*wanted))
    if name is not None:
        importlib.import_module(name[0])
        function = _find(*name)
        if function is None:
            raise AttributeError(f"{name[0]} has no {name[1]}, by which it was pickled")
    else:
        function = maker(*args, **(kwargs or {}))
    if dtype is None or not hasattr(function, "under"):
        return function
    found = function.under(dtype)
    found.found_as = name
    return found


def _find(module: Any, name: str) -> Any:
    """Return what a module defines by a name, None if it doesn't."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _by_value(frame: types.FrameType | None, module: Any) -> bool:
    """Whether the pickler that asks stores functions of a module by value, as cloudpickle does.

    Other processes may lack `__main__`, and modules that were registered.
    """
    space = {} if frame is None else frame.f_globals
    if "cloudpickle" not in str(space.get("__name__")):
        return False
    registered = getattr(sys.modules.get(space["__name__"]), "list_registry_pickle_by_value", set)
    parts = str(module).split(".")
    packages = {".".join(parts[: i + 1]) for i in range(len(parts))}
    return module == "__main__" or not packages.isdisjoint(registered())


class FunctionWrapper(functools.partial[Any]):
    """A function made of another one; called at the cost of `functools.partial`, without arguments.

    Users may set attributes, as of any function. It becomes a method in a class.
    """

    __slots__ = ("default_dtype", "found_as", "made")

    made: Made
    default_dtype: np.dtype[Any] | None  # if it came from a process with another one
    found_as: tuple[str, str] | None  # module and name by which it came

    def __new__(cls, function: Callable[..., Any], wrapped: Any, made: Made) -> FunctionWrapper:
        self = super().__new__(cls, function)
        self.made, self.default_dtype, self.found_as = made, None, None
        functools.update_wrapper(
            self, wrapped, updated=("__dict__",) if isinstance(wrapped, _FUNCTIONS) else ()
        )
        return self

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.made.maker.__name__} of {getattr(self, '__qualname__', self.func)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self, self.made)

    def under(self, dtype: np.dtype[Any]) -> FunctionWrapper:
        """Return this function with a default dtype of its own."""
        found = type(self)(under(dtype, self.func), self, self.made)
        found.default_dtype = dtype
        return found


_FUNCTIONS = (types.FunctionType, FunctionWrapper)
