"""Tutorial 3: exercises.

1. The gradients of f(x) = x² + 3x + 2 and of g(x) = f(f(f(x))) at x = 2.
2. f and its local linear approximation at 2, as a table and as a picture.
3. ReLU as a custom function.

Run it: python3 examples/tutorial_3_exercises.py
"""

from pathlib import Path

import chainrule as cr

# --- Exercise 1: gradients ------------------------------------------------------------------------


def f(x):
    return x**2 + 3 * x + 2


def g(x):
    return f(f(f(x)))


def gradient(function, at):
    """Return the value and the derivative of a function of one number."""
    x = cr.tensor(float(at), requires_grad=True)
    y = function(x)
    y.backward()
    return y.item(), x.grad.item()


# By hand: f'(x) = 2x + 3, so f'(2) = 7. The chain rule multiplies the slopes along the way:
# f(2) = 12 and f(12) = 182, so g'(2) = f'(182) · f'(12) · f'(2) = 367 · 27 · 7 = 69363.


# --- Exercise 2: the local linear approximation ---------------------------------------------------
#
# Near a point x₀, a function is close to its tangent line there:
# f(x) ≈ f(x₀) + f'(x₀) (x - x₀).


def linear_approximation(function, at, x):
    """Return the values at x of the tangent line that touches `function` at `at`."""
    value, slope = gradient(function, at)
    return value + slope * (x - at)


def approximation_table(at=2.0, points=100):
    """Return the columns x, y_true and y_approx."""
    x = cr.linspace(-4, 4, points)
    return {"x": x, "y_true": f(x), "y_approx": linear_approximation(f, at, x)}


# `cr.taylor` does the same for any order: a function, with its derivatives, a table (of pandas, if
# it is installed) and a picture.


def approximations(function, at=2.0, orders=(0, 1, 2, 3)):
    """Return the largest error of the approximations of some orders within 0.5 of a point."""
    nearby = at + cr.linspace(-0.5, 0.5, 101, dtype=cr.float64)
    polynomials = {order: cr.taylor(function, at, order) for order in orders}
    return {order: abs(p.remainder(nearby)).max().item() for order, p in polynomials.items()}


def print_table(table, every=1):
    print("".join(f"{name:>10}" for name in table))
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    for row in rows[::every]:
        print("".join(f"{value:10.4f}" for value in row))


def draw(table, at, folder):
    """Draw the two curves into a file; return its path, or None if matplotlib is missing."""
    from chainrule import plotting

    try:
        axes = plotting.linear_approximation(**table, at=at, label="x² + 3x + 2")
    except cr.MissingExtraError as error:
        print(f"No picture: {error}")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "linear_approximation.png"
    axes.figure.savefig(path, dpi=150)
    return path


# --- Exercise 3: ReLU as a custom function --------------------------------------------------------
#
# ReLU keeps positive numbers and replaces the others by zero. Its backward does the same with the
# elements of the incoming gradient. So backward needs only the mask of the positive numbers.


@cr.autograd_function
def relu(ctx, x):
    positive = x > 0
    ctx.save_for_backward(positive=positive)
    return cr.where(positive, x, 0.0)


@relu.backward
def _(ctx, grad_output):
    return {"x": cr.where(ctx.saved_variables.positive, grad_output, 0.0)}


def gradient_of_square(at):
    """Return the derivative of relu(x)²: 2 relu(x) relu'(x)."""
    return gradient(lambda x: relu(x) ** 2, at)[1]


def main(folder="chainrule-demo"):
    print("Exercise 1")
    results = {"f": gradient(f, 2), "g": gradient(g, 2)}
    for name, (value, slope) in results.items():
        print(f"  {name}(2) = {value:g}, {name}'(2) = {slope:g}")

    print("\nExercise 2: every eleventh row of the table")
    table = approximation_table()
    print_table(table, every=11)
    path = draw(table, 2.0, Path(folder))
    if path is not None:
        print(f"The picture is in {path}")

    line = cr.taylor(f, 2.0, 1)
    print(f"As a Taylor polynomial: f(2) and f'(2) are {line.derivatives}")
    for order, error in approximations(cr.exp).items():
        print(f"  The approximation of order {order} of exp at 2 is wrong by at most {error:.4f}")

    print("\nExercise 3")
    x = cr.linspace(-3, 3, 7)
    print(f"  x:                    {x}")
    print(f"  relu(x):              {relu(x)}")
    print(f"  nn.functional.relu:   {cr.nn.functional.relu(x)}")
    assert relu(x).tolist() == cr.nn.functional.relu(x).tolist()
    relu.check(cr.tensor([-1.0, 3.0]))
    slopes = [gradient_of_square(-1), gradient_of_square(3)]
    print(f"  the gradient of relu(x)² at -1 and at 3: {slopes[0]:g} and {slopes[1]:g}")
    return results, table, path, slopes


if __name__ == "__main__":
    main()
