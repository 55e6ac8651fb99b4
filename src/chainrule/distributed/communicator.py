"""The communicator: exchanges of tensors between ranks, differentiable in both modes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.forward import tracked
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import add_collective, endpoint
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.backend import numpy_xp
from chainrule.distributed import communication
from chainrule.distributed.communication import batch_of
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    CommunicationError,
    DTypeError,
    ShapeError,
)
from chainrule.ops import amax, amin, prod
from chainrule.primitives.primitive import Primitive, forward_of

Array = Any


class Transport(Protocol):
    """Exchange of memory between ranks. Arrays are C-contiguous, counts are of elements."""

    rank: int
    size: int

    def agree(self, header: Any) -> list[Any]:
        """Return the headers of all ranks, each of which calls this."""

    def allreduce(self, x: Array) -> Array: ...
    def reduce(self, x: Array, root: int) -> Array: ...
    def bcast(self, x: Array, root: int) -> Array: ...
    def allgather(self, x: Array, counts: Sequence[int]) -> Array: ...
    def reduce_scatter(self, x: Array, counts: Sequence[int]) -> Array: ...
    def gather(self, x: Array, counts: Sequence[int], root: int) -> Array: ...
    def scatter(self, x: Array, counts: Sequence[int], root: int) -> Array: ...
    def alltoall(self, x: Array) -> Array: ...

    def post(self, header: Any, dest: int, tag: int) -> None:
        """Announce a message, without waiting for its receiver."""

    def fetch(self, source: int, tag: int) -> Any:
        """Return the header of the next message."""

    def send(self, x: Array, dest: int, tag: int) -> None: ...
    def recv(self, source: int, tag: int, shape: tuple[int, ...], dtype: Any) -> Array: ...
    def split(self, color: int, key: int) -> Transport: ...


class Header(NamedTuple):
    """Description of one rank's part in an exchange."""

    call: tuple[Any, ...]  # name and arguments, which must be equal on all ranks
    shape: tuple[int | None, ...] | None  # None: the root knows it; or the length that may differ
    length: int  # along that axis
    dtype: str
    batch: tuple[int, ...]  # numbers of examples, under vmap
    recording: int

    def __str__(self) -> str:
        name, *options = self.call
        arguments = "".join([f", {key}={value}" for key, value in options])
        of = "" if self.shape is None else f" of {np.dtype(self.dtype)} {list(self.shape)}"
        vmapped = f" under vmap of {self.batch}" if self.batch else ""
        return f"{name}{of}{arguments}{vmapped}"


_SILENT, _WILLING, _RECORDS = range(3)
"""No gradients here; recorded if another rank needs it; a gradient is needed."""


