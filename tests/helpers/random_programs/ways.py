"""Ways to run a random function, which have to agree: eager, compiled, exported, transformed."""

from __future__ import annotations

import runpy
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as cr
from chainrule import pytree
from helpers.random_programs.functions import Function, reduced

ROUNDING = 256
"""Largest difference that passes at once, in units of eps times the largest element, or 1."""

_PERTURBATION = 64
"""Size of the perturbation of the arguments that shows how a function turns rounding into more."""

_SENSITIVITY = 100
"""Largest difference that passes then, in units of the largest change by perturbations."""

refusals: Counter[str] = Counter()
"""How often each reason was given not to run a function in some way."""


class Disagreement(Exception):
    """A way that gives other results than the eager function, or fails."""


def check(function: Function, native: bool = False) -> None:
    """Run a function in all ways; raise Disagreement for the first that differs."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, reference, way in _ways(function, native):
            _compare(name, function, reference, way)


def minimal(function: Function, native: bool = False) -> tuple[Function, str]:
    """Return the smallest part of a function that still fails in the same way, and the failure."""

    def failure(candidate: Function) -> str:
        try:
            check(candidate, native)
        except Disagreement as error:
            return str(error)
        return ""

    text = failure(function)
    way = text.partition(":")[0]
    while True:
        for candidate in reduced(function):
            found = failure(candidate)
            if found.partition(":")[0] == way:
                function, text = candidate, found
                break
        else:
            return function, text


# --- ways -----------------------------------------------------------------------------------------

Way = Callable[[list[Any]], list[Any]]
"""A function of tensors that returns arrays."""


def _ways(function: Function, native: bool) -> Iterator[tuple[str, Way, Way]]:
    """Yield a name, the eager way to compute something, and another one."""
    f = function.define()
    backends = ["numpy", *["native"] * native]
    compiled = {backend: cr.compile(f, backend=backend, verify=False) for backend in backends}
    calls = function.number_calls()
    for numbers in calls:
        for backend in backends:
            name = f"{backend} {numbers or ''}".strip()
            fast = compiled[backend]
            yield f"values, {name}", _values(f, numbers), _values(fast, numbers)
            yield f"gradients, {name}", _gradients(f, numbers), _gradients(fast, numbers)
    numbers = calls[0]
    g = lambda *tensors: f(*tensors, *numbers)  # noqa: E731
    yield (
        "values, exported",
        _values(g, []),
        _exported(f, dict(zip(function.numbers, numbers, strict=True))),
    )
    yield "values, vmap", _example_by_example(g), _mapped(cr.vmap(g))
    yield (
        "values, compiled vmap",
        _example_by_example(g),
        _mapped(cr.compile(cr.vmap(g), verify=False)),
    )
    inside = {b: cr.compile(_inner_gradients(g), backend=b, verify=False) for b in backends}
    for backend in backends:
        yield f"gradients inside, {backend}", _gradients(g, []), _values(inside[backend], [])
    yield "jvp against vjp", _paired(g, forward=False), _paired(g, forward=True)
    compiled_g = cr.compile(g, backend="numpy", verify=False)
    yield "jvp of a compiled function", _paired(g, forward=False), _paired(compiled_g, forward=True)
    second = _inner_gradients(_weighted_gradient(g))
    yield (
        "second order, numpy",
        _values(second, []),
        _values(cr.compile(second, backend="numpy", verify=False), []),
    )
    yield (
        "second order of a compiled function",
        _values(second, []),
        _values(_inner_gradients(_weighted_gradient(compiled_g)), []),
    )
    yield "second order, forward over reverse", _values(second, []), _forward_over_reverse(g)


def _leaves(result: Any) -> list[Any]:
    return [leaf for _, leaf in pytree.leaves(result) if isinstance(leaf, cr.Tensor)]


def _weights(t: Any) -> Any:
    numbers = np.linspace(0.5, 1.5, max(t.numel(), 1))[: t.numel()].reshape(t.shape)
    return cr.tensor(numbers.astype(t.dtype))


def _total(result: Any) -> Any:
    """Return a weighted sum of what requires grad, as a real number; None without any."""
    outs = [t for t in _leaves(result) if t.requires_grad]
    total = None
    for t in outs:
        term = (t * _weights(t)).sum()
        term = (term.real + 2 * term.imag if t.is_complex() else term).to(cr.float64)
        total = term if total is None else total + term
    return total


def _values(f: Callable[..., Any], numbers: list[Any]) -> Way:
    return lambda tensors: [t.numpy(force=True) for t in _leaves(f(*tensors, *numbers))]


def _gradients(f: Callable[..., Any], numbers: list[Any]) -> Way:
    def way(tensors: list[Any]) -> list[Any]:
        total = _total(f(*tensors, *numbers))
        leaves = [t for t in tensors if t.requires_grad]
        if total is None:
            return [np.zeros(t.shape, t.dtype) for t in leaves]
        grads = cr.autograd_grad(total, leaves, materialize_grads=True)
        return [g.numpy(force=True) for g in grads]

    return way


def _inner_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(*tensors: Any) -> Any:
        total = _total(f(*tensors))
        leaves = [t for t in tensors if t.requires_grad]
        if total is None:
            return [cr.zeros_like(t) for t in leaves]
        return list(cr.autograd_grad(total, leaves, materialize_grads=True))

    return gradients


def _weighted_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function for a weighted sum of gradients, which can be differentiated."""

    def gradient(*tensors: Any) -> Any:
        total = _total(f(*tensors))
        leaves = [t for t in tensors if t.requires_grad]
        if total is None:
            return []
        return list(cr.autograd_grad(total, leaves, create_graph=True, materialize_grads=True))

    return gradient


