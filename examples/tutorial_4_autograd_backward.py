"""Tutorial 4: `autograd_backward`, one backward pass from several tensors.

`loss.backward()` starts from one tensor. `autograd_backward` starts from a list of tensors, all in
one pass: shared parts of the graph are walked once, and the contributions to a leaf are added.

Run it: python3 examples/tutorial_4_autograd_backward.py
"""

import chainrule as cr


def separate_graphs():
    """Return the gradients of two unconnected graphs."""
    x = cr.tensor(1.0, requires_grad=True)
    y = 2 * x

    a = cr.tensor(1.0, requires_grad=True)
    b = 3 * a

    cr.autograd_backward([y, b])
    return x.grad, a.grad  # dy/dx = 2 and db/da = 3


def shared_leaf():
    """Return the gradient of two results of the same leaf, which is that of their sum."""
    x = cr.tensor(3.0, requires_grad=True)
    square, cube = x**2, x**3

    cr.autograd_backward([square, cube])
    return x.grad  # 2x + 3x² = 6 + 27


def with_grad_tensors():
    """Return the gradient of results with many elements, each with a weight of its own.

    A gradient of 1 is assumed only for a tensor of one element. For other tensors, `grad_tensors`
    has a gradient of the same shape: that of the final result with respect to the tensor.
    """
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    squares = x**2
    total = x.sum()

    weights = cr.tensor([1.0, 10.0, 100.0])
    # None means the default, a gradient of 1, which only a single element has.
    cr.autograd_backward([squares, total], grad_tensors=[weights, None])
    return x.grad  # weights · 2x, plus 1 from the total


def weighted_losses():
    """Return the gradient of two losses, the second with a weight of 0.1, and that of their sum."""
    w = cr.tensor([1.0, -2.0], requires_grad=True)
    fit = (w - 3).pow(2).sum()
    penalty = w.pow(2).sum()

    cr.autograd_backward([fit, penalty], [cr.tensor(1.0), cr.tensor(0.1)])
    jointly = w.grad

    # The same, from the weighted sum.
    v = w.detach().clone().requires_grad_()
    ((v - 3).pow(2).sum() + 0.1 * v.pow(2).sum()).backward()
    return jointly, v.grad


def one_after_the_other():
    """Return the gradient after two passes, which accumulate.

    A pass frees the values that the graph has saved, since most are not needed again. Here
    `square` and `cube` share a part of the graph, so the first pass has to retain it.
    """
    x = cr.tensor(1.5, requires_grad=True)
    double = 2 * x
    square, cube = double**2, double**3

    cr.autograd_backward(square, retain_graph=True)
    cr.autograd_backward(cube)
    return x.grad  # d(4x² + 8x³)/dx = 8x + 24x²


def what_goes_wrong():
    """Return the error messages for gradients that don't match the tensors."""
    x = cr.ones(3, requires_grad=True)
    attempts = {
        "no gradient for three elements": lambda: cr.autograd_backward([x * 2]),
        "two tensors, one gradient": lambda: cr.autograd_backward([x * 2, x * 3], [cr.ones(3)]),
        "a gradient of another shape": lambda: cr.autograd_backward([x * 2], [cr.ones(2)]),
    }
    messages = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except RuntimeError as error:  # all errors of chainrule are RuntimeErrors
            messages[name] = str(error)
    assert x.grad is None  # a refused call changes nothing
    return messages


def main():
    two, three = separate_graphs()
    print(f"Separate graphs:           {two.item():g} and {three.item():g}")
    print(f"A shared leaf:             {shared_leaf().item():g}")
    print(f"With grad_tensors:         {with_grad_tensors()}")
    jointly, by_sum = weighted_losses()
    print(f"Weighted losses:           {jointly}")
    print(f"The same by a sum:         {by_sum}")
    print(f"One pass after the other:  {one_after_the_other().item():g}")

    print("\nWhat goes wrong:")
    for name, message in what_goes_wrong().items():
        print(f"  {name}:\n    {message}")


if __name__ == "__main__":
    main()
