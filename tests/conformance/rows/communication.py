"""Rows of the exchanges between ranks: on one rank, each returns what it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.distributed.loopback import alone
from conformance.row import Row, Strided, row, situation

COMM = alone()


def itself(np: Any, x: Any, **settings: Any) -> Any:
    return x


def _row(name: str, call: Callable[..., Any], *along: int) -> Row:
    axes = along or (None,)
    situations = [
        situation(f"{label}-{axis}", shape, axis=axis)
        for label, shape in (
            ("plain", (2, 3)),
            ("size-0", (2, 0)),
            ("non-contiguous", Strided((2, 3))),
        )
        for axis in axes
    ]
    if not along:
        situations.append(situation("0-d", (), axis=None))
    return row(name, tuple(situations), np=itself, cr=lambda cr, x, axis: call(x, axis))


def _message(x: Any, axis: None) -> Any:
    sent = COMM.send(x, 0)
    return COMM.recv(0) + sent


ROWS = (
    _row("comm_allreduce", lambda x, axis: COMM.allreduce(x)),
    _row("comm_reduce", lambda x, axis: COMM.reduce(x)),
    _row("comm_bcast", lambda x, axis: COMM.bcast(x)),
    _row("comm_allgather", COMM.allgather, 0, 1),
    _row("comm_reduce_scatter", COMM.reduce_scatter, 0, -1),
    _row("comm_gather", COMM.gather, 0, 1),
    _row("comm_scatter", COMM.scatter, 0, 1),
    _row("comm_alltoall", lambda x, axis: COMM.alltoall(x, axis, 1 - axis), 0, 1),
    _row("comm_send", _message),
    _row("comm_recv", _message),
    _row("comm_sendrecv", lambda x, axis: COMM.sendrecv(x, 0, 0)),
)
