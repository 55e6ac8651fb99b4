"""Settings under the names of `torch.backends.cudnn`, without effect."""

from collections.abc import Iterator
from contextlib import contextmanager

enabled = False
benchmark = False
deterministic = True  # results always are
allow_tf32 = False


def is_available() -> bool:
    """Return False: cuDNN is not used."""
    return False


def version() -> None:
    """Return None: cuDNN is not used."""


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Accept settings for a block."""
    yield
