"""Rules of users' functions: `primitive`, `defvjp`, `defjvp`, and vector spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import count
from typing import Any

from chainrule.compat.autograd.tracer import Box, notrace_primitive, primitive, rules_of
from chainrule.compat.autograd.util import subval
from chainrule.compat.autograd.vector_space import VSpace, vspace
from chainrule.errors import ArgumentTypeError, MissingRuleError

__all__ = [
    "Box",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "vspace",
]

# --- reverse mode ---------------------------------------------------------------------------------


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give a primitive its reverse rule, for all arguments at once.

    Parameters
    ----------
    fun : callable
        A function made by `primitive`.
    vjpmaker : callable
        Called as ``vjpmaker(argnums, ans, args, kwargs)``; returns a function of the cotangent of
        the result, which returns those of the arguments `argnums`.
    """
    rules_of(fun).vjp = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give a primitive its reverse rule, ``vjpmaker(argnum, ans, args, kwargs)(g)``."""

    def for_argnums(argnums: Sequence[int], *call: Any) -> Callable[[Any], list[Any]]:
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, for_argnums)


def defvjp(fun: Any, *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a primitive its reverse rules.

    Parameters
    ----------
    fun : callable
        A function made by `primitive`.
    *vjpmakers : callable or None
        One for each argument: ``vjpmaker(ans, *args, **kwargs)`` returns a function of the
        cotangent of the result. None stands for zeros.
    argnums : sequence of int, optional
        The positions of the arguments, by default 0, 1, 2 and so on.

    Notes
    -----
    What a rule computes is recorded where a higher derivative needs it. Of complex arguments, it
    returns gᵀJ, without conjugation.
    """
    makers = _by_argnum(fun, "VJP", argnums, vjpmakers)

    def of_argument(argnum: int, ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        maker = _maker(fun, "VJP", makers, argnum)
        if maker is None:
            return lambda g: vspace(args[argnum]).zeros()
        vjp: Callable[[Any], Any] = maker(ans, *args, **kwargs)
        return vjp

    defvjp_argnum(fun, of_argument)


# --- forward mode ---------------------------------------------------------------------------------


def defjvp_argnums(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Give a primitive its forward rule, ``jvpmaker(argnums, gs, ans, args, kwargs)``."""
    rules_of(fun).jvp = jvpmaker


def defjvp_argnum(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Give a primitive its forward rule, ``jvpmaker(argnum, g, ans, args, kwargs)``."""

    def for_argnums(argnums: Sequence[int], gs: Sequence[Any], ans: Any, *call: Any) -> Any:
        pairs = zip(argnums, gs, strict=True)
        return reduce(vspace(ans).add, [jvpmaker(i, g, ans, *call) for i, g in pairs])

    defjvp_argnums(fun, for_argnums)


def defjvp(fun: Any, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a primitive its forward rules.

    Parameters
    ----------
    fun : callable
        A function made by `primitive`.
    *jvpfuns : callable, "same" or None
        One for each argument: ``jvpfun(g, ans, *args, **kwargs)``. "same" says that the function
        is linear in the argument, None stands for zeros.
    argnums : sequence of int, optional
        The positions of the arguments, by default 0, 1, 2 and so on.
    """
    rules = _by_argnum(fun, "JVP", argnums, jvpfuns)

    def of_argument(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        rule = _maker(fun, "JVP", rules, argnum)
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            return fun(*subval(args, argnum, g), **kwargs)
        return rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, of_argument)


def def_linear(fun: Any) -> None:
    """Say that a primitive is linear in each argument: this gives it its forward rule."""
    defjvp_argnum(fun, lambda i, g, ans, args, kwargs: fun(*subval(args, i, g), **kwargs))


def _by_argnum(
    fun: Any, kind: str, argnums: Iterable[int] | None, given: Sequence[Any]
) -> dict[int, Any]:
    name = rules_of(fun).name
    for rule in given:
        if not (rule is None or callable(rule) or (kind == "JVP" and rule == "same")):
            raise ArgumentTypeError(
                f"Bad {kind} {rule!r} for {name!r}: expected a function, or None for zeros"
            )
    return dict(zip(count() if argnums is None else argnums, given, strict=False))


def _maker(fun: Any, kind: str, makers: dict[int, Any], argnum: int) -> Any:
    if argnum not in makers:
        name = rules_of(fun).name
        raise MissingRuleError(
            f"{kind} of {name} wrt argnum {argnum} not defined: give a rule for it, or None for "
            f"zeros, to def{kind.lower()}({name}, ...), which defines those of all arguments"
        )
    return makers[argnum]
