"""Binding of NumPy calls to functions of tensors, by the names of NumPy's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentTypeError
from chainrule.interop.operands import is_tracked, tensor_of, tensors_of
from chainrule.ops.ufuncs import argument_advice

Function = Callable[..., Any]

_NOT_GIVEN = np._NoValue

_APART = frozenset(
    {np.atleast_1d, np.atleast_2d, np.atleast_3d, np.meshgrid, np.broadcast_arrays}
    | {np.full_like, np.bincount, np.interp}
)
"""Functions whose operands keep their dtypes beside each other."""

_WEAK = frozenset(
    {np.where, np.clip, np.select, np.sum, np.prod, np.max, np.min, np.amax, np.amin}
    | {np.nan_to_num, np.choose, np.insert, np.pad, np.piecewise, np.trapezoid, np.gradient}
    | {np.put, np.place, np.putmask, np.put_along_axis, np.copyto, np.fill_diagonal}
    | {np.nansum, np.nanprod, np.nanmax, np.nanmin, np.histogram, np.linspace, np.logspace}
)
"""Functions where Python's numbers have no dtype of their own, as in NumPy's ufuncs."""
_VARIADIC, _KEYWORDS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class _Parameter(NamedTuple):
    """One of NumPy's parameters that our function takes."""

    name: str
    ours: str  # our keyword; "" to pass by position, "-" to drop: it has no effect here
    kind: str  # "operand": a tensor; "operands": a sequence of tensors; "setting": unchanged


class _Plan(NamedTuple):
    """What becomes of the arguments of calls that give the same ones, by position or name."""

    operands: list[int]  # numbers among the values, those by position first
    lists: list[int]  # of operands
    settings: list[int]
    by_position: list[int]
    by_name: list[tuple[str, int]]


