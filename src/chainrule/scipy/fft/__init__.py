"""SciPy's Fourier, cosine and sine transforms over tensors, under SciPy's names.

For arrays a function is SciPy's own; for tensors it is recorded. The module is also a backend of
SciPy's, for programs that call `scipy.fft` itself: ``scipy.fft.set_backend(cr.scipy.fft)``.

>>> import chainrule as cr
>>> x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> cr.scipy.fft.dct(x)[0].backward()
>>> x.grad
tensor([2., 2., 2.])
"""

from __future__ import annotations

from typing import Any

from chainrule import fft as _fft
from chainrule.autograd.tensor import Tensor
from chainrule.scipy.fft import fast_hankel, real_transforms
from chainrule.scipy.fft.arguments import TABLE as _TABLE
from chainrule.scipy.fft.arguments import in_double as _in_double
from chainrule.scipy.fft.arguments import sizes_of as _sizes_of
from chainrule.scipy.own_code import compose_others as _compose_others

_FAMILIES = (fast_hankel, real_transforms)


def _along_one(name: str) -> Any:
    function = getattr(_fft, name)

    def transform(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Tensor:
        _check_plan(name, plan)
        result: Tensor = function(_in_double(x), n, axis, norm)
        return result

    return transform


def _along_many(name: str, default: Any) -> Any:
    function = getattr(_fft, f"{name.rstrip('2n')}n")

    def transform(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Tensor:
        _check_plan(name, plan)
        result: Tensor = function(_in_double(x), _sizes_of(s), _sizes_of(axes), norm)
        return result

    return transform


def _check_plan(name: str, plan: Any) -> None:
    if plan is not None:
        raise NotImplementedError(
            f"scipy.fft.{name}: passing a precomputed plan is not supported: leave it out"
        )


@_TABLE.function("fftshift", "linear")
def _fftshift(x: Any, axes: Any = None) -> Tensor:
    """Return a spectrum with the frequency 0 moved to the middle."""
    return _fft.fftshift(x, axes)


@_TABLE.function("ifftshift", "linear")
def _ifftshift(x: Any, axes: Any = None) -> Tensor:
    """Return a spectrum with the frequency 0 moved from the middle to the front."""
    return _fft.ifftshift(x, axes)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for _full, _function in (
        (_name, _along_one(_name)),
        (f"{_name}2", _along_many(f"{_name}2", (-2, -1))),
        (f"{_name}n", _along_many(f"{_name}n", None)),
    ):
        _function.__name__ = _function.__qualname__ = _full
        _function.__doc__ = f"Return the transform of `chainrule.fft.{_full}`."
        _TABLE.function(_full, "linear")(_function)


# --- SciPy's protocol of backends -----------------------------------------------------------------

__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method: Any, args: Any, settings: Any) -> Any:
    """Compute a call of `scipy.fft` if there are tensors among its arguments."""
    if not any(isinstance(x, Tensor) for x in (*args, *settings.values())):
        return NotImplemented
    return _TABLE.find(method.__name__)(*args, **settings)


_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
