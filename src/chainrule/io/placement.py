"""Placement of loaded arrays: tensors on the devices that ``map_location`` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, cuda_is_available, device, device_of, move
from chainrule.errors import ArgumentTypeError, DeviceError, FormatError

MapLocation = str | device | Mapping[str, Any] | Callable[[Tensor, str], Tensor | None] | None

_DEVICES = (
    *("cpu", "cuda", "hip", "hpu", "ipu", "maia", "meta", "mps", "mtia", "npu", "privateuseone"),
    *("vulkan", "xla", "xpu"),
)
"""Kinds of devices that PyTorch has."""


class Placement:
    """The rule by which loaded tensors come to their devices."""

    def __init__(self, map_location: MapLocation) -> None:
        if isinstance(map_location, str | device):
            self._target: device | None = device(map_location)
        elif map_location is None or isinstance(map_location, Mapping) or callable(map_location):
            self._target = None
        else:
            raise ArgumentTypeError(
                "cr.load: map_location must be a device, its name, a dict of names or a function, "
                f"got {type(map_location).__name__}"
            )
        self._rule = map_location
        self._moved: dict[tuple[int, device], tuple[Any, Any]] = {}  # by the array, and with it

    def tensor(
        self, array: np.ndarray[Any, Any], location: str, requires_grad: bool, parameter: bool
    ) -> Tensor:
        """Return a leaf with the memory of an array, or a copy on another device."""
        if requires_grad and array.dtype.kind not in "fc":
            raise FormatError(f"cr.load: a tensor of {array.dtype} cannot require grad")
        key = id(array), self._device(array, location)
        if key not in self._moved:
            self._moved[key] = array, move(array, key[1])
        found = make(self._moved[key][1], None)
        if parameter:
            found._member = "parameter"
        return found.requires_grad_() if requires_grad else found

    def _device(self, array: np.ndarray[Any, Any], location: str) -> device:
        if self._target is not None:
            return self._target
        wanted: Any = location
        if isinstance(self._rule, Mapping):
            wanted = self._rule.get(location, location)
        elif callable(self._rule):
            moved = self._rule(make(array, None), location)
            wanted = location if moved is None else device_of(moved._array)
        if str(wanted) == "cpu":
            return CPU
        if str(wanted).partition(":")[0] not in _DEVICES:
            raise FormatError(f"cr.load: the file is damaged: a tensor was on {location!r}")
        if str(wanted).partition(":")[0] != "cuda" or not cuda_is_available():
            raise DeviceError(
                f"cr.load: a tensor was saved on {location!r}, which this machine lacks: say "
                "cr.load(f, map_location='cpu')"
            )
        return device(wanted)
