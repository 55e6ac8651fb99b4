"""Cost of custom functions in each form, compared with PyTorch's and HIPS autograd's.

Chains of a thousand calls on four float32 elements, forward and backward, and a linear layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None
try:
    import autograd.extend
    import autograd.numpy as hips_numpy

    import autograd as hips
except ImportError:
    hips = None

LENGTH = 1000
BARS = {"PyTorch": 0.45, "HIPS autograd": 0.8}
FOUR = np.array([0.1, 0.2, 0.3, 0.4], np.float32)

Step = Callable[[Any], Any]


# --- forms of mul_constant ------------------------------------------------------------------------
#
# Each is `tensor * constant` and its gradient; PyTorch's side is always that of `MulConstant`,
# unless the form has a counterpart there.


def by_attribute(ctx: Any, tensor: Any, constant: float) -> Any:
    ctx.constant = constant
    return tensor * constant


def one_for_each_argument(ctx: Any, grad_output: Any) -> Any:
    return grad_output * ctx.constant, None


def single(ctx: Any, grad_output: Any) -> Any:
    return grad_output * ctx.constant


def one_for_each_tensor(ctx: Any, grad_output: Any) -> Any:
    return (grad_output * ctx.constant,)


def as_list(ctx: Any, grad_output: Any) -> Any:
    return [grad_output * ctx.constant, None]


def if_needed(ctx: Any, grad_output: Any) -> Any:
    return grad_output * ctx.constant if ctx.needs_input_grad[0] else None, None


@cr.autograd_function
def by_name(ctx: Any, tensor: Any, constant: float) -> Any:
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@by_name.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return {"tensor": grad_output * ctx.saved_variables.constant}


@cr.autograd_function
def if_needed_by_name(ctx: Any, tensor: Any, constant: float) -> Any:
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@if_needed_by_name.backward
def _(ctx: Any, grad_output: Any) -> Any:
    saved, needs = ctx.saved_variables, ctx.needs_input_grad
    return {"tensor": grad_output * saved.constant if needs.tensor else None, "constant": None}


@cr.autograd_function
def with_keyword(ctx: Any, tensor: Any, *, constant: float = 1.001) -> Any:
    ctx.constant = constant
    return tensor * constant


@with_keyword.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return {"tensor": grad_output * ctx.constant}


def functions_of(lib: Any) -> dict[str, Any]:
    """Return the forms that PyTorch's class has, as classes of chainrule or PyTorch."""
    Function = lib.autograd.Function
    from_numpy = lib.from_numpy

    class MulConstant(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            return tensor * constant

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            return grad_output * ctx.constant, None

    class OnceDifferentiable(Function):
        forward = MulConstant.forward

        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx: Any, grad_output: Any) -> Any:
            return grad_output * ctx.constant, None

    class WithSetup(Function):
        @staticmethod
        def forward(tensor: Any, constant: float) -> Any:
            return tensor * constant

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.constant = inputs[1]

        backward = MulConstant.backward

    class Variadic(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, *constants: float) -> Any:
            ctx.constant = constants[0]
            return tensor * constants[0]

        backward = MulConstant.backward

    class InNumPy(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            return from_numpy(tensor.numpy() * constant)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            return from_numpy(grad_output.numpy() * ctx.constant), None

    class SavedInput(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            ctx.save_for_backward(tensor)
            return tensor * tensor

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (tensor,) = ctx.saved_tensors
            return grad_output * tensor

    class SavedOutput(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            output = tensor * 1.001
            ctx.save_for_backward(output)
            return output

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (output,) = ctx.saved_tensors
            return grad_output * output

    class InPlace(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            ctx.mark_dirty(tensor)
            return tensor.mul_(constant)

        backward = MulConstant.backward

    class TwoOutputs(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            return tensor * constant, tensor + constant

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first * ctx.constant, None

    class NonDifferentiable(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            second = tensor + constant
            ctx.mark_non_differentiable(second)
            return tensor * constant, second

        backward = TwoOutputs.backward

    class NotMaterialized(Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, constant: float) -> Any:
            ctx.constant = constant
            ctx.set_materialize_grads(False)
            return tensor * constant, tensor + constant

        backward = TwoOutputs.backward

    found = locals()
    return {name: each.apply for name, each in found.items() if isinstance(each, type)}


def constant(function: Any) -> Step:
    return lambda y: function(y, 1.001)


def keyword(function: Any) -> Step:
    return lambda y: function(y, constant=1.001)


def first(function: Any) -> Step:
    return lambda y: function(y, 1.001)[0]


def unary(function: Any) -> Step:
    return lambda y: function(y)


def of(lib: Any) -> dict[str, Step]:
    """Return a step for each form, in chainrule or PyTorch; several have one counterpart there."""
    classes = functions_of(lib)
    plain = constant(classes["MulConstant"])
    ours = lib is cr

    def pair(rule: Any) -> Step:
        return constant(cr.autograd_function(by_attribute, rule)) if ours else plain

    return {
        "pair of functions, a gradient for each argument": pair(one_for_each_argument),
        "· a gradient for each tensor": pair(one_for_each_tensor),
        "· one gradient": pair(single),
        "· a list": pair(as_list),
        "· `needs_input_grad`": pair(if_needed),
        "by name": constant(by_name) if ours else plain,
        "by name, `needs_input_grad`": constant(if_needed_by_name) if ours else plain,
        "by name, keyword argument": keyword(with_keyword) if ours else plain,
        "class": plain,
        "· `setup_context`": constant(classes["WithSetup"]),
        "· `once_differentiable`": constant(classes["OnceDifferentiable"]),
        "· `*args`": constant(classes["Variadic"]),
        "· in NumPy": constant(classes["InNumPy"]),
        "· input saved": unary(classes["SavedInput"]),
        "· output saved": unary(classes["SavedOutput"]),
        "· `mark_dirty`": constant(classes["InPlace"]),
        "· two outputs": first(classes["TwoOutputs"]),
        "· two outputs, `mark_non_differentiable`": first(classes["NonDifferentiable"]),
        "· two outputs, `set_materialize_grads`": first(classes["NotMaterialized"]),
    }


def chain(step: Step, start: Any) -> Callable[[], None]:
    """Return a job that applies `step` a thousand times and differentiates the sum."""

    def job() -> None:
        x = start()
        for _ in range(LENGTH):
            x = step(x)
        x.sum().backward()

    return job


def starting(lib: Any, name: str) -> Callable[[], Any]:
    """Return what gives the first tensor of a chain: a leaf, or a result that may be written to."""
    x = (cr.tensor if lib is cr else torch.tensor)(FOUR, requires_grad=True)
    return (lambda: x * 1.0) if "dirty" in name else lambda: x


# --- HIPS autograd --------------------------------------------------------------------------------


def hips_jobs() -> dict[str, Callable[[], Any]]:
    """Return its jobs, by the part of a form's name that they are the counterpart of."""
    multiply = autograd.extend.primitive(lambda x, c: x * c)
    autograd.extend.defvjp(multiply, lambda ans, x, c: lambda g: g * c, None)
    square = autograd.extend.primitive(lambda x: x * x)
    autograd.extend.defvjp(square, lambda ans, x: lambda g: g * x)
    scaled = autograd.extend.primitive(lambda x: x * 1.001)
    autograd.extend.defvjp(scaled, lambda ans, x: lambda g: g * ans)

    def job(step: Step) -> Callable[[], Any]:
        def total(x: Any) -> Any:
            for _ in range(LENGTH):
                x = step(x)
            return hips_numpy.sum(x)

        gradient = hips.grad(total)
        return lambda: gradient(FOUR)

    return {"": job(constant(multiply)), "input saved": job(square), "output saved": job(scaled)}


# --- a linear layer -------------------------------------------------------------------------------


@cr.autograd_function
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


def linear_of(lib: Any) -> Any:
    """Return PyTorch's form of `linear`."""

    class Linear(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(input, weight, bias)
            output = input.mm(weight.t())
            return output if bias is None else output + bias

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            input, weight, _ = ctx.saved_tensors
            needs = ctx.needs_input_grad
            return (
                grad_output.mm(weight) if needs[0] else None,
                grad_output.t().mm(input) if needs[1] else None,
                grad_output.sum(0) if needs[2] else None,
            )

    return Linear.apply


LAYER = [
    np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for shape in ((4, 16), (8, 16), 8)
]


def linear_job(lib: Any, function: Any) -> Callable[[], None]:
    tensors = [(cr.tensor if lib is cr else torch.tensor)(a, requires_grad=True) for a in LAYER]
    return lambda: function(*tensors).sum().backward()


def hips_linear() -> Callable[[], Any]:
    function = autograd.extend.primitive(lambda x, weight, bias: x @ weight.T + bias)
    autograd.extend.defvjp(
        function,
        lambda ans, x, weight, bias: lambda g: g @ weight,
        lambda ans, x, weight, bias: lambda g: g.T @ x,
        lambda ans, x, weight, bias: lambda g: g.sum(0),
    )
    gradient = hips.grad(lambda parameters: hips_numpy.sum(function(*parameters)))
    return lambda: gradient(LAYER)


def rows() -> list[harness.Row]:
    """Measure a chain of each form, and the layer."""
    peers = {} if torch is None else of(torch)
    known = {} if hips is None else hips_jobs()
    found = []
    for name, step in of(cr).items():
        jobs: dict[str, Any] = {"chainrule": chain(step, starting(cr, name))}
        if torch is not None:
            jobs["PyTorch"] = chain(peers[name], starting(torch, name))
        key = next((part for part in known if part and part in name), "")
        if known and "dirty" not in name and "outputs" not in name:
            jobs["HIPS autograd"] = known[key]
        found.append(harness.measure(f"custom: {name}", jobs, BARS, units=LENGTH))
    bars = {"PyTorch": 0.65, "HIPS autograd": 0.9}
    for name, function in {"by name": linear, "class": linear_of(cr)}.items():
        jobs = {"chainrule": linear_job(cr, function)}
        if torch is not None:
            jobs["PyTorch"] = linear_job(torch, linear_of(torch))
        if hips is not None:
            jobs["HIPS autograd"] = hips_linear()
        found.append(harness.measure(f"custom: linear (16×8), {name}", jobs, bars))
    return found


if __name__ == "__main__":
    print(harness.table(rows(), ["chainrule", *BARS]))
