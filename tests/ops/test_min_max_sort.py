"""Minima, maxima, sorting and topk."""

import numpy as np
import pytest

import chainrule as cr


def data():
    return np.random.default_rng(0).permutation(24).reshape(2, 3, 4).astype(float)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_along_a_dimension(name, dim, keepdim):
    x = data()
    for result in (
        getattr(cr, name)(cr.tensor(x), dim, keepdim),
        getattr(cr.tensor(x), name)(dim=dim, keepdims=keepdim),
    ):
        expected = getattr(np, f"arg{name}")(x, axis=dim, keepdims=keepdim)
        np.testing.assert_array_equal(result.indices.numpy(), expected)
        np.testing.assert_array_equal(
            result.values.numpy(), getattr(np, name)(x, axis=dim, keepdims=keepdim)
        )
        assert result.indices.dtype == cr.int64
        values, indices = result
        assert values is result.values
        assert indices is result[1]


def test_the_three_forms_and_the_array_apis():
    x, y = cr.tensor([[1.0, 5.0], [7.0, 2.0]]), cr.tensor([[3.0, 3.0], [3.0, 3.0]])
    assert x.max().item() == 7
    assert x.max(0).values.tolist() == [7, 5]
    assert cr.max(x, y).tolist() == [[3, 5], [7, 3]]
    assert cr.max(x, other=y).tolist() == [[3, 5], [7, 3]]
    assert x.min(other=np.array([[3.0, 3.0]])).tolist() == [[1, 3], [3, 2]]
    assert x.max(other=4).tolist() == [[4, 5], [7, 4]]
    with pytest.raises(ValueError, match="min: expected a dimension or another tensor, got both"):
        x.min(0, other=y)
    assert cr.max(x, axis=0).tolist() == [7, 5]
    assert cr.min(x, axis=(0, 1), keepdims=True).tolist() == [[1]]
    assert x.max(keepdim=True).tolist() == [[7]]


def test_gradients_at_ties():
    x = cr.tensor([3.0, 1.0, 3.0], requires_grad=True)
    for value, expected in (
        (x.max(), [0.5, 0, 0.5]),
        (x.max(0).values, [1, 0, 0]),
        (x.amax(0), [0.5, 0, 0.5]),
        (cr.max(x, cr.tensor([3.0, 3.0, 0.0])).sum(), [0.5, 0, 1]),
    ):
        (gradient,) = cr.autograd_grad(value, [x])
        assert gradient.tolist() == expected


def test_nan_wins():
    x = cr.tensor([1.0, float("nan"), 3.0])
    assert x.max(0).indices.item() == 1
    assert np.isnan(x.max().item())
    assert np.isnan(x.min(0).values.item())


def test_the_gradient_of_a_nan_goes_to_the_nan():
    x = cr.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    for extremum in (cr.amax, cr.amin, lambda x: x.max()):
        (gradient,) = cr.autograd_grad(extremum(x), [x])
        assert gradient.tolist() == [0, 1, 0]
        _, tangent = cr.jvp(extremum, (x.detach(),), (cr.tensor([5.0, 2.0, 7.0]),))
        assert tangent.item() == 2


def test_argmax_and_argmin_arguments():
    x = data()
    t = cr.tensor(x)
    assert t.argmax().item() == x.argmax()
    np.testing.assert_array_equal(t.argmin(1, keepdim=True).numpy(), x.argmin(1, keepdims=True))
    np.testing.assert_array_equal(cr.argmax(t, axis=-1).numpy(), x.argmax(-1))
    assert t.argmax(keepdim=True).shape == (1, 1, 1)


def test_extrema_of_empty_tensors():
    x = cr.zeros(2, 0)
    with pytest.raises(ValueError, match="Expected reduction dim to be specified"):
        x.max()
    with pytest.raises(ValueError, match="there is no element to choose"):
        x.max(1)
    with pytest.raises(ValueError, match="there is no element to choose"):
        x.argmin()
    assert x.max(0).values.shape == (0,)
    assert x.amax(0).shape == (0,)


