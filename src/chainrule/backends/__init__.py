"""Settings of PyTorch's backends, which scripts read and set: here they have no effect."""

from chainrule.arguments import DeviceLike
from chainrule.backend import CPU
from chainrule.backend import device as as_device
from chainrule.backends import cuda, cudnn, mps
from chainrule.errors import DeviceError

__all__ = [
    "are_deterministic_algorithms_enabled",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "cuda",
    "cudnn",
    "get_default_device",
    "get_float32_matmul_precision",
    "mps",
    "preserve_format",
    "set_default_device",
    "set_float32_matmul_precision",
    "sparse_coo",
    "sparse_csr",
    "strided",
    "use_deterministic_algorithms",
]

strided, sparse_coo, sparse_csr = "torch.strided", "torch.sparse_coo", "torch.sparse_csr"
"""Layouts, which `Tensor.layout` returns."""

channels_last, channels_last_3d = "torch.channels_last", "torch.channels_last_3d"
contiguous_format, preserve_format = "torch.contiguous_format", "torch.preserve_format"
"""Formats of memory, which functions accept without effect."""


def set_default_device(device: DeviceLike) -> None:
    """Accept the CPU, on which tensors are made if `device=` is left out.

    Raises
    ------
    DeviceError
        For another device.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_default_device("cpu")
    """
    if device is not None and as_device(device) != CPU:
        raise DeviceError(
            f"set_default_device({str(device)!r}): tensors are made on the CPU: say device= in "
            "the functions that make them, or .to(device)"
        )


def get_default_device() -> as_device:
    """Return the CPU, on which tensors are made if `device=` is left out."""
    return CPU


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: results are always deterministic."""
    return True


def get_float32_matmul_precision() -> str:
    """Return "highest": products of float32 are always exact to float32."""
    return "highest"


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
