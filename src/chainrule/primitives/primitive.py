"""Primitives: each a name, a forward function and its two derivative rules.

A rule is a function of arrays and of the namespace `xp` that it computes with, so one rule runs
on NumPy arrays, on CuPy arrays, on tensors (derivatives of derivatives), on a compiler's symbols.
The names of a rule's parameters say what it needs, and only that is saved:

* ``g``: the cotangent of the output (in a vjp), ``t``: the tangent of the input (in a jvp); of a
  `symmetric` primitive, ``g`` is either;
* an input's name, or ``out``: that array; of several outputs, which then have names: an output's;
* an input's name with ``_shape``, ``_dtype`` or ``_ndim``: that alone, which keeps no array alive;
* an input's name with ``_transposed``: whether it is a large matrix in Fortran order, of NumPy's or
  CuPy's: of a compiler's symbols, no size is read;
* ``shapes``: the shapes of all inputs; ``needs``: which of them require grad (for a rule of all);
* keyword-only parameters: settings of the operation.

Cotangents are those of the bilinear pairing Σ g·t, without conjugation: so a holomorphic rule reads
the same for real and complex numbers. The engine conjugates where a gradient enters or leaves
(DESIGN 5; JAX computes this way too), which gives users PyTorch's ∂L/∂z*.
"""

from __future__ import annotations

import functools
import linecache
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor

Array = Any
Rule = Callable[..., Any]
Form = Literal["unary", "binary", "reduction", "permutation", "transfer", "any"]


class Traits(TypedDict, total=False):
    """What the engine and the compiler ask of a primitive, instead of knowing it by name."""

    form: Form
    """Form of its calls, for which there is a specialised recorder:

    - "unary": one tensor, and settings; the default where there is one input.
    - "binary": two tensors or numbers, which are promoted to one dtype, and no settings.
    - "reduction": one tensor, and the settings `axis` and `keepdims`.
    - "permutation": one tensor, and the setting `axes`.
    - "transfer": one tensor, and settings; the result is on another device.
    - "any": all else.
    """

    native: Literal["memory", "compute"]
    """A fused native loop pays for large eager arrays: "memory" if NumPy needs a single call for
    the value, which is bound by memory traffic, "compute" if it needs more."""

    in_parts: bool
    """A formula of one array's elements, of several calls of NumPy: large arrays are computed in
    parts, by several threads."""

    steps: bool
    """Piecewise constant: its derivative is zero, so numbers taken from it lose no gradient."""

    libm: bool
    """A function of the C math library: compiled loops call it for small arrays."""

    series: Literal["product", "quotient", "solution"]
    """How Taylor series go through it, where not term by term or by its forward rule:

    - "product": linear in each of its two inputs.
    - "quotient": of its two inputs.
    - "solution": of the linear system whose matrix and right side its first two inputs are.
    """

    part: Literal["read", "write"]
    """It reads the part of its input at the setting `key`, or writes to the one at `path`: a pass
    through it reads and writes this part alone, where it may."""


TABLE: dict[str, Primitive] = {}
"""Every primitive by name; the conformance table must cover all of them."""

_CALLBACKS: list[Callable[[Primitive], None]] = []


def for_each_primitive(callback: Callable[[Primitive], None]) -> None:
    """Call `callback` with each primitive: those made so far, and later ones as they are made."""
    _CALLBACKS.append(callback)
    for primitive in TABLE.values():
        callback(primitive)


