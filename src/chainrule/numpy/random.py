"""NumPy's random numbers, whose draws are differentiable by location and scale.

A draw is a function of its parameters and of the state of the generator: ``normal(loc, scale)`` is
``loc + scale * standard_normal()``, with the same numbers. Where the parameters are differentiated,
it is computed so. All other names are NumPy's.

>>> import chainrule as cr
>>> import chainrule.numpy as np
>>> def spread(scale):
...     return np.random.default_rng(0).normal(0.0, scale, 1000).std()
>>> round(cr.grad(spread)(2.0), 2)
0.98
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.errors import MissingRuleError
from chainrule.interop.operands import arrays_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays, ndarray
from chainrule.numpy.out_arguments import written

__all__ = ["Generator", "RandomState", "default_rng"]


def _located(name: str) -> Callable[..., Any]:
    return lambda rng, size, loc, scale: loc + scale * getattr(rng, name)(size=size)


def _scaled(name: str) -> Callable[..., Any]:
    return lambda rng, size, scale: scale * getattr(rng, name)(size=size)


def _triangular(rng: Any, size: Any, left: Any, mode: Any, right: Any) -> Any:
    u, base = rng.random(size), right - left
    is_left = u <= arrays_of((mode - left) / base)
    from_left = left + cnp.sqrt(cnp.where(is_left, u, 1.0) * (mode - left) * base)
    from_right = right - cnp.sqrt(cnp.where(is_left, 1.0, 1 - u) * (right - mode) * base)
    return cnp.where(is_left, from_left, from_right)


_FORMULAS: dict[str, Callable[..., Any]] = {
    **{name: _located(name) for name in ("laplace", "logistic", "gumbel")},
    "normal": _located("standard_normal"),
    "exponential": _scaled("standard_exponential"),
    "rayleigh": _scaled("rayleigh"),
    "uniform": lambda rng, size, low, high: low + (high - low) * rng.random(size),
    "lognormal": lambda rng, size, mean, sigma: cnp.exp(mean + sigma * rng.standard_normal(size)),
    "weibull": lambda rng, size, a: rng.standard_exponential(size) ** (1 / a),
    "pareto": lambda rng, size, a: cnp.expm1(rng.standard_exponential(size) / a),
    "power": lambda rng, size, a: (-np.expm1(-rng.standard_exponential(size))) ** (1 / a),
    "triangular": _triangular,
}
"""Draws, by standard ones of a shape and by parameters, as NumPy's C code computes them."""

_PARAMETERS: dict[str, dict[str, float]] = {
    **{name: {"loc": 0.0, "scale": 1.0} for name in ("normal", "laplace", "logistic", "gumbel")},
    **{name: {"scale": 1.0} for name in ("exponential", "rayleigh")},
    **{name: {"a": np.nan} for name in ("weibull", "pareto", "power")},
    "uniform": {"low": 0.0, "high": 1.0},
    "lognormal": {"mean": 0.0, "sigma": 1.0},
    "triangular": dict.fromkeys(["left", "mode", "right"], np.nan),
}


class _Own:
    """The methods of NumPy's own class, of a generator whose class may be ours."""

    def __init__(self, kind: type, rng: Any) -> None:
        self.kind, self.rng = kind, rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name).__get__(self.rng)


def _draw(own: _Own, name: str, args: Any, settings: Any) -> Any:
    """Return a method's draw, recorded where its arguments are."""
    method = getattr(own, name)
    if name == "shuffle" and args and not isinstance(args[0], ndarray):
        return method(*args, **settings)  # a list, whose items change their places
    if not is_tracked(args, settings):
        if name == "shuffle" and args:
            return _shuffle(own, *args, **settings)  # a write that is noted
        out = settings.pop("out", None)
        if isinstance(out, ndarray):
            drawn = method(*arrays_of(args), **arrays_of(settings), out=np.empty_like(out._array))
            return written(method, out, drawn)
        if out is not None:
            settings["out"] = out
        return as_ndarrays(method(*arrays_of(args), **arrays_of(settings)))
    if name in _FORMULAS:
        return as_ndarrays(_by_formula(own, name, args, settings))
    first, *others = args or (None,)
    if is_tracked(first) and not is_tracked(others, settings):
        if name in _ORDERS:
            return _ORDERS[name](own, cnp.asarray(first), *others, **settings)
        if name == "multivariate_normal":
            return first + method(0 * arrays_of(first), *others, **settings)
    if name == "gamma" and not is_tracked(first, settings.get("shape")):
        return _gamma(own, *args, **settings)
    raise MissingRuleError(
        f"numpy.random.{name} has no derivative rule in chainrule: its draws are no smooth "
        "function of the arguments, or none that is known here. Transform draws of constant "
        "parameters, as mean + L @ z, or pass x.detach() if no gradient passes there"
    )


