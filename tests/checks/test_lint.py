"""The linter of custom functions: planted mistakes are found, right functions pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.function import (
    AutogradFunction,
    Function,
    autograd_function,
    once_differentiable,
)
from chainrule.autograd.tensor import Tensor
from chainrule.checks import CheckReport, GradcheckError, Problem
from chainrule.primitives import elementwise

conj, masked = elementwise.conj.apply, elementwise.masked.apply


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Return random numbers in single precision, away from kinks at zero."""
    source = np.random.default_rng(seed)
    values = source.uniform(0.3, 1.7, shape) * source.choice([-1, 1], shape)
    return cr.tensor(values.astype("float32"))


def made(forward: Callable[..., Any], backward: Callable[..., Any], **rules: Any) -> Any:
    """Return the custom function of a forward and a backward."""
    return autograd_function(forward, backward, **{"name": "custom", **rules})


def problems(function: Any, *args: Any, **kwargs: Any) -> list[str]:
    """Return the names of the problems that the linter finds."""
    return [problem.name for problem in report(function, *args, **kwargs).problems]


def report(function: Any, *args: Any, **kwargs: Any) -> CheckReport:
    """Return the report of the linter, whether it was raised or returned."""
    try:
        return function.check(*args, **kwargs)  # type: ignore[no-any-return]
    except GradcheckError as caught:
        if caught.report is None:
            raise
        return caught.report


# --- right ones -----------------------------------------------------------------------------------


