"""Settings under the names of `torch.backends.cuda`, without effect."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from chainrule.backend import cuda_is_available as is_built
from chainrule.nn.functional.attention import SDPBackend

__all__ = [
    "SDPBackend",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "is_built",
    "matmul",
    "sdp_kernel",
]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)


def enable_flash_sdp(enabled: bool) -> None:
    """Accept the choice of a kernel for attention: there is one."""


enable_math_sdp = enable_mem_efficient_sdp = enable_flash_sdp


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Accept the choice of kernels for attention in a block: there is one."""
    yield