def _by_formula(own: _Own, name: str, args: Any, settings: Any) -> Any:
    defaults = _PARAMETERS[name]
    given = dict(zip([*defaults, "size"], args, strict=False)) | settings
    size = given.pop("size", None)
    values = {key: cnp.asarray(value) for key, value in {**defaults, **given}.items()}
    is_generator = own.kind is np.random.Generator
    state = own.rng.bit_generator.state if is_generator else own.rng.get_state()
    like = getattr(own, name)(**arrays_of(values), size=size)  # for its shape, or its error
    if is_generator:
        own.rng.bit_generator.state = state
    else:
        own.rng.set_state(state)
    return _FORMULAS[name](own, np.shape(like) or None, *values.values())


def _gamma(own: _Own, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    if size is None:
        size = np.broadcast_shapes(np.shape(shape), np.shape(arrays_of(scale))) or None
    return as_ndarrays(scale * own.standard_gamma(arrays_of(shape), size))


# --- elements in another order --------------------------------------------------------------------


def _permutation(own: _Own, x: Any, axis: int = 0) -> Any:
    order = np.arange(x.shape[axis])
    own.shuffle(order)
    return cnp.take(x, order, axis)


def _shuffle(own: _Own, x: Any, axis: int = 0) -> None:
    x[...] = _permutation(own, x, axis)


def _choice(own: _Own, a: Any, *args: Any, axis: int = 0, **settings: Any) -> Any:
    return cnp.take(a, own.choice(a.shape[axis], *args, **settings), axis)


_ORDERS: dict[str, Callable[..., Any]] = {
    "permutation": _permutation,
    "permuted": _permutation,
    "shuffle": _shuffle,
    "choice": _choice,
}


# --- generators -----------------------------------------------------------------------------------


def _method(kind: type, name: str) -> Callable[..., Any]:
    def draw(self: Any, *args: Any, **settings: Any) -> Any:
        return _draw(_Own(kind, self), name, args, settings)

    draw.__name__, draw.__doc__ = name, f"Return NumPy's `{name}`, recorded by its parameters."
    return draw


def _drawing(kind: type) -> type:
    """Return a class of NumPy's, whose draws record; NumPy's own objects count as of it."""
    names = [n for n in vars(kind) if n[0] != "_" and inspect.isroutine(getattr(kind, n))]
    methods = {n: _method(kind, n) for n in names if n not in _PLAIN}
    text = f"NumPy's `{kind.__name__}`, whose draws are recorded by their parameters."

    def check(cls: type, x: Any) -> bool:
        return isinstance(x, kind) if cls is made else type.__instancecheck__(cls, x)

    metaclass = type(f"{kind.__name__}Kind", (type,), {"__instancecheck__": check})
    members = {**methods, "__module__": __name__, "__doc__": text}
    made: type = metaclass(kind.__name__, (kind,), members)
    return made


_PLAIN = frozenset(["bytes", "seed", "get_state", "set_state", "spawn"])

Generator: Any = _drawing(np.random.Generator)
RandomState: Any = _drawing(np.random.RandomState)


def default_rng(seed: Any = None) -> Any:
    """Return a generator as `numpy.random.default_rng` does, whose draws record."""
    found = np.random.default_rng(seed)
    return found if found is seed else Generator(found.bit_generator)


def __getattr__(name: str) -> Any:
    found = getattr(np.random, name)
    rng = getattr(found, "__self__", None)
    if not isinstance(rng, np.random.RandomState) or name in _PLAIN:
        return found
    own = _Own(np.random.RandomState, rng)

    @functools.wraps(found)
    def draw(*args: Any, **settings: Any) -> Any:
        return _draw(own, name, args, settings)

    globals()[name] = draw
    return draw


def __dir__() -> list[str]:
    return dir(np.random)
