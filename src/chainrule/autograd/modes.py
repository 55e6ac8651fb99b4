"""Grad mode, anomaly mode and saved-tensor hooks: contexts that switch them, and queries."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar, cast, overload

import numpy as np

from chainrule.errors import ArgumentTypeError, AutogradError
from chainrule.interrupts import P, T, call_with, from_first_instruction

# --- mode contexts --------------------------------------------------------------------------------
#
# The modes are one immutable record in a context variable, so they follow threads and asyncio
# tasks. None is the usual state (recording, nothing else), which is all that the hot path tests. A
# record refers to the one it replaced and to its context manager, so a context manager can be
# entered repeatedly, and contexts can end in another order than they began, as in generators.

F = TypeVar("F", bound=Callable[..., Any])


class Anomaly(NamedTuple):
    """The settings of anomaly mode, and what it has seen so far."""

    forward: bool  # raise at the operation that makes a nan
    infinity: bool  # infinities count as nan does
    origins: dict[int, Any]  # by id of an array: where its nan or infinity began
    operands: MutableMapping[Any, Any]  # by node: the arrays that it was computed from


class Modes:
    """The modes in force, and those to return to. Immutable: `changed` returns a new record.

    A class with slots, since every operation in a `no_grad` block or a pass reads `grad`: that of a
    named tuple takes three times as long.

    Two fields follow from the others: `special`, whether recorders do more than record, and `idle`,
    whether they do nothing at all.
    """

    __slots__ = (
        "anomaly",
        "context",
        "check_nan",
        "default_dtype",
        "explain",
        "grad",
        "hooks_refused",
        "nesting",
        "outer",
        "saved_hooks",
        "idle",
        "special",
        "_in_float64",
        "_unrecorded",
    )

    def __init__(
        self,
        grad: bool = True,
        anomaly: Anomaly | None = None,
        check_nan: bool = True,
        saved_hooks: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
        default_dtype: Any = None,  # instead of the one of the process
        hooks_refused: str | None = None,  # why `saved_tensors_hooks` must not be used
        outer: Modes | None = None,
        context: Any = None,  # the context manager that made it, or its class
        nesting: int = 0,  # number of backward passes around it
        explain: Any = None,  # sees each operation, under `explain()`
    ) -> None:
        self.grad = grad
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.explain = explain
        looks_on = explain is not None or (anomaly is not None and check_nan)
        self.special = saved_hooks is not None or looks_on
        self.idle = not grad and not looks_on
        self.saved_hooks = saved_hooks
        self.default_dtype = default_dtype
        self.hooks_refused = hooks_refused
        self.outer = outer
        self.context = context
        self.nesting = nesting
        self._unrecorded: Modes | None = None
        self._in_float64: Modes | None = None

    def in_force(self) -> tuple[Any, ...]:
        """Return the modes without those to return to, for comparison."""
        own = self.grad, self.anomaly, self.check_nan, self.explain
        return (*own, self.saved_hooks, self.default_dtype, self.hooks_refused)

    def changed(self, **changes: Any) -> Modes:
        """Return a copy of these modes with some changes."""
        return Modes(**({name: getattr(self, name) for name in _FIELDS} | changes))

    def unrecorded(self) -> Modes:
        """Return these modes without recording and without hooks of saved tensors."""
        if not self.grad and self.saved_hooks is None:
            return self
        if self._unrecorded is None:  # kept for the next call
            self._unrecorded = self.changed(grad=False, saved_hooks=None)
        return self._unrecorded

    def in_float64(self) -> Modes:
        """Return these modes with NumPy's default dtype."""
        if self._in_float64 is None:  # kept for the next call
            self._in_float64 = self.changed(default_dtype=np.dtype(np.float64))
        return self._in_float64


_DERIVED = ("idle", "special", "_unrecorded", "_in_float64")
_FIELDS = tuple(name for name in Modes.__slots__ if name not in _DERIVED)

DEFAULT = Modes()
RECORDED, UNRECORDED = Modes(grad=True), Modes(grad=False)
MODES: ContextVar[Modes | None] = ContextVar("chainrule modes", default=None)
current_modes: Callable[[], Modes | None] = MODES.get


