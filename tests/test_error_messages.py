"""Mistakes and what is said about them: operation, what came, what was expected, line and mend.

A row of `helpers/mistakes.txt` is a mistake, words of its message and, where the message has
something to write, code that runs in the place of the mistake; one of the words is in that code.
"""

from __future__ import annotations

import gc
import linecache
import pathlib
import pickle
import traceback
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import LocatedError

FILE = "mistake.py"

MISTAKES = pathlib.Path(__file__).parent / "helpers" / "mistakes.txt"


def rows() -> list[Any]:
    found = []
    for row in MISTAKES.read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            code, words, mend = (part.strip() for part in row.split("=>"))
            found.append(pytest.param(code, words.split(" | "), mend, id=code))
    return found


def def_f_x(x: Any) -> Any:
    return x * 2


def def_f_xy(x: Any, y: Any) -> Any:
    return x * y


def_f_x.__name__ = def_f_xy.__name__ = "f"
Function = cr.autograd.Function


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


def applied(forward: Any, backward: Any, count: int = 1) -> Any:
    made = cr.autograd_function(forward, backward, name="G")
    out = made(*[cr.ones(3, requires_grad=True) for _ in range(count)])
    sum(out if isinstance(out, tuple) else [out]).sum().backward()


class Plain:
    """Custom functions with a mistake, each made and run by reading an attribute."""

    @property
    def forward_with_self(self) -> None:
        class G(Function):
            def forward(self, ctx: Any, x: Any) -> Any:
                return x

    @property
    def without_forward(self) -> None:
        class G(Function):
            pass

        G.apply(X)

    @property
    def without_backward(self) -> None:
        applied(lambda ctx, x: x * 2, None)

    @property
    def backward_without_ctx(self) -> None:
        applied(lambda ctx, x: x * 2, lambda g: g)

    @property
    def tuple_times_two(self) -> None:
        applied(lambda ctx, x: (x * 2, x * 3), lambda ctx, g: g * 2)

    @property
    def one_gradient_too_few(self) -> None:
        applied(lambda ctx, x, y: x * y, lambda ctx, g: g, 2)

    @property
    def wrong_shape(self) -> None:
        applied(lambda ctx, x: x * 2, lambda ctx, g: cr.ones(7))

    @property
    def unknown_name(self) -> None:
        applied(lambda ctx, x: x * 2, lambda ctx, g: {"z": g})

    @property
    def gradient_of_text(self) -> None:
        applied(lambda ctx, x: x * 2, lambda ctx, g: "a")

    @property
    def forgotten_attribute(self) -> None:
        applied(lambda ctx, x: x * 2, lambda ctx, g: g * ctx.x)


X = cr.ones(2, 3)


def namespace() -> dict[str, Any]:
    """Return the variables of a program, new for each."""
    return {
        **{"cr": cr, "np": np, "nn": cr.nn, "optim": cr.optim, "Square": Square, "Plain": Plain},
        **{"def_f_x": def_f_x, "def_f_xy": def_f_xy, "LAYER": cr.nn.Linear(3, 2)},
        **{"data": cr.utils.data, "X": cr.ones(2, 3), "P": cr.ones(3, requires_grad=True)},
    }


def run(code: str) -> None:
    lines = [line + "\n" for line in code.split("\n")]
    linecache.cache[FILE] = (len(code), None, lines, FILE)
    exec(compile(code, FILE, "exec"), namespace())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("code", "words", "mend"), rows())
def test_a_mistake_is_named_with_its_line_and_a_mend_that_works(
    code: str, words: list[str], mend: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of many types: the text is compared
        run(code)
    error = caught.value
    text = str(error)
    assert [word for word in words if word not in text] == [], text
    if isinstance(error, LocatedError) and type(error).find_caller and "Plain" not in code:
        assert f"{FILE}:1" in text
        assert code.split("; ")[-1][:30] in text or f"({FILE}:1)" in text  # of a lambda
    if isinstance(error, LocatedError):  # no error of NumPy's before it
        assert error.__cause__ is None
        assert error.__suppress_context__ or isinstance(
            error.__context__, LocatedError | AttributeError | None
        )
    if mend:
        assert any(word in mend for word in words), "the message says nothing of the mend"
        run(mend)


def test_there_are_many() -> None:
    assert len(rows()) >= 175


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("plt.plot(P)", ["Can't call numpy()", "matplotlib", "plt.plot(P)", "x.detach()"]),
        (
            "cr.vmap(lambda a: minimize(f, a).x)(X)",
            ["by scipy", "chainrule.scipy.optimize.minimize"],
        ),
        (
            "cr.vmap(lambda a: expm(a))(cr.ones(2, 2, 2))",
            ["by scipy", "chainrule.scipy.linalg.expm"],
        ),
        (
            "cr.compile(lambda a: quad(f, 0, a)[0])(cr.ones(()))",
            ["by scipy", "scipy.integrate.quad"],
        ),
        ("cr.scipy.optimize.minimize(lambda x: x, cr.ones(3))", ["minimize", "[3]", "sum()"]),
        ("cr.scipy.optimize.root(lambda x: x[:2], cr.ones(3))", ["2 numbers for 3 unknowns"]),
    ],
)
def test_mistakes_inside_another_library_name_the_users_line(code: str, words: list[str]) -> None:
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("scipy")
    setup = """import matplotlib.pyplot as plt
from scipy.optimize import minimize
from scipy.linalg import expm
from scipy.integrate import quad
import chainrule.scipy.optimize
def f(*args): return (args[0] ** 2).sum()
"""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run(setup + code)
    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text
    assert f"{FILE}:7" in text
    assert code in text or f"({FILE}:7)" in text


