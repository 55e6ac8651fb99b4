"""Hooks of modules: their registration, and calls between them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from chainrule.autograd.function import Function
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.node import HookDict, RemovableHandle
from chainrule.autograd.tensor import Tensor
from chainrule.errors import LocatedError

if TYPE_CHECKING:
    from chainrule.nn.modules.module import Module


class Hooks:
    """The hooks of a module, by kind; those of calls begin with (takes keywords, hook)."""

    def __init__(self) -> None:
        self._kinds: dict[str, HookDict] = {}

    def add(self, kind: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Register a hook, after or before the others."""
        return RemovableHandle(self.of_kind(kind), hook, prepend)

    def of_kind(self, kind: str) -> HookDict:
        """Return the hooks of a kind by number, to be read or changed."""
        return self._kinds.setdefault(kind, HookDict())

    def of(self, *kinds: str) -> list[Any]:
        """Return the hooks of some kinds, in the order of registration."""
        return [hook for kind in kinds for hook in list(self._kinds.get(kind, {}).values())]

    def remove(self, kind: str, wanted: Callable[[Any], bool]) -> None:
        """Remove the hooks for which a function is true."""
        hooks = self._kinds.get(kind, HookDict())
        for key, hook in list(hooks.items()):
            if wanted(hook):
                del hooks[key]

    @property
    def any(self) -> bool:
        """Whether there is a hook of any kind."""
        return any(self._kinds.values())


class HookView(MutableMapping[int, Callable[..., Any]]):
    """The hooks of one kind of a module, by number: what PyTorch's scripts read and change."""

    def __init__(self, module: Module, kind: str) -> None:
        self._module, self._kind = module, kind
        self._paired = kind in ("pre", "post", "state", "load_pre")  # with a flag

    def _own(self) -> dict[int, Any]:
        hooks = self._module._hooks
        return {} if hooks is None else hooks.of_kind(self._kind)

    def __getitem__(self, key: int) -> Callable[..., Any]:
        hook = self._own()[key]
        found: Callable[..., Any] = hook[1] if self._paired else hook
        return found

    def __setitem__(self, key: int, hook: Callable[..., Any]) -> None:
        if self._module._hooks is None:
            self._module._hooks = Hooks()
        flagged = (False, hook, False) if self._kind == "post" else (False, hook)
        self._own()[key] = flagged if self._paired else hook

    def __delitem__(self, key: int) -> None:
        del self._own()[key]

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._own()))

    def __len__(self) -> int:
        return len(self._own())

    def __repr__(self) -> str:
        return repr(dict(self))


