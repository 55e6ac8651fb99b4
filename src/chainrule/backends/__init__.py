"""Settings of PyTorch's backends: the default device, and others without effect."""

from types import SimpleNamespace

from chainrule.arguments import DeviceLike
from chainrule.backend import CPU, DEFAULT_DEVICE, cuda_is_available
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
    "layout",
    "memory_format",
    "mps",
    "preserve_format",
    "set_default_device",
    "set_float32_matmul_precision",
    "sparse_coo",
    "sparse_csr",
    "strided",
    "use_deterministic_algorithms",
    "version",
]

version = SimpleNamespace(cuda=None, cudnn=None, hip=None, git_version="")
"""PyTorch's versions of other libraries: none of them is used."""

layout = memory_format = str
"""Types of the constants below, for annotations."""

strided, sparse_coo, sparse_csr = "torch.strided", "torch.sparse_coo", "torch.sparse_csr"
"""Layouts, which `Tensor.layout` returns."""

channels_last, channels_last_3d = "torch.channels_last", "torch.channels_last_3d"
contiguous_format, preserve_format = "torch.contiguous_format", "torch.preserve_format"
"""Formats of memory, which functions accept without effect."""


def set_default_device(device: DeviceLike) -> None:
    """Set the device on which this thread makes tensors if `device=` is left out.

    ``with cr.device(device):`` sets it for a block. Tensors made of other tensors are on their
    device, and those that share memory, as `from_numpy` makes them, stay where it is.

    Parameters
    ----------
    device : device, str or None
        None is the CPU.

    Raises
    ------
    DeviceError
        For a GPU where there is none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_default_device("cpu")
    """
    found = None if device is None else as_device(device)
    if found is not None and found.type == "cuda" and not cuda_is_available():
        raise DeviceError(
            f"set_default_device({str(device)!r}): there is no GPU here: say "
            "'cuda' if cr.cuda.is_available() else 'cpu'"
        )
    DEFAULT_DEVICE.set(None if found == CPU else found)


def get_default_device() -> as_device:
    """Return the device on which this thread makes tensors if `device=` is left out."""
    return DEFAULT_DEVICE.get() or CPU


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
