"""`compile`: trace a function once for each signature, then run it as a program."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, overload

import numpy as np

from chainrule.autograd.error_messages import fail_in_program
from chainrule.autograd.function_wrapper import FunctionWrapper, Made, reduced, under
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.location import user_function
from chainrule.autograd.modes import MODES
from chainrule.autograd.remarks import STRICT, tell, told_about
from chainrule.compiler.build import Built, build
from chainrule.compiler.copies import is_copy, rebound
from chainrule.compiler.cost import Report
from chainrule.compiler.guards.signature import Signature
from chainrule.compiler.guards.source import MISS
from chainrule.compiler.tracing.object_kinds import is_constant
from chainrule.compiler.tracing.varying_numbers import Place, changed_places
from chainrule.compiler.verify.compare import RUNS_EAGERLY, Difference, call_verified
from chainrule.compiler.verify.state import State
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    VerificationError,
)
from chainrule.interrupts import call_with
from chainrule.transforms.arguments import title_of

_WARN_AT_SIGNATURES = 16
"""Number of signatures, or of traces without reuse, at which a warning says what changes."""

_MAX_ENTRIES = 64
"""Number of signatures whose programs are kept."""

_VERIFIED_FIRST = 2
"""Number of first calls of each signature that are verified: the traced one, and a later one."""

_VERIFIED_EVERY = 100
"""Number of calls of a signature of which one is verified, by default."""

_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Flags of code that an event loop runs."""


