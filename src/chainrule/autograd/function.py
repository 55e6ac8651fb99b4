"""Custom functions: `autograd_function`, and PyTorch's `Function`."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, overload

from chainrule.autograd.context import Context
from chainrule.autograd.function_help import help_text
from chainrule.autograd.function_source import make_call
from chainrule.autograd.function_wrapper import FunctionWrapper, Made, reduced
from chainrule.errors import ArgumentTypeError, AutogradError, MissingRuleError

# --- public functions -----------------------------------------------------------------------------


def make_wrapper(spec: AutogradFunction) -> Callable[..., Any]:
    """Return the public function: forward's signature without `ctx`."""
    if not callable(spec.forward):
        raise ArgumentTypeError(
            "autograd_function: expected forward, a callable that takes ctx and the inputs, got "
            f"{type(spec.forward).__name__}"
        )
    signature = inspect.signature(spec.forward)
    context, *parameters = signature.parameters.values() or (None,)
    if context is None or context.kind not in (
        context.POSITIONAL_ONLY,
        context.POSITIONAL_OR_KEYWORD,
    ):
        raise ArgumentTypeError(
            f"the forward of {spec.name} must take ctx as its first argument: write "
            f"def {_name_of(spec.forward)}(ctx, ...)"
        )
    if context.name == "self" and parameters and parameters[0].name == "ctx":
        raise ArgumentTypeError(
            f"{spec.name}: forward(self, ctx, ...) must be a static method, which has no self: "
            "write @staticmethod and def forward(ctx, ...), and so for backward"
        )
    if not parameters and context.name not in _CONTEXT_NAMES:
        raise ArgumentTypeError(
            f"the forward of {spec.name} must take ctx as its first argument, and then its inputs, "
            f"but it takes {context.name!r} alone: write def {_name_of(spec.forward)}(ctx, "
            f"{context.name})"
        )
    function, spec.cotangents = make_call(spec, parameters)
    function.__doc__ = getattr(spec.forward, "__doc__", None)
    function.__module__ = getattr(spec.forward, "__module__", __name__)
    function.__qualname__ = getattr(spec.forward, "__qualname__", spec.name)
    function.__signature__ = signature.replace(parameters=parameters)
    function.spec, function.check = spec, spec.check
    function.backward, function.jvp = spec.backward, spec.jvp
    public: Callable[..., Any] = _PublicFunction(function, function, _MADE)
    if context.name not in _CONTEXT_NAMES:  # for Python's errors of calls that don't fit
        taken = ", ".join(["ctx", *signature.parameters])
        function.__qualname__ += (
            f" (whose first parameter, {context.name!r}, is the ctx: write def "
            f"{spec.name}({taken}))"
        )
    del vars(public)["__wrapped__"]
    return public


_CONTEXT_NAMES = ("ctx", "context", "c", "self", "cls", "_", "_ctx")


class _Help:
    """The doc of a custom function: that of forward, and which arguments have gradients."""

    def __get__(self, function: Any, owner: Any) -> str | None:
        if function is None:
            return "A custom function."
        spec: Any = vars(function).get("spec")
        doc: str | None = vars(function).get("__doc__")
        if spec is None:
            return doc
        signature = inspect.signature(function)
        if not inspect.isroutine(function):  # from Python 3.13 on, help() then leaves it out
            doc = f"{spec.name}{signature}\n\n{inspect.cleandoc(doc or '')}".rstrip()
        return help_text(
            doc, list(signature.parameters), spec.backward_rule, spec.jvp_rule, spec.name
        )

    def __set__(self, function: Any, doc: str | None) -> None:
        vars(function)["__doc__"] = doc


class _PublicFunction(FunctionWrapper):
    __slots__ = ()

    __doc__: Any = _Help()

    def __reduce__(self) -> tuple[Any, ...]:
        spec: AutogradFunction = vars(self)["spec"]
        rules = {"jvp": spec.jvp_rule, "name": spec.name}
        made = Made(autograd_function, (spec.forward, spec.backward_rule), rules)
        return reduced(self, made, spec.owner)


def max_positional_grads(rule: Callable[..., Any]) -> int | None:
    """Return the number of positional gradients that a backward takes; None if unlimited."""
    parameters = list(inspect.signature(rule).parameters.values())
    if not parameters:
        name = getattr(rule, "__name__", type(rule).__name__)
        raise ArgumentTypeError(
            f"the backward {name!r} takes no arguments, expected ctx and a gradient for each output"
        )
    if len(parameters) > 2 and [p.name for p in parameters[:2]] == ["self", "ctx"]:
        raise ArgumentTypeError(
            "backward(self, ctx, ...) must be a static method, which has no self: write "
            "@staticmethod and def backward(ctx, grad_output)"
        )
    if parameters[0].kind is not parameters[0].VAR_POSITIONAL:
        parameters = parameters[1:]  # ctx
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if not count:
        name = getattr(rule, "__name__", type(rule).__name__)
        raise ArgumentTypeError(
            f"the backward {name!r} takes 1 positional argument, expected ctx and a gradient for "
            f"each output: write def {name}(ctx, grad_output)"
        )
    return count


