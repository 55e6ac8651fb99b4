"""SEMANTICS 46–47: the forms of custom functions, how they are called, and how forward runs."""

from __future__ import annotations

import functools
import inspect

import pytest

import chainrule as cr
from helpers.tensors import leaf


def linear_function():
    """Return the linear layer of the tutorial, by name."""

    @cr.autograd_function
    def linear(ctx, input, weight, bias=None):
        ctx.save_for_backward(input=input, weight=weight, bias=bias)
        output = input @ weight.T
        return output if bias is None else output + bias

    @linear.backward
    def _(ctx, grad_output):
        saved, needs = ctx.saved_variables, ctx.needs_input_grad
        return {
            "input": grad_output @ saved.weight if needs.input else None,
            "weight": grad_output.T @ saved.input if needs.weight else None,
            "bias": grad_output.sum(0) if needs.bias else None,
        }

    return linear


def scale(factor=2.0):
    """Return a function of one tensor with a gradient that is easily told."""
    return cr.autograd_function(lambda ctx, x: x * factor, lambda ctx, g: g * factor)


# --- 46: forms and signatures ---------------------------------------------------------------------

FORMS = {}


def form(make):
    FORMS[make.__name__] = make
    return make


@form
def pair():
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    def backward(ctx, g):
        return {"x": g * ctx.k}

    return cr.autograd_function(forward, backward)


@form
def keywords():
    return cr.autograd_function(
        forward=lambda ctx, x, k: ctx.save_for_backward(k) or x * k,
        backward=lambda ctx, g: (g * ctx.saved_variables[0], None),
        name="keywords",
    )


@form
def decorator():
    @cr.autograd_function
    def multiply(ctx, x, k):
        ctx.save_for_backward(k=k)
        return x * k

    @multiply.backward
    def _(ctx, g):
        return {"x": g * ctx.saved_variables.k}

    return multiply


@form
def decorator_with_arguments():
    @cr.autograd_function(name="multiply")
    def _forward(ctx, x, k):
        ctx.save_for_backward(k=k)
        return x * k

    _forward.backward(lambda ctx, g: g * ctx.saved_variables["k"])
    return _forward


@form
def pytorch():
    class Multiply(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    return Multiply.apply


@form
def pytorch_with_setup_context():
    class Multiply(cr.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    return Multiply.apply


@form
def inherited():
    class Base(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

    class Derived(Base):
        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    return Derived.apply


@form
def callable_objects():
    class Forward:
        def __call__(self, ctx, x, k):
            ctx.k = k
            return x * k

    class Backward:
        def __call__(self, ctx, g):
            return g * ctx.k

    return cr.autograd_function(Forward(), Backward())


@form
def methods():
    class Rule:
        def forward(self, ctx, x, k):
            ctx.k = k
            return x * k

        def backward(self, ctx, g):
            return g * ctx.k

    rule = Rule()
    return cr.autograd_function(rule.forward, rule.backward)


@form
def partials():
    def forward(ctx, x, k, offset):
        ctx.k = k
        return x * k + offset

    def backward(factor, ctx, g):
        return g * ctx.k * factor

    return cr.autograd_function(
        functools.partial(forward, offset=0.0), functools.partial(backward, 1.0)
    )


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_s46_every_form_computes_and_differentiates(make):
    multiply = make()
    x = leaf([1.0, 2.0])
    z = multiply(x, 5.0)
    assert z.tolist() == [5.0, 10.0]
    assert z.requires_grad
    z.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_s46_every_form_takes_keywords_in_any_order(make):
    multiply = make()
    x = leaf([1.0, 2.0])
    for z in (multiply(x, k=5.0), multiply(x=x, k=5.0), multiply(k=5.0, x=x)):
        x.grad = None
        z.sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_s46_every_form_has_the_signature_without_ctx(make):
    assert list(inspect.signature(make()).parameters)[:2] == ["x", "k"]
    assert "ctx" not in inspect.signature(make()).parameters


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_s46_every_form_complains_in_pythons_words(make):
    multiply = make()
    with pytest.raises(TypeError, match=r"missing 2 required positional arguments: 'x' and 'k'"):
        multiply()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        multiply(leaf([1.0]), 5.0, z=3)
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        multiply(leaf([1.0]), 5.0, x=3)


def test_s46_defaults_apply():
    linear = linear_function()
    x, w, b = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0]]), leaf([5.0])
    assert linear(x, w).tolist() == [[11.0]]
    assert linear(x, w, b).tolist() == [[16.0]]
    assert linear(bias=b, weight=w, input=x).tolist() == [[16.0]]
    linear(x, bias=b, weight=w).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([[3.0, 4.0]], [[1.0, 2.0]])
    assert b.grad.tolist() == [1.0]


