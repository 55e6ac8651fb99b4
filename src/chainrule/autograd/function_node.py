"""Nodes of custom functions: calls of the user's rules, and checks of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.context import (
    NOTHING,
    UNSEALED,
    Context,
    explain_attribute,
    for_edges,
    saved_late_error,
    with_unknown_derivatives,
)
from chainrule.autograd.function_help import packed_text, warn_of_lost_gradients
from chainrule.autograd.modes import is_grad_enabled, no_grad, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import ErrorNode, Node, NodeName, NodeOutput
from chainrule.autograd.operands import as_tensors, mend_of_operand
from chainrule.autograd.references import ALONE, ALONE_IN_CALL, count_references
from chainrule.autograd.reverse import BackwardPass
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.backend import namespace, ndarray, numpy_xp
from chainrule.errors import (
    ArgumentTypeError,
    AutogradError,
    MissingRuleError,
    ShapeError,
)

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
            if (
                run.xp is not None
                or g.__class__ is dict
                or ((dtype := g.dtype) is not FLOAT32 and dtype is not FLOAT64)
            ):
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
        if ctx._computed and run.xp is not None and not function.once:
            ctx = with_unknown_derivatives(ctx, self)
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
            warn_of_lost_gradients(self.function)
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


FLOAT32, FLOAT64 = numpy_xp.dtype("float32"), numpy_xp.dtype("float64")
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
        mend = mend_of_operand(value)
        raise ArgumentTypeError(
            f"{what.format(type(value).__name__)}, expected a Tensor or None"
            + (mend and f": {mend}")
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
