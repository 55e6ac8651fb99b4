"""Nodes of custom functions: calls of the user's rules, checks, and outputs in the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.context import (
    NOTHING,
    UNMARKED,
    UNSEALED,
    Context,
    explain_attribute,
    for_edges,
    saved_late_error,
    seal_saved,
)
from chainrule.autograd.function_help import packed_text, warn_of_lost_outputs
from chainrule.autograd.inplace import check_writable, rebase
from chainrule.autograd.modes import is_grad_enabled, no_grad, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, ErrorNode, Node, NodeName, NodeOutput
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.reverse import ALONE, ALONE_IN_CALL, BackwardPass, count_references
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import is_written_since, record_write
from chainrule.autograd.views import View, current_node, move_retained
from chainrule.backend import namespace, ndarray, numpy_xp
from chainrule.errors import (
    ArgumentTypeError,
    AutogradError,
    InPlaceError,
    MissingRuleError,
    ShapeError,
)
from chainrule.primitives import indexing

if TYPE_CHECKING:
    from chainrule.autograd.function import AutogradFunction


InputMeta = tuple[tuple[int, ...], Any] | None
"""Shape and dtype of an argument, None if it is no tensor."""


class FunctionNode(Node):
    """A recorded application of a custom function, with an edge for each argument of forward."""

    __slots__ = ("ctx", "function", "input_meta", "outputs", "single")

    function: AutogradFunction
    ctx: Context
    input_meta: tuple[InputMeta, ...]
    outputs: tuple[Any, ...]  # (shape, dtype, namespace) of each of several tensors, else ()
    single: Any  # that of a single output, if there is a jvp rule

    @property
    def name(self) -> str:
        return NodeName(f"{self.function.name}Backward")

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values saved by forward: `ctx.saved_tensors`."""
        return self.ctx.saved_tensors

    @property
    def needs_input_grad(self) -> Any:
        """Flags of the arguments that need a gradient: `ctx.needs_input_grad`."""
        return self.ctx.needs_input_grad

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        pairs = zip(super().next_functions, self.input_meta, strict=True)
        return tuple(pair for pair, form in pairs if form is not None)

    def shown(self) -> Node:
        self.__class__ = _ShownNode
        return self

    def tensor_inputs(self, count: int) -> Sequence[int]:
        return [index for index, form in enumerate(self.input_meta) if form is not None]

    def output_edge(self, index: int) -> Any:
        return NodeOutput(self, index) if self.outputs else self

    @property
    def output_count(self) -> int:
        return len(self.outputs) or 1

    # --- reverse mode ---

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        function, ctx = self.function, self.ctx
        backward = function.backward_rule
        if backward is None:
            raise MissingRuleError(_missing_text(function.name))
        if run.receiving is not None:
            wanted = tuple([edge if run.needs(edge) else None for edge in self.edges])
            ctx = for_edges(ctx, wanted)
        try:
            if run.xp is not None or g.__class__ is dict or g.dtype.kind == "c":
                result = self._call_backward(backward, ctx, g, run)
            else:
                if count_references(g) > ALONE_IN_CALL or g.base is not None:
                    g = namespace(g).array(g)  # shared or broadcast, and backward may write to it
                elif g.__class__ is not ndarray:
                    g = namespace(g).asarray(g)
                gradient = _new(Tensor)  # `make` inline
                gradient._array = g
                gradient._node = gradient._grad = gradient._view = None
                result = backward(ctx, gradient)
        except AttributeError as error:
            explain_attribute(error)
            raise
        cotangents_of = function.cotangents  # an attribute called as a method takes longer
        cotangents = cotangents_of(self, result, run, g)
        if ctx._saved is not NOTHING:
            if ctx._node is UNSEALED:
                raise saved_late_error(self)
            if not run.retain_graph:
                self.ctx._saved = None
        return cotangents

    def _call_backward(
        self, backward: Callable[..., Any], ctx: Context, g: Any, run: BackwardPass
    ) -> Any:
        """Call the user's backward on the gradients of all outputs."""
        function, grads = self.function, self._output_gradients(g, run)
        if (
            self.outputs
            and function.max_positional_grads is not None
            and len(grads) > function.max_positional_grads
        ):
            grads = (
                *grads[: function.max_positional_grads - 1],
                tuple(grads[function.max_positional_grads - 1 :]),
            )
        try:
            if function.once and run.xp is not None:
                return run_in(no_grad(), backward, ctx, *grads)
            return backward(ctx, *grads)
        except (AttributeError, TypeError) as error:
            if packed := self._packed_text():
                error.add_note(packed[2:])
            raise

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        rule, ctx = self.function.jvp_rule, self.ctx
        if rule is None:
            raise MissingRuleError(
                f"{self.function.name} has no rule for forward mode: give one with "
                f"@{self.function.name}.jvp"
            )
        filled = [
            xp.zeros(form[0], dtype=form[1]) if t is None and form is not None else t
            for t, form in zip(tangents, self.input_meta, strict=True)
        ]
        result = rule(ctx, *filled)
        forms = self.outputs or (getattr(self, "single", ()),)  # () if the rule was set later
        values = tuple(result) if isinstance(result, tuple | list) else (result,)
        if result is None:
            values = (None,) * len(forms)
        if len(values) != len(forms):
            raise AutogradError(
                f"the jvp of {self.function.name} returned an incorrect number of tangents "
                f"(expected {len(forms)}, got {len(values)}): return one for each output"
            )
        return tuple(
            [
                None if value is None or form is None else self._as_tangent(value, form, filled, i)
                for i, (value, form) in enumerate(zip(values, forms, strict=True))
            ]
        )

    def _as_tangent(self, value: Any, form: Any, tangents: Sequence[Any], index: int) -> Any:
        """Return the result of the user's jvp for one output, checked, as its tangent."""
        whose = f"the jvp of {self.function.name} returned"
        tangent = _as_tensor(value, f"{whose} {{}} as the tangent of output {index}")
        shape, dtype, _ = form or (tangent.shape, tangent.dtype, None)
        if tangent.shape != shape:
            raise ShapeError(
                f"{whose} a tangent of shape {list(tangent.shape)} for output {index}, which has "
                f"shape {list(shape)}: the tangent of an output must have its shape"
            )
        if is_grad_enabled() and not isinstance(value, Tensor):
            tangent = self._undifferentiable(tangent, _no_history_text(whose, value), tangents)
        if tangent.dtype.kind == "c" and dtype.kind != "c":
            tangent = TENSOR_XP.real(tangent)
        return tangent if tangent.dtype == dtype else TENSOR_XP.astype(tangent, dtype)

    def _undifferentiable(self, value: Tensor, reason: str, others: Iterable[Any]) -> Tensor:
        """Return a tensor whose derivative by the inputs, or by `others`, raises `reason`."""
        sources = [current_node(other) for other in others if other is not None]
        return make(value._array, ErrorNode(reason, (*self.edges, *sources)))

    def _output_gradients(self, g: Any, run: BackwardPass) -> tuple[Any, ...]:
        """Return the gradient of each output as a tensor that backward may write to."""
        if not self.outputs:
            return (run.show(g),)
        grads: list[Any] = []
        for index, output in enumerate(self.outputs):
            if index in g:
                part = g[index]
                if run.xp is None and part.__class__ is ndarray and part.dtype.kind != "c":
                    if count_references(part) > ALONE + 1 or part.base is not None:
                        part = np_array(part)  # shared or broadcast, and backward may write to it
                    grads.append(make(part, None))
                else:
                    grads.append(run.show(part))
            elif output is None or not self.ctx._materialize:
                grads.append(None)
            else:
                shape, dtype, xp = output
                grads.append(make(xp.zeros(shape, dtype=dtype), None))
        return tuple(grads)

    def cotangent(
        self, value: Any, index: int, run: BackwardPass, result: Any, received: Any
    ) -> Any:
        """Return the gradient of one argument, of any type that is allowed, as its cotangent."""
        if value is None or not run.needs(self.edges[index]):
            return None
        recorded = run.xp is not None
        if value.__class__ is not Tensor or (recorded and self.function.once):
            value = self._as_gradient(value, index, recorded, received)
        g, meta = value if recorded else value._array, self.input_meta[index]
        assert meta is not None
        self._check_shape(index, g.shape, meta[0], isinstance(result, Mapping))
        return run.unbroadcast(run.conjugate(g), *meta)

    def by_argument(self, result: Any) -> Sequence[Any]:
        """Return the result of backward with one entry for each argument of forward."""
        names, edges = self.ctx._names, self.edges
        if isinstance(result, Mapping):
            for name in result:
                if name not in names:
                    raise AutogradError(
                        f"Function {self.name} returned a gradient for {name!r}, which is no "
                        f"argument of {self.function.name}: its arguments are {', '.join(names)}"
                    )
            return list(map(result.get, names))
        if result is None:
            return [None] * len(names)
        values = list(result) if isinstance(result, tuple | list) else [result]
        tracked = len(edges) - edges.count(None)
        for count in (len(names), tracked):
            while len(values) > count and values[-1] is None:
                values.pop()
            if len(values) == len(names):
                return values
        if len(values) != tracked:
            got = len(result) if isinstance(result, tuple | list) else 1
            raise AutogradError(
                f"Function {self.name} returned an incorrect number of gradients (expected "
                f"{len(names)}, got {got}): return one for each argument of {self.function.name} "
                f"({', '.join(names)}), None where there is none, or a dict by name"
                f"{self._packed_text()}"
            )
        following = iter(values)
        return [None if edge is None else next(following) for edge in edges]

    def _packed_text(self) -> str:
        function = self.function
        count, rule = function.max_positional_grads, function.backward_rule
        return packed_text(function.name, rule, count, len(self.outputs))

    def _check_shape(
        self, index: int, got: tuple[int, ...], shape: tuple[int, ...], by_name: bool
    ) -> None:
        if got != shape and not _broadcasts_to(shape, got):
            name = self.ctx._names[index]
            raise ShapeError(
                f"Function {self.name} returned an invalid gradient at "
                f"{repr(name) if by_name else f'index {index}'} - got {list(got)} but expected "
                f"shape compatible with {list(shape)}: the gradient of argument {name!r} must have "
                "its shape, or one that broadcasting its shape gives"
            )

    def _as_gradient(self, value: Any, index: int, recorded: bool, received: Any) -> Tensor:
        """Return a gradient as a tensor, which raises when differentiated if it has no history."""
        whose = f"Function {self.name} returned"
        tensor = _as_tensor(value, f"{whose} {{}} as the gradient of {self.ctx._names[index]!r}")
        if not recorded or (isinstance(value, Tensor) and not self.function.once):
            return tensor
        others = received.values() if received.__class__ is dict else (received,)
        reason = (
            _once_text(self.function.name) if self.function.once else _no_history_text(whose, value)
        )
        return self._undifferentiable(tensor, reason, others)


