"""The help of a custom function: doc, signature, and the arguments that have gradients."""

from __future__ import annotations

import pydoc
from typing import Any

import pytest

import chainrule as cr


def by_name(ctx: Any, g: Any) -> Any:
    if g is None:
        return None
    return {"x": g, "n": None}


def by_dict_call(ctx: Any, g: Any) -> Any:
    return dict(x=g)


def by_position(ctx: Any, g: Any) -> Any:
    if g.ndim:
        return g, None, None
    return g, g, None


def in_a_variable(ctx: Any, g: Any) -> Any:
    grads = {"x": g}
    return grads


def with_inner_function(ctx: Any, g: Any) -> Any:
    def inner() -> int:
        return 3

    try:
        inner()
    finally:
        return {"x": g, "b": g}  # noqa: B012


@pytest.mark.parametrize(
    ("backward", "lines"),
    [
        (None, ["None: it has no backward, which @f.backward gives it"]),
        (by_name, ["x : by backward, {}", "b, n : no gradient"]),
        (by_dict_call, ["x : by backward, {}", "b, n : no gradient"]),
        (by_position, ["x, b : by backward, {}", "n : no gradient"]),
        (in_a_variable, ["x, b, n : those that backward returns, {}"]),
        (with_inner_function, ["x, b : by backward, {}", "n : no gradient"]),
        (cr.once_differentiable(by_name), ["x : by backward, {}", "b, n : no gradient"]),
    ],
)
def test_help_says_which_arguments_have_gradients(backward: Any, lines: list[str]) -> None:
    @cr.autograd_function
    def f(ctx, x, b=None, *, n=2):  # type: ignore[no-untyped-def]
        """Return x.

        More of it.
        """
        return x

    if backward is not None:
        f.backward(backward)
    text = pydoc.plain(pydoc.render_doc(f))
    assert "f(x, b=None, *, n=2)" in text
    code = getattr(getattr(backward, "__wrapped__", backward), "__code__", None)
    where = "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
    section = "\n".join(["Gradients", "---------", *lines, "forward mode : no jvp rule"])
    assert (
        f.__doc__.removeprefix("f(x, b=None, *, n=2)\n\n")
        == f"Return x.\n\nMore of it.\n\n{section.format(where)}"
    )


def test_one_argument_a_rule_for_forward_mode_and_no_doc() -> None:
    f = cr.autograd_function(lambda ctx, x: x, lambda ctx, g: g, jvp=lambda ctx, t: t, name="f")
    assert "x : by backward" in f.__doc__
    assert "forward mode : by jvp" in f.__doc__


def test_help_of_a_class() -> None:
    class Square(cr.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            """Return x²."""
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    assert "Return x².\n\nGradients\n---------\nx : by backward" in Square.apply.__doc__
    assert "n : no gradient" in Square.apply.__doc__
