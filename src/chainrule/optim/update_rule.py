"""Optimisers that update each parameter by itself: a description of the state, and a formula."""

from __future__ import annotations

import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from chainrule.autograd.array_proxy import NumberProxy, as_float
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_writes
from chainrule.backend import CPU, is_known, move, namespace, numpy_xp, real_dtype
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.kernels.elementwise import UPDATES
from chainrule.kernels.parallel import parallel_fill
from chainrule.optim.optimizer import Group, Optimizer, ParamsT, array_of, as_state

Array = Any
State = dict[str, Array]


def check_rate(rate: Any) -> None:
    """Raise an ArgumentError if a learning rate is several numbers."""
    if isinstance(rate, Tensor) and rate.numel() != 1:
        raise ArgumentError(f"a Tensor lr must be 1-element, but its shape is {rate.shape}")


class UpdateRule(Optimizer, metaclass=ABCMeta):
    """Base of optimisers whose update of a parameter depends on this parameter alone.

    A subclass says which state a parameter has (`_state_names`, `_initial`), how the numbers of a
    step follow from the options and from the state of shape () (`_numbers`), and what is done with
    arrays (`_apply`). What all have in common is here: initial state, `maximize`, weight decay,
    complex parameters (as two real ones), checks of options, and the log of writes.
    """

    _NON_NEGATIVE: ClassVar[tuple[str, ...]] = ("lr", "eps", "weight_decay")
    _DECOUPLED: ClassVar[bool] = False
    """Weight decay is no part of the gradient: p ← (1 - lr · weight_decay) p before the update."""
    _ELEMENTWISE: ClassVar[bool] = True
    """Each element is updated by itself, so that a complex parameter counts as two real ones."""
    _ALIKE: ClassVar[bool] = True
    """Parameters of one dtype have states of the same names and, at one step, share `_numbers`."""

    def __init__(self, params: ParamsT, arguments: Mapping[str, Any]) -> None:
        super().__init__(params, options_in(arguments))

    @abstractmethod
    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        """Return the names of the arrays that a parameter keeps with these options."""

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        """Return the initial value of a state; one of shape () is on the CPU, in float64."""
        return np.zeros(()) if name == "step" else namespace(p).zeros_like(p)

    @abstractmethod
    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        """Advance the states of shape (); return the numbers that `_apply` takes.

        `fresh` says that the state was initialised in this step. In a trace, numbers that depend on
        the state are symbols; others are Python's, or arrays in the real dtype of `p`. Those that
        parameters share come to `_apply` as such arrays, so it computes no further numbers of them.
        """

    @abstractmethod
    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        """Update a parameter and its states in place.

        `scratch` is memory of the same shape, None for an array of NumPy's without a state.
        """

    def _check(self, options: Group) -> None:
        check_rate(options["lr"])
        for name in self._NON_NEGATIVE:
            if isinstance(options.get(name), str):
                raise ArgumentTypeError(
                    f"{name} is a number, but got {options[name]!r}: write float({options[name]!r})"
                )
            if name in options and not options[name] >= 0:
                raise ArgumentError(
                    f"Invalid {_TITLES.get(name, f'{name} value')}: {options[name]}, "
                    "expected at least 0"
                )
        betas = options.get("betas", ())
        if isinstance(betas, int | float):
            raise ArgumentError(
                f"betas are several numbers, got {betas}: write betas=({betas}, 0.999)"
            )
        for index, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ArgumentError(
                    f"Invalid beta parameter at index {index}: {beta}, expected from 0, below 1"
                )
        if options.get("differentiable"):
            raise ArgumentError(
                "differentiable=True: the step of an optimiser is never recorded. Write the update "
                "as w = w - lr * g, with g from cr.autograd_grad(loss, w, create_graph=True)"
            )

    def _update(self, params: list[Tensor], options: Group) -> None:
        written: list[Array] = []
        numbers: Sequence[Any] = ()
        decay, maximize = option_value(options.get("weight_decay", 0)), options.get("maximize")
        decoupled = decay and options.get("decoupled_weight_decay", self._DECOUPLED)
        penalty = None if decoupled or not decay else decay
        scratches: dict[Any, Array] = {}
        known: dict[Any, tuple[Sequence[Any], list[Any]]] = {}
        state: State = {}
        dtype: Any = None  # of the last parameter
        names: Sequence[str] = ()
        for param in params:
            p, g = param._array, param._grad._array  # type: ignore[union-attr]  # all have one
            if maximize:
                g = -g
            if penalty is not None:
                g = g + penalty * p
            alike = p.dtype is dtype and self._ALIKE
            if not alike:
                names, dtype = self._state_names(options, p), p.dtype
            if names:
                state, fresh = self._arrays(param, names, g, options)
                numbers = self._numbers_of(p, state, options, fresh, known)
            elif not alike:
                numbers = self._numbers_of(p, state, options, False, known)
            if decoupled:
                p *= in_dtype_of(1 - option_value(options["lr"]) * decay, p)
            if dtype.kind == "c" and self._ELEMENTWISE:
                for part in ("real", "imag"):
                    parts = {name: getattr(array, part) for name, array in state.items()}
                    self._apply_to(getattr(p, part), getattr(g, part), parts, numbers, scratches)
            else:
                self._apply_to(p, g, state, numbers, scratches)
            written.append(p)
            if names:
                written += [array for array in state.values() if array.ndim]
        record_writes(written, f"{type(self).__name__}.step", sys._getframe())

    def _numbers_of(
        self, p: Array, state: State, options: Group, fresh: bool, known: dict[Any, Any]
    ) -> Sequence[Any]:
        """Return `_numbers`, computed once for the parameters that are at the same step."""
        if p.__class__ is not np.ndarray or not self._ALIKE:
            return self._numbers(state, options, p, fresh)
        counters = [array for array in state.values() if not array.ndim]
        key = (p.dtype, fresh, *[array.item() for array in counters])
        if key in known:
            numbers: Sequence[Any] = known[key][0]
            for array, value in zip(counters, known[key][1], strict=True):
                array[()] = value
        else:
            real = real_dtype(p.dtype)
            numbers = [_as_array(n, real) for n in self._numbers(state, options, p, fresh)]
            known[key] = numbers, [array.item() for array in counters]
        return numbers

    def _apply_to(
        self, p: Array, g: Array, state: State, numbers: Sequence[Any], scratches: dict[Any, Array]
    ) -> None:
        """Update a real parameter; parameters of the same shape share scratch memory."""
        xp = numpy_xp if p.__class__ is np.ndarray else namespace(p)
        scratch = None
        if xp is numpy_xp and self._apply_as_loop(p, g, state, numbers):
            return None
        if xp is numpy_xp and p.size >= _PARALLEL_MIN_ELEMENTS and self._ELEMENTWISE:
            return self._apply_in_parts(p, g, state, numbers)
        if not xp.known:
            scratch = xp.empty_like(p)
            numbers = [in_dtype_of(number, p) for number in numbers]
        elif state or xp is not numpy_xp:
            key = p.shape, p.strides, p.dtype
            scratch = scratches.get(key)
            if scratch is None:
                scratch = scratches[key] = xp.empty_like(p)
        self._apply(xp, p, g, state, numbers, scratch)
        return None

    def _apply_as_loop(self, p: Array, g: Array, state: State, numbers: Sequence[Any]) -> bool:
        """Update a parameter of NumPy's by machine code, if that is selected; return whether."""
        if not UPDATES or p.size < (_LOOP_MIN_ELEMENTS if state else _STATELESS_MIN_ELEMENTS):
            return False
        if not (self._ELEMENTWISE and self._ALIKE):
            return False
        if (p.base is not None or g.base is not None) and np.may_share_memory(p, g):
            return False  # a loop may write what it has still to read
        names = [name for name, array in state.items() if array.ndim]

        def formula(xp: Any, arrays: Sequence[Array], numbers: Sequence[Any]) -> None:
            p, g, *kept = arrays
            self._apply(xp, p, g, dict(zip(names, kept, strict=True)), numbers, xp.empty_like(p))

        key = type(self)._apply, *names
        return UPDATES[0](key, formula, (p, g, *[state[name] for name in names]), numbers)

    def _apply_in_parts(self, p: Array, g: Array, state: State, numbers: Sequence[Any]) -> None:
        """Update a large parameter of NumPy's, in several threads where that is possible."""
        names = [name for name, array in state.items() if array.ndim]

        def fill(xp: Any, p: Array, g: Array, *arrays: Array) -> None:
            part = {**state, **dict(zip(names, arrays, strict=True))}
            self._apply(xp, p, g, part, numbers, xp.empty_like(p))

        arrays = (p, g, *[state[name] for name in names])
        smallest = _PARALLEL_MIN_ELEMENTS * (1 if names else 4)  # a few passes take less time
        parallel_fill(fill, numpy_xp, arrays, {}, by_rows=False, smallest=smallest)

    def _arrays(
        self, param: Tensor, names: Sequence[str], g: Array, options: Group
    ) -> tuple[State, bool]:
        """Return the state of a parameter, initialised where it is missing, and if it was."""
        kept, fresh = self.state[param], False
        arrays = {}
        for name in names:
            tensor = kept.get(name)
            if tensor is None:
                array = self._made(param, name, self._initial(name, param._array, g, options))
                fresh = True
            else:
                array = tensor._array
            arrays[name] = array
        return arrays, fresh

    def _load_value(self, value: Any, param: Tensor, name: str, options: Group) -> Any:
        if value is None or name not in self._state_names(options, param._array):
            return super()._load_value(value, param, name, options)
        expected = self._initial(name, param._array, param._array, options)
        array = array_of(value)  # older versions and other libraries save numbers, too
        if array.shape != expected.shape:
            raise ArgumentError(
                f"loaded state dict has a {name} of shape {list(array.shape)} for a parameter of "
                f"shape {list(param.shape)}, expected shape {list(expected.shape)}"
            )
        on_host = isinstance(expected, np.ndarray) and not expected.ndim
        if on_host and (param._array.ndim or param.device != CPU):
            return make(np.array(move(array, CPU), expected.dtype), None)
        return as_state(array, expected.dtype, param)


