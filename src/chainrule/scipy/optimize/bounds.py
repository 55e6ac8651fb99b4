"""Bounds and constraints of the unknowns, and which of them hold a solution: the active ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.arguments import tensor_of
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import whole
from chainrule.errors import ArgumentError
from chainrule.implicit.solutions import numbers_of, without_history
from chainrule.implicit.vectors import vector_of
from chainrule.ops import broadcast_to, cat, reshape, where
from chainrule.scipy.optimize.unknowns import Unknowns, as_args, has_history
from chainrule.transforms import jacobian
from chainrule.transforms.kinds import values_of

NEAR = 1e-2
"""Distance to a bound, relative to 1 and the bound, up to which it may hold the solution.

Interior-point methods keep such distances. The multiplier decides.
"""

TOUCHING = 1e-8
"""Distance to a bound, as above, at which the solution lies on it."""

# --- bounds ---------------------------------------------------------------------------------------


class BoundVectors(NamedTuple):
    """The lowest and highest values of the unknowns, which may have histories."""

    low: Tensor
    high: Tensor

    def numbers(self) -> tuple[Any, Any]:
        """Return the bounds as arrays."""
        return numbers_of(self.low), numbers_of(self.high)


def bounds_of_pairs(unknowns: Unknowns, bounds: Any) -> BoundVectors | None:
    """Return bounds in SciPy's forms, or pairs in the structure of the unknowns; None for none."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return bounds_of_ends(unknowns, bounds.lb, bounds.ub)
    pairs: list[tuple[Any, Any]] = []
    if len(unknowns.layout.paths) == 1 and not unknowns.layout.paths[0]:
        flat = [bounds] if _is_pair(bounds) and unknowns.size == 1 else list(bounds)
        if len(flat) != unknowns.size or not all(map(_is_pair, flat)):
            raise ArgumentError(
                f"{unknowns.title}: bounds are a pair (low, high) for each of the "
                f"{unknowns.size} unknowns, got {len(flat)}"
            )
        pairs = flat
        shapes: Sequence[tuple[int, ...]] = [(1,)] * len(flat)
    else:
        _add_pairs(unknowns.title, unknowns.layout.tree, bounds, "", pairs)
        shapes = unknowns.layout.shapes
    return BoundVectors(
        _joined(unknowns, [low for low, _ in pairs], shapes, -np.inf),
        _joined(unknowns, [high for _, high in pairs], shapes, np.inf),
    )


def _is_pair(bounds: Any) -> bool:
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        return False
    return not any(isinstance(end, tuple | list | dict) for end in bounds)


def _add_pairs(title: str, tree: Any, bounds: Any, path: str, pairs: list[Any]) -> None:
    """Add the pair of each leaf of a tree; one that the bounds leave out has none."""
    parts = pytree.children(tree)
    if parts is None:
        if bounds is not None and not _is_pair(bounds):
            raise ArgumentError(
                f"{title}: expected a pair (low, high) or None at bounds{path}, got {bounds!r}"
            )
        if tree is not None:
            pairs.append(bounds or (None, None))
        return
    given = dict(pytree.children(bounds) or ()) if bounds is not None else {}
    if unknown := given.keys() - {step for step, _ in parts}:
        raise ArgumentError(
            f"{title}: bounds{path} has {', '.join(sorted(unknown))}, which x0{path} doesn't have"
        )
    for step, part in parts:
        _add_pairs(title, part, given.get(step), path + step, pairs)


def bounds_of_ends(unknowns: Unknowns, low: Any, high: Any) -> BoundVectors:
    """Return bounds given as lowest and highest values: numbers, arrays, or trees of them."""
    found = []
    for end, default in ((low, -np.inf), (high, np.inf)):
        shapes: Sequence[tuple[int, ...]] = unknowns.layout.shapes
        if pytree.children(end) is not None and not isinstance(end, list):
            leaves = [leaf for _, leaf in pytree.leaves(end)]
            if len(leaves) != len(shapes):
                raise ArgumentError(
                    f"{unknowns.title}: bounds must be numbers, or have the structure of x0, which "
                    f"has {len(shapes)} parts: got {len(leaves)}"
                )
        elif np.ndim(end):
            leaves, shapes = [end], [(unknowns.size,)]
        else:
            leaves = [end] * len(shapes)
        found.append(_joined(unknowns, leaves, shapes, default))
    return BoundVectors(*found)