def test_s46_a_default_may_be_a_tensor_that_requires_grad():
    w = leaf([3.0])

    @cr.autograd_function
    def f(ctx, x, weight=w):
        return x * weight

    @f.backward
    def _(ctx, g):
        return {"weight": g * 7}

    f(cr.ones(1)).backward()
    assert w.grad.tolist() == [7.0]


def test_s46_every_kind_of_parameter():
    seen = {}

    @cr.autograd_function
    def f(ctx, a, /, b, c=3, *rest, d, e=5, **others):
        seen.update(a=a, b=b, c=c, rest=rest, d=d, e=e, others=others)
        return a * d

    @f.backward
    def _(ctx, g):
        return {"a": g * 2, "d": g * 3, "rest[1]": g * 4, "y": g * 5}

    a, d, q, y = (leaf(1.0) for _ in range(4))
    f(a, "b", "c", "r", q, d=d, y=y, z=None).backward()
    assert seen["rest"] == ("r", q)
    assert seen["others"] == {"y": y, "z": None}
    assert (seen["a"], seen["b"], seen["c"], seen["d"], seen["e"]) == (a, "b", "c", d, 5)
    assert [t.grad.item() for t in (a, d, q, y)] == [2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    "forward",
    [
        lambda ctx, a, /, b, c=3, *rest, d, e=5, **others: a,
        lambda ctx, x: x,
        lambda ctx: cr.ones(1),
        lambda c, *, x: x,
        lambda c, *x: x,
        lambda c, **x: 1,
        lambda c, x=1, /, y=2: x,
        lambda c, x, /: x,
        lambda self, x, *, k=None: x,
    ],
)
def test_s46_the_signature_is_that_of_forward_without_ctx(forward):
    f = cr.autograd_function(forward, lambda ctx, *g: None)
    expected = list(inspect.signature(forward).parameters.values())[1:]
    assert list(inspect.signature(f).parameters.values()) == expected


def test_s46_the_function_keeps_name_and_docstring():
    @cr.autograd_function
    def cube(ctx, x):
        """Return the cube."""
        return x**3

    assert cube.__name__ == "cube"
    assert "Return the cube.\n\nGradients\n" in cube.__doc__
    assert cube.__module__ == __name__


@pytest.mark.parametrize(
    "name", ["_apply", "_names", "_0", "_1", "_numbered", "function", "self", "names", "spec", "f"]
)
def test_s46_arguments_may_have_any_name(name):
    source = f"def f(ctx, {name}, _k=2.0, *_rest, **_more): return {name} * _k"
    scope = {}
    exec(source, scope)
    f = cr.autograd_function(scope["f"], lambda ctx, g: {name: g * 5})
    x = leaf([1.0])
    f(**{name: x}).backward()
    assert x.grad.tolist() == [5.0]


@pytest.mark.parametrize("name", ["class", "a b", "1", "", "lambda", "λ"])
def test_s46_functions_may_have_any_name(name):
    f = cr.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: g * 2, name=name)
    x = leaf([1.0])
    f(x).backward()
    assert x.grad.tolist() == [2.0]


def test_s46_two_lambdas_make_a_function():
    x = leaf([1.0])
    cr.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: g * 2)(x).backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("forward", [lambda: 1, lambda *a: 1, lambda *, ctx: 1, lambda **kw: 1])
def test_s46_forward_has_to_take_ctx_first(forward):
    with pytest.raises(TypeError, match="must take ctx as its first argument"):
        cr.autograd_function(forward, lambda ctx, g: g)


