"""Functions of complex numbers, of which chainrule's own are those of real numbers.

Derivatives are those of the DLMF, chapters 5, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.arguments import tensor_of
from chainrule.operation import SCIPY_UFUNCS
from chainrule.primitives.primitive import Primitive, Rule
from chainrule.scipy.special.ufunc import refusal

Array = Any

_TWO_OVER_ROOT_PI = 1.1283791670955126
_DENSITY_AT_0 = 0.3989422804014327  # 1/√2π

_PARTIALS: dict[str, Rule] = {
    "erf": lambda xp, z: _TWO_OVER_ROOT_PI * xp.exp(-z * z),
    "erfc": lambda xp, z: -_TWO_OVER_ROOT_PI * xp.exp(-z * z),
    "erfcx": lambda xp, z, out: 2 * z * out - _TWO_OVER_ROOT_PI,
    "erfi": lambda xp, z: _TWO_OVER_ROOT_PI * xp.exp(z * z),
    "dawsn": lambda xp, z, out: 1 - 2 * z * out,
    "gamma": lambda xp, z, out: out * xp.special.psi(z),
    "psi": refusal("psi", "z", "SciPy has no polygamma function of complex numbers"),
    "exp1": lambda xp, z: -xp.exp(-z) / z,
    "expi": lambda xp, z: xp.exp(z) / z,
    "ndtr": lambda xp, z: _DENSITY_AT_0 * xp.exp(-z * z / 2),
    "log_ndtr": lambda xp, z, out: _DENSITY_AT_0 * xp.exp(-z * z / 2 - out),
}


def _value_of(name: str) -> Rule:
    return lambda xp, z: getattr(xp.special, name)(z)


def _declare(name: str, partial: Rule) -> None:
    """Let the function of tensors with this name take complex ones, too."""
    label = f"special_complex_{name}"
    primitive = Primitive(label, _value_of(name), ("z",), (partial,), (partial,), scales=True)
    of_real: Callable[..., Any] = SCIPY_UFUNCS[name]

    def function(z: Any, **settings: Any) -> Any:
        z = tensor_of(z)
        if z._array.dtype.kind == "c" and not settings:
            return primitive.apply(z)
        return of_real(z, **settings)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = of_real.__doc__
    SCIPY_UFUNCS[name] = function


for _name, _partial in _PARTIALS.items():
    _declare(_name, _partial)