class Primitive:
    """An operation that has derivative rules: made by one of the makers below.

    `apply` is the function of tensors that applies and records it: the engine sets it. It returns
    a tuple if the primitive has several outputs. `apply_carried` is the one of tensors of the class
    `carried`, for which results have this class.
    """

    apply: Callable[..., Tensor]
    apply_carried: Callable[..., Tensor]

    __slots__ = (
        "_plans",
        "apply",
        "apply_carried",
        "broadcasts",
        "differentiable",
        "form",
        "forward",
        "in_parts",
        "inputs",
        "joint",
        "jvp",
        "label",
        "libm",
        "multiple",
        "name",
        "native",
        "outputs",
        "part",
        "scales",
        "series",
        "settings",
        "steps",
        "substitute",
        "vjp",
        "view",
    )

    def __init__(
        self,
        name: str,
        forward: Rule | None,
        inputs: tuple[str, ...],
        vjp: tuple[Rule | None, ...] | Rule,
        jvp: tuple[Rule | None, ...] | Rule | None,
        *,
        label: str | None = None,
        broadcasts: bool = True,
        scales: bool = False,
        view: bool = False,
        multiple: bool = False,
        outputs: tuple[str, ...] = ("out",),
        **traits: Unpack[Traits],
    ) -> None:
        self.name = name
        self.forward = forward
        self.inputs = inputs
        self.vjp = () if callable(vjp) else vjp
        self.joint = vjp if callable(vjp) else None
        self.jvp = jvp
        self.differentiable = bool(vjp)
        self.broadcasts = broadcasts
        self.scales = scales
        self.settings = parameters(forward)[1] if forward else ()
        self.label = label or _camel(name) + "Backward0"
        self.view = view
        self.outputs = outputs
        self.multiple = multiple or len(outputs) > 1
        plain = not (self.joint or self.multiple)
        self.form = traits.get("form") or ("unary" if plain and len(inputs) == 1 else "any")
        self.native = traits.get("native")
        self.in_parts = traits.get("in_parts", False)
        self.libm = traits.get("libm", False)
        self.steps = traits.get("steps", False)
        self.series = traits.get("series")
        self.part = traits.get("part")
        self.substitute: Substitute | None = None
        self._plans: dict[tuple[bool, ...], Plan] = {}
        if name in TABLE:
            raise ValueError(f"there is a primitive named {name!r} already")
        TABLE[name] = self
        for callback in _CALLBACKS:
            callback(self)

    def plan(self, needs: tuple[bool, ...]) -> Plan:
        """Return how to differentiate an application where just these inputs require grad."""
        plan = self._plans.get(needs)
        if plan is None:
            plan = self._plans[needs] = Plan(self, needs)
        return plan

    @property
    def known_plans(self) -> dict[tuple[bool, ...], Plan]:
        """The plans made so far, by the inputs that require grad."""
        return self._plans

    def plans(self) -> list[Plan]:
        """Return the plans made so far, for all choices of inputs that occurred."""
        return list(self._plans.values())

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


class Substitute(Protocol):
    """Replacement of a primitive's functions for NumPy arrays, such as compiled kernels."""

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is the primitive's own."""

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan, which gets arrays of other namespaces, too."""


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def parameters(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a rule's positional parameters after `xp`, and its keyword-only ones."""
    code = rule.__code__
    names, count = code.co_varnames, code.co_argcount
    return names[1:count], names[count : count + code.co_kwonlyargcount]


PARTS_MIN_ELEMENTS = 1 << 18
"""Number of elements from which a formula of several calls of NumPy is computed in parts."""

_ORDER_MIN_ELEMENTS = 1 << 12
"""Number of elements of a matrix from which its order in memory matters."""


def _is_transposed(x: Array) -> bool:
    return x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous


