"""While a function is traced, the trace answers for tensors, and sees arrays and draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainrule import arguments, sampling
from chainrule.autograd.overlay import answering, asking
from chainrule.compiler.symbol import TRACING
from chainrule.errors import RAISED

if TYPE_CHECKING:
    from chainrule.compiler.trace import Trace


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Let `trace` answer for all tensors, in this thread or task."""
    token, errors = TRACING.set(trace), RAISED.set(trace.errors)
    drawn, made = sampling.WATCHER.set(trace.draw), arguments.WATCHER.set(trace.seen)
    try:
        with answering(trace):
            yield
    finally:
        arguments.WATCHER.reset(made)
        sampling.WATCHER.reset(drawn)
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