def normalized(modes: Modes) -> Modes | None:
    """Return None for the usual state outside of any context, for which the hot path tests."""
    usual = modes.in_force() == DEFAULT.in_force()
    return None if usual and modes.outer is None is modes.context else modes


def modes() -> Modes:
    """Return the modes in force."""
    return MODES.get() or DEFAULT


_UNREAD: Any = object()


class _ModeType(type):
    """The type of modes, which raises where one is entered that has not been called."""

    def __enter__(cls) -> None:
        raise ArgumentTypeError(
            f"with cr.{cls.__name__}: enters the class: write with cr.{cls.__name__}():"
        )

    def __exit__(cls, *details: object) -> None:
        pass


class ModeContext(metaclass=_ModeType):
    """A context manager and decorator that changes some fields of the modes."""

    _changes: dict[str, Any]
    _alone: Modes | None = None  # the record for entry in the usual state, prepared

    def entered(self, outer: Modes | None) -> Modes:
        """Return the modes in this context, entered from `outer`."""
        if outer is None and self._alone is not None:
            return self._alone
        return (outer or DEFAULT).changed(**self._changes, outer=outer, context=self)

    def left(self, inner: Modes | None) -> Modes | None:
        """Return the modes after this context, which ends in the modes `inner`."""
        if inner is self._alone:
            return None
        record = inner
        while (
            record is not None and record.context is not self and record.context is not type(self)
        ):
            record = record.outer  # of a context that is still to end
        return inner if record is None else record.outer

    def __enter__(self) -> Any:
        outer = MODES.get()
        try:
            MODES.set(self.entered(outer))
            return self
        except BaseException:
            MODES.set(outer)
            raise

    @from_first_instruction
    def __exit__(self, *details: object, _inner: Any = _UNREAD) -> None:
        try:
            _inner = MODES.get()
            MODES.set(self.left(_inner))
        except BaseException:
            MODES.set(self.left(MODES.get() if _inner is _UNREAD else _inner))
            raise

    def __call__(self, function: F) -> F:
        """Return `function` running in this mode; a generator runs in it at each step."""
        if not callable(function):
            raise ArgumentTypeError(
                f"{type(self).__name__} is a context manager or a decorator of functions, got "
                f"{type(function).__name__}: for a flag there is set_grad_enabled(flag)"
            )
        if inspect.isgeneratorfunction(function):
            return cast(F, self._around_generator(function))
        if inspect.isasyncgenfunction(function):
            return cast(F, self._around_async_generator(function))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast(F, coroutine)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return run_in(self, function, *args, **kwargs)

        return cast(F, wrapper)

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = run_in(self, function, *args, **kwargs)
            resumed = _GeneratorStep(self)
            step: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with resumed:
                        value = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with resumed:
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)

        return wrapper

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            generator = function(*args, **kwargs)
            resumed = _GeneratorStep(self)
            step: Callable[[], Any] = functools.partial(generator.asend, None)
            while True:
                try:
                    with resumed:
                        value = await step()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                    step = functools.partial(generator.asend, sent)
                except GeneratorExit:
                    with resumed:
                        await generator.aclose()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.athrow, error)

        return wrapper


class _GeneratorStep:
    """The context of each step of a generator: its decorator's, and those that it has entered."""

    def __init__(self, context: ModeContext) -> None:
        self._context = context
        self._within: Modes | None = None

    def __enter__(self) -> None:
        self._outer = outer = MODES.get()
        self._own = own = self._context.entered(outer)
        try:
            MODES.set(own if self._within is None else self._within)
        except BaseException:
            MODES.set(outer)
            raise

    @from_first_instruction
    def __exit__(self, *details: object) -> None:
        try:
            last = MODES.get()
            inside = last is not None and last.context is not self._own.context
            self._within = last if inside else None
            MODES.set(self._outer)
        except BaseException:
            MODES.set(self._outer)
            raise


