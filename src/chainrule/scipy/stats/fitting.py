"""Parameters of largest likelihood, by the equations that they fulfil.

SciPy finds them. Their derivatives are those of the conditions of Karush, Kuhn and Tucker: the
slope of the likelihood is zero, or the support ends at the first or the last of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import make
from chainrule.backend import whole
from chainrule.errors import AutogradError
from chainrule.implicit import implicit_function
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import arrays_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.integrate.quadrature import quad
from chainrule.scipy.stats.description import scipy_stats
from chainrule.transforms.gradients import grad

_AT_THE_END = 1e-7
"""Distance of the support's end from the data, in their spread, from which it is free."""
_AT_A_STEP = 1e-4
"""The same where the density jumps, so that the likelihood grows up to the data: the tolerance of
SciPy's search."""


def fit(dist: Any, data: Any, args: Any, settings: Mapping[str, Any]) -> Any:
    """Return the parameters that `dist.fit` of SciPy's finds, as functions of the data."""
    method = settings.get("method", "MLE")
    if str(method).lower() != "mle":
        raise AutogradError(
            f"scipy.stats.{dist.name}.fit has a derivative for method='MLE' alone, got {method!r}: "
            "solve the equations of the moments with cr.scipy.optimize.root"
        )
    title = f"scipy.stats.{dist.name}.fit"
    data = cnp.ravel(cnp.asarray(as_ndarrays(data)))
    known = _fixed(dist, settings)
    if dist.name == "vonmises":  # whose scale is 1 for SciPy
        known.setdefault("scale", 1.0)
    if dist.name == "laplace":  # whose likelihood has a kink at the median
        known.setdefault("loc", cnp.median(data))
    if dist.name == "loglaplace" and "loc" in known:
        known.setdefault("scale", cnp.exp(cnp.median(cnp.log(data - known["loc"]))))

    def compute() -> list[Any]:
        numbers = arrays_of(data)
        found = dist.of_scipy.fit(numbers, *arrays_of(args), **arrays_of(settings))
        _check_smooth(title, dist, found, known, numbers)
        return [np.array(found), _touching(dist.of_scipy, found, numbers)]

    theta, touching = with_numbers(title, compute)
    at_ends = np.unique(whole(touching).reshape(-1, 2), axis=0)
    if len(at_ends) != 1:
        raise AutogradError(
            f"{title}: under vmap, the support of some examples' fits ends at their data, and that "
            "of others doesn't: fit them one by one"
        )
    theta = as_ndarrays(make(theta, None))
    return likeliest(dist, data, theta, known, [int(k) for k in np.flatnonzero(at_ends[0])])


