"""Verification of a compiled call: the eager function runs as well, and all effects are compared.

The eager function runs on the caller's own objects, so that it finds whatever it looks up. Before
the compiled call, the state of everything that the function can reach is kept: memory of tensors
and arrays, `.grad`s, containers, attributes, generators. The eager function starts from that state,
too; then the state after the compiled call is put back. Results, gradients of the results and
states must agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.modes import DEFAULT, MODES
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import ndarray
from chainrule.compiler.verify.state import PLAIN, Roundings, Snapshot, State, step_to
from chainrule.errors import FreedGraphError
from chainrule.interrupts import ERRSTATE, call_then, call_with, errstate, ignore_all

RUNS_EAGERLY: ContextVar[bool] = ContextVar("chainrule verification", default=False)
"""Whether this is the eager run of a verification, in which verified functions run eagerly, too."""

_ROUNDING_FACTOR = 64
"""Largest difference that passes at once, in units of the dtype's eps times the largest element."""

_PERTURBED_RUNS = 4
"""Number of runs on perturbed inputs with other roundings, if there is a larger difference."""

_SENSITIVITY_FACTOR = 32
"""Largest difference that passes then, in units of the largest change by perturbations."""

_MAX_REPORTED = 3
"""Number of differences that an error lists."""


class Difference(Exception):
    """A difference between the compiled and the eager call, as text."""


def call_verified(
    function: Callable[..., Any],
    compiled: Callable[..., Any],
    state: State,
    args: Any,
    kwargs: Any,
    explain: Callable[[], str],
) -> Any:
    """Return the result of a compiled call; raise Difference if the eager one is another.

    `explain` is called with the state that the call found, and its answer added to the error.
    """
    before = state.now()
    result = compiled(*args, **kwargs)
    ours, after = _effects(state, before, result), state.now()

    def compare() -> None:
        found = _compare(function, state, before, args, kwargs, ours)
        if found:
            state.restore(before)
            more = len(found) - _MAX_REPORTED
            rest = f"; and {more} more" if more > 0 else ""
            raise Difference(f"{'; '.join(found[:_MAX_REPORTED])}{rest}. {explain()}")

    call_then(lambda: state.restore(after), compare)
    return result


def _compare(
    function: Any, state: State, before: Snapshot, args: Any, kwargs: Any, ours: dict[str, Any]
) -> list[str]:
    """Return the differences of a call from the eager one, which runs now."""

    def run(roundings: Roundings | None = None) -> dict[str, Any] | Exception:
        values = {RUNS_EAGERLY: True, ERRSTATE: ignore_all(ERRSTATE.get())}  # as in programs
        if roundings is not None:
            values[MODES] = (MODES.get() or DEFAULT).changed(explain=roundings)
        try:
            result = call_with(values, function, *args, **kwargs)
            return _effects(state, before, result)
        except Exception as error:
            return error.with_traceback(None)

    state.restore(before)
    eager = run()
    if isinstance(eager, Exception):
        return [f"eagerly it raises {type(eager).__name__}: {eager}"]
    freed = eager.get(_BACKWARD) is FreedGraphError or _BACKWARD in ours
    if freed:  # an error is not silent
        eager, ours = _without_gradients(eager), _without_gradients(ours)
    if not any(_differences(ours, eager, {})):
        return []
    state.restore(before)
    again = run()
    if freed and not isinstance(again, Exception):
        again = _without_gradients(again)
    if isinstance(again, Exception) or any(_differences(again, eager, {})):
        text = repr(again) if isinstance(again, Exception) else next(_differences(again, eager, {}))
        raise Difference(
            f"in two eager runs it is different: {text}. It depends on what differs from call to "
            "call, such as a clock or numbers from the system: pass that as an argument"
        )
    rng, allowed = np.random.default_rng(0), dict[str, Any]()
    for _ in range(_PERTURBED_RUNS):
        state.restore(before)
        state.perturb(rng)
        _allow(allowed, run(Roundings(rng)), eager)
    typical = {name: _at_least_typical(np.asarray(part)) for name, part in allowed.items()}
    return list(_differences(ours, eager, typical))