class Rule:
    """A function of tensors that replaces one of NumPy's.

    The parameters it takes are given to `rule`, or by its own signature: those annotated `Tensor`
    or `Sequence[Tensor]` are converted to tensors. NumPy's other parameters raise an error unless
    they have NumPy's default.
    """

    def __init__(self, function: Function, ours: Function, takes: tuple[str, ...]) -> None:
        self.function = function
        self.ours = ours
        self.has_own_names = all([text.endswith("=-") for text in takes])
        self._takes = takes
        self._is_bound = False
        self._plans: dict[Any, _Plan | None] = {}  # by what is given; None where it takes more

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call our function with the arguments of NumPy's."""
        key = (len(args), *kwargs) if kwargs else len(args)
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._plans[key] = self._plan(len(args), kwargs)
        values = [*args, *kwargs.values()]
        if plan is None or any([value is _NOT_GIVEN for value in values]):
            return self._call(args, kwargs)
        if plan.lists or not all([isinstance(values[n], Tensor) for n in plan.operands]):
            self._convert(values, plan)
        for number in plan.settings:
            if isinstance(values[number], Tensor):
                return self._call(args, kwargs)
        before = [values[number] for number in plan.by_position]
        if not plan.by_name:
            return self.ours(*before)
        return self.ours(*before, **{name: values[number] for name, number in plan.by_name})

    def _plan(self, count: int, keywords: Iterable[str]) -> _Plan | None:
        """Return the plan for calls with so many arguments by position, and these by name."""
        if not self._is_bound:
            self._bind()
        names = [*self._names[:count], *keywords]
        has_more = count > len(self._names) or not self._taken.issuperset(names)
        if has_more or len(set(names)) < len(names):
            return None
        number_of = {name: number for number, name in enumerate(names)}
        given = [p for p in self._parameters if p.name in number_of]

        def numbers(of_kind: Iterable[str]) -> list[int]:
            return [number_of[name] for name in of_kind if name in number_of]

        return _Plan(
            numbers(self._operands),
            numbers(self._lists),
            numbers(self._settings),
            [number_of[p.name] for p in given if p.ours == ""],
            [(p.ours, number_of[p.name]) for p in given if p.ours not in ("", "-")],
        )

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call our function with any arguments."""
        given = dict(zip(self._names, args, strict=False))
        given.update(kwargs)
        rest = args[len(self._names) :]
        if not given.keys() <= self._taken:
            self._check_unsupported(given)
        given = {key: value for key, value in given.items() if value is not _NOT_GIVEN}
        rest = self._convert_operands(given, rest)
        for name in self._settings:
            value = given.get(name)
            if isinstance(value, Tensor) and is_tracked(value):
                raise ArgumentTypeError(
                    f"{name_of(self.function)} has no derivative rule for {name} in chainrule: "
                    f"pass {name}.item() or {name}.detach(), if no gradient is needed"
                )
        positional = [given.pop(name) for name in self._positional if name in given]
        for name, ours in self._renamed:
            if name in given:
                value = given.pop(name)
                if ours != "-":
                    given[ours] = value
        return self.ours(*positional, *rest, **given)

    def _convert_operands(self, given: dict[str, Any], rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Convert the operands in `given` and `rest` to tensors, all at once for their dtypes."""
        names = [name for name in self._operands if given.get(name) is not None]
        lists = {name: list(given[name]) for name in self._lists}
        values = [given[name] for name in names]
        for members in lists.values():
            values += members
        values += rest if self._rest == "operand" else ()
        tensors = iter(self._tensors_of(values))
        for name in names:
            given[name] = next(tensors)
        for name, members in lists.items():
            given[name] = [next(tensors) for _ in members]
        return tuple(tensors) if self._rest == "operand" else rest

    def _convert(self, values: list[Any], plan: _Plan) -> None:
        """Replace operands among the values by tensors, all at once for their dtypes."""
        numbers = [number for number in plan.operands if values[number] is not None]
        operands = [values[number] for number in numbers]
        lists = [list(values[number]) for number in plan.lists]
        for members in lists:
            operands += members
        tensors = iter(self._tensors_of(operands))
        for number in numbers:
            values[number] = next(tensors)
        for number, members in zip(plan.lists, lists, strict=True):
            values[number] = [next(tensors) for _ in members]

    def _tensors_of(self, operands: list[Any]) -> list[Tensor]:
        if self.function in _APART:
            return [tensor_of(operand) for operand in operands]
        return tensors_of(operands, weak=self.function in _WEAK)

    def _check_unsupported(self, given: dict[str, Any]) -> None:
        """Drop arguments that our function doesn't have; raise if they aren't NumPy's defaults."""
        refused = set()
        for key in given.keys() - self._taken:
            if key in self._numpy_signature:
                if not _is_default(given.pop(key), self._numpy_signature[key].default, key):
                    refused.add(key)
            elif not self._takes_more:
                refused.add(key)
        if refused:
            raise ArgumentTypeError(
                f"{name_of(self.function)} on a Tensor takes no "
                f"{', '.join(f'{key}=' for key in sorted(refused))} (it takes "
                f"{', '.join(self.taken())}). {argument_advice(refused)}".rstrip()
            )

    # --- binding of signatures --------------------------------------------------------------------

    def _bind(self) -> None:
        ours = inspect.signature(self.ours).parameters
        self._numpy_signature = _numpy_parameters(self.function, ours)
        positional_kinds = (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
        self._names = [p.name for p in self._numpy_signature.values() if p.kind in positional_kinds]
        kinds = {p.kind: _kind(p) for p in ours.values()}
        any_number = any([text.startswith("*") for text in self._takes])
        self._rest = "operand" if any_number else kinds.get(_VARIADIC, "")
        self._takes_more = _KEYWORDS in kinds
        found = list(map(_read, self._takes))
        if self.has_own_names:
            found += _read_signature(ours.values())
        self._parameters = [p for p in found if not p.name.startswith("*")]
        self._taken = {p.name for p in self._parameters}
        self._lists = [p.name for p in self._parameters if p.kind == "operands"]
        self._operands = [p.name for p in self._parameters if p.kind == "operand"]
        of_others = not self.has_own_names  # functions with own names record their settings
        self._settings = [p.name for p in self._parameters if of_others and p.kind == "setting"]
        self._positional = [p.name for p in self._parameters if p.ours == ""]
        self._renamed = [(p.name, p.ours) for p in self._parameters if p.ours not in ("", p.name)]
        self._is_bound = True

    def taken(self) -> list[str]:
        """Return the names of NumPy's parameters that the rule takes."""
        if not self._is_bound:
            self._bind()
        variadic = [f"*{p.name}" for p in self._numpy_signature.values() if p.kind is _VARIADIC]
        return [p.name for p in self._parameters] + variadic

    def refused(self) -> list[str]:
        """Return the names of NumPy's parameters that the rule doesn't take."""
        taken = {*self.taken(), "like"}  # NumPy has dispatched on like= and doesn't pass it on
        named = [
            p.name for p in self._numpy_signature.values() if p.kind not in (_VARIADIC, _KEYWORDS)
        ]
        return [name for name in named if name not in taken]


def rule(function: Function, ours: Function, *takes: str) -> Rule:
    """Return the rule that replaces NumPy's `function` by `ours`.

    Each of `takes` is one of NumPy's parameters: ``"a"`` an operand and ``"[arrays]"`` a sequence
    of operands by position, ``"axis="`` a setting by keyword, ``"ddof=correction"`` one with
    another name here, ``"kind=-"`` one without effect, and ``"*arrays"`` any number of operands.
    If there are none but those without effect, our function has NumPy's parameter names.
    """
    return Rule(function, ours, takes)


def _read(text: str) -> _Parameter:
    name, is_setting, ours = text.partition("=")
    if is_setting:
        return _Parameter(name, ours or name, "setting")
    if name.startswith("["):
        return _Parameter(name.strip("[]"), "", "operands")
    return _Parameter(name, "", "operand")


def _read_signature(parameters: Iterable[inspect.Parameter]) -> Iterator[_Parameter]:
    """Yield our function's parameters; those before *args are passed by position."""
    listed = list(parameters)
    kinds = [p.kind for p in listed]
    before = kinds.index(_VARIADIC) if _VARIADIC in kinds else 0
    for position, p in enumerate(listed):
        if p.kind not in (_VARIADIC, _KEYWORDS):
            yield _Parameter(p.name, "" if position < before else p.name, _kind(p))


def _kind(parameter: inspect.Parameter) -> str:
    annotation = str(parameter.annotation)
    if annotation.startswith("Sequence[Tensor]"):
        return "operands"
    return "operand" if annotation.startswith("Tensor") else "setting"


def _numpy_parameters(function: Function, ours: Any) -> Any:
    """Return NumPy's parameters; ours, which have the same names, where NumPy has no signature."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return ours


def _is_default(value: Any, default: Any, name: str) -> bool:
    if value is default or value is None or (name == "where" and value is True):
        return True
    return isinstance(value, bool | int | float | str) and bool(value == default)


def name_of(function: Any) -> str:
    """Return the qualified name of a function."""
    return f"{function.__module__}.{function.__name__}"