def test_s46_backward_has_to_take_arguments():
    def nothing():
        return 1

    with pytest.raises(TypeError, match="backward 'nothing' takes no arguments, expected ctx and"):
        cr.autograd_function(lambda ctx, x: x * 2, nothing)


@pytest.mark.parametrize("value", [3, "text", [1]])
def test_s46_forward_and_backward_have_to_be_callable(value):
    with pytest.raises(TypeError, match="callable"):
        cr.autograd_function(value)
    with pytest.raises(TypeError, match="callable"):
        cr.autograd_function(lambda ctx, x: x, value)


def test_s46_pytorchs_form_runs_unchanged(lib):
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, k=2):
            ctx.save_for_backward(a, b)
            ctx.k = k
            return a * b * k

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            grads = [None, None]
            if ctx.needs_input_grad[0]:
                grads[0] = grad_output * b * ctx.k
            if ctx.needs_input_grad[1]:
                grads[1] = grad_output * a * ctx.k
            return (*grads, None)

    a, b = lib.leaf([1.0, 2.0]), lib.leaf([3.0, 4.0])
    Product.apply(a, b, 5).sum().backward()
    assert a.grad.tolist() == [15.0, 20.0]
    assert b.grad.tolist() == [5.0, 10.0]


# --- 47: forward is not recorded ------------------------------------------------------------------