def _fixed(dist: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are given, by name."""
    found: dict[str, Any] = {}
    for i, name in enumerate(dist.parameters):
        keys = [f"f{name}", f"fix_{name}", *([] if name in ("loc", "scale") else [f"f{i}"])]
        for key in keys:
            if settings.get(key) is not None:
                found[name] = settings[key]
    return found


def _touching(dist: Any, theta: Any, data: Any) -> Any:
    """Return whether the support ends at the first, and at the last of the data."""
    ends = np.array(dist.support(*theta))
    with np.errstate(all="ignore"):
        density = dist.pdf(ends, *theta)
    jumps = (density > 0) & np.isfinite(density)
    near = np.where(jumps, _AT_A_STEP, _AT_THE_END) * np.ptp(data)
    return np.asarray(np.abs(ends - [data.min(), data.max()]) <= near, float)


def _check_smooth(title: str, dist: Any, theta: Any, known: Any, data: Any) -> None:
    """Raise an error if the likelihood has a kink where SciPy found it to be largest.

    Second differences of steps of ratio 4 have a ratio of 16 where it is smooth, and of 4 there.
    """
    place = np.array(theta, float)

    def bend(i: int, step: float) -> Any:
        moved = [dist.of_scipy.nnlf(place + h * np.eye(len(place))[i], data) for h in (step, -step)]
        return sum(moved) - 2 * dist.of_scipy.nnlf(place, data)

    for i, name in enumerate(dist.parameters):
        step = _STEP * (abs(place[i]) + (np.ptp(data) if name == "loc" else 0.0))
        if name in known or not step:
            continue
        with np.errstate(all="ignore"):
            wide, narrow = bend(i, step), bend(i, step / 4)
        if narrow > 0 and wide < 8 * narrow and np.isfinite(narrow):
            raise AutogradError(
                f"{title}: the likelihood has a kink by {name} at the fit, so that its slopes tell "
                f"nothing of how {name} depends on the data: fix it with f{name}="
            )


_STEP = 4e-3
"""Step of differences, in the size of a parameter: more than SciPy's search is off."""


def likeliest(
    dist: Any, data: Any, theta: Any, known: Mapping[str, Any], touching: list[int]
) -> tuple[Any, ...]:
    """Return all parameters, of which SciPy found `theta` and some are known.

    `touching` are the ends of the support that are at the first or the last of the data.
    """
    names = dist.parameters
    free = [i for i, name in enumerate(names) if name not in known]

    def full(unknowns: Any) -> list[Any]:
        found = [known.get(name) for name in names]
        for k, i in enumerate(free):
            found[i] = unknowns[k]
        return found

    start = cnp.stack([theta[i] for i in free]) if free else theta[:0]
    with no_grad():
        inside = _moved_inside(dist, full(start), data, touching)

    def loss(unknowns: Any) -> Any:
        return dist.nnlf(full(unknowns), data + inside)

    def gaps(unknowns: Any) -> Any:
        low, high = dist.support(*full(unknowns))
        found = [data.min() - low, high - data.max()]
        return cnp.stack([found[k] for k in touching])

    if not touching:
        found = implicit_function(lambda: start, grad(loss))()
    else:
        found = _at_the_end(loss, gaps, start, len(touching))
    return tuple(full(found))


def _moved_inside(dist: Any, theta: Any, data: Any, touching: list[int]) -> Any:
    """Return what to add to the data, so that rounding leaves none beyond the support."""
    ends, moved = dist.support(*theta), data
    for k in touching:
        room = 1e-14 * (cnp.max(cnp.abs(data)) + cnp.abs(ends[k]))
        moved = cnp.minimum(moved, ends[1] - room) if k else cnp.maximum(moved, ends[0] + room)
    return moved - data


def _at_the_end(
    loss: Callable[[Any], Any], gaps: Callable[[Any], Any], start: Any, count: int
) -> Any:
    """Return the parameters where the support ends at the data, with a multiplier for each end."""

    def slope(unknowns: Any) -> Any:
        def lagrangian(x: Any) -> Any:
            return loss(x) - (unknowns["force"] * gaps(x)).sum()

        return grad(lagrangian)(unknowns["theta"])

    def solver() -> Any:
        with no_grad():
            fixed = {"theta": start, "force": np.zeros(count)}
            zero = arrays_of(slope(fixed))
            columns = [
                zero - arrays_of(slope({"theta": start, "force": unit})) for unit in np.eye(count)
            ]
        force = np.linalg.lstsq(np.stack(columns, 1), zero, rcond=None)[0]
        return {"theta": start, "force": force}

    def residual(unknowns: Any) -> Any:
        return {"slope": slope(unknowns), "gap": gaps(unknowns["theta"])}

    return implicit_function(solver, residual)()["theta"]


def fit_within_bounds(dist: Any, data: Any, *args: Any, **settings: Any) -> Any:
    """Return SciPy's result of `scipy.stats.fit`, whose parameters are functions of the data.

    Those at a bound are constant.
    """
    numbers = arrays_of(data)
    result = scipy_stats.fit(getattr(scipy_stats, dist.name), numbers, *args, **settings)
    bounds = [*args, settings.get("bounds")][0] or {}
    values, names = list(result.params), result.params._fields
    pairs = bounds if isinstance(bounds, Mapping) else dict(zip(names, bounds, strict=False))
    known = {
        name: value
        for name, value in zip(names, values, strict=True)
        if value in pairs.get(name, (value, value))
    }
    _check_smooth("scipy.stats.fit", dist, values, known, numbers)
    touching = [int(k) for k in np.flatnonzero(_touching(result._dist, values, numbers))]
    found = likeliest(dist, cnp.ravel(data), np.array(values), known, touching)
    result.params = result.params._replace(**dict(zip(names, found, strict=True)))
    return result


# --- means of functions ---------------------------------------------------------------------------


def expect(
    dist: Any,
    func: Any = None,
    args: Any = (),
    loc: Any = 0.0,
    scale: Any = 1.0,
    lb: Any = None,
    ub: Any = None,
    conditional: bool = False,
    **settings: Any,
) -> Any:
    """Return the mean of a function: an integral over the support, or a sum."""
    given = [*args, loc] if dist.description.discrete else [*args, loc, scale]
    func = (lambda x: x) if func is None else func
    low, high = dist.support(*given)
    low, high = low if lb is None else lb, high if ub is None else ub
    if dist.description.discrete:
        known = arrays_of(given)
        first, last = [float(dist.of_scipy.ppf(q, *known)) for q in (_RARE, 1 - _RARE)]
        counts = np.arange(max(first, arrays_of(low)), min(last, arrays_of(high)) + 1)
        weights = dist.pmf(counts, *given)
        total = (func(counts) * weights).sum()
        return total / weights.sum() if conditional else total
    total, _ = quad(lambda x: func(x) * dist.pdf(x, *given), low, high, **settings)
    if not conditional:
        return total
    return total / (dist.cdf(high, *given) - dist.cdf(low, *given))


_RARE = 1e-15
"""Probability of counts that a mean leaves out, at each end."""
