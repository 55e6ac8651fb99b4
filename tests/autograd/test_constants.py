"""Backward passes of constants: what the error says, and zeros where they are asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def test_derivatives_beyond_the_degree_are_zeros_where_asked_for() -> None:
    x = cr.tensor(2.0, requires_grad=True)
    y, found = x**4, []
    for _ in range(6):
        (y,) = cr.autograd_grad(y, x, create_graph=True, materialize_grads=True)
        found.append(y.item())
    assert found == [32.0, 48.0, 48.0, 24.0, 0.0, 0.0]
    assert y.requires_grad


def test_a_constant_among_the_outputs_contributes_zeros() -> None:
    x, w = cr.ones(3, requires_grad=True), cr.ones(2, requires_grad=True)
    outputs = [(x * x), cr.ones(2), x.sum()]
    gs = [cr.ones(3), cr.ones(2), cr.tensor(5.0)]
    found = cr.autograd_grad(outputs, {"x": x, "w": w}, gs, materialize_grads=True)
    assert found["x"].tolist() == [7.0] * 3
    assert found["w"].tolist() == [0.0] * 2
    assert not found["w"].requires_grad
    (zeros,) = cr.autograd_grad(cr.tensor(1.0), x, materialize_grads=True)
    assert zeros.tolist() == [0.0] * 3
    with pytest.raises(cr.AutogradError, match="does not require grad"):
        cr.autograd_grad(outputs, x, gs)
    with pytest.raises(cr.AutogradError, match="got 3 tensors and 1 gradients"):
        cr.autograd_grad(outputs, x, gs[:1], materialize_grads=True)
    with pytest.raises(TypeError, match="element 0 of tensors is no Tensor"):
        cr.autograd_grad("x", x, materialize_grads=True)


def text_of(call: Any) -> str:
    with pytest.raises(cr.AutogradError) as caught:
        call()
    return str(caught.value)


def line_of(text: str) -> int:
    """Return the number of the line of this file that has this comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (line,) = [i for i, each in enumerate(lines, 1) if each.endswith(f"# {text}")]
    return line


def test_the_error_shows_the_line_that_made_the_tensor() -> None:
    w = cr.ones(3, requires_grad=True)
    loss = (w.detach() * 2).sum()  # here
    text = text_of(loss.backward)
    where = f"It was assigned at {__file__}:{line_of('here')}, in test_the_error_shows"
    assert where in text
    assert "loss = (w.detach() * 2).sum()  # here" in text
    assert "materialize_grads=True" in text


def test_the_line_is_found_through_calls_and_loops() -> None:
    def update(value: Any) -> None:
        value.backward()

    total = cr.tensor(0.0, requires_grad=True)
    for step in range(2):
        if step:
            with cr.no_grad():
                total = total + 1  # in the loop
    assert f":{line_of('in the loop')}, in" in text_of(lambda: update(total))


def test_a_tensor_that_no_variable_holds_has_no_line() -> None:
    text = text_of(lambda: cr.autograd_grad(cr.ones(1), cr.ones(1, requires_grad=True)))
    assert "It was assigned" not in text
    space: dict[str, Any] = {"cr": cr}
    exec("t = cr.ones(1)", space)  # no source
    with pytest.raises(cr.AutogradError) as caught:
        exec("t.backward()", space)
    assert "It was assigned" not in str(caught.value)


def test_every_extra_that_a_message_names_can_be_installed() -> None:
    root = Path(__file__).parents[2]
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    files = [*root.glob("src/**/*.py"), *root.glob("docs/*.md"), root / "README.md"]
    named = {
        extra
        for file in files
        for found in re.findall(r"chainrule\[([\w,]+)\]", file.read_text(encoding="utf-8"))
        for extra in found.split(",")
    }
    assert {"scipy", "native", "plot", "gpu", "demo"} <= named
    assert named <= project["optional-dependencies"].keys()


# --- custom functions -----------------------------------------------------------------------------


def saving_in_backward(*, in_forward: bool) -> Any:
    class Late(cr.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if in_forward:
                ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            ctx.save_for_backward(grad)
            return grad * 2

    return Late


@pytest.mark.parametrize("in_forward", [True, False], ids=["saved before", "saved nothing"])
def test_saving_in_backward_is_an_error(in_forward: bool) -> None:
    function = saving_in_backward(in_forward=in_forward)
    x = cr.ones(3, requires_grad=True)
    for run in (lambda y: y.backward(), lambda y: cr.autograd_grad(y, x)):
        with pytest.raises(cr.AutogradError, match=r"save_for_backward .* backward of Late called"):
            run(function.apply(x).sum())


class Product(cr.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad * w, grad * x


def test_classes_have_a_check_that_says_what_it_left_out() -> None:
    x, w = cr.ones(3), cr.ones(3)
    assert Product.check(x, w).skipped == ("forward mode, since there is no jvp rule",)
    report = Product.check(x.requires_grad_(), w)
    assert "\n  not checked: the gradient of 'w', which doesn't require grad" in str(report)
    assert len(report.skipped) == 2
    assert "each input alone" not in report.checked


def test_a_wrong_class_fails_its_check() -> None:
    class Wrong(Product):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, w = ctx.saved_tensors
            return grad * w, grad * x * 1.01

    with pytest.raises(cr.GradcheckError, match="Wrong: 1 problem"):
        Wrong.check(cr.ones(3), cr.ones(3))


@pytest.mark.parametrize(("noise", "notices"), [(1e-9, True), (1e-12, True), (0.0, False)])
def test_gradcheck_notices_a_backward_with_noise(noise: float, notices: bool) -> None:
    rng = np.random.default_rng(0)

    @cr.autograd_function
    def square(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx: Any, grad_output: Any) -> Any:
        return grad_output * ctx.saved_variables.x * 2 * (1 + noise * rng.normal())

    x = cr.tensor(np.array([0.5, 2.0]), requires_grad=True)
    if notices:
        with pytest.raises(cr.GradcheckError, match="Backward is not reentrant"):
            cr.gradcheck(square, x)
    assert cr.gradcheck(square, x, nondet_tol=1e-6)