class HookDictionary:
    """The attribute of a module that is a `HookView`; assigning to it replaces the hooks."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __get__(self, module: Module | None, owner: type) -> Any:
        return self if module is None else HookView(module, self._kind)

    def __set__(self, module: Module, hooks: Mapping[int, Callable[..., Any]]) -> None:
        view, hooks = HookView(module, self._kind), dict(hooks)
        view.clear()
        view.update(hooks)

    def __delete__(self, module: Module) -> None:
        HookView(module, self._kind).clear()


class Hooked:
    """The hooks of a module: methods that register them, and a dictionary of each kind."""

    _forward_pre_hooks = HookDictionary("pre")
    _forward_hooks = HookDictionary("post")
    _backward_pre_hooks = HookDictionary("backward_pre")
    _backward_hooks = HookDictionary("backward")
    _state_dict_pre_hooks = HookDictionary("state_pre")
    _state_dict_hooks = HookDictionary("state")
    _load_state_dict_pre_hooks = HookDictionary("load_pre")
    _load_state_dict_post_hooks = HookDictionary("load")

    _hooks: Hooks | None

    def _hook(self, kind: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks.add(kind, hook, prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`; it may return other arguments."""
        return self._hook("pre", (with_kwargs, hook), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`; it may return another output.

        With `always_call`, also if `forward` raises: then its output is None.
        """
        return self._hook("post", (with_kwargs, hook, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once the input's gradient is there."""
        return self._hook("backward", hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the backward pass of this module."""
        return self._hook("backward_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata)`` after `state_dict`."""
        return self._hook("state", (False, hook))

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict`."""
        return self._hook("state_pre", hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._hook("state", (True, hook))  # it may return another dict

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before this module is loaded, with the state dict, which it may change.

        Its arguments are ``(module, state_dict, prefix, metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``.
        """
        return self._hook("load_pre", (True, hook))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._hook("load_pre", (with_module, hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after this module was loaded."""
        return self._hook("load", hook)


def take_pre_hook(module: Module, kind: type, name: str, *, remove: bool = True) -> Any:
    """Return the hook before calls that is an instance of a class with this name, or None.

    Hooks of `weight_norm`, of pruning and the like have the name of the tensor that they compute.
    """
    hooks = module._hooks
    if hooks is None:
        return None
    found = [
        hook
        for _, hook in hooks.of("pre")
        if isinstance(hook, kind) and hook.name == name  # type: ignore[attr-defined]  # of `kind`
    ]
    if not found:
        return None
    if remove:
        hooks.remove("pre", lambda each: each[1] is found[0])
    return found[0]


GLOBAL_HOOKS = Hooks()
"""Hooks of all modules, of the kinds pre, post, backward and backward_pre."""

REGISTRATION_HOOKS = Hooks()
"""Hooks of all modules that see each new member, by the kind of the member."""


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before `forward` of every module; it may return other args."""
    return GLOBAL_HOOKS.add("pre", (False, hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after `forward` of every module.

    It may return another output, and runs before the module's own hooks.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.nn.modules.module import register_module_forward_hook
    >>> def show(module, args, output):
    ...     print(type(module).__name__, output.shape)
    >>> with register_module_forward_hook(show):
    ...     y = cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.Tanh())(cr.ones(4, 3))
    Linear (4, 2)
    Tanh (4, 2)
    Sequential (4, 2)
    """
    return GLOBAL_HOOKS.add("post", (with_kwargs, hook, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in the backward pass of every module."""
    return GLOBAL_HOOKS.add("backward", hook)


register_module_backward_hook = register_module_full_backward_hook


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of every module."""
    return GLOBAL_HOOKS.add("backward_pre", hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` for each new parameter; it may return another."""
    return REGISTRATION_HOOKS.add("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` for each new buffer; it may return another."""
    return REGISTRATION_HOOKS.add("buffer", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` for each new submodule; it may return another."""
    return REGISTRATION_HOOKS.add("module", hook)


def shown_to_hooks(module: Module, kind: str, name: str, value: Any) -> Any:
    """Return what hooks make of a new member."""
    for hook in REGISTRATION_HOOKS.of("buffer" if kind == "transient" else kind):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def call_with_hooks(
    module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return what `forward` returns, between the hooks of a module."""
    call = _Call(module, args, kwargs)
    try:
        return call.run(forward)
    except Exception:
        call.failed()
        raise


class _Call:
    """A call of a module that has hooks."""

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.own = module._hooks or Hooks()
        self.result: Any = None
        self.called: list[Any] = []  # hooks after the call

    def run(self, forward: Callable[..., Any]) -> Any:
        """Return the output."""
        for takes_kwargs, hook in [*GLOBAL_HOOKS.of("pre"), *self.own.of("pre")]:
            self._replace_arguments(takes_kwargs, hook)
        backward = [*GLOBAL_HOOKS.of("backward"), *self.own.of("backward")]
        before = [*GLOBAL_HOOKS.of("backward_pre"), *self.own.of("backward_pre")]
        watch = _BackwardHooks(self.module, backward, before) if backward or before else None
        if watch:
            self.args = watch.inputs(self.args)
        self.result = forward(*self.args, **self.kwargs)
        for registered in self._after():
            self._call_after(registered)
        return watch.outputs(self.result) if watch else self.result

    def _replace_arguments(self, takes_kwargs: bool, hook: Any) -> None:
        given = (self.args, self.kwargs) if takes_kwargs else (self.args,)
        changed = hook(self.module, *given)
        if changed is None:
            return
        if not takes_kwargs:
            self.args = changed if isinstance(changed, tuple) else (changed,)
            return
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                f"got {changed!r}"
            )
        self.args, self.kwargs = changed

    def _after(self) -> list[Any]:
        return [*GLOBAL_HOOKS.of("post"), *self.own.of("post")]

    def _call_after(self, registered: Any) -> None:
        self.called.append(registered)
        takes_kwargs, hook, _ = registered
        given = (self.args, self.kwargs) if takes_kwargs else (self.args,)
        changed = hook(self.module, *given, self.result)
        self.result = self.result if changed is None else changed

    def failed(self) -> None:
        """Call the hooks that run in any case, and have not yet."""
        for registered in self._after():
            if not registered[2] or any(registered is each for each in self.called):
                continue
            try:
                self._call_after(registered)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=user_stack_level(),
                )


class _Passage(Function):
    """The identity of several tensors: one node that their gradients pass together."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class _BackwardHooks:
    """Backward hooks of one call: nodes before and after it see its gradients."""

    def __init__(self, module: Module, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: Any = None
        self.input_count = self.output_count = 0
        self.inputs_with_grad: list[int] = []  # positions
        self.outputs_with_grad: list[int] = []
        self.watched = False  # whether a node sees the gradients of the inputs

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the arguments through a node that calls the hooks."""
        self.input_count = len(args)
        self.inputs_with_grad, args, node = _pass(args)
        self.watched = node is not None
        if node is not None and self.hooks:
            node.register_hook(self._inputs_arrived)
        return args

    def _inputs_arrived(self, grad_inputs: Any, _: Any) -> Any:
        if self.grad_outputs is None:  # in a pass that came by another way, as of a gradient
            return None
        shown = _at_positions(grad_inputs, self.inputs_with_grad, self.input_count)
        for hook in self.hooks:
            changed = hook(self.module, shown, self.grad_outputs)
            if changed is not None:
                shown = _as_many("Backward hook", "grad_input", changed, self.input_count)
        self.grad_outputs = None
        return tuple(shown[i] for i in self.inputs_with_grad)

    def outputs(self, result: Any) -> Any:
        """Pass the result through a node that keeps its gradients for the hooks."""
        if not isinstance(result, Tensor | tuple | list):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=user_stack_level(),
            )
            return result
        single = isinstance(result, Tensor)
        values: tuple[Any, ...] = (result,) if single else tuple(result)
        positions, values, node = _pass(values)
        if node is None:
            return result

        self.outputs_with_grad, self.output_count = positions, len(values)
        node.register_prehook(self._outputs_arrived)
        if single:
            return values[0]
        make: Any = type(result)
        return make(*values) if hasattr(make, "_fields") else make(values)

    def _outputs_arrived(self, grad_outputs: Any) -> Any:
        positions, count = self.outputs_with_grad, self.output_count
        grads = _at_positions(grad_outputs, positions, count)
        for hook in self.pre_hooks:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = _as_many("Backward pre hook", "grad_output", changed, count)
        if self.watched:
            self.grad_outputs = grads
        else:
            self._call_without_inputs(grads)
        return tuple(grads[i] for i in positions)

    def _call_without_inputs(self, grads: tuple[Any, ...]) -> None:
        """Call the hooks in a pass from which no gradient flows to the inputs."""
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.input_count, grads)
            if changed is not None and any(each is not None for each in changed):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    f"return None or None for all gradients, but got {changed!r}"
                )


def _at_positions(grads: Any, positions: list[int], count: int) -> tuple[Any, ...]:
    """Return the gradients of `count` values, of which those at some positions have one."""
    found = dict(zip(positions, grads, strict=True))
    return tuple(found.get(i) for i in range(count))


def _as_many(title: str, name: str, changed: Any, count: int) -> tuple[Any, ...]:
    """Return what a hook puts in the place of gradients; raise if they are not as many."""
    found = changed if isinstance(changed, tuple) else (changed,)
    if len(found) != count:
        raise RuntimeError(
            f"{title} returned an invalid number of {name}, got {len(found)}, but expected {count}"
        )
    return found


def _pass(values: tuple[Any, ...]) -> tuple[list[int], tuple[Any, ...], Any]:
    """Pass the tensors that require grad through one node."""
    found = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not found:
        return [], values, None
    passed = _Passage.apply(*(values[i] for i in found))
    passed = passed if isinstance(passed, tuple) else (passed,)
    listed = list(values)
    for i, tensor in zip(found, passed, strict=True):
        listed[i] = tensor
    return found, tuple(listed), passed[0].grad_fn


def note_failure(error: Exception, module: Module, inputs: tuple[Any, ...]) -> None:
    """Note the innermost module whose call failed, and the shapes of its inputs."""
    module._kinds  # noqa: B018 - raises if Module.__init__ was not called
    begin = "In the module "
    notes: list[str] = getattr(error, "__notes__", [])
    if isinstance(error, LocatedError) and not any(note.startswith(begin) for note in notes):
        shapes = [str(list(each.shape)) for each in inputs if isinstance(each, Tensor)]
        got = f", whose inputs have the shapes {', '.join(shapes)}" if shapes else ""
        error.add_note(f"{begin}{module._get_name()}({module.extra_repr()}){got}.")
