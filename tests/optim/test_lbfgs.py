"""L-BFGS, compared with PyTorch's; without it, with known properties."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.optim import LBFGS

OPTIONS: list[dict[str, Any]] = [
    {},
    {"lr": 0.1},
    {"lr": 0.5, "max_iter": 3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 0.1, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 5},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 10},
    {"line_search_fn": "strong_wolfe", "max_eval": 3},
    {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-2},
    {"history_size": 3, "max_eval": 4, "lr": 0.3},
]


def rosenbrock(x: Any, z: Any) -> Any:
    return (1 - x[:-1]).square().sum() + 100 * (x[1:] - x[:-1] ** 2).square().sum() + (z**4).sum()


def logistic(x: Any, z: Any) -> Any:
    return (x * 3 - 1).exp().log1p().sum() + (x**2).sum() + ((z - 1).cosh()).sum()


LOSSES = {f.__name__: f for f in (rosenbrock, logistic)}


def prepared(library: Any, options: dict[str, Any], dtype: str, loss: Any) -> Any:
    rng = np.random.default_rng(0)
    x, z, unused = (
        library.tensor(np.asarray(rng.standard_normal(shape), dtype), requires_grad=True)
        for shape in ((6,), (2, 3), (2,))
    )
    optimizer = library.optim.LBFGS([x, z, unused], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(x, z)
        value.backward()
        return value

    return [x, z, unused], optimizer, closure


def assert_equal(ours: Any, theirs: Any, tolerance: float) -> None:
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            our.detach().numpy(), their.detach().numpy(), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps_are_those_of_pytorch(options: dict[str, Any], loss: str) -> None:
    torch = pytest.importorskip("torch")
    if loss == "rosenbrock" and "line_search_fn" not in options:
        pytest.skip("without a line search it diverges, and amplifies rounding errors")
    ours, our, closure = prepared(cr, options, "float64", LOSSES[loss])
    theirs, their, their_closure = prepared(torch, options, "float64", LOSSES[loss])
    for _ in range(10):
        got, expected = our.step(closure), their.step(their_closure)
        if loss == "rosenbrock" and their.state[theirs[0]]["n_iter"] > 20:
            break  # a curved valley amplifies rounding errors tenfold every few iterations
        np.testing.assert_allclose(got.item(), expected.item(), rtol=1e-10)
        assert_equal(ours, theirs, 1e-10)
        for name in ("func_evals", "n_iter"):
            assert our.state[ours[0]][name] == their.state[theirs[0]][name]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_state_loads_in_both_directions(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    options = {**options, "max_iter": 2}
    pairs = [
        [prepared(library, options, "float64", logistic) for library in (cr, torch)] for _ in "ab"
    ]
    for _, optimizer, closure in pairs[0]:
        optimizer.step(closure)
    (ours, our, closure), (theirs, their, their_closure) = pairs[1]
    with cr.no_grad(), torch.no_grad():
        for param, value in zip(ours, pairs[0][1][0], strict=True):
            param.copy_(cr.tensor(value.detach().numpy()))
        for param, value in zip(theirs, pairs[0][0][0], strict=True):
            param.copy_(torch.tensor(value.detach().numpy()))
    our.load_state_dict(pairs[0][1][1].state_dict())
    their.load_state_dict(to_torch(torch, pairs[0][0][1].state_dict()))
    for _ in range(3):
        our.step(closure), their.step(their_closure)
        assert_equal(ours, theirs, 1e-8)


def to_torch(torch: Any, tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: to_torch(torch, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [to_torch(torch, value) for value in tree]
    return torch.tensor(tree.numpy().copy()) if isinstance(tree, cr.Tensor) else tree


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loaded_state_resumes_to_the_bit(options: dict[str, Any], dtype: str) -> None:
    options = {**options, "max_iter": 2}
    params, optimizer, closure = prepared(cr, options, dtype, logistic)
    others, resumed, other_closure = prepared(cr, {}, dtype, logistic)
    for _ in range(2):
        optimizer.step(closure)
    with cr.no_grad():
        for param, other in zip(params, others, strict=True):
            other.copy_(param)
    resumed.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    for _ in range(2):
        optimizer.step(closure), resumed.step(other_closure)
        assert_equal(params, others, 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_finds_the_minimum_of_the_rosenbrock_function(dtype: str) -> None:
    (x, z, _), optimizer, closure = prepared(
        cr, {"line_search_fn": "strong_wolfe", "max_iter": 100}, dtype, rosenbrock
    )
    for _ in range(3):
        with cr.no_grad():
            optimizer.step(closure)
    np.testing.assert_allclose(x.tolist(), 1, atol=2e-2 if dtype == "float32" else 1e-4)
    np.testing.assert_allclose(z.tolist(), np.zeros((2, 3)), atol=5e-2)
    assert x.dtype == getattr(cr, dtype)


def test_complex_parameters() -> None:
    target = cr.tensor([1 + 2j, -3.0])
    w = cr.zeros(2, dtype=cr.complex64, requires_grad=True)
    optimizer = LBFGS([w], line_search_fn="strong_wolfe")

    def closure() -> cr.Tensor:
        optimizer.zero_grad()
        loss = (w - target).abs().square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(w.tolist(), target.tolist(), atol=1e-5)


def test_the_step_is_a_write_that_a_graph_notices() -> None:
    (x, _z, _unused), optimizer, closure = prepared(cr, {}, "float64", logistic)
    loss = (x * x).sum()
    before = x._version
    optimizer.step(closure)
    assert x._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_errors() -> None:
    w = cr.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"call step\(closure\)"):
        LBFGS([w]).step()
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        LBFGS([{"params": [w]}, {"params": [cr.ones(1, requires_grad=True)]}])
    with pytest.raises(ValueError, match="only 'strong_wolfe' is supported"):
        LBFGS([w], line_search_fn="armijo")
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        LBFGS([w], lr=-1)


def test_a_step_cannot_be_compiled() -> None:
    w = cr.ones(2, requires_grad=True)
    optimizer = LBFGS([w])

    @cr.compile
    def step(x: cr.Tensor) -> cr.Tensor:
        def closure() -> cr.Tensor:
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure)  # type: ignore[no-any-return]

    with pytest.raises(cr.CompileError, match=r"LBFGS\.step can't be compiled"):
        step(cr.ones(2))


def test_a_compiled_closure() -> None:
    w = cr.ones(2, requires_grad=True)
    optimizer = LBFGS([w])

    @cr.compile
    def loss_and_gradient(x: cr.Tensor) -> cr.Tensor:
        optimizer.zero_grad()
        loss = (w - x).square().sum()
        loss.backward()
        return loss

    target = cr.tensor([2.0, 5.0])
    optimizer.step(lambda: loss_and_gradient(target))
    np.testing.assert_allclose(w.tolist(), [2, 5], atol=1e-4)