class _ShownNode(FunctionNode):
    """A node that a user has asked for, with the attributes of its `ctx`, which it is in PyTorch.

    Python reads all attributes of a class with `__getattr__` more slowly.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        attributes = {} if name in FunctionNode.__slots__ else self.ctx.__dict__
        if name not in attributes:
            raise AttributeError(f"{self.name} has no attribute {name!r}, nor has its ctx")
        return attributes[name]


_new = object.__new__
np_array = numpy_xp.array


def _missing_text(name: str) -> str:
    return (
        f"{name} has no backward: you must implement either the backward or vjp method for your "
        "custom autograd.Function to use it with backward mode AD, or give a rule with "
        f"@{name}.backward"
    )


def _broadcasts_to(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Return whether `small` broadcasts to `large`."""
    lead = len(large) - len(small)
    return lead >= 0 and all(n in (1, m) for n, m in zip(small, large[lead:], strict=True))


def _as_tensor(value: Any, what: str) -> Tensor:
    try:
        return as_tensors((value,))[0]
    except TypeError:
        raise ArgumentTypeError(
            f"{what.format(type(value).__name__)}, expected a Tensor or None"
        ) from None


def _once_text(name: str) -> str:
    return (
        "trying to differentiate twice a function that was marked with @once_differentiable: "
        f"the backward of {name}"
    )


