"""Exchanges between ranks as linear primitives, each with its adjoint.

An exchange is a linear map of the values of all ranks, stacked. Its adjoint, another exchange,
follows from the pairing that sums over the ranks: the loss is the sum of what each rank calls
backward on. So `allreduce` is its own adjoint, and that of `bcast` is `reduce`. In a recorded pass,
the adjoint is recorded, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.namespace import connected
from chainrule.autograd.tensor import Tensor
from chainrule.errors import CompileError, DeviceError
from chainrule.primitives.primitive import Primitive, general
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.namespace import broadcast_batch

Array = Any


def _communication(
    name: str,
    exchange: Callable[..., Array],
    *,
    adjoint: Callable[..., Any],
    forward: Callable[..., Any],
) -> Primitive:
    """Make the primitive of an exchange of memory by a transport.

    Its derivatives are methods of the communicator, of arrays or of tensors: `adjoint`, and
    `forward` for tangents. `options` are the arguments of all three.
    """

    def compute(xp: Any, x: Array, *, comm: Any, options: dict[str, Any]) -> Array:
        return _of_memory(exchange, comm.transport, x, options)

    def vjp(
        xp: Any, g: Any, x_shape: Any, x_dtype: Any, *, comm: Any, options: dict[str, Any]
    ) -> tuple[Any, ...]:
        return (adjoint(xp, comm, g, x_shape, x_dtype, **options),)

    def jvp(
        xp: Any, t: Any, x_shape: Any, x_dtype: Any, *, comm: Any, options: dict[str, Any]
    ) -> Any:
        (tangent,) = t
        if tangent is None:  # the other ranks wait for this one's zeros
            tangent = xp.zeros(x_shape, dtype=x_dtype)
        return forward(comm, tangent, **options)

    return general(name, compute, vjp=vjp, jvp=jvp, broadcasts=False)


def _of_memory(
    exchange: Callable[..., Array], transport: Any, x: Array, options: dict[str, Any]
) -> Array:
    """Exchange the memory of an array, the batch axes of vmap included."""
    if x.__class__ is BatchedArray:
        level = x.level
        inner = {
            name: value + 1
            if name.endswith("axis")
            else (level.count, *value)
            if name == "shape"
            else value
            for name, value in options.items()
        }
        out = _of_memory(exchange, transport, broadcast_batch(level, x.data), inner)
        return BatchedArray(level, out if out.ndim else out[None])
    return exchange(transport, np.asarray(x, order="C"), **options)


def batch_of(x: Array) -> tuple[int, ...]:
    """Return the numbers of examples of the vmaps that an array is batched by.

    Raise if its memory can't be exchanged.
    """
    if x.__class__ is BatchedArray:
        return (*batch_of(x.data), x.level.count)
    if isinstance(x, ArrayProxy):
        raise CompileError(
            "a compiled function can't communicate: compile the functions before and after the "
            "exchange, and call it between them"
        )
    if not isinstance(x, np.ndarray):
        raise DeviceError(f"ranks exchange arrays of NumPy, got {type(x)}: move it with .cpu()")
    return ()


# --- sums and copies ------------------------------------------------------------------------------

allreduce = _communication(
    "comm_allreduce",
    lambda transport, x: transport.allreduce(x),
    adjoint=lambda xp, comm, g, *_: comm.allreduce(g),
    forward=lambda comm, t: comm.allreduce(t),
)

reduce = _communication(
    "comm_reduce",
    lambda transport, x, *, root: transport.reduce(x, root),
    adjoint=lambda xp, comm, g, *_, root: comm.bcast(g, root),
    forward=lambda comm, t, *, root: comm.reduce(t, root),
)

bcast = _communication(
    "comm_bcast",
    lambda transport, x, *, root: transport.bcast(x, root),
    adjoint=lambda xp, comm, g, *_, root: comm.reduce(g, root),
    forward=lambda comm, t, *, root: comm.bcast(t, root),
)

# --- parts along an axis --------------------------------------------------------------------------
#
# `sizes` are the lengths of the ranks' parts. Parts that a rank doesn't have are of length 0.


def _along(x: Array, axis: int, length: int, exchange: Callable[[Array, int], Array]) -> Array:
    """Exchange rows of `axis` as flat memory; the result has `length` of them."""
    front = np.moveaxis(x, axis, 0)
    rest = front.shape[1:]
    flat = exchange(front.reshape(-1), math.prod(rest))
    return np.moveaxis(flat.reshape(length, *rest), 0, axis)


def _counts(sizes: Sequence[int], row: int) -> list[int]:
    return [size * row for size in sizes]


allgather = _communication(
    "comm_allgather",
    lambda transport, x, *, axis, sizes: _along(
        x, axis, sum(sizes), lambda flat, row: transport.allgather(flat, _counts(sizes, row))
    ),
    adjoint=lambda xp, comm, g, *_, axis, sizes: comm.reduce_scatter(g, axis, sizes=sizes),
    forward=lambda comm, t, *, axis, sizes: comm.allgather(t, axis),
)

reduce_scatter = _communication(
    "comm_reduce_scatter",
    lambda transport, x, *, axis, sizes: _along(
        x,
        axis,
        sizes[transport.rank],
        lambda flat, row: transport.reduce_scatter(flat, _counts(sizes, row)),
    ),
    adjoint=lambda xp, comm, g, *_, axis, sizes: comm.allgather(g, axis),
    forward=lambda comm, t, *, axis, sizes: comm.reduce_scatter(t, axis, sizes=sizes),
)

gather = _communication(
    "comm_gather",
    lambda transport, x, *, axis, root, sizes: _along(
        x,
        axis,
        sum(sizes) if transport.rank == root else 0,
        lambda flat, row: transport.gather(flat, _counts(sizes, row), root),
    ),
    adjoint=lambda xp, comm, g, *_, axis, root, sizes: comm.scatter(g, axis, root, sizes=sizes),
    forward=lambda comm, t, *, axis, root, sizes: comm.gather(t, axis, root),
)

scatter = _communication(
    "comm_scatter",
    lambda transport, x, *, axis, root, sizes: _along(
        x,
        axis,
        sizes[transport.rank],
        lambda flat, row: transport.scatter(flat, _counts(sizes, row), root),
    ),
    adjoint=lambda xp, comm, g, *_, axis, root, sizes: comm.gather(g, axis, root),
    forward=lambda comm, t, *, axis, root, sizes: comm.scatter(t, axis, root, sizes=sizes),
)


def _alltoall(transport: Any, x: Array, *, split_axis: int, concat_axis: int) -> Array:
    parts = np.stack(np.split(x, transport.size, split_axis))
    return np.concatenate(transport.alltoall(parts), concat_axis)


alltoall = _communication(
    "comm_alltoall",
    _alltoall,
    adjoint=lambda xp, comm, g, *_, split_axis, concat_axis: comm.alltoall(
        g, concat_axis, split_axis
    ),
    forward=lambda comm, t, *, split_axis, concat_axis: comm.alltoall(t, split_axis, concat_axis),
)

# --- from one rank to another ---------------------------------------------------------------------


def _send(transport: Any, x: Array, *, dest: int, tag: int) -> Array:
    transport.send(x, dest, tag)
    return np.zeros((), x.real.dtype if x.dtype.kind in "fc" else np.float64)


send = _communication(
    "comm_send",
    _send,
    adjoint=lambda xp, comm, g, *_, dest, tag: comm._recv(dest, tag, g),
    forward=lambda comm, t, *, dest, tag: comm.send(t, dest, tag),
)


def _send_back(
    xp: Any, comm: Any, g: Any, x_shape: Any, x_dtype: Any, *, source: int, tag: int, **_: Any
) -> Any:
    """Return zeros that are connected with the sending, for derivatives of derivatives."""
    return xp.zeros(x_shape, dtype=x_dtype) + xp.astype(comm.send(g, source, tag), x_dtype)


recv = _communication(
    "comm_recv",
    lambda transport, x, *, source, tag, shape, dtype: transport.recv(source, tag, shape, dtype),
    adjoint=_send_back,
    forward=lambda comm, t, *, source, tag, shape, dtype: comm._recv(source, tag, t),
)


def _sendrecv(
    transport: Any, x: Array, *, dest: int | None, source: int | None, tag: int, **_: Any
) -> Array:
    if dest is not None:
        transport.send(x, dest, tag)
    return np.zeros_like(x) if source is None else transport.recv(source, tag, x.shape, x.dtype)


# Only values that are differentiated have a way back: `sends` and `receives` say whether the sent
# and the received ones are.
sendrecv = _communication(
    "comm_sendrecv",
    _sendrecv,
    adjoint=lambda xp, comm, g, *_, dest, source, tag, sends, receives: comm.sendrecv(
        g, source if receives else None, dest if sends else None, tag
    ),
    forward=lambda comm, t, *, dest, source, tag, sends, receives: comm.sendrecv(
        t, dest if sends else None, source if receives else None, tag
    ),
)


def connect(x: Tensor, *others: Tensor) -> Tensor:
    """Return x, connected with tensors that it doesn't depend on: their derivatives are zero.

    A backward pass from the result runs the communications that led to `others`, so that the ranks
    at their other ends need not wait: what `send` returns, or a received tensor that isn't used.

    Parameters
    ----------
    x : Tensor
        A tensor, such as the loss of this rank.
    others : Tensors of any shapes

    Returns
    -------
    Tensor, like `x`

    Notes
    -----
    Derivatives: ∂out/∂x = 1, and exactly 0 for all others, also where they are infinite or nan.
    It is what ChainerMN calls `pseudo_connect`, and mpi4torch `JoinDummies`.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, unused = cr.tensor(2.0, requires_grad=True), cr.tensor([1.0, 3.0], requires_grad=True)
    >>> cr.distributed.connect(x * x, unused).backward()
    >>> x.grad, unused.grad
    (tensor(4.), tensor([0., 0.]))
    """
    return connected(x, others)