def test_s47_forward_runs_with_recording_off(lib):
    modes = []

    class Off(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            modes.append((lib.is_grad_enabled(), (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            modes.append((lib.is_grad_enabled(), (g * 2).requires_grad))
            return g

    Off.apply(lib.leaf([1.0])).backward()
    assert modes == [(False, False), (False, False)]
    assert lib.is_grad_enabled()


MEDDLING = {
    "enable_grad": lambda ctx, x: cr.enable_grad()(lambda: x * 2)(),
    "set_grad_enabled": lambda ctx, x: (cr.set_grad_enabled(True), x * 2)[1],
    "recorded and detached": lambda ctx, x: cr.enable_grad()(lambda: (x * 2).detach())(),
}


@pytest.mark.parametrize("forward", MEDDLING.values(), ids=MEDDLING.keys())
@pytest.mark.parametrize("outer", [True, False])
def test_s47_outputs_get_one_node_whatever_forward_does(forward, outer):
    f = cr.autograd_function(forward, lambda ctx, g: g * 100, name="f")
    x = leaf([1.0])
    with cr.set_grad_enabled(outer):
        z = f(x)
        assert cr.is_grad_enabled() == outer
    assert cr.is_grad_enabled()
    if outer:
        assert z.grad_fn.name == "fBackward"
        z.backward()
        assert x.grad.tolist() == [100.0]
    else:
        assert (z.requires_grad, z.grad_fn) == (False, None)


def test_s47_the_arguments_are_the_callers_objects(lib):
    seen = []

    class Look(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, other):
            seen.append((x, other))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, None

    x, other = lib.leaf([1.0]), object()
    Look.apply(x, other)
    assert seen[0][1] is other
    assert seen[0][0] is x


def test_s47_all_outputs_share_one_node(lib):
    class Three(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b, c):
            return a + b * 2 + c * 3

    outs = Three.apply(lib.leaf([1.0]))
    assert len({id(out.grad_fn) for out in outs}) == 1
    assert [out.output_nr for out in outs] == [0, 1, 2]
    assert outs[0].grad_fn.name() == "ThreeBackward"


def never(ctx, *grads):
    raise AssertionError("backward was called")


def test_s47_without_tensors_that_require_grad_outputs_are_plain():
    f = cr.autograd_function(lambda ctx, x, k: x * k, never, name="f")
    for z in (f(cr.ones(2), 3), f(3, 4), f(leaf([1.0]).detach(), 2)):
        if isinstance(z, cr.Tensor):
            assert (z.requires_grad, z.grad_fn, z.is_leaf) == (False, None, True)
    assert f(3, 4) == 12


def test_s47_under_no_grad_outputs_are_plain_and_backward_is_never_called(lib):
    class Off(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("backward was called")

    x = lib.leaf([1.0])
    with lib.no_grad():
        z = Off.apply(x)
    assert (z.requires_grad, z.grad_fn) == (False, None)
    (z * x).backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("hidden", [False, True])
def test_s47_without_tensors_that_require_grad_nothing_of_forwards_own_gets_out(lib, hidden):
    other = lib.leaf([5.0]) * 1

    class Own(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if not hidden:
                return (x * 2).requires_grad_()
            with lib.enable_grad():
                return other * x

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("backward was called")

    z = Own.apply(lib.tensor([1.0]))
    assert (z.requires_grad, z.grad_fn) == (False, None)


def test_s47_plain_outputs_may_be_written_and_start_graphs():
    z = scale()(cr.ones(2))
    z.add_(1)
    z.requires_grad_()
    (z * z).sum().backward()
    assert z.grad.tolist() == [6.0, 6.0]


def test_s47_an_exception_in_forward_reaches_the_caller_and_restores_the_mode(lib):
    class Broken(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("my own")

        @staticmethod
        def backward(ctx, g):
            return g

    for mode in (True, False):
        with lib.set_grad_enabled(mode):
            with pytest.raises(KeyError, match="my own"):
                Broken.apply(lib.leaf([1.0]))
            assert lib.is_grad_enabled() == mode


def test_s47_an_exception_in_backward_reaches_the_caller_and_leaves_all_usable(lib):
    broken = [True]

    class Broken(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if broken:
                broken.pop()
                raise KeyError("my own")
            return g * ctx.saved_tensors[0]

    x = lib.leaf([3.0])
    z = Broken.apply(x)
    with pytest.raises(KeyError, match="my own"):
        z.backward()
    assert lib.is_grad_enabled()
    z.backward()
    assert x.grad.tolist() == [3.0]


def test_s47_without_a_backward_the_error_says_how_to_give_one():
    f = cr.autograd_function(lambda ctx, x: x * 2, name="half_done")
    z = f(leaf([1.0]))
    with pytest.raises(
        RuntimeError,
        match=r"half_done has no backward:.*@half_done\.backward",
    ):
        z.backward()


def test_s47_a_function_may_call_itself_and_others(lib):
    class Power(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return x if n == 0 else x * Power.apply(x, n - 1)

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.n + 1) * ctx.saved_tensors[0] ** ctx.n, None

    x = lib.leaf([2.0])
    z = Power.apply(x, 3)
    z.backward()
    assert z.tolist() == [16.0]
    assert x.grad.tolist() == [32.0]


def test_s46_a_rule_that_nobody_gave_is_an_error_of_its_own():
    class Double(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = leaf([1.0])
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        Double.apply(x).backward()
    with pytest.raises(cr.MissingRuleError, match="Double has no rule for forward mode"):
        cr.jvp(Double.apply, x, x)


def test_s46_an_instance_of_a_function_is_refused():
    class Double(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match=r"Legacy autograd function .* Double\.apply"):
        Double()(leaf([1.0]))


def test_s46_the_node_of_a_function_shows_what_is_on_ctx(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = lib.leaf([1.0])
    node = Scale.apply(x, 3.0).grad_fn
    assert node.saved_tensors[0].tolist() == [1.0]
    assert tuple(node.needs_input_grad) == (True, False)
    assert node.factor == 3.0
    with pytest.raises(AttributeError, match=r"ScaleBackward.* has no attribute 'other'"):
        node.other  # noqa: B018


def test_s46_a_class_may_have_an_apply_of_its_own(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

        @classmethod
        def apply(cls, x, *, factor=3.0):
            return super().apply(x, factor)

    class Flip(Scale):
        @staticmethod
        def backward(ctx, g):
            return -g * ctx.factor, None

    class Direct(lib.autograd.Function):
        forward, backward = Scale.forward, Scale.backward

    class Same(Direct):
        backward = Flip.backward

    x = lib.leaf([1.0])
    results = [Scale.apply(x), Flip.apply(x, factor=5.0), Direct.apply(x, 7.0), Same.apply(x, 9.0)]
    assert [lib.grad(y.sum(), x)[0].item() for y in results] == [3.0, -5.0, 7.0, -9.0]


def test_s46_one_rule_has_one_name():
    with pytest.raises(cr.AutogradError, match="Implementing both 'backward' and 'vjp'"):

        class Both(cr.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

            @staticmethod
            def vjp(ctx, g):
                return g