def _joined(
    unknowns: Unknowns, ends: Sequence[Any], shapes: Sequence[tuple[int, ...]], default: float
) -> Tensor:
    """Return one end of the bounds as a vector."""
    parts = []
    for end, shape in zip(ends, shapes, strict=True):
        value = default if end is None else end
        t = tensor_of(np.asarray(value, float) if not isinstance(value, Tensor) else value)
        try:
            parts.append(reshape(broadcast_to(t, shape), (-1,)))
        except ValueError:
            raise ArgumentError(
                f"{unknowns.title}: bounds of shape {list(t.shape)} for unknowns of shape "
                f"{list(shape)}"
            ) from None
    return cat(parts) if len(parts) > 1 else parts[0]


def held_by_bounds(x: Any, gradient: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """Return which unknowns lower and upper bounds hold at a minimum, and which are doubtful.

    The gradient is the multiplier: a bound holds an unknown if it exceeds the distance to it
    (strict complementarity). At a doubtful one both are zero.
    """
    held = []
    doubtful = np.zeros(x.shape, bool)
    small = TOUCHING * max(1.0, np.abs(gradient).max(initial=0))
    for end, multiplier in zip(bounds, (gradient, -gradient), strict=True):
        scale = 1 + np.abs(np.where(np.isfinite(end), end, 0))
        distance = np.abs(x - end) / scale
        uncertain = (distance <= TOUCHING) & (np.abs(multiplier) <= small)
        held.append((distance <= NEAR) & (multiplier > distance) & ~uncertain)
        doubtful |= uncertain
    return held[0], held[1], doubtful


def warn_of_doubtful(title: str, doubtful: Any, result: Any) -> None:
    """Warn if a solution has derivatives that are another to one side than to the other."""
    if whole(doubtful).any() and has_history(result):
        warnings.warn(
            f"{title}: the solution lies on a bound or constraint that doesn't push it (its "
            "multiplier is zero), so that its derivative to one side is another one than to the "
            "other. The one returned is that without this bound: leave it out, or move it",
            UserWarning,
            stacklevel=user_stack_level(),
        )


# --- constraints ----------------------------------------------------------------------------------


class Constraint(NamedTuple):
    """Numbers that are zero, or not negative, at a solution."""

    function: Callable[[Tensor, bool], Tensor]  # of a vector; and whether without history
    is_equation: bool


def constraints_of(unknowns: Unknowns, constraints: Any) -> list[Constraint]:
    """Return constraints in SciPy's forms: dicts, `LinearConstraint`, `NonlinearConstraint`."""
    if isinstance(constraints, dict) or hasattr(constraints, "lb"):
        constraints = [constraints]
    return [part for each in constraints for part in _parts_of(unknowns, each)]


def _parts_of(unknowns: Unknowns, given: Any) -> list[Constraint]:
    title = unknowns.title
    if isinstance(given, dict):
        kinds = {"eq": True, "ineq": False}
        kind = str(given.get("type", "")).lower()
        if kind not in kinds or not callable(given.get("fun")):
            raise ArgumentError(
                f'{title}: a constraint is {{"type": "eq" or "ineq", "fun": function}}, got '
                f"{given!r}"
            )
        args, fun = as_args(given.get("args", ())), given["fun"]
    elif hasattr(given, "A"):
        args, fun = (), None
    elif hasattr(given, "fun"):
        args, fun = (), given.fun
    else:
        raise ArgumentError(
            f"{title}: expected a dict, a LinearConstraint or a NonlinearConstraint, got "
            f"{type(given).__name__}"
        )

    def values(v: Tensor, plain: bool) -> Tensor:
        if fun is None:
            return make(np.asarray(given.A, float).reshape(-1, unknowns.size), None) @ v
        extra = without_history(args) if plain else args
        return vector_of(f"{title}: a constraint", fun(unknowns.recorded(v), *extra))

    if isinstance(given, dict):
        return [Constraint(values, kinds[kind])]
    low, high = (np.atleast_1d(np.asarray(values_of(end), float)) for end in (given.lb, given.ub))
    low, high = np.broadcast_arrays(low, high)
    rows = [low == high, np.isfinite(low) & (low != high), np.isfinite(high) & (low != high)]

    def part(row: Any, end: Any, sign: float) -> Callable[[Tensor, bool], Tensor]:
        def function(v: Tensor, plain: bool) -> Tensor:
            found = values(v, plain)
            kept = np.flatnonzero(np.broadcast_to(row, found.shape))
            return sign * (found[kept] - np.broadcast_to(end, found.shape)[kept])

        return function

    parts = [(rows[0], low, 1.0), (rows[1], low, 1.0), (rows[2], high, -1.0)]
    return [Constraint(part(*each), k == 0) for k, each in enumerate(parts) if each[0].any()]


def for_scipy(constraints: Sequence[Constraint]) -> list[dict[str, Any]]:
    """Return constraints with their derivatives as SciPy takes them."""

    def of(each: Constraint) -> dict[str, Any]:
        def values(x: Tensor) -> Tensor:
            return each.function(x, True)

        return {
            "type": "eq" if each.is_equation else "ineq",
            "fun": lambda v: numbers_of(values(make(v.copy(), None))),
            "jac": lambda v: numbers_of(jacobian(values)(make(v.copy(), None))),
        }

    return [of(each) for each in constraints]


def stacked(constraints: Sequence[Constraint], x: Tensor, plain: bool = False) -> Tensor:
    """Return the values of all constraints."""
    return cat([each.function(x, plain) for each in constraints])


def multipliers(
    constraints: Sequence[Constraint], x: Any, gradient: Any, bounds: BoundVectors | None
) -> tuple[Any, Any, Any, Any]:
    """Return the multipliers of the constraints at a minimum, masks, and the Lagrangian's gradient.

    The multipliers make the gradient zero, in least squares, where no bound is near. The masks are
    of the constraints that hold the solution, and of the doubtful ones.
    """
    at = make(x.copy(), None)
    sizes = [each.function(at, True).numel() for each in constraints]
    equation = np.repeat([each.is_equation for each in constraints], sizes)
    values = numbers_of(stacked(constraints, at, True))
    rows = numbers_of(jacobian(lambda v: stacked(constraints, v, True))(at))
    free = np.ones(x.shape, bool)
    for end in () if bounds is None else bounds.numbers():
        free &= np.abs(x - end) > NEAR * (1 + np.abs(np.where(np.isfinite(end), end, 0)))
    near = equation | (np.abs(values) <= NEAR)
    found = np.zeros(len(values))
    if near.any() and free.any():
        found[near] = np.linalg.lstsq(rows[near][:, free].T, gradient[free], rcond=None)[0]
    doubtful = near & ~equation & (np.abs(found) <= TOUCHING) & (np.abs(values) <= TOUCHING)
    held = equation | (near & (found > np.abs(values)) & ~doubtful)
    found = np.where(held, found, 0.0)
    return found, held, doubtful, gradient - found @ rows


def replaced(x: Tensor, held: Any, bounds: BoundVectors | None, gradient: Tensor) -> Tensor:
    """Return the residual of a minimum: the gradient, or the distance to a bound that holds."""
    if bounds is None:
        return gradient
    for mask, end in zip(held, bounds, strict=True):
        finite = where(tensor_of(mask), end, 0.0)  # no inf in what isn't chosen
        gradient = where(tensor_of(mask), x - finite, gradient)
    return gradient
