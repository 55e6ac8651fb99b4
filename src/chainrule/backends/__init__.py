"""Settings of PyTorch's backends, which scripts read and set: here they have no effect."""

from chainrule.backends import cuda, cudnn, mps

__all__ = [
    "cuda",
    "cudnn",
    "mps",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: results are always deterministic.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.use_deterministic_algorithms(True)
    """


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products of float32 are always exact to float32.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_float32_matmul_precision("high")
    """
