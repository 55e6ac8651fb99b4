"""Tutorial 4: `autograd_backward`, one backward pass from several tensors.

`loss.backward()` starts from one tensor. `autograd_backward` starts from a list of them, all in one
pass: what they share is walked once, and what they contribute to a leaf adds up.

Run it: python3 examples/tutorial_4_autograd_backward.py
"""

import chainrule as cr


def separate_graphs():
    """Two graphs that have nothing to do with each other."""
    x = cr.tensor(1.0, requires_grad=True)
    y = 2 * x

    a = cr.tensor(1.0, requires_grad=True)
    b = 3 * a

    cr.autograd_backward([y, b])
    return x.grad, a.grad  # dy/dx = 2 and db/da = 3


def shared_leaf():
    """Two results of the same leaf: the gradient is that of their sum."""
    x = cr.tensor(3.0, requires_grad=True)
    square, cube = x**2, x**3

    cr.autograd_backward([square, cube])
    return x.grad  # 2x + 3x² = 6 + 27


def with_grad_tensors():
    """Results with many elements need to know how much each of them counts.

    A gradient of ones can be assumed only for a tensor of one element. For others, `grad_tensors`
    gives, for each tensor, a gradient of its shape: that of whatever comes after it.
    """
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    squares = x**2
    total = x.sum()

    weights = cr.tensor([1.0, 10.0, 100.0])
    # None stands for the ones that a single element doesn't need to be told.
    cr.autograd_backward([squares, total], grad_tensors=[weights, None])
    return x.grad  # weights · 2x, plus 1 from the total


def weighted_losses():
    """Two losses of one network, one of which counts a tenth."""
    w = cr.tensor([1.0, -2.0], requires_grad=True)
    fit = (w - 3).pow(2).sum()
    penalty = w.pow(2).sum()

    cr.autograd_backward([fit, penalty], [cr.tensor(1.0), cr.tensor(0.1)])
    jointly = w.grad

    # The same by adding up before.
    v = w.detach().clone().requires_grad_()
    ((v - 3).pow(2).sum() + 0.1 * v.pow(2).sum()).backward()
    return jointly, v.grad


def one_after_the_other():
    """The same in two passes: gradients accumulate from pass to pass.

    A pass lets go of what the graph has saved, as it won't be needed again in most cases. Where
    `square` and `cube` share a part of the graph, the first of two passes has to keep it.
    """
    x = cr.tensor(1.5, requires_grad=True)
    double = 2 * x
    square, cube = double**2, double**3

    cr.autograd_backward(square, retain_graph=True)
    cr.autograd_backward(cube)
    return x.grad  # d(4x² + 8x³)/dx = 8x + 24x²


def what_goes_wrong():
    """Return what is said when the gradients don't fit the tensors."""
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
        except RuntimeError as error:  # every error of chainrule is one
            messages[name] = str(error)
    assert x.grad is None  # a call that was refused has done nothing
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