def run_in(
    context: ModeContext, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in a mode. In this package it stands for `with`: see `interrupts`."""
    return call_with({MODES: context.entered(MODES.get())}, function, *args, **kwargs)


# --- the modes ------------------------------------------------------------------------------------


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded.

    Examples
    --------
    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """
    modes = current_modes()
    return modes is None or modes.grad


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on: see `detect_anomaly`.

    Examples
    --------
    >>> is_anomaly_enabled()
    False
    """
    return modes().anomaly is not None


_NOT_RECORDING: dict[str, Any] = {"grad": False}
_RECORDING: dict[str, Any] = {"grad": True}


class no_grad(ModeContext):
    """Run a block, a function or a generator without recording.

    Results in it don't require grad and have no `grad_fn`; writing in place to leaves is allowed,
    which is how parameters are updated by hand.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor(2.0, requires_grad=True)
    >>> with cr.no_grad():
    ...     y = w * 3
    >>> y.requires_grad
    False
    """

    _changes = _NOT_RECORDING

    @overload
    def __new__(cls) -> Self: ...

    @overload
    def __new__(cls, function: Callable[..., Any]) -> Any: ...

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)  # @no_grad without parentheses


class enable_grad(no_grad):
    """Record in a block, a function or a generator, also inside `no_grad`.

    Examples
    --------
    >>> with no_grad(), enable_grad():
    ...     is_grad_enabled()
    True
    """

    _changes = _RECORDING


for _context in (no_grad, enable_grad):
    _context._alone = Modes(**_context._changes, context=_context)


class set_grad_enabled(ModeContext):
    """Switch recording on or off: at once when called, until the end when used as a block.

    Parameters
    ----------
    mode : bool
        True records, False does not.

    Examples
    --------
    >>> with set_grad_enabled(False):
    ...     is_grad_enabled()
    False
    >>> is_grad_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        self._switch({"grad": bool(mode)})

    def _switch(self, changes: dict[str, Any]) -> None:
        self._changes = changes
        self._before = before = MODES.get()
        try:
            MODES.set(normalized((before or DEFAULT).changed(**changes)))
        except BaseException:
            MODES.set(before)
            raise

    def left(self, inner: Modes | None) -> Modes | None:
        after = record = super().left(inner)
        if after is inner:
            return after  # an outer context has ended this one already
        while record is not None:
            if record.context is self:
                return after  # entered several times
            record = record.outer
        # The modes before the call that made this context, within those around it now.
        before = {name: getattr(self._before or DEFAULT, name) for name in self._changes}
        return normalized((after or DEFAULT).changed(**before))

    def __call__(self, function: F) -> F:
        MODES.set(self._before)  # a decorator switches when its function runs, not now
        context = enable_grad() if self._changes["grad"] else no_grad()
        return context(function)


prepare_looking: list[Callable[[], None]] = []
"""Called before a mode that looks on is entered: the recorders then show it all operations."""


def _anomaly(forward: bool, infinity: bool) -> Anomaly:
    for prepare in prepare_looking:
        prepare()
    return Anomaly(bool(forward), bool(infinity), {}, weakref.WeakKeyDictionary())


class detect_anomaly(ModeContext):
    """Find the operation that makes a nan, in the forward computation or in a backward pass.

    A backward pass raises at the first nan of a gradient. The error names the operation and its
    line, the element, the values there, the pattern where it is a known one (0 * inf behind a
    `where`, the root of 0, ...), and what to write instead. If a pass starts at a nan, a warning
    names the operation that made the first one. Compiled functions run eagerly in this mode, so the
    line is that of the operation; under `vmap`, the example is named, too.

    Parameters
    ----------
    check_nan : bool, default True
        Raise when a gradient becomes nan.
    forward : bool, default False
        Also raise in the forward computation, at the operation that makes a nan of other numbers.
        By default it is only remembered, since a `where` may yet leave it out.
    infinity : bool, default False
        Treat infinities as nan is treated, if they are made of finite numbers. By default they are
        only named as the origin of a nan: masks of ``-inf`` and logarithms of 0 are often meant.

    Raises
    ------
    AutogradError
        At the operation that makes the first nan.

    Warns
    -----
    UserWarning
        That the mode is on, and when a backward pass starts at a nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(0.0, requires_grad=True)
    >>> with cr.detect_anomaly():
    ...     (cr.sqrt(x) * 0).backward()
    Traceback (most recent call last):
    chainrule.errors.AutogradError: Function 'SqrtBackward0' returned nan values in its 0th...
    >>> import numpy as np
    >>> with np.errstate(invalid="ignore"), cr.detect_anomaly(forward=True):
    ...     cr.softmax(cr.full((2,), -cr.inf), 0)
    Traceback (most recent call last):
    chainrule.errors.AutogradError: softmax made a nan at element [0]...
    """

    def __init__(
        self, check_nan: bool = True, *, forward: bool = False, infinity: bool = False
    ) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode should be enabled only for debugging: "
            "it makes operations and passes slower",
            stacklevel=2,
        )
        self._changes = {"anomaly": _anomaly(forward, infinity), "check_nan": check_nan}


