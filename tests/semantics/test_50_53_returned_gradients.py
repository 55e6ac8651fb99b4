"""SEMANTICS 50–53: what the backward of a custom function gets and what it may return."""

from __future__ import annotations

import types
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf, share_memory


def function(backward, arguments="x", name="f", outputs=1):
    """Return a function of these arguments, the sum of those that are tensors, with a backward."""
    scope = {"cr": cr}
    names = arguments.split(", ")
    exec(
        f"def {name}(ctx, {arguments}):\n"
        f"    total = sum(t for t in [{arguments}] if isinstance(t, cr.Tensor))\n"
        f"    outs = tuple(total * (i + 1) for i in range({outputs}))\n"
        f"    return outs if {outputs} > 1 else outs[0]",
        scope,
    )
    assert names
    return cr.autograd_function(scope[name], backward)


# --- 50: by name ----------------------------------------------------------------------------------


def test_s50_the_order_of_the_names_is_irrelevant():
    for order in (["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]):
        values = {"a": 1.0, "b": 2.0, "c": 3.0}
        f = function(lambda ctx, g: {k: g * values[k] for k in order}, "a, b, c")  # noqa: B023
        leaves = [leaf([1.0]) for _ in range(3)]
        f(*leaves).backward()
        assert [t.grad.item() for t in leaves] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "kind",
    [dict, OrderedDict, lambda d: types.MappingProxyType(d)],
    ids=["dict", "ordered", "proxy"],
)
def test_s50_any_mapping_will_do(kind):
    x = leaf([1.0])
    function(lambda ctx, g: kind({"x": g * 5}))(x).backward()
    assert x.grad.tolist() == [5.0]


def test_s50_gradients_that_are_not_needed_are_dropped():
    f = function(lambda ctx, g: {"a": g, "b": g, "k": g, "n": g}, "a, b, k, n")
    a, b = leaf([1.0]), cr.ones(1)
    f(a, b, 3, None).backward()
    assert a.grad.tolist() == [1.0]
    assert b.grad is None


def test_s50_not_even_their_shape_matters():
    f = function(lambda ctx, g: {"a": g, "b": cr.ones(7, 7), "k": "nonsense"}, "a, b, k")
    a = leaf([1.0])
    f(a, cr.ones(1), 3).backward()
    assert a.grad.tolist() == [1.0]


def test_s50_gradients_that_this_pass_does_not_need_are_dropped():
    f = function(lambda ctx, g: {"a": g * 2, "b": cr.ones(7, 7)}, "a, b")
    a, b = leaf([1.0]), leaf([1.0])
    z = f(a, b)
    assert cr.autograd_grad(z, a)[0].tolist() == [2.0]
    assert b.grad is None


@pytest.mark.parametrize("value", ["gradient", None])
def test_s50_an_unknown_name_is_an_error_that_lists_the_names(value):
    f = function(lambda ctx, g: {"wieght": g if value else None}, "input, weight, bias", "linear")
    with pytest.raises(RuntimeError) as info:
        f(leaf([1.0]), leaf([1.0]), None).backward()
    for part in ("linearBackward", "'wieght'", "input", "weight", "bias"):
        assert part in str(info.value)


def test_s50_keys_that_are_no_names_are_an_error():
    with pytest.raises(RuntimeError, match="0"):
        function(lambda ctx, g: {0: g})(leaf([1.0])).backward()


# --- 51: nothing flows ----------------------------------------------------------------------------

NOTHING = {
    "None": lambda ctx, g: None,
    "(None,)": lambda ctx, g: (None,),
    "[None]": lambda ctx, g: [None],
    "{}": lambda ctx, g: {},
    "{'x': None}": lambda ctx, g: {"x": None},
}


@pytest.mark.parametrize("backward", NOTHING.values(), ids=NOTHING.keys())
def test_s51_a_missing_gradient_means_that_none_flows(backward):
    x = leaf([1.0])
    y = x * 1
    seen = []
    y.register_hook(seen.append)
    function(backward)(y).backward()
    assert x.grad is None
    assert seen == []


@pytest.mark.parametrize("backward", NOTHING.values(), ids=NOTHING.keys())
def test_s51_other_ways_still_count(backward):
    x = leaf([1.0])
    (function(backward)(x) + x * 3).backward()
    assert x.grad.tolist() == [3.0]


def test_s51_a_missing_gradient_leaves_an_older_one_alone(lib):
    class Cut(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = lib.leaf([1.0])
    x.grad = lib.tensor([7.0], dtype="float64")
    Cut.apply(x).backward()
    assert x.grad.tolist() == [7.0]


def test_s51_one_of_two_may_be_missing(lib):
    class Half(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return None, g * 5

    a, b = lib.leaf([1.0]), lib.leaf([1.0])
    Half.apply(a, b).backward()
    assert a.grad is None
    assert b.grad.tolist() == [5.0]


def test_s51_autograd_grad_calls_it_unused(lib):
    class Cut(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = lib.leaf([1.0])
    assert lib.grad(Cut.apply(x), x, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.grad(Cut.apply(x), x)


# --- 52: shapes, dtypes and counts ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "got"),
    [((5, 5), (10,)), ((5, 5), (5,)), ((5, 5), ()), ((3,), (1,)), ((1,), ()), ((2, 3), (3, 2)),
     ((0,), (2,)), ((2, 1), (2,))],
    ids=str,
)  # fmt: skip
def test_s52_a_gradient_of_the_wrong_shape_is_refused(lib, shape, got):
    class linear(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return lib.ones(got, dtype=lib.float64)

    x = lib.leaf(np.ones(shape))
    text = (
        "Function linearBackward returned an invalid gradient at index 0 - got "
        f"{list(got)} but expected shape compatible with {list(shape)}"
    )
    with pytest.raises(RuntimeError) as info:
        linear.apply(x).sum().backward()
    assert text in str(info.value)
    assert x.grad is None


def test_s52_the_index_counts_the_arguments_of_forward():  # PyTorch's counts the tensors
    f = function(lambda ctx, g: (g, None, cr.ones(7)), "a, k, b")
    with pytest.raises(RuntimeError, match=r"at index 2 - got \[7\]"):
        f(leaf([1.0, 2.0]), 3, leaf([1.0, 2.0])).sum().backward()


def test_s52_where_it_was_returned_by_name_the_error_says_the_name():
    f = function(lambda ctx, g: {"weight": cr.ones(10)}, "input, weight", "linear")
    text = (
        r"Function linearBackward returned an invalid gradient at 'weight' - got \[10\] but "
        r"expected shape compatible with \[5, 5\]"
    )
    with pytest.raises(cr.ShapeError, match=text):
        f(leaf(np.ones((5, 5))), leaf(np.ones((5, 5)))).sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("shape", "got", "total"),
    [((3,), (2, 3), 2.0), ((2, 1), (2, 3), 3.0), ((), (4,), 4.0), ((1,), (5, 4), 20.0),
     ((1, 1), (2, 3, 4), 24.0), ((2, 1, 3), (7, 2, 5, 3), 35.0)],
    ids=str,
)  # fmt: skip
def test_s52_a_broadcast_larger_gradient_is_summed_down(lib, shape, got, total, create_graph):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(got) * 1

    x = lib.leaf(np.ones(shape))
    (grad,) = lib.grad(f.apply(x), x, create_graph=create_graph)
    assert grad.tolist() == np.full(shape, total).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "bool"])
def test_s52_the_dtype_is_cast_to_the_inputs(lib, dtype):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return lib.ones(2).to(getattr(lib, dtype))

    x = lib.leaf([1.0, 2.0], "float32")
    f.apply(x).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (lib.float32, [1.0, 1.0])


def test_s52_the_imaginary_part_of_a_gradient_of_a_real_input_is_dropped():
    x = leaf([1.0])
    function(lambda ctx, g: cr.tensor([3 + 4j]))(x).backward()
    assert (x.grad.dtype, x.grad.tolist()) == (cr.float32, [3.0])


def test_s52_forward_may_change_the_dtype(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.double()

        @staticmethod
        def backward(ctx, g):
            seen.append(g.dtype)
            return g

    x = lib.leaf([1.0], "float32")
    f.apply(x).backward()
    assert seen == [lib.float64]
    assert x.grad.dtype == lib.float32


@pytest.mark.parametrize("value", [3.0, 3, np.float64(3), np.array([3.0]), np.array([3], "i4")])
def test_s52_numbers_and_arrays_are_gradients_too(value):
    x = leaf([1.0]) if isinstance(value, np.ndarray) else leaf(1.0)
    function(lambda ctx, g: value)(x).backward()
    assert x.grad.sum().item() == 3.0
    assert x.grad.dtype == cr.float32


@pytest.mark.parametrize(
    "value", ["text", object(), {1}, len], ids=lambda value: type(value).__name__
)
def test_s52_anything_else_is_a_type_error_that_says_whose(value):
    with pytest.raises(TypeError, match=f"fBackward.*{type(value).__name__}.*'b'"):
        function(lambda ctx, g: (g, value), "a, b")(leaf([1.0]), leaf([1.0])).backward()


def test_s52_one_gradient_for_each_argument_of_forward():
    f = function(lambda ctx, g: (g * 1, None, g * 2, None), "a, k, b, n")
    a, b = leaf([1.0]), leaf([1.0])
    f(a, 3, b, None).backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, 2.0)


def test_s52_one_gradient_for_each_tensor_that_requires_grad():
    f = function(lambda ctx, g: (g * 1, g * 2), "n, a, k, c, b")
    a, b, c = leaf([1.0]), leaf([1.0]), cr.ones(1)
    f(None, a, 3, c, b).backward()
    assert (a.grad.item(), b.grad.item(), c.grad) == (1.0, 2.0, None)


def test_s52_a_single_value_where_one_argument_can_have_a_gradient():
    for arguments in ((3, None), (None, 3)):
        f = function(lambda ctx, g: g * 5, "a, x, b")
        x = leaf([1.0])
        f(arguments[0], x, arguments[1]).backward()
        assert x.grad.tolist() == [5.0]


Gradients = namedtuple("Gradients", "a b")


@pytest.mark.parametrize("kind", [tuple, list, lambda pair: Gradients(*pair)], ids=["t", "l", "n"])
def test_s52_any_sequence_will_do(kind):
    f = function(lambda ctx, g: kind([g * 1, g * 2]), "a, b")
    a, b = leaf([1.0]), leaf([1.0])
    f(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, 2.0)


@pytest.mark.parametrize("extra", [1, 2, 5])
def test_s52_extra_trailing_nones_are_fine(lib, extra):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, k):
            return a * k

        @staticmethod
        def backward(ctx, g):
            return (g * 2, None, *([None] * extra))

    a = lib.leaf([1.0])
    f.apply(a, 3).backward()
    assert a.grad.tolist() == [2.0]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_s52_any_other_count_is_an_error(lib, count):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return (g,) * count if count > 1 else g

    a, b = lib.leaf([1.0]), lib.leaf([1.0])
    with pytest.raises(
        RuntimeError,
        match=rf"returned an incorrect number of gradients \(expected 2, got {count}\)",
    ):
        f.apply(a, b).backward()
    assert a.grad is None
    assert b.grad is None


def test_s52_the_count_error_lists_the_arguments():
    f = function(lambda ctx, g: (g, g, g, g, g), "input, weight, bias", "linear")
    with pytest.raises(RuntimeError, match=r"linearBackward.*input, weight, bias"):
        f(leaf([1.0]), leaf([1.0]), leaf([1.0])).backward()


def test_s52_a_gradient_for_a_constant_is_ignored():
    f = function(lambda ctx, g: (g * 1, g * 100), "a, k")
    a = leaf([1.0])
    f(a, 3).backward()
    assert a.grad.tolist() == [1.0]


def test_s52_stars_count_what_was_passed():
    f = cr.autograd_function(
        lambda ctx, *xs: sum(xs), lambda ctx, g: tuple(g * n for n in range(1, 4))
    )
    leaves = [leaf([1.0]) for _ in range(3)]
    f(*leaves).backward()
    assert [t.grad.item() for t in leaves] == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 3\)"):
        f(leaf([1.0]), leaf([1.0])).backward()


