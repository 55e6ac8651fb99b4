"""Functions of complex numbers, of which chainrule's own are those of real numbers.

Derivatives are those of the DLMF, chapters 5, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.operands import as_tensors
from chainrule.operation import SCIPY_UFUNCS
from chainrule.primitives.primitive import Primitive, Rule
from chainrule.scipy.special.ufunc import refusal

Array = Any

_TWO_OVER_ROOT_PI = 1.1283791670955126
_DENSITY_AT_0 = 0.3989422804014327  # 1/√2π

_PARTIALS: dict[str, Rule | tuple[Rule, Rule]] = {
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
    "xlogy": (lambda xp, y: xp.log(y), lambda xp, x, y: x / y),
    "xlog1py": (lambda xp, y: xp.log1p(y), lambda xp, x, y: x / (1 + y)),
}


def _value_of(name: str, count: int) -> Rule:
    if count == 1:
        return lambda xp, z: getattr(xp.special, name)(z)
    return lambda xp, x, y: getattr(xp.special, name)(x, y)


def _declare(name: str, *partials: Rule) -> None:
    """Let the function of tensors with this name take complex ones, too."""
    names = ("z",) if len(partials) == 1 else ("x", "y")
    value = _value_of(name, len(names))
    primitive = Primitive(f"special_complex_{name}", value, names, partials, partials, scales=True)
    of_real: Callable[..., Any] = SCIPY_UFUNCS[name]

    def function(*operands: Any, **settings: Any) -> Any:
        tensors = as_tensors(operands)
        is_complex = any([t._array.dtype.kind == "c" for t in tensors])
        if is_complex and not settings and len(tensors) == len(names):
            return primitive.apply(*tensors)
        return of_real(*operands, **settings)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = of_real.__doc__
    SCIPY_UFUNCS[name] = function


for _name, _partial in _PARTIALS.items():
    _declare(_name, *(_partial if isinstance(_partial, tuple) else (_partial,)))
