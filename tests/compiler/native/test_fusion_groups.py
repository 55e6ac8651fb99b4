"""Fusion groups are found in a time that is linear in the number of operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native import fusion_groups
from chainrule.compiler.native.strides import Accesses


def chain(length: int) -> Program:
    """Return a program whose last operations form one group, and all read what another made."""

    def compute(function: str, *args: Any) -> Value:
        out = Value((4,), np.dtype("f8"))
        ops.append(Op(function, args, {}, (out,)))
        return out

    ops: list[Op] = []
    x = Value((4,), np.dtype("f8"))
    first = compute("np.multiply", x, 2.0)
    last = compute("np.sort", first)  # a call between both groups
    for _ in range(length):
        last = compute("np.add", last, first)
    return Program("chain", [x], {}, ops, [last], [])


def test_groups_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Value] = []
    barrier = fusion_groups._Partition._barrier

    def counted(self: Any, value: Value) -> Any:
        calls.append(value)
        return barrier(self, value)

    monkeypatch.setattr(fusion_groups._Partition, "_barrier", counted)
    counts = []
    for length in (50, 100):
        program = chain(length)
        calls.clear()
        groups = fusion_groups.find_groups(program, Accesses(program, {}))
        assert [len(group.ops) for group in groups] == [1, 1, length]
        counts.append(len(calls))
    assert counts[1] < 3 * counts[0]
