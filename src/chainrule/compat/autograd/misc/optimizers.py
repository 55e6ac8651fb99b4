"""Stochastic gradient methods for trees of parameters: gradient descent, RMSprop, Adam.

RMSprop is of T. Tieleman and G. Hinton (Lecture 6.5, Neural Networks for Machine Learning, 2012),
Adam of D. P. Kingma and J. Ba (ICLR 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.misc.flatten import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Optimizer = Callable[..., Any]
Step = Callable[[Any, int], Any]


def unflatten_optimizer(optimize: Optimizer) -> Optimizer:
    """Return an optimiser of vectors, ``optimize(grad, x0, callback, ...)``, as one of trees."""

    @wraps(optimize)
    def of_trees(grad: Any, x0: Any, callback: Any = None, *args: Any, **kwargs: Any) -> Any:
        vector, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            callback(unflatten(x), i, unflatten(g))

        shown = flat_callback if callback else None
        return unflatten(optimize(flat_grad, vector, shown, *args, **kwargs))

    return of_trees


def _descend(grad: Any, x: Any, callback: Any, num_iters: int, step: Step) -> Any:
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        x = x + step(g, i)
    return x


@unflatten_optimizer
def sgd(
    grad: Any,
    x: Any,
    callback: Any = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Return parameters after gradient descent with momentum.

    Parameters
    ----------
    grad : callable
        ``grad(x, i)``, the gradient in iteration i.
    x : tree of arrays
        The start.
    callback : callable, optional
        Called as ``callback(x, i, g)`` in each iteration.
    num_iters : int
        Number of iterations.
    step_size : float
        The step is `step_size` times the velocity.
    mass : float
        The velocity becomes `mass` times itself less (1 - `mass`) times the gradient.
    """
    velocity = np.zeros(len(x))

    def step(g: Any, _: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _descend(grad, x, callback, num_iters, step)


@unflatten_optimizer
def rmsprop(
    grad: Any,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return parameters after RMSprop: gradients are divided by their root mean square.

    `gamma` is the weight of the past in the mean, `eps` is added to the root; the rest is as for
    `sgd`.
    """
    mean_square = np.ones(len(x))

    def step(g: Any, _: int) -> Any:
        nonlocal mean_square
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        return -step_size * g / (np.sqrt(mean_square) + eps)

    return _descend(grad, x, callback, num_iters, step)


@unflatten_optimizer
def adam(
    grad: Any,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return parameters after Adam: the mean gradient over its root mean square.

    `b1` and `b2` are the weights of the past in mean and mean square, `eps` is added to the root;
    the rest is as for `sgd`.
    """
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))

    def step(g: Any, i: int) -> Any:
        nonlocal mean, mean_square
        mean = b1 * mean + (1 - b1) * g
        mean_square = b2 * mean_square + (1 - b2) * g**2
        # The means start at zero: divided by the weight of what has come in since.
        unbiased, square = mean / (1 - b1 ** (i + 1)), mean_square / (1 - b2 ** (i + 1))
        return -step_size * unbiased / (np.sqrt(square) + eps)

    return _descend(grad, x, callback, num_iters, step)