# --- custom functions -----------------------------------------------------------------------------


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the backward of a custom function as not differentiable.

    It then runs without recording, and a second derivative raises an error instead of being wrong.

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

    def wrapper(ctx: Context, *grads: Any) -> Any:
        return backward(ctx, *grads)

    marked: Any = FunctionWrapper(wrapper, backward, Made(once_differentiable, (backward,), {}))
    marked.once_differentiable = True
    found: Callable[..., Any] = marked
    return found


def _name_of(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("<>")


class AutogradFunction:
    """A custom function: its forward, its rules, and `function`, the public wrapper."""

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None,
        jvp: Callable[..., Any] | None,
        name: str | None,
    ) -> None:
        self.forward = forward
        self.name = name or _name_of(forward)
        self.backward_rule: Callable[..., Any] | None = None
        self.max_positional_grads: int | None = None  # of backward; None if unlimited
        self.once = False
        self.jvp_rule = jvp
        self.cotangents: Callable[..., Sequence[Any]]  # of the arguments, from backward's result
        self.owner: type | None = None  # the class that has it as `apply`
        self.function = make_wrapper(self)
        if backward is not None:
            self.backward(backward)

    def backward(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Use `rule` as the backward of this function; can be used as a decorator.

        Parameters
        ----------
        rule : callable
            Called as ``rule(ctx, *grad_outputs)``. Returns gradients as a dict by argument name, a
            tuple with one for each argument (or for each tensor argument that requires grad), or a
            single tensor where one argument can have a gradient. Arrays and numbers are accepted,
            but a second derivative then raises an error, since they have no history.
        """
        self.backward_rule = rule
        self.max_positional_grads = max_positional_grads(rule)
        self.once = getattr(rule, "once_differentiable", False)
        return rule

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Use `rule` for forward mode: ``rule(ctx, *tangents)``, one for each argument.

        It returns one tangent for each output, of its shape, or None for zeros.
        """
        self.jvp_rule = rule
        return rule

    checker: Callable[..., Any]
    """Implementation of `check`, set by chainrule.checks."""

    def check(self, *args: Any, **kwargs: Any) -> Any:
        """Check the rules of this function: see `chainrule.checks`."""
        if not hasattr(AutogradFunction, "checker"):
            importlib.import_module("chainrule.checks")  # a layer above this module
        return type(self).checker(self, *args, **kwargs)


FunctionCtx = Context  # PyTorch's name, for annotations


Rule = TypeVar("Rule", bound=Callable[..., Any])


class CustomFunction(Protocol):
    """Type of the functions made by `autograd_function`: see `AutogradFunction`."""

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
    """Make a differentiable function from a forward and a backward.

    Parameters
    ----------
    forward : callable
        Called as ``forward(ctx, *args, **kwargs)``, without recording; returns a tensor, a tuple or
        a list.
    backward : callable, optional
        Called as ``backward(ctx, *grad_outputs)``; see `AutogradFunction.backward`, which also
        serves as a decorator.
    jvp : callable, optional
        The forward-mode rule, called as ``jvp(ctx, *tangents)``.
    name : str, optional
        The name in errors and in `grad_fn`; by default that of `forward`.

    Returns
    -------
    function
        With the signature of `forward` without `ctx`; its attributes `backward` and `jvp` are
        decorators for the rules. `help()` of it says which arguments have gradients.

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


_MADE = Made(autograd_function, (), {})


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise for arguments: a class is not called with its inputs."""
        if args or kwargs:
            raise AutogradError(
                f"{type(self).__name__}(...) makes an object and computes nothing: write "
                f"{type(self).__name__}.apply(...), on the class"
            )

    def __call__(self, *args: Any) -> Any:
        """Raise: instances are not callable."""
        raise AutogradError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            f"new-style autograd function with static forward method: {type(self).__name__}.apply"
            "(...), on the class"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Apply the function, recorded as one node."""
        function: Any = getattr(cls, "_function", None)  # if the class has a forward
        if function is None:
            raise MissingRuleError(
                "You must implement the forward function for custom autograd.Function: "
                f"{cls.__name__} has none."
            )
        return function(*args, **kwargs)

    @classmethod
    def check(cls, *args: Any, **kwargs: Any) -> Any:
        """Check the rules of the function on these arguments: see `chainrule.checks`."""
        function: Any = getattr(cls, "_function", None) or cls.apply(*args, **kwargs)  # raises
        return function.spec.check(*args, **kwargs)

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
        spec.owner = cls
        made._function = staticmethod(spec.function)
        found: Any = next(each for each in cls.__mro__ if "apply" in vars(each))
        if found is Function or hasattr(found.apply, "spec"):  # not overridden
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