def test_a_forward_that_returns_no_tensor_warns_at_the_call() -> None:
    def second(ctx: Any, x: Any) -> Any:
        x * 2

    forwards: list[tuple[Any, str, str]] = [
        (lambda ctx, x: x.detach().numpy() * 2, "ndarray", "cr.tensor"),
        (second, "NoneType", "return sta"),
        (lambda ctx, x: {"twice": x * 2}, "dict", "as a tuple"),
        (lambda ctx, x: (x.sum(), [x * 2]), "list", "as a tuple"),
        (lambda ctx, x: x.sum().item(), "float", "the tensor, not its number"),
    ]
    for forward, kind, mend in forwards:
        f = cr.autograd_function(forward, lambda ctx, *g: g[0])
        with pytest.warns(UserWarning, match=f"forward returned {kind} .*{mend}") as caught:
            f(cr.ones(3, requires_grad=True))
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(cr.ones(3))  # nothing is lost


def test_other_results_that_are_no_tensors_are_passed_on_in_silence() -> None:
    f = cr.autograd_function(lambda ctx, x: (x * 2, 1.5, {"a": 1}, None), lambda ctx, *g: 2 * g[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(cr.ones(3, requires_grad=True))[1:] == (1.5, {"a": 1}, None)


def test_a_backward_without_a_return_statement_warns() -> None:
    def forgotten(ctx: Any, g: Any) -> Any:
        g * 2

    def meant(ctx: Any, g: Any) -> Any:
        return None

    x = cr.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="backward returned None, .*no return statement") as caught:
        cr.autograd_function(lambda ctx, x: x * 2, forgotten)(x).sum().backward()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.autograd_function(lambda ctx, x: x * 2, meant)(x).sum().backward()
    assert x.grad is None


def test_values_that_were_not_saved_are_missed_by_name() -> None:
    f = cr.autograd_function(lambda ctx, x, w: x * w, lambda ctx, g: ctx.saved_variables.x)
    x = cr.ones(3, requires_grad=True)
    with pytest.raises(AttributeError, match=r"nothing was saved.*save_for_backward\(x=x\)"):
        f(x, x).sum().backward()

    def backward(ctx: Any, g: Any) -> Any:
        return ctx.needs_input_grad.weight

    f = cr.autograd_function(lambda ctx, x, w: x * w, backward)
    with pytest.raises(AttributeError, match=r"no 'weight': the arguments are 'x', 'w'"):
        f(x, x).sum().backward()


def test_an_error_in_a_layer_names_the_innermost_one_and_its_inputs() -> None:
    nn = cr.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 1)))
    with pytest.raises(cr.ShapeError) as caught:
        net(X)
    (note,) = caught.value.__notes__
    assert "Linear(in_features=5, out_features=1, bias=True)" in note
    assert "[2, 4]" in note


def test_a_module_that_was_not_initialised_says_so_at_every_use() -> None:
    class Net(cr.nn.Module):
        def __init__(self) -> None:
            self.factor = 2

        def forward(self, x: Any) -> Any:
            return x * self.factor

    uses: list[Any] = [
        lambda net: net(X),
        lambda net: list(net.parameters()),
        repr,
        lambda net: net.register_buffer("b", X),
        lambda net: setattr(net, "layer", cr.nn.ReLU()),
    ]
    for use in uses:
        with pytest.raises(AttributeError, match=r"Net has to call super\(\).__init__\(\)"):
            use(Net())

    class Initialised(Net):
        def __init__(self) -> None:
            cr.nn.Module.__init__(self)

    with pytest.raises(AttributeError, match="has no attribute 'factor'"):
        Initialised()(X)


def test_coroutines_are_not_compiled() -> None:
    async def later(x: Any) -> Any:
        return x

    async def steps(x: Any) -> Any:
        yield x

    for function in (later, steps):
        with pytest.raises(TypeError, match=f"got {function.__name__}, a coroutine"):
            cr.compile(function)


def test_backward_of_two_outputs_with_one_parameter_gets_a_note() -> None:
    f = cr.autograd_function(lambda ctx, x: (x, 2 * x), lambda ctx, g: g.sum())
    a, b = f(cr.ones(3, requires_grad=True))
    with pytest.raises(AttributeError) as caught:
        (a + b).sum().backward()
    assert "'g' is a tuple of the gradients of the last 2: write backward(ctx, g0, g1)" in "".join(
        caught.value.__notes__
    )


def test_an_error_survives_a_pickle_with_its_line_and_stays_short_in_a_traceback() -> None:
    with pytest.raises(cr.ShapeError) as caught:
        X.reshape(4)
    text = str(caught.value)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is cr.ShapeError
    assert str(copied) == text
    assert text.count("test_error_messages.py") == 1
    assert "X.reshape(4)" in text
    (last,) = traceback.format_exception_only(caught.value)
    assert last.startswith("chainrule.errors.ShapeError: reshape(): shape '[4]' is invalid")


def test_the_callers_line_is_found_without_keeping_its_variables() -> None:
    class Kept:
        pass

    kept = Kept()
    alive = weakref.ref(kept)
    try:
        X.reshape(4)
    except cr.ShapeError as error:
        found: Any = error.with_traceback(None)
    del kept
    gc.collect()
    assert alive() is None
    assert "reshape" in str(found)
