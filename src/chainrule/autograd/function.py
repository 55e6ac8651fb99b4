"""Custom functions: `autograd_function` in all its forms."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from chainrule.autograd.blocks import MODES, Modes
from chainrule.autograd.context import NOTHING, Context
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.location import INTERNAL
from chainrule.autograd.node import Edge
from chainrule.autograd.outputs import (
    finish,
    finish_several,
    note_writes,
    warn_of_hidden_tensors,
)
from chainrule.autograd.record import current_node
from chainrule.autograd.signature import room, written
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import ledger, tick
from chainrule.errors import AutogradError

_UNRECORDED = Modes(grad=False)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a custom function's backward as not differentiable itself.

    It then runs unrecorded, and a second derivative raises instead of being wrong.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.autograd_function
    ... def double(ctx, x):
    ...     return x * 2
    >>> @double.backward
    ... @cr.once_differentiable
    ... def _(ctx, grad_output):
    ...     return grad_output * 2
    >>> x = cr.tensor(1.0, requires_grad=True)
    >>> double(x).backward()
    >>> x.grad.item()
    2.0
    """

    @functools.wraps(backward)
    def wrapper(ctx: Context, *grads: Any) -> Any:
        return backward(ctx, *grads)

    marked: Any = wrapper
    marked.once_differentiable = True
    return wrapper


