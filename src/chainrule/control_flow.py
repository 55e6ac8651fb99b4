"""Differentiable loops and branches: `scan`, `while_loop`, `cond`, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import INTERCEPTOR, intercepting
from chainrule.autograd.modes import no_grad
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.creation import zeros
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from chainrule.interrupts import call_then
from chainrule.ops import stack, unbind
from chainrule.random.draw import default_generator
from chainrule.recomputation import Recomputation, Run

__all__ = [
    "cond",
    "scan",
    "while_loop",
]

# --- trees of tensors: carries and results --------------------------------------------------------

Tensors = Sequence[Tensor]


def tensors_of(what: str, node: Any) -> list[Tensor]:
    """Return the leaves of a tree as tensors, without those that are None."""
    found = []
    for path, leaf in pytree.leaves(node):
        if leaf is not None:
            try:
                found += as_tensors((leaf,))
            except TypeError:
                raise _not_tensor_error(f"{what}{path}", leaf) from None
    return found


def _not_tensor_error(path: str, value: Any) -> TypeError:
    return TypeError(f"{path}: expected a Tensor, an array or a number, got {type(value).__name__}")


class TensorType(NamedTuple):
    """Shape and dtype of a tensor, which isn't kept: it may belong to another step."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def of(cls, tensor: Tensor) -> TensorType:
        array = tensor._array
        return cls(array.shape, np.dtype(array.dtype))


def matched(what: str, node: Any, expected: Sequence[TensorType], other: Any) -> list[Tensor]:
    """Return the leaves of a tree as tensors; raise if structure, shapes or dtypes differ."""
    found, expected_leaves = [], iter(expected)
    for path, first, second in pytree.zip_leaves(node, other):
        if first is None and second is None:
            continue
        if any(part is None or pytree.children(part) is not None for part in (first, second)):
            before, now = map(pytree.describe, (first, second))
            raise ArgumentTypeError(
                f"{what} must keep its structure: {what.split()[-1]}{path} was {before}, and is "
                f"{now} now"
            )
        found.append(_matched_leaf(what, path, next(expected_leaves), second))
    return found


def _matched_leaf(what: str, path: str, like: TensorType, value: Any) -> Tensor:
    """Return a leaf as a tensor; raise if its shape or dtype differs from those of `like`."""
    leaf = f"{what.split()[-1]}{path}"
    tensor = value
    if not isinstance(value, Tensor):
        try:
            _, tensor = as_tensors((zeros((), dtype=like.dtype), value))
        except TypeError:
            raise _not_tensor_error(f"{what}{path}", value) from None
    found = TensorType.of(tensor)
    if found.shape != like.shape:
        raise ShapeError(
            f"{what} must keep its shapes: {leaf} was of shape {list(like.shape)}, and is of "
            f"{list(found.shape)} now: begin with the shape that it will have, or collect what "
            "grows as y"
        )
    if found.dtype != like.dtype:
        raise DTypeError(
            f"{what} must keep its dtypes: {leaf} was {like.dtype}, and is {tensor.dtype} now: "
            f"begin with {tensor.dtype}, or convert by .to(cr.{like.dtype}) at the end of a step"
        )
    return cast(Tensor, tensor)


# --- control flow ---------------------------------------------------------------------------------

Carry = TypeVar("Carry")


def scan(
    f: Callable[[Carry, Any], tuple[Carry, Any]],
    init: Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint: bool = False,
) -> tuple[Carry, Any]:
    """Scan a function over slices, passing a carry from step to step.

    Equivalent to::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, cr.stack(ys)

    and in a compiled function a single loop of its program, whatever the length.

    Parameters
    ----------
    f : callable
        ``f(carry, x) -> (carry, y)``. It may use tensors from outside, which get gradients, too.
    init : Tensor, or dicts, lists, tuples, dataclasses of them
        The initial carry. All later ones have its structure, shapes and dtypes.
    xs : Tensor or containers of them, shape (n, ...), optional
        Tensors over whose first axis to scan.
    length : int, optional
        Number of steps; required without `xs`.
    reverse : bool, default False
        Begin with the last slice. Each y has the same index as its x.
    checkpoint : bool, default False
        Save only the carries for the backward pass, and compute the rest of each step again there:
        less memory, more time.

    Returns
    -------
    carry
        The last carry, in new memory.
    ys
        The values y of all steps, stacked along a new first axis; None where `f` returned None.

    Raises
    ------
    ShapeError, DTypeError
        If a carry changes its shape or dtype, or the slices of `xs` differ in number.
    TypeError
        If `f` doesn't return a pair, or a carry changes its structure.

    Notes
    -----
    Reverse mode keeps what each step saved (with `checkpoint`, the carries). Differentiable to
    every order, eager and compiled.

    Examples
    --------
    >>> import chainrule as cr
    >>> def step(total, x):
    ...     total = total + x
    ...     return total, total * total
    >>> total, squares = cr.scan(step, cr.tensor(0.0), cr.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), squares.tolist()
    (6.0, [1.0, 9.0, 36.0])
    """
    step = Step(f, init, xs)
    count = _count_of(step.xs, length)
    first: Any = next(iter((*step.carry, *step.xs)), None)
    loops = None if first is None else namespace(first._array).loops
    if count == 0:
        carry, ys = own(step.carry), _empty_ys(step)
    elif loops is not None:
        carry, ys = loops.scan(step, step.carry, step.xs, count, reverse, checkpoint)
    else:
        carry, ys = _scan_eagerly(step, count, reverse, checkpoint)
    return pytree.with_leaves(init, carry), pytree.with_leaves(step.result, ys)


