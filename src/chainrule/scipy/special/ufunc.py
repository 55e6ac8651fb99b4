"""Declaration of the ufuncs of `scipy.special`: a name, the arguments, and the partial derivatives.

A partial is a rule as in `primitives.primitive`: it takes the namespace, and by name the arguments
and outputs that it needs. It calls other ufuncs as ``xp.special.…``: SciPy's for arrays, those
declared here for tensors, ops of a program for symbols. An argument without a partial has none,
and the reason is part of the error that asking for it raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from chainrule.arguments import Operand, cast
from chainrule.autograd.namespace import TensorNamespace
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import numpy_xp, promoted
from chainrule.errors import ArgumentTypeError, AutogradError, DTypeError
from chainrule.interop.operands import tensor_of
from chainrule.operation import SCIPY_UFUNCS, operation
from chainrule.primitives.primitive import Primitive, Rule, is_complex, parameters
from chainrule.primitives.shaping import broadcast_to

Array = Any
Row = tuple[Rule | None, ...]
Partial = Rule | Row

COUNTS = "it counts, so it is an integer"
NO_CLOSED_FORM = "no closed form is known"


@dataclass(frozen=True)
class Ufunc:
    """A declared ufunc: the arguments, the outputs, and what differentiates by what."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    partials: Mapping[str, Partial]
    reasons: Mapping[str, str]  # of the arguments without a partial
    holomorphic: bool  # complex arguments are accepted where SciPy accepts them
    constant: bool  # every derivative is zero
    double: bool  # computed in double precision
    kinds: tuple[str, ...]  # of a function that is no ufunc, the kinds of numbers that it takes
    primitive: Primitive = field(repr=False)


UFUNCS: dict[str, Ufunc] = {}
"""The ufuncs that are declared, by name."""


def ufunc(
    name: str,
    inputs: str,
    outputs: str = "out",
    *,
    integer: str = "",
    reasons: Mapping[str, str] | None = None,
    holomorphic: bool = True,
    constant: bool = False,
    real: bool = False,
    double: bool = False,
    kinds: tuple[str, ...] = (),
    forward: Rule | None = None,
    given: Mapping[str, Partial] = MappingProxyType({}),
    **partials: Partial,
) -> Callable[..., Any]:
    """Declare a ufunc, and return its function of tensors.

    Parameters
    ----------
    name : str
        Its name in `scipy.special`.
    inputs, outputs : str
        Names of the arguments and of the outputs, separated by spaces.
    integer : str
        Names of the arguments that count, and so have no derivative.
    reasons : mapping of str to str
        Why other arguments have none: by default, since no closed form is known.
    holomorphic : bool
        Whether the partials hold for complex numbers, too.
    constant : bool
        Whether the function is piecewise constant.
    real : bool
        Whether several complex outputs have real arguments: their gradient is the real part.
    double : bool
        Whether to compute in double precision, since SciPy's loop for single precision fails.
    kinds : tuple of str
        The kinds of numbers that SciPy takes for each argument, "f", "c" or "fc": of a function
        that is Python's, for an ufunc that isn't public.
    forward : Rule
        The function, if it isn't SciPy's of that name.
    given, **partials
        Partial derivatives by argument; of several outputs, a tuple with None where it is zero.
    """
    partials = {**given, **partials}
    if reserved := {"g", "t", "needs", "shapes"} & {*inputs.split(), *outputs.split()}:
        raise ValueError(f"{name}: rules call other things {', '.join(reserved)}: rename")
    names, outs = tuple(inputs.split()), tuple(outputs.split())
    why = dict.fromkeys(names, NO_CLOSED_FORM) | dict.fromkeys(integer.split(), COUNTS)
    why = {x: reason for x, reason in (why | dict(reasons or {})).items() if x not in partials}
    found = {x: partials[x] if x in partials else refusal(name, x, why[x]) for x in names}

    def of_namespace(xp: Any, *arrays: Array) -> Any:
        return getattr(xp.special, name)(*arrays)

    run, label = forward or of_namespace, f"special_{name}"
    if constant:
        primitive = Primitive(label, run, (), (), ())
    elif len(outs) == 1:
        rules: Any = tuple([found[x] for x in names])
        primitive = Primitive(label, run, names, rules, rules, scales=True)
    else:
        primitive = _of_several_outputs(label, run, names, outs, found, real)
    declared = Ufunc(
        name,
        names,
        outs,
        partials,
        {} if constant else why,
        holomorphic,
        constant,
        double,
        kinds,
        primitive,
    )
    UFUNCS[name] = declared
    function = _function(declared)
    operation(method=False, scipy=name)(function)
    return function


