"""The modes in force, and the blocks that change them.

The modes are one immutable record in a context variable, so they follow threads and asyncio tasks.
None is the usual state (recording, nothing else): the hot path asks only for that. A record knows
the one it replaced and the block that made it, so one context manager object may be entered many
times, and blocks may end in another order than they began: those of generators do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Modes:
    """The modes in force, and those to return to. Nobody changes one: `changed` makes another.

    A class with slots, since every operation in a `no_grad` block or a pass asks for `grad`: a
    named tuple takes three times as long to answer.
    """

    __slots__ = (
        "anomaly",
        "block",
        "check_nan",
        "grad",
        "hooks_refused",
        "nesting",
        "outer",
        "saved_hooks",
    )

    def __init__(
        self,
        grad: bool = True,
        anomaly: bool = False,
        check_nan: bool = True,
        saved_hooks: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
        hooks_refused: str | None = None,  # why `saved_tensors_hooks` must not be used
        outer: Modes | None = None,
        block: Any = None,  # what made it: a block, or the class of one
        nesting: int = 0,  # how many passes this is inside of
    ) -> None:
        self.grad = grad
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.saved_hooks = saved_hooks
        self.hooks_refused = hooks_refused
        self.outer = outer
        self.block = block
        self.nesting = nesting

    def in_force(self) -> tuple[Any, ...]:
        """Return all but the modes to return to: equal where the same holds."""
        return (self.grad, self.anomaly, self.check_nan, self.saved_hooks, self.hooks_refused)

    def changed(self, **changes: Any) -> Modes:
        """Return these modes but for some."""
        return Modes(**({name: getattr(self, name) for name in Modes.__slots__} | changes))


DEFAULT = Modes()
MODES: ContextVar[Modes | None] = ContextVar("chainrule modes", default=None)
current_modes: Callable[[], Modes | None] = MODES.get


def simplest(modes: Modes) -> Modes | None:
    """Return None for the usual state, if no block is to end: the hot path asks for that."""
    usual = modes.in_force() == DEFAULT.in_force()
    return None if usual and modes.outer is None is modes.block else modes


def modes() -> Modes:
    """Return the modes in force."""
    return MODES.get() or DEFAULT


class Block:
    """A context manager and decorator that changes some fields of the modes."""

    _changes: dict[str, Any]
    _alone: Modes | None = None  # the record, where there is no block around: made beforehand

    def __enter__(self) -> Any:
        outer = MODES.get()
        if outer is None and self._alone is not None:
            MODES.set(self._alone)
        else:
            MODES.set((outer or DEFAULT).changed(**self._changes, outer=outer, block=self))
        return self

    def __exit__(self, *details: object) -> None:
        record = MODES.get()
        if record is self._alone:
            MODES.set(None)
            return
        while record is not None and record.block is not self and record.block is not type(self):
            record = record.outer  # that of a block which is still to end
        if record is not None:
            MODES.set(record.outer)

    def __call__(self, function: F) -> F:
        """Return `function` running in this mode; a generator runs in it at each step."""
        if not callable(function):
            raise TypeError(
                f"{type(self).__name__} decorates a function or stands in a `with`, and got "
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
            with self:
                return function(*args, **kwargs)

        return cast(F, wrapper)

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with self:
                generator = function(*args, **kwargs)
            resumed = _Step(self)
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
            resumed = _Step(self)
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


class _Step:
    """Around each step of a generator: in a block, and in those that it is in the middle of."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._within: Modes | None = None

    def __enter__(self) -> None:
        self._outer = MODES.get()
        self._block.__enter__()
        self._own = MODES.get()
        if self._within is not None:
            MODES.set(self._within)

    def __exit__(self, *details: object) -> None:
        last = MODES.get()
        inside = last is not None and self._own is not None and last.block is not self._own.block
        self._within = last if inside else None
        MODES.set(self._outer)
