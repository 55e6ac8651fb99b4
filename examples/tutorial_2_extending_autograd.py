"""Tutorial 2: extending autograd.

An operation of your own takes two functions: `forward` computes the result, and `backward` turns
the gradient with respect to the result into gradients with respect to the arguments. They share a
context, `ctx`, through which forward hands over what backward will need.

Here are two operations, in every form that may be written: a `linear` layer whose bias is optional,
and `mul_constant`, whose second argument is a number and can't have a gradient.

Run it: python3 examples/tutorial_2_extending_autograd.py
"""

import chainrule as cr

# --- 1. A decorator, everything by name -----------------------------------------------------------
#
# The form to start with. The decorated function is forward without ctx: linear(input, weight),
# linear(input, weight, bias), linear(input=x, weight=w), as any Python function.


@cr.autograd_function
def linear(ctx, input, weight, bias=None):
    # Any object can be saved, under any name; None too.
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input.mm(weight.t())
    return output if bias is None else output + bias


@linear.backward
def _(ctx, grad_output):
    # What was saved, and whose gradients this pass needs: each read by attribute here, though
    # ["input"] and [0] work as well.
    saved, needs = ctx.saved_variables, ctx.needs_input_grad

    # Gradients are returned by the names of forward's arguments, in any order. One that isn't
    # needed need not be computed: a missing entry, like None, means that no gradient flows there.
    grads = {}
    if needs.input:
        grads["input"] = grad_output.mm(saved.weight)
    if needs.weight:
        grads["weight"] = grad_output.t().mm(saved.input)
    if needs.bias:
        grads["bias"] = grad_output.sum(0)
    return grads


# A constant needs no gradient, so backward names only the tensor.


@cr.autograd_function
def mul_constant(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant.backward
def _(ctx, grad_output):
    return {"tensor": grad_output * ctx.saved_variables.constant}


# --- 2. A pair of functions, everything by position -----------------------------------------------
#
# The form of `torch` for R: two functions that may have been written elsewhere. A tuple of
# gradients has one for each argument of forward, in their order. Extra Nones at its end do no harm.


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
# Where one argument alone can have a gradient, backward may return just that.


@cr.autograd_function
def mul_constant_single(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant_single.backward
def _(ctx, grad_output):
    return grad_output * ctx.saved_variables["constant"]


# --- 4. A class, as in PyTorch --------------------------------------------------------------------
#
# Two static methods; the function is the class's `apply`.


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
        ctx.constant = constant  # what is no tensor may also be an attribute of ctx
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
    """Return the gradient of a multiplication by two."""
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    mul(x, 2).sum().backward()
    return x.grad


def check_linear(function):
    """Compare a linear layer's backward with finite differences, with a bias and without."""
    # Differences need double precision; with 24 bits they'd be too coarse to tell right from wrong.
    x, w, b = (
        cr.randn(shape, dtype=cr.float64, requires_grad=True) for shape in [(20, 5), (3, 5), (3,)]
    )

    # gradcheck moves each element of each input a little, sees how the outputs change, and compares
    # that with what backward says. gradgradcheck does it for backward itself: our backward is made
    # of recorded operations, so it can be differentiated too.
    assert cr.gradcheck(function, (x, w, b))
    assert cr.gradcheck(function, (x, w))
    assert cr.gradgradcheck(function, (x, w, b))

    # .check looks for everything else that goes wrong in custom functions: changed inputs, tensors
    # kept where they outlive the graph, gradients that depend on who else needs one, and so on.
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

    # The graph knows our function by its name.
    x = cr.ones(2, requires_grad=True)
    print(f"\nmul_constant(x, 2) was made by {mul_constant(x, 2).grad_fn}")

    # And what a report says in full:
    print(f"\n{linear.check(cr.randn(4, 3), cr.randn(2, 3))}")
    return gradients


if __name__ == "__main__":
    main()
