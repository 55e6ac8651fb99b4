"""Errors of array libraries, reworded for users of tensors."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

from numpy.linalg import LinAlgError as NumPyLinAlgError

from chainrule.autograd.location import INTERNAL, is_installed
from chainrule.backend import CPU, device_of, is_current
from chainrule.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    LinAlgError,
    OutOfBoundsError,
    ShapeError,
)
from chainrule.primitives.primitive import Primitive

Array = Any


def fail(error: Exception, primitive: Primitive, arrays: tuple[Array, ...]) -> NoReturn:
    """Raise the error of computing `primitive` on `arrays`, reworded where possible."""
    better = _explained(error, primitive, arrays)
    try:
        if better is error:
            raise error
        raise better from None
    finally:
        del better, error, arrays  # the traceback holds this frame: no cycle


def fail_in_program(error: Exception, title: str) -> NoReturn:
    """Raise NumPy's error in a compiled function as eager mode does, as one of ours.

    An error in code of the user, which the program calls, stays as it is.
    """
    kind, innermost = _OURS.get(type(error)), error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    file = "" if innermost is None else innermost.tb_frame.f_code.co_filename
    better = error
    if kind is not None and (INTERNAL[file] or is_installed(file)):
        better = kind(f"compile({title}): {error}")
        better.__traceback__ = error.__traceback__  # which ends in the generated source
    try:
        if better is error:
            raise error
        raise better from None
    finally:
        del innermost, better, error  # the traceback holds this frame: no cycle


_OURS: dict[type, type[Exception]] = {
    ValueError: ArgumentError,
    IndexError: OutOfBoundsError,
    NumPyLinAlgError: LinAlgError,
}


def _explained(error: Exception, primitive: Primitive, arrays: tuple[Array, ...]) -> Exception:
    if isinstance(error, DeviceError):  # a function that CuPy lacks
        return error
    try:
        check_devices(arrays, primitive.name)
    except DeviceError as better:
        return better
    if isinstance(error, NumPyLinAlgError):
        return LinAlgError(f"{primitive.name}: {error}")
    shapes = [tuple(array.shape) for array in arrays]
    if primitive.form == "binary" and not primitive.broadcasts:  # a matrix product
        return ShapeError(_matmul_text(*shapes))
    if len(shapes) > 1 and isinstance(error, ValueError) and not primitive.joint:
        text = broadcast_text(shapes)
        if text:
            fit = _fit_text(shapes) if len(shapes) == 2 else ""
            return ShapeError(f"{text} ({primitive.name} of shapes {shapes}){fit}")
    if isinstance(error, TypeError) and _DTYPE_WORDS.search(str(error)):
        dtypes = " and ".join([str(array.dtype) for array in arrays])
        return DTypeError(f"{primitive.name} of {dtypes}: {error}{_mend_of_bits(primitive.name)}")
    if isinstance(error, IndexError):
        return OutOfBoundsError(f"{error} ({primitive.name} of a tensor of shape {shapes[0]})")
    if type(error) is ValueError:
        kind = ShapeError if _SHAPE_WORDS.search(str(error)) else ArgumentError
        mend = ": write x.float(), or 1 / x" if "negative integer powers" in str(error) else ""
        return kind(f"{primitive.name}: {error} (shapes {shapes}){mend}")
    return error


def check_devices(arrays: Sequence[Array], operation: str) -> None:
    """Raise if arrays are on different devices."""
    devices = {device_of(array) for array in arrays}
    if len(devices) == 1 and (device := devices.pop()) != CPU and not is_current(device):
        raise DeviceError(
            f"{operation}: the tensors are on {device}, which is not the current device: compute "
            f"with them in a block, with cr.cuda.device({device.index}):"
        )
    if len(devices) > 1:
        raise DeviceError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(map(str, devices)))}, in {operation}. "
            + (
                "Functions of chainrule.scipy make arrays on the CPU: move the tensors with .cpu()."
                if _is_within_scipy()
                else "Move one with .to(device)."
            )
        )


def _is_within_scipy() -> bool:
    """Return whether a function of `chainrule.scipy` is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith(_SCIPY):
        frame = frame.f_back
    return frame is not None


_SCIPY = "chainrule.scipy."


def _mend_of_bits(name: str) -> str:
    if not name.startswith("bitwise"):
        return ""
    return (
        ". & and | bind more tightly than a comparison: write (a > 0) & (b > 0). The operands are "
        "integers or bools"
    )


