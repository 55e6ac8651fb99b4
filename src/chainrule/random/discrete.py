"""Draws from discrete distributions, and the state of the default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, MemoryOptions, Operand, leaf
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.interrupts import P, T, call_then
from chainrule.operation import operation
from chainrule.random.continuous import randint
from chainrule.random.draw import draw, seedable_generator, values_of

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "binomial",
    "get_rng_state",
    "initial_seed",
    "multinomial",
    "poisson",
    "randint_like",
    "seed",
    "set_rng_state",
]


def seed() -> int:
    """Seed the default generator with an unpredictable number; return it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.seed() == cr.initial_seed()
    True
    """
    return seedable_generator("seed").seed()


def initial_seed() -> int:
    """Return the seed of the default generator.

    Examples
    --------
    >>> import chainrule as cr
    >>> rng = cr.manual_seed(7)
    >>> cr.initial_seed()
    7
    """
    return seedable_generator("initial_seed").initial_seed()


def get_rng_state() -> Any:
    """Return the state of the default generator, for `set_rng_state`.

    Examples
    --------
    >>> import chainrule as cr
    >>> state = cr.get_rng_state()
    >>> a = cr.rand(3)
    >>> cr.set_rng_state(state)
    >>> cr.rand(3).equal(a)
    True
    """
    return seedable_generator("get_rng_state").get_state()


def set_rng_state(new_state: Any) -> None:
    """Let the default generator go on from a state that `get_rng_state` returned.

    Raises
    ------
    TypeError
        If it is something else.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_rng_state(cr.get_rng_state())
    """
    seedable_generator("set_rng_state").set_state(new_state)


def with_rng_state(state: Any, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with another state of the default generator."""
    before = get_rng_state()

    def call() -> T:
        set_rng_state(state)
        return function(*args, **kwargs)

    return call_then(lambda: set_rng_state(before), call)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **settings: Any) -> Iterator[None]:
    """Draw in a block without moving the default generator on.

    Parameters
    ----------
    devices, **settings
        As in PyTorch, without effect.
    enabled : bool, default True
        If False, the block does nothing.

    Examples
    --------
    >>> import chainrule as cr
    >>> _ = cr.manual_seed(0)
    >>> with cr.random.fork_rng():
    ...     first = cr.rand(2)
    >>> cr.rand(2).equal(first)
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def randint_like(
    input: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return integers drawn uniformly, of the shape, dtype and device of `input`.

    Parameters
    ----------
    input : Tensor
        The tensor whose shape, dtype and device are taken.
    low, high : int
        The bounds, `high` excluded. ``randint_like(x, high)`` starts at 0.
    rng, generator, dtype, device, requires_grad
        As for `rand`; dtype and device are those of `input` if left out.

    Returns
    -------
    Tensor, shape of `input`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.randint_like(cr.zeros(2, 2), 3, 4)
    tensor([[3., 3.],
            [3., 3.]])
    """
    low, high = (0, low) if high is None else (low or 0, high)
    kind = input.dtype if dtype is None else dtype
    drawn = randint(low, high, input.shape, rng=rng or generator, dtype=kind)
    return leaf(drawn._array, device or input.device, requires_grad, memory)


def _float_values(values: Operand, name: str) -> tuple[Any, Any]:
    array = values_of(values)
    if array.dtype.kind != "f":
        raise DTypeError(
            f"{name} only supports floating-point dtypes for input, got: {array.dtype}"
        )
    return array, values.device if isinstance(values, Tensor) else None


