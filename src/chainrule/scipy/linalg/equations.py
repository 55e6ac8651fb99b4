"""Matrix equations: Sylvester's, Lyapunov's and Riccati's.

Solutions are SciPy's, derivatives follow from the differentials of the equations: those of a
linear equation solve the same one, and in reverse mode the transposed one (M. Giles, "An extended
collection of matrix derivative results", 2008); those of Riccati's solve Lyapunov equations of the
closed loop (T.-C. Kao, G. Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and
algebraic Riccati equations", arXiv:2011.11430, 2020).
"""

from __future__ import annotations

from typing import Any

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.operands import tensors_of
from chainrule.linalg import solve as solve_system
from chainrule.ops import reshape
from chainrule.primitives.matrices import adjoint, conj, transpose
from chainrule.primitives.primitive import Primitive, applied, general
from chainrule.primitives.solve import solve
from chainrule.scipy.linalg.arguments import TABLE, operands, square
from chainrule.scipy.linalg.arguments import adjoint as adjoint_of

Array = Any
Needs = tuple[bool, ...]


def _matrices(*values: Any) -> list[Tensor]:
    """Return numbers and vectors as matrices."""
    tensors = tensors_of(list(values))
    return [t if t.ndim > 1 else reshape(t, (1,) * (2 - t.ndim) + t.shape) for t in tensors]


# --- A X + X B = Q --------------------------------------------------------------------------------


def _sylvester_vjp(
    xp: Any, g: Array, a: Array, b: Array, out: Array, needs: Needs
) -> tuple[Array | None, ...]:
    right = applied(sylvester, xp)(transpose(xp, a), transpose(xp, b), g)
    back = transpose(xp, out)
    return (
        -xp.matmul(right, back) if needs[0] else None,
        -xp.matmul(back, right) if needs[1] else None,
        right if needs[2] else None,
    )


sylvester: Primitive = general(
    "scipy_solve_sylvester",
    lambda xp, a, b, q: xp.scipy_linalg(a, b, q, routine="solve_sylvester"),
    vjp=_sylvester_vjp,
    jvp=(
        lambda xp, t, a, b, out: -applied(sylvester, xp)(a, b, xp.matmul(t, out)),
        lambda xp, t, a, b, out: -applied(sylvester, xp)(a, b, xp.matmul(out, t)),
        lambda xp, t, a, b: applied(sylvester, xp)(a, b, t),
    ),
    broadcasts=False,
)


@TABLE.function("solve_sylvester", "equation")
def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """Return X with A X + X B = Q, differentiated through the equation."""
    left, right, rest = operands("solve_sylvester", a, b, q)
    square("solve_sylvester", left, finite=False)
    square("solve_sylvester", right, finite=False)
    if rest.ndim < 2 or rest.shape[-2:] != (left.shape[-1], right.shape[-1]):
        raise ShapeError(
            f"scipy.linalg.solve_sylvester: expected q of shape [{left.shape[-1]}, "
            f"{right.shape[-1]}], got {list(rest.shape)}"
        )
    return sylvester.apply(left, right, rest)


# --- Lyapunov's equations: A X + X Aᴴ = Q, and A X Aᴴ - X + Q = 0 ---------------------------------


def _lyapunov_vjp(
    xp: Any, g: Array, a: Array, out: Array, needs: Needs
) -> tuple[Array | None, Array | None]:
    right = applied(lyapunov, xp)(transpose(xp, a), g)
    if not needs[0]:
        return None, right
    by_a = -xp.matmul(right, transpose(xp, out)) - xp.matmul(adjoint(xp, right), conj(xp, out))
    return by_a, right if needs[1] else None


lyapunov: Primitive = general(
    "scipy_solve_continuous_lyapunov",
    lambda xp, a, q: xp.scipy_linalg(a, q, routine="solve_continuous_lyapunov"),
    vjp=_lyapunov_vjp,
    jvp=(
        lambda xp, t, a, out: (
            -applied(lyapunov, xp)(a, xp.matmul(t, out) + xp.matmul(out, adjoint(xp, t)))
        ),
        lambda xp, t, a: applied(lyapunov, xp)(a, t),
    ),
    broadcasts=False,
)


def _discrete_vjp(
    xp: Any, g: Array, a: Array, out: Array, needs: Needs, *, method: Any
) -> tuple[Array | None, Array | None]:
    right = applied(discrete_lyapunov, xp)(transpose(xp, a), g, method=method)
    if not needs[0]:
        return None, right
    first = xp.matmul(xp.matmul(right, conj(xp, a)), transpose(xp, out))
    second = xp.matmul(xp.matmul(adjoint(xp, right), conj(xp, a)), conj(xp, out))
    return first + second, right if needs[1] else None


def _discrete_jvp(xp: Any, t: Array, a: Array, out: Array, *, method: Any) -> Array:
    left = xp.matmul(xp.matmul(t, out), adjoint(xp, a))
    right = xp.matmul(xp.matmul(a, out), adjoint(xp, t))
    return applied(discrete_lyapunov, xp)(a, left + right, method=method)


discrete_lyapunov: Primitive = general(
    "scipy_solve_discrete_lyapunov",
    lambda xp, a, q, *, method: xp.scipy_linalg(
        a, q, routine="solve_discrete_lyapunov", method=method
    ),
    vjp=_discrete_vjp,
    jvp=(
        _discrete_jvp,
        lambda xp, t, a, *, method: applied(discrete_lyapunov, xp)(a, t, method=method),
    ),
    broadcasts=False,
)