class Step:
    """The function of a scan on lists of tensors instead of containers."""

    def __init__(self, f: Callable[..., Any], init: Any, xs: Any) -> None:
        self.f, self.init, self.slices = f, init, xs
        self.carry = tensors_of("scan: init", init)
        self.xs = tensors_of("scan: xs", xs)
        self._types = list(map(TensorType.of, self.carry))
        self.result: Any = None  # the containers of y
        self.called = False

    def __call__(self, carry: Tensors, xs: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        result = self.f(pytree.with_leaves(self.init, carry), pytree.with_leaves(self.slices, xs))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentTypeError(
                f"scan: f must return a pair (carry, y), got {pytree.describe(result)}: return "
                "(carry, None) if nothing is to be collected"
            )
        next_carry = matched("scan: the carry", self.init, self._types, result[0])
        ys = tensors_of("scan: y", result[1])
        if not self.called:
            self.result, self.called = pytree.map_leaves(result[1], lambda leaf: leaf), True
            self._ys = list(map(TensorType.of, ys))
        else:
            ys = matched("scan: y", self.result, self._ys, result[1])
        return next_carry, ys


def _scan_eagerly(
    step: Step, count: int, reverse: bool, checkpoint: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Run the steps of a scan in a Python loop."""
    columns = [unbind(x) for x in step.xs]
    checkpoint = checkpoint and not _is_traced()  # a compiler decides what to save
    carry, rows = step.carry, []
    for i in reversed(range(count)) if reverse else range(count):
        xs = [column[i] for column in columns]
        carry, ys = _checkpointed(step, carry, xs) if checkpoint else step(carry, xs)
        rows.append(ys)
    if reverse:
        rows.reverse()
    return own(carry), [stack(column) for column in zip(*rows, strict=True)]


def _is_traced() -> bool:
    """Whether a compiler traces the function, possibly below `vmap`."""
    interceptor: Any = INTERCEPTOR.get()
    while hasattr(interceptor, "level"):
        interceptor = interceptor.outer
    return interceptor is not None


def _checkpointed(step: Step, *inputs: Tensors) -> tuple[list[Tensor], list[Tensor]]:
    """Run a step that saves only its inputs, and runs again when a backward pass needs the rest.

    It runs again in the context of its first run: under the same vmap, in the same modes, and with
    the same random numbers.
    """
    given = [[t.detach().requires_grad_(t.requires_grad) for t in part] for part in inputs]
    generator, context = default_generator(), copy_context()
    state = generator.get_state()

    def again(run: Run) -> None:
        interceptor, before = INTERCEPTOR.get(), generator.get_state()

        def call() -> None:
            generator.set_state(state)
            if interceptor is None:
                run(step, *given)
            else:
                intercepting(interceptor, run, step, *given)

        call_then(lambda: generator.set_state(before), call)

    return Recomputation(lambda run: context.copy().run(again, run)).first(step, *inputs)


def _count_of(xs: Tensors, length: int | None) -> int:
    """Return the number of steps."""
    for x in xs:
        if x.ndim == 0:
            raise ShapeError(
                "scan: xs are taken slice by slice along their first axis, got a tensor of shape "
                "[]: close over what is the same in each step"
            )
    sizes = {x.shape[0] for x in xs}
    if length is not None:
        sizes.add(length)
    if not sizes:
        raise ArgumentError("scan: without xs the number of steps isn't known: give length")
    if len(sizes) > 1:
        given = "" if length is None else f", and length={length}"
        raise ShapeError(
            f"scan: all xs must have the same number of slices, got "
            f"{[list(x.shape) for x in xs]}{given}"
        )
    (count,) = sizes
    return int(count)


@no_grad()
def _empty_ys(step: Step) -> list[Tensor]:
    """Return the ys of zero steps; a step on zeros determines their shapes and dtypes."""
    xs = [zeros(x.shape[1:], dtype=x.dtype) for x in step.xs]
    _, ys = step([zeros(c.shape, dtype=c.dtype) for c in step.carry], xs)
    return [zeros((0, *y.shape), dtype=y.dtype) for y in ys]


def while_loop(
    condition: Callable[[Carry], Any], body: Callable[[Carry], Carry], init: Carry
) -> Carry:
    """Repeat a function on a carry while a condition holds.

    Equivalent to::

        carry = init
        while condition(carry):
            carry = body(carry)
        return carry

    and in a compiled function a loop of its program, where Python's ``while`` could not evaluate
    the condition.

    Parameters
    ----------
    condition : callable
        ``condition(carry)``, a boolean tensor of one element, or a bool.
    body : callable
        ``body(carry)``, the next carry.
    init : Tensor, or dicts, lists, tuples, dataclasses of them
        The initial carry. All later ones have its structure, shapes and dtypes.

    Returns
    -------
    carry
        The first carry for which the condition doesn't hold, in new memory.

    Raises
    ------
    ShapeError, DTypeError, TypeError
        If a carry changes its shape, dtype or structure.
    AutogradError
        If a backward pass reaches a compiled loop: the number of steps, and so the memory for what
        they save, is not known. Use `scan` with an upper bound, and `where` or `cond` for the
        surplus steps.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.while_loop(lambda x: x < 100, lambda x: x * 2, cr.tensor(3.0))
    tensor(192.)
    """
    carry = tensors_of("while_loop: init", init)
    types = list(map(TensorType.of, carry))

    def holds(parts: Tensors) -> Any:
        return condition(pytree.with_leaves(init, parts))

    def next_carry(parts: Tensors) -> list[Tensor]:
        return matched("while_loop: the carry", init, types, body(pytree.with_leaves(init, parts)))

    for inner, users in ((holds, condition), (next_carry, body)):
        inner.__dict__["__wrapped__"] = users  # for the compiler's discovery of captured objects
    loops = namespace(carry[0]._array).loops if carry else None
    parts = carry
    if loops is not None:
        parts = loops.while_loop(holds, next_carry, carry)
    else:
        while holds(parts):
            parts = next_carry(parts)
        parts = own(parts)
    last: Carry = pytree.with_leaves(init, parts)
    return last


def cond(
    predicate: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Call one of two functions, chosen by a predicate.

    Equivalent to ``true_fn(*operands) if predicate else false_fn(*operands)``, and in a compiled
    function a branch of its program: only the chosen function is computed.

    Parameters
    ----------
    predicate : Tensor of one element, or bool
        True calls `true_fn`, False calls `false_fn`.
    true_fn, false_fn : callable
        Functions of the operands. In a compiled function both are traced, and must return the same
        structure of tensors with the same shapes and dtypes.
    *operands
        Arguments of the functions, which may use tensors from outside, too.

    Returns
    -------
    Tensor, or containers of them
        The result of the chosen function, in new memory.

    Raises
    ------
    ShapeError, DTypeError, TypeError
        In a compiled function, if the results of the two functions differ in shape, dtype or
        structure.

    Notes
    -----
    Derivative: that of the chosen function. `where` computes both, and chooses element by element.
    In a compiled function, tensors that only the other function uses get a gradient of zeros; in
    eager mode they get none.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(-2.0, requires_grad=True)
    >>> y = cr.cond(x > 0, lambda x: x * x, lambda x: -3 * x, x)
    >>> y.backward()
    >>> y.item(), x.grad.item()
    (6.0, -3.0)
    """
    loops = namespace(predicate._array).loops if isinstance(predicate, Tensor) else None
    if loops is None:
        branch = Branch(true_fn if predicate else false_fn, operands)
        parts = own(branch())
        return pytree.with_leaves(branch.result, parts)
    if predicate._array.size != 1:
        raise ShapeError(
            f"cond: the predicate must have one element, got shape {list(predicate.shape)}: use "
            "where() to choose element by element"
        )
    branches = [Branch(f, operands) for f in (true_fn, false_fn)]
    parts = loops.cond(predicate, branches)
    return pytree.with_leaves(branches[0].result, parts)


class Branch:
    """One of the functions of a `cond`, with the structure of its result."""

    def __init__(self, f: Callable[..., Any], operands: Any) -> None:
        self.f, self.operands = f, operands
        self.result: Any = None

    def __call__(self) -> list[Tensor]:
        self.result = pytree.map_leaves(self.f(*self.operands), lambda leaf: leaf)
        return tensors_of("cond: the result", self.result)


def own(tensors: Tensors) -> list[Tensor]:
    """Return copies, since functions may return their arguments or tensors from outside.

    So a write to a result affects the same memory in eager mode and compiled.
    """
    return [tensor.clone() for tensor in tensors]
