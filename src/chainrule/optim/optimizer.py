"""What all optimisers share: groups of parameters with their options, state, and the step."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from chainrule.autograd.modes import enable_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write
from chainrule.backend import device_of, is_known, move, namespace
from chainrule.errors import ArgumentError

Array = Any
Group = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[Group]


class Optimizer(ABC):
    """An update rule and the parameters that it updates, in place and unrecorded.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        Leaves. A dict is a group: its entry ``"params"`` holds tensors, the others are options that
        hold for these instead of `defaults`.
    defaults : dict
        The options of groups that don't give their own.

    Attributes
    ----------
    param_groups : list of dicts
        Every group, with all its options. They may be changed at any time: a schedule sets
        ``group["lr"]``.
    state : dict
        What the rule remembers of each parameter: a dict by the parameter.
    defaults : dict
        As given.

    Raises
    ------
    TypeError
        If `params` is a single tensor, a set, or holds something else than tensors.
    ArgumentError
        If there are no parameters, one of them is no leaf, appears twice or lies in read-only
        memory, or an option is out of range.

    Notes
    -----
    A subclass says what its options may be (`_check`) and how it updates (`_update`).
    """

    def __init__(self, params: Parameters, defaults: Mapping[str, Any]) -> None:
        self.defaults: Group = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        listed: list[Any] = _in_order(params)
        if not listed:
            raise ArgumentError(
                "optimizer got an empty parameter list: give the tensors that are to be updated (a "
                "generator can be walked only once)"
            )
        for group in listed if isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(group)

    @abstractmethod
    def _check(self, options: Group) -> None:
        """Raise an ArgumentError if a group's options are out of range."""

    @abstractmethod
    def _update(self, params: list[Tensor], options: Group) -> None:
        """Update the parameters of a group that have a gradient, in place."""

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
            As for the optimiser itself; then nothing has changed.

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
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else _in_order(given)
        group = {**self.defaults, **param_group, "params": params}
        for param in params:
            _check_parameter(param)
        if len(set(params)) < len(params):
            raise ArgumentError(
                "optimizer contains a parameter group with duplicate parameters: each would be "
                "updated more than once in a step"
            )
        if not set(params).isdisjoint(self._parameters()):
            raise ArgumentError("some parameters appear in more than one parameter group")
        self._check(group)
        self.param_groups.append(group)

    def _parameters(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in its own memory.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss anew: clears the gradients, calls ``backward()`` and returns the loss.
            It runs recorded, before the update, also under `no_grad`.

        Returns
        -------
        What `closure` returned, or None

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
            with enable_grad():
                loss = closure()
        with np.errstate(all="ignore"):  # a diverging run shows in the loss, as inf or nan
            for group in self.param_groups:
                self._update([p for p in group["params"] if p._grad is not None], group)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool, default True
            Let go of them. False fills them with zeros instead: the same objects stay, and `step`
            goes on updating parameters that no longer get a gradient (momentum, weight decay).

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
            grad._array[...] = 0
            record_write(grad._array, "zero_grad")

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the options, with numbers in the place of the parameters.

        Returns
        -------
        dict
            ``"state"``: what is remembered of each parameter, by its number in reading order.
            ``"param_groups"``: every group, ``"params"`` being a list of numbers. The tensors in it
            are the optimiser's own, which `step` changes: ``copy.deepcopy`` keeps a moment.

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
        number = {param: i for i, param in enumerate(self._parameters())}
        return {
            "state": {number[param]: dict(kept) for param, kept in self.state.items()},
            "param_groups": [
                {**group, "params": [number[param] for param in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another optimiser, of the same kind, was.

        Parameters
        ----------
        state_dict : dict
            From `state_dict`. It is copied, into the dtype and onto the device of the parameters.

        Raises
        ------
        ArgumentError
            If its groups or the shapes in it are not those of this optimiser; then nothing has
            changed.

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.ones(2, requires_grad=True)
        >>> first, second = cr.optim.Adam([w], lr=0.1), cr.optim.Adam([w])
        >>> second.load_state_dict(first.state_dict())
        >>> second.param_groups[0]["lr"]
        0.1
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ArgumentError(
                "loaded state dict has a different number of parameter groups: got "
                f"{len(saved)}, expected {len(self.param_groups)}"
            )
        groups, state = [], defaultdict[Tensor, dict[str, Any]](dict)
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
                if number in state_dict["state"]:
                    kept = state_dict["state"][number]
                    state[param] = {name: self._restored(kept[name], param, name) for name in kept}
        self.param_groups, self.state = groups, state

    def _restored(self, value: Any, param: Tensor, name: str) -> Any:
        """Return what is remembered of a parameter, from what another optimiser remembered."""
        return _fitted(value, param, name)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


# --- what the rules share -------------------------------------------------------------------------

_TITLES = {"lr": "learning rate", "eps": "epsilon value"}


def check_at_least_0(options: Group, *names: str) -> None:
    """Raise an ArgumentError if one of these options is negative, or nan."""
    for name in names:
        if not options[name] >= 0:
            title = _TITLES.get(name, f"{name} value")
            raise ArgumentError(f"Invalid {title}: {options[name]}, expected at least 0")


def gradient(param: Tensor, options: Group) -> Array:
    """Return the gradient of what is to be minimised: the loss or its negative, and the penalty."""
    grad: Any = param._grad
    g = -grad._array if options["maximize"] else grad._array
    decay = float(options["weight_decay"])
    return g + decay * param._array if decay else g


def number(option: Any) -> Any:
    """Return an option as a Python number; as a compiler has it if that is a tensor it traces."""
    if isinstance(option, Tensor) and not is_known(option._array):
        return option._array
    return float(option)


def in_precision(number: Any, array: Array) -> Any:
    """Return a number that leaves the dtype of `array` as it is when the two are combined."""
    return number if number.__class__ is float else number.astype(_real(array.dtype), copy=False)


def _real(dtype: Any) -> Any:
    return np.zeros(0, dtype).real.dtype


# --- checks of parameters -------------------------------------------------------------------------


def _in_order(params: Any) -> list[Any]:
    """Return parameters, or groups, as a list of a certain order."""
    if isinstance(params, Tensor):
        raise TypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
            "got a Tensor: put it into a list"
        )
    if isinstance(params, set | frozenset):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    return list(params)


def _check_parameter(param: Any) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}"
        )
    if not param.is_leaf:
        raise ArgumentError(
            f"can't optimize a non-leaf Tensor: this one, of shape {list(param.shape)}, comes from "
            f"{param.grad_fn}. Give the leaf that it was computed from, or make a leaf of it: "
            "detach().requires_grad_()"
        )
    if not getattr(param._array.flags, "writeable", True):
        raise ArgumentError(
            "can't optimize a Tensor in read-only memory: this one, of shape "
            f"{list(param.shape)}, is expanded, so that several elements share one place, or "
            "from_numpy took an array that is locked. clone() it first"
        )


def _fitted(value: Any, param: Tensor, name: str) -> Any:
    """Return a copy of a remembered value, as that of `param`."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    if value.shape != param.shape:
        raise ArgumentError(
            f"loaded state dict has a {name} of shape {list(value.shape)} for a parameter of shape "
            f"{list(param.shape)}"
        )
    array = move(value._array, device_of(param._array))
    return make(namespace(array).array(array, dtype=param.dtype), None)