class set_detect_anomaly(set_grad_enabled):
    """Switch anomaly mode on or off: at once when called, until the end when used as a block.

    Parameters
    ----------
    mode : bool
        True switches it on.
    check_nan, forward, infinity : bool
        As in `detect_anomaly`.

    Examples
    --------
    >>> with set_detect_anomaly(True):
    ...     is_anomaly_enabled()
    True
    """

    def __init__(
        self,
        mode: bool,
        check_nan: bool = True,
        *,
        forward: bool = False,
        infinity: bool = False,
    ) -> None:
        found = _anomaly(forward, infinity) if mode else None
        self._switch({"anomaly": found, "check_nan": check_nan})

    def __call__(self, function: F) -> F:
        raise ArgumentTypeError("use detect_anomaly() as the decorator")


class saved_tensors_hooks(ModeContext):
    """Pass every tensor that the graph saves through `pack`, and `unpack` it when it's needed.

    Parameters
    ----------
    pack_hook : callable
        Gets each saved tensor once, unrecorded, and returns any object: a file name, a copy in half
        precision, the tensor on another device.
    unpack_hook : callable
        Gets that object, any number of times, and returns a tensor equal to the first.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(3.0, requires_grad=True)
    >>> with cr.saved_tensors_hooks(lambda t: t.item(), lambda v: cr.tensor(v)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.item()
    6.0
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._changes = {"saved_hooks": (pack_hook, unpack_hook)}

    def entered(self, outer: Modes | None) -> Modes:
        _refuse_hooks((outer or DEFAULT).hooks_refused)
        return super().entered(outer)


def _refuse_hooks(reason: str | None) -> None:
    if reason is not None:
        raise AutogradError(reason)


class disable_saved_tensors_hooks(ModeContext):
    """Refuse `saved_tensors_hooks` in a block: for code that would be wrong with them.

    Parameters
    ----------
    error_message : str
        The message of the error that is raised.

    Raises
    ------
    AutogradError
        Of this message, if hooks are in force already.

    Examples
    --------
    >>> import chainrule as cr
    >>> with cr.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with cr.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
    chainrule.errors.AutogradError: ...no hooks here...
    """

    def __init__(self, error_message: str) -> None:
        self._changes = {"hooks_refused": error_message}

    def entered(self, outer: Modes | None) -> Modes:
        if (outer or DEFAULT).saved_hooks is not None:
            _refuse_hooks(self._changes["hooks_refused"])
        return super().entered(outer)


def inference_mode(mode: Any = True) -> Any:
    """Run a block, a function or a generator without recording: here the same as `no_grad`.

    PyTorch's tensors made in it can never be recorded again; these can.

    Parameters
    ----------
    mode : bool, default True
        False records, also inside a block of True.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor(2.0, requires_grad=True)
    >>> with cr.inference_mode():
    ...     y = w * 3
    >>> y.requires_grad
    False
    """
    if callable(mode):
        return no_grad(mode)
    return no_grad() if mode else enable_grad()
