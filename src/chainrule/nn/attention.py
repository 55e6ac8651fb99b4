"""`torch.nn.attention`: the choice of a kernel for attention, which has no effect."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chainrule.errors import ArgumentTypeError
from chainrule.missing_names import missing

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Names of kernels of PyTorch for `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Accept the choice of a kernel for attention, which PyTorch's scripts make.

    Parameters
    ----------
    backends : SDPBackend or sequence of them
        Without effect: there is one way to compute it.
    set_priority : bool, default False
        Without effect.

    Raises
    ------
    ArgumentTypeError
        If `backends` are others.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.nn.attention import SDPBackend, sdpa_kernel
    >>> q = cr.ones(1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     cr.nn.functional.scaled_dot_product_attention(q, q, q).shape
    (1, 2, 4)
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not all(isinstance(each, SDPBackend) for each in chosen):
        raise ArgumentTypeError(f"sdpa_kernel: expected SDPBackend or a list, got {backends!r}")
    yield


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