def test_zero_dimensional_tensors():
    x = cr.tensor(3.0)
    assert x.max(0) == (cr.tensor(3.0), cr.tensor(0))
    assert x.sort().values.item() == 3
    assert x.argsort().item() == 0
    assert x.topk(1).values.item() == 3


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dim, descending):
    x = data()
    values, indices = cr.sort(cr.tensor(x), dim, descending)
    expected = np.sort(x, axis=dim)
    np.testing.assert_array_equal(
        values.numpy(), np.flip(expected, axis=dim) if descending else expected
    )
    np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), dim), values.numpy())
    np.testing.assert_array_equal(cr.tensor(x).argsort(dim, descending).numpy(), indices.numpy())


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(descending):
    x = cr.tensor([1, 0, 1, 0, 1])
    expected = [0, 2, 4, 1, 3] if descending else [1, 3, 0, 2, 4]
    assert x.argsort(descending=descending).tolist() == expected


def test_sorting_passes_gradients_back():
    x = cr.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort().values * cr.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


def test_topk():
    x = cr.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], requires_grad=True)
    values, indices = x.topk(2)
    assert values.tolist() == [[3, 2], [6, 5]]
    assert indices.tolist() == [[0, 2], [1, 2]]
    assert x.topk(1, dim=0, largest=False).values.tolist() == [[3, 1, 2]]
    values.sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [0, 1, 1]]
    with pytest.raises(ValueError, match="selected index k = 4 out of range"):
        x.topk(4)


ROWS_TO_SELECT_FROM = [(127, 32), (128, 32), (200, 31), (5000,), (3, 50, 40)]


@pytest.mark.parametrize("shape", ROWS_TO_SELECT_FROM)
@pytest.mark.parametrize("levels", [10**9, 40])  # without and with equal elements
@pytest.mark.parametrize("largest", [True, False])
def test_topk_selects_like_a_stable_sort(shape, levels, largest):
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(0, levels, shape).astype(float)
    if levels > 40:
        x[(0,) * (x.ndim - 1)][:3] = np.nan, -np.inf, np.nan
    for k in (0, 1, 7, shape[-1]):
        found = cr.from_numpy(x).topk(k, largest=largest)
        order = cr.argsort(cr.from_numpy(x), dim=-1, descending=largest).numpy()[..., :k]
        np.testing.assert_array_equal(found.indices.numpy(), order)
        np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(x, order, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("kind", ["distinct", "equal", "nan", "infinite", "limits"])
def test_the_largest_few_are_those_of_a_stable_sort(kind: str, dtype: str) -> None:
    """Also nan, which is larger than any, and the numbers that replace those that are found."""
    rng = np.random.default_rng(0)
    x = rng.integers(*((-(10**6), 10**6) if kind == "distinct" else (-9, 9)), (50, 100))
    x = x.astype(dtype)
    if kind == "limits":
        x[:, 3:] = -np.inf if x.dtype.kind == "f" else np.iinfo(dtype).min
    elif x.dtype.kind == "f" and kind in ("nan", "infinite"):
        x[rng.random(x.shape) < 0.04] = np.nan if kind == "nan" else np.inf
    descending = 99 - np.argsort(x[:, ::-1], 1, kind="stable")[:, ::-1]
    for k in (1, 4, 20):
        largest, smallest = (cr.topk(cr.from_numpy(x), k, 1, which) for which in (True, False))
        assert np.array_equal(largest.indices.numpy(), descending[:, :k])
        assert np.array_equal(smallest.indices.numpy(), np.argsort(x, 1, kind="stable")[:, :k])
        assert np.array_equal(
            largest.values.numpy(), np.take_along_axis(x, descending[:, :k], 1), equal_nan=True
        )


@pytest.mark.parametrize("shape", ROWS_TO_SELECT_FROM)
@pytest.mark.parametrize("levels", [10**9, 40])
def test_quantiles_select_like_a_stable_sort(shape, levels):
    rng = np.random.default_rng(sum(shape))
    x = cr.tensor(rng.integers(0, levels, shape).astype(float), requires_grad=True)
    for q in (0.25, [0.0, 0.3, 1.0]):
        weights = cr.from_numpy(rng.standard_normal((*np.shape(q), *shape[:-1])))
        quantiles = cr.quantile(x, cr.tensor(q, dtype=x.dtype), -1)
        ranks, ordered = np.asarray(q) * (shape[-1] - 1), cr.sort(x).values
        low, high = [ordered[..., f(ranks).astype(int)] for f in (np.floor, np.ceil)]
        wanted = low + (high - low) * cr.tensor(ranks % 1)
        wanted = cr.movedim(wanted, -1, 0) if np.ndim(q) else wanted
        np.testing.assert_allclose(quantiles.detach().numpy(), wanted.detach().numpy(), rtol=1e-15)
        grads = [cr.autograd.grad((y * weights).sum(), x)[0].numpy() for y in (quantiles, wanted)]
        np.testing.assert_allclose(*grads, rtol=1e-12)


def test_out_takes_results_that_record_nothing() -> None:
    x, y = cr.tensor([[1.0, 5.0], [7.0, 2.0]]), cr.tensor([[3.0, 4.0], [0.0, 9.0]])
    for function, expected in (
        (cr.max, np.maximum(x.numpy(), y.numpy())),
        (cr.minimum, np.minimum(x.numpy(), y.numpy())),
    ):
        running = x.clone()
        memory = running.data_ptr()
        assert function(running, y, out=running) is running
        assert running.data_ptr() == memory
        np.testing.assert_array_equal(running.numpy(), expected)
    values, indices = cr.empty(2), cr.empty(2, dtype=cr.int64)
    found = cr.max(x, 1, out=(values, indices))
    assert found.values is values
    assert (values.tolist(), indices.tolist()) == ([5.0, 7.0], [1, 0])
    assert cr.min(x, out=cr.empty(())).item() == 1
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match=r"out=.*don't support automatic differentiation"):
        cr.maximum(leaf, y, out=cr.empty(2, 2))
    with pytest.raises(RuntimeError, match=r"out=.*don't support automatic differentiation"):
        cr.max(x, y, out=leaf * 1)
    with cr.no_grad():
        assert cr.maximum(leaf, y, out=cr.empty(2, 2)).tolist() == [[3, 5], [7, 9]]
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[2\].* \[2, 2\]"):
        assert cr.maximum(x, y, out=cr.empty(2)).shape == (2, 2)
    with pytest.raises(TypeError, match=r"sqrt_\(\) got an unexpected keyword argument 'out'"):
        cr.ones(2).sqrt_(out=cr.empty(2))


