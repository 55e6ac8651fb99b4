"""Devices, and transfers of arrays between them. Only this module imports CuPy."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

import numpy as np

from chainrule.errors import ArgumentError, DeviceError, MissingExtraError

Array = Any


class device:
    """The device of an array: ``device("cpu")``, ``device("cuda")``, ``device("cuda:1")``.

    As a context manager, it is where tensors are made if ``device=`` is left out. PyTorch's "meta",
    of tensors without values, is the CPU: tensors there have values.

    Examples
    --------
    >>> device("cuda:1").index
    1
    >>> device("cpu") == "cpu"
    True
    """

    __slots__ = ("index", "type")

    def __init__(
        self, name: str | device = "cpu", index: int | None = None, *, type: str | None = None
    ) -> None:
        kind, _, number = str(type or name).partition(":")
        if kind == "meta":
            kind = "cpu"
        if kind in ("mps", "xpu", "hpu", "xla", "mtia"):
            raise DeviceError(
                f"device({str(name)!r}): arrays are on the CPU, or with CuPy on a GPU of NVIDIA's: "
                "say device('cpu'), or device('cuda')"
            )
        if kind not in ("cpu", "cuda") or not (number.isdigit() or not number):
            raise DeviceError(
                f"Expected one of cpu, cuda device type at start of device string: {name!r}"
            )
        self.type = kind
        self.index = int(number) if number else index
        if kind == "cuda" and self.index is None:
            self.index = 0

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})"
            if self.index is None
            else f"device(type={self.type!r}, index={self.index})"
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                other = device(other)
            except DeviceError:  # "auto", "mps": no device is equal
                return False
        if not isinstance(other, device):
            return NotImplemented
        return (self.type, self.index or 0) == (other.type, other.index or 0)

    def __hash__(self) -> int:
        return hash((self.type, self.index or 0))

    def __enter__(self) -> device:
        _OUTER.set((*_OUTER.get(), DEFAULT_DEVICE.set(self)))
        return self

    def __exit__(self, *error: object) -> None:
        *outer, token = _OUTER.get()
        DEFAULT_DEVICE.reset(token)
        _OUTER.set(tuple(outer))


CPU = device("cpu")

DEFAULT_DEVICE: ContextVar[device | None] = ContextVar("chainrule default device", default=None)
"""The device on which tensors are made if ``device=`` is left out: None is the CPU."""

_OUTER: ContextVar[tuple[Token[device | None], ...]] = ContextVar("outer devices", default=())


def device_of(array: Array) -> device:
    """Return the device that holds `array`."""
    if array.__class__ is np.ndarray:
        return CPU
    if isinstance(array, np.ndarray | np.generic) or array.device is CPU:
        return CPU
    return device("cuda", array.device.id)


def cuda_is_available() -> bool:
    """Return whether CuPy is installed and sees at least one CUDA device.

    Examples
    --------
    >>> cuda_is_available() in (True, False)
    True
    """
    try:
        return bool(cupy_module().cuda.runtime.getDeviceCount() > 0)
    except Exception:  # CuPy missing, or no driver
        return False


def is_current(target: device) -> bool:
    """Return whether a GPU is the current one, on which CuPy computes."""
    return bool(cupy_module().cuda.Device().id == target.index)


def move(array: Array, target: device) -> Array:
    """Return `array` on `target`; itself if it is there already."""
    here = device_of(array)
    if here is target or here == target:
        return array
    own = getattr(type(array), "namespace", None)  # symbols and batched arrays
    if own is not None:
        return own.to_device(array, source=here, target=target)
    if target.type == "cpu":
        return cupy_module().asnumpy(array)
    cupy = cupy_module()
    with cupy.cuda.Device(target.index):
        return cupy.asarray(array)


PLAIN_DTYPES = {dtype.char: dtype for dtype in map(np.dtype, "?bBhHiIlLqQefdFD")}
"""NumPy's only objects of the dtypes of tensors, by their characters."""


def with_plain_dtype(array: Array) -> Array:
    """Return an array whose dtype is NumPy's only object of it.

    Fast paths compare dtypes by identity. Pickles and byte orders make other, equal objects.
    """
    dtype = array.dtype
    plain = PLAIN_DTYPES.get(dtype.char)
    if dtype is plain or array.__class__ is not np.ndarray or dtype != plain:
        return array
    return array.view(plain)


def array_from_dlpack(x: Any, target: device | None, copy: bool | None) -> Array:
    """Return an array that shares the memory of an array of another library, through DLPack."""
    kind, _ = x.__dlpack_device__()
    # Old exporters lack the parameter `copy`, so it is passed only if given.
    settings = {} if copy is None else {"copy": copy}
    array = (np if int(kind) in _CPU_KINDS else cupy_module()).from_dlpack(x, **settings)
    if target is None or device_of(array) == target:
        return array
    if copy is False:
        raise ArgumentError(f"from_dlpack(copy=False): {device_of(array)} to {target} needs a copy")
    return move(array, target)


_CPU_KINDS = (1, 3)  # DLPack's kDLCPU, kDLCUDAHost


def address_of(array: Array) -> int:
    """Return the address of the first element."""
    on_host = device_of(array) == CPU
    return int(array.ctypes.data if on_host else array.data.ptr)


def storage_of(array: Array) -> Any:
    """Return the array that owns the memory of `array`; the same one for all its views."""
    while (inner := getattr(array, "memory", None)) is not None:  # wrappers of arrays
        array = inner
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray | type(array)):  # a subclass may be a view of another class
            array = base
        elif not isinstance(base, _STRIDED_BASE):
            break
        base = base.base
    return array


_STRIDED_BASE = type(np.lib.stride_tricks.as_strided(np.empty(1)).base)
"""Type of the object that `as_strided` puts between a view and its array."""


def cupy_module() -> Any:
    """Return CuPy; raise with the install command if it is missing."""
    try:
        import cupy
    except ImportError as error:
        raise MissingExtraError(
            "the cuda device needs CuPy, which is not installed: pip install 'chainrule[gpu]'"
        ) from error
    return cupy
