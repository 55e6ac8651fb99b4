"""Checks of derivatives against finite differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.compat.autograd.core import make_jvp, make_vjp, vspace
from chainrule.compat.autograd.tracer import getval
from chainrule.compat.autograd.wrap_util import get_name, unary_to_nary
from chainrule.errors import ArgumentError

__all__ = [
    "check_equivalent",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "combo_check",
    "make_numerical_jvp",
    "scalar_close",
]

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Tell whether two numbers differ by less than 1e-6, or 1e-6 of their sum."""
    a, b = getval(a), getval(b)
    return bool(abs(a - b) < TOL or abs(a - b) < RTOL * abs(a + b))


def make_numerical_jvp(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Return the function of a direction that gives the central difference of `f` at `x`."""
    xs, ys = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        ahead, behind = (f(xs.add(x, xs.scalar_mul(v, h))) for h in (EPS / 2, -EPS / 2))
        return ys.scalar_mul(ys.add(ahead, ys.scalar_mul(behind, -1.0)), 1 / EPS)

    return jvp


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Raise AssertionError if reverse mode and finite differences disagree."""
    vjp, value = make_vjp(f, x)
    xs, ys = vspace(x), vspace(value)
    v, g = xs.randn(), ys.randn()
    found = xs.covector(vjp(ys.covector(g)))
    _check_space("VJP", f, xs, found)
    exact = xs.inner_prod(v, found)
    numeric = ys.inner_prod(g, make_numerical_jvp(f, x)(v))
    _check("VJP", f, x, scalar_close(numeric, exact), exact, numeric)


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Raise AssertionError if forward mode and finite differences disagree."""
    v = vspace(x).randn()
    found, numeric = make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v)
    space = vspace(numeric)
    _check_space("JVP", f, space, found)
    w = space.randn()
    a, b = space.inner_prod(found, w), space.inner_prod(numeric, w)
    _check("JVP", f, x, scalar_close(a, b), found, numeric)


def _check_space(kind: str, f: Any, wanted: Any, found: Any) -> None:
    if vspace(found) != wanted:
        raise AssertionError(
            f"Derivative ({kind}) check of {get_name(f)} failed: expected {wanted}, got "
            f"{vspace(found)}"
        )


def _check(kind: str, f: Any, x: Any, holds: bool, analytic: Any, numeric: Any) -> None:
    if not holds:
        raise AssertionError(
            f"Derivative ({kind}) check of {get_name(f)} failed with arg {x}:\n"
            f"analytic: {analytic}\nnumeric:  {numeric}"
        )


def check_equivalent(x: Any, y: Any) -> None:
    """Raise AssertionError if two values differ in form or in their numbers."""
    space = vspace(x)
    if space != vspace(y):
        raise AssertionError(f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}")
    v = space.randn()
    if not scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)):
        raise AssertionError(f"Value mismatch:\nx: {x}\ny: {y}")


@unary_to_nary
def check_grads(
    f: Callable[[Any], Any], x: Any, modes: Sequence[str] | None = None, order: int = 2
) -> None:
    """Return the function that checks the derivatives of `f` at its arguments.

    Parameters
    ----------
    f : callable
        Returns arrays or numbers, or containers of them.
    argnum : int, or tuple or list of int, default 0
        The arguments to differentiate by.
    modes : list of "fwd", "rev", default both
        Forward mode, reverse mode.
    order : int, default 2
        Up to which order.

    Raises
    ------
    AssertionError
        If a derivative disagrees with central differences along a random direction.
    """
    modes = ["fwd", "rev"] if modes is None else modes
    if unknown := set(modes) - {"fwd", "rev"}:
        raise ArgumentError(f"check_grads: modes are 'fwd' and 'rev', got {sorted(unknown)}")
    checks = {"fwd": (check_jvp, _jvp_of), "rev": (check_vjp, _vjp_of)}
    for mode in ("fwd", "rev"):
        if mode not in modes:
            continue
        check, derivative_of = checks[mode]
        check(f, x)
        if order > 1:
            derivative, v = derivative_of(f, x)
            check_grads(derivative, (0, 1), modes, order=order - 1)(x, v)


def _jvp_of(f: Any, x: Any) -> tuple[Any, Any]:
    def derivative(x: Any, v: Any) -> Any:
        return make_jvp(f, x)(v)[1]

    derivative.__name__ = f"jvp_{get_name(f)}"
    return derivative, vspace(x).randn()


def _vjp_of(f: Any, x: Any) -> tuple[Any, Any]:
    def derivative(x: Any, g: Any) -> Any:
        return make_vjp(f, x)[0](g)

    derivative.__name__ = f"vjp_{get_name(f)}"
    return derivative, vspace(f(x)).randn()


def combo_check(fun: Callable[..., Any], *settings: Any, **named: Any) -> Callable[..., None]:
    """Return the function that checks derivatives for all combinations of arguments.

    It takes for each argument, by position or by name, a list of values.
    """

    def check(*args: Any, **kwargs: Any) -> None:
        choices = [[(key, value) for value in values] for key, values in kwargs.items()]
        for chosen in itertools.product(*args):
            for named_values in itertools.product(*choices):
                check_grads(fun, *settings, **named)(*chosen, **dict(named_values))

    return check