def options_in(arguments: Mapping[str, Any]) -> Group:
    """Return the options among the local variables of an `__init__`: its own arguments."""
    return {
        name: value
        for name, value in arguments.items()
        if name not in ("self", "params", "__class__")
    }


_PARALLEL_MIN_ELEMENTS = 1 << 17
"""Number of elements of a parameter from which a second thread pays, if it has a state."""

_LOOP_MIN_ELEMENTS, _STATELESS_MIN_ELEMENTS = 1 << 12, 1 << 16
"""Number of elements of a parameter from which machine code pays, with a state and without."""

_TITLES = {"lr": "learning rate", "eps": "epsilon value"}


# --- numbers --------------------------------------------------------------------------------------


def option_value(option: Any) -> Any:
    """Return an option as a Python number, or as a symbol if it is a traced tensor."""
    if option.__class__ is float:  # nearly always, and several times for each parameter
        return option
    if isinstance(option, Tensor) and not is_known(option._array):
        return option._array
    return as_float(option)


def state_value(array: Array) -> Any:
    """Return a state of shape () as a Python number, or as a symbol in a trace."""
    return array.item() if is_known(array) else array


def advance(step: Array) -> Any:
    """Count a step; return its number, or a symbol in a trace."""
    step += 1
    return state_value(step)