class Compiled:
    """A compiled function: called as the function is, with its programs as attributes."""

    __slots__ = (  # of no attributes that `functools.wraps` copies to a function, to be pickled
        *("__dict__", "__weakref__", "_constant", "_entries", "_last", "_lock", "_single_use"),
        "_varying",
    )

    default_dtype: np.dtype[Any] | None = None  # if it came from a process with another one
    every: int = 0  # number of calls of which one is verified; 0: none is
    found_as: tuple[str, str] | None = None  # module and name by which it came
    strict: bool = False  # whether what is left to Python or NumPy is an error

    def __init__(self, function: Callable[..., Any], backend: str | None) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.backend = backend
        self._entries: tuple[Built, ...] = ()
        self._lock = threading.RLock()
        self._last: Built | None = None
        self._single_use = 0  # traces whose program serves no later call
        self._varying: dict[Any, Place] = {}  # the places of numbers that have changed, by key
        self._constant: set[Any] = set()  # the keys of those that a program has to know
        _INSTANCES[id(self)] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entries = self._entries
        try:
            for entry in entries:
                result = entry.call(args, kwargs)
                if result is not MISS:
                    return result
        except (ValueError, IndexError) as error:
            fail_in_program(error, title_of(self.function))
        return self._first(args, kwargs, entries)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the function: of a module, `parameters` and `train`."""
        if name == "function" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__qualname__', self.function)}>"

    def _repr_html_(self) -> str:
        module: Any = import_module("chainrule.visualization.notebook")  # an upper layer
        html: str = module.compiled_html(self)
        return html

    def __reduce__(self) -> Any:
        settings = {"strict": True} if self.strict else {}
        made = Made(_compiled_again, (self.function, self.backend, self.every), settings)
        return reduced(self, made)

    def under(self, dtype: np.dtype[Any]) -> Compiled:
        """Return this function with a default dtype of its own."""
        return _compiled_again(self.function, self.backend, self.every, dtype, self.strict)

    def _first(self, args: Any, kwargs: Any, entries: tuple[Built, ...]) -> Any:
        """Run a call that none of `entries` serves: trace it, and keep the program."""
        if not _may_compile():
            strict = self.strict or STRICT.get()
            return call_with({STRICT: strict}, self.function, *args, **kwargs)
        with self._lock:
            if self._entries is not entries:  # another thread has compiled since
                return self(*args, **kwargs)
            for built in _programs_of_copies(self):
                result = self._run(built.call, args, kwargs)
                if result is not MISS:
                    self._last = built
                    self._entries = (built, *entries)[:_MAX_ENTRIES]
                    return result
            built = self._build(args, kwargs)
            for remark in built.remarks:  # before anything is kept: the warning may be an error
                if remark.is_told:
                    tell(remark, told_about(self.function))
            self._last = built
            if is_copy(self.function):
                _keep(self)
            if built.reusable:
                self._entries = (built, *self._entries)[:_MAX_ENTRIES]
            else:
                self._single_use += 1
            self._warn_of_compilations(built, entries)
            return self._run(built.first, args, kwargs)

    def _warn_of_compilations(self, built: Built, earlier: tuple[Built, ...]) -> None:
        """Warn once if calls are traced again and again, for a reason that the user can mend."""
        if not built.reusable and self._single_use == _WARN_AT_SIGNATURES:
            warnings.warn(
                f"{self!r} was traced anew at each of {_WARN_AT_SIGNATURES} calls: it keeps a "
                "tensor, changes a number, list or attribute that it finds by name, returns an "
                "object of its own, or reads a clock or a file. Return tensors instead, and count "
                "and read outside",
                UserWarning,
                stacklevel=4,
            )
        if built.reusable and len(self._entries) == _WARN_AT_SIGNATURES:
            changes = built.signature.changes(earlier[0].signature)
            warnings.warn(
                f"{self!r} was compiled {_WARN_AT_SIGNATURES} times, for as many signatures, this "
                f"time since {'; '.join(changes)}: pass what changes at each call as a tensor. (A "
                "program leaves a Python number open that is used in arithmetic alone; int(), "
                "math.sqrt() or an index read its value)",
                UserWarning,
                stacklevel=4,
            )

    def _run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        try:
            return call(args, kwargs)
        except (ValueError, IndexError) as error:
            fail_in_program(error, title_of(self.function))

    def _build(self, args: Any, kwargs: Any) -> Built:
        """Trace a call; numbers that are others than in the programs so far are left open."""
        numbers = itertools.chain.from_iterable(entry.numbers for entry in self._entries)
        for place in changed_places(numbers, args, kwargs):
            if place.key not in self._constant:
                self._varying[place.key] = place
        varying = [*self._varying.values()]
        built = build(self.function, args, kwargs, self.backend, self.strict, varying)
        for place, _ in built.numbers:
            if self._varying.pop(place.key, None) is not None:
                self._constant.add(place.key)
        return built

    def built_for(self, args: Any, kwargs: Any) -> Built:
        """Return what serves a call, traced if the signature is new; don't run it."""
        for entry in self._entries:
            if entry.arrays(args, kwargs) is not MISS:
                return entry
        return self._build(args, kwargs)

    def _built(self) -> Built:
        if self._last is None:
            raise CompileError(
                f"{self!r} has not been compiled yet: call it once, since a program is made for "
                "the shapes and dtypes of a call"
            )
        return self._last

    @property
    def signatures(self) -> list[Signature]:
        """The signatures of the programs that are kept, in the order of compilation.

        Each is a dict of descriptions by name; ``later.changes(earlier)`` lists the differences
        that made another program necessary. Its `remarks` name what runs slower than as machine
        code, as those of `profile` do.

        Examples
        --------
        >>> import chainrule as cr
        >>> scaled = cr.compile(lambda x, rate: x * rate)
        >>> _ = scaled(cr.ones(2), 0.5), scaled(cr.ones(3), 0.1)
        >>> first, second = scaled.signatures
        >>> second.changes(first)
        ['x is float32 [3], was float32 [2]', 'rate is any float, was 0.5']
        """
        return [entry.signature for entry in reversed(self._entries)]

    @property
    def source(self) -> str:
        """The NumPy source of the program compiled last."""
        return self._built().text

    @property
    def source_native(self) -> str:
        """The source of the machine code compiled last, as LLVM's emitter takes it.

        It has loops over memory, and NumPy calls between them. Empty if NumPy runs the program.
        """
        return self._built().native

    @property
    def program(self) -> Report:
        """The program compiled last: prints as typed operations, with its cost."""
        return Report(self._built().programs)


def _may_compile() -> bool:
    """Whether calls run compiled: not within a trace or a vmap, or where a mode looks on."""
    modes = MODES.get()
    return INTERCEPTOR.get() is None and not (modes and modes.special)


