"""Bad input to transforms: each error names the function or argument, and how to mend the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

X, INTEGERS = np.array([1.0, 2.0]), np.array([1, 2])


def square(x: Any) -> Any:
    return (x**2).sum()


def several(x: Any) -> Any:
    return np.sin(x)


def two(a: Any, b: Any, c: float = 2.0) -> Any:
    return a * b * c


Call = Callable[[Any, Any], Any]

CALLS: dict[str, Call] = {
    "grad": lambda f, x: cr.grad(f)(x),
    "value_and_grad": lambda f, x: cr.value_and_grad(f)(x),
    "hessian": lambda f, x: cr.hessian(f)(x),
    "laplacian": lambda f, x: cr.laplacian(f)(x),
    "hvp": lambda f, x: cr.hvp(f, x, X),
    "vhp": lambda f, x: cr.vhp(f, x, X),
    "jacobian": lambda f, x: cr.jacobian(f)(x),
    "jvp": lambda f, x: cr.jvp(f, x, X),
    "vjp": lambda f, x: cr.vjp(f, x),
    "linearize": lambda f, x: cr.linearize(f, x),
    "ggnvp": lambda f, x: cr.ggnvp(f, x, X),
    "taylor": lambda f, x: cr.taylor(f, x, 1),
}
OF_NUMBERS = ("grad", "value_and_grad", "hessian", "laplacian", "hvp", "vhp")
BY_NAME = ("grad", "value_and_grad", "hessian", "laplacian", "jacobian")


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize(
    ("function", "got", "mend"),
    [
        (several, r"a tensor of shape \[2\] and dtype float64", "Reduce it, with sum"),
        (lambda x: (x * 1j).sum(), r"a tensor of shape \[\] and dtype complex128", "Take .real"),
        (lambda x: (square(x), 1), "a tuple of 2", "Return the number alone, or with has_aux=True"),
        (lambda x: {"loss": square(x), "n": 1}, r"a dict of 2 \(.loss., .n.\)", "Return"),
        (lambda x: None, "None", "Is there a return statement?"),
        (lambda x: 3.0, "a float", "That is a constant: compute it from the arguments"),
    ],
    ids=["several", "complex", "tuple", "dict", "None", "constant"],
)
def test_a_result_that_is_no_real_number(name: str, function: Any, got: str, mend: str) -> None:
    text = rf"^{name}: .* only for real scalar outputs, but .* returned {got}\. {mend}"
    with pytest.raises(cr.AutogradError, match=text):
        CALLS[name](function, X)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("point", "got", "mend"),
    [
        (INTEGERS, "int64", r"convert it with \.astype\(float\)"),
        (cr.tensor(INTEGERS), "int64", r"convert it with \.to\(cr\.float32\)"),
        (2, "int64", "write 2.0 for 2"),
        (X > 1, "bool", r"convert it with \.astype"),
    ],
    ids=["array", "tensor", "number", "bools"],
)
def test_integer_arguments(name: str, point: Any, got: str, mend: str) -> None:
    place = "x" if name in BY_NAME else r"arguments(\[0\])?"
    text = f"^{name}: a primal must be floating or complex, got {got} at {place}: {mend}"
    with pytest.raises(cr.DTypeError, match=text):
        CALLS[name](square, point)


@pytest.mark.parametrize("name", [*CALLS, "vmap", "checkpoint"])
def test_a_value_in_the_place_of_the_function(name: str) -> None:
    call = CALLS.get(name, lambda f, x: getattr(cr, name)(f))
    with pytest.raises(TypeError, match=rf"^{name}: expected a function, got a float.* cr\.{name}"):
        call(3.0, X)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("argnums", ["d", ("a", "d"), 5])
def test_wrong_names_list_the_names(name: str, argnums: Any) -> None:
    requested = argnums[-1] if isinstance(argnums, tuple) else argnums
    text = rf"^{name}: argument {requested!r} of two .* Its arguments are a, b, c \("
    with pytest.raises(cr.ArgumentError, match=text):
        getattr(cr, name)(two, argnums)(1.0, 2.0)


def test_arguments_are_named_where_they_are() -> None:
    with pytest.raises(cr.DTypeError, match=r"got int64 at b: write 2.0"):
        cr.grad(two, "b")(1.0, 2)
    with pytest.raises(cr.DTypeError, match=r"got int64 at b\['n'\]\[1\]"):
        cr.grad(two, ("a", "b"))(1.0, {"n": [1.0, 2]})
    with pytest.raises(TypeError, match=r"at x\[1\], got str"):
        cr.jacobian(square)([1.0, "2"])
    with pytest.raises(TypeError, match="at x, got an array of objects"):
        cr.grad(square)(np.array([1.0, None], dtype=object))


TREES: dict[str, tuple[Any, type[Exception], str]] = {
    "tangent of other keys": (
        lambda: cr.jvp(lambda p: p["a"], {"a": X}, {"b": X}),
        TypeError,
        r"jvp: primals .* at primals\[0\] is a dict of 1 \('a'\), .* a dict of 1 \('b'\)",
    ),
    "tangent of an array for a dict": (
        lambda: cr.hvp(lambda p: square(p["a"]), {"a": X}, [X]),
        TypeError,
        r"hvp: primals .* at primals\[0\] is a dict of 1 \('a'\), at tangents\[0\] an ndarray",
    ),
    "cotangent": (
        lambda: cr.vjp(several, X)[1]({"a": X}),
        TypeError,
        r"vjp: outputs and cotangents .* at outputs is an ndarray, at cotangents a dict of 1",
    ),
    "number of tangents": (
        lambda: cr.linearize(several, X)[1](X, X),
        TypeError,
        "linearize: primals .* a list of 1, at tangents a list of 2",
    ),
    "tree.map": (
        lambda: cr.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
        cr.ArgumentError,
        r"at the root, the first is a dict of 1 \('a'\), number 1 .* a dict of 1 \('b'\)",
    ),
    "nothing to differentiate": (
        lambda: cr.jacobian(lambda x: "text")(X),
        cr.AutogradError,
        "jacobian: .* returned a str, in which there is no tensor",
    ),
    "mode": (
        lambda: cr.hessian(square, mode="both")(X),
        cr.ArgumentError,
        'hessian: mode is "reverse", "forward" or None',
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_structures(name: str) -> None:
    call, kind, text = TREES[name]
    with pytest.raises(kind, match=text):
        call()


def root(x: Any) -> Any:
    return np.sqrt(x).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("vjp", "taylor", "linearize")])
def test_anomaly_mode_names_the_operation_that_makes_nan(name: str) -> None:
    bad = np.array([-1.0, 4.0])
    assert np.isnan(np.sum(cr.tree.leaves(CALLS[name](root, bad))[-1]))
    with cr.detect_anomaly(), pytest.raises(cr.AutogradError) as caught:
        CALLS[name](root, bad)
    assert "nan values" in str(caught.value)
    assert "SqrtBackward0, made at" in str(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_checks_say_where_nan_is() -> None:
    x = cr.tensor(np.array([4.0, np.nan]), requires_grad=True)
    with pytest.raises(cr.GradcheckError, match=r"input 0 \('x'\) is nan at element \[1\]"):
        cr.gradcheck(lambda x: x * x, x)
    x = cr.tensor(np.array([4.0, -1.0]), requires_grad=True)
    with pytest.raises(cr.GradcheckError, match=r"output 0 is nan at element \[1\]"):
        cr.gradcheck(lambda x: x.sqrt(), x)
    with pytest.raises(cr.ArgumentError, match=r"derivative 0 of root .* is not finite: choose"):
        cr.taylor(root, -1.0, 2).order_of_convergence()
    with pytest.raises(cr.ArgumentError, match=r"derivative 1 of root .* at 0.0 is not finite"):
        cr.taylor(root, 0.0, 2).order_of_convergence()
