"""The public functions of reverse mode: `autograd_backward`, `autograd_grad`, `backward`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from importlib import import_module
from typing import Any, overload

import numpy as np

from chainrule.autograd.conversions import check_kept
from chainrule.autograd.error_messages import (
    check_devices,
    constant_text,
    mend_of_other,
    mismatch_text,
)
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.location import assigned_at
from chainrule.autograd.modes import (
    MODES,
    RECORDED,
    UNRECORDED,
    enable_grad,
    is_grad_enabled,
    no_grad,
    run_in,
)
from chainrule.autograd.namespace import TENSOR_XP, connected
from chainrule.autograd.node import AccumulateGrad, Edge, GradientEdge, endpoint, unused_text
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.references import ALONE, count_references
from chainrule.autograd.remarks import Remark, tell
from chainrule.autograd.reverse import BackwardPass, in_order_of, owned, recorded_in_order_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import namespace, ndarray
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError, DTypeError, ShapeError
from chainrule.interrupts import ERRSTATE, Latch, ignore_all, start
from chainrule.primitives import elementwise

# --- roots and inputs of a pass -------------------------------------------------------------------


def as_list(tensors: Any) -> list[Any]:
    """Return a tensor, several or a dict of them as a list."""
    if tensors.__class__ in (list, tuple):
        return list(tensors)
    if isinstance(tensors, _SINGLE) or not isinstance(tensors, Iterable):
        return [tensors]
    return list(tensors.values() if isinstance(tensors, Mapping) else tensors)


_SINGLE = (Tensor, np.ndarray, GradientEdge)


def start_pass(
    tensors: Any, grad_tensors: Any, retain_graph: bool | None, create_graph: bool
) -> BackwardPass:
    """Return a backward pass with the cotangents of its roots, checked."""
    run = BackwardPass(create_graph if retain_graph is None else retain_graph, create_graph)
    if tensors.__class__ is Tensor and grad_tensors is None:  # nearly every pass
        run.accumulate(_checked_root(tensors, None, 0), _cotangent(tensors, None, run))
        return run
    roots = as_list(tensors)
    grads: list[Any] = [None] * len(roots) if grad_tensors is None else as_list(grad_tensors)
    if len(roots) == 1 < len(grads) and all([isinstance(g, (int, float)) for g in grads]):
        raise ArgumentTypeError(
            f"gradients can be either Tensors or None, but got a list of {len(grads)} numbers: "
            f"write cr.tensor({grads})"
        )
    if len(roots) != len(grads):
        raise AutogradError(
            f"got {len(roots)} tensors and {len(grads)} gradients: give one gradient (or None) for "
            "each tensor"
        )
    if not roots:
        raise AutogradError("'tensors' argument to backward() cannot be empty")
    for i, root in enumerate(roots):
        if grads[i] is not None:
            grads[i] = checked_gradient(root, grads[i], i)
        run.accumulate(_checked_root(root, grads[i], i), _cotangent(root, grads[i], run))
    return run


def _cotangent(root: Tensor, grad: Tensor | None, run: BackwardPass) -> Any:
    if grad is not None:
        return run.take(grad)
    array = root._array
    if array.__class__ is ndarray and not array.shape:
        g = _shared_one(array.dtype)
    else:
        check_kept(array)
        g = namespace(array).ones(array.shape, array.dtype)
    return g if run.xp is None else make(g, None)


@functools.cache
def _shared_one(dtype: Any) -> Any:
    """Return the number 1, read-only since all passes share it."""
    one = np.ones((), dtype)
    one.flags.writeable = False
    return one


def _checked_root(root: Any, grad: Tensor | None, index: int) -> Edge:
    """Return the edge to a root, or raise if no pass can start there with `grad`."""
    if root.__class__ is GradientEdge:
        if grad is None:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs, and of element "
                f"{index} of tensors, a GradientEdge, the shape is not known: give a gradient"
            )
        return root.node.output_edge(root.output_nr)
    if root.__class__ is not Tensor and not isinstance(root, Tensor):
        mend = mend_of_other(root, "it must be a result of operations on Tensors")
        raise ArgumentTypeError(f"element {index} of tensors is {mend}")
    edge = root._node if root._view is None else current_node(root)
    if edge is None:
        line = assigned_at(root)
        told = "" if line is None else f"It was assigned at {line}. "
        above = import_module("chainrule.diagnostics.missing_history")  # a layer above, to explain
        found = above.end_of_history(root)
        raise AutogradError(constant_text(index, told, found, is_grad_enabled()))
    if grad is None and root._array.size != 1:
        raise AutogradError(
            f"grad can be implicitly created only for scalar outputs, but element {index} of "
            f"tensors has shape {list(root.shape)}: give a gradient of that shape, or reduce it "
            "first, for instance with sum()"
        )
    if grad is None and root._array.dtype.kind == "c":
        raise AutogradError(
            "grad can be implicitly created only for real scalar outputs but got "
            f"{root.dtype.name}: give a gradient"
        )
    return edge


def checked_gradient(root: Any, grad: Any, index: int) -> Tensor:
    """Return a gradient in the dtype of its root, or raise if it does not fit."""
    given = grad
    if not isinstance(grad, Tensor):
        *_, grad = as_tensors((root, grad) if isinstance(root, Tensor) else (grad,))
    if isinstance(root, Tensor) and grad.shape != root.shape:
        raise ShapeError(mismatch_text(given, grad, root, index))
    if isinstance(root, Tensor) and grad._array.__class__ is not root._array.__class__:
        check_devices((root._array, grad._array), f"the backward pass from output[{index}]")
    if isinstance(root, Tensor) and grad.dtype.kind == "c" and root.dtype.kind != "c":
        raise DTypeError(
            f"grad_output[{index}] is {grad.dtype} but output[{index}] is {root.dtype}: both are "
            "required to have the same dtype when one is complex. Mismatch in dtype: take .real"
        )
    if isinstance(root, Tensor) and grad.dtype != root.dtype:
        grad = elementwise.astype.apply(grad, dtype=root.dtype)
    checked: Tensor = grad
    return checked


def input_node(tensor: Any, name: Any) -> Any:
    """Return the node and the output index of an input."""
    if tensor.__class__ is GradientEdge:
        return tuple(tensor)
    if not isinstance(tensor, Tensor):
        mend = mend_of_other(tensor, "give the one that the result was computed from")
        raise ArgumentTypeError(f"input {name!r} is {mend}")
    edge = current_node(tensor)
    if edge is None:
        raise AutogradError(
            f"One of the differentiated Tensors does not require grad: input {name!r}. Call "
            "requires_grad_() on it before the computation"
        )
    return endpoint(edge)


# --- backward -------------------------------------------------------------------------------------


def run_pass(run: BackwardPass) -> None:
    """Run a pass in its grad mode, without NumPy's warnings of inf and nan."""
    outer, errstate = MODES.get(), ERRSTATE.get()
    inner = RECORDED if run.xp is not None else UNRECORDED
    walk = run.walk
    if outer is not None:
        if run.anomaly:
            from chainrule.autograd import anomaly

            anomaly.check_roots(run)
        inner = outer.changed(grad=inner.grad, outer=outer, nesting=outer.nesting + 1)
        if inner.nesting % _PASSES_PER_STACK == 0:
            walk = functools.partial(_walk_in_thread, walk)
    walk = run.by_namespace(walk)
    try:
        try:
            MODES.set(inner)
            ERRSTATE.set(ignore_all(errstate))
            walk()
        finally:
            MODES.set(outer)
            ERRSTATE.set(errstate)
    except BaseException:  # see `interrupts`
        MODES.set(outer)
        ERRSTATE.set(errstate)
        raise