# --- outcomes -------------------------------------------------------------------------------------


class _Given(NamedTuple):
    """A tensor that existed before the call."""

    number: int


def _effects(state: State, before: Snapshot, result: Any) -> dict[str, Any]:
    """Return by name what a call returned and changed: copies of arrays, and other leaves."""
    found = dict(_flat(state, "the result", result))
    for name, content in state.changed(before):
        found |= _flat(state, name, content)
    for name, tensor in state.tensors:
        grad = tensor._grad
        found[f"{name}.grad"] = None if grad is None else grad._array.copy()
        found[f"{name}.requires_grad"] = tensor.requires_grad
    for name, array in state.arrays:
        found[name] = array.copy()
    return found | _gradients(state, result)


def _flat(state: State, name: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree and the types of its containers, by name."""
    parts = pytree.children(tree)
    if parts is not None:
        yield f"{name}.__class__", type(tree)
        if isinstance(tree, dict) and len(tree) == len(parts):
            parts = [(step_to(i, key), tree[key]) for i, key in enumerate(tree)]
        for step, part in parts:
            yield from _flat(state, name + step, part)
    elif isinstance(tree, set | frozenset):
        yield f"len({name})", len(tree)
        exact = [repr(part) for part in tree if isinstance(part, str | bytes | int)]
        yield f"sorted({name})", ", ".join(sorted(exact))
    elif not isinstance(tree, Tensor):
        yield name, tree.copy() if isinstance(tree, ndarray) else tree
    elif id(tree) in state.given:
        yield name, _Given(id(tree))
    else:
        yield name, tree._array.copy()
        yield f"{name}.requires_grad", tree.requires_grad
        yield f"{name}.is_leaf", tree.is_leaf
        grad = tree._grad
        yield f"{name}.grad", None if grad is None else grad._array.copy()


def _gradients(state: State, result: Any) -> dict[str, Any]:
    """Return the products of fixed cotangents with the Jacobians of the result, by name."""
    outs = {
        id(leaf): leaf
        for _, leaf in pytree.leaves(result)
        if isinstance(leaf, Tensor) and leaf.requires_grad and id(leaf) not in state.given
    }
    wrt = [(name, t) for name, t in state.tensors if t.requires_grad]
    if not outs or not wrt:
        return {}
    rng = np.random.default_rng(0)
    weights: list[Any] = [rng.uniform(0.5, 1.5, out.shape) for out in outs.values()]
    seeds = [make(w.astype(o.dtype), None) for w, o in zip(weights, outs.values(), strict=True)]
    try:
        grads = autograd_grad(
            list(outs.values()), [t for _, t in wrt], seeds, retain_graph=True, allow_unused=True
        )
    except RuntimeError as error:
        return {_BACKWARD: type(error)}
    pairs = zip(wrt, grads, strict=True)
    return {f"{_GRADIENT}{name}": None if g is None else g._array.copy() for (name, _), g in pairs}


def _without_gradients(effects: dict[str, Any]) -> dict[str, Any]:
    """Return what a call did without the backward pass of its result."""
    skipped = (_BACKWARD, _GRADIENT)
    return {name: part for name, part in effects.items() if not name.startswith(skipped)}


_GRADIENT = "the gradient of "
_BACKWARD = "the backward pass of the result"
"""Name of the error of that pass: after a backward() in the function, eagerly FreedGraphError."""


# --- comparison -----------------------------------------------------------------------------------


def _differences(
    ours: dict[str, Any], eager: dict[str, Any], allowed: dict[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each difference that is more than rounding."""
    for name in sorted({**eager, **ours}, key=lambda name: name.endswith(".__class__")):
        if name.startswith(_GRADIENT):
            yield from _difference(name, ours.get(name), eager.get(name), allowed.get(name, 0.0))
        elif name not in ours:
            yield f"{name} is left as it was, eagerly it becomes {_text(eager[name])}"
        elif name not in eager:
            yield f"{name} becomes {_text(ours[name])}, eagerly it is left as it was"
        else:
            yield from _difference(name, ours[name], eager[name], allowed.get(name, 0.0))


def _difference(name: str, got: Any, want: Any, allowed: Any) -> Iterator[str]:
    if name.startswith("the result") and name.endswith((".requires_grad", ".is_leaf")):
        if name.endswith("grad") and want and not got:  # a compiled `cond` depends on both branches
            yield f"{name} is {got}, eagerly {want}"
    elif isinstance(got, _NUMERIC) and isinstance(want, _NUMERIC):
        a, b = np.asarray(got), np.asarray(want)
        if (type(got), a.shape, a.dtype) != (type(want), b.shape, b.dtype):
            yield f"{name} is {_text(got)}, eagerly {_text(want)}"
        elif (wrong := np.argwhere(~_agrees(a, b, allowed))).size or len(wrong):
            at = tuple(map(int, wrong[0]))
            element = f"{name}[{', '.join(map(str, at))}]" if at else name
            several = f" ({len(wrong)} of {a.size} elements differ)" if len(wrong) > 1 else ""
            yield f"{element} is {a[at]!r}, eagerly {b[at]!r}{several}"
    elif got is None or want is None:
        other = want if got is None else got
        zeros = isinstance(other, ndarray) and not other.any()
        if got is not want and not zeros:  # `cond` gives zeros for what a branch does not use
            yield f"{name} is {_text(got)}, eagerly {_text(want)}"
    elif isinstance(got, ArrayProxy):  # of the trace, kept outside: it raises when it is used
        return
    elif type(got) is not type(want) or (isinstance(got, (*PLAIN, _Given, type)) and got != want):
        yield f"{name} is {_text(got)}, eagerly {_text(want)}"


_NUMERIC = (ndarray, np.number, np.bool_, float, complex, int)


@errstate(all="ignore")
def _agrees(got: Any, want: Any, allowed: Any) -> Any:
    """Return where two arrays agree up to rounding or the allowed difference."""
    if want.dtype.kind not in "fc":
        return (got == want) | (np.asarray(allowed) > 0)
    finite = np.abs(want[np.isfinite(want)])
    scale = finite.max(initial=0).astype(np.float64)
    bar = np.maximum(scale * float(np.finfo(want.dtype).eps) * _ROUNDING_FACTOR, allowed)
    close = np.abs(got - want) <= bar
    unknown = np.isinf(allowed)
    return (got == want) | close | unknown | (np.isnan(got) & np.isnan(want))


def _text(value: Any) -> str:
    if isinstance(value, ndarray):
        return f"an array of {value.dtype} {list(value.shape)}"
    if isinstance(value, _Given):
        return "a tensor from outside"
    return repr(value)[:80]


def _allow(
    allowed: dict[str, Any], perturbed: dict[str, Any] | Exception, eager: dict[str, Any]
) -> None:
    """Raise the allowed differences to what a perturbation of the inputs does to the results."""
    if isinstance(perturbed, Exception):
        return
    for name, want in eager.items():
        got: Any = perturbed.get(name)
        numeric = isinstance(want, _NUMERIC) and isinstance(got, _NUMERIC)
        if numeric and np.shape(got) == np.shape(want):
            change = _change(np.asarray(got), np.asarray(want)) * _SENSITIVITY_FACTOR
            allowed[name] = np.maximum(allowed.get(name, 0.0), change)


def _at_least_typical(allowed: Any) -> Any:
    """Return allowed differences, the median one for elements that happened not to change."""
    changed = allowed[(allowed > 0) & np.isfinite(allowed)]
    return np.where(allowed == 0, np.median(changed), allowed) if changed.size else allowed


@errstate(all="ignore")
def _change(got: Any, want: Any) -> Any:
    """Return the size of a change; infinite where one of the two is no finite number."""
    if want.dtype.kind not in "fc":
        return np.where(got == want, 0.0, np.inf)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    size = np.where(same, 0, np.abs(got - want)).astype(np.float64)
    return np.where(np.isnan(size), np.inf, size)
