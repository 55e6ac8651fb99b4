"""Writes, sums and other reductions at indices."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

RNG = np.random.default_rng(0)
X, SRC = RNG.uniform(1, 2, (3, 4)), RNG.uniform(1, 2, (3, 4))
INDEX = np.array([[2, 0, 1, 2], [0, 0, 1, 1], [1, 2, 0, 2]])
ONCE = np.array([[2, 0, 1, 2], [0, 1, 2, 1]])
WAYS = ("sum", "prod", "mean", "amax", "amin")


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_add(dim):
    def function(lib, x, index, src):
        return lib.scatter_add(x, dim, index, src)

    check_derivatives(function, X, INDEX[:2, :3], SRC)
    compare_with_torch(function, X, INDEX, SRC)
    # PyTorch has derivatives where index and src have one shape; differences know no such bound.
    compare_with_torch(function, X, INDEX[:2, :3], SRC, order=0)
    compare_with_torch(function, X, INDEX[:2, :3], SRC[:2, :3])


def test_scatter_writes_tensors_and_numbers():
    def function(lib, x, index, src):
        return lib.scatter(x, 0, index, src)

    check_derivatives(function, X, ONCE, SRC)
    compare_with_torch(function, X, ONCE, SRC[:2])
    compare_with_torch(lambda lib, x, index: lib.scatter(x, 0, index, 2.5), X, INDEX)
    compare_with_torch(lambda lib, x, index: x.scatter(1, index, value=3), X, INDEX)
    compare_with_torch(
        lambda lib, x, i, s: x.scatter(1, i, s, reduce="add"), X, INDEX, SRC, order=0
    )
    compare_with_torch(
        lambda lib, x, i, s: x.scatter(1, i, s, reduce="multiply"), X, INDEX, SRC, order=0
    )


def test_overwritten_elements_have_no_gradient():
    x, src = cr.zeros(2, requires_grad=True), cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = cr.scatter(x, 0, cr.tensor([1, 1, 0]), src)
    assert out.tolist() == [3, 2]
    out.backward(cr.tensor([5.0, 7.0]))
    assert x.grad.tolist() == [0, 0]
    assert src.grad.tolist() == [0, 7, 5]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_reduce(way, own, dim):
    def function(lib, x, index, src):
        return lib.scatter_reduce(x, dim, index, src, way, include_self=own)

    check_derivatives(function, X, INDEX[:2, :3], SRC)
    compare_with_torch(function, X, INDEX, SRC)
    # PyTorch has derivatives where index and src have one shape; differences know no such bound.
    compare_with_torch(function, X, INDEX[:2, :3], SRC, order=0)
    compare_with_torch(function, X, INDEX[:2, :3], SRC[:2, :3])


@pytest.mark.parametrize("way", ["amax", "amin"])
def test_equal_extremes_share_the_gradient(way):
    def function(lib, x, index, src):
        return lib.scatter_reduce(x, 0, index, src, way)

    index, src = np.array([0, 0, 1, 1, 1]), np.array([2.0, 2.0, 3.0, 1.0, 3.0])
    compare_with_torch(function, [2.0, 1.0, 5.0], index, src, order=1)
    compare_with_torch(function, [-np.inf, np.inf, 5.0], index, src, order=1)
    compare_with_torch(function, [np.nan, 1.0, 5.0], index, src, order=0)


def test_elements_that_are_not_included_have_no_gradient():  # in PyTorch one goes nowhere
    x, src = cr.tensor([2.0, 1.0], requires_grad=True), cr.tensor([2.0, 2.0], requires_grad=True)
    cr.scatter_reduce(x, 0, cr.tensor([0, 0]), src, "amax", include_self=False).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert src.grad.tolist() == [0.5, 0.5]


def test_products_of_zeros_are_exact_to_second_order():
    def function(lib, x, index, src):
        return lib.scatter_reduce(x, 0, index, src, "prod")

    index = np.array([0, 0, 1, 1, 2])
    src = np.array([0.0, 3.0, 0.0, 0.0, 4.0])
    check_derivatives(function, [2.0, 5.0, 0.0, 1.0], index, src)
    compare_with_torch(function, [2.0, 5.0, 7.0, 1.0], index, src, order=1)


@pytest.mark.parametrize("include_self", [True, False])
def test_products_at_indices_of_each_example_and_of_compiled_functions(include_self):
    def product(x, index, src):
        return cr.scatter_reduce(x, 0, index, src, "prod", include_self=include_self)

    def slopes(x, index, src):
        loss = lambda x, src: (product(x, index, src) ** 2).sum()  # noqa: E731
        return cr.cat([t.flatten() for t in cr.grad(loss, argnums=(0, 1))(x, src)])

    x, src = RNG.normal(size=(2, 2, 3, 2)).cumsum(-2)
    src[0, :2, 0] = 0
    index = RNG.integers(0, 3, (2, 3, 2))
    args = [cr.tensor(a) for a in (x, index, src)]
    for function in (product, slopes):
        wanted = [function(*[a[i] for a in args]).numpy() for i in (0, 1)]
        np.testing.assert_allclose(cr.vmap(function)(*args), wanted, rtol=1e-12)
        np.testing.assert_allclose(
            cr.compile(function)(*[a[0] for a in args]), wanted[0], rtol=1e-12
        )


def test_products_of_many_factors_agree_with_prod():
    index = np.repeat([1, 0], [9, 4])
    src = cr.tensor(RNG.uniform(0.5, 2, 13))
    out = cr.scatter_reduce(cr.ones(2, dtype=cr.float64), 0, cr.tensor(index), src, "prod")
    np.testing.assert_allclose(out.numpy(), [src[9:].prod().item(), src[:9].prod().item()])


def test_integers_are_combined_too():
    x, index, src = np.array([1, 2, 3]), np.array([0, 0, 2]), np.array([4, 6, 9])
    for way in WAYS:
        compare_with_torch(
            lambda lib, x, i, s, w=way: lib.scatter_reduce(x, 0, i, s, w), x, index, src
        )


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_extrema_of_integers_without_include_self(dtype):
    x, src, index = np.array([1, 0, 1]), np.array([1, 0, 0]), np.array([0, 0, 2])
    for way in ("amax", "amin"):
        compare_with_torch(
            lambda lib, x, i, s, way=way: lib.scatter_reduce(x, 0, i, s, way, include_self=False),
            *(x.astype(dtype), index, src.astype(dtype)),
        )


def test_zero_dimensional_and_empty_tensors():
    for name in ("scatter", "scatter_add"):
        compare_with_torch(
            lambda lib, x, i, s, n=name: getattr(lib, n)(x, 0, i, s), 1.5, [0], [2.5]
        )
        compare_with_torch(lambda lib, x, i, s, n=name: getattr(lib, n)(x, 0, i, s), 1.5, 0, 2.5)
        compare_with_torch(
            lambda lib, x, i, s, n=name: getattr(lib, n)(x, 1, i, s),
            X,
            np.zeros((3, 0), int),
            np.zeros((3, 0)),
        )


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["index_add", "index_copy"])
def test_slices(name, dim):
    def function(lib, x, index, source):
        return getattr(lib, name)(x, dim, index, source)

    source = SRC[:2] if dim == 0 else SRC[:, :2]
    check_derivatives(function, X, [2, 0], source)
    compare_with_torch(function, X, [2, 0], source)


def test_slices_repeat_and_are_scaled():
    def function(lib, x, index, source):
        return lib.index_add(x, 0, index, source, alpha=3)

    compare_with_torch(function, X, [2, 2], SRC[:2])
    compare_with_torch(lambda lib, x, i, s: lib.index_add(x, 0, i, s), 1.5, [0], 2.0)
    x, source = cr.zeros(2, 2), cr.tensor([[1.0], [2.0]], requires_grad=True)
    cr.index_copy(x, 1, cr.tensor([1, 1]), cr.cat([source, source], 1)).sum().backward()
    assert source.grad.tolist() == [[1], [1]]


def test_index_fill():
    compare_with_torch(lambda lib, x, i: lib.index_fill(x, 1, i, 2.5), X, [2, 0, 2])
    compare_with_torch(lambda lib, x, i, v: lib.index_fill(x, 1, i, v), X, [2, 0], 2.5)


@pytest.mark.filterwarnings("ignore:index_reduce")  # PyTorch's
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("way", WAYS[1:])
def test_index_reduce(way, own):
    def function(lib, x, index, source):
        return lib.index_reduce(x, 0, index, source, way, include_self=own)

    check_derivatives(function, X, [2, 0, 2], SRC)
    compare_with_torch(function, X, [2, 0, 2], SRC, order=1)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    def function(lib, x, i, j, values):
        return lib.index_put(x, (i, j), values, accumulate)

    check_derivatives(function, X, [0, 2], [1, 3], [5.0, 6.0])
    compare_with_torch(function, X, [0, 2], [1, 3], [5.0, 6.0])
    compare_with_torch(function, X, [[0], [2]], [1, 3], [[5.0, 6.0], [7.0, 8.0]])
    compare_with_torch(lambda lib, x, i, v: x.index_put((i,), v, accumulate), X, [0, 2], SRC[0])
    mask = X > 1.5
    compare_with_torch(lambda lib, x, m, v: x.index_put((m,), v, accumulate), X, mask, SRC[mask])


def test_values_that_repeat_add_up():
    compare_with_torch(lambda lib, x, i, v: x.index_put((i,), v, True), X, [2, 2, 1], SRC)


@pytest.mark.parametrize("accumulate", [False, True])
def test_put(accumulate):
    def function(lib, x, index, source):
        return lib.put(x, index, source, accumulate)

    check_derivatives(function, X, [3, 1], [5.0, 6.0])
    compare_with_torch(function, X, [[3, 1], [11, -1]][:1], [[5.0, 6.0]])


def test_masked_scatter():
    def function(lib, x, mask, source):
        return lib.masked_scatter(x, mask, source)

    check_derivatives(function, X, X > 1.5, SRC)
    compare_with_torch(function, X, X > 1.5, SRC)
    compare_with_torch(function, X, X[0] > 1.5, SRC)


def test_in_place():
    for name in ("scatter_add_", "scatter_"):
        compare_with_torch(
            lambda lib, x, i, s, n=name: getattr(x * 1, n)(0, i, s), X, ONCE, SRC[:2]
        )
    for name in ("index_add_", "index_copy_"):
        compare_with_torch(
            lambda lib, x, i, s, n=name: getattr(x * 1, n)(0, i, s), X, [2, 0], SRC[:2]
        )
    compare_with_torch(lambda lib, x, i: (x * 1).index_fill_(0, i, 2.0), X, [2, 0])
    compare_with_torch(lambda lib, x, i, s: (x * 1).index_put_((i,), s), X, [2, 0], SRC[:2])
    compare_with_torch(lambda lib, x, m, s: (x * 1).masked_scatter_(m, s), X, X > 1.5, SRC)
    compare_with_torch(lambda lib, x, i, s: (x * 1).put_(i, s), X, [2, 0], [5.0, 6.0])
    compare_with_torch(lambda lib, x, i, s: (x * 1).scatter_reduce_(0, i, s, "amax"), X, INDEX, SRC)


def test_in_place_through_a_view_reaches_the_base():
    def function(lib, x, index, src):
        y = x * 1
        y.t()[1:].scatter_add_(0, index, src)
        return y

    compare_with_torch(function, X, np.array([[2, 0, 1]]), np.array([[1.0, 2.0, 3.0]]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int32"])
def test_dtypes_are_kept(dtype):
    x, src = cr.ones(3, dtype=dtype), cr.tensor([2, 3], dtype=dtype)
    index = cr.tensor([1, 1])
    for out in (
        cr.scatter_add(x, 0, index, src),
        cr.scatter(x, 0, index, src),
        cr.scatter_reduce(x, 0, index, src, "prod"),
        cr.scatter_reduce(x, 0, index, src, "mean"),
        cr.index_add(x, 0, index, src),
    ):
        assert out.dtype == dtype
    assert cr.scatter_add(x, 0, index, src).tolist() == [1, 6, 1]


@pytest.mark.parametrize("shape", [(2000,), (40, 50), (5, 20, 20)], ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_the_fast_path_for_many_elements_gives_the_same_result(shape, last):
    dim = len(shape) - 1 if last else 0
    index = RNG.integers(-shape[dim], shape[dim], shape)
    x, src = RNG.random(shape), RNG.random(shape)
    grid = list(np.ogrid[tuple(map(slice, shape))])
    grid[dim] = index
    wanted = x.copy()
    np.add.at(wanted, tuple(grid), src)
    out = cr.scatter_add(cr.tensor(x), dim, cr.tensor(index), cr.tensor(src))
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-12)
    wanted = x.copy()
    wanted[tuple(grid)] = src
    out = cr.scatter(cr.tensor(x), dim, cr.tensor(index), cr.tensor(src))
    np.testing.assert_array_equal(out.numpy(), wanted)
    np.testing.assert_array_equal(
        cr.tensor(x).gather(dim, cr.tensor(index)).numpy(), x[tuple(grid)]
    )


MANY = np.arange(24000.0).reshape(20, 30, 40)


@pytest.mark.parametrize(
    "key",
    [
        RNG.random(MANY.shape) > 0.5,
        (RNG.random(MANY.shape[:2]) > 0.5),
        (slice(None), RNG.random(MANY.shape[1:]) > 0.5),
        (RNG.integers(-20, 20, 700),),
        (slice(None), RNG.integers(-30, 30, 700)),
        (..., RNG.integers(0, 40, 700)),
        (RNG.integers(0, 20, 700), RNG.integers(0, 30, 700)),
        (slice(None), RNG.integers(0, 30, 700), 3),
        (RNG.integers(0, 20, 700), RNG.integers(0, 30, 700), RNG.integers(0, 40, 700)),
        (RNG.integers(0, 20, 700), slice(None), RNG.integers(0, 40, 700)),
        (RNG.integers(0, 20, 700), slice(3, 5)),
        (RNG.integers(0, 20, (600, 1)), RNG.integers(0, 30, 2), None),
    ],
    ids=range(12),
)
def test_many_elements_are_read_and_added_as_numpy_does(key):
    x = cr.tensor(MANY, requires_grad=True)
    picked = x[key]
    np.testing.assert_array_equal(picked.detach().numpy(), MANY[key])
    weights = RNG.random(picked.shape)
    picked.backward(cr.tensor(weights))
    wanted = np.zeros_like(MANY)
    np.add.at(wanted, key, weights)
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-10)
    y, z = cr.tensor(MANY), MANY.copy()
    y[key] = 1.5
    z[key] = 1.5
    np.testing.assert_array_equal(y.numpy(), z)


def test_many_elements_of_scattered_memory():
    x = np.asfortranarray(MANY)
    key = tuple(RNG.integers(0, n, MANY.size) for n in MANY.shape)
    np.testing.assert_array_equal(cr.from_numpy(x)[key].numpy(), MANY[key])
    mask = MANY % 7 > 3
    np.testing.assert_array_equal(cr.from_numpy(x)[mask].numpy(), MANY[mask])
    y = cr.tensor(MANY).mT
    y[mask.swapaxes(1, 2)] = 1.5
    np.testing.assert_array_equal(y.mT.numpy(), np.where(mask, 1.5, MANY))


def test_an_index_out_of_range_is_named():
    x = cr.zeros(30, 40)
    with pytest.raises(IndexError, match="index 30 is out of bounds for dimension 0 with size 30"):
        cr.scatter_add(x, 0, cr.full((30, 40), 30), x)
    with pytest.raises(IndexError, match="index -41 is out of bounds for dimension 1 with size 40"):
        cr.scatter(x, 1, cr.full((30, 40), -41), x)
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        cr.scatter_add(cr.zeros(3), 0, cr.tensor([3]), cr.ones(1))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        cr.put(cr.zeros(3), cr.tensor([7]), cr.ones(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: cr.scatter(x, 0, i), TypeError, "give either src or value"),
        (lambda x, i: cr.scatter(x, 0, i, x, reduce="max"), ValueError, "either add or multiply"),
        (lambda x, i: cr.scatter_reduce(x, 0, i, x, "max"), ValueError, "must be either sum, prod"),
        (lambda x, i: cr.scatter_add(x, 0, i, x.double()), cr.DTypeError, "equal to src.dtype"),
        (lambda x, i: cr.scatter(x.int(), 0, i, 1e30), cr.DTypeError, "without overflow: convert"),
        (lambda x, i: cr.scatter(x.int(), 0, i, 1j), cr.DTypeError, "without overflow: convert"),
        (lambda x, i: cr.index_fill(x.int(), 0, i[:1], np.nan), cr.DTypeError, "without overflow"),
        (lambda x, i: cr.scatter_add(x, 0, x, x), TypeError, "Expected dtype int64 for index"),
        (lambda x, i: cr.scatter_add(x, 0, i[None], x), cr.ShapeError, "same number of dimensions"),
        (lambda x, i: cr.scatter_add(x, 0, i, x[:1]), cr.ShapeError, "no larger than self"),
        (lambda x, i: cr.index_add(x, 0, i[None], x), cr.ShapeError, "supposed to be a vector"),
        (lambda x, i: cr.index_add(x, 0, i, x), cr.ShapeError, "Number of indices"),
        (lambda x, i: cr.index_fill(x, 0, i, x), cr.ShapeError, "only supports a 0-dimensional"),
        (lambda x, i: cr.index_put(x, (i,), x), cr.ShapeError, "cannot be broadcast to"),
        (lambda x, i: cr.put(x, i, x), cr.ShapeError, "same number of elements"),
        (lambda x, i: cr.masked_scatter(x, i, x), TypeError, "expected BoolTensor for mask"),
        (lambda x, i: cr.masked_scatter(x, x < 9, x[:1]), cr.ShapeError, "at least as many"),
    ],
    ids=range(17),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3), cr.tensor([0, 1]))


def test_an_index_of_one_element_is_a_vector() -> None:
    for values in (cr.zeros(3), cr.zeros(3).requires_grad_()):
        added = values.scatter_add(0, cr.tensor(1), cr.tensor(2.0))
        assert added.tolist() == [0, 2, 0]
        assert values.scatter(0, cr.tensor(2), 5.0).tolist() == [0, 0, 5]
    source = cr.tensor(2.0, requires_grad=True)
    (cr.zeros(3).scatter_add(0, cr.tensor(1), source) ** 2).sum().backward()
    assert source.grad.item() == 4
    with pytest.raises(ValueError, match="same number of dimensions"):
        cr.zeros(3, 2).scatter_add(0, cr.tensor(1), cr.tensor(2.0))


@pytest.mark.parametrize("dtype", [bool, "uint8", "int64"])
@pytest.mark.parametrize("value", [1.0, 2.75, True, 3])
def test_numbers_in_integers_are_cut_off(dtype, value):
    x = np.arange(3).astype(dtype)

    def function(lib, x, i):
        found = lib.scatter(x, 0, i, value), lib.index_fill(x, 0, i, value)
        return lib.stack([*found, x.masked_fill(i > 1, value), lib.full_like(x, value)])

    compare_with_torch(function, x, [2, 0, 2])
