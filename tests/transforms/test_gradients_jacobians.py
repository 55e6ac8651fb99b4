"""Gradients, Jacobians and Hessians: their structure, compared with PyTorch and JAX."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree

RNG = np.random.default_rng(5)
W, B, X = RNG.standard_normal((3, 2)), RNG.standard_normal(3), RNG.standard_normal(2)


def double(value: Any) -> cr.Tensor:
    return cr.tensor(value, dtype=cr.float64)


def layer(xp: Any, w: Any, b: Any, x: Any) -> Any:
    return xp.tanh(w @ x + b)


def loss(xp: Any, w: Any, b: Any, x: Any) -> Any:
    return (layer(xp, w, b, x) ** 2).sum()


def arrays(found: Any) -> list[Any]:
    """Return the leaves of what any library returned, as arrays."""
    return [np.asarray(leaf) for _, leaf in pytree.leaves(found)]


def same(ours: Any, theirs: Any) -> None:
    for mine, other in zip(arrays(ours), arrays(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


TRANSFORMS: dict[str, tuple[Callable[..., Any], str]] = {
    "grad": (loss, "grad"),
    "jacobian": (layer, "jacrev"),
    "hessian": (loss, "hessian"),
}


@pytest.mark.parametrize("argnums", [0, 1, 2, (0, 1), (2, 0, 1)])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_those_of_pytorch(name: str, argnums: Any) -> None:
    torch = pytest.importorskip("torch")
    function, theirs = TRANSFORMS[name]
    wanted = getattr(torch.func, theirs)(lambda *a: function(torch, *a), argnums)
    found = getattr(cr, name)(lambda *a: function(cr, *a), argnums)
    same(found(W, B, X), wanted(*map(torch.from_numpy, (W, B, X))))


@pytest.mark.parametrize("name", ["grad_and_value", "jacrev", "jacfwd", "hessian"])
def test_names_of_torch_func_mean_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    function = layer if name.startswith("jac") else loss
    wanted = getattr(torch.func, name)(lambda *a: function(torch, *a), (0, 1))
    found = getattr(cr.func, name)(lambda *a: function(cr, *a), (0, 1))
    same(found(W, B, X), wanted(*map(torch.from_numpy, (W, B, X))))
    assert set(cr.func.__all__) <= set(torch.func.__all__)


@pytest.mark.parametrize("argnums", [0, (0, 1), (2, 0, 1)])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_those_of_jax(name: str, argnums: Any) -> None:
    jax = pytest.importorskip("jax")
    function, theirs = TRANSFORMS[name]
    with jax.enable_x64(True):
        wanted = getattr(jax, theirs)(lambda *a: function(jax.numpy, *a), argnums)(W, B, X)
        same(getattr(cr, name)(lambda *a: function(cr, *a), argnums)(W, B, X), wanted)


@pytest.mark.parametrize("mode", ["reverse", "forward", None])
def test_both_modes_give_the_same_jacobian_and_hessian(mode: str | None) -> None:
    parameters = {"w": W, "b": B}

    def of(p: dict[str, Any], x: Any) -> dict[str, Any]:
        return {"out": layer(cr, p["w"], p["b"], x), "norm": cr.linalg.norm(p["w"])}

    same(
        cr.jacobian(of, (0, 1), mode=mode)(parameters, X),
        cr.jacobian(of, (0, 1), mode="reverse")(parameters, X),
    )
    same(
        cr.hessian(lambda p: loss(cr, p["w"], p["b"], X), mode=mode)(parameters),
        cr.hessian(lambda p: loss(cr, p["w"], p["b"], X), mode="forward")(parameters),
    )


MATRIX, VECTOR = 2 * np.eye(3), np.arange(3.0)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: a @ x,
        lambda x, a: np.linalg.solve(a, x),
        lambda x, a: np.linalg.cholesky(a + np.outer(x, x))[:, 0],
        lambda x, a: np.logaddexp(x, a[0]),
    ],
    ids=["matmul", "solve", "cholesky", "logaddexp"],
)
def test_jacobians_of_compiled_and_mapped_functions(function: Any, mode: str) -> None:
    jacobian = cr.jacobian(function, mode=mode)
    expected = jacobian(VECTOR, MATRIX)
    steps = 1e-6 * np.eye(3)
    differences = [function(VECTOR + e, MATRIX) - function(VECTOR - e, MATRIX) for e in steps]
    np.testing.assert_allclose(expected, np.transpose(differences) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(cr.compile(jacobian)(VECTOR, MATRIX), expected, atol=1e-14)
    by_matrix = cr.compile(lambda a: jacobian(VECTOR, a))  # the argument is known, the rest isn't
    np.testing.assert_allclose(by_matrix(MATRIX), expected, atol=1e-14)
    mapped = cr.vmap(jacobian, (None, 0))(VECTOR, np.stack([MATRIX, 3 * MATRIX]))
    np.testing.assert_allclose(mapped[0], expected, atol=1e-14)
    np.testing.assert_allclose(mapped[1], jacobian(VECTOR, 3 * MATRIX), atol=1e-14)


def test_blocks_are_found_by_name() -> None:
    def of(w: Any, b: Any) -> dict[str, Any]:
        return {"y": w * b, "z": (w[0], 3.0, "label")}

    blocks = cr.jacobian(of, ("w", "b"))(double([1.0, 2.0]), double(5.0))
    assert blocks["y"]["w"].tolist() == [[5.0, 0.0], [0.0, 5.0]]
    assert blocks["y"]["b"].tolist() == [1.0, 2.0]
    assert blocks["z"][0]["w"].tolist() == [1.0, 0.0]
    assert blocks["z"][1]["w"].tolist() == [0.0, 0.0]
    assert blocks["z"][2] is None
    second = cr.hessian(lambda w, b: (w * w * b).sum(), ("w", "b"))(double([1.0, 2.0]), double(5.0))
    assert second["w"]["w"].tolist() == [[10.0, 0.0], [0.0, 10.0]]
    assert second["w"]["b"].tolist() == [2.0, 4.0]
    assert second["b"]["b"].item() == 0.0


Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: Any
    y: Any


def test_a_gradient_has_the_structure_of_its_argument() -> None:
    def squares(p: Any) -> Any:
        return sum((leaf * leaf).sum() for _, leaf in pytree.leaves(p) if leaf is not None)

    for p in (
        Pair(1.0, 2.0),
        [1.0, (2.0, None)],
        {"b": 1.0, "a": {"c": np.ones(2)}},
        Point(1.0, 2.0),
    ):
        found = cr.grad(squares)(p)
        assert type(found) is type(p)
        for (path, leaf), (other, g) in zip(pytree.leaves(p), pytree.leaves(found), strict=True):
            assert path == other
            assert type(g) is type(leaf)
            assert leaf is None or np.array_equal(g, 2 * leaf)


def test_arguments_are_chosen_by_position_or_name_however_they_are_passed() -> None:
    def f(x: Any, y: Any = 3.0, *, scale: Any = 2.0) -> Any:
        return x * y * scale

    assert cr.grad(f)(5.0) == 6.0
    assert cr.grad(f, "x")(x=5.0) == 6.0
    assert cr.grad(f, 0)(x=5.0) == 6.0
    assert cr.grad(f, -1)(5.0, 3.0) == 10.0
    assert cr.grad(f, "y")(5.0) == 10.0
    assert cr.grad(f, 1)(5.0) == 10.0
    assert cr.grad(f, "scale")(5.0) == 15.0
    assert cr.grad(f, ["scale", "x"])(5.0, scale=1.0) == {
        "scale": 15.0,
        "x": 3.0,
    }
    assert cr.grad(lambda *xs: xs[0] * xs[1], (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert cr.grad(cr.grad(f, "x"), "y")(5.0) == 2.0  # the signature is the function's own


def test_auxiliary_results_are_returned() -> None:
    def f(x: Any) -> Any:
        return x * x, {"seen": x + 1, "label": "a"}

    x = double(3.0)
    (value, aux), slope = cr.value_and_grad(f, has_aux=True)(x)
    assert (value.item(), slope.item(), aux["seen"].item(), aux["label"]) == (9.0, 6.0, 4.0, "a")
    slope, aux = cr.grad(f, has_aux=True)(x)
    assert (slope.item(), aux["seen"].item()) == (6.0, 4.0)
    value, pull, aux = cr.vjp(f, x, has_aux=True)
    assert (value.item(), pull(2.0).item(), aux["label"]) == (9.0, 12.0, "a")
    block, aux = cr.jacobian(f, has_aux=True)(x)
    assert (block.item(), aux["seen"].item()) == (6.0, 4.0)
    for part in (value, slope, aux["seen"], block):
        assert not part.requires_grad


def test_no_grad_of_a_leaf_is_touched_and_nothing_is_recorded_for_plain_arguments() -> None:
    w = double([1.0, 2.0]).requires_grad_()
    slope = cr.grad(lambda w: (w * w).sum())(w)
    assert w.grad is None
    assert slope.requires_grad  # it depends on w, which does
    assert not cr.grad(lambda w: (w * w).sum())(w.detach()).requires_grad
    with cr.no_grad():
        assert cr.grad(lambda w: (w * w).sum())(w).tolist() == [2.0, 4.0]
        assert not cr.grad(lambda w: (w * w).sum())(w).requires_grad


def test_a_backward_pass_reaches_what_a_gradient_closes_over() -> None:
    w = double(2.0).requires_grad_()
    for derivative in (
        lambda: cr.grad(lambda x: w * w * x * x)(3.0),
        lambda: cr.jacobian(lambda x: w * w * x * x)(3.0),
        lambda: cr.vjp(lambda x: w * w * x * x, 3.0)[1](1.0),
        lambda: cr.linearize(lambda x: w * w * x * x, 3.0)[1](1.0),
        lambda: cr.hvp(lambda x: w * w * x * x * x / 6, 2.0, 3.0) * 4 / 4,
    ):
        w.grad = None
        derivative().backward()
        assert w.grad.item() == 24.0


def test_transforms_nest() -> None:
    f: Any = cr.sin
    for order, wanted in enumerate([np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3)], 1):
        f = cr.grad(f)
        assert f(double(0.3)).item() == pytest.approx(wanted), order
    inner = cr.grad(lambda x: x * cr.grad(lambda y: x * y * y)(x))
    assert inner(double(3.0)).item() == 54.0


def test_the_hessian_times_a_vector() -> None:
    p, t = {"w": W, "b": B}, {"w": W[::-1].copy(), "b": None}
    found = cr.hvp(lambda p: loss(cr, p["w"], p["b"], X), (p,), (t,))
    blocks = cr.hessian(lambda p: loss(cr, p["w"], p["b"], X))(p)
    assert type(found) is tuple
    for name in p:
        wanted = np.einsum("...ij,ij->...", blocks[name]["w"], t["w"])
        np.testing.assert_allclose(found[0][name], wanted, atol=1e-12)


def test_a_custom_function_needs_no_rule_of_forward_mode() -> None:
    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_variables.x**2 * g

    x = double([1.0, 2.0])
    assert cr.hvp(lambda x: cube(x).sum(), x, cr.ones(2)).tolist() == [6.0, 12.0]
    wide = cr.jacobian(lambda x: cr.stack([cube(x), cube(x)]))(x)  # more outputs than arguments
    assert wide.shape == (2, 2, 2)
    with pytest.raises(cr.MissingRuleError, match=r"no rule for forward mode.*@.*cube.jvp"):
        cr.jacobian(cube, mode="forward")(x)


def test_a_gradient_frees_saved_values_during_the_pass() -> None:
    contexts = []

    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        contexts.append(ctx)
        return x**3

    @cube.backward
    def _(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_variables.x**2 * g

    assert cr.grad(cube)(double(2.0)).item() == 12.0
    with pytest.raises(cr.FreedGraphError):
        _ = contexts[0].saved_variables


def test_a_linear_approximation_is_computed_once() -> None:
    calls = []

    def f(x: Any, p: Any) -> Any:
        calls.append(1)
        return {"y": x * x * p["s"]}

    value, push = cr.linearize(f, double(3.0), {"s": double(2.0)})
    assert value["y"].item() == 18.0
    assert push(1.0, {"s": None})["y"].item() == 12.0
    assert push(None, {"s": 1.0})["y"].item() == 9.0
    assert len(calls) == 1


def test_a_vjp_function_can_be_called_again_and_takes_none() -> None:
    outputs, pull = cr.vjp(lambda x, y: (x * y, x.to(cr.int64), "label"), double(2.0), double(3.0))
    assert outputs[2] == "label"
    for _ in range(2):
        assert [g.item() for g in pull((1.0, None, None))] == [3.0, 2.0]
    assert [g.item() for g in pull((None, None, None))] == [0.0, 0.0]


def test_complex_gradients_follow_pytorchs_convention() -> None:
    torch = pytest.importorskip("torch")
    z = np.array([1.0 + 2.0j, -0.5j])
    wanted = torch.func.grad(lambda z: (z * z * z.conj()).abs().sum())(torch.from_numpy(z))
    same(cr.grad(lambda z: (z * z * z.conj()).abs().sum())(z), wanted)


def test_transforms_can_be_compiled() -> None:
    for derivative in (
        cr.grad(lambda w: loss(cr, w, B, X)),
        cr.value_and_grad(lambda w: loss(cr, w, B, X)),
        cr.jacobian(lambda w: layer(cr, w, B, X)),
        cr.hessian(lambda w: loss(cr, w, B, X)),
    ):
        same(cr.compile(derivative)(double(W)), derivative(double(W)))
    same(
        cr.grad(cr.compile(lambda w: loss(cr, w, B, X)))(W), cr.grad(lambda w: loss(cr, w, B, X))(W)
    )


def test_what_does_not_fit_is_named() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * y

    one, many = double(1.0), double([1.0, 2.0])
    with pytest.raises(
        cr.AutogradError, match=r"grad can be implicitly.*f \(.*shape \[2\].*jacobian"
    ):
        cr.grad(f)(many, one)
    with pytest.raises(cr.AutogradError, match="returned a float"):
        cr.grad(lambda x: 2.0)(one)
    with pytest.raises(cr.AutogradError, match="complex128"):
        cr.value_and_grad(f)(one, 1j * one)
    with pytest.raises(cr.ArgumentError, match=r"argument 2 of .*the call has 0, 1"):
        cr.grad(f, 2)(one, one)
    with pytest.raises(cr.ArgumentError, match=r"argument 'z' of .*the call has 0, 'y'"):
        cr.grad(f, "z")(one, y=one)
    with pytest.raises(cr.ArgumentError, match="twice"):
        cr.grad(f, (0, "x"))(one, one)
    with pytest.raises(cr.ArgumentError, match="argnums is empty"):
        cr.grad(f, ())(one, one)
    with pytest.raises(TypeError, match=r"argnums are positions or names.*got 1.5"):
        cr.grad(f, 1.5)(one, one)  # type: ignore[arg-type] # on purpose
    with pytest.raises(cr.DTypeError, match=r"got int64 at x: write 2.0 for 2"):
        cr.grad(f)(2, one)
    with pytest.raises(TypeError, match=r"expected .*f.* to return a pair"):
        cr.grad(f, has_aux=True)(one, one)
    with pytest.raises(cr.ArgumentError, match='"reverse", "forward" or None'):
        cr.jacobian(f, mode="backward")
    with pytest.raises(cr.AutogradError, match="real outputs, but got complex128"):
        cr.jacobian(f)(one, 1j * one)
    _, pull = cr.vjp(f, many, one)
    with pytest.raises(
        cr.ShapeError, match=r"a cotangent must have the shape of its output: got \[3\]"
    ):
        pull(cr.ones(3))
    with pytest.raises(TypeError, match=r"outputs.* is a Tensor, at cotangents.* a list of 2"):
        pull([1.0, 2.0])


# --- unused arguments -----------------------------------------------------------------------------


def test_unused_arguments_are_named() -> None:
    def f(p: Any, scale: Any, offset: Any = 1.0) -> Any:
        return (p["w"][0] * scale).sum()

    p = {"w": [X, 2.0], "b": 3.0}
    assert cr.grad(f)(p, 2.0)["b"] == 0.0
    for transform in (cr.grad, cr.value_and_grad, cr.jacobian, cr.hessian):
        title = transform.__name__
        wanted = rf"{title}: the result of .*f \(.*\) doesn't depend on {{}}: use it, leave"
        of_p = wanted.format(r"p\['w'\]\[1\], p\['b'\]")
        with pytest.raises(cr.AutogradError, match=of_p):
            transform(f, unused="raise")(p, 2.0)
        with pytest.raises(cr.AutogradError, match=wanted.format("offset")):
            transform(f, ("scale", "offset"), unused="raise")(p, 2.0)
        assert transform(f, "scale", unused="raise")(p, 2.0) is not None
        with pytest.raises(cr.ArgumentError, match='unused is "zeros" or "raise", but got True'):
            transform(f, unused=True)
    with pytest.raises(cr.AutogradError, match="doesn't depend on argument 1: "):
        cr.grad(lambda *xs: xs[0], (0, 1), unused="raise")(1.0, 2.0)
    with pytest.raises(cr.AutogradError, match="doesn't depend on x: "):  # only the aux does
        cr.grad(lambda x, y: (y, x), "x", has_aux=True, unused="raise")(1.0, cr.tensor(2.0))


def _tripled(x):
    return x.mul_(-3)


def _first_replaced(x):
    x[0] = 5 * x[1]
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [(_tripled, [[-3.0, 0.0], [0.0, -3.0]]), (_first_replaced, [[0.0, 5.0], [0.0, 1.0]])],
)
def test_functions_may_write_to_an_argument_that_has_a_history(function, expected):
    """Derivatives are by what the argument was: the write gives its tensor another node."""
    x = cr.tensor([1.0, 2.0], dtype=cr.float64, requires_grad=True)
    expected = np.array(expected)
    unit = cr.tensor([0.0, 1.0], dtype=cr.float64)
    total = cr.grad(lambda x: function(x).sum())(x)
    np.testing.assert_array_equal(total.numpy(), expected.sum(0))
    for mode in ("reverse", "forward"):
        np.testing.assert_array_equal(cr.jacobian(function, mode=mode)(x).numpy(), expected)
    np.testing.assert_array_equal(cr.vjp(function, x)[1](unit).numpy(), expected[1])
    np.testing.assert_array_equal(cr.jvp(function, (x,), (unit,))[1].numpy(), expected[:, 1])
    np.testing.assert_array_equal(cr.linearize(function, x)[1](unit).numpy(), expected[:, 1])
    assert x.tolist() == [1.0, 2.0]


def _with_a_pass_of_its_own(x):
    y = (x**2).sum()
    y.backward(retain_graph=True)
    return y


def _with_a_gradient_set(x):
    x.grad = cr.ones(2)
    return (x**2).sum()


def _with_a_pass_in_a_hook(x):
    @cr.enable_grad()
    def hook(g):
        (x * 5).sum().backward()

    y = x**2
    y.register_hook(hook)
    return y.sum()


def _with_a_hook_after_accumulation(x):
    x.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(7))
    return (x**2).sum()


@pytest.mark.parametrize(
    "function",
    [
        _with_a_pass_of_its_own,
        _with_a_gradient_set,
        _with_a_pass_in_a_hook,
        _with_a_hook_after_accumulation,
    ],
)
def test_what_a_function_does_with_grad_is_not_part_of_its_gradient(function):
    x, wanted = cr.tensor([1.0, 2.0]), [2.0, 4.0]
    assert cr.grad(function)(x).tolist() == wanted
    assert cr.value_and_grad(function)(x)[1].tolist() == wanted
    assert cr.grad(lambda a, b: function(a) + b)(x, 1.0).tolist() == wanted
    assert x.grad is None