@autograd_function
def linear(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input @ weight.T
    return output if bias is None else output + bias


@linear.backward
def _(ctx: Any, grad_output: Any) -> Any:
    saved, needs = ctx.saved_variables, ctx.needs_input_grad
    return {
        "input": grad_output @ saved.weight if needs.input else None,
        "weight": grad_output.T @ saved.input if needs.weight else None,
        "bias": grad_output.sum(0) if needs.bias else None,
    }


@autograd_function
def mul_constant(ctx: Any, tensor: Any, constant: float) -> Any:
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return {"tensor": grad_output * ctx.saved_variables.constant}


@autograd_function
def relu(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(mask=x > 0)
    return masked(x, x > 0)


@relu.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return masked(grad_output, ctx.saved_variables.mask)


@relu.jvp
def _(ctx: Any, tangent: Any) -> Any:
    return masked(tangent, ctx.saved_variables.mask)


@autograd_function
def product_and_sum(ctx: Any, x: Any, y: Any) -> Any:
    ctx.save_for_backward(x=x, y=y)
    return x * y, x + y


@product_and_sum.backward
def _(ctx: Any, for_product: Any, for_sum: Any) -> Any:
    x, y = ctx.saved_variables
    return for_product * y + for_sum, for_product * x + for_sum


@autograd_function
def product_and_sum_of_nones(ctx: Any, x: Any, y: Any) -> Any:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x=x, y=y)
    return x * y, x + y


@product_and_sum_of_nones.backward
def _(ctx: Any, *grads: Any) -> Any:
    x, y = ctx.saved_variables
    terms = [] if grads[0] is None else [(grads[0] * y, grads[0] * x)]
    terms += [] if grads[1] is None else [(grads[1], grads[1])]
    return tuple(sum(parts[1:], parts[0]) for parts in zip(*terms, strict=True))


@autograd_function
def complex_square(ctx: Any, z: Any) -> Any:
    ctx.save_for_backward(z=z)
    return z * z


@complex_square.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return 2 * grad_output * conj(ctx.saved_variables.z)


@autograd_function
def double_in_place(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


@double_in_place.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return grad_output * 2


@autograd_function
def exp_saving_its_output(ctx: Any, x: Any) -> Any:
    out = x.exp()
    ctx.save_for_backward(out)
    return out


@exp_saving_its_output.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return grad_output * ctx.saved_tensors[0]


class Scale(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, *factors: Any, keyword: Any) -> Any:
        ctx.save_for_backward(x, *factors, keyword)
        return x * factors[0] * factors[1] * keyword

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, a, b, k = ctx.saved_tensors
        return g * a * b * k, g * x * b * k, g * x * a * k, g * x * a * b


RIGHT: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "linear": (linear, (numbers(2, 3), numbers(4, 3), numbers(4)), {}),
    "linear without bias": (linear, (numbers(2, 3), numbers(4, 3)), {}),
    "linear by name": (linear, (numbers(2, 3),), {"bias": numbers(4), "weight": numbers(4, 3)}),
    "mul_constant": (mul_constant, (numbers(2, 2),), {"constant": 5}),
    "relu": (relu, (numbers(5),), {}),
    "two outputs": (product_and_sum, (numbers(3), numbers(3, seed=1)), {}),
    "two outputs, None": (product_and_sum_of_nones, (numbers(3), numbers(3, seed=1)), {}),
    "complex": (complex_square, (cr.tensor([1 + 2j, -0.5j]),), {}),
    "dirty": (double_in_place, (numbers(3),), {}),
    "output saved": (exp_saving_its_output, (numbers(3),), {}),
    "Function": (
        Scale.apply,
        (numbers(2), numbers(2, seed=1), numbers(2, seed=2)),
        {"keyword": numbers(2, seed=3)},
    ),
    "empty": (relu, (numbers(0, 3),), {}),
    "no dimensions": (relu, (numbers(),), {}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_have_no_problems(name: str) -> None:
    function, args, kwargs = RIGHT[name]
    found = function.check(*args, **kwargs)
    assert isinstance(found, CheckReport)
    assert found
    assert found.problems == ()
    assert found.notes == ()
    assert {"forward", "backward", "first derivative", "memory"} < set(found.checked)
    assert "no problems" in str(found)
    assert repr(found) == str(found)


def test_nothing_of_the_callers_changes() -> None:
    x = cr.tensor(np.ones(3), requires_grad=True)
    array = x._array
    double_in_place.check(x)
    assert x._array is array
    assert x.tolist() == [1, 1, 1]
    assert x.grad is None
    assert x._version == 0


def test_flags_are_respected() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        return g, g * 7

    wrong = made(lambda ctx, x, y: x + y, backward)
    assert problems(wrong, numbers(2).requires_grad_(), numbers(2)) == []
    assert problems(wrong, numbers(2), numbers(2)) == ["wrong first derivative"]


# --- wrong ones, each with its one mistake --------------------------------------------------------


def square_forward(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x=x)
    return x * x


def forward_changing_its_input(ctx: Any, x: Any) -> Any:
    x.mul_(2)
    return x + 0


def forward_keeping_a_tensor(ctx: Any, x: Any) -> Any:
    ctx.both = [x, None]
    return x * x


def forward_keeping_an_output(ctx: Any, x: Any) -> Any:
    ctx.out = {"out": x.exp()}
    return ctx.out["out"]


def forward_saving_what_it_computed(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(twice=2 * x)
    return x * x


def in_place_backward(ctx: Any, g: Any) -> Any:
    return g.mul_(2 * ctx.saved_variables.x)


def backward_changing_its_input(ctx: Any, g: Any) -> Any:
    x = ctx.saved_variables.x.detach()
    result = 2 * g * x
    x.mul_(1.5)
    return result


def backward_for_whole_arrays(ctx: Any, g: Any) -> Any:
    array = g.detach().numpy()
    if not array.flags.c_contiguous:
        array = array * 2
    return {"x": cr.tensor(array) * 2 * ctx.saved_variables.x.detach()}


def backward_reading_its_memory(ctx: Any, g: Any) -> Any:
    if 0 in g._array.strides:
        raise ValueError("stride 0")
    return g * 2 * ctx.saved_variables.x


def noisy_forward(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x=x)
    return x * x * np.random.default_rng().uniform()


KEPT: list[Any] = []


def kept_forward(ctx: Any, x: Any) -> Any:
    KEPT.append(ctx)
    ctx.save_for_backward(x=x)
    return x * x


def right(ctx: Any, g: Any) -> Any:
    return g * 2 * ctx.saved_variables.x


def raising(ctx: Any, g: Any) -> Any:
    raise KeyError("backward itself")


SAME = (numbers(3, 3),)
WRONG: dict[str, tuple[Callable[..., Any], Callable[..., Any], str, str]] = {
    "factor": (
        square_forward,
        lambda ctx, g: g * 2.0002 * ctx.saved_variables.x,
        "wrong first derivative",
        r"element \[\d, \d\] of output 0.*analytical: .*numerical: .*1\.0001 times",
    ),
    "transposed": (
        square_forward,
        lambda ctx, g: (g * 2 * ctx.saved_variables.x).T,
        "wrong first derivative",
        "right except for a transposition",
    ),
    "none": (
        square_forward,
        lambda ctx, g: {"x": None},
        "missing gradient",
        "gives None, or nothing, for 'x', but output 0 depends on it",
    ),
    "empty": (square_forward, lambda ctx, g: {}, "missing gradient", "'x'"),
    "nothing": (square_forward, lambda ctx, g: None, "missing gradient", "'x'"),
    "constant": (
        square_forward,
        lambda ctx, g: 2 * ctx.saved_variables.x * (g * 0 + 1) * (g._array.any() + 0.0),
        "wrong first derivative",
        "output 0",
    ),
    "second": (
        square_forward,
        lambda ctx, g: g * 2 * ctx.saved_variables.x.detach(),
        "wrong second derivative",
        "(?s)of the gradient of 'x'.*once_differentiable",
    ),
    "input changed": (
        forward_changing_its_input,
        lambda ctx, g: g * 2,
        "input changed",
        "the forward of square wrote to its argument 'x' in place.*mark_dirty",
    ),
    "input changed in backward": (
        square_forward,
        backward_changing_its_input,
        "input changed",
        "backward writes to 'x'",
    ),
    "grad_output changed": (
        square_forward,
        in_place_backward,
        "grad_output changed",
        "gradient of output 0",
    ),
    "kept": (
        forward_keeping_a_tensor,
        lambda ctx, g: g * 2 * ctx.both[0],
        "tensor on ctx",
        r"ctx\.both keeps a tensor.*save_for_backward\(both=",
    ),
    "noise": (noisy_forward, right, "not deterministic", "output 0 has other numbers"),
    "memory": (kept_forward, right, "memory stays", "before a backward pass: an object that out"),
    "raises": (square_forward, raising, "backward raises", "KeyError: 'backward itself'"),
    "shape": (square_forward, lambda ctx, g: g.sum(0), "backward raises", "invalid gradient"),
    "contiguous only": (
        square_forward,
        once_differentiable(backward_for_whole_arrays),
        "layout of grad_output",
        "not contiguous",
    ),
    "no stride 0": (
        square_forward,
        backward_reading_its_memory,
        "layout of grad_output",
        "broadcast.*ValueError: stride 0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_named(name: str) -> None:
    forward, backward, problem, text = WRONG[name]
    found = report(made(forward, backward, name="square"), *SAME)
    assert {p.name for p in found.problems} == {problem}
    with pytest.raises(GradcheckError, match=f"(?s){text}"):
        made(forward, backward, name="square").check(*SAME)


def test_a_rule_that_ignores_its_gradient() -> None:
    wrong = made(square_forward, lambda ctx, g: 2 * ctx.saved_variables.x)
    found = report(wrong, cr.tensor(3.0))
    assert found.problems[0].name == "not linear"
    assert "backward not multiplied by grad_output" in found.problems[0].text


def test_a_cycle() -> None:
    wrong = made(forward_keeping_an_output, lambda ctx, g: g * ctx.out["out"])
    found = report(wrong, *SAME)
    names = [problem.name for problem in found.problems]
    assert names[0] == "tensor on ctx"
    assert names[-1] == "memory stays"
    assert "a reference cycle keeps it alive" in found.problems[-1].text


def test_an_intermediate_of_forward_refuses_a_second_derivative() -> None:
    honest = made(forward_saving_what_it_computed, lambda ctx, g: g * ctx.saved_variables.twice)
    found = report(honest, *SAME)
    assert found.problems == ()
    assert len(found.notes) == 1
    assert found.notes[0].startswith("a second derivative is refused: ")


def test_once_differentiable_is_a_note() -> None:
    found = report(made(square_forward, once_differentiable(right)), *SAME)
    assert found.problems == ()
    assert "once_differentiable" in found.notes[0]
    assert "note: a second derivative is refused" in str(found)


def test_a_forgotten_input() -> None:
    def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
        ctx.save_for_backward(x=x, w=w)
        return x * w + b

    def backward(ctx: Any, g: Any) -> Any:
        return {"x": g * ctx.saved_variables.w, "w": g * ctx.saved_variables.x}

    found = report(made(forward, backward), numbers(2), numbers(2, seed=1), numbers(2))
    assert [problem.name for problem in found.problems] == ["missing gradient"]
    assert "for 'b'" in found.problems[0].text


def test_flags_read_of_the_wrong_argument() -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * 2 + y * 3

    def swapped(ctx: Any, g: Any) -> Any:
        needs = ctx.needs_input_grad
        return (g * 2 if needs.y else None), (g * 3 if needs.x else None)

    def by_position(ctx: Any, g: Any) -> Any:
        return (g * 2, g * 3) if all(ctx.needs_input_grad) else (g * 2,)

    found = report(made(forward, swapped), numbers(2), numbers(2))
    assert [problem.name for problem in found.problems] == ["needs_input_grad"] * 2
    assert "'x' gets another gradient" in found.problems[0].text
    found = report(made(forward, by_position), numbers(2), numbers(2))
    assert [problem.name for problem in found.problems] == ["needs_input_grad"]
    assert "'y' gets another gradient" in str(found)


def test_a_backward_that_fails_when_only_one_requires_grad() -> None:
    def by_position(ctx: Any, g: Any) -> Any:
        return g * 2, g * 3

    wrong = made(lambda ctx, x, n, y: x * 2 + y * 3, by_position)
    found = report(wrong, numbers(2), 1, numbers(2))
    assert {problem.name for problem in found.problems} == {"needs_input_grad"}
    assert "incorrect number of gradients" in found.problems[0].text


def test_outputs_that_are_not_all_used() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def crashing(ctx: Any, first: Any, second: Any) -> Any:
        return first * 2 + second * 3

    found = report(made(forward, crashing), *SAME)
    assert [problem.name for problem in found.problems] == ["unused output"] * 2
    assert "when only output 0 is used, this was raised: TypeError" in found.problems[0].text

    def choosing(ctx: Any, first: Any, second: Any) -> Any:
        return second * 3 if first is None else first * 2

    found = report(made(forward, choosing), *SAME)
    assert [problem.name for problem in found.problems] == ["unused output"]


def test_a_wrong_jvp() -> None:
    function = made(square_forward, right, jvp=lambda ctx, t: t * 2.0002 * ctx.saved_variables.x)
    found = report(function, *SAME)
    assert [problem.name for problem in found.problems] == ["wrong jvp"]
    assert "along element [0, 0] of 'x', the tangent of element [0, 0] of output 0" in str(found)
    assert "jvp: " in str(found)
    assert "numerical: " in str(found)
    function.jvp(lambda ctx, t: t * 2 * ctx.saved_variables.x)
    assert "jvp" in function.check(*SAME).checked
    function.jvp(lambda ctx, t: 1 // 0)
    assert problems(function, *SAME) == ["wrong jvp"]


def test_a_jvp_of_several_arguments() -> None:
    def jvp(ctx: Any, of_x: Any, of_y: Any) -> Any:
        x, y = ctx.saved_variables
        return of_x * y + of_y * x, of_x

    wrong = autograd_function(
        product_and_sum.spec.forward, product_and_sum.spec.backward_rule, jvp=jvp
    )
    found = report(wrong, numbers(2), numbers(2, seed=1))
    assert [problem.name for problem in found.problems] == ["wrong jvp"]
    assert "of 'y', the tangent of element [0] of output 1" in found.problems[0].text


def test_several_problems_are_numbered() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x * x

    with pytest.raises(GradcheckError) as caught:
        made(forward, lambda ctx, g: g.mul_(3 * ctx.x), name="cube").check(*SAME)
    text = str(caught.value)
    assert text == str(caught.value.report)
    assert text.startswith("cube: 3 problems\n  1. tensor on ctx: ctx.x")
    assert "\n  2. grad_output changed: " in text
    assert "\n  3. wrong first derivative: " in text
    assert "\n  checked: forward, " in text
    assert Problem("a", "b") == ("a", "b")


# --- what can't be checked ------------------------------------------------------------------------


def test_no_floating_tensor() -> None:
    with pytest.raises(ValueError, match="at least one floating or complex tensor"):
        mul_constant.check(3, 5)


def test_no_backward() -> None:
    function = autograd_function(square_forward)
    assert problems(function, *SAME) == ["no backward"]


def test_no_output() -> None:
    assert problems(made(lambda ctx, x: 3, right), *SAME) == ["no output"]


def test_outputs_without_gradient() -> None:
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        out = (x * scale).round() if scale == 1 else x * scale
        ctx.mark_non_differentiable(out)
        return out

    function = made(forward, lambda ctx, g: None)
    assert problems(function, *SAME, 1) == []
    found = report(function, *SAME, 2)
    assert [problem.name for problem in found.problems] == ["wrong first derivative"]
    assert "doesn't require grad although it depends on the input" in str(found)


def test_errors_of_forward_are_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        made(lambda ctx, x: 1 // 0, right).check(*SAME)
    with pytest.raises(TypeError, match="unexpected keyword"):
        linear.check(numbers(2, 3), numbers(4, 3), wight=3)


def test_single_precision_inside_is_a_note() -> None:
    function = made(lambda ctx, x: x.to("float32") * 2, lambda ctx, g: g * 2)
    found = report(function, *SAME)
    assert found.problems == ()
    assert "output 0 is float32" in found.notes[0]


def test_the_hook_is_there() -> None:
    assert callable(AutogradFunction.checker)
