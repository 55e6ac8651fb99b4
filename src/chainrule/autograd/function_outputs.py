"""Outputs of custom functions: their places in the graph, if forward made or wrote to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule import pytree
from chainrule.autograd.context import UNMARKED, UNSEALED, Context, seal_saved
from chainrule.autograd.function_help import warn_of_lost_outputs
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.inplace import check_writable, rebase
from chainrule.autograd.location import locate
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import AccumulateGrad, NodeOutput
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import (
    is_overwritten,
    is_written_since,
    record_write,
    writes_since,
)
from chainrule.autograd.views import View, current_node, move_retained
from chainrule.backend import namespace, ndarray, numpy_xp
from chainrule.errors import InPlaceError
from chainrule.primitives import indexing


def attach_outputs(
    ctx: Context,
    node: FunctionNode | None,
    values: tuple[Any, ...],
    outputs: Any,
) -> Any:
    """Connect the outputs of forward to their node; return them in the same kind of container."""
    if node is None:
        pass
    elif outputs.__class__ in _SEVERAL:
        if _attach_new(ctx, node, values, outputs):
            return outputs if isinstance(outputs, tuple) else [*outputs]
    elif _attach_dirty(ctx, node, values, outputs):
        return outputs
    raw = outputs if isinstance(outputs, _SEVERAL) else (outputs,)
    if ctx._marks[0]:
        check_dirty(ctx._marks[0], values, raw)
    if node is not None:
        if outputs.__class__ is Tensor:
            if node.function.jvp_rule is not None:
                node.single = output_meta(outputs)
        else:
            warn_of_lost_outputs(node.function.name, raw)
            node.outputs = tuple([output_meta(output) for output in raw])
        if ctx._node is UNSEALED:
            seal_saved(ctx, node, values, raw)
    if len(raw) == 1 or len(set(map(id, raw))) == len(raw):
        results: list[Any] = []
        for index, output in enumerate(raw):
            if output.__class__ is Tensor or isinstance(output, Tensor):
                output = attach_output(output, ctx, node, values, index)
            results.append(output)
    else:
        results = _attach_repeated(raw, ctx, node, values)
    ctx._marks = UNMARKED  # the outputs lead back to ctx: no cycle
    if not isinstance(outputs, _SEVERAL):
        return results[0]
    if hasattr(outputs, "_fields"):
        make_named: Any = type(outputs)
        return make_named(*results)
    return results if isinstance(outputs, list) else tuple(results)


_SEVERAL = (tuple, list)


def _attach_new(
    ctx: Context, node: FunctionNode, values: tuple[Any, ...], outputs: Sequence[Any]
) -> bool:
    """Connect the outputs, if they are different new tensors, in NumPy arrays; return whether."""
    dirty, constant = ctx._marks
    if dirty or (len(outputs) > 1 and len(set(map(id, outputs))) < len(outputs)):
        return False
    metas = []
    for output in outputs:
        if output.__class__ is not Tensor or output._node is not None or output._view is not None:
            return False
        array = output._array
        if array.__class__ is not ndarray:
            return False
        for value in values:
            if value is output:
                return False
        metas.append((array.shape, array.dtype, numpy_xp))
    node.outputs = tuple(metas)
    if ctx._node is UNSEALED:
        seal_saved(ctx, node, values, outputs)
    index = -1
    for output in outputs:
        index += 1
        if metas[index][1].kind in "fc" and not (constant and contains(constant, output)):
            output._node = edge = _new(NodeOutput)
            edge.node, edge.index = node, index
    ctx._marks = UNMARKED  # the outputs lead back to ctx: no cycle
    return True


_new = object.__new__


def _attach_dirty(ctx: Context, node: FunctionNode, values: tuple[Any, ...], output: Any) -> bool:
    """Connect the output, if it is a dirty input and no view, the only one; return whether."""
    dirty, constant = ctx._marks
    if len(dirty) != 1 or output is not dirty[0] or output.__class__ is not Tensor:
        return False
    if (
        output._view is not None
        or type(output._node) is AccumulateGrad
        or constant
        or output._array.dtype.kind not in "fc"
        or not contains(values, output)
    ):
        return False
    if node.function.jvp_rule is not None:
        node.single = output_meta(output)
    if ctx._node is UNSEALED:
        seal_saved(ctx, node, values, (output,))
    move_retained(output, output._node, node)
    output._node = node
    ctx._marks = UNMARKED  # the output leads back to ctx: no cycle
    return True


def _attach_repeated(
    raw: Sequence[Any], ctx: Context, node: FunctionNode | None, values: tuple[Any, ...]
) -> list[Any]:
    """Connect outputs some of which are the same tensor, which gets its last output index.

    An input that forward returned as is gets an alias for each output.
    """
    last = {id(output): index for index, output in enumerate(raw)}
    finished: dict[int, Any] = {}
    for key, index in last.items():
        if isinstance(raw[index], Tensor):
            finished[key] = attach_output(raw[index], ctx, node, values, index)
    results: list[Any] = []
    for index, output in enumerate(raw):
        result = finished.get(id(output), output)
        if index != last[id(output)] and _is_returned_input(ctx, values, output):
            result = attach_output(output, ctx, node, values, index)
        results.append(result)
    return results


def output_meta(output: Any) -> Any:
    """Return shape, dtype and namespace of an output, for its gradients and tangents."""
    if output.__class__ is not Tensor and not isinstance(output, Tensor):
        return None
    array = output._array
    return array.shape, array.dtype, numpy_xp if array.__class__ is ndarray else namespace(array)


def attach_output(
    output: Tensor, ctx: Context, node: FunctionNode | None, values: tuple[Any, ...], index: int
) -> Tensor:
    """Return one output of forward connected to `node`."""
    edge: Any = None
    dirty, constant = ctx._marks
    if node is not None and output._array.dtype.kind in "fc":
        edge = NodeOutput(node, index) if node.outputs else node
        if constant and contains(constant, output):
            edge = None
    is_new = output._node is None is output._view and not dirty
    if node is not None and is_new and not contains(values, output):  # the usual case
        output._node = edge
        return output
    if contains(dirty, output):
        if edge is not None or (node is not None and output._node is not None):
            rebase(output, edge, output._array)  # None: the former values are overwritten
        return output
    if node is None:
        if contains(values, output):
            output = indexing.getitem.apply(output, key=Ellipsis)
        elif output._view is not None and output._view.refusal == "no_grad" and is_grad_enabled():
            output._view.refusal = "custom"  # forward itself runs without recording
        return output if current_node(output) is None else output.detach()
    view = output._view
    if view is not None and view.hidden:  # its own memory, reshaped in place
        view = output._view = None
    if output._node is not None or contains(values, output):
        output = make(output._array, edge)
        view = View(None, None)
    else:
        output._node = edge
    if view is not None:  # of an input: writes would bypass backward
        output._view = View(None, None, "multiple" if len(node.outputs) > 1 else "custom")
    return output


def _is_returned_input(ctx: Context, values: tuple[Any, ...], output: Any) -> bool:
    """Return whether an output is an input that forward returned as is."""
    return (
        isinstance(output, Tensor)
        and contains(values, output)
        and not contains(ctx._marks[0], output)
    )


def contains(values: Sequence[Any], tensor: Tensor) -> bool:
    """Return whether `values` contain this tensor itself (`in` would compare elements)."""
    for value in values:  # `any` and `map` take 0.2 to 0.4 µs more in each call
        if value is tensor:
            break
    else:
        return False
    return True


def record_unseen_writes(dirty: tuple[Tensor, ...], since: int, name: str) -> None:
    """Record a write to dirty tensors that forward wrote to unseen, as through NumPy."""
    for tensor in dirty:
        if not is_written_since(tensor._array, since):
            record_write(tensor._array, name)


def note_computed(ctx: Context, values: Sequence[Any], output: Any) -> None:
    """Note which tensors forward has computed on the way and set on `ctx`, in containers, too.

    They are neither inputs nor outputs, so how they depend on the inputs is unknown.
    """
    outputs = output if isinstance(output, _SEVERAL) else (output,)
    computed = [
        value
        for attribute in vars(ctx).values()
        for _, value in pytree.leaves(attribute)
        if isinstance(value, Tensor)
        and value._array.dtype.kind in "fc"
        and not contains(values, value)
        and not contains(outputs, value)
        and current_node(value) is None
    ]
    if computed:
        ctx._computed = tuple(computed)


def check_unmarked(ctx: Context, values: Sequence[Any], output: Any, since: int, name: str) -> None:
    """Raise if forward wrote to an argument that needs a gradient and didn't mark it as dirty.

    One that it also returns is dirty without being marked.
    """
    outputs = output if isinstance(output, _SEVERAL) else (output,)
    dirty = ctx._marks[0]
    for title, edge, value in zip(ctx._names, ctx._edges, values, strict=True):
        if value.__class__ in _NUMBERS or (dirty and contains(dirty, value)):
            continue
        returned = contains(outputs, value) and isinstance(value, Tensor)
        if edge is None and not returned:
            continue
        array = value._array
        writes = writes_since(array, since) if array.__class__ is ndarray else []
        if is_overwritten(array, writes):
            if returned:
                ctx.mark_dirty(value)
                continue
            _, operation, code, instruction, _ = writes[-1]
            raise InPlaceError(
                f"the forward of {name} wrote to its argument {title!r} in place, by {operation} "
                f"at {locate(code, instruction)}, so that the gradient would be that of another "
                f"function: write to a clone, {title} = {title}.clone(), or call "
                f"ctx.mark_dirty({title}) and return {title}"
            )


_NUMBERS = frozenset([float, int, bool, str, type(None)])


def check_dirty(marked: tuple[Tensor, ...], values: Sequence[Any], outputs: Sequence[Any]) -> None:
    for dirty in marked:
        if not contains(values, dirty):
            raise InPlaceError("mark_dirty got a tensor that is no direct argument of forward")
        if not contains(outputs, dirty):
            raise InPlaceError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the function."
            )
        check_writable(dirty, "mark_dirty")
