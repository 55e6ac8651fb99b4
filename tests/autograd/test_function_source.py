"""The generated source of custom functions: every signature and form of result, in every pass."""

from __future__ import annotations

import inspect
import linecache
import traceback

import numpy as np
import pytest

import chainrule as cr

# --- signatures -----------------------------------------------------------------------------------
#
# Each computes a * b * b of its first two values, and gives gradients in some form.


def save(ctx, a, b):
    ctx.save_for_backward(a, b)
    return a * b * b


def gradients(ctx, g):
    a, b = ctx.saved_tensors
    return g * b * b, g * 2 * a * b


def plain(ctx, a, b):
    return save(ctx, a, b)


def positional_only(ctx, a, /, b):
    return save(ctx, a, b)


def both_positional_only(ctx, a, b, /):
    return save(ctx, a, b)


def keyword_only(ctx, a, *, b):
    return save(ctx, a, b)


def variadic(ctx, *args):
    return save(ctx, *args)


def one_and_rest(ctx, a, *args):
    return save(ctx, a, *args)


def any_keywords(ctx, a, **kw):
    return save(ctx, a, kw["b"])


def everything(ctx, a, /, *args, c=None, **kw):
    return save(ctx, a, *args, *kw.values())


def own_names(ctx, _modes, __ctx):
    return save(ctx, _modes, __ctx)


def _forward(ctx, _function, _output):
    return save(ctx, _function, _output)


CALLS = {
    "plain": (plain, lambda f, a, b: f(a, b)),
    "plain by name": (plain, lambda f, a, b: f(b=b, a=a)),
    "positional only": (positional_only, lambda f, a, b: f(a, b=b)),
    "both positional only": (both_positional_only, lambda f, a, b: f(a, b)),
    "keyword only": (keyword_only, lambda f, a, b: f(a, b=b)),
    "variadic": (variadic, lambda f, a, b: f(a, b)),
    "one and rest": (one_and_rest, lambda f, a, b: f(a, b)),
    "any keywords": (any_keywords, lambda f, a, b: f(a, b=b)),
    "everything, by position": (everything, lambda f, a, b: f(a, b)),
    "everything, by name": (everything, lambda f, a, b: f(a, b=b)),
    "names as in the source": (own_names, lambda f, a, b: f(a, b)),
    "title as in the source": (_forward, lambda f, a, b: f(a, b)),
}


def leaves():
    return cr.tensor([1.0, -2.0, 3.0], requires_grad=True), cr.tensor(
        [0.5, 4.0, -1.0], requires_grad=True
    )


def wanted():
    a, b = leaves()
    return [g.tolist() for g in cr.autograd_grad((a * b * b).sum(), (a, b))]


def accumulated(y, a, b):
    y.sum().backward()
    return [a.grad, b.grad]


PASSES = {
    "backward": accumulated,
    "grad": lambda y, a, b: cr.autograd_grad(y.sum(), (a, b)),
    "one at a time": lambda y, a, b: [
        cr.autograd_grad(y.sum(), x, retain_graph=True)[0] for x in (a, b)
    ],
    "recorded": lambda y, a, b: cr.autograd_grad(y.sum(), (a, b), create_graph=True),
}


