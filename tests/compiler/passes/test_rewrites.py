"""Algebraic rewrites and eliminations: optimised programs do less work, with the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import build, passes


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    monkeypatch.setattr(build, "optimize", lambda program: optimize(program, check=True))


def numbers(*shape: int, **options: Any) -> cr.Tensor:
    rng = np.random.default_rng(len(shape) + sum(shape))
    return cr.tensor(rng.uniform(-1, 1, shape), dtype="float64", **options)


def functions(function: Callable[..., Any], *args: Any) -> Counter[str]:
    """Return the counts of the functions that a program calls, after comparing it with eager."""
    compiled = cr.compile(function)
    got, wanted = compiled(*args), function(*args)
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
    return Counter(op.function for op in compiled.program.programs[0].ops)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: cr.autograd_grad(function(*args).sum(), args[0])[0]


X, Y = numbers(4, 3), numbers(3, 5)
SQUARE, ROWS = numbers(2, 2), [[1.0, 0.0], [0.0, 1.0]]
BATCH, WEIGHT = numbers(6, 4, 3), numbers(3, 5, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "args", "calls"),
    [
        (lambda x: x * 1 - 0 + -0.0, (X,), {}),
        (lambda x: x.T.T, (X,), {}),
        (lambda x: x.reshape(12).reshape(2, 6).reshape(4, 3), (X,), {}),
        (lambda x: x.neg().neg() - 0, (X,), {}),
        (lambda x: x.exp() + x.exp(), (X,), {"np.exp": 1, "np.add": 1}),
        (lambda x: x + (-x * 3), (X,), {"np.multiply": 1, "np.add": 1}),
        (lambda x: (x * x).sum(), (X,), {"np.vdot": 1}),
        (lambda x: x.pow(2).mean(), (X,), {"np.vdot": 1, "np.divide": 1}),
        (lambda x: x * cr.ones(4, 3) * cr.full((4, 3), 2.0), (X,), {"np.multiply": 1}),
        (lambda x: x[:, None].squeeze(1), (X,), {}),
        (
            lambda x: x[:1][0].reshape(1, 3)[..., 0, :].exp(),
            (X,),
            {"getitem": 1, "np.reshape": 1, "np.exp": 1},
        ),
        (lambda x: cr.tensor(ROWS) @ (x @ cr.tensor(ROWS)).exp(), (SQUARE,), {"np.exp": 1}),
        (lambda x, y: (x.exp() @ y).sum() * 0 + x.sin().sum(), (X, Y), None),
        (lambda x, w: x @ w, (BATCH, WEIGHT), {"np.reshape": 2, "np.matmul": 1}),
        (lambda x, y: (y.T @ x.T).T.exp(), (X, Y), {"np.matmul": 1, "np.exp": 1}),
    ],
)
def test_no_redundant_op_is_left(function: Any, args: Any, calls: Any) -> None:
    found = functions(function, *args)
    if calls is not None:
        assert found == calls


def test_a_layers_gradient_is_one_product() -> None:
    def layer(w: Any, x: Any) -> Any:
        return (x @ w).sin()

    found = functions(gradient(layer), WEIGHT, BATCH)
    assert found["np.matmul"] == 2
    assert found["np.sum"] == 0


def test_gradients_of_slices_are_added_to_one_array() -> None:
    def parts(x: Any) -> Any:
        return x[:2].sin() * x[2:].cos() * x[1:3]

    found = functions(gradient(parts), numbers(4, 3, requires_grad=True))
    assert found["index_add"] == 1
    assert found["plus_at"] == 2


@pytest.mark.parametrize(
    ("function", "added"),
    [
        (lambda g: g[:3], 0),  # only this region is read: the sum of the rest isn't needed
        (lambda g: g[:3] * g[1:], 1),
    ],
)
def test_a_region_that_was_added_to_is_read(function: Any, added: int) -> None:
    def part(x: Any) -> Any:
        return function(gradient(lambda x: x[:3].sin() * x[1:].cos())(x))

    assert functions(part, numbers(4, 3, requires_grad=True))["plus_at"] == added


def test_zeros_around_zeros_are_put_there_at_once() -> None:
    def variation(x: Any) -> Any:
        return (x[1:] - x[:-1])[:, 1:].sin() * (x[:, 1:] - x[:, :-1])[1:, ...].cos()

    x = numbers(4, 6, requires_grad=True)
    found = functions(gradient(variation), x)
    assert found["index_add"] == 1  # of four
    assert found["plus_at"] == 3
    compiled = cr.compile(gradient(variation))(x)
    for got, wanted in zip(compiled, gradient(variation)(x), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("function", "slices"),
    [
        (lambda x: (x * 2 + x.sin())[1:], 2),  # of x, and of x again
        (lambda x: (x * 2)[1:] + (x * 2)[:-1], 2),  # the product is needed as a whole
        (lambda x: (x[:1] * x)[1:], 2),  # operands of different shapes
        (lambda x: x.sin()[::2], 1),
        (lambda x: x.sin()[0], 1),
        (lambda x: x.sin()[1:, None], 1),
    ],
)
def test_slices_before_elementwise_operations(function: Any, slices: int) -> None:
    x = numbers(5, 4)
    compiled = cr.compile(function)
    np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy())
    assert functions(function, x)["getitem"] <= slices


def test_a_factor_moves_to_the_smallest_operand() -> None:
    compiled = cr.compile(lambda x, y: (x @ y) * 3)
    x, y = numbers(50, 2), numbers(2, 40)
    np.testing.assert_allclose(compiled(x, y).numpy(), ((x @ y) * 3).numpy(), rtol=1e-12)
    assert [op.function for op in compiled.program.programs[0].ops] == [
        "np.multiply",
        "np.matmul",
    ]
    assert compiled.program.programs[0].ops[0].out.shape == (2, 40)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cross_products_become_products_of_components(axis: int) -> None:
    x, y = numbers(3, 3), numbers(3, 3).T * 2
    found = functions(lambda x, y: cr.linalg.cross(x, y, dim=axis), x, y)
    assert "np.linalg.cross" not in found
    assert found["np.subtract"] == 3


def test_the_seeds_of_a_jacobians_rows_are_constants() -> None:
    def jacobian(x: Any) -> Any:
        values = x.sin()
        return cr.stack([cr.autograd_grad(v, x, retain_graph=True)[0] for v in values])

    found = functions(jacobian, numbers(4, requires_grad=True))
    assert found["np.stack"] == 1
    assert found["index_add"] == 0


def test_folded_results_have_memory_of_their_own() -> None:
    @cr.compile
    def known(x: Any) -> Any:
        return cr.cat([cr.ones(2), cr.zeros(1)]), x * 1

    first, _ = known(X)
    first += 1
    assert known(X)[0].tolist() == [1.0, 1.0, 0.0]


def test_dead_code_is_eliminated() -> None:
    def gradient_alone(w: Any, x: Any) -> Any:
        loss = (x @ w).exp().sum()
        return cr.autograd_grad(loss, w)[0]

    assert functions(gradient_alone, WEIGHT, X)["np.sum"] == 0


def test_updates_are_written_to_parameters_in_place() -> None:
    w = numbers(3, 5)

    @cr.compile
    def update(g: Any) -> None:
        w.sub_(0.1 * g)
        w.mul_(2)

    before, g = w.clone(), numbers(3, 5)
    update(g)
    np.testing.assert_allclose(w.numpy(), ((before - 0.1 * g) * 2).numpy(), rtol=1e-12)
    assert "[...]" not in update.source


def test_two_tensors_can_be_swapped_in_place() -> None:
    a, b = cr.ones(3), cr.zeros(3)

    @cr.compile
    def swap() -> None:
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)

    swap()
    assert (a.tolist(), b.tolist()) == ([0, 0, 0], [1, 1, 1])
    swap()
    assert (a.tolist(), b.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_results_have_the_values_before_an_update() -> None:
    w = cr.ones(3)

    @cr.compile
    def update() -> Any:
        before = w.clone()
        w.add_(1)
        return before, w * 1

    assert [t.tolist() for t in update()] == [[1, 1, 1], [2, 2, 2]]
    assert w.tolist() == [2, 2, 2]


def test_views_see_writes_through_other_views() -> None:
    def written(x: Any) -> Any:
        y = x * 1
        row, column = y[1], y[:, 0]
        row.mul_(10)
        column.add_(1)
        y.T[2, 0] = 7
        return cr.cat([y.reshape(12), row, column, y.diagonal()])

    functions(written, X)
    functions(gradient(written), numbers(4, 3, requires_grad=True))


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 2.0], [0.0, 1.0]],
        [[1.0, 0.0], [-1.0, 1.0]],
        [[1.0, 0.0], [0.0, 2.0]],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
    ],
)
def test_a_product_with_nearly_an_identity_is_computed(matrix: Any) -> None:
    def both(x: Any, y: Any) -> Any:
        constant = cr.tensor(matrix, dtype="float64")
        return constant @ x, y @ constant

    rows, columns = len(matrix), len(matrix[0])
    x, y = numbers(columns, columns), numbers(rows, rows)
    for got, wanted in zip(cr.compile(both)(x, y), both(x, y), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
