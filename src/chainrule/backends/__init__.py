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
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_warn_always_enabled",
    "layout",
    "memory_format",
    "mps",
    "preserve_format",
    "set_default_device",
    "set_deterministic_debug_mode",
    "set_flush_denormal",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_warn_always",
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


def get_deterministic_debug_mode() -> int:
    """Return 2, "error": results are always deterministic."""
    return 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Do nothing: results are always deterministic.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_deterministic_debug_mode("warn")
    """


def get_num_interop_threads() -> int:
    """Return 1: operations run one after another; `get_num_threads` is for those within one."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing: operations run one after another.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_num_interop_threads(1)
    """


def set_flush_denormal(mode: bool) -> bool:
    """Return False, as PyTorch does where it can't: tiny numbers are never rounded to 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_flush_denormal(True)
    False
    """
    return False


def is_warn_always_enabled() -> bool:
    """Return False: how often a warning is shown is up to Python's filters."""
    return False


def set_warn_always(b: bool) -> None:
    """Do nothing: ``warnings.simplefilter("always")`` shows each warning every time.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_warn_always(True)
    """