def _walk_in_thread(walk: Callable[[], None]) -> None:
    """Walk in a new thread, whose stack is empty: nested passes may exceed the recursion limit."""
    failures: list[BaseException] = []
    context, begun, ended = copy_context(), threading.Lock(), Latch()

    def run() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            context.run(walk)
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    try:
        start(threading.Thread(target=run, name="chainrule pass", daemon=True))
        ended.wait()
    except BaseException:  # wait: the caller must not go on during the pass
        if not begun.acquire(blocking=False):  # else it has not begun, and won't
            ended.wait()
        raise
    if failures:
        raise failures.pop()


_PASSES_PER_STACK = 20  # nested passes: each takes six calls and those of the user


def autograd_backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves they depend on, in one pass.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensors
        The roots. They may share graph, repeat, and depend on each other: contributions add up.
    grad_tensors : Tensor or sequence, optional
        The cotangent of each root, of its shape; None means ones, for a root of one element.
    retain_graph : bool, default `create_graph`
        Keep the saved values, so that the graph can be walked again.
    create_graph : bool, default False
        Record the pass, so that the gradients can be differentiated.
    inputs : Tensor or sequence of Tensors, optional
        Accumulate only into these, which need not be leaves. A `GradientEdge` represents its leaf.

    Raises
    ------
    AutogradError
        If a root has no history, needs a gradient, or the graph was freed.
    ShapeError
        If a gradient has not its tensor's shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> autograd_backward([x * 2, x * x], [cr.ones(2), cr.ones(2)])
    >>> x.grad
    tensor([4., 6.])
    """
    if create_graph and not is_grad_enabled():
        arguments = (tensors, grad_tensors, retain_graph, create_graph, inputs)
        return run_in(enable_grad(), autograd_backward, *arguments)  # also around the walk
    if inputs is None:
        run_pass(start_pass(tensors, grad_tensors, retain_graph, create_graph))
        return
    wanted = as_list(inputs)
    if not wanted:
        raise AutogradError("'inputs' argument to backward() cannot be empty")
    run = start_pass(tensors, grad_tensors, retain_graph, create_graph)
    unique = list({id(tensor): tensor for tensor in wanted}.values())
    targets = [input_node(tensor, i) for i, tensor in enumerate(unique)]
    run.capture_only(targets, run_leaves=True)
    run_pass(run)
    for key, (tensor, (node, _)) in enumerate(zip(unique, targets, strict=True)):
        if isinstance(node, AccumulateGrad) or isinstance(tensor, GradientEdge):
            continue  # it has its .grad, or there is no tensor
        retained = node in run.running and tensor.retains_grad  # then it has its .grad
        if key in run.captured and not retained:
            run.add_to_grad(tensor, run.captured.pop(key), False)


@overload
def autograd_grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Mapping[str, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
    only_inputs: bool = True,
) -> dict[str, Any]: ...


@overload
def autograd_grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
    only_inputs: bool = True,
) -> tuple[Any, ...]: ...


def autograd_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
    only_inputs: bool = True,
) -> Any:
    """Return the gradients of `outputs` with respect to `inputs`, touching no `.grad`.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensors
        The tensors to differentiate; several are summed, weighted by `grad_outputs`. A
        `GradientEdge` represents its tensor, if its gradient is given.
    inputs : Tensor, sequence or dict of Tensors
        The tensors to differentiate with respect to, leaves or not. A `GradientEdge` represents its
        tensor.
    grad_outputs : Tensor or sequence, optional
        The cotangent of each output, of its shape; None means ones, for an output of one element.
    retain_graph, create_graph : bool
        As in `autograd_backward`.
    allow_unused : bool, default False
        Return None for an input that no output depends on, instead of raising.
    materialize_grads : bool, default False
        Return zeros there, also where an output is constant; implies `allow_unused`.
    is_grads_batched : bool, default False
        The first dimension of `grad_outputs` and of the results is a batch: one pass for each
        cotangent, with a PerformanceWarning; ``vmap(vjp(f, x)[1])`` takes one for all.
    only_inputs : bool, default True
        For compatibility with PyTorch; only True is supported.

    Returns
    -------
    tuple of Tensors, or dict
        One for each input, in order (a tuple even for one); a dict by the same names for a dict.

    Raises
    ------
    AutogradError
        If an input doesn't require grad, or was not used and `allow_unused` is False.
    ArgumentError
        If `materialize_grads` meets an explicit ``allow_unused=False``.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor(3.0, requires_grad=True)
    >>> autograd_grad(w * w, {"w": w})
    {'w': tensor(6.)}
    """
    if not only_inputs:
        raise ArgumentError("only_inputs=False is not supported: use autograd_backward()")
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if is_grads_batched or (create_graph and not is_grad_enabled()):
        options = (retain_graph, create_graph, allow_unused, materialize_grads)
        function: Callable[..., Any] = _batched_grads if is_grads_batched else autograd_grad
        mode = enable_grad() if create_graph else no_grad()  # also before and after the walk
        return run_in(mode, function, outputs, inputs, grad_outputs, *options)
    tensors = as_list(inputs)
    named = inputs.__class__ not in (list, tuple, Tensor) and isinstance(inputs, Mapping)
    if not tensors:
        raise AutogradError(
            "`inputs` argument to `grad()` cannot be empty: is it a generator used up before?"
        )
    names = list(inputs) if named else list(range(len(tensors)))
    targets = list(map(input_node, tensors, names))
    if materialize_grads:  # a constant contributes zeros, as was asked for
        outputs, grad_outputs = _with_history(outputs, grad_outputs)
        if not outputs:
            zeros = [_zeros(*pair, create_graph) for pair in zip(tensors, names, strict=True)]
            return dict(zip(names, zeros, strict=True)) if named else tuple(zeros)
    run = start_pass(outputs, grad_outputs, retain_graph, create_graph)
    if (interceptor := INTERCEPTOR.get()) is not None:
        run.crosses, targets = interceptor.check_pass(run.pending, targets)
    run.retaining = False
    run.capture_only(targets)
    run_pass(run)
    results: list[Tensor | None] = []
    for key, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
        if key in run.captured:
            results.append(_captured_gradient(run, key, tensor))
        elif materialize_grads:
            results.append(_zeros(tensor, name, create_graph))
        elif allow_unused:
            results.append(None)
        else:
            raise AutogradError(unused_text(tensor, name))
    if create_graph and (others := run.unclaimed()):
        results = [None if grad is None else connected(grad, others) for grad in results]
    return dict(zip(names, results, strict=True)) if named else tuple(results)


def _with_history(outputs: Any, grad_outputs: Any) -> tuple[list[Any], Any]:
    """Return the outputs that have a history, with their cotangents."""
    roots = as_list(outputs)
    kept = [not isinstance(t, Tensor) or current_node(t) is not None for t in roots]
    if all(kept) or grad_outputs is None:
        return [t for t, keep in zip(roots, kept, strict=True) if keep], grad_outputs
    grads = as_list(grad_outputs)
    if len(grads) != len(roots):
        return roots, grads  # which raises
    pairs = [pair for pair, keep in zip(zip(roots, grads, strict=True), kept, strict=True) if keep]
    return [t for t, _ in pairs], [g for _, g in pairs]


def vjp_of(
    function: Callable[[], Sequence[Tensor]],
    inputs: Sequence[Tensor],
    cotangents: Mapping[int, Any],
    create_graph: bool = True,
) -> tuple[Sequence[Tensor], list[Tensor | None]]:
    """Return the outputs of a function of `inputs`, and its gradients through its own nodes only.

    Inputs may depend on each other: the caller adds what these dependences contribute.
    """
    targets = [input_node(tensor, i) for i, tensor in enumerate(inputs)]
    begin = next_seq()
    outputs = run_in(enable_grad(), function)
    roots = [i for i in cotangents if outputs[i].requires_grad]  # the others are constant
    if not roots or not inputs:
        return outputs, [None] * len(inputs)
    gs = [cotangents[i] for i in roots]
    run = start_pass([outputs[i] for i in roots], gs, True, create_graph)
    return outputs, captured_grads(run, inputs, targets, begin + 1)


def captured_grads(run: BackwardPass, inputs: Any, targets: Any, earliest: int) -> list[Any]:
    """Run a pass to `targets`, the nodes of `inputs`, through nodes from `earliest`."""
    run.retaining = False
    run.capture_only(targets, earliest=earliest)
    run_pass(run)
    pairs = enumerate(inputs)
    return [_captured_gradient(run, i, x) if i in run.captured else None for i, x in pairs]


def _batched_grads(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, *options: Any
) -> Any:
    """Return the gradients for each of several cotangents, stacked."""
    grads = as_list(grad_outputs)
    for grad, out in zip(grads, as_list(outputs), strict=False):
        if grad is not None and isinstance(out, Tensor) and grad.shape[1:] != out.shape:
            raise ShapeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                f"match the shape of corresponding output, but a mismatch was detected: "
                f"{list(grad.shape)} for an output of shape {list(out.shape)}"
            )
    counts = {len(grad) for grad in grads if grad is not None}
    if len(counts) != 1 or counts == {0}:
        raise AutogradError(
            "is_grads_batched=True: the first dimension of grad_outputs is that of the batch, and "
            f"has one length, which is not 0: got {sorted(counts)}"
        )
    (count,) = counts
    if count > 1:
        loop = f"autograd_grad(is_grads_batched=True) runs a backward pass for each of {count} rows"
        mend = "out, pull = cr.vjp(function, x), then cr.vmap(pull)(grad_outputs), runs one for all"
        tell(Remark("is_grads_batched", f"{loop}: {mend}"), {})
    rows = []
    for row in range(count):
        cotangents = [None if grad is None else grad[row] for grad in grads]
        kept = True if row < count - 1 else retain_graph
        rows.append(autograd_grad(outputs, inputs, cotangents, kept, *options))
    if isinstance(inputs, Mapping):
        return {name: _stack([row[name] for row in rows]) for name in inputs}
    return tuple(_stack(column) for column in zip(*rows, strict=True))


def _stack(grads: Sequence[Any]) -> Any:
    return None if grads[0] is None else TENSOR_XP.stack(grads, axis=0)


def _zeros(target: Tensor | GradientEdge, name: Any, requires_grad: bool) -> Tensor:
    """Return the gradient of an input that no output depends on."""
    if isinstance(target, GradientEdge):
        raise ArgumentError(
            "materialize_grads cannot be used when the given input is a GradientEdge: it doesn't "
            f"know the shape of input {name!r}. Pass the tensor"
        )
    array = target._array
    return make(namespace(array).zeros_like(array), None).requires_grad_(requires_grad)


def _captured_gradient(run: BackwardPass, key: int, tensor: Tensor | GradientEdge) -> Tensor:
    """Return a captured cotangent as a gradient that shares memory with nothing."""
    g = run.captured.pop(key)
    if isinstance(tensor, GradientEdge):
        g = run.conjugate(g)
        return make(namespace(g).array(g), None) if run.xp is None else elementwise.clone.apply(g)
    array = tensor._array
    if run.xp is None:
        alone = count_references(g) <= ALONE
        if g.dtype is not array.dtype:
            g = run.unbroadcast(g, array.shape, array.dtype)
        if g.dtype.kind == "c":
            g = run.conjugate(g)
        return make(owned(*in_order_of(array, g, alone)), None)
    g = run.conjugate(run.unbroadcast(g, array.shape, array.dtype))
    value = g._array
    alone = count_references(g) <= ALONE and count_references(value) <= ALONE + 1
    return recorded_in_order_of(array, g, alone and value.base is None)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this tensor to the `.grad` of the leaves it depends on.

    Parameters
    ----------
    gradient : Tensor, same shape, optional
        The cotangent to start with; ones if this tensor has one element.
    retain_graph : bool, default `create_graph`
        Keep the saved values, so that the graph can be walked again.
    create_graph : bool, default False
        Record the backward pass, so that the gradients can be differentiated.
    inputs : tensor or sequence of tensors, optional
        Accumulate only into these.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    autograd_backward(self, gradient, retain_graph, create_graph, inputs)


_backward.__name__, _backward.__qualname__ = "backward", "Tensor.backward"
# The class, which declares the method for type checkers, is below this module: it can't import it.
setattr(Tensor, _backward.__name__, _backward)