class Verified(Compiled):
    """A compiled function that compares some of its calls with the eager function."""

    __slots__ = ("_known",)

    _verifying = threading.RLock()  # the state that a verification puts back is shared

    def __init__(self, function: Callable[..., Any], backend: str | None, every: int) -> None:
        super().__init__(function, backend)
        self.every = every
        # For the call of each program: number of calls, and what the function found at first.
        self._known: weakref.WeakKeyDictionary[Any, tuple[int, Signature]] = (
            weakref.WeakKeyDictionary()
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if RUNS_EAGERLY.get():
            return self.function(*args, **kwargs)
        if not _may_compile():
            return super().__call__(*args, **kwargs)
        with Verified._verifying:
            entry = self._serving(args, kwargs)
            count, before = 0, Signature()
            if entry is not None:
                count, before = self._known.get(entry.call, (0, Signature()))
                self._known[entry.call] = count + 1, before
            if count >= _VERIFIED_FIRST and (count + 1) % self.every:
                return super().__call__(*args, **kwargs)
            return self._verify(args, kwargs, before)

    def _serving(self, args: Any, kwargs: Any) -> Built | None:
        """Return the program that serves a call, if there is one."""
        found = (entry for entry in self._entries if entry.arrays(args, kwargs) is not MISS)
        return next(found, None)

    def _verify(self, args: Any, kwargs: Any, before: Signature) -> Any:
        state, run = State(self.function, args, kwargs), super().__call__
        if not state.restorable:
            return run(*args, **kwargs)
        found = Signature(state.plain)

        def explain() -> str:
            return self._changes(args, kwargs, found, before)

        try:
            result = call_verified(self.function, run, state, args, kwargs, explain)
        except Difference as error:
            raise VerificationError(
                f"verify: a call of {self!r} differs from the function: {error}"
            ) from None
        entry = self._serving(args, kwargs)
        if entry is not None and not self._known.get(entry.call, (0, Signature()))[1]:
            self._known[entry.call] = 1, found
        return result

    def _changes(self, args: Any, kwargs: Any, now: Signature, before: Signature) -> str:
        """Say what has changed since the trace of the program that serves a call."""
        changes = now.changes(before) if before and before != now else []
        found = [f"Changed since the trace: {'; '.join(changes[:3])}"] if changes else []
        text = self._built().text
        lines = build(self.function, args, kwargs, "numpy").text.splitlines()
        pairs = itertools.zip_longest(lines, text.splitlines(), fillvalue="nothing")
        pair = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if pair is not None:
            new, old = (line.split("  #")[0].strip() for line in pair)
            found.append(
                f"A new trace has {new!r} in the place of {old!r}: what the function finds by "
                "name and the compiler does not see is better passed as an argument"
            )
        else:
            found.append(
                "A new trace gives the same program: either the function uses or changes something "
                "that the compiler does not see, or this is a bug of the compiler, please report it"
            )
        return ". ".join(found)


class _CompiledUnder(Compiled):
    """A compiled function from a process with another default dtype."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self.default_dtype is not None
        return under(self.default_dtype, super().__call__)(*args, **kwargs)

    def built_for(self, args: Any, kwargs: Any) -> Built:
        assert self.default_dtype is not None
        built: Built = under(self.default_dtype, super().built_for)(args, kwargs)
        return built


class _VerifiedUnder(_CompiledUnder, Verified):
    """A verified function from a process with another default dtype."""


_INSTANCES: weakref.WeakValueDictionary[int, Compiled] = weakref.WeakValueDictionary()


def _living() -> list[Compiled]:
    """Return all compiled functions; other threads may make some meanwhile."""
    return [found for ref in _INSTANCES.valuerefs() if (found := ref()) is not None]


_MAX_UNPICKLED = 16
"""Number of compiled functions from pickles that are kept, to be found by those that follow."""

_unpickled: deque[Compiled] = deque(maxlen=_MAX_UNPICKLED)


def _made(
    function: Callable[..., Any],
    backend: str | None,
    every: int,
    dtype: Any = None,
    strict: bool = False,
) -> Compiled:
    """Return a new compiled function."""
    found: Compiled
    if every:
        found = (Verified if dtype is None else _VerifiedUnder)(function, backend, every)
    else:
        found = (Compiled if dtype is None else _CompiledUnder)(function, backend)
    found.default_dtype, found.strict = dtype, strict
    return found


def _compiled_again(
    function: Callable[..., Any],
    backend: str | None,
    every: int,
    dtype: np.dtype[Any] | None = None,
    strict: bool = False,
) -> Compiled:
    """Return the compiled function of a pickle: the living one of the same function, if any."""
    wanted = (backend, every, str(dtype), strict)
    for living in _living():
        if _settings(living) == wanted and _is_same(living.function, function):
            found = living
            break
    else:
        found = _made(function, backend, every, dtype, strict)
    _keep(found)
    return found


def _keep(compiled: Compiled) -> None:
    """Keep a compiled function from a pickle, longer than those kept before."""
    with contextlib.suppress(ValueError, IndexError):  # another thread may change it
        _unpickled.remove(compiled)
    _unpickled.append(compiled)


def _programs_of_copies(compiled: Compiled) -> Iterator[Built]:
    """Yield the programs of functions that were unpickled from the same bytes, for this one."""
    code = _code_of(compiled.function)
    unpickled = any(each is compiled for each in _unpickled)  # maybe with objects of its own
    for other in _living():
        known = _code_of(other.function) if other._entries and other is not compiled else None
        if known is None or (known is code and not unpickled) or known != code:
            continue
        if _settings(other) == _settings(compiled):
            found = (rebound(built, other.function, compiled.function) for built in other._entries)
            yield from filter(None, found)


def _code_of(function: Any) -> Any:
    """Return the code that a call of a function, or of an object such as a module, runs first."""
    inner = user_function(function)
    called = inner if hasattr(inner, "__code__") else type(inner).__call__
    return getattr(called, "__code__", None)


def _settings(compiled: Compiled) -> tuple[str | None, int, str, bool]:
    dtype = str(compiled.default_dtype)  # None == np.float64
    return compiled.backend, compiled.every, dtype, compiled.strict


def _is_same(one: Any, other: Any) -> bool:
    """Whether two functions are the same, or made of the same one in the same way."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, types.MethodType):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    if isinstance(one, FunctionWrapper):
        return one.default_dtype is other.default_dtype and _is_same((*one.made,), (*other.made,))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict):
        return _is_same(list(one.items()), list(other.items()))
    return is_constant(one) and not callable(one) and bool(one == other)