def _no_history_text(whose: str, value: Any) -> str:
    return (
        f"{whose} {type(value).__name__}, which keeps no history: how it depends on the inputs is "
        "unknown and a second derivative would silently lack a term. Compute it of tensors, with "
        "operations that are recorded, or mark backward with @once_differentiable."
    )


# --- outputs of forward ---------------------------------------------------------------------------


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
    if dirty or len(set(map(id, outputs))) < len(outputs):
        return False
    metas = []
    for output in outputs:
        if (
            output.__class__ is not Tensor
            or output._node is not None
            or output._view is not None
            or output._array.__class__ is not ndarray
        ):
            return False
        for value in values:
            if value is output:
                return False
        array = output._array
        metas.append((array.shape, array.dtype, numpy_xp))
    node.outputs = tuple(metas)
    if ctx._node is UNSEALED:
        seal_saved(ctx, node, values, outputs)
    for index, output in enumerate(outputs):
        if metas[index][1].kind in "fc" and not (constant and contains(constant, output)):
            output._node = NodeOutput(node, index)
    ctx._marks = UNMARKED  # the outputs lead back to ctx: no cycle
    return True


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
    for value in values:  # noqa: SIM110 - a generator is slower
        if value is tensor:
            return True
    return False


def record_unseen_writes(dirty: tuple[Tensor, ...], since: int, name: str) -> None:
    """Record a write to dirty tensors that forward wrote to unseen, as through NumPy."""
    for tensor in dirty:
        if not is_written_since(tensor._array, since):
            record_write(tensor._array, name)


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
