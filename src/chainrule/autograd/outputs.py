"""Giving what a custom forward returned its place in the graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from chainrule.autograd.context import NOTHING, Context, seal
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.inplace import check_writable, rebase
from chainrule.autograd.record import RECORDERS, current_node, is_recording
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import writes_since, written
from chainrule.autograd.views import View
from chainrule.backend import namespace
from chainrule.errors import InPlaceError


def finish(
    ctx: Context, node: FunctionNode | None, values: tuple[Any, ...], output: Tensor
) -> Tensor:
    """Give the single output of forward its place in the graph."""
    if output._node is None is output._view and not (ctx._dirty or ctx._constant):
        for value in values:
            if value is output:
                break
        else:  # what nearly every forward returns: a new tensor
            if node is not None:
                if node.function.jvp_rule is not None:
                    node.single = _template(output)
                if ctx._saved is not NOTHING:
                    seal(ctx, node, values, (output,))
                if output._array.dtype.kind in "fc":
                    output._node = node
            return output
    if ctx._dirty:
        check_dirty(ctx, values, (output,))
    if node is not None:
        node.single = _template(output)
        if ctx._saved is not NOTHING:
            seal(ctx, node, values, (output,))
    if ctx._dirty or ctx._constant:
        output = place_output(output, ctx, node, values, 0)
        ctx._dirty = ctx._constant = ()  # the output leads back to ctx: no cycle
        return output
    return place_output(output, ctx, node, values, 0)


def finish_several(
    ctx: Context, node: FunctionNode | None, values: tuple[Any, ...], outputs: Any
) -> Any:
    """Give the outputs of forward their place in the graph; the same kind comes back."""
    raw = outputs if isinstance(outputs, tuple | list) else (outputs,)
    if ctx._dirty:
        check_dirty(ctx, values, raw)
    if node is not None:
        node.outputs = tuple([_template(output) for output in raw])
        if ctx._saved is not NOTHING:
            seal(ctx, node, values, raw)
    if len(set(map(id, raw))) == len(raw):
        results = [
            place_output(output, ctx, node, values, index)
            if output.__class__ is Tensor or isinstance(output, Tensor)
            else output
            for index, output in enumerate(raw)
        ]
    else:
        results = _place_repeated(raw, ctx, node, values)
    if ctx._dirty or ctx._constant:
        ctx._dirty = ctx._constant = ()  # the outputs lead back to ctx: no cycle
    if not isinstance(outputs, tuple | list):
        return results[0]
    if hasattr(outputs, "_fields"):
        make_named: Any = type(outputs)
        return make_named(*results)
    return results if isinstance(outputs, list) else tuple(results)


def _place_repeated(
    raw: Sequence[Any], ctx: Context, node: FunctionNode | None, values: tuple[Any, ...]
) -> list[Any]:
    """Place outputs some of which are the same: one object, in the last of its places.

    An input that forward returned as it is gets an alias in each place.
    """
    last = {id(output): index for index, output in enumerate(raw)}
    finished: dict[int, Any] = {}
    for key, index in last.items():
        if isinstance(raw[index], Tensor):
            finished[key] = place_output(raw[index], ctx, node, values, index)
    results: list[Any] = []
    for index, output in enumerate(raw):
        result = finished.get(id(output), output)
        if index != last[id(output)] and _returned(ctx, values, output):
            result = place_output(output, ctx, node, values, index)
        results.append(result)
    return results


def _template(output: Any) -> Any:
    """Return what a gradient or tangent of an output has to be like."""
    if not isinstance(output, Tensor):
        return None
    return output._array.shape, output._array.dtype, namespace(output._array)


def place_output(
    output: Tensor, ctx: Context, node: FunctionNode | None, values: tuple[Any, ...], index: int
) -> Tensor:
    """Return one output of forward as a tensor that `node` made."""
    edge = None
    if node is not None and output._array.dtype.kind in "fc":
        edge = node.output_edge(index) if node.outputs else node
        if ctx._constant and _holds(ctx._constant, output):
            edge = None
    if ctx._dirty and _holds(ctx._dirty, output):
        if edge is not None or (node is not None and output._node is not None):
            rebase(output, edge, output._array)  # without an edge: what it was is overwritten
        return output
    if node is None:
        if _holds(values, output) and not _holds(ctx._dirty, output):
            output = RECORDERS["getitem"](output, key=Ellipsis)
        elif output._view is not None and output._view.refusal == "no_grad" and is_recording():
            output._view.refusal = "custom"  # forward itself runs without recording
        return output if current_node(output) is None else output.detach()
    view = output._view
    if view is not None and view.hidden:  # its own memory, in another shape than at first
        view = output._view = None
    if output._node is not None or _holds(values, output):
        output = make(output._array, edge)
        view = View(None, None)
    else:
        output._node = edge
    if view is not None:  # memory of an input: written through it, backward would be bypassed
        output._view = View(None, None, "multiple" if len(node.outputs) > 1 else "custom")
    return output


def _returned(ctx: Context, values: tuple[Any, ...], output: Any) -> bool:
    """Say whether an output is an input that forward returned as it is."""
    return isinstance(output, Tensor) and _holds(values, output) and not _holds(ctx._dirty, output)


def _holds(values: Sequence[Any], tensor: Tensor) -> bool:
    """Say whether this very tensor is among `values` (`in` would compare elements)."""
    for value in values:  # noqa: SIM110 - a generator costs more than what it looks at
        if value is tensor:
            return True
    return False


def note_writes(dirty: tuple[Tensor, ...], since: int, name: str) -> None:
    """Count a write for what forward marked dirty, if it wrote unseen (through NumPy)."""
    for tensor in dirty:
        if not writes_since(tensor._array, since):
            written(tensor._array, name)


def check_dirty(ctx: Context, values: Sequence[Any], outputs: Sequence[Any]) -> None:
    for dirty in ctx._dirty:
        if not _holds(values, dirty):
            raise InPlaceError("mark_dirty got a tensor that is no direct argument of forward")
        if not _holds(outputs, dirty):
            raise InPlaceError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the function."
            )
        check_writable(dirty, "mark_dirty")


def warn_of_hidden_tensors(function: str, container: Any) -> None:
    """Warn if a container among the arguments holds tensors that will get no gradient."""
    if _hides_tensors(container):
        warnings.warn(
            f"{function} got a {type(container).__name__} with tensors that require grad. Only "
            "direct tensor arguments are tracked: no gradient will flow to these",
            UserWarning,
            stacklevel=4,
        )


def _hides_tensors(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    if isinstance(value, dict):
        return any(map(_hides_tensors, value.values()))
    return isinstance(value, list | tuple) and any(map(_hides_tensors, value))