def _renew_locks() -> None:
    """Replace the locks in a forked child, where threads that held them don't exist."""
    Verified._verifying = threading.RLock()
    for compiled in _living():
        compiled._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def uncompiled(function: Any) -> Any:
    """Return the function, or bound method, that was compiled; others as they are."""
    if isinstance(function, types.MethodType):
        return types.MethodType(uncompiled(function.__func__), function.__self__)
    return function.function if isinstance(function, Compiled) else function


def _verified_every(verify: bool | int | None) -> int:
    """Return the number of calls of which one is verified; 0 to verify none."""
    given, kinds = f"compile(verify={verify!r})", "True, False, None"
    if verify is None:
        text = os.environ.get(VERIFY_VARIABLE, "")
        given, kinds = f"{VERIFY_VARIABLE}={text}", "on, off"
        words: dict[str, bool | int] = {"": False, "0": False, "off": False, "on": True}
        verify = words.get(text, int(text) if text.isdigit() else -1)
    if verify is False or verify is True:
        return _VERIFIED_EVERY if verify else 0
    if not isinstance(verify, int) or verify < 1:
        raise ArgumentError(
            f"{given}: expected {kinds} or the number of calls of which one is verified, 1 or more"
        )
    return verify


VERIFY_VARIABLE = "CHAINRULE_VERIFY"
"""Environment variable that sets `verify` where it is not given: ``on``, ``off`` or a number."""


@overload
def compile(
    function: Callable[..., Any],
    *,
    backend: str | None = None,
    verify: bool | int | None = None,
    strict: bool = False,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
) -> Compiled: ...


@overload
def compile(
    function: None = None,
    *,
    backend: str | None = None,
    verify: bool | int | None = None,
    strict: bool = False,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
) -> Callable[[Callable[..., Any]], Compiled]: ...