@TABLE.function("solve_lyapunov", "equation")
@TABLE.function("solve_continuous_lyapunov", "equation")
def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """Return X with A X + X Aᴴ = Q, differentiated through the equation."""
    return lyapunov.apply(*square("solve_continuous_lyapunov", *_matrices(a, q)))


@TABLE.function("solve_discrete_lyapunov", "equation")
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Tensor:
    """Return X with A X Aᴴ - X + Q = 0, differentiated through the equation."""
    if method not in (None, "direct", "bilinear"):
        raise ArgumentError(
            f"scipy.linalg.solve_discrete_lyapunov: expected method 'direct' or 'bilinear', got "
            f"{method!r}"
        )
    matrices = square("solve_discrete_lyapunov", *_matrices(a, q))
    return discrete_lyapunov.apply(*matrices, method=method)


# --- Riccati's equations --------------------------------------------------------------------------
#
# With the gain K, the closed loop C = A - B K and D = dA - dB K, the differential of the continuous
# equation Aᴴ X + X A - X B R⁻¹ Bᴴ X + Q = 0 is Cᴴ dX + dX C + P = 0, and that of the discrete one
# Cᴴ dX C - dX + P = 0, where P = dQ + Kᴴ dR K + Dᴴ W + Wᴴ D, W = X or X C.


def _closed_loop(
    xp: Any, a: Array, b: Array, r: Array, x: Array, discrete: bool
) -> tuple[Array, Array, Array]:
    """Return the gain, the closed loop and W."""
    back = xp.matmul(adjoint(xp, b), x)
    if discrete:
        gain = applied(solve, xp)(r + xp.matmul(back, b), xp.matmul(back, a))
    else:
        gain = applied(solve, xp)(r, back)
    loop = a - xp.matmul(b, gain)
    return gain, loop, xp.matmul(x, loop) if discrete else x


def _along_loop(xp: Any, loop_h: Array, right: Array, discrete: bool) -> Array:
    if discrete:
        return applied(discrete_lyapunov, xp)(loop_h, right, method=None)
    return -applied(lyapunov, xp)(loop_h, right)


def _riccati_vjp(
    xp: Any, g: Array, a: Array, b: Array, r: Array, out: Array, needs: Needs, *, discrete: bool
) -> tuple[Array | None, ...]:
    gain, loop, weight = _closed_loop(xp, a, b, r, out, discrete)
    right = _along_loop(xp, conj(xp, loop), g, discrete)  # the transpose of the loop's adjoint
    by_d = xp.matmul(conj(xp, weight), right + adjoint(xp, right))
    by_r = xp.matmul(xp.matmul(conj(xp, gain), right), transpose(xp, gain))
    return (
        by_d if needs[0] else None,
        -xp.matmul(by_d, transpose(xp, gain)) if needs[1] else None,
        right if needs[2] else None,
        by_r if needs[3] else None,
    )


def _riccati_jvp(
    xp: Any,
    t: tuple[Array | None, ...],
    a: Array,
    b: Array,
    r: Array,
    out: Array,
    *,
    discrete: bool,
) -> Array:
    gain, loop, weight = _closed_loop(xp, a, b, r, out, discrete)
    by_a, by_b, by_q, by_r = t
    moved = None if by_b is None else -xp.matmul(by_b, gain)
    moved = by_a if moved is None else moved if by_a is None else by_a + moved
    parts = [] if by_q is None else [by_q]
    if by_r is not None:
        parts.append(xp.matmul(xp.matmul(adjoint(xp, gain), by_r), gain))
    if moved is not None:
        across = xp.matmul(adjoint(xp, weight), moved)
        parts.append(across + adjoint(xp, across))
    return _along_loop(xp, adjoint(xp, loop), sum(parts[1:], parts[0]), discrete)


riccati = general(
    "scipy_solve_are",
    lambda xp, a, b, q, r, *, discrete: xp.scipy_linalg(
        a, b, q, r, routine="solve_discrete_are" if discrete else "solve_continuous_are"
    ),
    vjp=_riccati_vjp,
    jvp=_riccati_jvp,
    broadcasts=False,
)


def _solve_are(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, discrete: bool) -> Tensor:
    given = [x for x in (a, b, q, r, e, s) if x is not None]
    found = iter(operands(name, *_matrices(*given)))
    a, b, q, r, e, s = [None if x is None else next(found) for x in (a, b, q, r, e, s)]
    square(name, a, q, finite=False)
    square(name, r, finite=False)
    if b.ndim < 2 or b.shape[-2:] != (a.shape[-1], r.shape[-1]):
        raise ShapeError(
            f"scipy.linalg.{name}: expected b of shape [{a.shape[-1]}, {r.shape[-1]}], as a and r "
            f"have, got {list(b.shape)}"
        )
    if s is not None:  # as if the input were u + R⁻¹ Sᴴ x
        gain = solve_system(r, adjoint_of(s))
        a, q = a - b @ gain, q - s @ gain
    if e is not None:  # as if the state were E x
        inner = solve_system(e, q, left=False)
        a, q = solve_system(e, a, left=False), solve_system(adjoint_of(e), inner)
    return riccati.apply(a, b, q, r, discrete=discrete)


@TABLE.function("solve_continuous_are", "equation")
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Tensor:
    """Return X with Aᴴ X + X A - X B R⁻¹ Bᴴ X + Q = 0, differentiated through the equation."""
    return _solve_are("solve_continuous_are", a, b, q, r, e, s, False)


@TABLE.function("solve_discrete_are", "equation")
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Tensor:
    """Return X with Aᴴ X A - X - Aᴴ X B (R + Bᴴ X B)⁻¹ Bᴴ X A + Q = 0.

    It is differentiated through the equation.
    """
    return _solve_are("solve_discrete_are", a, b, q, r, e, s, True)