def _as_array(number: Any, dtype: Any) -> Any:
    """Return a float as an array, which NumPy takes in less time; None and bools as they are."""
    if isinstance(number, np.generic):
        return np.asarray(number)
    return np.array(number, dtype) if number.__class__ is float else number


_PLAIN = (float, bool, type(None))


def in_dtype_of(number: Any, array: Array) -> Any:
    """Return a number that preserves the dtype of `array` in arithmetic."""
    if number.__class__ in _PLAIN or isinstance(number, NumberProxy) or number.dtype.kind == "b":
        return number
    return number.astype(real_dtype(array.dtype), copy=False)


# --- moving averages ------------------------------------------------------------------------------


def weights(beta: Any) -> tuple[Any, Any]:
    """Return the weights of the mean so far and of the new value: β and 1 - β."""
    return beta, 1 - beta


def average(xp: Any, m: Array, x: Array, old: Any, new: Any, scratch: Array) -> None:
    """Update an exponential moving average: m ← β m + (1 - β) x."""
    xp.multiply(x, new, out=scratch)
    m *= old
    m += scratch


def average_squares(xp: Any, v: Array, x: Array, old: Any, new: Any, scratch: Array) -> None:
    """Update an exponential moving average of squares: v ← β v + (1 - β) x²."""
    xp.multiply(x, x, out=scratch)
    scratch *= new
    v *= old
    v += scratch