class Plan:
    """Derivatives of one primitive for one choice of inputs: values to save, functions to call."""

    __slots__ = ("holds", "needs", "origins", "part", "pick", "primitive", "vjp", "saves")

    def __init__(self, primitive: Primitive, needs: tuple[bool, ...]) -> None:
        self.primitive = primitive
        self.part = primitive.part
        self.needs = needs
        joint, inputs = primitive.joint, primitive.inputs
        wanted = [joint] if joint else [r for r, n in zip(primitive.vjp, needs, strict=True) if n]
        self.saves = tuple(
            dict.fromkeys(
                name
                for rule in wanted
                if rule is not None
                for name in parameters(rule)[0]
                if name not in ("g", "needs")
            )
        )
        # Origin of each saved value: an input's position, -1 - i for output i, None if it is no
        # array. Shapes and dtypes outlive a pass: only arrays are released (SEMANTICS 17).
        positions = {name: -1 - i for i, name in enumerate(primitive.outputs)}
        positions.update({name: i for i, name in enumerate(inputs)})
        self.origins = tuple(map(positions.get, self.saves))
        self.holds = any(origin is not None for origin in self.origins)
        self.pick: Callable[..., tuple[Any, ...]] = self._first_pick
        self.vjp: Callable[..., tuple[Any, ...]] = self._first_vjp

    def _first_pick(self, *arguments: Any) -> tuple[Any, ...]:
        self.pick = self._picker()
        return self.pick(*arguments)

    def _picker(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of the output and the inputs that picks the values to save."""
        primitive = self.primitive

        def spelled(name: str, origin: int | None) -> str:
            if origin is None:
                stem, _, aspect = name.rpartition("_")
                if aspect == "transposed":
                    is_array = f"{stem}.__class__.__name__ == 'ndarray'"  # no symbol
                    large = f"{stem}.size >= {_ORDER_MIN_ELEMENTS}"
                    return f"{is_array} and {large} and _is_transposed({stem})"
                return f"{stem}.{aspect}" if stem else "tuple([a.shape for a in arrays])"
            return name if origin >= 0 else f"out[{~origin}]" if primitive.multiple else "out"

        parts = [spelled(*pair) + ", " for pair in zip(self.saves, self.origins, strict=True)]
        inputs = "*arrays" if "shapes" in self.saves else ", ".join(primitive.inputs) or "*_"
        picker: Callable[..., tuple[Any, ...]] = eval(f"lambda out, {inputs}: ({''.join(parts)})")
        return picker

    def _first_vjp(self, *arguments: Any) -> tuple[Any, ...]:
        vjp = self._compile()  # compiled at the first use only
        substitute = self.primitive.substitute
        self.vjp = vjp if substitute is None else substitute.vjp(self, vjp)
        return self.vjp(*arguments)

    def renew(self) -> None:
        """Compile the VJP again at its next use: the substitute has changed."""
        self.vjp = self._first_vjp

    def _compile(self) -> Callable[[Any, Any, tuple[Any, ...], Any], tuple[Any, ...]]:
        """Compile the call of the rules from source, so that a pass looks up no arguments."""
        primitive = self.primitive
        scope: dict[str, Any] = {"needs": self.needs}

        def call(name: str, rule: Rule) -> str:
            scope[name] = rule
            values, settings = parameters(rule)
            optional = rule.__kwdefaults__ or {}
            keywords = [
                f"{key}=settings.get({key!r})" if key in optional else f"{key}=settings[{key!r}]"
                for key in settings
            ]
            return f"{name}({', '.join(['xp', *values, *keywords])})"

        times = "g * " if primitive.scales else ""
        in_parts = ""
        rule = primitive.vjp[0] if primitive.in_parts else None
        if rule is not None:
            result = f"({times}{call('rule', rule)},)"
            values, names = parameters(rule)
            chosen = ", ".join([f"{name!r}: settings[{name!r}]" for name in names])
            in_parts = (
                f"    if xp.rule_kernels is not None and g.size >= {PARTS_MIN_ELEMENTS}:\n"
                f"        product = xp.rule_kernels['formula_in_parts']\n"
                f"        return (product(xp, rule, ({', '.join(values)},), {{{chosen}}}, g),)\n"
            )
        elif primitive.joint:
            result = call("rule", primitive.joint)
        else:
            parts = [
                times + call(f"rule_{name}", rule) if need and rule is not None else "None"
                for name, rule, need in zip(
                    primitive.inputs, primitive.vjp, self.needs, strict=True
                )
            ]
            result = f"({', '.join(parts)},)"
        unpack = f"    {', '.join(self.saves)}, = saved\n" if self.saves else ""
        source = f"def vjp(xp, g, saved, settings):\n{unpack}{in_parts}    return {result}\n"
        filename = f"<vjp of {primitive.name} {self.needs}>"
        exec(compile(source, filename, "exec"), scope)
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        vjp: Callable[[Any, Any, tuple[Any, ...], Any], tuple[Any, ...]] = scope["vjp"]
        return vjp

    def jvp(self, xp: Any, tangents: tuple[Any, ...], saved: tuple[Any, ...], settings: Any) -> Any:
        """Return the output's tangent; None entries of `tangents` are zero.

        Forward mode needs the same saved values for an input as reverse mode.
        """
        values = dict(zip(self.saves, saved, strict=True))
        jvp, scales = self.primitive.jvp, self.primitive.scales

        def call(rule: Rule, t: Any) -> Any:
            names, keys = parameters(rule)
            values["t"] = values["g"] = t
            arguments = [values[name] for name in names]
            value = rule(xp, *arguments, **{key: settings[key] for key in keys})
            return t * value if scales else value

        if jvp is None:
            return applied(self.primitive, xp)(*tangents, **(settings or {}))
        if callable(jvp):
            return call(jvp, tangents)
        parts = [
            call(rule, t)
            for rule, t in zip(jvp, tangents, strict=True)
            if t is not None and rule is not None
        ]
        return functools.reduce(operator.add, parts)


def forward_of(primitive: Primitive, xp: Any) -> Callable[..., Any]:
    """Return the primitive's forward function for arrays of the namespace `xp`."""
    if primitive.forward is None:
        forward: Callable[..., Any] = getattr(xp, primitive.name)
        return forward
    return functools.partial(primitive.forward, xp)


def in_parts_of(primitive: Primitive, xp: Any) -> Callable[..., Any]:
    """Return the forward function for NumPy's namespace, with parts of large arrays."""
    names = primitive.settings
    taken = "".join([f", {name}" for name in names])
    given = "".join([f", {name}={name}" for name in names])
    chosen = ", ".join([f"{name!r}: {name}" for name in names])
    forward: Callable[..., Any] = eval(  # a function with ** takes 0.15 µs more
        f"lambda x{', *' if names else ''}{taken}: formula(xp, x{given}) "
        f"if x.size < {PARTS_MIN_ELEMENTS} "
        f"else xp.rule_kernels['formula_in_parts'](xp, formula, (x,), {{{chosen}}})",
        {"formula": primitive.forward, "xp": xp},
    )
    return forward


def applied(primitive: Primitive, xp: Any) -> Callable[..., Any]:
    """Return the primitive as a function for rules to call; of tensors, it records one node."""
    return primitive.apply if getattr(xp, "records", False) else forward_of(primitive, xp)


def name_of(dtype: Any) -> str:
    """Return the name of a dtype of any library, whatever the order of its bytes."""
    return str(getattr(dtype, "name", dtype))


def is_complex(x: Array) -> bool:
    """Tell whether an array of any library is complex."""
    return x.dtype.kind == "c" if hasattr(x.dtype, "kind") else "complex" in str(x.dtype)


def use_kernel(formula: Rule) -> Rule:
    """Let a namespace compute a formula of real numbers by its kernel of the same name, if any."""
    return _use_kernel(formula, 0)


def use_kernel_for_many(formula: Rule) -> Rule:
    """Let a namespace do so from the size on at which several threads pay."""
    return _use_kernel(formula, PARTS_MIN_ELEMENTS)


def _use_kernel(formula: Rule, min_size: int) -> Rule:
    name = formula.__name__.lstrip("_")

    @functools.wraps(formula)
    def function(xp: Any, x: Array, *others: Array, **settings: Any) -> Array:
        if xp.rule_kernels is not None and x.size >= min_size and x.dtype.char in "fd":
            return xp.rule_kernels[name](x, *others, **settings)
        return formula(xp, x, *others, **settings)

    return function


# --- makers of primitives -------------------------------------------------------------------------


def elementwise(
    name: str,
    *partials: Rule,
    forward: Rule | None = None,
    label: str | None = None,
    **traits: Unpack[Traits],
) -> Primitive:
    """Make an elementwise primitive from its partial derivatives, one for each input.

    Without `forward` it is the namespace's function of the same name. Both modes multiply by the
    partial.
    """
    inputs = parameters(forward)[0] if forward else _INPUT_NAMES[: len(partials)]
    return Primitive(name, forward, inputs, partials, partials, label=label, scales=True, **traits)


_INPUT_NAMES = ("x", "y", "z")


def linear(
    name: str,
    adjoint: Rule,
    *,
    forward: Rule | None = None,
    label: str | None = None,
    view: bool = False,
    joint: bool = False,
    multiple: bool = False,
    **traits: Unpack[Traits],
) -> Primitive:
    """Make a linear primitive from its adjoint. Its jvp is its forward function.

    For several inputs the adjoint is one function that returns a cotangent for each.
    """
    inputs = () if joint else ("x",)
    vjp = adjoint if joint else (adjoint,)
    return Primitive(
        name,
        forward,
        inputs,
        vjp,
        None,
        label=label,
        broadcasts=False,
        view=view,
        multiple=multiple,
        **traits,
    )


def symmetric(
    name: str,
    *rules: Rule | None,
    forward: Rule | None = None,
    label: str | None = None,
    **traits: Unpack[Traits],
) -> Primitive:
    """Make a primitive whose Jacobian is symmetric, as that of an elementwise function is.

    So one rule for each input is both its vjp and its jvp.
    """
    return general(name, forward, vjp=rules, jvp=rules, label=label, **traits)


def general(
    name: str,
    forward: Rule | None,
    *,
    vjp: tuple[Rule | None, ...] | Rule,
    jvp: tuple[Rule | None, ...] | Rule | None,
    label: str | None = None,
    broadcasts: bool = True,
    outputs: tuple[str, ...] = ("out",),
    **traits: Unpack[Traits],
) -> Primitive:
    """Make a primitive from both of its rules: one per input, or one function for all of them.

    With several `outputs`, a vjp gets a dict of the nonzero cotangents by output number, and a jvp
    returns a tuple.
    """
    if forward is not None:
        inputs = parameters(forward)[0]
    else:
        inputs = () if callable(vjp) else _INPUT_NAMES[: len(vjp)]
    return Primitive(
        name,
        forward,
        inputs,
        vjp,
        jvp,
        label=label,
        broadcasts=broadcasts,
        outputs=outputs,
        **traits,
    )


def constant(name: str, *, forward: Rule | None = None) -> Primitive:
    """Make a primitive without derivative: its output is of integers, or piecewise constant."""
    return Primitive(name, forward, (), (), ())
