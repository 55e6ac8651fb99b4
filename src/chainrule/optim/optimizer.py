"""The base class of optimisers: parameter groups with options, state, hooks and the step."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import enable_grad, run_in
from chainrule.autograd.node import HookDict, RemovableHandle
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write
from chainrule.backend import device_of, move, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interrupts import errstate

Array = Any
Group = dict[str, Any]
ParamsT = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
"""What optimisers take, under PyTorch's name."""
Hook = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])


class _Required:
    """The type of `required`."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()
"""Default of an option that each parameter group has to give, in optimisers of users."""


_MADE_IN_TRACE: set[int] = set()
"""Ids of optimisers with state from a trace. Not an attribute, which would be guarded."""


def _with_hooks(step: F) -> F:
    """Return a `step` that runs the hooks of its optimiser before and after the update."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True  # for lr_scheduler, which warns about the order of the calls
        before, after = self._hooks["step_pre"], self._hooks["step_post"]
        for hook in [*_GLOBAL_HOOKS["step_pre"].values(), *before.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise ArgumentTypeError(
                        "a hook before step() must return None or (args, kwargs), the new "
                        f"arguments of step(), but it returned {changed!r}"
                    )
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in [*after.values(), *_GLOBAL_HOOKS["step_post"].values()]:
            hook(self, args, kwargs)
        return result

    return cast(F, hooked)


def _no_hooks() -> defaultdict[str, HookDict]:
    return defaultdict(HookDict)


_GLOBAL_HOOKS = _no_hooks()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Register a hook that runs before `step` of all optimisers: see `register_step_pre_hook`."""
    return RemovableHandle(_GLOBAL_HOOKS["step_pre"], hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Register a hook that runs after `step` of all optimisers: see `register_step_post_hook`."""
    return RemovableHandle(_GLOBAL_HOOKS["step_post"], hook)


class Optimizer:
    """An update rule and the parameters that it updates, in place and unrecorded.

    Parameters
    ----------
    params : iterable of Tensors, of (str, Tensor) pairs, or of dicts
        Leaves, or leaves with names, which printing and `state_dict` show. A dict is a parameter
        group: its entry ``"params"`` contains tensors, the others are options of this group instead
        of `defaults`.
    defaults : dict
        The default options of parameter groups.

    Attributes
    ----------
    param_groups : list of dicts
        All groups, with all their options. They may be changed at any time: a schedule sets
        ``group["lr"]``.
    state : dict
        The state of each parameter, such as moments: a dict by parameter.
    defaults : dict
        The argument.

    Raises
    ------
    TypeError
        If `params` is a single tensor, a set, or contains something else than tensors.
    ArgumentError
        If there are no parameters, one of them is not a leaf, appears twice or is in read-only
        memory, or an option is out of range.

    Notes
    -----
    A subclass overrides `step`, as in PyTorch, and writes under `no_grad`. Or it implements
    `_update`, which gets the parameters with a gradient, group by group; then `step` calls the
    closure, and an interrupt leaves no write unrecorded.

    Examples
    --------
    >>> import chainrule as cr
    >>> class SignDescent(cr.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def _update(self, params, options):
    ...         with cr.no_grad():
    ...             for param in params:
    ...                 param -= options["lr"] * param.grad.sign()
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> w.pow(2).sum().backward()
    >>> SignDescent([w], lr=0.25).step()
    >>> w
    tensor([ 0.7500, -1.7500], requires_grad=True)
    """

    def __init__(self, params: ParamsT, defaults: Mapping[str, Any]) -> None:
        self.defaults: Group = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self._opt_called = False
        if not any(value is required for value in self.defaults.values()):
            self._check({**self.defaults, "params": []})  # an error about them comes first
        listed: list[Any] = _ordered(params)
        if not listed:
            raise ArgumentError(
                "optimizer got an empty parameter list: give the tensors to update. A generator "
                "can be iterated only once; tensors of a module have to be nn.Parameter(tensor), "
                "and layers in a plain list or dict in an nn.ModuleList or nn.ModuleDict, as "
                "cr.why(net) tells"
            )
        for group in listed if isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(group)

    @functools.cached_property
    def _hooks(self) -> defaultdict[str, HookDict]:
        return _no_hooks()  # also of a wrapper of another optimiser that doesn't call __init__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]  # of a subclass

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hooks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check(self, options: Group) -> None:
        """Raise an ArgumentError if a group's options are out of range."""

    def _update(self, params: list[Tensor], options: Group) -> None:
        """Update the parameters of a group that have a gradient, in place."""
        raise NotImplementedError(
            f"{type(self).__name__} has no update: a subclass of Optimizer implements step(closure)"
            " or _update(params, options), where options is the parameter group"
        )

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            ``"params"``, a tensor or several, and options. Entries of other names are kept with the
            group.

        Raises
        ------
        TypeError, ArgumentError
            As for the optimiser itself; then nothing is changed.

        Examples
        --------
        >>> import chainrule as cr
        >>> w, b = cr.ones(3, requires_grad=True), cr.zeros(1, requires_grad=True)
        >>> optimizer = cr.optim.SGD([w], lr=0.1)
        >>> optimizer.add_param_group({"params": b, "lr": 0.5})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.5]
        """
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else _ordered(given)
        group = {**self.defaults, **param_group, "params": params}
        named = [isinstance(entry, tuple) for entry in params]
        if any(named) and not all(named):
            raise ArgumentError(
                "all optimizer params should be with/without names. Some param names are missing: "
                f"number {named.index(False)}. Give (name, tensor) pairs, such as "
                "model.named_parameters(), or tensors only"
            )
        if any(named):
            group["param_names"] = [name for name, _ in params]
            params = group["params"] = [param for _, param in params]
        if any(("param_names" in other) != ("param_names" in group) for other in self.param_groups):
            with_names = "with" if "param_names" in group else "without"
            raise ArgumentError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{with_names} names to the optimizer: give (name, tensor) pairs, such as "
                "model.named_parameters(), for each group or tensors for each"
            )
        for param in params:
            _check_parameter(param)
        for option, value in group.items():
            if value is required:
                raise ArgumentError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{option}: the optimizer's default is {value!r}"
                )
        if len(set(params)) < len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters: each is updated "
                "more than once in a step",
                stacklevel=user_stack_level(),
            )
        if not set(params).isdisjoint(self._parameters()):
            raise ArgumentError("some parameters appear in more than one parameter group")
        self._check(group)
        self.param_groups.append(group)

    def _parameters(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in its own memory.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss: clears the gradients, calls ``backward()`` and returns the loss. It
            runs before the update, recorded even under `no_grad`.

        Returns
        -------
        The result of `closure`, or None

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.tensor(1.0, requires_grad=True)
        >>> optimizer = cr.optim.SGD([w], lr=0.25)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = w * w
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item(), w.item()
        (1.0, 0.5)
        """
        loss = None
        if closure is not None:
            if isinstance(closure, Tensor):
                raise ArgumentTypeError(
                    f"{type(self).__name__}.step() takes a function that returns the loss, but got "
                    "a Tensor: call loss.backward() first, and then step() without arguments"
                )
            loss = run_in(enable_grad(), closure)
        self._update_all()
        return loss

    @errstate(all="ignore")  # divergence shows in the loss, as inf or nan
    def _update_all(self) -> None:
        if id(self) in _MADE_IN_TRACE:
            self._forget_outlived()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            try:
                self._update(params, group)
            except BaseException:  # an interrupt: each may have been written
                for param in params:
                    for tensor in (param, *self.state.get(param, {}).values()):
                        if isinstance(tensor, Tensor):
                            record_write(tensor._array, f"{type(self).__name__}.step")
                raise

    def _made(self, param: Tensor, name: str, array: Any) -> Any:
        """Add an array to the state of a parameter, and return it."""
        if isinstance(param._array, ArrayProxy):
            _MADE_IN_TRACE.add(id(self))
        self.state[param][name] = make(array, None)
        return array

    def _forget_outlived(self) -> None:
        """Remove what an interrupted compilation left in the state."""
        _MADE_IN_TRACE.discard(id(self))
        for state in self.state.values():
            for name, value in list(state.items()) if isinstance(state, dict) else ():
                array = SLOTS["_array"].__get__(value) if isinstance(value, Tensor) else None
                if getattr(array, "outlived", False):
                    del state[name]
                elif isinstance(array, ArrayProxy):
                    _MADE_IN_TRACE.add(id(self))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool, default True
            Set gradients to None. False fills them with zeros in place: then `step` also updates
            parameters that no longer get a gradient (momentum, weight decay).

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.tensor(1.0, requires_grad=True)
        >>> (w * w).backward()
        >>> cr.optim.SGD([w], lr=0.1).zero_grad()
        >>> w.grad is None
        True
        """
        for param in self._parameters():
            grad = param._grad
            if set_to_none or grad is None:
                param._grad = None
                continue
            if grad.requires_grad:
                grad.detach_()
            record_write(grad._array, "zero_grad")
            grad._array[...] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the options, with parameters replaced by numbers.

        Returns
        -------
        dict
            ``"state"``: the state of each parameter, by its number in the order of the groups.
            ``"param_groups"``: all groups, with a list of numbers as ``"params"``. The tensors are
            the optimiser's own, which `step` changes: ``copy.deepcopy`` makes a snapshot.

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.ones(2, requires_grad=True)
        >>> optimizer = cr.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> w.grad = cr.tensor([1.0, 2.0])
        >>> optimizer.step()
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([1., 2.])}}
        """
        for hook in [*self._hooks["state_dict_pre"].values()]:
            hook(self)
        self._forget_outlived()
        number: dict[Any, Any] = {}
        for i, param in enumerate(self._parameters()):
            number.setdefault(param, i)
        found: dict[str, Any] = {
            "state": {
                number.get(key, key): dict(kept) if isinstance(kept, dict) else kept
                for key, kept in self.state.items()
                if kept
            },
            "param_groups": [
                {**group, "params": [number[param] for param in group["params"]]}
                for group in self.param_groups
            ],
        }
        for hook in [*self._hooks["state_dict_post"].values()]:
            found = found if (changed := hook(self, found)) is None else changed
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state and the options of another optimiser of the same class.

        Parameters
        ----------
        state_dict : dict
            From `state_dict`, or of PyTorch's optimiser of the same name, whose tensors are read
            as arrays. It is copied to the dtype and the device of the parameters.

        Raises
        ------
        ArgumentError
            If its groups or shapes are not those of this optimiser; then nothing is changed.

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.ones(2, requires_grad=True)
        >>> first, second = cr.optim.Adam([w], lr=0.1), cr.optim.Adam([w])
        >>> second.load_state_dict(first.state_dict())
        >>> second.param_groups[0]["lr"]
        0.1
        """
        for hook in [*self._hooks["load_state_dict_pre"].values()]:
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        if not isinstance(state_dict, Mapping) or "param_groups" not in state_dict:
            names = (
                list(state_dict) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            )
            raise ArgumentError(
                "load_state_dict: expected what state_dict() of an optimizer returned, with "
                f"'param_groups' and 'state', got {names}"
            )
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ArgumentError(
                "loaded state dict has a different number of parameter groups: got "
                f"{len(saved)}, expected {len(self.param_groups)}"
            )
        groups, state, numbers = [], defaultdict[Any, Any](dict), set[Any]()
        for theirs, ours in zip(saved, self.param_groups, strict=True):
            if len(theirs["params"]) != len(ours["params"]):
                raise ArgumentError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: got {len(theirs['params'])} parameters, expected "
                    f"{len(ours['params'])}"
                )
            group = {**ours, **copy.deepcopy(theirs), "params": ours["params"]}
            self._check(group)
            groups.append(group)
            for number, param in zip(theirs["params"], ours["params"], strict=True):
                numbers.add(number)
                if number in state_dict["state"]:
                    saved_state = state_dict["state"][number]
                    state[param] = {
                        name: self._load_value(saved_state[name], param, name, group)
                        for name in saved_state
                    }
        for key, value in state_dict["state"].items():
            if key not in numbers:
                state[key] = copy.deepcopy(value)
        self.param_groups, self.state = groups, state
        for hook in [*self._hooks["load_state_dict_post"].values()]:
            hook(self)

    def _load_value(self, value: Any, param: Tensor, name: str, options: Group) -> Any:
        """Return an entry of the state of a parameter, from that of another optimiser."""
        if isinstance(value, list | tuple):
            return type(value)(self._load_value(each, param, name, options) for each in value)
        if not hasattr(value, "__array__"):  # neither a tensor nor PyTorch's
            return copy.deepcopy(value)
        array = array_of(value)
        return as_state(array, array.dtype if name == "step" else param.dtype, param)

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Register ``hook(optimizer, args, kwargs)`` to run before `step`.

        Parameters
        ----------
        hook : callable
            Returns None, or (args, kwargs): other arguments for `step`.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook back.

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.tensor(1.0, requires_grad=True)
        >>> optimizer = cr.optim.SGD([w])
        >>> handle = optimizer.register_step_pre_hook(lambda *_: print("step"))
        >>> optimizer.step()
        step
        >>> handle.remove()
        """
        return RemovableHandle(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Register ``hook(optimizer, args, kwargs)`` to run after `step`; see the pre-hook."""
        return RemovableHandle(self._hooks["step_post"], hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer)`` to run before `state_dict`; `prepend`: before the others."""
        return RemovableHandle(self._hooks["state_dict_pre"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer, state_dict)``, which may return another `state_dict`."""
        return RemovableHandle(self._hooks["state_dict_post"], hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Register ``hook(optimizer, state_dict)``, which may return another one to load."""
        return RemovableHandle(self._hooks["load_state_dict_pre"], hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Register ``hook(optimizer)`` to run after `load_state_dict`; `prepend`: before others."""
        return RemovableHandle(self._hooks["load_state_dict_post"], hook, prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


# --- values of a loaded state ---------------------------------------------------------------------


def array_of(value: Any) -> Array:
    """Return the array of a tensor, of an array or of a tensor of PyTorch's."""
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def as_state(array: Array, dtype: Any, param: Tensor) -> Tensor:
    """Return a copy of an array as a tensor of a dtype, on the device of a parameter."""
    moved = move(array, device_of(param._array))
    return make(namespace(moved).array(moved, dtype=dtype), None)


# --- checks of parameters -------------------------------------------------------------------------


def _ordered(params: Any) -> list[Any]:
    """Return parameters or groups as a list; raise for a tensor or an unordered set."""
    if isinstance(params, Tensor):
        raise ArgumentTypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
            "got a Tensor: put it into a list"
        )
    if inspect.ismethod(params):
        raise ArgumentTypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
            f"got a method: call it, {params.__name__}()"
        )
    if hasattr(params, "parameters") and not _holds_tensors(params):
        raise ArgumentTypeError(
            f"params argument given to the optimizer should be an iterable of Tensors or dicts, "
            f"but {type(params).__name__!r} object is not iterable: write module.parameters()"
        )
    if isinstance(params, set | frozenset):
        raise ArgumentTypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    if not isinstance(params, Iterable):
        raise ArgumentTypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
            f"got {params!r}: give module.parameters() or a list of tensors"
        )
    return list(params)


def _holds_tensors(params: Any) -> bool:
    """Return whether a module is a list of tensors, as `ParameterList` is."""
    return isinstance(params, Iterable) and all(isinstance(param, Tensor) for param in params)


def _check_parameter(param: Any) -> None:
    if not isinstance(param, Tensor):
        raise ArgumentTypeError(
            f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}"
            ": make a leaf of it, cr.tensor(..., requires_grad=True)"
        )
    if not param.is_leaf:
        raise ArgumentError(
            f"can't optimize a non-leaf Tensor: this one, of shape {list(param.shape)}, comes from "
            f"{param.grad_fn}. Give the leaf that it was computed from, or make it a leaf with "
            "detach().requires_grad_()"
        )
    array = SLOTS["_array"].__get__(param)  # a lazy module's parameter may have no shape yet
    if not getattr(array.flags, "writeable", True):
        raise ArgumentError(
            "can't optimize a Tensor in read-only memory: this one, of shape "
            f"{list(param.shape)}, is expanded, so that elements share memory, or comes from a "
            "read-only NumPy array. clone() it first"
        )
