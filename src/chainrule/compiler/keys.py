"""Indices in a trace: what they hold may be symbols, and what is a mask has to be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.errors import CompileError


def plain_key(key: Any) -> Any:
    """Return an index whose lists are arrays."""
    if isinstance(key, tuple):
        return tuple(map(plain_key, key))
    return np.asarray(key) if isinstance(key, list) else key


def without_masks(key: Any) -> Any:
    """Return an index with positions in the place of masks, which have to be known."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(map(_is_mask, parts)):
        return key
    found: list[Any] = []
    for part in parts:
        if not _is_mask(part):
            found.append(part)
            continue
        trace = TRACING.get()
        mask = None if trace is None else trace.known(part)
        if mask is None:
            raise CompileError(
                "x[mask] has a shape that depends on values, which a compiled function doesn't "
                "know: use where(mask, x, 0), or multiply with the mask"
            )
        found += np.nonzero(mask)
    return tuple(found)


def _is_mask(part: Any) -> bool:
    return isinstance(part, Symbol | np.ndarray) and part.dtype.kind == "b"


def is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(part, Symbol) for part in parts) and is_basic_index(key)
