"""Dual tensors under PyTorch's names, beside PyTorch's and `cr.jvp`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import forward_ad as fw


def forward_ad_of(m: Any) -> Any:
    return fw if m is cr else pytest.importorskip("torch").autograd.forward_ad


def same_as_torch(program: Any) -> None:
    torch = pytest.importorskip("torch")
    for own, other in zip(program(cr), program(torch), strict=True):
        np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-12)


def test_tangents_of_functions_follow_pytorch() -> None:
    def program(m: Any) -> list[Any]:
        tools = forward_ad_of(m)
        x = m.tensor([0.5, 1.5, -2.0], dtype=m.float64)
        with m.no_grad(), tools.dual_level():
            dual = tools.make_dual(x.clone(), m.tensor([1.0, -1.0, 2.0], dtype=m.float64))
            dual.add_(x)
            y = (dual.sin() * x).cumsum(0)
            y.mul_(2)
            z = m.stack([dual[0], (dual * dual).sum()])
            found = [*tools.unpack_dual(y), *tools.unpack_dual(z), *tools.unpack_dual(dual)]
            assert tools.unpack_dual(x).tangent is None
        assert tools.unpack_dual(y).tangent is None
        return found

    same_as_torch(program)


def test_reverse_over_forward_follows_pytorch() -> None:
    def program(m: Any) -> list[Any]:
        tools = forward_ad_of(m)
        x = m.tensor([0.5, 1.5], dtype=m.float64, requires_grad=True)
        v = m.tensor([1.0, -2.0], dtype=m.float64, requires_grad=True)
        with tools.dual_level():
            primal, tangent = tools.unpack_dual((tools.make_dual(x, v) ** 3).exp())
        (primal.sum() + tangent.sum()).backward()
        return [primal.detach(), tangent.detach(), x.grad, v.grad]

    same_as_torch(program)


def test_forward_over_reverse_gives_a_hessian_vector_product() -> None:
    x, v = cr.tensor([0.5, 1.5], requires_grad=True), cr.tensor([1.0, -2.0])
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        (grad,) = cr.autograd.grad((dual**4).sum(), [dual], create_graph=True)
        product = fw.unpack_dual(grad).tangent
    np.testing.assert_allclose(product.tolist(), (12 * x**2 * v).tolist(), rtol=1e-6)


def test_a_module_with_dual_parameters() -> None:
    net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.Tanh(), cr.nn.Linear(4, 1)).double()
    x = cr.randn(5, 3, dtype=cr.float64)
    weights = {name: p.detach() for name, p in net.named_parameters()}
    tangents = {name: cr.randn_like(p) for name, p in weights.items()}
    _, expected = cr.jvp(lambda w: cr.func.functional_call(net, w, (x,)), (weights,), (tangents,))
    with fw.dual_level():
        duals = {name: fw.make_dual(p, tangents[name]) for name, p in net.named_parameters()}
        found = fw.unpack_dual(cr.func.functional_call(net, duals, (x,)))
    np.testing.assert_allclose(found.tangent.detach().numpy(), expected.numpy(), rtol=1e-10)
    assert found.tangent.requires_grad  # of the parameters


class Exp(cr.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx: Any, x: cr.Tensor) -> cr.Tensor:
        ctx.result = x.exp()
        return ctx.result

    @staticmethod
    def jvp(ctx: Any, tangent: cr.Tensor) -> cr.Tensor:
        Exp.calls += 1
        product = tangent * ctx.result
        del ctx.result
        return product


def test_a_rule_that_frees_what_it_saved_is_called_once() -> None:
    x = cr.tensor([0.5, 1.0])
    with fw.dual_level():
        y = Exp.apply(fw.make_dual(x, cr.ones(2)))
        assert fw.unpack_dual(y).tangent.tolist() == x.exp().tolist()
        assert fw.unpack_dual(2 * y).tangent.tolist() == (2 * x.exp()).tolist()
    assert Exp.calls == 1


def test_what_does_not_require_grad_has_results_that_do_not() -> None:
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(fw.make_dual(cr.ones(2), cr.ones(2)).exp())
    assert not primal.requires_grad
    assert not tangent.requires_grad


def test_levels_nest_and_end_in_order() -> None:
    outer = fw.enter_dual_level()
    x = fw.make_dual(cr.tensor(2.0), cr.tensor(1.0))
    inner = fw.enter_dual_level()
    assert (outer, inner) == (0, 1)
    y = fw.unpack_dual(fw.make_dual(x, cr.tensor(1.0)) ** 3)
    with pytest.raises(cr.AutogradError, match="not the last one"):
        fw.exit_dual_level(level=outer)
    fw.exit_dual_level(level=inner)
    assert fw.unpack_dual(y.tangent).tangent.item() == 12  # the second derivative of x³ at 2
    fw.exit_dual_level()
    with pytest.raises(cr.AutogradError, match="not the last one"):
        fw.exit_dual_level()


@fw.dual_level()
def decorated(x: cr.Tensor) -> Any:
    return fw.unpack_dual(fw.make_dual(x, cr.ones_like(x)).square()).tangent


def test_a_level_decorates_functions() -> None:
    assert decorated(cr.tensor(3.0)).item() == 6
    assert cr.is_grad_enabled()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fw.make_dual(cr.ones(2), cr.ones(3)), cr.ShapeError, r"\[2\] and .* \[3\]"),
        (lambda: fw.make_dual(cr.arange(2), cr.arange(2)), cr.DTypeError, "int64 and int64"),
        (lambda: fw.make_dual(cr.ones(2), cr.ones(2).double()), cr.DTypeError, "and float64"),
        (cr.no_grad()(lambda: fw.make_dual(cr.ones(2), cr.ones(2))), cr.AutogradError, "aren't re"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with fw.dual_level(), pytest.raises(error, match=text):
        call()
    with pytest.raises(cr.AutogradError, match=r"enter_dual_level\(\) first"):
        fw.make_dual(cr.ones(2), cr.ones(2))


def test_a_write_to_what_a_tangent_needs_raises() -> None:
    with fw.dual_level():
        dual = fw.make_dual(cr.ones(2), cr.ones(2))
        y = dual.sin()
        dual.mul_(2)
        with pytest.raises(cr.InPlaceError, match="compute out of place"):
            fw.unpack_dual(y)
