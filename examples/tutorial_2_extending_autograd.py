"""Tutorial 2: extending autograd.

A custom operation consists of two functions. `forward` computes the result, and `backward` turns
the gradient with respect to the result into gradients with respect to the arguments. They share a
context, `ctx`, in which forward saves what backward needs.

Here are two operations, in every form that can be used: a `linear` layer whose bias is optional,
and `mul_constant`, whose second argument is a number and can't have a gradient.

Run it: python3 examples/tutorial_2_extending_autograd.py
"""

import chainrule as cr

# --- 1. A decorator, everything by name -----------------------------------------------------------
#
# Start with this form. The decorated function is called like forward, without ctx:
# linear(input, weight), linear(input, weight, bias), linear(input=x, weight=w).


@cr.autograd_function
def linear(ctx, input, weight, bias=None):
    # Any object can be saved, under any name; None too.
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input.mm(weight.t())
    return output if bias is None else output + bias


@linear.backward
def _(ctx, grad_output):
    # The saved values, and which gradients this pass needs. Both are read by attribute here;
    # ["input"] and [0] work as well.
    saved, needs = ctx.saved_variables, ctx.needs_input_grad

    # Gradients are returned by the names of forward's arguments, in any order. A gradient that is
    # not needed can be left out: a missing entry means no gradient, as None does.
    grads = {}
    if needs.input:
        grads["input"] = grad_output.mm(saved.weight)
    if needs.weight:
        grads["weight"] = grad_output.t().mm(saved.input)
    if needs.bias:
        grads["bias"] = grad_output.sum(0)
    return grads


# A constant needs no gradient, so backward returns one for the tensor only.


@cr.autograd_function
def mul_constant(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant.backward
def _(ctx, grad_output):
    return {"tensor": grad_output * ctx.saved_variables.constant}


# --- 2. A pair of functions, everything by position -----------------------------------------------
#
# The form of `torch` for R: two functions, defined wherever you like. Backward returns a tuple with
# a gradient for each argument of forward, in their order. Extra Nones at its end are ignored.


def linear_forward(ctx, input, weight, bias=None):
    ctx.save_for_backward(input, weight, bias)
    output = input.mm(weight.t())
    return output if bias is None else output + bias


def linear_backward(ctx, grad_output):
    input, weight, bias = ctx.saved_variables
    grad_input = grad_output.mm(weight)
    grad_weight = grad_output.t().mm(input)
    grad_bias = None if bias is None else grad_output.sum(0)
    return grad_input, grad_weight, grad_bias


linear_from_pair = cr.autograd_function(linear_forward, linear_backward)


def mul_constant_forward(ctx, tensor, constant):
    ctx.save_for_backward(constant)
    return tensor * constant


def mul_constant_backward(ctx, grad_output):
    return grad_output * ctx.saved_variables[0], None


mul_constant_from_pair = cr.autograd_function(mul_constant_forward, mul_constant_backward)


# --- 3. A single gradient -------------------------------------------------------------------------
#
# If only one argument can have a gradient, backward may return that gradient alone.


@cr.autograd_function
def mul_constant_single(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant_single.backward
def _(ctx, grad_output):
    return grad_output * ctx.saved_variables["constant"]


# --- 4. A class, as in PyTorch --------------------------------------------------------------------
#
# Two static methods; the operation is the class's `apply`.


class Linear(cr.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MulConstant(cr.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant  # values that are not tensors may also be attributes of ctx
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.constant, None


LINEARS = {
    "decorator, by name": linear,
    "pair, by position": linear_from_pair,
    "class": Linear.apply,
}
MUL_CONSTANTS = {
    "decorator, by name": mul_constant,
    "pair, by position": mul_constant_from_pair,
    "a single gradient": mul_constant_single,
    "class": MulConstant.apply,
}


def use(mul):
    """Return the gradient of a multiplication by 2."""
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    mul(x, 2).sum().backward()
    return x.grad


def check_linear(function):
    """Compare a linear layer's backward with finite differences, with a bias and without."""
    # Finite differences need double precision: in single precision, rounding would hide mistakes.
    x, w, b = (
        cr.randn(shape, dtype=cr.float64, requires_grad=True) for shape in [(20, 5), (3, 5), (3,)]
    )

    # gradcheck changes each element of each input a little, looks at how the outputs change, and
    # compares that with the result of backward. gradgradcheck does the same for backward itself:
    # our backward consists of recorded operations, so it can be differentiated too.
    assert cr.gradcheck(function, (x, w, b))
    assert cr.gradcheck(function, (x, w))
    assert cr.gradgradcheck(function, (x, w, b))

    # .check looks for the other common mistakes in custom functions: inputs that are changed,
    # tensors that outlive the graph, gradients that depend on which others are needed, and so on.
    function.check(x, w, b)
    return function.check(x, w)


def main():
    cr.manual_seed(0)

    print("linear:")
    for form, function in LINEARS.items():
        report = check_linear(function)
        print(f"  {form}: {report.function} has {'no problems' if report else 'problems'}")

    print("\nmul_constant, whose gradient is the constant:")
    gradients = {}
    for form, function in MUL_CONSTANTS.items():
        function.check(cr.randn(4), 2)
        gradients[form] = use(function)
        print(f"  {form}: {gradients[form]}")

    # The node in the graph has our function's name.
    x = cr.ones(2, requires_grad=True)
    print(f"\nmul_constant(x, 2) was made by {mul_constant(x, 2).grad_fn}")

    # A report in full:
    print(f"\n{linear.check(cr.randn(4, 3), cr.randn(2, 3))}")
    return gradients


if __name__ == "__main__":
    main()
