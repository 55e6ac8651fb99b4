"""Random tensors: uniform and normal numbers, integers, permutations, Bernoulli draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    Operand,
    Sizes,
    dtype_of,
    dtype_or_default,
    leaf,
    lengths_of,
)
from chainrule.autograd.conversions import check_differentiated
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError
from chainrule.random.draw import draw, normal_array, seedable_generator, uniform_array, values_of

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "manual_seed",
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "bernoulli",
    "rand_like",
    "randn_like",
]


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, and return it.

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers, on every machine with the same NumPy.

    Returns
    -------
    Generator
        A `numpy.random.Generator`.

    Examples
    --------
    >>> import chainrule as cr
    >>> rng = cr.manual_seed(0)
    >>> a = cr.rand(3)
    >>> rng = cr.manual_seed(0)
    >>> bool((cr.rand(3) == a).all())
    True
    """
    return seedable_generator("manual_seed").manual_seed(seed)


def rand(
    *sizes: Any,
    size: Sizes | None = None,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return numbers drawn uniformly from [0, 1).

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape: ``rand(2, 3)`` and ``rand((2, 3))`` are the same. Also spelled `size`.
    rng, generator : numpy.random.Generator, optional
        The generator to draw from: the one that `manual_seed` seeds if left out.
    dtype : dtype, optional
        Floating or complex; the default dtype if left out. float32 is drawn in float32.
    device : device or str, optional
        The CPU if left out. Numbers are always drawn on the CPU, so that they are the same.
    requires_grad : bool, default False
        Record operations on the tensor.

    Returns
    -------
    Tensor, shape `sizes`

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.rand(2, 3)
    >>> x.shape, bool((x >= 0).all()), bool((x < 1).all())
    ((2, 3), True, True)
    """
    return leaf(
        uniform_array(lengths_of(sizes, size), dtype_or_default(dtype), rng or generator),
        device,
        requires_grad,
        memory,
    )


def randn(
    *sizes: Any,
    size: Sizes | None = None,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return numbers drawn from the standard normal distribution.

    The arguments are those of `rand`.
    A complex number has variance 1: its real and imaginary parts have 1/2 each.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.randn((2, 3), rng=np.random.default_rng(0)).shape
    (2, 3)
    """
    kind = dtype_or_default(dtype)
    drawn = normal_array(lengths_of(sizes, size), kind, rng or generator)
    if kind.kind == "c":
        drawn *= np.sqrt(0.5)
    return leaf(drawn, device, requires_grad, memory)


def randint(
    low: int | None = None,
    high: Any = None,
    size: Any = None,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return integers drawn uniformly from `low`, included, to `high`, excluded.

    Parameters
    ----------
    low, high : int
        The bounds. ``randint(high, size)`` and ``randint(high, size=size)`` start at 0.
    size : sequence of ints
        The shape.
    rng, generator, device, requires_grad
        As for `rand`.
    dtype : dtype, default int64
        The dtype of the result.

    Returns
    -------
    Tensor, shape `sizes`

    Raises
    ------
    ArgumentError
        If there is no integer between the bounds.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.randint(3, 5, (100,))
    >>> x.min().item(), x.max().item()
    (3, 4)
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None or high is None:
        raise ArgumentTypeError(
            "randint() needs a size and a bound: randint(high, size) or randint(low, high, size)"
        )
    low = low or 0
    if low >= high:
        raise ArgumentError(f"randint expects low < high, but got: {low} >= {high}")
    drawn = draw("integers", rng or generator, low, high, lengths_of((size,)))
    array = drawn.astype(np.int64 if dtype is None else dtype_of(dtype), copy=False)
    return leaf(array, device, requires_grad, memory)


def randperm(
    n: int,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order.

    Parameters
    ----------
    n : int
        Number of integers.
    rng, generator, device, requires_grad
        As for `rand`.
    dtype : dtype, default int64
        The dtype of the result.

    Returns
    -------
    Tensor, shape (n,)

    Examples
    --------
    >>> import chainrule as cr
    >>> sorted(cr.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    (count,) = lengths_of((n,))
    drawn = draw("permutation", rng or generator, count)
    array = drawn.astype(np.int64 if dtype is None else dtype_of(dtype), copy=False)
    return leaf(array, device, requires_grad, memory)


def normal(
    mean: Operand,
    std: Operand = 1.0,
    size: Any = None,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return numbers drawn from normal distributions.

    Parameters
    ----------
    mean, std : number or Tensor
        Mean and standard deviation (not negative) of each element. No gradient flows into them:
        for that write ``mean + std * randn(…)``.
    size : sequence of ints, optional
        The shape: that of `mean` and `std`, broadcast, if left out.
    rng, generator, device, requires_grad
        As for `rand`.
    dtype : dtype, optional
        If left out: that of `mean` or `std` if it is a Tensor, else the default dtype.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        If a standard deviation is negative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.normal(5.0, 0.0, (2,))
    tensor([5., 5.])
    """
    given = [t for t in (mean, std) if isinstance(t, Tensor) and t.is_floating_point()]
    kind = given[0].dtype if given and dtype is None else dtype_or_default(dtype)
    for t in given:
        check_differentiated(t)
    centre, spread = values_of(mean), values_of(std)
    if is_known(spread) and np.any(spread < 0):
        raise ArgumentError(f"normal expects std >= 0.0, but found {float(np.min(spread))}")
    shape = np.broadcast_shapes(centre.shape, spread.shape) if size is None else lengths_of((size,))
    drawn = normal_array(shape, kind, rng or generator) * spread.astype(kind) + centre.astype(kind)
    return leaf(namespace(drawn).asarray(drawn), device, requires_grad, memory)


def bernoulli(
    p: Operand, *, rng: Generator | None = None, generator: Generator | None = None
) -> Tensor:
    """Return ones with probability `p`, else zeros.

    Parameters
    ----------
    p : Tensor, floating
        The probability of each element, from 0 to 1.
    rng, generator : numpy.random.Generator, optional
        As for `rand`.

    Returns
    -------
    Tensor, shape, dtype and device of `p`

    Raises
    ------
    ArgumentError
        If a probability is outside of [0, 1].
    DTypeError
        If `p` is of integers.

    Notes
    -----
    A draw has no derivative: the result does not require grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bernoulli(cr.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    values = values_of(p)
    if values.dtype.kind != "f":
        raise DTypeError(f"bernoulli expects probabilities of a floating dtype, got {values.dtype}")
    if is_known(values) and not np.all((values >= 0) & (values <= 1)):
        raise ArgumentError("bernoulli expects all probabilities to be in [0, 1]")
    drawn = uniform_array(values.shape, np.dtype(np.float64), rng or generator) < values
    ones = namespace(drawn).asarray(drawn, dtype=values.dtype)
    return leaf(ones, p.device if isinstance(p, Tensor) else None)


def rand_like(
    input: Tensor,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return numbers drawn uniformly from [0, 1), of the shape, dtype and device of `input`.

    Parameters
    ----------
    input : Tensor
        The tensor whose shape, dtype and device are taken.
    rng, generator, dtype, device, requires_grad
        As for `rand`; dtype and device are those of `input` if left out.

    Returns
    -------
    Tensor, shape of `input`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.rand_like(cr.zeros(2, 3)).shape
    (2, 3)
    """
    kind = input.dtype if dtype is None else dtype
    return rand(
        input.shape,
        rng=rng or generator,
        dtype=kind,
        device=device or input.device,
        requires_grad=requires_grad,
        **memory,
    )


def randn_like(
    input: Tensor,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return standard normal numbers of the shape, dtype and device of `input`; see `rand_like`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.randn_like(cr.zeros(2, 3)).dtype
    dtype('float32')
    """
    kind = input.dtype if dtype is None else dtype
    return randn(
        input.shape,
        rng=rng or generator,
        dtype=kind,
        device=device or input.device,
        requires_grad=requires_grad,
        **memory,
    )
