"""Functions written as source: a custom function's signature without `ctx`."""

from __future__ import annotations

import inspect
import keyword
import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.autograd.function import AutogradFunction


def written(spec: AutogradFunction) -> Callable[..., Any]:
    """Return the function that users call: forward's signature without `ctx`, then `spec.apply`.

    It is written as source, so that Python itself sorts the arguments, and complains in its own
    words where they don't fit.
    """
    signature = inspect.signature(spec.forward)
    context, *parameters = signature.parameters.values() or (None,)
    if context is None or context.kind not in (
        context.POSITIONAL_ONLY,
        context.POSITIONAL_OR_KEYWORD,
    ):
        raise TypeError(f"the forward of {spec.name} must take ctx as its first argument")
    own = "_" * (1 + max((len(p.name) - len(p.name.lstrip("_")) for p in parameters), default=0))
    scope = {f"{own}{i}": p.default for i, p in enumerate(parameters)}
    values, names, positional, scope[f"{own}names"] = _sorted(parameters, own)
    scope |= {f"{own}apply": spec.apply, f"{own}numbered": _numbered}
    usable = spec.name.isidentifier() and not keyword.iskeyword(spec.name)
    title = spec.name if usable else "function"
    source = (
        f"def {title}({_spelled(parameters, own)}):\n"
        f"    return {own}apply(({values}), {names}, {positional})\n"
    )
    filename = f"<binder of {spec.name}>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function: Any = scope[title]
    function.__doc__ = getattr(spec.forward, "__doc__", None)
    function.__module__ = getattr(spec.forward, "__module__", __name__)
    function.__qualname__ = getattr(spec.forward, "__qualname__", spec.name)
    function.__signature__ = signature.replace(parameters=parameters)
    spec.known = frozenset(scope[f"{own}names"])
    function.spec, function.check = spec, spec.check
    function.backward, function.jvp = spec.backward, spec.jvp
    made: Callable[..., Any] = function
    return made


def _sorted(parameters: list[inspect.Parameter], own: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Return as source the values, their names, how many go by position; and the plain names.

    `own` begins the names that are ours, and no parameter's.
    """
    plain = [p.name for p in parameters if p.kind < p.VAR_POSITIONAL]
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    others = [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
    parts = [*plain, *(f"*{n}" for n in rest), *named, *(f"*{n}.values()" for n in others)]
    names = f"{own}names"
    if rest or others:
        several = [f"*{plain!r}", *(f"*{own}numbered({n!r}, {n})" for n in rest), f"*{named!r}"]
        names = f"({', '.join([*several, *(f'*{n}' for n in others)])},)"
    positional = " + ".join([str(len(plain)), *(f"len({n})" for n in rest)])
    return "".join(f"{part}, " for part in parts), names, positional, (*plain, *named)


def _spelled(parameters: list[inspect.Parameter], own: str) -> str:
    """Return parameters as source, the default of the i-th being the variable `own`i."""
    texts: list[str] = []
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(text.startswith("*") for text in texts):
            texts.append("*")
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        texts.append(f"{star}{p.name}" + ("" if p.default is p.empty else f"={own}{i}"))
        last = i + 1 == len(parameters) or parameters[i + 1].kind is not p.POSITIONAL_ONLY
        if p.kind is p.POSITIONAL_ONLY and last:
            texts.append("/")
    return ", ".join(texts)


def _numbered(name: str, values: tuple[Any, ...]) -> list[str]:
    return [f"{name}[{i}]" for i in range(len(values))]


def room(rule: Callable[..., Any]) -> int | None:
    """Return how many gradients a backward takes by position, None if any number."""
    parameters = list(inspect.signature(rule).parameters.values())
    if not parameters:
        name = getattr(rule, "__name__", type(rule).__name__)
        raise TypeError(
            f"the backward {name!r} takes no arguments, expected ctx and a gradient for each output"
        )
    if parameters[0].kind is not parameters[0].VAR_POSITIONAL:
        parameters = parameters[1:]  # ctx
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
