"""Settings under the names of `torch.backends.cuda`, without effect."""

from types import SimpleNamespace

from chainrule.backend import cuda_is_available as is_built

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)