def refusal(name: str, argument: str, reason: str) -> Rule:
    """Return the rule of an argument that has no derivative: it raises."""

    def rule(xp: Any) -> NoReturn:
        raise AutogradError(
            f"scipy.special.{name} has no derivative with respect to {argument}: {reason}. Pass "
            f"{argument}.detach() if it is to count as constant, or give {name} a derivative of "
            "your own with autograd_function"
        )

    return rule


def with_parameters(names: tuple[str, ...], function: Callable[..., Any], *first: str) -> Rule:
    """Return a rule with these parameters, which calls a function of them by name."""
    given = [*first, *names]
    keywords = ", ".join(f"{name}={name}" for name in given)
    rule: Rule = eval(
        f"lambda {', '.join(['xp', *given])}: call(xp, {keywords})", {"call": function}
    )
    return rule


def call_partial(rule: Rule, xp: Any, values: Mapping[str, Array]) -> Array:
    """Return a partial, given all arguments and outputs by name."""
    return rule(xp, *[values[name] for name in parameters(rule)[0]])


# --- several outputs ------------------------------------------------------------------------------


def _of_several_outputs(
    name: str,
    forward: Rule,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    partials: Mapping[str, Partial],
    real: bool,
) -> Primitive:
    """Make the primitive of a ufunc with several outputs, whose operands have one shape."""
    rows = {x: p if isinstance(p, tuple) else (p,) * len(outputs) for x, p in partials.items()}
    rules = [rule for row in rows.values() for rule in row if rule is not None]
    used = tuple(dict.fromkeys(name for rule in rules for name in parameters(rule)[0]))

    def vjp(xp: Any, g: Any, needs: tuple[bool, ...], **values: Array) -> tuple[Array | None, ...]:
        return tuple(
            [
                _cotangent(xp, g, rows[x], values, real) if need else None
                for x, need in zip(inputs, needs, strict=True)
            ]
        )

    def jvp(xp: Any, t: tuple[Array | None, ...], **values: Array) -> tuple[Array, ...]:
        given = [
            (rows[x], tangent) for x, tangent in zip(inputs, t, strict=True) if tangent is not None
        ]
        found = []
        for k in range(len(outputs)):
            parts = [
                tangent * call_partial(rule, xp, values)
                for row, tangent in given
                if (rule := row[k]) is not None
            ]
            found.append(sum(parts[1:], parts[0]) if parts else xp.zeros_like(given[0][1]))
        return tuple(found)

    return Primitive(
        name,
        forward,
        inputs,
        with_parameters(used, vjp, "g", "needs"),
        with_parameters(used, jvp, "t"),
        broadcasts=False,
        outputs=outputs,
    )


def _cotangent(xp: Any, g: Any, row: Row, values: Mapping[str, Array], real: bool) -> Array:
    total = None
    for k, part in g.items():
        if (rule := row[k]) is None:
            term = xp.zeros_like(part)
        else:
            term = part * call_partial(rule, xp, values)
        total = term if total is None else total + term
    return xp.real(total) if real and is_complex(total) else total


# --- functions that are inverted ------------------------------------------------------------------


def inverse(
    name: str,
    inputs: str,
    *,
    solves: str,
    of: Mapping[str, Rule],
    integer: str = "",
    **options: Any,
) -> Callable[..., Any]:
    """Declare the inverse of a function F, by the implicit function theorem.

    `solves` names the argument of F that the ufunc solves for, and `of` has the known partials of
    F. The argument that F doesn't have is the value of F.
    """
    names = tuple(inputs.split())
    known = {x for rule in of.values() for x in parameters(rule)[0]} | of.keys()
    (value,) = [x for x in names if x not in known and x not in integer.split()]

    def partial(x: str) -> Rule:
        def rule(xp: Any, **values: Array) -> Array:
            given = {**values, solves: values["out"], "out": values[value]}
            slope = call_partial(of[solves], xp, given)
            return 1 / slope if x == value else -call_partial(of[x], xp, given) / slope

        return with_parameters((*names, "out"), rule)

    rules: dict[str, Partial] = {x: partial(x) for x in names if x == value or x in of}
    return ufunc(name, inputs, integer=integer, given=rules, **options)


# --- functions of tensors -------------------------------------------------------------------------