def _exported(f: Callable[..., Any], numbers: dict[str, Any]) -> Way:
    def way(tensors: list[Any]) -> list[Any]:
        given = [t.detach() for t in tensors]
        with tempfile.TemporaryDirectory() as folder:
            file = cr.export(f, f"{folder}/exported.py", *given, **numbers)
            made = runpy.run_path(str(file))["f"](*[t.numpy() for t in given], **numbers)
        wanted = pytree.leaves(f(*given, **numbers))
        pairs = zip(wanted, pytree.leaves(made), strict=True)
        return [
            np.asarray(ours) for (_, theirs), (_, ours) in pairs if isinstance(theirs, cr.Tensor)
        ]

    return way


_BATCH = 2


def _examples(tensors: list[Any]) -> list[list[Any]]:
    """Return the arguments of each example of a batch."""
    found = []
    for i in range(_BATCH):
        change = 1 - 0.25 * i
        found.append(
            [
                t.detach() * change if t.dtype.kind in "fc" else t.flip(0) if i else t
                for t in tensors
            ]
        )
    return [[e.to(t.dtype) for e, t in zip(each, tensors, strict=True)] for each in found]


def _example_by_example(f: Callable[..., Any]) -> Way:
    def way(tensors: list[Any]) -> list[Any]:
        results = [_values(f, [])(each) for each in _examples(tensors)]
        return [np.stack(parts) for parts in zip(*results, strict=True)]

    return way


def _mapped(mapped: Callable[..., Any]) -> Way:
    def way(tensors: list[Any]) -> list[Any]:
        batches = [cr.stack(list(parts)) for parts in zip(*_examples(tensors), strict=True)]
        return _values(mapped, [])(batches)

    return way


