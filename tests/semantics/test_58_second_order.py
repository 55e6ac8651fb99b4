"""SEMANTICS 58: custom functions differentiated twice: right, or an error; never silently wrong."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradgradcheck
from helpers.tensors import leaf

ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"
BETWEEN = "computed on the way"


# --- right ----------------------------------------------------------------------------------------


def cube_saving(save):
    """Return x³ whose forward saves so, and whose backward reads one value named `x` or `out`."""

    @cr.autograd_function
    def cube(ctx, x):
        out = x * x * x
        save(ctx, x, out)
        return out

    @cube.backward
    def _(ctx, g):
        (name,) = vars(ctx.saved_variables)
        value = ctx.saved_variables[name]
        return 3 * g * (value**2 if name == "x" else value ** (2 / 3))

    return cube


@pytest.mark.parametrize(
    "save",
    [
        lambda ctx, x, out: ctx.save_for_backward(x=x),
        lambda ctx, x, out: ctx.save_for_backward(out=out),
    ],
    ids=["input", "output"],
)
def test_s58_saved_inputs_and_outputs_differentiate_to_every_order(save):
    cube = cube_saving(save)
    x = leaf([2.0, 0.5], "float64")
    assert gradgradcheck(cube, (x,))
    grad = cube(x).sum()
    for expected in ([12.0, 0.75], [12.0, 3.0], [6.0, 6.0]):
        (grad,) = cr.autograd_grad(grad.sum(), x, create_graph=True)
        np.testing.assert_allclose(grad.tolist(), expected)


def test_s58_the_tutorials_linear_layer():
    @cr.autograd_function
    def linear(ctx, input, weight, bias=None):
        ctx.save_for_backward(input=input, weight=weight, bias=bias)
        output = input @ weight.T
        return output if bias is None else output + bias

    @linear.backward
    def _(ctx, g):
        saved, needs = ctx.saved_variables, ctx.needs_input_grad
        return {
            "input": g @ saved.weight if needs.input else None,
            "weight": g.T @ saved.input if needs.weight else None,
            "bias": g.sum(0) if needs.bias else None,
        }

    rng = np.random.default_rng(0)
    inputs = [leaf(rng.normal(size=shape)) for shape in [(4, 3), (2, 3), (2,)]]
    assert gradgradcheck(linear, inputs)
    assert gradgradcheck(lambda x, w: linear(x, weight=w).sin(), inputs[:2])


def test_s58_the_gradient_depends_on_what_came_in(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = lib.leaf([3.0])
    (grad,) = lib.grad(Square.apply(x).exp().sum(), x, create_graph=True)
    (second,) = lib.grad(grad.sum(), x)
    np.testing.assert_allclose(second.item(), (2 + 36) * np.exp(9.0))


def test_s58_several_inputs_and_outputs(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            p, q = a * b, a + b
            ctx.save_for_backward(a, b, p)
            return p, q

        @staticmethod
        def backward(ctx, g, h):
            a, b, _ = ctx.saved_tensors
            return g * b + h, g * a + h

    a, b = lib.leaf([2.0]), lib.leaf([3.0])
    p, q = f.apply(a, b)
    grads = lib.grad((p * p * q).sum(), [a, b], create_graph=True)  # a²b²(a + b)
    assert [g.item() for g in grads] == [216.0, 156.0]
    total = grads[0].sum() + 2 * grads[1].sum()
    assert [g.item() for g in lib.grad(total, [a, b])] == [162 + 2 * 180, 180 + 2 * 88]


def test_s58_backward_may_call_another_custom_function(lib):
    class Cos(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx, g):
            return -g * Sin.apply(ctx.saved_tensors[0])

    class Sin(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * Cos.apply(ctx.saved_tensors[0])

    x = lib.leaf([0.7])
    grad = Sin.apply(x)
    for _ in range(4):
        (grad,) = lib.grad(grad, x, create_graph=True)
    np.testing.assert_allclose(grad.item(), np.sin(0.7))


def test_s58_a_mask_of_bools_or_integers_is_no_obstacle():
    @cr.autograd_function
    def relu(ctx, x):
        mask = x > 0
        ctx.save_for_backward(mask=mask, sign=mask.long())
        return cr.where(mask, x, 0.0)

    @relu.backward
    def _(ctx, g):
        saved = ctx.saved_variables
        return cr.where(saved.mask, g, 0.0) * saved.sign

    x = leaf([-1.0, 3.0])
    (grad,) = cr.autograd_grad(relu(x * x * x).sum(), x, create_graph=True)
    assert grad.tolist() == [0.0, 27.0]
    assert cr.autograd_grad(grad.sum(), x)[0].tolist() == [0.0, 18.0]


def test_s58_constants_are_no_obstacle(lib):
    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * x * weight

        @staticmethod
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            return 2 * g * x * weight, None

    x = lib.leaf([3.0])
    weight = lib.tensor([5.0], dtype="float64")
    (grad,) = lib.grad(Scaled.apply(x, weight), x, create_graph=True)
    assert lib.grad(grad, x)[0].tolist() == [10.0]


def test_s58_what_forward_recorded_itself_differentiates():
    @cr.autograd_function
    def cube(ctx, x):
        with cr.enable_grad():
            square = x * x
        ctx.save_for_backward(square)
        return square * x

    cube.backward(lambda ctx, g: 3 * g * ctx.saved_variables[0])
    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube(x), x, create_graph=True)
    assert cr.autograd_grad(grad, x)[0].tolist() == [12.0]


def test_s58_first_order_results_do_not_depend_on_create_graph():
    cube = cube_saving(lambda ctx, x, out: ctx.save_for_backward(x=x))
    x = leaf([2.0, 3.0])
    plain = cr.autograd_grad(cube(x).sum(), x)[0]
    recorded = cr.autograd_grad(cube(x).sum(), x, create_graph=True)[0]
    assert plain.tolist() == recorded.tolist()
    assert (plain.requires_grad, recorded.requires_grad) == (False, True)


# --- what forward computed on the way -------------------------------------------------------------


def cube_with_a_square_between(backward=lambda ctx, g: 3 * g * ctx.saved_variables[0]):
    @cr.autograd_function
    def cube(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    cube.backward(backward)
    return cube


def test_s58_a_value_between_serves_the_first_order():
    x = leaf([2.0])
    assert cr.autograd_grad(cube_with_a_square_between()(x), x)[0].tolist() == [12.0]
    cube_with_a_square_between()(x).backward()
    assert x.grad.tolist() == [12.0]


def test_s58_with_create_graph_too_as_long_as_nobody_differentiates_it():
    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube_with_a_square_between()(x), x, create_graph=True)
    assert grad.tolist() == [12.0]


SECOND = {
    "backward": lambda grad, x: grad.sum().backward(),
    "backward to inputs": lambda grad, x: grad.sum().backward(inputs=[x]),
    "autograd_grad": lambda grad, x: cr.autograd_grad(grad.sum(), x),
    "allow_unused": lambda grad, x: cr.autograd_grad(grad.sum(), x, allow_unused=True),
    "materialize": lambda grad, x: cr.autograd_grad(grad.sum(), x, materialize_grads=True),
    "third order": lambda grad, x: cr.autograd_grad(grad.sum(), x, create_graph=True),
    "the gradient itself": lambda grad, x: cr.autograd_grad(grad, x, cr.ones_like(grad)),
}
seconds = pytest.mark.parametrize("second", SECOND.values(), ids=SECOND.keys())

AROUND = {
    "alone": lambda f, x: f(x),
    "beside another way": lambda f, x: f(x) + x**3,
    "inside": lambda f, x: (f(x.sin()) * x).exp(),
    "twice": lambda f, x: f(f(x)),
    "with a constant": lambda f, x: f(x) * 5,
    "of a view": lambda f, x: f(x[:1]),
}
around = pytest.mark.parametrize("program", AROUND.values(), ids=AROUND.keys())


@seconds
@around
def test_s58_a_second_derivative_that_would_lack_a_term_raises(program, second):
    x = leaf([0.5])
    value = program(cube_with_a_square_between(), x).sum()
    (grad,) = cr.autograd_grad(value, x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=f"cube.*{BETWEEN}"):
        second(grad, x)


def test_s58_after_backward_with_create_graph_it_raises_too():
    x = leaf([0.5])
    cube_with_a_square_between()(x).backward(create_graph=True)
    with pytest.raises(cr.AutogradError, match=BETWEEN):
        cr.autograd_grad(x.grad, x)
    x.grad = None


def test_s58_a_detached_value_between_raises_as_well():
    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x.detach() ** 2)
        return x**3

    cube.backward(lambda ctx, g: 3 * g * ctx.saved_variables[0])
    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube(x), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=BETWEEN):
        cr.autograd_grad(grad, x)


def test_s58_a_part_of_an_input_made_in_forward_raises_as_well():
    @cr.autograd_function
    def first_squared(ctx, x):
        ctx.save_for_backward(x[:1])
        return x[:1] * x[:1]

    @first_squared.backward
    def _(ctx, g):
        (head,) = ctx.saved_variables
        return cr.cat([2 * g * head, g * 0])

    x = leaf([2.0, 3.0])
    (grad,) = cr.autograd_grad(first_squared(x), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=BETWEEN):
        cr.autograd_grad(grad.sum(), x)


def test_s58_a_derivative_that_does_not_meet_the_value_is_fine():
    x, w = leaf([2.0]), leaf([5.0])
    (grad,) = cr.autograd_grad((cube_with_a_square_between()(x) * w).sum(), x, create_graph=True)
    assert cr.autograd_grad(grad, w, retain_graph=True)[0].tolist() == [12.0]
    with pytest.raises(cr.AutogradError, match=BETWEEN):
        cr.autograd_grad(grad, x)


def test_s58_the_message_says_the_mend():
    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube_with_a_square_between()(x), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=r"Save inputs or outputs.*once_differentiable"):
        cr.autograd_grad(grad, x)


def test_s58_a_value_between_that_backward_does_not_use_is_fine():
    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x=x, square=x * x)
        return x**3

    cube.backward(lambda ctx, g: 3 * g * ctx.saved_variables.x**2)
    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube(x), x, create_graph=True)
    assert cr.autograd_grad(grad, x)[0].tolist() == [12.0]


def test_s58_a_value_between_that_is_an_output_differentiates():
    @cr.autograd_function
    def cube(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return square * x, square

    @cube.backward
    def _(ctx, g, h):
        x, square = ctx.saved_variables
        return 3 * g * square + 2 * h * x

    x = leaf([2.0])
    (grad,) = cr.autograd_grad(cube(x)[0], x, create_graph=True)
    assert cr.autograd_grad(grad, x)[0].tolist() == [12.0]


# --- once_differentiable --------------------------------------------------------------------------


def once_cube():
    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @cube.backward
    @cr.once_differentiable
    def _(ctx, g):
        assert not cr.is_grad_enabled()
        return 3 * g * ctx.saved_variables[0] ** 2

    return cube


def test_s58_once_differentiable_serves_the_first_order():
    x = leaf([2.0])
    assert cr.autograd_grad(once_cube()(x), x)[0].tolist() == [12.0]
    assert cr.autograd_grad(once_cube()(x), x, create_graph=True)[0].tolist() == [12.0]


@seconds
@around
def test_s58_once_differentiable_raises_at_the_second(program, second):
    x = leaf([0.5])
    (grad,) = cr.autograd_grad(program(once_cube(), x).sum(), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=f"{ONCE}.*cube"):
        second(grad, x)


def once_of(lib):
    return getattr(lib, "once_differentiable", None) or lib.autograd.function.once_differentiable


def test_s58_once_differentiable_in_pytorchs_form(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_of(lib)
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

    x = lib.leaf([2.0])
    (grad,) = lib.grad((Cube.apply(x) ** 2).sum(), x, create_graph=True)
    assert (grad.item(), grad.requires_grad) == (192.0, True)
    with pytest.raises(RuntimeError, match=ONCE):
        grad.sum().backward()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda g: g,
        lambda g: (g,),
        lambda g: [g],
        lambda g: {"x": g},
        lambda g: g.numpy(),
        lambda g: {"x": np.float32(g.item())},
        lambda g: g.item(),
    ],
    ids=["tensor", "tuple", "list", "dict", "array", "scalar", "number"],
)
def test_s58_once_differentiable_whatever_backward_returns(wrap):
    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @cube.backward
    @cr.once_differentiable
    def _(ctx, g):
        return wrap(3 * g * ctx.saved_variables[0] ** 2)

    x = leaf(2.0)
    (grad,) = cr.autograd_grad(cube(x), x, create_graph=True)
    assert (grad.item(), grad.requires_grad) == (12.0, True)
    with pytest.raises(cr.AutogradError, match=ONCE):
        cr.autograd_grad(grad, x)


def test_s58_once_differentiable_may_compute_in_numpy():
    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return cr.from_numpy(x.numpy() ** 3)

    @cube.backward
    @cr.once_differentiable
    def _(ctx, g):
        return cr.from_numpy(3 * g.numpy() * ctx.saved_variables[0].numpy() ** 2)

    x = leaf([2.0])
    for create_graph in (False, True):
        assert cr.autograd_grad(cube(x), x, create_graph=create_graph)[0].tolist() == [12.0]


def test_s58_once_differentiable_also_cuts_the_way_of_the_incoming_gradient():
    x, w = leaf([2.0]), leaf([5.0])
    (grad,) = cr.autograd_grad((once_cube()(x) * w).sum(), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=ONCE):
        cr.autograd_grad(grad, w)


def test_s58_what_does_not_depend_on_it_differentiates():
    x, w = leaf([2.0]), leaf([3.0])
    grads = cr.autograd_grad((once_cube()(x) + w**3).sum(), [x, w], create_graph=True)
    assert cr.autograd_grad(grads[1], w)[0].tolist() == [18.0]


def test_s58_once_differentiable_keeps_the_name_and_the_missing_gradients():
    @cr.once_differentiable
    def backward(ctx, g):
        """Nothing flows."""

    assert (backward.__name__, backward.__doc__) == ("backward", "Nothing flows.")
    x = leaf([1.0])
    cr.autograd_function(lambda ctx, x: x * 2, backward, name="f")(x).backward(create_graph=True)
    assert x.grad is None


def test_s58_once_differentiable_still_packs_outputs_into_the_last_parameter():
    seen = []

    @cr.once_differentiable
    def backward(ctx, first, others):
        seen.append((first.item(), len(others)))
        return first

    f = cr.autograd_function(lambda ctx, x: (x * 1, x * 2, x * 3), backward, name="f")
    f(leaf([1.0]))[0].backward()
    assert seen == [(1.0, 2)]


# --- values that keep no history ------------------------------------------------------------------


def numpys_cube(convert):
    """Return x³ whose backward leaves the world of tensors."""

    @cr.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x.numpy().copy())
        return x**3

    @cube.backward
    def _(ctx, g):
        return {"x": convert(3 * g.detach().numpy() * ctx.saved_variables[0] ** 2)}

    return cube


@pytest.mark.parametrize(
    "convert", [lambda g: g, np.float64, float], ids=["array", "scalar", "number"]
)
def test_s58_a_gradient_without_a_history_serves_the_first_order_alone(convert):
    x = leaf(2.0)
    y = numpys_cube(convert)(x)
    y.backward(retain_graph=True)
    assert x.grad.item() == 12.0
    (grad,) = cr.autograd_grad(y + x**4, x, create_graph=True)
    assert grad.item() == 44.0
    with pytest.raises(cr.AutogradError, match=r"Function cubeBackward returned .*no history"):
        cr.autograd_grad(grad, x)


def test_s58_it_stands_in_nobodys_way():
    x, w = leaf(2.0), leaf(5.0)
    cube = numpys_cube(np.asarray)
    (grad,) = cr.autograd_grad(cube(x) + w**2 * x, x, create_graph=True)
    assert cr.autograd_grad(grad, w)[0].item() == 10.0
    (grad,) = cr.autograd_grad(cube(x) * w, x, create_graph=True)  # here w is in what came in
    with pytest.raises(cr.AutogradError, match="no history"):
        cr.autograd_grad(grad, w)


# --- tensors that forward has set on ctx ----------------------------------------------------------


def test_s58_a_tensor_that_forward_computed_and_set_on_ctx_is_no_constant():
    def forward(ctx, x):
        ctx.exp = x.exp()
        ctx.save_for_backward(x=x)
        return ctx.exp * x

    def backward(ctx, g):
        return g * (ctx.exp * ctx.saved_variables.x + ctx.exp)

    f = cr.autograd_function(forward, backward, name="f")
    x = leaf([1.0, 2.0], dtype=cr.float64)
    assert cr.gradcheck(f, x)
    (first,) = cr.autograd_grad(f(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"f uses ctx\.exp, .*lack a term.*ctx\.exp\.detach\(\)"):
        first.sum().backward()


def keep(ctx, name, value):
    setattr(ctx, name, value)


@pytest.mark.parametrize(
    ("set_on", "read"),
    [
        (lambda ctx, x, s: keep(ctx, "kept", s), lambda ctx: ctx.kept),
        (lambda ctx, x, s: keep(ctx, "kept", s.reshape(1, 2)), lambda ctx: ctx.kept[0]),
        (lambda ctx, x, s: keep(ctx, "kept", [x, s]), lambda ctx: ctx.kept[1]),
        (lambda ctx, x, s: keep(ctx, "kept", {"s": (1, s)}), lambda ctx: ctx.kept["s"][1]),
        (lambda ctx, x, s: ctx.__dict__.update(kept=s), lambda ctx: ctx.kept),
    ],
    ids=["by-a-function", "a-view", "in-a-list", "in-a-dict", "in-__dict__"],
)
def test_s58_wherever_on_ctx_it_is(set_on, read):
    def cube_of(backward):
        def forward(ctx, x):
            set_on(ctx, x, x * x)
            ctx.save_for_backward(x)
            return x**3

        return cr.autograd_function(forward, backward, name="cube")

    x = leaf([1.0, 2.0], dtype=cr.float64)
    unknown = cube_of(lambda ctx, g: 3 * g * read(ctx))
    assert cr.gradcheck(unknown, x)
    (first,) = cr.autograd_grad((unknown(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=r"cube uses ctx\.kept, .*lack a term"):
        first.sum().backward()
    assert cr.gradgradcheck(cube_of(lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2), x)


def test_s58_what_setup_context_computed_is_no_constant_either():
    class Square(cr.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.slope = 2 * inputs[0]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.slope

    x = leaf([1.0, 2.0], dtype=cr.float64)
    (first,) = cr.autograd_grad((Square.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(cr.AutogradError, match=r"Square uses ctx\.slope"):
        first.sum().backward()


def test_s58_saved_containers_of_tensors_are_refused():
    def forward(ctx, x):
        ctx.save_for_backward(x, {"parts": [x * x]})
        return x**3

    f = cr.autograd_function(forward, lambda ctx, g: g, name="f")
    with pytest.raises(cr.ArgumentTypeError, match=r"fBackward got a dict.*\(\*tensors\)"):
        f(leaf([1.0]))
    f(cr.tensor([1.0]))  # nothing is recorded


def test_s58_arguments_outputs_and_masks_on_ctx_are_differentiated():
    scale = cr.tensor([3.0], dtype=cr.float64)

    def forward(ctx, x, factor, *more):
        ctx.x, ctx.factor, ctx.mask, ctx.count = x, factor, x > 0, 2
        ctx.scale = scale
        ctx.out = x.exp() * factor * scale
        return ctx.out

    def backward(ctx, g):
        assert ctx.mask.all()
        assert ctx.count == 2
        return g * ctx.x.exp() * ctx.factor * ctx.scale.detach(), g * ctx.out / ctx.factor

    f = cr.autograd_function(forward, backward, name="f")
    x, factor = leaf([1.0, 2.0], dtype=cr.float64), leaf([0.5, 1.5], dtype=cr.float64)
    assert cr.gradgradcheck(f, (x, factor))
    assert cr.gradgradcheck(lambda x: f(x, factor.detach()), x)