def test_out_of_arithmetic_and_of_new_tensors() -> None:
    x, y, out = cr.tensor([4.0, 9.0]), cr.tensor([2.0, 3.0]), cr.empty(2)
    for function, expected in (
        (cr.add, [6, 12]),
        (cr.sub, [2, 6]),
        (cr.mul, [8, 27]),
        (cr.div, [2, 3]),
    ):
        assert function(x, y, out=out) is out
        assert out.tolist() == expected
    assert cr.sqrt(x, out=x).tolist() == [2, 3]
    assert cr.rsqrt(x * x, out=x).tolist() == pytest.approx([1 / 2, 1 / 3])
    whole = cr.empty(2, dtype=cr.int64)
    assert cr.eye(2, out=cr.empty(2, 2, dtype=cr.float64)).dtype == cr.float64
    assert cr.arange(2, out=whole) is whole
    assert whole.tolist() == [0, 1]
    assert cr.eye(2, out=out) is out  # without a warning, as in PyTorch
    assert out.shape == (2, 2)


def test_out_of_products_joins_and_elementwise_functions() -> None:
    x, out = cr.tensor([[4.0, 1.0], [0.5, 2.0]]), cr.empty(2, 2)
    functions = "exp log log1p expm1 sin cos tanh abs sigmoid floor ceil neg square reciprocal"
    for name in functions.split():
        assert getattr(cr, name)(x, out=out) is out
        assert out.equal(getattr(cr, name)(x))
    for name in ("pow", "matmul", "mm"):
        assert getattr(cr, name)(x, x, out=out) is out
        assert out.equal(getattr(cr, name)(x, x))
    assert cr.clamp(x, 1, 3, out=out).tolist() == [[3, 1], [1, 2]]
    assert cr.where(x > 1, x, 0.0, out=out).tolist() == [[4, 0], [0, 2]]
    assert cr.cat([x[:1], x[1:]], out=out).equal(x)
    assert cr.stack([x[0], x[1]], out=out).equal(x)
    assert cr.mv(x, x[0], out=out[0]).tolist() == [17, 4]
    assert cr.dot(x[0], x[0], out=out[1, 1]).item() == 17
    assert out.tolist() == [[17, 4], [0.5, 17]]
    assert cr.bmm(x[None], x[None], out=out[None])[0].equal(x @ x)
    assert out.equal(x @ x)
    with pytest.raises(RuntimeError, match=r"cat.*out=.* don't support automatic differentiation"):
        cr.cat([x.clone().requires_grad_(), x], out=cr.empty(4, 2))