@operation()
def multinomial(
    input: Operand,
    num_samples: int,
    replacement: bool = False,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers of categories, drawn with the given weights.

    Parameters
    ----------
    input : Tensor, shape (m,) or (n, m)
        The weight of each of m categories, not negative; they need not add up to 1. Each of n rows
        is a distribution of its own.
    num_samples : int
        Number of draws.
    replacement : bool, default False
        Whether a category can be drawn several times.
    rng, generator : numpy.random.Generator, optional
        The generator to draw from: the one that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor of int64, shape (num_samples,) or (n, num_samples)

    Raises
    ------
    DTypeError
        If the weights are not floating.
    ShapeError
        If they are not a vector or matrix, or `num_samples` is not positive.
    ArgumentError
        If a weight is negative, infinite or nan, all are 0, or, without replacement, fewer than
        `num_samples` are positive.

    Notes
    -----
    Without replacement, each weight is divided by an exponentially distributed number, and the
    largest quotients are chosen [1]_: this is equivalent to draws one by one. A draw has no
    derivative.

    References
    ----------
    .. [1] P. S. Efraimidis, P. G. Spirakis, Inf. Process. Lett. 97(5), 2006, 181–185.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.multinomial(cr.tensor([0.0, 2.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    weights, device = _float_values(input, "multinomial")
    if weights.ndim not in (1, 2):
        raise ShapeError(
            f"multinomial: prob_dist must be 1 or 2 dim, got the shape {list(weights.shape)}"
        )
    if num_samples <= 0:
        raise ShapeError(f"cannot sample n_sample <= 0 samples, got {num_samples}")
    rows = np.atleast_2d(weights).astype(np.float64)
    if namespace(rows).known:
        _check_weights(rows, None if replacement else num_samples)
    if replacement:
        drawn = draw(_with_replacement, rng or generator, rows, num_samples)
    else:
        keys = rows / draw("standard_exponential", rng or generator, rows.shape)
        drawn = np.argsort(-keys, axis=1, kind="stable")[:, :num_samples]
    drawn = drawn if weights.ndim == 2 else drawn[0]
    return leaf(namespace(drawn).ascontiguousarray(drawn), device)


def _check_weights(rows: Any, distinct: int | None) -> None:
    """Raise if weights are invalid, or too few are positive for `distinct` categories."""
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise ArgumentError("probability tensor contains either `inf`, `nan` or element < 0")
    available = np.count_nonzero(rows, axis=1)
    if np.any(available == 0):
        raise ArgumentError("invalid multinomial distribution (sum of probabilities <= 0)")
    if distinct is not None and distinct > available.min(initial=distinct):
        raise ArgumentError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: invalid "
            "multinomial distribution (with replacement=False, not enough non-negative category to "
            f"sample): {distinct} of {available.min()}"
        )


def _with_replacement(source: Generator, rows: Any, count: int) -> Any:
    """Return categories drawn by inversion of the cumulative weights."""
    # The largest weight is 1, so no sum overflows.
    cumulated = np.cumsum(rows / rows.max(axis=1, keepdims=True), axis=1)
    thresholds = source.random((len(rows), count)) * cumulated[:, -1:]
    last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
    found = [
        np.searchsorted(row, threshold, "right")
        for row, threshold in zip(cumulated, thresholds, strict=True)
    ]
    # Rounding may put a threshold after the last category with a positive weight.
    return np.minimum(np.asarray(found, np.int64).reshape(thresholds.shape), last[:, None])


def poisson(
    input: Operand, *, rng: Generator | None = None, generator: Generator | None = None
) -> Tensor:
    """Return numbers of events, drawn from Poisson distributions.

    Parameters
    ----------
    input : Tensor, floating
        The mean of each; not negative.
    rng, generator : numpy.random.Generator, optional
        As for `multinomial`.

    Returns
    -------
    Tensor, shape, dtype and device of `input`

    Raises
    ------
    DTypeError
        If `input` is not of floats.
    ArgumentError
        If a mean is negative.

    Notes
    -----
    A draw has no derivative: the result does not require grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.poisson(cr.zeros(2))
    tensor([0., 0.])
    """
    means, device = _float_values(input, "poisson")
    xp = namespace(means)
    if xp.known and not np.all(means >= 0):
        raise ArgumentError("invalid Poisson rate, expected rate to be non-negative")
    drawn = draw("poisson", rng or generator, means)
    return leaf(xp.asarray(drawn, dtype=means.dtype), device)


def binomial(
    count: Operand,
    prob: Operand,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers of successes, drawn from binomial distributions.

    Parameters
    ----------
    count : Tensor, floating
        Numbers of trials.
    prob : Tensor, floating
        The probability of success in each; the shapes broadcast.
    rng, generator : numpy.random.Generator, optional
        As for `multinomial`.

    Returns
    -------
    Tensor, of the broadcast shape; dtype and device of `count`

    Raises
    ------
    DTypeError
        If one is not of floats.
    ArgumentError
        If a number of trials is negative, or a probability outside of [0, 1].

    Notes
    -----
    A draw has no derivative: the result does not require grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.binomial(cr.tensor([5.0, 5.0]), cr.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    trials, device = _float_values(count, "binomial")
    chances, _ = _float_values(prob, "binomial")
    xp = namespace(chances if namespace(trials).known else trials)
    if xp.known and not np.all(trials >= 0):
        raise ArgumentError("binomial expects numbers of trials that are not negative")
    if xp.known and not np.all((chances >= 0) & (chances <= 1)):
        raise ArgumentError("binomial expects all probabilities to be in [0, 1]")
    drawn = draw("binomial", rng or generator, trials.astype(np.int64), chances)
    return leaf(xp.asarray(drawn, dtype=trials.dtype), device)
