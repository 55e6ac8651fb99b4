"""Products with Hessians and Gauss-Newton matrices, Laplacians; `stop_gradient`, `checkpoint`."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(0)
MATRIX, X, V = RNG.normal(size=(4, 5)), RNG.normal(size=5), RNG.normal(size=5)


def model(x: Any) -> Any:
    return np.tanh(MATRIX @ x) * x[0]


def energy(x: Any) -> Any:
    return np.sum(np.sin(MATRIX @ x)) * x[0]


def loss(outputs: Any) -> Any:
    return np.sum(np.exp(outputs) * outputs)


def gauss_newton(x: Any) -> Any:
    """Return the matrix, formed."""
    jacobian = cr.jacobian(model)(x)
    return jacobian.T @ cr.hessian(loss)(model(x)) @ jacobian


PRODUCTS: dict[str, tuple[Any, Any]] = {
    "hvp": (lambda x, v: cr.hvp(energy, x, v), lambda x: cr.hessian(energy)(x)),
    "vhp": (lambda x, v: cr.vhp(energy, x, v), lambda x: cr.hessian(energy)(x)),
    "ggnvp": (lambda x, v: cr.ggnvp(model, x, v, loss), gauss_newton),
    "least squares": (
        lambda x, v: cr.ggnvp(model, x, v),
        lambda x: cr.jacobian(model)(x).T @ cr.jacobian(model)(x),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_those_of_the_matrix_plain_compiled_and_mapped(name: str) -> None:
    product, matrix = PRODUCTS[name]
    wanted = matrix(X) @ V
    for function in (product, cr.compile(product)):
        found = function(X, V)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        as_tensor = function(cr.tensor(X), cr.tensor(V))
        assert type(as_tensor) is cr.Tensor
        np.testing.assert_allclose(as_tensor.numpy(), wanted, rtol=1e-12)
    columns = cr.vmap(product, (None, 0))(X, np.eye(5))
    np.testing.assert_allclose(columns, matrix(X), rtol=1e-12)
    points = np.stack([X, 2 * X])
    each = cr.vmap(product, (0, None))(points, V)
    np.testing.assert_allclose(each[1], matrix(2 * X) @ V, rtol=1e-12)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_differentiated_again(name: str) -> None:
    product, matrix = PRODUCTS[name]
    found = cr.jacobian(lambda x: product(x, V))(X)
    step = 1e-6
    for i, unit in enumerate(np.eye(5)):
        slope = (matrix(X + step * unit) - matrix(X - step * unit)) @ V / (2 * step)
        np.testing.assert_allclose(found[:, i], slope, rtol=1e-6, atol=1e-7)


def test_products_of_trees_and_several_arguments() -> None:
    def line(w: Any, b: Any) -> Any:
        return {"y": w["slope"] * 2 + b, "z": b**2}

    w, b = {"slope": np.ones(3)}, 2.0
    found = cr.ggnvp(line, (w, b), ({"slope": np.ones(3)}, None))
    assert isinstance(found, tuple)
    assert found[0]["slope"].tolist() == [4.0, 4.0, 4.0]
    assert found[1] == 6.0
    found = cr.vhp(lambda w, b: (w["slope"] * b).sum(), [w, b], [None, 1.0])
    assert isinstance(found, list)
    assert found[0]["slope"].tolist() == [1.0, 1.0, 1.0]
    assert found[1] == 0.0


def test_products_without_forward_rules_and_of_constants_and_complex_numbers() -> None:
    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx: Any, grad_output: Any) -> Any:
        return {"x": 3 * ctx.saved_variables.x**2 * grad_output}

    found = cr.hvp(lambda x: (cube(x) * x).sum(), X, V)
    np.testing.assert_allclose(found, 12 * X**2 * V, rtol=1e-12)
    assert cr.hvp(lambda x: (2 * x).sum(), X, V).tolist() == [0.0] * 5
    assert cr.hvp(lambda x: cr.tensor(1.0), X, V).tolist() == [0.0] * 5
    assert cr.hvp(lambda x: x[0] ** 2, X, None).tolist() == [0.0] * 5

    def modulus(z: Any) -> Any:
        return (np.abs(z) ** 4).sum()

    z, t = X + 1j * V, V - 0.5j * X
    step = 1e-6
    slope = (cr.grad(modulus)(z + step * t) - cr.grad(modulus)(z - step * t)) / (2 * step)
    np.testing.assert_allclose(cr.hvp(modulus, z, t), slope, rtol=1e-6)


def test_vhp_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    _, wanted = torch.autograd.functional.vhp(
        lambda x: torch.sum(torch.sin(torch.tensor(MATRIX) @ x)) * x[0],
        torch.tensor(X),
        torch.tensor(V),
    )
    np.testing.assert_allclose(cr.vhp(energy, X, V), wanted.numpy(), rtol=1e-12)


def test_ggnvp_is_that_of_hips_autograd() -> None:
    anp = pytest.importorskip("autograd.numpy")
    operators = pytest.importorskip("autograd.differential_operators")
    wanted = operators.make_ggnvp(
        lambda x: anp.tanh(anp.dot(MATRIX, x)) * x[0], lambda y: anp.sum(anp.exp(y) * y)
    )(X)(V)
    np.testing.assert_allclose(cr.ggnvp(model, X, V, loss), wanted, rtol=1e-12)


# --- Laplacian ------------------------------------------------------------------------------------


def rough(x: Any) -> Any:
    return (np.sin(x) * np.roll(x, 1) ** 2).sum()


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 65, 100])
def test_laplacian_is_the_trace_of_the_hessian(count: int) -> None:
    x = np.random.default_rng(count).normal(size=count)
    wanted = np.trace(cr.hessian(rough)(x))
    found = cr.laplacian(rough)(x)
    assert type(found) is np.float64
    assert found == pytest.approx(wanted, rel=1e-12)
    assert cr.compile(cr.laplacian(rough))(x) == pytest.approx(wanted, rel=1e-12)


def test_laplacian_is_that_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def same(x: Any) -> Any:
        return (jnp.sin(x) * jnp.roll(x, 1) ** 2).sum()

    wanted = jnp.trace(jax.hessian(same)(X.astype("f4")))
    assert cr.laplacian(rough)(X) == pytest.approx(float(wanted), rel=1e-4)


def test_laplacian_over_trees_and_several_arguments_and_kinds() -> None:
    def field(p: Any, z: Any) -> Any:
        return (p["x"] ** 2).sum() * z**3

    p = {"x": np.ones(3)}
    assert cr.laplacian(field)(p, 2.0) == 48.0
    assert cr.laplacian(field, "z")(p, 2.0) == 36.0
    assert cr.laplacian(field, ("p", "z"))(p, 2.0) == 84.0
    assert type(cr.laplacian(lambda x: x**3)(2.0)) is float
    assert type(cr.laplacian(lambda x: (x**3).sum())(cr.ones(2))) is cr.Tensor
    assert cr.laplacian(lambda x: (x**3).sum())(np.ones(2, "f4")).dtype == np.float32
    assert cr.laplacian(lambda x: (x**3).sum())(np.ones((0, 2))) == 0.0


def test_laplacian_at_many_points_and_its_gradient_by_parameters() -> None:
    w = cr.tensor(RNG.normal(size=(3, 5)), requires_grad=True)

    def network(w: Any, x: Any) -> Any:
        return (w @ x).sin().prod()

    def residual(w: Any, points: Any) -> Any:
        return (cr.vmap(cr.laplacian(network, "x"), (None, 0))(w, points) ** 2).sum()

    points = cr.tensor(RNG.normal(size=(2, 5)))
    found = cr.grad(residual)(w, points)
    residual(w, points).backward()
    np.testing.assert_allclose(w.grad.numpy(), found.detach().numpy(), rtol=1e-10)
    step = 1e-6
    for at in [(0, 0), (2, 4)]:
        values = [
            residual(w.detach() + sign * step * cr.tensor(_unit(at)), points) for sign in (1, -1)
        ]
        slope = ((values[0] - values[1]) / (2 * step)).item()
        assert found[at].item() == pytest.approx(slope, rel=1e-5)


def _unit(at: tuple[int, int]) -> Any:
    unit = np.zeros((3, 5))
    unit[at] = 1
    return unit


def test_laplacian_needs_no_memory_for_the_hessian() -> None:
    x = np.random.default_rng(0).normal(size=1500)
    cr.laplacian(rough)(x[:40])
    gc.collect()
    tracemalloc.start()
    found = cr.laplacian(rough)(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.isfinite(found)
    assert peak < x.size**2 * 8 / 2


def test_a_compiled_laplacian_is_a_loop() -> None:
    lengths = []
    for count in (128, 512):
        function = cr.compile(cr.laplacian(rough), backend="numpy")
        function(np.ones(count))
        lengths.append(len(function.source.splitlines()))
    assert lengths[0] == lengths[1]


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "laplacian of no scalar": (
        lambda: cr.laplacian(np.sin)(X),
        cr.AutogradError,
        r"laplacian: .* only for real scalar outputs, but sin returned a tensor of shape \[5\]",
    ),
    "laplacian by complex": (
        lambda: cr.laplacian(lambda z: np.abs(z) ** 2)(1j),
        cr.AutogradError,
        "laplacian: .* only for real coordinates, but got complex128",
    ),
    "laplacian unused": (
        lambda: cr.laplacian(lambda a, b: a**2, ("a", "b"), unused="raise")(1.0, 2.0),
        cr.AutogradError,
        "laplacian: the result of .* doesn't depend on b",
    ),
    "laplacian by an integer": (
        lambda: cr.laplacian(lambda x: x**2)(cr.tensor(2)),
        cr.DTypeError,
        "laplacian: a primal must be floating or complex, got int64",
    ),
    "hvp of no scalar": (
        lambda: cr.hvp(np.sin, X, V),
        cr.AutogradError,
        "hvp: .* only for real scalar outputs, but sin returned",
    ),
    "ggnvp with a loss of no scalar": (
        lambda: cr.ggnvp(model, X, V, np.sin),
        cr.AutogradError,
        "ggnvp: .* only for real scalar outputs, but sin returned",
    ),
    "ggnvp of another shape": (
        lambda: cr.ggnvp(model, X, V[:2]),
        cr.ShapeError,
        r"ggnvp: a tangent must have the shape of its primal: got \[2\], expected \[5\]",
    ),
    "vhp of another structure": (
        lambda: cr.vhp(energy, (X,), (V, V)),
        TypeError,
        "vhp: primals and tangents must have the same structure",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


# --- stop_gradient and checkpoint -----------------------------------------------------------------


def test_stop_gradient() -> None:
    assert cr.grad(lambda x: x * cr.stop_gradient(x**2))(3.0) == 9.0
    assert cr.jvp(lambda x: x * cr.stop_gradient(x**2), 3.0, 1.0) == (27.0, 9.0)
    assert cr.compile(cr.grad(lambda x: x * cr.stop_gradient(x**2)))(3.0) == 9.0
    found = cr.vmap(cr.grad(lambda x: x * cr.stop_gradient(x)))(np.array([1.0, 2.0]))
    assert found.tolist() == [1.0, 2.0]
    tree = {"a": X, "b": (2, cr.ones(2, requires_grad=True), None, "text")}
    stopped = cr.stop_gradient(tree)
    assert stopped["a"] is X
    assert stopped["b"][0] == 2
    assert not stopped["b"][1].requires_grad
    assert stopped["b"][2:] == (None, "text")

    def as_array(x: Any) -> Any:
        return cr.stop_gradient(x).std() * x.sum()  # the standard deviation of NumPy

    assert cr.grad(as_array)(X) == pytest.approx(np.full(5, X.std()))


def layer(p: Any, x: Any) -> Any:
    return np.tanh(p["w"] @ x + p["b"][0])


LAYER = {"w": RNG.normal(size=(5, 5)), "b": [RNG.normal(size=5)]}


CHECKPOINTED: dict[str, Any] = {
    "grad": lambda f: cr.grad(f)(LAYER, X),
    "compiled": lambda f: cr.compile(cr.grad(f))(LAYER, X),
    "hessian": lambda f: cr.hessian(f, "x")(LAYER, X),
    "jvp": lambda f: cr.jvp(lambda x: f(LAYER, x), X, V)[1],
    "vmap": lambda f: cr.vmap(cr.grad(f, 1), (None, 0))(LAYER, np.stack([X, V])),
    "inside itself": lambda f: cr.grad(cr.checkpoint(f))(LAYER, X),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_checkpoint_under_transforms(name: str) -> None:
    def total(function: Any) -> Any:
        return lambda p, x: np.sum(function(p, function(p, x)))

    found = CHECKPOINTED[name](total(cr.checkpoint(layer)))
    wanted = CHECKPOINTED[name](total(layer))
    leaves = zip(cr.tree.leaves(found), cr.tree.leaves(wanted), strict=True)
    for leaf, other in leaves:
        np.testing.assert_allclose(leaf, other, rtol=1e-12, atol=1e-15)


WITHIN_CHECKPOINT: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda x: cr.vmap(lambda z: (z.exp() * z).sum() + z.sum() ** 3)(x),
    "vmap of vmap": lambda x: cr.vmap(cr.vmap(lambda z: z.exp() * z + z.sin()))(x),
    "vmap of grad": lambda x: cr.vmap(cr.grad(lambda z: (z.exp() * z).sum() + z.sum() ** 3))(x),
    "hessian": cr.hessian(lambda z: (z.exp() * z).sum() + z.sum() ** 3),
    "a number of NumPy": lambda x: cr.linalg.slogdet(x @ x.T)[1].exp() * x,
}


@pytest.mark.parametrize("name", WITHIN_CHECKPOINT)
@pytest.mark.parametrize("outer", ["grad", "vmap of grad", "hessian"])
def test_transforms_within_a_checkpoint(name: str, outer: str) -> None:
    function = WITHIN_CHECKPOINT[name]
    x = cr.tensor([[0.3, -0.5], [1.0, 0.2]], dtype=cr.float64)

    def transformed(f: Any) -> Any:
        loss = lambda x: (f(x) ** 2).sum()  # noqa: E731
        if outer == "vmap of grad":
            return cr.vmap(cr.grad(loss))(cr.stack([x, 2 * x]))
        return getattr(cr, outer)(loss)(x)

    wanted = transformed(function).numpy()
    np.testing.assert_allclose(transformed(cr.checkpoint(function)), wanted, 1e-9)
    scan = lambda x: cr.scan(lambda c, _: (c, function(x)), x, length=1, checkpoint=True)[1]  # noqa: E731
    np.testing.assert_allclose(transformed(scan), wanted, 1e-9)


def test_checkpoint_saves_only_the_arguments_also_in_containers() -> None:
    calls = []

    @cr.checkpoint
    def segment(p: Any) -> Any:
        calls.append(1)
        return (p["w"].sin() * 2).exp()

    w = cr.ones(3, requires_grad=True)
    saved: list[Any] = []
    hooks = cr.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        y = segment({"w": w})
    assert [tuple(t.shape) for t in saved] == [(3,)]
    y.sum().backward()
    assert len(calls) == 2
    with cr.no_grad():
        w.mul_(2)
    y = segment({"w": w})
    with cr.no_grad():
        w.mul_(2)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        y.sum().backward()


def test_transforms_under_hooks_on_saved_tensors() -> None:
    with cr.saved_tensors_hooks(lambda t: t, lambda t: t):
        found = cr.grad(lambda x: np.sum(np.tanh(x)))(np.zeros(3))
    assert found.tolist() == [1.0, 1.0, 1.0]
