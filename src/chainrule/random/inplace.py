"""Methods that fill tensors with random numbers in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand
from chainrule.autograd.inplace import set_item
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import move, namespace
from chainrule.errors import ArgumentError, DTypeError
from chainrule.interrupts import errstate
from chainrule.operation import operation
from chainrule.random.continuous import bernoulli as draw_bernoulli
from chainrule.random.draw import bounds_by_name, draw, values_of

if TYPE_CHECKING:
    from numpy.random import Generator


@errstate(all="ignore")  # a number drawn may be too large for a small dtype
def _fill(x: Tensor, drawn: Any, operation: str) -> Tensor:
    array = namespace(drawn).asarray(drawn).astype(x.dtype)
    set_item(x, Ellipsis, make(move(array, x.device), None), operation)
    return x


def _check_floating(x: Tensor, operation: str) -> None:
    if x.dtype.kind != "f":
        raise DTypeError(
            f"{operation} is only implemented for real floating tensors, got {x.dtype}: draw into "
            "a floating tensor and convert it"
        )


@operation()
def bernoulli(
    x: Tensor,
    p: float | None = None,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return ones with the probabilities in the tensor, or all with `p`, else zeros."""
    chances: Any = x if p is None else make(np.full(x.shape, p, np.float64), None)
    drawn = draw_bernoulli(chances, rng=rng or generator)
    return make(move(drawn._array.astype(x.dtype), x.device), None)


@operation()
def bernoulli_(
    x: Tensor,
    p: Operand = 0.5,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with ones with probability `p`, a number or one for each element, else with zeros."""
    spread = np.broadcast_to(values_of(p).astype(np.float64), x.shape)
    return _fill(x, draw_bernoulli(spread, rng=rng or generator)._array, "bernoulli_")


@operation()
def exponential_(
    x: Tensor,
    lambd: float = 1.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers from the exponential distribution of rate `lambd`, in place."""
    _check_floating(x, "exponential_")
    if lambd <= 0:
        raise ArgumentError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _fill(x, draw("standard_exponential", rng or generator, x.shape) / lambd, "exponential_")


@operation()
def geometric_(
    x: Tensor,
    p: float,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers of trials up to the first success, of probability `p`, in place."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _fill(x, draw("geometric", rng or generator, p, x.shape), "geometric_")


@operation()
def cauchy_(
    x: Tensor,
    median: float = 0.0,
    sigma: float = 1.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers from the Cauchy distribution, in place; `sigma` is its half width."""
    _check_floating(x, "cauchy_")
    if sigma <= 0:
        raise ArgumentError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _fill(x, median + sigma * draw("standard_cauchy", rng or generator, x.shape), "cauchy_")


@operation()
def log_normal_(
    x: Tensor,
    mean: float = 1.0,
    std: float = 2.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers whose logarithm is normal, with this mean and deviation, in place."""
    _check_floating(x, "log_normal_")
    if std <= 0:
        raise ArgumentError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _fill(x, draw("lognormal", rng or generator, mean, std, x.shape), "log_normal_")


@operation()
def random_(
    x: Tensor,
    *bounds: int | None,
    rng: Generator | None = None,
    generator: Generator | None = None,
    **named: Any,
) -> Tensor:
    """Fill with integers in place: ``random_(end)`` from 0, ``random_(start, end)`` without `end`.

    Without bounds, from 0 to the largest integer up to which the dtype represents all exactly.
    """
    start, end = bounds if len(bounds) == 2 else (0, bounds[0] if bounds else None)
    if named:
        start, end = bounds_by_name("random_", named, start, end)
    stop = min(_max_integer(x.dtype), 2**63 - 1) + 1 if end is None else end
    if start is None or start >= stop:
        raise ArgumentError(
            f"random_ expects 'from' to be less than 'to', but got {start} >= {stop}"
        )
    kind = np.int64 if stop <= 2**63 - 1 else np.uint64
    return _fill(x, draw("integers", rng or generator, start, stop, x.shape, dtype=kind), "random_")


def _max_integer(dtype: Any) -> int:
    if dtype.kind in "fc":
        return int(2 ** (np.finfo(dtype).nmant + 1))
    return 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