def _directions(leaves: list[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    return [cr.tensor(np.asarray(rng.uniform(-1, 1, t.shape), t.dtype)) for t in leaves]


def _paired(f: Callable[..., Any], forward: bool) -> Way:
    """Return the derivative of the weighted sum along one direction, by either mode."""

    def way(tensors: list[Any]) -> list[Any]:
        leaves = [t for t in tensors if t.requires_grad]
        directions = _directions(leaves)
        if not forward:
            grads = _gradients(f, [])(tensors)
            terms = [
                (g.conj() * v.numpy()).sum().real for g, v in zip(grads, directions, strict=True)
            ]
            return [np.asarray(sum(terms), np.float64)]

        def along(*given: Any) -> Any:
            rest = iter(given)
            total = _total(f(*[next(rest) if t.requires_grad else t for t in tensors]))
            return cr.zeros((), dtype=cr.float64) if total is None else total

        _, tangent = cr.jvp(along, tuple(leaves), tuple(directions))
        return [tangent.numpy(force=True)]

    return way


def _forward_over_reverse(f: Callable[..., Any]) -> Way:
    """Return the derivative of the gradient along its weights: the Hessian is symmetric."""

    def way(tensors: list[Any]) -> list[Any]:
        leaves = [t for t in tensors if t.requires_grad]
        directions = []
        for t in leaves:
            weights = _weights(t)
            directions.append(weights * (1 + 2j) if t.is_complex() else weights)

        def along(*given: Any) -> Any:
            rest = iter(given)
            return _weighted_gradient(f)(*[next(rest) if t.requires_grad else t for t in tensors])

        if not along(*leaves):
            return [np.zeros(t.shape, t.dtype) for t in leaves]
        _, tangents = cr.jvp(along, tuple(leaves), tuple(directions))
        return [t.numpy(force=True) for t in tangents]

    return way


# --- comparison -----------------------------------------------------------------------------------


def _compare(name: str, function: Function, reference: Way, way: Way) -> None:
    try:
        wanted = reference(function.tensors())
    except Exception as error:  # no such derivative, or an example that can't be computed
        refusals[f"eagerly: {_reason(error)}"] += 1
        return
    try:
        got = way(function.tensors())
    except cr.CompileError as error:
        refusals[f"{name.split(',')[0]}: {_reason(error)}"] += 1
        return
    except Exception as error:
        if _is_refusal(error):
            refusals[f"{name}: {_reason(error)}"] += 1
            return
        raise Disagreement(f"{name}: {type(error).__name__}: {error}") from error
    if "jvp" in name or "forward" in name:  # the modes meet 0 · ∞ at different places
        pairs = [(a, b, np.isfinite(a) & np.isfinite(b)) for a, b in zip(got, wanted, strict=True)]
        got = [np.where(finite, a, 0).astype(a.dtype) for a, _, finite in pairs]
        wanted = [np.where(finite, b, 0).astype(b.dtype) for _, b, finite in pairs]
    if _first_difference(got, wanted, [0.0] * len(wanted), function.eps):
        allowed = _sensitivities(function, reference, wanted)
        text = _first_difference(got, wanted, allowed, function.eps)
        if text:
            raise Disagreement(f"{name}: {text}")


_REFUSED = (
    "compiled while_loop",
    "can't run again",
    "only in forward mode",
    "vmap",
    "no backward pass",
    "in forward mode",
)


def _is_refusal(error: Exception) -> bool:
    if isinstance(error, cr.MissingRuleError):  # a custom function without a jvp
        return True
    return isinstance(error, cr.AutogradError) and any(text in str(error) for text in _REFUSED)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:70]}"


def _first_difference(got: list[Any], wanted: list[Any], allowed: list[Any], eps: float) -> str:
    if len(got) != len(wanted):
        return f"{len(got)} results, expected {len(wanted)}"
    for i, (a, b, bar) in enumerate(zip(got, wanted, allowed, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {i} is {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
        if not (agree := _agrees(a, b, bar, eps)).all():
            at = tuple(map(int, np.argwhere(~agree)[0]))
            return f"result {i}{list(at)} is {a[at]!r}, expected {b[at]!r}"
    return ""


def _agrees(a: Any, b: Any, allowed: Any, eps: float) -> Any:
    if b.dtype.kind not in "fc":
        return (a == b) | (np.asarray(allowed) > 0)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1))
    bar = np.maximum(allowed, ROUNDING * max(float(np.finfo(b.dtype).eps), eps) * scale)
    return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bar) | np.isinf(bar)


def _sensitivities(function: Function, way: Way, wanted: list[Any]) -> list[Any]:
    """Return by how much each result may differ: it changes as much where arguments are rounded."""
    rng = np.random.default_rng(0)
    eps = function.eps
    allowed = [np.zeros(b.shape) for b in wanted]
    for _ in range(4):
        arrays = {
            name: (a * (1 + rng.uniform(-eps, eps, a.shape) * _PERTURBATION)).astype(a.dtype)
            if a.dtype.kind in "fc"
            else a
            for name, a in function.arrays.items()
        }
        try:
            found = way(function._replace(arrays=arrays).tensors())
        except Exception:
            return [np.full(b.shape, np.inf) for b in wanted]
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if a.shape != b.shape:
                return [np.full(b.shape, np.inf) for b in wanted]
            same = (a == b) | ((a != a) & (b != b))
            if b.dtype.kind in "fc":
                change = np.where(same, 0, np.abs(a - b)).astype(float) * _SENSITIVITY
                change = np.where(np.isfinite(change), change, np.inf)
            else:
                change = np.where(same, 0, np.inf)
            allowed[i] = np.maximum(allowed[i], change)
    return allowed
