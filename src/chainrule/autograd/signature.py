"""Functions written as source: a custom function's signature without `ctx`."""

from __future__ import annotations

import functools
import inspect
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
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in (_KEYWORD_ONLY, _VAR_KEYWORD, _VAR_POSITIONAL):
        raise TypeError(f"the forward of {spec.name} must take ctx as its first argument")
    parameters = parameters[1:]
    by_kind = {
        kind: [p.name for p in parameters if p.kind is kind]
        for kind in {p.kind for p in parameters}
    }
    plain = [p.name for p in parameters if p.kind < _VAR_POSITIONAL]
    keyword = by_kind.get(_KEYWORD_ONLY, [])
    rest = by_kind.get(_VAR_POSITIONAL, [])
    others = by_kind.get(_VAR_KEYWORD, [])
    values = ", ".join(
        [*plain, *(f"*{n}" for n in rest), *keyword, *(f"*{n}.values()" for n in others)]
    )
    names, positional = "_names", str(len(plain))
    if rest or others:
        parts = [f"*{plain!r}", *(f"*_numbered({n!r}, {n})" for n in rest), f"*{keyword!r}"]
        names = f"({', '.join([*parts, *(f'*{n}' for n in others)])},)"
        positional += "".join(f" + len({n})" for n in rest)
    title = spec.name if spec.name.isidentifier() else "function"
    scope = {f"_{i}": p.default for i, p in enumerate(parameters)}
    scope |= {"_names": (*plain, *keyword), "_apply": spec.apply, "_numbered": _numbered}
    source = (
        f"def {title}({_spelled(parameters)}):\n"
        f"    return _apply(({values}{', ' if values else ''}), {names}, {positional})\n"
    )
    filename = f"<binder of {spec.name}>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function: Any = scope[title]
    functools.update_wrapper(
        function, spec.forward, assigned=("__doc__", "__module__", "__qualname__"), updated=()
    )
    del function.__wrapped__
    function.__signature__ = signature.replace(parameters=parameters)
    function.spec, function.check = spec, spec.check
    function.backward, function.jvp = spec.backward, spec.jvp
    return function  # type: ignore[no-any-return]


_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


def _spelled(parameters: list[inspect.Parameter]) -> str:
    """Return parameters as source, the default of the i-th being the variable _i."""
    texts: list[str] = []
    stars: dict[Any, str] = {_VAR_POSITIONAL: "*", _VAR_KEYWORD: "**"}
    for i, p in enumerate(parameters):
        if p.kind is _KEYWORD_ONLY and not any(text.startswith("*") for text in texts):
            texts.append("*")
        default = "" if p.default is p.empty else f"=_{i}"
        texts.append(f"{stars.get(p.kind, '')}{p.name}{default}")
        following = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
            texts.append("/")
    return ", ".join(texts)


def _numbered(name: str, values: tuple[Any, ...]) -> list[str]:
    return [f"{name}[{i}]" for i in range(len(values))]


def room(rule: Callable[..., Any]) -> int | None:
    """Return how many gradients a backward takes by position, None if any number."""
    parameters = list(inspect.signature(rule).parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