@pytest.mark.parametrize("run", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize(("forward", "call"), CALLS.values(), ids=CALLS)
def test_every_signature(forward, call, run):
    a, b = leaves()
    f = cr.autograd_function(forward, gradients)
    assert [g.tolist() for g in run(call(f, a, b), a, b)] == wanted()
    assert inspect.signature(f).parameters.keys() == (
        inspect.signature(forward).parameters.keys() - {"ctx"}
    )


@pytest.mark.parametrize(("forward", "call"), CALLS.values(), ids=CALLS)
def test_the_same_tensor_for_both(forward, call):
    f = cr.autograd_function(forward, lambda ctx, g: list(gradients(ctx, g)))
    a, _ = leaves()
    expected = cr.autograd_grad((a * a * a).sum(), a)[0].tolist()
    call(f, a, a).sum().backward()
    assert a.grad.tolist() == expected


def test_names_of_any_number_of_arguments():
    seen = []

    def forward(ctx, x, *args, scale=1.0, **kw):
        seen.append(vars(ctx.needs_input_grad))
        return x * scale

    f = cr.autograd_function(forward, lambda ctx, g: {"x": g * 2})
    x = cr.tensor(1.0, requires_grad=True)
    f(x, 1, x, other=x)
    f(x, last=None)
    assert seen == [
        {"x": True, "args[0]": False, "args[1]": True, "scale": False, "other": True},
        {"x": True, "scale": False, "last": False},
    ]


def test_no_arguments():
    f = cr.autograd_function(lambda ctx: cr.tensor(3.0), lambda ctx, g: None)
    assert not f().requires_grad


# --- forms of gradients ---------------------------------------------------------------------------

FORMS = {
    "a gradient for each argument": lambda g: (g * 3, None),
    "a list": lambda g: [g * 3, None],
    "a gradient for each tensor": lambda g: (g * 3,),
    "with more Nones": lambda g: (g * 3, None, None),
    "one gradient": lambda g: g * 3,
    "by name": lambda g: {"x": g * 3},
    "by name, with None": lambda g: {"c": None, "x": g * 3},
    "for a constant too": lambda g: (g * 3, g),
    "an array": lambda g: ((g * 3).numpy(), None),
    "of another dtype": lambda g: ((g * 3).double(), None),
    "broadcast": lambda g: (cr.stack([g, 2 * g]), None),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("title", ["backward", "grad"])
@pytest.mark.parametrize("fixed", [True, False])
def test_every_form_of_gradients(form, title, fixed):
    def forward(ctx, x, c):
        return x * c

    def forward_of_any(ctx, x, *rest, **kw):
        return x * (*rest, *kw.values())[0]

    f = cr.autograd_function(forward if fixed else forward_of_any, lambda ctx, g: form(g))
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    y = (f(x, 3.0) if fixed else f(x, c=3.0)).sum()
    if title == "grad":
        (grad,) = cr.autograd_grad(y, x)
    else:
        y.backward()
        grad = x.grad
    assert grad.dtype == cr.float32
    assert grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("forward", [lambda ctx, x, c: x * c, lambda ctx, *args: args[0] * args[1]])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: (g, g, g), "incorrect number of gradients"),
        (lambda g: {"z": g}, "returned a gradient for 'z'"),
        (lambda g: (g.sum().reshape(1, 1)[:, :0], None), "invalid gradient at index 0"),
        (lambda g: ("text", None), "returned str"),
    ],
)
def test_wrong_gradients(forward, result, message):
    f = cr.autograd_function(forward, lambda ctx, g: result(g))
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    errors = cr.errors.AutogradError, cr.errors.ShapeError, TypeError
    with pytest.raises(errors, match=message):
        f(x, 3.0).sum().backward()


def test_a_complex_argument_of_a_real_output():
    f = cr.autograd_function(
        lambda ctx, z: (ctx.save_for_backward(z), (z * z.conj()).real)[1],
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
    )
    z = cr.tensor(np.array([1 + 2j, 3 - 1j], np.complex64), requires_grad=True)
    (expected,) = cr.autograd_grad((z * z.conj()).real.sum(), z)
    f(z).sum().backward()
    assert z.grad.tolist() == expected.tolist()


# --- modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode",
    [
        cr.no_grad,
        cr.enable_grad,
        lambda: cr.detect_anomaly(check_nan=False),
        lambda: cr.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_forward_runs_without_recording_and_the_mode_stays(mode):
    seen = []

    def forward(ctx, x):
        seen.append(cr.is_grad_enabled())
        with cr.enable_grad():
            seen.append(cr.is_grad_enabled())
        cr.set_grad_enabled(True)
        return x * 2

    f = cr.autograd_function(forward, lambda ctx, g: g * 2)
    x = cr.tensor(1.0, requires_grad=True)
    with mode():
        before = cr.is_grad_enabled()
        for _ in range(2):
            assert f(x).requires_grad == before
        assert cr.is_grad_enabled() == before
    assert cr.is_grad_enabled()
    assert seen == [False, True] * 2


# --- the source -----------------------------------------------------------------------------------


def test_the_source_is_shown_in_tracebacks():
    def failing(ctx, x, *, scale):
        raise ValueError("stop")

    f = cr.autograd_function(failing)
    with pytest.raises(ValueError, match="stop") as caught:
        f(1.0, scale=2)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "_output = _forward(_ctx, x, scale=scale)" in lines
    source = "".join(linecache.getlines("<binder of failing>"))
    assert not any(sign in source for sign in "${}")
    assert max(map(len, source.splitlines())) <= 100


def test_functions_of_one_source_share_its_code():
    def make(factor):
        return cr.autograd_function(lambda ctx, x: x * factor, lambda ctx, g: g * factor, name="f")

    two, three = make(2.0), make(3.0)
    assert two.func.__code__ is three.func.__code__
    assert (two(cr.tensor(1.0)).item(), three(cr.tensor(1.0)).item()) == (2.0, 3.0)