class Communicator:
    """The ranks of a program, which exchange tensors: made by `world` and `run_ranks`.

    Every exchange is a linear function of the tensors of all ranks, and differentiable: in reverse
    and forward mode, to every order, under `vmap`. A compiled function can't communicate. Methods
    take tensors, arrays and numbers; arrays come back as arrays.

    Attributes
    ----------
    rank : int
        The number of this process or thread, from 0.
    size : int
        How many there are.

    Notes
    -----
    **Convention.** Gradients are those of the sum, over the ranks, of what each of them calls
    ``backward()`` on, as in mpi4torch [1]_. A loss that all ranks compute, such as
    ``comm.allreduce(part)``, is in that sum `size` times: divide it by `size` first.

    **Recording.** An exchange is recorded on all ranks if a gradient is needed on any, since all
    take part in its derivative. A backward pass runs exchanges in the reverse order of the forward
    pass, so ranks that agreed on it before agree again. It also runs those that none of the inputs
    that are asked for leads to. What a rank sends, and what it receives but doesn't use, it has to
    `connect` with its loss: the other rank waits for it.

    **Faults.** Calls that don't fit each other raise CommunicationError on all ranks that take
    part. So does waiting for ranks that have ended, have failed or wait themselves: under MPI,
    after about ten seconds in which all of them have waited. Start programs of MPI by ``mpiexec -n
    4 python -m mpi4py program.py``, which ends all processes at once if one fails. A communicator
    of MPI is for one thread of each process.

    References
    ----------
    .. [1] https://github.com/helmholtz-analytics/mpi4torch, "Basic usage". Adjoints of messages:
       J. Utke et al., Toward adjoinable MPI, IPDPS 2009.

    Examples
    --------
    The gradient of a sum over all ranks, by what each of them has:

    >>> import chainrule as cr
    >>> def program(comm):
    ...     x = cr.tensor(float(comm.rank + 1), requires_grad=True)
    ...     total = comm.allreduce(x)
    ...     (total**2 / comm.size).backward()
    ...     return total.item(), x.grad.item()
    >>> cr.distributed.run_ranks(program, 3)
    [(6.0, 12.0), (6.0, 12.0), (6.0, 12.0)]
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.rank = transport.rank
        self.size = transport.size

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}>"

    def __deepcopy__(self, memo: Any) -> Communicator:
        return self  # copies of a module communicate as it does

    # --- sums and copies ---

    def allreduce(self, x: Any, op: str = "sum") -> Any:
        """Return the sum of the ranks' tensors, on all ranks.

        Parameters
        ----------
        x : Tensor or array
            Of the same shape and dtype on all ranks.
        op : {"sum", "mean", "prod", "max", "min"}, default "sum"

        Returns
        -------
        Tensor or array, like `x`

        Raises
        ------
        CommunicationError
            If shapes, dtypes or arguments differ among the ranks.

        Notes
        -----
        The sum is its own adjoint: the gradient is the sum of the ranks' cotangents. Products and
        extremes are computed from all values, which takes `size` times the memory; an extreme's
        gradient is shared equally among the ranks that have it, as by `amax`.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.allreduce(comm.rank, "max").item(), 3)
        [2, 2, 2]
        """
        if op == "sum":
            return self._collective(communication.allreduce, _summand(x))
        if op == "mean":
            return self._collective(communication.allreduce, _summand(x)) / self.size
        if op not in _REDUCTIONS:
            raise ArgumentError(
                f"allreduce: op must be one of sum, mean, {', '.join(_REDUCTIONS)}; got {op!r}"
            )
        x = _as_operand(x)
        found = _REDUCTIONS[op](self.allgather(x[None], 0), 0)
        return found if isinstance(x, Tensor) else found.numpy()

    def reduce(self, x: Any, root: int = 0) -> Any:
        """Return the sum of the ranks' tensors on rank `root`, and zeros on the others.

        Notes
        -----
        Adjoint: `bcast` of the root's cotangent.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.reduce(comm.rank + 1).item(), 3)
        [6, 0, 0]
        """
        return self._collective(communication.reduce, _summand(x), root=self._rank(root, "root"))

    def bcast(self, x: Any = None, root: int = 0) -> Any:
        """Return the tensor of rank `root` on all ranks; `x` of the others may be None.

        Notes
        -----
        Adjoint: `reduce`, the sum of the ranks' cotangents, on the root.

        Examples
        --------
        >>> import chainrule as cr
        >>> def program(comm):
        ...     return comm.bcast(cr.tensor([1.0, 2.0]) if comm.rank == 0 else None)
        >>> cr.distributed.run_ranks(program, 2)
        [tensor([1., 2.]), tensor([1., 2.])]
        """
        return self._collective(communication.bcast, x, root=self._rank(root, "root"))

    # --- parts along an axis ---

    def allgather(self, x: Any, axis: int = 0) -> Any:
        """Return the ranks' tensors, joined along an axis in the order of ranks, on all ranks.

        Parameters
        ----------
        x : Tensor or array, shape (..., n, ...)
            The lengths along `axis` may differ among the ranks.
        axis : int, default 0

        Returns
        -------
        Tensor or array, shape (..., Σ n, ...)

        Notes
        -----
        Adjoint: `reduce_scatter`, the sum of the ranks' cotangents of this rank's part.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.allgather(cr.ones(comm.rank + 1)), 2)
        [tensor([1., 1., 1.]), tensor([1., 1., 1.])]
        """
        return self._collective(communication.allgather, x, axis=axis)

    def reduce_scatter(self, x: Any, axis: int = 0, *, sizes: Sequence[int] | None = None) -> Any:
        """Return this rank's part, along an axis, of the sum of the ranks' tensors.

        Parameters
        ----------
        x : Tensor or array, shape (..., n, ...)
            Of the same shape on all ranks.
        axis : int, default 0
        sizes : sequence of int, optional
            The lengths of the ranks' parts; equal parts by default.

        Returns
        -------
        Tensor or array, shape (..., sizes[rank], ...)

        Notes
        -----
        Adjoint: `allgather`.

        Examples
        --------
        >>> import chainrule as cr
        >>> program = lambda comm: comm.reduce_scatter(cr.arange(4.0))
        >>> cr.distributed.run_ranks(program, 2)
        [tensor([0., 2.]), tensor([4., 6.])]
        """
        return self._collective(
            communication.reduce_scatter, _summand(x), axis=axis, sizes=sizes, divides=True
        )

    def gather(self, x: Any, axis: int = 0, root: int = 0) -> Any:
        """Return the ranks' tensors, joined along an axis, on rank `root`.

        The others get a tensor of length 0 along the axis.

        Notes
        -----
        Adjoint: `scatter`.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.gather(cr.ones(1) * comm.rank), 2)
        [tensor([0., 1.]), tensor([])]
        """
        return self._collective(communication.gather, x, axis=axis, root=self._rank(root, "root"))

    def scatter(
        self, x: Any = None, axis: int = 0, root: int = 0, *, sizes: Sequence[int] | None = None
    ) -> Any:
        """Return this rank's part, along an axis, of the tensor of rank `root`.

        `x` of the others may be None; `sizes` are as for `reduce_scatter`.

        Notes
        -----
        Adjoint: `gather`.

        Examples
        --------
        >>> import chainrule as cr
        >>> program = lambda comm: comm.scatter(cr.arange(4.0) if comm.rank == 0 else None)
        >>> cr.distributed.run_ranks(program, 2)
        [tensor([0., 1.]), tensor([2., 3.])]
        """
        if x is not None and self.rank != self._rank(root, "root"):
            x = _as_operand(x)
            x = x[(*(slice(None),) * _axis(x, axis), slice(0, 0))]  # nothing of it is sent
        return self._collective(
            communication.scatter,
            x,
            axis=axis,
            sizes=sizes,
            divides=True,
            root=self._rank(root, "root"),
        )

    def alltoall(self, x: Any, split_axis: int = 0, concat_axis: int = 0) -> Any:
        """Return the parts for this rank of the ranks' tensors, joined along an axis.

        Parameters
        ----------
        x : Tensor or array
            Of the same shape on all ranks.
        split_axis : int, default 0
            The axis that is divided into `size` equal parts, one for each rank.
        concat_axis : int, default 0
            The axis along which the received parts are joined.

        Returns
        -------
        Tensor or array

        Notes
        -----
        With different axes it is the transpose of a matrix that is distributed by rows. Adjoint:
        `alltoall` with the axes exchanged.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.alltoall(cr.arange(2.0) + 10 * comm.rank), 2)
        [tensor([ 0., 10.]), tensor([ 1., 11.])]
        """
        x = _as_operand(x)
        split_axis, concat_axis = _axis(x, split_axis), _axis(x, concat_axis)
        if x.shape[split_axis] % self.size:
            raise ShapeError(
                f"alltoall: dimension {split_axis} of length {x.shape[split_axis]} can't be "
                f"divided into {self.size} equal parts: pad it"
            )
        return self._collective(
            communication.alltoall, x, split_axis=split_axis, concat_axis=concat_axis
        )

    # --- from one rank to another ---

    def send(self, x: Any, dest: int, tag: int = 0) -> Any:
        """Send a tensor to another rank, without waiting for it; return a zero.

        Parameters
        ----------
        x : Tensor or array
        dest : int
            The rank that receives.
        tag : int, default 0
            Messages of equal ranks and tags are received in the order of sending.

        Returns
        -------
        Tensor or array, 0-d
            Zero. The gradient of `x` comes through it: call ``backward()`` on it, or add it to the
            loss of this rank.

        Notes
        -----
        Adjoint: `recv`.

        Examples
        --------
        A function in two parts, on two ranks:

        >>> import chainrule as cr
        >>> def program(comm):
        ...     if comm.rank == 0:
        ...         x = cr.tensor(3.0, requires_grad=True)
        ...         comm.send(x * x, dest=1).backward()
        ...         return x.grad.item()
        ...     (comm.recv(source=0) * 10.0).backward()
        >>> cr.distributed.run_ranks(program, 2)
        [60.0, None]
        """
        x = _as_operand(x)
        dest = self._rank(dest, "dest")
        self.transport.post(self._header(("send",), x), dest, tag)
        options = {"dest": dest, "tag": tag}
        return self._apply(communication.send, x, _recording(x) == _RECORDS, options)

    def recv(self, source: int, tag: int = 0) -> Any:
        """Return the next tensor that rank `source` has sent to this one.

        Parameters
        ----------
        source : int
            The rank that sends.
        tag : int, default 0

        Returns
        -------
        Tensor, of the sender's shape and dtype

        Notes
        -----
        Adjoint: `send`. A received tensor that isn't used has to be connected with the loss of this
        rank, by `connect`: else the sender waits for its gradient.

        Examples
        --------
        >>> import chainrule as cr
        >>> def program(comm):
        ...     return comm.send(cr.ones(2), dest=1) if comm.rank == 0 else comm.recv(source=0)
        >>> cr.distributed.run_ranks(program, 2)
        [tensor(0.), tensor([1., 1.])]
        """
        return self._recv(source, tag, None)

    def _recv(self, source: int, tag: int, after: Any) -> Any:
        """Receive a tensor, or an array like `after`, which it is connected with."""
        source = self._rank(source, "source")
        header = self.transport.fetch(source, tag)
        operand = make(np.zeros(0, header.dtype), None) if after is None else _as_operand(after)
        self._check_received(header, source, operand)
        options = {"source": source, "tag": tag}
        options |= {"shape": header.shape, "dtype": np.dtype(header.dtype)}
        return self._apply(communication.recv, operand, header.recording == _RECORDS, options)

    def sendrecv(self, x: Any, dest: int | None, source: int | None, tag: int = 0) -> Any:
        """Send a tensor to one rank, and return the one of the same shape that another sends.

        Parameters
        ----------
        x : Tensor or array
        dest, source : int or None
            The ranks that receive and send. None is the end of a domain: nothing is sent, or zeros
            are returned.
        tag : int, default 0

        Returns
        -------
        Tensor or array, like `x`

        Notes
        -----
        Adjoint: `sendrecv` in the other direction.

        Examples
        --------
        Each rank gets the value of its left neighbour:

        >>> import chainrule as cr
        >>> def program(comm):
        ...     left = comm.rank - 1 if comm.rank > 0 else None
        ...     right = comm.rank + 1 if comm.rank < comm.size - 1 else None
        ...     return comm.sendrecv(cr.tensor(comm.rank + 1.0), right, left).item()
        >>> cr.distributed.run_ranks(program, 3)
        [0.0, 1.0, 2.0]
        """
        x = _as_operand(x)
        sends, receives = _recording(x) == _RECORDS, False
        if dest is not None:
            dest = self._rank(dest, "dest")
            self.transport.post(self._header(("sendrecv",), x), dest, tag)
        if source is not None:
            source = self._rank(source, "source")
            header = self.transport.fetch(source, tag)
            self._check_received(header, source, x)
            if (header.shape, header.dtype) != (x.shape, x.dtype.str):
                raise CommunicationError(
                    f"sendrecv: rank {self.rank} sends {x.dtype.name} {list(x.shape)}, but rank "
                    f"{source} {header}: shapes must be equal; send and recv take any"
                )
            receives = header.recording == _RECORDS
        options = {"dest": dest, "source": source, "tag": tag}
        options |= {"sends": sends and dest is not None, "receives": receives}
        return self._apply(communication.sendrecv, x, sends or receives, options)

    # --- all ranks ---

    def barrier(self) -> None:
        """Wait until all ranks have called this.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.distributed.run_ranks(lambda comm: comm.barrier(), 2)
        [None, None]
        """
        self._meet("barrier")

    def split(self, color: int, key: int | None = None) -> Communicator:
        """Return the communicator of the ranks that pass the same color.

        Parameters
        ----------
        color : int
            The number of the group.
        key : int, optional
            What the ranks of a group are ordered by; their present rank by default.

        Examples
        --------
        Rows of a grid of 2 × 2:

        >>> import chainrule as cr
        >>> program = lambda comm: comm.split(comm.rank // 2).allreduce(comm.rank).item()
        >>> cr.distributed.run_ranks(program, 4)
        [1, 1, 5, 5]
        """
        self._meet("split")
        return Communicator(self.transport.split(color, self.rank if key is None else key))

    # --- agreement and recording ---

    def _collective(
        self,
        primitive: Primitive,
        x: Any,
        *,
        axis: int | None = None,
        sizes: Sequence[int] | None = None,
        divides: bool = False,
        **options: Any,
    ) -> Any:
        """Apply a primitive that all ranks take part in, once they have agreed on the call."""
        x = None if x is None else _as_operand(x)
        given = {"axis": axis, "sizes": None if sizes is None else tuple(sizes), **options}
        call = (
            primitive.name.removeprefix("comm_"),
            *[(k, v) for k, v in given.items() if v is not None],
        )
        headers = self.transport.agree(self._header(call, x, axis))
        like = headers[options.get("root", 0)]
        _check_equal(headers, like)
        assert like.shape is not None
        if axis is not None:
            axis = options["axis"] = axis % len(like.shape)
            lengths = [h.length for h in headers]
            options["sizes"] = self._parts(like, sizes) if divides else tuple(lengths)
        if x is None:  # its values are not read
            shape = tuple([0 if n is None else n for n in like.shape])
            x = make(np.zeros(shape, like.dtype), None)
        return self._apply(primitive, x, any(h.recording == _RECORDS for h in headers), options)

    def _parts(self, like: Header, sizes: Sequence[int] | None) -> tuple[int, ...]:
        """Return the lengths of the parts that an axis is divided into."""
        if sizes is None:
            if like.length % self.size:
                raise ShapeError(
                    f"{like}: the axis of length {like.length} can't be divided into {self.size} "
                    "equal parts: pass sizes="
                )
            return (like.length // self.size,) * self.size
        if len(sizes) != self.size or sum(sizes) != like.length:
            raise ShapeError(
                f"{like}: sizes must be {self.size} lengths with the sum {like.length}"
            )
        return tuple(sizes)

    def _apply(self, primitive: Primitive, x: Any, recorded: bool, options: Any) -> Any:
        """Exchange, and record if a rank needs a gradient: all of them take part in it."""
        if not isinstance(x, Tensor):
            return forward_of(primitive, numpy_xp)(x, comm=self, options=options)
        if not recorded:
            return primitive.apply(x.detach(), comm=self, options=options)
        x = x if x.requires_grad else tracked(x)
        result = primitive.apply(x, comm=self, options=options)
        add_collective(endpoint(current_node(result))[0])
        return result

    def _header(self, call: tuple[Any, ...], x: Any, axis: int | None = None) -> Header:
        if x is None:
            recording = _WILLING if is_grad_enabled() else _SILENT
            return Header(call, None, 0, "", (), recording)
        shape, length = x.shape, 0
        if axis is not None:
            axis = _axis(x, axis)
            length = shape[axis]
            shape = (*shape[:axis], None, *shape[axis + 1 :])
        return Header(call, shape, length, x.dtype.str, batch_of(_array_of(x)), _recording(x))

    def _meet(self, name: str) -> None:
        headers = self.transport.agree(self._header((name,), None))
        _check_equal(headers, headers[0], known=False)

    def _rank(self, rank: int, name: str) -> int:
        if not -1 < operator.index(rank) < self.size:
            raise ArgumentError(f"{name}={rank}: ranks are from 0 to {self.size - 1}")
        return operator.index(rank)

    def _check_received(self, header: Header, source: int, operand: Any) -> None:
        """Raise if this rank can't take part in a gradient, or in a vmap, that the sender needs."""
        if header.recording == _RECORDS and _recording(operand) == _SILENT:
            raise CommunicationError(
                f"rank {source} records {header}, and its gradient would wait for rank "
                f"{self.rank}, which doesn't record: {_MEND}"
            )
        batch = batch_of(_array_of(operand))
        if batch != header.batch:
            raise CommunicationError(
                f"rank {source} sent by {header}, but rank {self.rank} receives it under vmap of "
                f"{batch}: let both or none be under vmap"
            )


_MEND = "let all ranks pass tensors, and none or all of them be under no_grad()"
_REDUCTIONS = {"prod": prod, "max": amax, "min": amin}


def _check_equal(headers: Sequence[Header], like: Header, *, known: bool = True) -> None:
    """Raise on all ranks if their calls don't fit each other."""
    calls = [h._replace(length=0, recording=0) for h in headers]
    first = like._replace(length=0, recording=0)
    blank = [c._replace(shape=None, dtype="", batch=()) for c in (*calls, first)]
    differ = any(c != first for c in calls if c.shape is not None or first.shape is None)
    if differ or any(c != blank[-1] for c in blank):
        listed = "; ".join([f"rank {i} calls {h}" for i, h in enumerate(headers)])
        raise CommunicationError(f"the calls of the ranks differ: {listed}")
    if known and like.shape is None:
        raise ArgumentTypeError(f"{like}: the root must pass a tensor, got None")
    flags = [h.recording for h in headers]
    if known and max(flags) == _RECORDS and min(flags) == _SILENT:
        raise CommunicationError(
            f"rank {flags.index(_RECORDS)} records {like}, and its gradient would wait for rank "
            f"{flags.index(_SILENT)}, which doesn't record: {_MEND}"
        )


def _as_operand(x: Any) -> Any:
    """Return a tensor or array as it is, a number as a tensor."""
    if isinstance(x, Tensor | np.ndarray | ArrayProxy):
        return x
    if isinstance(x, np.generic):  # as a rule gets it for 0-d arrays
        return np.asarray(x)
    return as_tensors([x])[0]


def _summand(x: Any) -> Any:
    x = _as_operand(x)
    if x.dtype.kind == "b":
        raise DTypeError("sums of bool are counts: pass an integer tensor, such as x.long()")
    return x


def _array_of(x: Any) -> Array:
    return x._array if isinstance(x, Tensor) else x


def _axis(x: Any, axis: int) -> int:
    rank: int = x.ndim
    if not -rank <= axis < rank:
        raise ShapeError(
            f"axis={axis} is out of range for a tensor of {rank} dimensions: x[None] adds one"
        )
    return axis % rank


def _recording(x: Any) -> int:
    if not isinstance(x, Tensor) or not is_grad_enabled():
        return _SILENT
    return _RECORDS if x.requires_grad else _WILLING