_DTYPE_WORDS = re.compile("ufunc|boolean|dtype")
_SHAPE_WORDS = re.compile("shape|dimension|axis|axes|broadcast|size|ndim")


def broadcast_text(shapes: list[tuple[int, ...]]) -> str:
    """Return PyTorch's message about the first dimension that doesn't broadcast."""
    names = "abcdefgh"
    ndim = max(map(len, shapes))
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    for dim in range(ndim - 1, -1, -1):
        sizes = [shape[dim] for shape in aligned]
        odd = [(size, names[i]) for i, size in enumerate(sizes) if size != 1]
        for size, name in odd[1:]:
            if size != odd[0][0]:
                return (
                    f"The size of tensor {odd[0][1]} ({odd[0][0]}) must match the size of tensor "
                    f"{name} ({size}) at non-singleton dimension {dim}"
                )
    return ""


def _fit_text(shapes: list[tuple[int, ...]]) -> str:
    """Return which simple change of one of two shapes makes them broadcast, "" if none does."""
    for own, other, name in (shapes[0], shapes[1], "a"), (shapes[1], shapes[0], "b"):
        if len(own) < len(other) and own and not broadcast_text([(*own, 1), other]):
            return f": {name}.unsqueeze(-1) would fit"
        if name == "b" and len(own) == 2 == len(other) and own[::-1] == other:
            return ": b.mT would fit"
    return ""


def _matmul_text(x: tuple[int, ...], y: tuple[int, ...]) -> str:
    if len(x) == 2 == len(y):
        text = f"mat1 and mat2 shapes cannot be multiplied ({x[0]}x{x[1]} and {y[0]}x{y[1]})"
    elif len(x) == 1 == len(y):
        text = (
            f"inconsistent tensor size, expected tensor [{x[0]}] and src [{y[0]}] to have the "
            "same number of elements"
        )
    else:
        text = f"matmul: shapes {x} and {y} cannot be multiplied"
    rule = "the last dimension of the first must equal the second's rows"
    if len(x) > 1 < len(y) and x[-1] == y[-1]:
        return f"{text}: {rule}, as for x @ y.mT"
    if len(x) > 1 < len(y) and x[-2] == y[-2]:
        return f"{text}: {rule}, as for x.mT @ y"
    if len(x) > 1 == len(y) and x[-2] == y[0]:
        return f"{text}: {rule}, as for y @ x"
    if len(x) > 2 == len(y) and math.prod(x[1:]) == y[0]:
        return f"{text}: {rule}, as for x.flatten(1) @ y"
    return f"{text}: {rule}"


def mend_of_other(value: Any, mend: str) -> str:
    """Return what a value is that should be a Tensor, and what to write instead."""
    mend = "for the derivative of a function, write cr.grad(f)(x)" if callable(value) else mend
    return f"no Tensor but {type(value).__name__}: {mend}"


def mismatch_text(given: Any, grad: Any, root: Any, index: int) -> str:
    """Return the message about a gradient that has another shape than its tensor."""
    sizes, mend = ", ".join(map(str, root.shape)), ""
    if grad.ndim == 0:
        full = f".expand({sizes})" if given is grad else f"cr.full([{sizes}], {given!r})"
        mend = f": write {full}"
    elif grad.size == root.size:
        mend = f": write .reshape({sizes or '()'})"
    return (
        f"Mismatch in shape: grad_output[{index}] has a shape of {list(grad.shape)} and "
        f"output[{index}] has a shape of {list(root.shape)}. A gradient must have its tensor's "
        f"shape{mend}."
    )


def constant_text(index: int, told: str, found: str, is_recording: bool) -> str:
    """Return the message about a root of a pass that no tensor that requires grad led to.

    `found` says where its history ended, if the source tells.
    """
    reason = found or (
        "Was it computed under no_grad, detached, rebound as in w = w - lr * w.grad under no_grad, "
        "or from a gradient that was taken without create_graph=True?"
    )
    if not found and not is_recording:
        reason = (
            "Nothing is recorded here, in a block of no_grad, a hook or a backward: compute it "
            "under cr.enable_grad()."
        )
    asked = "" if found else " cr.why() of it tells."
    return (
        f"element {index} of tensors does not require grad and does not have a grad_fn: no "
        f"operation with a tensor that requires grad led to it. {told}{reason}{asked} With "
        "autograd_grad(..., materialize_grads=True), the gradient of a constant is zeros"
    )