def test_s52_the_same_gradient_for_two_arguments_is_not_shared():
    f = function(lambda ctx, g: (g, g), "a, b")
    a, b = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    f(a, b).sum().backward()
    assert not share_memory(a.grad, b.grad)
    a.grad.zero_()
    assert b.grad.tolist() == [1.0, 1.0]


def test_s52_the_gradient_that_came_in_may_be_returned():
    given = cr.ones(2)
    x = leaf([1.0, 2.0])
    function(lambda ctx, g: g)(x).backward(given)
    x.grad.zero_()
    assert given.tolist() == [1.0, 1.0]


def test_s52_a_buffer_that_backward_keeps_is_not_taken_over():
    buffer = np.ones(2, np.float32)
    kept = cr.ones(2)
    for value in (buffer, kept, cr.from_numpy(buffer)):
        x = leaf([1.0, 2.0])
        f = function(lambda ctx, g, value=value: value)
        f(x).sum().backward()
        f(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
    assert buffer.tolist() == kept.tolist() == [1.0, 1.0]


def test_s52_a_saved_value_may_be_returned_as_gradient():
    @cr.autograd_function
    def f(ctx, x, w):
        ctx.save_for_backward(w)
        return (x * w).sum()

    @f.backward
    def _(ctx, g):
        return ctx.saved_variables[0], None

    x, w = leaf([1.0, 2.0]), cr.tensor([3.0, 4.0])
    for _ in range(2):
        f(x, w).backward()
    assert x.grad.tolist() == [6.0, 8.0]
    assert w.tolist() == [3.0, 4.0]


def test_s52_a_gradient_that_broadcasting_made_becomes_a_real_buffer():
    x = leaf(np.ones((2, 3)))
    function(lambda ctx, g: cr.ones(1).expand(2, 3))(x).sum().backward()
    x.grad[0, 0] = 5.0
    assert x.grad.sum().item() == 10.0


# --- 53: what backward gets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, grad_output: grad_output * 2,
        lambda c, x: x * 2,
        lambda self, ctx: ctx * 2,
        lambda ctx, g, unused=3: g * 2,
        lambda ctx, g, *, unused=3: g * 2,
        lambda ctx, *grads: grads[0] * 2,
        lambda ctx, g, *rest: g * 2,
        lambda ctx, g, /: g * 2,
        lambda *everything: everything[1] * 2,
        lambda ctx, *grads, **more: grads[0] * 2,
    ],
)
def test_s53_the_names_of_the_parameters_are_free(backward):
    x = leaf([1.0])
    function(backward)(x).backward()
    assert x.grad.tolist() == [2.0]


