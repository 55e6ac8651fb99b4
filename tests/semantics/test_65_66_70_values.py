"""SEMANTICS 65, 66 and 70: what gradients look like, the way to NumPy, copies, complex numbers."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, memory, share_memory
from helpers.torch_comparison import CHAINRULE, same_as_torch

REAL = [cr.float16, cr.float32, cr.float64]
COMPLEX = [cr.complex64, cr.complex128]

# --- 65: .grad is as the leaf is ------------------------------------------------------------------


@pytest.mark.parametrize("other", [*REAL, cr.int64, cr.bool], ids=str)
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "maximum"])
def test_s65_grad_has_the_leafs_dtype_though_the_operation_promoted(name, dtype, other):
    function = getattr(cr, name)
    x = cr.ones(2, dtype=dtype, requires_grad=True)
    y = function(x, cr.ones(2, dtype=other))
    y.backward(cr.ones_like(y))
    assert x.grad.dtype == dtype
    z = function(cr.ones(2, dtype=other), x)
    (g,) = cr.autograd_grad(z, x, cr.ones_like(z))
    assert g.dtype == dtype


@pytest.mark.parametrize("target", [*REAL, *COMPLEX], ids=str)
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
def test_s65_though_it_was_cast(dtype, target, create_graph):
    x = cr.ones(2, dtype=dtype, requires_grad=True)
    y = x.to(target)
    y.backward(cr.full((2,), 3, dtype=target), create_graph=create_graph)
    assert x.grad.dtype == dtype
    assert x.grad.tolist() == [3, 3]


def test_s65_both_leaves_of_a_promotion_get_their_own():
    x, y = leaf([1.0], cr.float16), leaf([2.0], cr.float64)
    (x * y).backward()
    assert (x.grad.dtype, y.grad.dtype) == (cr.float16, cr.float64)


def test_s65_through_matmul_cat_stack_and_where():
    for function in (
        lambda a, b: a @ b,
        lambda a, b: cr.cat([a, b]),
        lambda a, b: cr.stack([a, b]),
        lambda a, b: cr.where(a > 0, a, b),
    ):
        a = cr.ones(2, 2, dtype=cr.float32, requires_grad=True)
        b = cr.ones(2, 2, dtype=cr.float64, requires_grad=True)
        function(a, b).sum().backward()
        assert (a.grad.dtype, b.grad.dtype) == (cr.float32, cr.float64)


def test_s65_numpy_scalars_are_weak_and_arrays_are_not():
    x = leaf([1.0], cr.float32)
    assert (x * np.float64(2)).dtype == cr.float32
    y = x * np.array([2.0])
    assert y.dtype == cr.float64
    y.backward()
    assert x.grad.dtype == cr.float32


@pytest.mark.parametrize("move", [lambda x: x.to("cpu"), lambda x: x.cpu()])
def test_s65_and_its_device(move):
    x = leaf([1.0])
    (move(x) * 2).backward()
    assert x.grad.device == x.device


SHAPES = [
    ((3,), (2, 3)),
    ((1,), (2, 3)),
    ((), (2, 3)),
    ((2, 1), (2, 3)),
    ((1, 3), (2, 3)),
    ((1, 1), ()),
]


@pytest.mark.parametrize(("shape", "other"), SHAPES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_s65_and_its_shape_though_it_was_broadcast(shape, other, create_graph):
    x, c = cr.ones(shape, requires_grad=True), cr.ones(other)
    (x * c).sum().backward(create_graph=create_graph)
    assert x.grad.shape == shape
    expected = np.prod(np.broadcast_shapes(shape, other)) / np.prod(shape)
    assert equal(x.grad, np.full(shape, expected, np.float32))


UNARY = {
    "mul": lambda x: x * 2,
    "add": lambda x: x + 1,
    "exp": lambda x: x.exp(),
    "view": lambda x: x.reshape(-1),
    "T": lambda x: x.permute(*reversed(range(x.ndim))),
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "cast": lambda x: x.double(),
    "clone": lambda x: x.clone(),
    "pow": lambda x: x**2,
    "clamp": lambda x: x.clamp(0, 1),
    "abs": lambda x: x.abs(),
    "where": lambda x: cr.where(x > 0, x, -x),
    "expand": lambda x: x.expand(2, *x.shape),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "stack": lambda x: cr.stack([x, x]),
    "cat": lambda x: cr.cat([x.reshape(-1), x.reshape(-1)]),
    "norm": lambda x: x.norm(),
    "mask": lambda x: x[x > 0],
    "ellipsis": lambda x: x[...],
    "None": lambda x: x[None],
    "flip": lambda x: x.flip(tuple(range(x.ndim))),
    "custom": lambda x: cr.autograd_function(lambda ctx, a: a * 2, lambda ctx, g: g * 2)(x),
}


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0, 3), (1,)])
@pytest.mark.parametrize("function", UNARY.values(), ids=UNARY.keys())
@pytest.mark.parametrize("create_graph", [False, True])
def test_s65_empty_and_0d_tensors_work_everywhere(function, shape, create_graph):
    x = cr.ones(shape, requires_grad=True)
    function(x).sum().backward(create_graph=create_graph)
    assert x.grad.shape == shape
    assert x.grad.dtype == x.dtype
    assert isinstance(memory(x.grad), np.ndarray)


def test_s65_empty_matrices():
    a, b = cr.ones(2, 0, requires_grad=True), cr.ones(0, 3, requires_grad=True)
    y = a @ b
    assert y.tolist() == [[0, 0, 0], [0, 0, 0]]
    y.sum().backward()
    assert (a.grad.shape, b.grad.shape) == ((2, 0), (0, 3))


def test_s65_an_empty_dimension_summed_away():
    x = cr.ones(2, 0, requires_grad=True)
    y = x.sum(1)
    assert y.tolist() == [0, 0]
    y.sum().backward()
    assert x.grad.shape == (2, 0)


def test_s65_parts_without_elements():
    x = cr.ones(3, requires_grad=True)
    (x[:0].sum() + x[1:].sum() + x[[]].sum()).backward()
    assert x.grad.tolist() == [0, 1, 1]
    y = cr.cat([cr.zeros(0), x, cr.zeros(0, requires_grad=True)])
    y.sum().backward()
    assert x.grad.tolist() == [1, 2, 2]


def test_s65_the_mean_of_nothing_is_nan():
    x = cr.zeros(0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.mean()
    assert np.isnan(y.item())
    y.backward()
    assert x.grad.shape == (0,)


def test_s65_results_of_0d_operations_are_tensors_of_arrays():
    x = leaf(2.0)
    for y in (x * x, x + 1, x.sum(), x.exp(), x.max(), x.reshape(1)[0], x.clone(), -x):
        assert isinstance(y, cr.Tensor)
        assert isinstance(memory(y), np.ndarray)


def test_s65_as_in_torch():
    def program(m):
        results = []
        for dtype in ("float16", "float32", "float64"):
            for other in ("float32", "complex64", "int64"):
                x, c = m.leaf([1.0, 2.0], dtype), m.tensor([3, 4], other)
                y = x * c
                y.backward(m.ones_like(y))
                results.append(x.grad)
        return results

    same_as_torch(program)


# --- 66: towards NumPy and Python -----------------------------------------------------------------

CANNOT = (
    r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."
)
TO_NUMPY = {
    "numpy": lambda t: t.numpy(),
    "np.asarray": np.asarray,
    "np.array": np.array,
    "with a dtype": lambda t: np.asarray(t, dtype=np.float64),
    "list": lambda t: np.array([t, t]),
}
to_numpy = pytest.mark.parametrize("convert", TO_NUMPY.values(), ids=TO_NUMPY.keys())


@to_numpy
@pytest.mark.parametrize(
    "tensor", [leaf([1.0]), leaf([1.0]) * 2, leaf(1.0)], ids=["leaf", "non-leaf", "0-d"]
)
def test_s66_a_tracked_tensor_does_not_become_an_array(convert, tensor):
    with pytest.raises(RuntimeError, match=CANNOT):
        convert(tensor)


@pytest.mark.parametrize("ask", [np.mean, np.array, lambda parts: np.r_[tuple(parts)]])
def test_s66_who_gives_numpy_a_list_is_told_of_stack(ask):
    with pytest.raises(RuntimeError, match=rf"{CANNOT} .*cr\.stack\(\[t, \.\.\.\]\)"):
        ask([leaf([1.0]), leaf([2.0])])


def test_s66_text_is_formatted_by_percent_in_a_running_transform():
    texts = []

    def program(t):
        for template, values in (("%.2f", t), ("%d|%5.1f", (t, t)), ("%(a)e", {"a": t})):
            texts.append(template % values)
        template %= {"a": t}
        texts.append(template)
        return t * t

    assert cr.grad(program)(3.5) == 7.0
    assert texts == ["3.50", "3|  3.5", "3.500000e+00", "3.500000e+00"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert texts[0][:0] + "%.1f" % (leaf(2.0),) == "2.0"  # noqa: UP031
    with pytest.raises(cr.AutogradError, match=r"float\(t\) makes a number"):
        cr.grad(lambda t: t * (7 % float(t)))(3.5)


@to_numpy
def test_s66_it_does_under_no_grad(convert):
    x = leaf([1.0, 2.0])
    with cr.no_grad():
        array = convert(x)
        other = convert(x * 2)
    assert array.ravel()[:2].tolist() == [1, 2]
    assert other.ravel()[:2].tolist() == [2, 4]


@to_numpy
def test_s66_a_detached_or_untracked_one_does(convert):
    for t in (leaf([1.0, 2.0]).detach(), cr.tensor([1.0, 2.0])):
        assert convert(t).ravel()[:2].tolist() == [1, 2]


def test_s66_numpy_shares_memory():
    x = cr.zeros(2)
    x.numpy()[0] = 5
    np.asarray(x)[1] = 6
    assert x.tolist() == [5, 6]
    assert np.array(x) is not x.numpy()
    assert not np.shares_memory(np.array(x), x.numpy())


def test_s66_force():
    assert leaf([1.0]).numpy(force=True).tolist() == [1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("recording", [True, False])
def test_s66_item_bool_tolist_and_formatting_always_work(recording):
    with cr.set_grad_enabled(recording):
        for t in (leaf([2.5]), leaf(2.5), leaf(1.25) * 2):
            assert t.item() == 2.5
            assert bool(t) is True
            assert np.ravel(t.tolist()).tolist() == [2.5]
            assert "2.5" in f"{t} {t!r} {t!s}"
        assert f"{leaf(2.5):.3f}" == "2.500"
        assert not leaf([0.0])
        assert leaf([1.0, 2.0])[0] < 2


@pytest.mark.parametrize("convert", [float, int, complex])
def test_s66_float_works_and_warns(convert):
    for t in (leaf(2.0), leaf([2.0]), leaf(1.0) * 2):
        with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
            assert convert(t) == 2


@pytest.mark.filterwarnings("error")
def test_s66_float_of_an_untracked_tensor_does_not_warn():
    assert float(cr.tensor(2.0)) == 2
    assert int(cr.tensor([3])) == 3
    assert float(leaf(2.0).detach()) == 2


@pytest.mark.parametrize("convert", [float, int, bool, lambda t: t.item()])
@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_s66_one_element_is_needed(convert, shape):
    with pytest.raises(RuntimeError):
        convert(cr.zeros(shape))


@pytest.mark.parametrize("convert", [float, int, complex])
def test_s66_a_number_of_many_elements_is_a_wrong_value(convert):
    with pytest.raises(ValueError, match=r"only one element tensors .* \[2\]. Use tolist"):
        convert(cr.zeros(2))


def test_s66_an_array_element_does_not_swallow_a_gradient_in_silence():
    array = np.zeros(2)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        array[0] = leaf(2.0)
    with pytest.raises(RuntimeError, match=CANNOT):
        array[:] = leaf([1.0, 2.0])


# --- 70: copies -----------------------------------------------------------------------------------


def pickled(protocol):
    return lambda t: pickle.loads(pickle.dumps(t, protocol))


COPIES = {"deepcopy": copy.deepcopy} | {
    f"pickle {protocol}": pickled(protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
}
copies = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())


@copies
@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", [*REAL, *COMPLEX], ids=str)
def test_s70_copies_of_leaves_keep_requires_grad(copied, requires_grad, shape, dtype):
    x = cr.full(shape, 3, dtype=dtype, requires_grad=requires_grad)
    y = copied(x)
    assert y is not x
    assert y.requires_grad is requires_grad
    assert y.is_leaf
    assert equal(y, x)
    assert not share_memory(x, y) or x.numel() == 0


@copies
@pytest.mark.parametrize("dtype", [cr.int64, cr.bool, cr.uint8], ids=str)
def test_s70_copies_of_whole_numbers(copied, dtype):
    x = cr.ones(2, dtype=dtype)
    assert equal(copied(x), x)


@copies
def test_s70_a_copy_goes_its_own_way(copied):
    x = leaf([1.0])
    y = copied(x)
    (y * 2).backward()
    assert x.grad is None
    with cr.no_grad():
        y.add_(1)
    assert x.tolist() == [1]
    (x * x).backward()
    assert x.grad.tolist() == [2]


@copies
def test_s70_of_non_leaves_they_raise_and_name_detach(copied):
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match=r"only leaf tensors.*detach\(\)"):
        copied(y)
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        copied({"state": [y]})
    assert copied(y.detach()).tolist() == [2]


def test_s70_deepcopy_copies_the_gradient_too():
    x = leaf([1.0])
    (x * 2).backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [2]
    assert not share_memory(x.grad, y.grad)


def test_s70_deepcopy_keeps_one_object_one():
    x = leaf([1.0])
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_s70_deepcopy_of_an_object_with_parameters():
    class Model:
        def __init__(self):
            self.w = leaf([1.0])
            self.again = self.w

    model = copy.deepcopy(Model())
    assert model.w is model.again
    (model.w * 3).backward()
    assert model.again.grad.tolist() == [3]


def test_s70_a_copy_has_no_hooks():
    x, calls = leaf([1.0]), []
    x.register_hook(calls.append)
    y = copy.deepcopy(x)
    (y * 2).backward()
    assert calls == []


@copies
def test_s70_views_and_transposed_tensors(copied):
    x = cr.arange(6.0).reshape(2, 3).T
    assert equal(copied(x), x)


# --- 70: the complex convention -------------------------------------------------------------------

Z = [1 + 2j, -0.5 + 1j, 3 - 1j, 0.25 + 0j]


def test_s70_complex_gradients_are_conjugate():
    z = leaf([3 + 4j], cr.complex128)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [6 + 8j]


def test_s70_so_that_descent_descends():
    z = leaf([3 + 4j], cr.complex128)
    for _ in range(50):
        z.grad = None
        (z - (1 - 2j)).abs().square().sum().backward()
        with cr.no_grad():
            z.sub_(0.25 * z.grad)
    np.testing.assert_allclose(memory(z), [1 - 2j], atol=1e-9)


HOLOMORPHIC = {
    "mul": lambda m, z: z * (2 - 1j),
    "square": lambda m, z: z * z,
    "pow": lambda m, z: z**3,
    "reciprocal": lambda m, z: 1 / z,
    "div": lambda m, z: z / (1 + 2j),
    "exp": lambda m, z: m.exp(z),
    "log": lambda m, z: m.log(z),
    "sqrt": lambda m, z: m.sqrt(z),
    "sin": lambda m, z: m.sin(z),
    "cos": lambda m, z: m.cos(z),
    "tanh": lambda m, z: m.tanh(z),
    "sum": lambda m, z: z.sum() * z,
    "mean": lambda m, z: z.mean() * z,
    "prod": lambda m, z: z.prod() * z,
    "cumsum": lambda m, z: z.cumsum(0),
    "cumprod": lambda m, z: z.cumprod(0),
    "matmul": lambda m, z: z.reshape(2, 2) @ z.reshape(2, 2),
    "view": lambda m, z: z.reshape(2, 2).T,
    "index": lambda m, z: z[[0, 0, 2]],
    "cat": lambda m, z: m.cat([z, 2j * z]),
    "where": lambda m, z: m.where(z.abs() > 2, z, z * z),
    "add real": lambda m, z: z + z.real,
    "neg": lambda m, z: -z,
    "sub": lambda m, z: 1j - z,
}
MIXED = {
    "conj": lambda m, z: z.conj(),
    "real": lambda m, z: z.real,
    "imag": lambda m, z: z.imag,
    "abs": lambda m, z: z.abs(),
    "abs squared": lambda m, z: z * z.conj(),
    "real * imag": lambda m, z: z.real * z.imag,
    "norm": lambda m, z: z.norm(),
    "abs of exp": lambda m, z: m.exp(z).abs(),
    "conj of product": lambda m, z: (z * z).conj() * z,
}


@pytest.mark.parametrize(
    "function", [*HOLOMORPHIC.values(), *MIXED.values()], ids=[*HOLOMORPHIC, *MIXED]
)
def test_s70_complex_functions_as_in_torch(function):
    def program(m):
        z = m.leaf(Z, "complex128")
        y = function(m, z)
        weights = m.tensor(np.arange(1, y.numel() + 1.0)) * (
            0.5 if y.dtype == m.float64 else 1 - 0.5j
        )
        return m.grad(y, z, weights.reshape(y.shape).to(y.dtype))

    same_as_torch(program, rtol=1e-9)


@pytest.mark.parametrize(
    "function", [*HOLOMORPHIC.values(), *MIXED.values()], ids=[*HOLOMORPHIC, *MIXED]
)
def test_s70_complex_second_derivatives_as_in_torch(function):
    def program(m):
        z = m.leaf(Z, "complex128")
        y = function(m, z)
        (g,) = m.grad((y.abs() ** 3).sum(), z, create_graph=True)
        return m.grad((g.abs() ** 2).sum(), z)

    same_as_torch(program, rtol=1e-8)


def test_s70_a_real_leaf_in_a_complex_computation_gets_a_real_gradient():
    def program(m):
        x, z = m.leaf([1.0, 2.0]), m.leaf([1 + 2j, 3 - 1j], "complex128")
        ((x * z) ** 2).abs().sum().backward()
        return x.grad, z.grad

    same_as_torch(program, rtol=1e-9)


@pytest.mark.parametrize("create_graph", [False, True])
def test_s70_everyone_sees_the_conjugate_convention(create_graph):
    def program(m):
        seen = []

        z = m.leaf(Z, "complex128")
        y = z * (1 + 1j)
        y.register_hook(lambda g: seen.append(g.detach().clone()))
        y.retain_grad()
        gradient = m.tensor([1j, 2 + 1j, 0j, -1 + 0j], "complex128")
        (y * y).backward(gradient, create_graph=create_graph)
        return seen, y.grad, z.grad

    same_as_torch(program, rtol=1e-9)


def test_s70_hooks_replace_complex_gradients():
    def program(m):
        z = m.leaf(Z, "complex128")
        z.register_hook(lambda g: g * (1 + 2j))
        y = z * z
        y.register_hook(lambda g: g.conj())
        y.backward(m.tensor([1j, 2 + 1j, 0j, -1 + 0j], "complex128"))
        return z.grad

    same_as_torch(program, rtol=1e-9)


def test_s70_a_complex_leaf_by_itself():
    z = leaf([1 + 1j], cr.complex128)
    z.backward(cr.tensor([2 + 3j], dtype=cr.complex128))
    assert z.grad.tolist() == [2 + 3j]
    assert cr.autograd_grad(z, z, cr.tensor([1j], dtype=cr.complex128))[0].tolist() == [1j]


def test_s70_complex_gradients_accumulate():
    z = leaf([1 + 1j], cr.complex128)
    for _ in range(2):
        (z * z).backward(cr.tensor([1 + 0j], dtype=cr.complex128))
    assert z.grad.tolist() == [2 * (2 - 2j)]


def test_s70_a_custom_backward_gets_and_gives_conjugate_gradients():
    @cr.autograd_function
    def square(ctx, z):
        ctx.save_for_backward(z=z)
        return z * z

    @square.backward
    def _(ctx, g):
        return g * (2 * ctx.saved_variables.z).conj()

    gradient = cr.tensor([1j, 2 + 1j, 0j, -1 + 0j], dtype=cr.complex128)
    grads = []
    for function in (square, lambda z: z * z):
        z = leaf(Z, cr.complex128)
        (function(z) * (1 - 1j)).backward(gradient)
        grads.append(z.grad.tolist())
    assert grads[0] == grads[1]


def test_s70_single_precision_stays_single():
    z = CHAINRULE.leaf(Z, "complex64")
    z.abs().sum().backward()
    assert z.grad.dtype == cr.complex64
