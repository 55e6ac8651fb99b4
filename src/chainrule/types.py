"""Types for annotations, under the names of `torch.types`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chainrule.arguments import DeviceLike as DeviceLikeType
from chainrule.autograd.size import Size
from chainrule.autograd.tensor import Tensor as Tensor
from chainrule.missing_names import missing

__all__ = ["Device", "DeviceLikeType", "FileLike", "Number", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = DeviceLikeType | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]

_int, _float, _bool, _complex = int, float, bool, complex
_dtype = np.dtype
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
