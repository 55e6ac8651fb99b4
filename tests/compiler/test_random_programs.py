"""Random programs (see helpers.random_programs), compiled: the same values, gradients and flags."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings

import chainrule as cr
from helpers.compile_comparison import in_tiny_blocks
from helpers.random_programs.operations import EVERYTHING
from helpers.random_programs.run import chainrule_run, is_leaf_line, runnable
from helpers.random_programs.settings import EXAMPLES, many_examples
from helpers.random_programs.source import programs

REFUSED = (
    "a value was asked for",
    "memory that two tensors share",
    "a history of its own",
    "reshaped a tensor from outside",
    "depends on values",
    "where an array is in memory",
    "a tensor with a hook",
    "may be a view or a copy",
)


@settings(many_examples, max_examples=max(EXAMPLES // 4, 1))
@given(program=programs(EVERYTHING))
def test_a_random_program_ends_as_eagerly(program: list[str]) -> None:
    check(program)


@pytest.mark.thorough
@settings(many_examples, max_examples=max(EXAMPLES // 8, 1))
@given(program=programs(EVERYTHING))
def test_a_random_program_ends_in_blocks_as_eagerly(program: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_tiny_blocks(patch)
        check(program)


def check(program: list[str]) -> None:
    """Compare the final tensors of a program in eager mode and compiled."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ops = _that_run(program)
        inside = len(program) % 2 == 0  # where the leaves are made
        eager, compiled = _Program(ops, inside), _Program(ops, inside)
        function = cr.compile(compiled.run)
        for call in range(3):
            wanted = eager.run()
            try:
                got = function()
            except cr.CompileError as error:
                text = next((text for text in REFUSED if text in str(error)), None)
                if text is None:
                    raise
                event(f"refused: {text}")
                return
            _compare(got, wanted, ops, call)
            _compare(compiled.leaves(), eager.leaves(), ops, call)
        event("compared to the end")


def _that_run(program: list[str]) -> list[str]:
    """Return the lines that don't raise."""
    run = chainrule_run()
    return [op for op in program if runnable(op, run.names) and run.step(op) is None]


class _Program:
    """A program, whose leaves are made beforehand or each time anew."""

    def __init__(self, ops: list[str], inside: bool) -> None:
        self.names = chainrule_run().names
        self.names["note"] = self.names["look"] = lambda *_: None
        outside = [] if inside else [op for op in ops if is_leaf_line(op)]
        for op in outside:
            exec(op, self.names)
        self.outside = dict(self.names)
        self.ops = [op for op in ops if op not in outside]

    def run(self) -> dict[str, Any]:
        """Run the lines; return what all tensors are in the end."""
        names = dict(self.outside)
        for op in self.ops:
            exec(op, names)
        tensors = {n: t for n, t in names.items() if n[0] == "t" and isinstance(t, cr.Tensor)}
        return {name: _state(t) for name, t in tensors.items()}

    def leaves(self) -> dict[str, Any]:
        """Return what the tensors outside are."""
        tensors = {n: t for n, t in self.outside.items() if isinstance(t, cr.Tensor)}
        return {name: _state(t) for name, t in tensors.items()}


def _state(tensor: Any) -> list[Any]:
    try:
        grad = None if tensor.grad is None else tensor.grad.detach().clone()
        return [tensor.detach().clone(), tensor.requires_grad, tensor.is_leaf, grad]
    except cr.CompileError:
        raise
    except cr.AutogradError as error:  # a stale view
        return [type(error).__name__]


def _compare(got: dict[str, Any], wanted: dict[str, Any], ops: list[str], call: int) -> None:
    assert got.keys() == wanted.keys()
    for name, values in wanted.items():
        for a, b in zip(got[name], values, strict=True):
            where = f"{name}, call {call}\n" + "\n".join(ops)
            if isinstance(b, cr.Tensor):
                assert a is not None, where
                assert (a.shape, a.dtype) == (b.shape, b.dtype), where
                scale = 1e-9 * max(1.0, float(np.abs(b.numpy()).max(initial=0)))
                np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-7, scale, err_msg=where)
            else:
                assert a == b, where
