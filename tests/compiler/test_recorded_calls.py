"""Passes through compiled results use what the call recorded, whatever has changed since."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import chainrule as cr

BACKENDS = ["numpy", "native"]

X = [0.5, -1.25, 2.0]
module = types.ModuleType("settings")


@dataclass
class Settings:
    k: Any


class Case:
    """A function, its arguments, and what changes between its call and a pass."""

    def __init__(self, function: Callable[..., Any], change: Callable[[], Any], *args: Any) -> None:
        self.function, self.change, self.args = function, change, args


def curved(x: cr.Tensor, k: Any) -> cr.Tensor:
    """Save and recompute values that depend on k in every derivative."""
    return (x * x * (x * k).sin()).exp()


def of_global() -> Case:
    globals()["K"] = 2.0
    return Case(lambda x: curved(x, K), lambda: globals().update(K=3.0))  # type: ignore[name-defined]  # noqa: F821


def of_closure() -> Case:
    k = 2.0

    def change() -> None:
        nonlocal k
        k = 3.0

    return Case(lambda x: curved(x, k), change)


def of_item(container: Any, key: Any, value: Any = 3.0) -> Callable[[], Case]:
    def case() -> Case:
        made = container()
        return Case(lambda x: curved(x, made[key]), lambda: made.__setitem__(key, value))

    return case


def of_argument(container: Any, key: Any, value: Any = 3.0) -> Callable[[], Case]:
    def case() -> Case:
        made = container()
        return Case(lambda x, c: curved(x, c[key]), lambda: made.__setitem__(key, value), made)

    return case


def of_attribute(make: Callable[[], Any]) -> Callable[[], Case]:
    def case() -> Case:
        held = make()
        held.k = 2.0
        return Case(lambda x: curved(x, held.k), lambda: setattr(held, "k", 3.0))

    return case


def of_code() -> Case:
    def scaled(x: cr.Tensor) -> cr.Tensor:
        return curved(x, 2.0)

    def other(x: cr.Tensor) -> cr.Tensor:
        return x

    return Case(lambda x: scaled(x), lambda: setattr(scaled, "__code__", other.__code__))


def of_default_dtype() -> Case:
    return Case(lambda x: curved(x, cr.ones(3)), lambda: cr.set_default_dtype(cr.float64))


def of_branch() -> Case:
    chosen = [True]
    return Case(
        lambda x: curved(x, 2.0) if chosen[0] else x.cos(), lambda: chosen.__setitem__(0, False)
    )


def of_tensor(write: bool) -> Callable[[], Case]:
    def case() -> Case:
        held = [cr.tensor(2.0)]
        change = (lambda: held[0].mul_(2)) if write else (lambda: held.__setitem__(0, cr.ones(())))
        return Case(lambda x: curved(x, held[0]), change)

    return case


def of_draws() -> Case:
    cr.manual_seed(3)
    return Case(lambda x: curved(x, cr.rand(3)), lambda: cr.manual_seed(4))


def of_scan(k: list[float]) -> Case:
    def step(c: Any, x: Any) -> Any:
        c = curved(c * x, k[0])
        return c, c * k[0]

    def function(x: cr.Tensor) -> cr.Tensor:
        last, ys = cr.scan(step, x[0] * 0.5, x)
        return ys * last

    return Case(function, lambda: k.__setitem__(0, 0.1))


def of_cond(k: list[float]) -> Case:
    def function(x: cr.Tensor) -> cr.Tensor:
        return cr.cond(x.sum() > 0, lambda x: curved(x, k[0]), lambda x: x * k[0], x)

    return Case(function, lambda: k.__setitem__(0, 0.1))


def of_custom() -> Case:
    @cr.autograd_function
    def cubed(ctx: Any, x: cr.Tensor) -> cr.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @cubed.backward
    def _(ctx: Any, g: cr.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * x * 5  # not the derivative of its program: this rule counts

    k = [2.0]
    return Case(lambda x: cubed(curved(x, k[0])), lambda: k.__setitem__(0, 3.0))


def of_detached() -> Case:
    k = [2.0]
    return Case(
        lambda x: curved(x, k[0]) * x.detach() * (x * x).detach(), lambda: k.__setitem__(0, 3.0)
    )


CASES: dict[str, Callable[[], Case]] = {
    "global": of_global,
    "closure": of_closure,
    "list": of_item(lambda: [1.0, 2.0], 1),
    "dict": of_item(lambda: {"k": 2.0}, "k"),
    "list that is an argument": of_argument(lambda: [1.0, 2.0], 1),
    "dict that is an argument": of_argument(lambda: {"k": 2.0}, "k"),
    "list of arrays": of_argument(lambda: [np.array([1.0, 2.0, 3.0])], 0, np.zeros(3)),
    "attribute of an object": of_attribute(lambda: Settings(0.0)),
    "attribute of a module": of_attribute(lambda: module),
    "attribute of a class": of_attribute(lambda: type("Held", (), {})),
    "code": of_code,
    "default dtype": of_default_dtype,
    "branch": of_branch,
    "tensor by the same name": of_tensor(write=False),
    "random draws": of_draws,
    "scan": lambda: of_scan([1.5]),
    "cond": lambda: of_cond([1.5]),
    "custom function": of_custom,
    "detached": of_detached,
}

# What these change is memory that the call used.
WRITTEN: dict[str, Callable[[], Case]] = {
    "tensor": of_tensor(write=True),
    "array": of_item(lambda: np.array([2.0, 1.0, 3.0]), slice(None)),
    "array that is an argument": of_argument(lambda: np.array([2.0, 1.0, 3.0]), slice(None)),
}


def by_create_graph(y: cr.Tensor, x: cr.Tensor) -> list[Any]:
    y.sum().backward(create_graph=True)
    return [x.grad, *cr.autograd_grad((x.grad * x.grad).sum(), x)]


def by_autograd_grad(y: cr.Tensor, x: cr.Tensor) -> list[Any]:
    found = [y.sum()]
    for _ in range(3):
        (g,) = cr.autograd_grad(found[-1].sum(), x, create_graph=True)
        found.append(g)
    return found


def by_retained_graph(y: cr.Tensor, x: cr.Tensor) -> list[Any]:
    first = cr.autograd_grad(y.sum(), x, retain_graph=True)
    second = cr.autograd_grad(y.sum(), x, create_graph=True, retain_graph=True)
    return [*first, *second, *cr.autograd_grad(second[0].sum(), x)]


def by_batched_grads(y: cr.Tensor, x: cr.Tensor) -> list[Any]:
    gs = cr.eye(3, dtype=y.dtype)
    (rows,) = cr.autograd_grad(y, x, gs, is_grads_batched=True, create_graph=True)
    return [rows, *cr.autograd_grad((rows * rows).sum(), x)]


WAYS = [by_create_graph, by_autograd_grad, by_retained_graph, by_batched_grads]


def outcome(case: Case, way: Any, backend: str | None) -> list[Any]:
    """Return what a pass gives after the change; without a backend in eager mode."""
    if backend == "native":
        pytest.importorskip("llvmlite")
    before = cr.get_default_dtype()
    function = case.function if backend is None else cr.compile(case.function, backend=backend)
    x = cr.tensor(X, requires_grad=True)
    try:
        y = function(x, *case.args)
        case.change()
        return [t.detach().numpy() for t in way(y, x)]
    finally:
        cr.set_default_dtype(before)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_a_pass_doesnt_see_what_has_changed(name: str, way: Any, backend: str) -> None:
    got, wanted = (outcome(CASES[name](), way, b) for b in (backend, None))
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 2e-4, 1e-5)


@pytest.mark.parametrize("way", [by_create_graph, by_autograd_grad])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_pass_raises_or_uses_what_was_there_if_it_has_been_written_to(
    name: str, way: Any
) -> None:
    case = WRITTEN[name]()
    change, case.change = case.change, lambda: None
    wanted = outcome(case, way, None)
    case.change = change
    try:
        got = outcome(case, way, "numpy")
    except cr.InPlaceError:
        return
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, 2e-4, 1e-5)


def test_the_error_names_the_array_that_has_been_written_to() -> None:
    weights = np.array([2.0, 1.0, 3.0])
    compiled = cr.compile(lambda x, weights: (x * x * weights).sum())
    x = cr.tensor(X, requires_grad=True)
    y = compiled(x, weights)
    weights *= 2
    with pytest.raises(cr.InPlaceError, match="weights, which the compiled"):
        cr.autograd_grad(y, x, create_graph=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_forward_mode_doesnt_see_what_has_changed(name: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    if name == "custom function":
        pytest.skip("it has no rule for forward mode")
    found = []
    for b in (backend, None):
        case = CASES[name]()
        before = cr.get_default_dtype()
        function = case.function if b is None else cr.compile(case.function, backend=b)
        try:
            _, jvp = cr.linearize(lambda x, f=function, case=case: f(x, *case.args), cr.tensor(X))
            case.change()
            found.append(jvp(cr.tensor([1.0, -0.5, 2.0])).numpy())
        finally:
            cr.set_default_dtype(before)
    np.testing.assert_allclose(*found, 2e-4, 1e-5)


def test_the_function_runs_only_to_be_traced() -> None:
    calls = []

    @cr.compile
    def function(x: cr.Tensor) -> cr.Tensor:
        calls.append(1)
        return (x * x * x).sum()

    x = cr.tensor(X, requires_grad=True)
    y = function(x)
    traced = len(calls)
    (g,) = cr.autograd_grad(y, x, create_graph=True)
    cr.autograd_grad(g.sum(), x)
    assert len(calls) == traced


def test_arguments_may_be_gone() -> None:
    """A graph keeps arrays, as in eager mode, and no arguments."""
    compiled = cr.compile(lambda x, y: (x * y).sin().sum())
    x = cr.tensor(X, requires_grad=True)
    doubled = (x * 2) * 1
    total = compiled(doubled, cr.tensor(X))
    doubled.detach_()
    (g,) = cr.autograd_grad(total, x, create_graph=True)
    eager = (x * 2 * cr.tensor(X)).sin().sum()
    (wanted,) = cr.autograd_grad(eager, x, create_graph=True)
    curvatures = [cr.autograd_grad(t.sum(), x)[0] for t in (g, wanted)]
    for a, b in [(g, wanted), curvatures]:
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-5)


# --- derivatives for many directions at once ------------------------------------------------------


def _scanned(x: Any) -> Any:
    return cr.scan(lambda c, v: (c * v + np.sin(c), c * c), x[0], x)[1]


def _solved(x: Any) -> Any:
    return np.linalg.solve(cr.eye(3, dtype=cr.float64) + x[:, None] * x, x)


MANY_TO_MANY = [np.sin, np.sort, lambda x: x[::-1] * x[0], _scanned, _solved]


@pytest.mark.parametrize("function", MANY_TO_MANY)
@pytest.mark.parametrize("mode", ["reverse", "forward", None])
def test_jacobians_of_compiled_functions(function: Any, mode: Any) -> None:
    x, compiled = np.array([0.3, 0.7, 1.2]), cr.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cr.PerformanceWarning)  # add.at has no batching rule
        found = cr.jacobian(compiled, mode=mode)(x)
        batched = cr.vmap(cr.jacobian(compiled, mode=mode))(np.stack([x, 2 * x]))
    steps = 1e-6 * np.eye(3)
    values = [(cr.tensor(x + h), cr.tensor(x - h)) for h in steps]
    columns = [(function(a).numpy() - function(b).numpy()) / 2e-6 for a, b in values]
    np.testing.assert_allclose(found, np.stack(columns, -1), atol=1e-8)
    np.testing.assert_allclose(batched[0], found, atol=1e-12)


@pytest.mark.parametrize("inner", ["reverse", "forward"])
def test_jacobians_of_jacobians_of_compiled_functions(inner: Any) -> None:
    def function(x: Any) -> Any:
        return np.sin(x[::-1] * x[0])

    x, compiled = np.array([0.3, 0.7, 1.2]), cr.compile(function)
    found = cr.jacobian(cr.jacobian(compiled, mode=inner), mode="forward")(x)
    expected = cr.jacobian(cr.jacobian(function, mode="reverse"), mode="reverse")(x)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_batched_cotangents_of_two_results_release_the_graph_once() -> None:
    pair = cr.compile(lambda x: (np.sin(x), x[::-1] * x))
    x = cr.tensor([0.3, 0.7], dtype=cr.float64, requires_grad=True)
    a, b = pair(x)
    g = cr.eye(2, dtype=cr.float64)
    (found,) = cr.autograd_grad([a, b], [x], [g, g], is_grads_batched=True)
    expected = np.diag(np.cos(x.numpy(force=True))) + np.array([[0.7, 0.3], [0.7, 0.3]])
    np.testing.assert_allclose(found.numpy(), expected)
    with pytest.raises(cr.AutogradError, match="second time"):
        a.sum().backward()


class Store:
    kept: Any = None


@pytest.mark.parametrize("where", ["grad", "set", "object"])
def test_what_is_kept_without_being_returned_has_no_history_in_silence(where: str) -> None:
    """A pass that comes by it for some leaves only must not take it for a constant."""
    w, other = (cr.tensor([1.0, 2.0], requires_grad=True) for _ in "ab")
    store = Store()

    def keep(x: Any) -> Any:
        if where == "grad":
            ((w * x) ** 3).sum().backward(create_graph=True)
        elif where == "set":
            w.grad = x * w * w
        else:
            store.kept = x * w * w
        return x * 2

    cr.compile(keep, backend="numpy")(cr.tensor([1.0, 2.0]))
    kept = store.kept if where == "object" else w.grad
    assert kept.requires_grad
    with pytest.raises(cr.AutogradError, match="records the history of what it returns only"):
        cr.autograd_grad(kept.sum() + w.sum(), w)
    (g,) = cr.autograd_grad((kept * other).sum(), other)
    assert g.tolist() == kept.tolist()


def test_a_gradient_through_the_history_of_a_tensor_from_outside_is_refused() -> None:
    w, other = (cr.tensor([1.0, 2.0], requires_grad=True) for _ in "ab")
    outside, unrelated = w * 2, other * 3

    def by_leaf(x: Any, z: Any) -> Any:
        return cr.autograd_grad((x * z * w).sum(), w, retain_graph=True)[0]

    def by_it(x: Any, z: Any) -> Any:
        return cr.autograd_grad((x * z * w).sum(), z, retain_graph=True)[0]

    x = cr.tensor([3.0, 5.0])
    for function in (by_leaf, by_it):
        compiled = cr.compile(function, backend="numpy")
        assert compiled(x, unrelated).tolist() == function(x, unrelated).tolist()
    assert cr.compile(by_it, backend="numpy")(x, outside).tolist() == by_it(x, outside).tolist()
    with pytest.raises(cr.AutogradError, match="made outside a compiled function can't be walked"):
        cr.compile(by_leaf, backend="numpy")(x, outside)