class AutogradFunction:
    """What there is to know of a custom function; `function` is what its user calls."""

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None,
        jvp: Callable[..., Any] | None,
        name: str | None,
    ) -> None:
        self.forward = forward
        self.name = name or getattr(forward, "__name__", type(forward).__name__).strip("<>")
        self.backward_rule: Callable[..., Any] | None = None
        self.room: int | None = None  # how many gradients backward takes by position
        self.once = False
        self.jvp_rule = jvp
        self.known: frozenset[str] = frozenset()  # the names of the arguments
        self.function = written(self)
        if backward is not None:
            self.backward(backward)

    def backward(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Use `rule` as this function's backward; made for use as a decorator.

        Parameters
        ----------
        rule : callable
            Called as ``rule(ctx, *grad_outputs)``. Returns gradients as a dict by argument name, a
            tuple with one for each argument (or for each tensor argument that requires grad), or a
            single tensor where one argument can have a gradient. Arrays and numbers will do, but a
            second derivative raises then: how they came about is not recorded.
        """
        self.backward_rule = rule
        self.room = room(rule)
        self.once = getattr(rule, "once_differentiable", False)
        return rule

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Use `rule` for forward mode: ``rule(ctx, *tangents)``, one for each argument.

        It returns one tangent for each output, of its shape, or None for zeros.
        """
        self.jvp_rule = rule
        return rule

    checker: Callable[..., Any]
    """What `check` calls: chainrule.checks sets it."""

    def check(self, *args: Any, **kwargs: Any) -> Any:
        """Look for mistakes in this function's rules: see `chainrule.checks`."""
        if not hasattr(AutogradFunction, "checker"):
            importlib.import_module("chainrule.checks")  # which is above this module
        return type(self).checker(self, *args, **kwargs)

    def apply(self, values: tuple[Any, ...], names: tuple[str, ...], positional: int) -> Any:
        """Run forward, unrecorded, on its sorted arguments; record one node for all it did.

        It is one function because it is the hot path: a call more costs 30 to 60 ns.
        """
        outer = MODES.get()
        edges: list[Edge] = []
        given: list[Any] = []
        recording = outer is None or outer.grad
        for value in values:
            edge = form = None
            if recording:
                if value.__class__ is Tensor or isinstance(value, Tensor):
                    array = value._array
                    form = array.shape, array.dtype
                    edge = value._node if value._view is None else current_node(value)
                elif value.__class__ not in _PLAIN and isinstance(value, _CONTAINERS):
                    warn_of_hidden_tensors(self.name, value)
            edges.append(edge)
            given.append(form)
        ctx = Context()
        ctx._names = names
        ctx._edges = tuple(edges)
        ctx._saved = NOTHING
        ctx._dirty = ctx._constant = ()
        ctx._node = None
        last = ledger.last
        inner = _UNRECORDED if outer is None else outer.changed(grad=False, saved_hooks=None)
        try:
            MODES.set(inner)
            if positional == len(values):
                outputs = self.forward(ctx, *values)
            else:
                keywords = dict(zip(names[positional:], values[positional:], strict=True))
                outputs = self.forward(ctx, *values[:positional], **keywords)
        finally:
            MODES.set(outer)
        node = None
        if edges.count(None) < len(edges):
            node = FunctionNode()
            node.function = self
            node.ctx = ctx
            node.edges = ctx._edges
            node.given = given
            node.outputs = ()
            node.hooks = None
            node.seq = tick()
            frame: Any = _frame(2)  # the written function's caller
            while INTERNAL[frame.f_code.co_filename]:
                frame = frame.f_back
            node.code, node.instruction = frame.f_code, frame.f_lasti
        if ctx._dirty:
            note_writes(ctx._dirty, last, self.name)
        if outputs.__class__ is not Tensor:
            return finish_several(ctx, node, values, outputs)
        return finish(ctx, node, values, outputs)


FunctionCtx = Context  # PyTorch's name, for annotations
_PLAIN = frozenset([float, int, bool, str, type(None)])
_CONTAINERS = (list, tuple, dict)
_frame = sys._getframe


Rule = TypeVar("Rule", bound=Callable[..., Any])


class CustomFunction(Protocol):
    """What `autograd_function` makes, for type checkers: see `AutogradFunction`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def backward(self, rule: Rule, /) -> Rule: ...
    def jvp(self, rule: Rule, /) -> Rule: ...
    def check(self, *args: Any, **kwargs: Any) -> Any: ...


@overload
def autograd_function(
    forward: Callable[..., Any],
    backward: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    name: str | None = None,
) -> CustomFunction: ...


@overload
def autograd_function(
    forward: None = None,
    backward: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], CustomFunction]: ...


def autograd_function(
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Make a differentiable function from a forward and a backward of your own.

    Parameters
    ----------
    forward : callable
        Called unrecorded as ``forward(ctx, *args, **kwargs)``; returns a tensor, a tuple or a list.
    backward : callable, optional
        Called as ``backward(ctx, *grad_outputs)``; see `AutogradFunction.backward`, which also
        serves as a decorator.
    jvp : callable, optional
        The forward-mode rule, called as ``jvp(ctx, *tangents)``.
    name : str, optional
        What errors and `grad_fn` call it; the name of `forward` by default.

    Returns
    -------
    function
        With the signature of `forward` without `ctx`; its attributes `backward` and `jvp` are
        decorators for the rules.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.autograd_function
    ... def mul_constant(ctx, tensor, constant):
    ...     ctx.save_for_backward(constant=constant)
    ...     return tensor * constant
    >>> @mul_constant.backward
    ... def _(ctx, grad_output):
    ...     return {"tensor": grad_output * ctx.saved_variables.constant}
    >>> x = cr.tensor(5.0, requires_grad=True)
    >>> mul_constant(x, constant=2).backward()
    >>> x.grad.item()
    2.0
    """
    if forward is None:
        return functools.partial(autograd_function, backward=backward, jvp=jvp, name=name)
    return AutogradFunction(forward, backward, jvp, name).function


class Function:
    """PyTorch's form of a custom function: static `forward` and `backward`, and `apply`.

    Examples
    --------
    >>> import chainrule as cr
    >>> class Square(cr.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * 2 * x
    >>> x = cr.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad.item()
    6.0
    """

    def __call__(self, *args: Any) -> Any:
        """Raise: an instance is of no use."""
        raise AutogradError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            f"new-style autograd function with static forward method: {type(self).__name__}.apply"
            "(...), on the class"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Apply the function, recorded as one node."""
        function: Any = getattr(cls, "_function", None)  # of a class with a forward
        if function is None:
            raise NotImplementedError(
                "You must implement the forward function for custom autograd.Function: "
                f"{cls.__name__} has none."
            )
        return function(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        forward = getattr(cls, "forward", None)
        if forward is None:
            return
        setup = getattr(cls, "setup_context", None)
        if setup is not None:
            forward = _with_setup(forward, setup)
        backward = getattr(cls, "backward", None) or getattr(cls, "vjp", None)
        if "backward" in vars(cls) and "vjp" in vars(cls):
            raise AutogradError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed: "
                f"they are two names of the one rule of {cls.__name__}"
            )
        spec = AutogradFunction(forward, backward, getattr(cls, "jvp", None), cls.__name__)
        made: Any = cls
        made._function = staticmethod(spec.function)
        found: Any = next(each for each in cls.__mro__ if "apply" in vars(each))
        if found is Function or hasattr(found.apply, "spec"):  # no user wrote one
            made.apply = staticmethod(spec.function)


def _with_setup(compute: Callable[..., Any], setup: Callable[..., Any]) -> Callable[..., Any]:
    """Join a forward without ctx and its `setup_context(ctx, inputs, output)`."""

    @functools.wraps(compute)
    def forward(ctx: Context, *args: Any) -> Any:
        output = compute(*args)
        setup(ctx, args, output)
        return output

    signature = inspect.signature(compute)
    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    joined: Any = forward
    joined.__signature__ = signature.replace(parameters=[ctx, *signature.parameters.values()])
    return forward
