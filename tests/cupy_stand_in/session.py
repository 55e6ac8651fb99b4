"""Runs of the tests on a device: `pytest --backend cuda`.

Tensors are made on the device, by the default device of each test, and what tests read of them is
copied to the host for them. Copies that chainrule makes itself, and calls of NumPy on arrays of the
device, fail the test: `DOORS` lists the functions that may wait for the device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from cupy_stand_in import installed, transfers

SOURCE = str(Path(cr.__file__).parent)
STAND_IN = str(Path(__file__).parent)


class SilentCopyError(AssertionError):
    """chainrule copied from the device to the host where the user didn't ask for it."""


_MASK = "the device alone knows how many elements a mask selects"
_CHECK = "an error depends on the values"
_ASKED = "the user asks for a truth value"
_METHOD = "the method depends on the values"

DOORS: dict[str, str] = {
    "backend/devices.py:move": "the user moves or prints a tensor",
    "autograd/tensor.py:item": "the user asks for a number",
    "autograd/tensor.py:tolist": "the user asks for numbers",
    "autograd/tensor.py:_scalar": "the user asks for a number",
    "autograd/conversions.py:formatted": "the user prints a number",
    "autograd/tensor.py:__bool__": "the user branches on a value",
    "autograd/tensor.py:__index__": "the user counts by a value",
    "autograd/tensor.py:__contains__": _ASKED,
    "backend/cupy_namespace.py:index": _MASK,
    "backend/cupy_namespace.py:write": _MASK,
    "backend/cupy_namespace.py:_combined": _MASK,
    "autograd/anomaly.py": "anomaly mode looks at values",
    "autograd/elements.py": "anomaly mode shows the element that went wrong",
    "checks/numerical.py": "gradcheck compares numbers",
    "autograd/inplace.py:_store": _MASK,
    "ops/comparison.py:allclose": _ASKED,
    "ops/comparison.py:equal": _ASKED,
    "optim/lbfgs.py": _METHOD,
    "backend/__init__.py:holds_somewhere": _CHECK,
    "backend/__init__.py:first_where": _CHECK,
    "ops/scatter.py:masked_scatter": _CHECK,
    "primitives/distances.py:_near_pair_blocks": _METHOD,
    "nn/functional/losses_classification.py:__init__": _CHECK,
    "nn/functional/losses_classification.py:_check_classes": _CHECK,
    "nn/functional/losses_classification.py:binary_cross_entropy": _CHECK,
    "nn/functional/losses_margin.py:_check_labels": _CHECK,
    "nn/functional/embedding.py:_bags": _CHECK,
    "nn/functional/embedding.py:_check_rows": _CHECK,
    "nn/functional/embedding.py:one_hot": _CHECK,
    "nn/functional/pooling.py:_unpool": _CHECK,
    "ops/sort_search.py:nonzero": _MASK,
    "ops/indexing.py:_as_index": "a tensor of one element is an index",
    "transforms/vmap/batched_array.py": _ASKED,
    "backend/cupy_namespace.py:waiting": "solvers report singular matrices",
    "backend/cupy_namespace.py:solve_triangular": _CHECK,
    "interop/linalg.py:_has_real_eigenvalues": _METHOD,
    "distributions/constraints.py:_holds": _CHECK,
    "linalg/decompositions.py:_check_diagonal": _CHECK,
    "linalg/decompositions.py:_is_positive": _CHECK,
    "linalg/arguments.py:apply_lapack": _CHECK,
    "linalg/lu.py:lu_factor_ex": _CHECK,
    "linalg/ex.py": _CHECK,
    "linalg/least_squares.py:lstsq": _METHOD,
    "kernels/matrices.py:check_phases": _CHECK,
    "kernels/matrices.py:cofactors": _METHOD,
    "kernels/matrices.py:_cofactors_by_svd": _METHOD,
    "kernels/matrices.py:matrix_exp": _METHOD,
    "kernels/matrices.py:_square_repeatedly": _METHOD,
}
"""Functions and modules that copy to the host, or wait for the device, and why."""


def _innermost(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside of the stand-in and of Python's own modules."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(STAND_IN):
            return frame
        frame = frame.f_back
    return None


def watch(direction: str) -> None:
    """Raise if the function of chainrule that copies to the host is not one of the doors."""
    if direction != "to_host":
        return
    frame = _innermost(sys._getframe(1))
    if frame is None or not frame.f_code.co_filename.startswith(SOURCE):
        return  # the test's own
    module = frame.f_code.co_filename.removeprefix(SOURCE)[1:]
    place = f"{module}:{frame.f_code.co_name}"
    if place not in DOORS and module not in DOORS:
        raise SilentCopyError(f"a copy to the host, or a wait for the device, in {place}")


def _is_test(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith((SOURCE, STAND_IN))


@contextmanager
def on_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make tensors on the device, and let the test read them as if they were on the host."""
    numpy, from_numpy = cr.Tensor.numpy, cr.from_numpy

    def read(self: cr.Tensor, *, force: bool = False) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "__array__" and caller.f_back is not None:
            caller = caller.f_back
        return numpy(self.to("cpu") if _is_test(caller) else self, force=force)

    def uploaded(array: Any) -> cr.Tensor:
        made = from_numpy(array)
        return made.to("cuda") if isinstance(array, np.ndarray) else made

    monkeypatch.setattr(cr.Tensor, "numpy", read)
    monkeypatch.setattr(cr, "from_numpy", uploaded)
    transfers.observers.append(watch)
    try:
        with cr.device("cuda"):
            yield
    finally:
        transfers.observers.remove(watch)


def stand_in_for_session() -> ExitStack:
    """Install the stand-in until the stack is closed, unless there is a real device."""
    stack = ExitStack()
    if not cr.cuda.is_available():
        stack.enter_context(installed())
    return stack