def compile(
    function: Any = None,
    *,
    backend: str | None = None,
    verify: bool | int | None = None,
    strict: bool = False,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
) -> Any:
    """Compile a function, which then runs as a program of NumPy calls or machine code.

    The function is traced once for each signature that it is called with: it runs on symbols,
    which have a shape and a dtype but no elements. A signature consists of the shapes, dtypes and
    `requires_grad` of tensors and arrays among the arguments, the values of all other arguments,
    the grad mode, and the tensors and numbers that the function finds by name. A number that
    changes is left open by the next program, as far as nothing depends on it but arithmetic. The
    trace becomes a program, which runs at this and all later calls: backward passes, updates in
    place and optimiser steps included.

    Parameters
    ----------
    function : callable
        Of tensors, NumPy arrays, numbers, and containers of them. It may return any of these, and
        write to tensors that it closes over. Without `function`, `compile` returns a decorator.
    backend : {"numpy", "native", None}
        The form of the program: NumPy calls, or loops of machine code with NumPy calls between
        them, which need LLVM (``pip install 'chainrule[native]'``). By default machine code if
        llvmlite is installed and the loops do enough work to be worth compiling.
    verify : bool or int, optional
        Compare calls with the eager function, which runs as well: with True the first two calls of
        each signature and then every hundredth, with a number k every k-th. A difference beyond
        rounding raises VerificationError. By default the environment variable
        ``CHAINRULE_VERIFY`` decides: ``on``, ``off`` or a number; no call is compared without it.
    strict : bool, default False
        Raise an error in the place of each PerformanceWarning, those of `vmap` in the function
        included. With ``backend="native"``, elementwise functions and reductions without machine
        code are errors outside of loops, too.
    mode, fullgraph, dynamic
        As in PyTorch, without effect: a function is one graph always, for the shapes at hand.

    Returns
    -------
    Compiled
        Called as the function is. Its `source` is the NumPy source that runs, its `program` the
        typed operations from which the source was generated. If arguments require grad and the
        function has not called `backward()` itself, the result can be differentiated like that of
        any operation.

    Raises
    ------
    TypeError
        If `function` is not callable.
    CompileError
        If the function reads values (``if x > 0``, `item`), makes an array whose shape depends on
        values, or leaves tensors with a history behind: the message names the line. With `strict`,
        if it has no machine code for all that it should have.
    MissingRuleError
        With `strict`, if a `vmap` in the function has no batching rule for an operation.
    VerificationError
        If a verified call differs from the eager one: the message names the first differences,
        and what has changed since the trace.

    Warns
    -----
    PerformanceWarning
        Once for each function and operation: if Python runs the steps of a loop since an operation
        in it has no machine code, or if the machine code would take longer to compile than
        ``CHAINRULE_COMPILE_SECONDS`` (default 5) allows for a call.

    Notes
    -----
    Side effects of Python code happen once, when the function is traced: it prints once, and a
    list that it appends to gets one entry. A Python number is a constant of the first program. When
    it changes, a second one leaves it open, and serves all values. A comparison of the number needs
    a program for each outcome, and code that reads its value (`int`, an index, `math.sqrt`) one for
    each value.

    Random numbers drawn by functions of chainrule are drawn anew at each call, as in eager mode.
    Draws by a method of a NumPy generator, or from a generator that the function makes, raise
    CompileError.

    Results are the same as in eager mode to the bit, except for sums that are computed as dot
    products, and factors that are moved to the smaller operand of a product.

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
        return functools.partial(compile, backend=backend, verify=verify, strict=strict)
    if isinstance(function, Compiled):
        if verify is None and strict <= function.strict:
            return function
        strict, backend = strict or function.strict, backend or function.backend
        every = function.every if verify is None else _verified_every(verify)
        return _made(function.function, backend, every, strict=strict)
    if not callable(function):
        raise ArgumentTypeError(
            f"compile() takes a function, got {type(function).__name__}: write compile(f), and "
            "call what it returns as you would call f"
        )
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _ASYNCHRONOUS:
        raise ArgumentTypeError(
            f"compile() takes a function that returns its result, got {code.co_name}, a coroutine "
            "function: compile what it calls"
        )
    return _made(function, backend, _verified_every(verify), strict=strict)