def _function(declared: Ufunc) -> Callable[..., Any]:
    """Return the public function: SciPy's for arrays and numbers, recorded for tensors."""
    name, apply, count = declared.name, declared.primitive.apply, len(declared.inputs)
    several = len(declared.outputs) > 1
    spread = several and count > 1

    def function(*operands: Operand, **settings: Any) -> Any:
        if settings or len(operands) != count:
            _refuse_call(declared, operands, settings)
        tensors = _operands(declared, operands)
        narrow = tensors[-1]._array.dtype
        wide = np.float64 if declared.double else np.float32
        if widened := narrow.kind == "f" and narrow.itemsize < np.dtype(wide).itemsize:
            tensors = [cast(t, wide) for t in tensors]
        if spread:
            shape = np.broadcast_shapes(*[t.shape for t in tensors])
            tensors = [
                t if t.shape == shape else broadcast_to.apply(t, shape=shape) for t in tensors
            ]
        result = apply(*tensors)
        if not widened:
            return result
        parts = [
            cast(t, narrow) if t._array.dtype.kind == "f" else t
            for t in (result if several else (result,))
        ]
        return tuple(parts) if several else parts[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _docstring(declared)
    return function


def _docstring(declared: Ufunc) -> str:
    known = "all derivatives are 0" if declared.constant else ", ".join(declared.partials) or "none"
    lines = [
        f"`scipy.special.{declared.name}({', '.join(declared.inputs)})` of tensors.",
        "",
        f"Derivatives: {known}.",
        *[f"No derivative with respect to {x}: {why}." for x, why in declared.reasons.items()],
    ]
    return "\n".join(lines)


def _refuse_call(declared: Ufunc, operands: tuple[Any, ...], settings: dict[str, Any]) -> NoReturn:
    signature = f"{declared.name}({', '.join(declared.inputs)})"
    if settings:
        raise ArgumentTypeError(
            f"scipy.special.{signature} of tensors takes no {', '.join(sorted(settings))}: "
            "leave it out, and convert or choose in the result"
        )
    raise ArgumentTypeError(
        f"scipy.special.{signature}: expected {len(declared.inputs)} arguments, got {len(operands)}"
    )


@functools.cache
def _kinds(name: str) -> tuple[str, ...]:
    """Return the kinds that SciPy takes for each argument: "f", "c" or "fc"."""
    types = [t.partition("->")[0] for t in getattr(numpy_xp.special, name).types]
    columns = zip(*types, strict=True)
    return tuple(
        [
            ("f" if set(c) & set("fdlg") else "") + ("c" if set(c) & set("FD") else "")
            for c in columns
        ]
    )


def _operands(declared: Ufunc, operands: tuple[Operand, ...]) -> list[Tensor]:
    """Return the operands as tensors of the promoted dtype, real or complex as SciPy takes them."""
    lists = [tensor_of(x) if isinstance(x, list | tuple) else x for x in operands]
    tensors = as_tensors(lists)
    dtype = functools.reduce(promoted, [t._array.dtype for t in tensors])
    if dtype.kind not in "fc":
        dtype = default_dtype()
    kinds = declared.kinds or _kinds(declared.name)
    real = np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype
    converted = []
    for x, t, kind, given in zip(declared.inputs, tensors, kinds, operands, strict=True):
        wanted = real
        if (
            t._array.dtype.kind == "c"
            and "c" not in kind
            and not isinstance(given, Tensor | complex)
        ):
            t = as_tensors((np.asarray(given, real),))[0]  # a number took the dtype of the others
        if t._array.dtype.kind == "c":
            if "c" not in kind or not declared.holomorphic:
                raise DTypeError(
                    f"scipy.special.{declared.name}: expected real numbers for {x}, got {t.dtype}, "
                    "for which it is not implemented. Take the real part, or the absolute value, "
                    "first"
                )
            wanted = dtype
        elif kind == "c":
            wanted = np.dtype("F" if real.itemsize <= 4 else "D")
        converted.append(t if t._array.dtype == wanted else cast(t, wanted))
    return converted


# --- the namespace of tensors ---------------------------------------------------------------------


class _TensorFunctions:
    """The special functions of tensors, for rules that are recorded themselves."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in SCIPY_UFUNCS:
            raise AttributeError(name)
        function = self.__dict__[name] = SCIPY_UFUNCS[name]
        return function


TensorNamespace.special = _TensorFunctions()
