"""While a function is traced, the trace answers for tensors, and sees arrays and draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainrule import arguments
from chainrule.autograd.intercept import answering, asking
from chainrule.compiler.tracing.symbol import TRACING
from chainrule.errors import RAISED
from chainrule.random import draw

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Let `trace` answer for all tensors, in this thread or task."""
    token, errors = TRACING.set(trace), RAISED.set(trace.errors)
    drawn, made = draw.WATCHER.set(trace.draw), arguments.WATCHER.set(trace.seen)
    try:
        with answering(trace):
            yield
    finally:
        arguments.WATCHER.reset(made)
        draw.WATCHER.reset(drawn)
        RAISED.reset(errors)
        TRACING.reset(token)


@contextmanager
def within(trace: Trace | None) -> Iterator[None]:
    """While one traces, let another trace answer, or nobody."""
    token = TRACING.set(trace)
    try:
        with asking(trace):
            yield
    finally:
        TRACING.reset(token)
