"""`compile`: a function that is traced once for each signature, and then runs as a program."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, overload

from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.modes import MODES
from chainrule.compiler.build import Built, build
from chainrule.compiler.cost import Report
from chainrule.compiler.guards.signature import Signature
from chainrule.compiler.guards.source import MISS
from chainrule.errors import ArgumentError, CompileError

_MANY = 16
"""From so many signatures on, something changes at each call that should be an argument."""


class Compiled:
    """What `compile` returns: called as the function is, and able to show what it became."""

    def __init__(self, function: Callable[..., Any], backend: str | None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.backend = backend
        self._entries: tuple[Built, ...] = ()
        self._lock = threading.RLock()
        self._last: Built | None = None
        self._fleeting = 0  # signatures that served one call
        _EVERY.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entries = self._entries
        for entry in entries:
            result = entry.call(args, kwargs)
            if result is not MISS:
                return result
        return self._first(args, kwargs, entries)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__qualname__', self.function)}>"

    def __reduce__(self) -> Any:
        """Copies and pickles are of the function; one that a module has by its name is that name.

        They compile anew.
        """
        name = getattr(self, "__qualname__", "")
        space: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in name.split("."):
            space = getattr(space, part, None)
        return name if space is self else (Compiled, (self.function, self.backend))

    def _first(self, args: Any, kwargs: Any, entries: tuple[Built, ...]) -> Any:
        """Run a call that none of `entries` serves: trace it, and keep the program."""
        modes = MODES.get()
        if INTERCEPTOR.get() is not None or (modes and (modes.anomaly or modes.saved_hooks)):
            return self.function(*args, **kwargs)
        with self._lock:
            if self._entries is not entries:  # another thread has come before
                return self(*args, **kwargs)
            built = build(self.function, args, kwargs, self.backend)
            self._last = built
            if not built.lasting:
                self._fleeting += 1
                if self._fleeting == _MANY:
                    warnings.warn(
                        f"{self!r} was traced anew at each of {_MANY} calls: it keeps a tensor, "
                        "changes a number, list or attribute that it finds by name, or returns an "
                        "object of its own. Return tensors instead, and count outside",
                        UserWarning,
                        stacklevel=3,
                    )
            else:
                self._entries = (built, *self._entries)[:_MOST]
                if len(self._entries) == _MANY:
                    changes = built.signature.changes(entries[0].signature)
                    warnings.warn(
                        f"{self!r} was compiled {_MANY} times, for as many signatures, this time "
                        f"since {'; '.join(changes)}: a Python number that changes at each call "
                        "is better passed as a tensor",
                        UserWarning,
                        stacklevel=3,
                    )
            return built.first(args, kwargs)

    def built_for(self, args: Any, kwargs: Any) -> Built:
        """Return the signature that serves a call, traced if it is new; nothing is run."""
        for entry in self._entries:
            if entry.arrays(args, kwargs) is not MISS:
                return entry
        return build(self.function, args, kwargs, self.backend)

    def _built(self) -> Built:
        if self._last is None:
            raise CompileError(
                f"{self!r} has not been compiled yet: call it once, since a program is made for "
                "the shapes and dtypes of a call"
            )
        return self._last

    @property
    def signatures(self) -> list[Signature]:
        """What the programs that are kept were made for, the first one first.

        Each is a dict of descriptions by name; ``later.changes(earlier)`` says in words what made
        another program necessary.

        Examples
        --------
        >>> import chainrule as cr
        >>> scaled = cr.compile(lambda x, rate: x * rate)
        >>> _ = scaled(cr.ones(2), 0.5), scaled(cr.ones(3), 0.1)
        >>> first, second = scaled.signatures
        >>> second.changes(first)
        ['x is float32 [3], was float32 [2]', 'rate is 0.1, was 0.5']
        """
        return [entry.signature for entry in reversed(self._entries)]

    @property
    def source(self) -> str:
        """The NumPy source that the last new signature became."""
        return self._built().text

    @property
    def source_native(self) -> str:
        """The source of the machine code that the last new signature became, as Numba takes it.

        Loops over memory, and the NumPy calls between them. Empty where NumPy runs.
        """
        return self._built().native

    @property
    def program(self) -> Report:
        """The program that the last new signature became: prints as typed lines, with its cost."""
        return Report(self._built().programs)


_MOST = 64

_EVERY: weakref.WeakSet[Compiled] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child, no thread goes on tracing that another one had begun."""
    for compiled in _EVERY:
        compiled._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def plain(function: Any) -> Any:
    """Return a function, or a bound method, as it was before it was compiled."""
    if isinstance(function, types.MethodType):
        return types.MethodType(plain(function.__func__), function.__self__)
    return function.function if isinstance(function, Compiled) else function


@overload
def compile(function: Callable[..., Any], *, backend: str | None = None) -> Compiled: ...


@overload
def compile(
    function: None = None, *, backend: str | None = None
) -> Callable[[Callable[..., Any]], Compiled]: ...


def compile(function: Any = None, *, backend: str | None = None) -> Any:
    """Compile a function: at each call it runs as a program of NumPy calls.

    The function is run once on symbols, which have a shape and a dtype and no elements, for each
    signature that it is called with: the shapes, dtypes and `requires_grad` of the tensors and
    arrays among its arguments, the values of all other arguments, the grad mode, and the tensors
    and numbers that it finds by name. What it does then becomes a program, and the program runs at
    this and all later calls: backward passes, updates in place and optimiser steps included.

    Parameters
    ----------
    function : callable
        Of tensors, NumPy arrays, numbers, and containers of them. It may return any of these, and
        write to tensors that it closes over. Called without, `compile` returns a decorator.
    backend : {"numpy", "native", None}
        What the program becomes: NumPy calls, or loops of machine code with NumPy calls between
        them, for which Numba is needed (``pip install 'chainrule[native]'``). By default machine
        code where Numba is installed and the loops do enough work for it to be worth compiling.

    Returns
    -------
    Compiled
        Called as the function is. Its `source` is the NumPy source that runs, its `program` the
        typed lines that this was written from. Where arguments require grad and the function has
        not called `backward()` itself, the result can be differentiated as that of any operation.

    Raises
    ------
    TypeError
        If `function` is none.
    CompileError
        If the function looks at values (``if x > 0``, `item`), makes an array whose shape depends
        on them, or leaves tensors with a history behind: the message names the line.

    Notes
    -----
    What Python does besides happens once, when the function is traced: it prints once, and a list
    that it appends to gets one entry. A Python number among the arguments is a constant of the
    program; one that changes at each call is better passed as a tensor.

    Random numbers that functions of chainrule draw are drawn anew at each call, as eagerly. What a
    function draws by a method of a NumPy generator, or from a generator that it makes, is refused.

    Results are those of the function run eagerly, to the bit, but for sums, of which some are taken
    as dot products, and factors that are moved to the smaller operand of a product.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.compile
    ... def loss(w, x):
    ...     return (w * x).sum()
    >>> w = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> loss(w, cr.tensor([3.0, 4.0])).backward()
    >>> w.grad
    tensor([3., 4.])
    >>> print(loss.source.splitlines()[0])
    def loss(w, x):
    """
    if backend not in (None, "numpy", "native"):
        raise ArgumentError(f"compile(backend={backend!r}): expected 'numpy', 'native' or None")
    if function is None:
        return functools.partial(compile, backend=backend)
    if isinstance(function, Compiled):
        return function
    if not callable(function):
        raise TypeError(
            f"compile() takes a function, got {type(function).__name__}: write compile(f), and "
            "call what it returns as you would call f"
        )
    return Compiled(function, backend)