def test_s53_gradients_arrive_in_the_order_of_the_outputs(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append([a.item(), b.item(), c.item()])
            return a

    p, q, r = f.apply(lib.leaf([1.0]))
    (r * 300 + p * 100 + q * 200).sum().backward()
    assert seen == [[100.0, 200.0, 300.0]]


PACKING = {
    "(a, b, c)": (lambda ctx, a, b, c: SEEN.append((a, b, c)), (1.0, 2.0, 3.0)),
    "(a, b)": (lambda ctx, a, b: SEEN.append((a, b)), (1.0, (2.0, 3.0))),
    "(a)": (lambda ctx, a: SEEN.append((a,)), ((1.0, 2.0, 3.0),)),
    "(a, *rest)": (lambda ctx, a, *rest: SEEN.append((a, rest)), (1.0, (2.0, 3.0))),
    "(*all)": (lambda ctx, *all: SEEN.append(all), (1.0, 2.0, 3.0)),
    "(a, b, *, k=0)": (lambda ctx, a, b, *, k=0: SEEN.append((a, b)), (1.0, (2.0, 3.0))),
}
SEEN = []


def numbers(value):
    return tuple(map(numbers, value)) if isinstance(value, tuple) else value.item()


@pytest.mark.parametrize(("backward", "expected"), PACKING.values(), ids=PACKING.keys())
def test_s53_with_fewer_parameters_the_last_gets_the_rest_as_a_tuple(backward, expected):
    SEEN.clear()
    p, q, r = function(backward, outputs=3)(leaf(1.0))
    (p + q * 2 + r * 3).backward()
    assert [numbers(seen) for seen in SEEN] == [expected]


def test_s53_a_single_output_is_never_packed():
    SEEN.clear()
    function(lambda ctx, g: SEEN.append(g))(leaf(1.0)).backward()
    assert isinstance(SEEN[0], cr.Tensor)


@pytest.mark.parametrize("backward", [lambda ctx: None, lambda ctx, a, b: None])
def test_s53_parameters_that_cannot_be_filled_are_pythons_type_error(backward):
    with pytest.raises(TypeError, match="positional argument"):
        function(backward)(leaf(1.0)).backward()


def test_s53_each_gradient_has_shape_and_dtype_of_its_output(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[None].double(), x.sum(), x.float()[:1] * 1

        @staticmethod
        def backward(ctx, *grads):
            seen.extend((tuple(g.shape), g.dtype) for g in grads)
            return grads[0][0]

    p, _, r = f.apply(lib.leaf([1.0, 2.0], "float32"))
    (p.sum() + r.sum()).backward()
    assert seen == [((1, 2), lib.float64), ((), lib.float32), ((1,), lib.float32)]


def test_s53_backward_may_write_to_what_it_gets(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g.clone().mul_(5)

    x = lib.leaf([1.0, 2.0])
    y = x * 1
    (f.apply(y) + y).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_s53_writing_into_the_gradient_harms_no_sibling():
    f = function(lambda ctx, g: g.mul_(5))
    x = leaf([1.0, 2.0])
    y, given = x * 1, cr.ones(2)
    (f(y) + y).backward(given)
    assert x.grad.tolist() == [6.0, 6.0]
    assert given.tolist() == [1.0, 1.0]


WRITES = {
    "mul_": lambda g: g.mul_(5),
    "element": lambda g: g.__setitem__(0, 5.0),
    "slice": lambda g: g.__setitem__(slice(0, 1), 5.0),
    "zero_": lambda g: g[1:].zero_(),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize(
    "reduce",
    [lambda z: z.sum(), lambda z: z.mean() * 2, lambda z: z.expand(3, 2).sum() / 3, lambda z: z],
    ids=["sum", "mean", "expand", "itself"],
)
def test_s53_writing_into_a_broadcast_gradient_writes_one_element(reduce, write, create_graph):
    def backward(ctx, g):
        write(g)
        return g

    f = function(backward)
    x = leaf([1.0, 2.0])
    y = x * 1
    expected = np.ones(2)
    write(cr.from_numpy(expected))
    loss = reduce(f(y)) + reduce(y)
    given = cr.ones_like(loss)
    loss.backward(given, create_graph=create_graph)
    assert x.grad.tolist() == pytest.approx(expected + 1)
    assert given.tolist() == np.ones(loss.shape).tolist()
    x.grad = None


def test_s53_complex_gradients_are_in_pytorchs_convention(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z * (2 + 1j)

        @staticmethod
        def backward(ctx, g):
            seen.append(g.tolist())
            return g * (2 - 1j)

    z = lib.leaf([1 + 1j], "complex128")
    f.apply(z).backward(lib.tensor([1j], dtype="complex128"))
    assert seen == [[1j]]
    assert z.grad.tolist() == [1 + 2j]
