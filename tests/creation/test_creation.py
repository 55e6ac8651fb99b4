"""Creation of tensors from data and from shapes."""

import numpy as np
import pytest

import chainrule as cr

# --- from data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1.5, "float32", ()),
        (1, "int64", ()),
        (True, "bool", ()),
        (1j, "complex64", ()),
        ([1.5, 2], "float32", (2,)),
        ([1, 2], "int64", (2,)),
        ([[True], [False]], "bool", (2, 1)),
        ([1, 2j], "complex64", (2,)),
        ((1.0, 2.0), "float32", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (range(3), "int64", (3,)),
        (np.float64(1.5), "float64", ()),
        (np.float16(1.5), "float16", ()),
        (np.int8(1), "int8", ()),
        (np.zeros((2, 3)), "float64", (2, 3)),
        (np.zeros(2, np.uint8), "uint8", (2,)),
        ([np.zeros(2), np.ones(2)], "float64", (2, 2)),
    ],
)
def test_the_dtype_and_shape_of_data(data, dtype, shape):
    t = cr.tensor(data)
    assert t.dtype == dtype
    assert t.shape == shape
    np.testing.assert_array_equal(t.numpy(), np.asarray(data))
    assert cr.asarray(data).dtype == dtype
    assert t.is_leaf
    assert not t.requires_grad


def test_tensors_in_lists():
    parts = [cr.tensor(1.5), cr.tensor(2.5)]
    assert cr.tensor(parts).tolist() == [1.5, 2.5]
    assert cr.tensor(parts).dtype == cr.float32
    assert cr.tensor([cr.tensor([1, 2]), cr.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    with pytest.warns(UserWarning, match="copies the values of a Tensor that requires grad"):
        t = cr.tensor([cr.tensor(1.0, requires_grad=True), 2.0])
    assert t.tolist() == [1, 2]
    assert t.is_leaf


def sequences(lib):
    """Return sequences of numbers, arrays and tensors of a library."""
    return [
        [np.float64(1), 2],
        [np.float32(1), 2.0],
        [np.int32(1), 2],
        [np.int32(1), np.int32(2)],
        [np.float16(1), 1],
        [np.bool_(True)],
        [True, 2],
        [True, 2.5],
        [np.ones(2, np.float32), np.zeros(2, np.float32)],
        [np.ones(2, np.int32)],
        [np.ones(2), [1, 2]],
        [lib.tensor(1.0), lib.tensor(2.0)],
        [lib.tensor([1.0]), lib.tensor([2.0])],
        [[lib.tensor([[1.0]]), 2], [3, 4]],
        [lib.tensor(1), 2.5],
        [lib.tensor(1.0, dtype=lib.float64), 1],
        [lib.tensor(True), False],
    ]


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
@pytest.mark.parametrize("number", range(len(sequences(cr))))
def test_sequences_have_the_dtype_and_shape_of_pytorchs(number):
    torch = pytest.importorskip("torch")
    ours, theirs = cr.tensor(sequences(cr)[number]), torch.tensor(sequences(torch)[number])
    assert f"torch.{ours.dtype}" == str(theirs.dtype)
    assert ours.tolist() == theirs.tolist()
    assert cr.tensor(sequences(cr)[number], dtype=cr.float64).tolist() == theirs.double().tolist()


def test_a_tensor_is_copied_and_leaves_its_history_behind():
    x = cr.ones(2, requires_grad=True)
    y = cr.tensor(x * 2)
    assert y.grad_fn is None
    assert not y.requires_grad
    z = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    assert z.dtype == cr.float64
    assert z.is_leaf


@pytest.mark.parametrize("dtype", [None, "float64", "float32"])
def test_tensor_copies(dtype):
    a = np.zeros(2)
    t = cr.tensor(a, dtype=dtype)
    a[0] = 5
    assert t.tolist() == [0, 0]
    u = cr.tensor(t)
    t.fill_(1)
    assert u.tolist() == [0, 0]


def test_the_default_dtype():
    before = cr.get_default_dtype()
    try:
        cr.set_default_dtype(cr.float64)
        assert cr.tensor(1.5).dtype == cr.zeros(2).dtype == cr.rand(2).dtype == cr.float64
        assert cr.tensor(1j).dtype == cr.complex128
        assert cr.tensor(1).dtype == cr.int64
        assert cr.tensor([1, 2]).sqrt().dtype == cr.float64
    finally:
        cr.set_default_dtype(before)
    with pytest.raises(cr.DTypeError, match="only floating-point types are supported"):
        cr.set_default_dtype(cr.int64)


def test_data_that_can_not_be_a_tensor():
    with pytest.raises(cr.ShapeError, match="expected sequences of the same length"):
        cr.tensor([[1.0, 2.0], [3.0]])
    for data in ("text", ["text"], [None], np.array(["2020"], "datetime64"), np.array([None])):
        with pytest.raises((TypeError, ValueError)):
            cr.tensor(data)
    with pytest.raises(cr.DTypeError, match="can't make a tensor of dtype"):
        cr.tensor([1], dtype="U3")


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: cr.tensor([1, 2], **k),
        lambda **k: cr.zeros(2, dtype=cr.int64, **k),
        lambda **k: cr.arange(3, **k),
        lambda **k: cr.full((2,), True, **k),
        lambda **k: cr.ones_like(cr.tensor([1]), **k),
    ],
)
def test_integers_can_not_require_grad(make):
    with pytest.raises(cr.DTypeError, match="only Tensors of floating point and complex dtype"):
        make(requires_grad=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: cr.tensor([1.0, 2.0], **k),
        lambda **k: cr.zeros(2, **k),
        lambda **k: cr.ones((2,), **k),
        lambda **k: cr.empty(2, **k),
        lambda **k: cr.full(2, 1.5, **k),
        lambda **k: cr.eye(2, **k),
        lambda **k: cr.arange(0.0, 2.0, **k),
        lambda **k: cr.linspace(0, 1, 2, **k),
        lambda **k: cr.zeros_like(cr.ones(2), **k),
        lambda **k: cr.ones_like(cr.ones(2), **k),
        lambda **k: cr.full_like(cr.ones(2), 3, **k),
        lambda **k: cr.empty_like(cr.ones(2), **k),
        lambda **k: cr.rand(2, **k),
        lambda **k: cr.randn(2, **k),
        lambda **k: cr.normal(0.0, 1.0, (2,), **k),
    ],
)
def test_leaves_can_be_made_to_require_grad_anywhere(make):
    with cr.no_grad():
        t = make(requires_grad=True, dtype=cr.float64, device="cpu")
    assert t.requires_grad
    assert t.is_leaf
    assert t.dtype == cr.float64
    assert t.device == "cpu"
    (t * 2).sum().backward()
    assert (t.grad == 2).all()


# --- sharing --------------------------------------------------------------------------------------


def test_from_numpy_shares():
    a = np.zeros(2)
    t = cr.from_numpy(a)
    t.add_(1)
    assert a.tolist() == [1, 1]
    a[0] = 5
    assert t.tolist() == [5, 1]
    with pytest.raises(TypeError, match=r"expected np\.ndarray \(got list\)"):
        cr.from_numpy([1.0])
    with pytest.raises(cr.DTypeError, match="can't make a tensor of dtype"):
        cr.from_numpy(np.array(["a"]))


def test_a_buffer_is_shared():
    buffer = bytearray(12)
    x = cr.frombuffer(buffer, dtype=cr.float32)
    x[1] = 1.5
    assert cr.frombuffer(bytes(buffer), dtype=cr.float32, count=1, offset=4).tolist() == [1.5]
    assert cr.frombuffer(buffer, dtype=cr.float32, requires_grad=True).requires_grad
    with pytest.raises(cr.ArgumentError, match="frombuffer: buffer size must be a multiple"):
        cr.frombuffer(buffer, dtype=cr.float64)


def test_asarray_shares_where_it_can():
    a = np.zeros(2)
    t = cr.asarray(a)
    a[0] = 5
    assert t.tolist() == [5, 0]
    assert cr.asarray(t) is t
    assert cr.asarray(a, dtype=cr.float32).dtype == cr.float32
    copied = cr.asarray(a, copy=True)
    a[0] = 7
    assert copied.tolist() == [5, 0]
    assert cr.asarray(a, copy=False).tolist() == [7, 0]
    for needs_a_copy in (
        lambda: cr.asarray([1.0], copy=False),
        lambda: cr.asarray(a, dtype="f4", copy=False),
    ):
        with pytest.raises(ValueError, match="can't become a tensor without a copy"):
            needs_a_copy()


@pytest.mark.parametrize(
    "wrap", [memoryview, np.asarray, "torch"], ids=["buffer", "numpy", "torch"]
)
def test_memory_is_shared_or_copied(wrap):
    if wrap == "torch":
        wrap = pytest.importorskip("torch").from_numpy
    a = np.zeros(3, np.float32)
    assert np.shares_memory(cr.asarray(wrap(a)).numpy(), a)
    assert np.shares_memory(cr.asarray(wrap(a), copy=False).numpy(), a)
    for copied in (
        cr.tensor(wrap(a)),
        cr.asarray(wrap(a), copy=True),
        cr.asarray(wrap(a), dtype=cr.float64),
    ):
        assert not np.shares_memory(copied.numpy(), a)
        assert copied.tolist() == [0, 0, 0]


def test_a_jax_array_becomes_a_tensor():
    jnp = pytest.importorskip("jax.numpy")
    assert cr.asarray(jnp.ones(2)).tolist() == [1, 1]
    assert cr.tensor(jnp.ones(2), requires_grad=True).mul(2).tolist() == [2, 2]
    assert cr.tensor(jnp.ones(2)).add_(1).tolist() == [2, 2]


def test_asarray_keeps_the_history_of_a_tensor():
    x = cr.ones(2, requires_grad=True)
    assert cr.asarray(x) is x
    cr.asarray(x, dtype=cr.float64).sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert cr.asarray(x, copy=True).grad_fn.name == "CloneBackward0"


# --- from shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ((), ()),
        ((3,), (3,)),
        ((2, 3), (2, 3)),
        (((2, 3),), (2, 3)),
        (([2, 3],), (2, 3)),
        (((),), ()),
        ((0, 2), (0, 2)),
        ((np.int64(2), 3), (2, 3)),
        ((cr.tensor(2), 3), (2, 3)),
    ],
)
def test_shapes_are_one_sequence_or_several_ints(sizes, shape):
    for make, value in ((cr.zeros, 0), (cr.ones, 1)):
        t = make(*sizes)
        assert t.shape == shape
        assert t.dtype == cr.float32
        assert (t == value).all()
    assert cr.empty(*sizes).shape == cr.rand(*sizes).shape == cr.randn(*sizes).shape == shape


def test_invalid_shapes():
    with pytest.raises(ValueError, match=r"a size can't be negative, but got the shape \[2, -1\]"):
        cr.zeros(2, -1)
    for sizes in ((2.0,), ("ab",), ((2, 3), 4)):
        with pytest.raises(TypeError, match="sizes must be ints"):
            cr.zeros(*sizes)


def test_full():
    assert cr.full((2, 2), 1.5).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert cr.full((2,), 1).dtype == cr.int64
    assert cr.full((2,), 1.0).dtype == cr.float32
    assert cr.full((2,), True).dtype == cr.bool
    assert cr.full((2,), 1, dtype=cr.float64).dtype == cr.float64
    assert cr.full(3, cr.tensor(2.5)).tolist() == [2.5, 2.5, 2.5]
    assert cr.full((), 4).item() == 4


def test_eye():
    assert cr.eye(2).tolist() == [[1, 0], [0, 1]]
    assert cr.eye(2, 3).shape == (2, 3)
    assert cr.eye(2, dtype=cr.int64).dtype == cr.int64


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 8, 2), (5, 0, -2), (0.0, 1.0, 0.25), (1.5,), (0, 1, 0.1), (3, 3)]
)
def test_arange_is_pytorchs(arguments):
    torch = pytest.importorskip("torch")
    ours, theirs = cr.arange(*arguments), torch.arange(*arguments).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_arange_forms():
    assert cr.arange(3, dtype=cr.float64).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="step must be nonzero"):
        cr.arange(0, 3, 0)


@pytest.mark.parametrize("arguments", [(1, 4), (5, 0, -2), (0.0, 1.0, 0.1), (3, 3), (0, 1.9)])
@pytest.mark.filterwarnings("ignore")
def test_range_is_pytorchs(arguments):
    torch = pytest.importorskip("torch")
    ours, theirs = cr.range(*arguments), torch.range(*arguments).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
    assert cr.range(*arguments, dtype=cr.int64).tolist() == ours.numpy().astype("i8").tolist()


def test_range_tells_what_is_wrong():
    with pytest.warns(UserWarning, match="contains its end: write arange"):
        assert cr.range(1, 2).tolist() == [1.0, 2.0]
    for arguments, message in (((0, 3, 0), "step must be nonzero"), ((0, 3, -1), "inconsistent")):
        with pytest.warns(match="range"), pytest.raises(ValueError, match=message):
            cr.range(*arguments)


def test_ends_of_arange_by_name():
    torch = pytest.importorskip("torch")
    for names in ({"end": 4}, {"start": 1, "end": 4}, {"start": 1, "end": 4, "step": 2}):
        assert cr.arange(**names).tolist() == torch.arange(**names).tolist()
    assert cr.arange(3, step=2).tolist() == [0, 2]
    with pytest.raises(TypeError, match=r"arange\(end\) or arange\(start, end\)"):
        cr.arange()


def test_ranges_of_integers_round_their_ends_first():
    torch = pytest.importorskip("torch")
    for function, arguments in [
        ("arange", (0.1, -7.9, -4.0)),
        ("arange", (0.0, -8.000001, -4.0)),
        ("arange", (-0.9, 2.1, 2.0)),
        ("arange", (3.7,)),
        ("linspace", (4.3, -3, 50)),
        ("linspace", (-3.9, 3.9, 6)),
        ("logspace", (0, 1.2, 4)),
    ]:
        ours, theirs = [
            getattr(lib, function)(*arguments, dtype=lib.int64).tolist() for lib in (cr, torch)
        ]
        assert ours == theirs
    assert cr.arange(cr.tensor(0.5), cr.tensor(2.5), dtype=cr.int64).tolist() == [0, 1]


def test_linspace():
    t = cr.linspace(-4, 4, 100)
    assert t.dtype == cr.float32
    np.testing.assert_array_equal(t.numpy(), np.linspace(-4, 4, 100).astype(np.float32))
    assert cr.linspace(cr.tensor(0.0), cr.tensor(1.0), 3).tolist() == [0, 0.5, 1]
    assert cr.linspace(0, 1, 0).shape == (0,)


def test_likes():
    x = cr.ones(2, 3, dtype=cr.float64, requires_grad=True) * 2
    for make, value in ((cr.zeros_like, 0), (cr.ones_like, 1)):
        t = make(x)
        assert (t.shape, t.dtype, t.requires_grad) == ((2, 3), cr.float64, False)
        assert (t == value).all()
        assert make(x, dtype=cr.int64).dtype == cr.int64
    assert cr.full_like(x, 2.5).sum().item() == 15
    assert cr.full_like(cr.tensor([1]), 2.7).tolist() == [2]
    assert cr.empty_like(x).shape == (2, 3)
    assert cr.zeros_like(np.ones(2)).dtype == cr.float64
    with pytest.raises(cr.DTypeError, match="cannot be converted"):
        cr.full_like(x, 1j)


MAKERS = {
    "tensor": lambda **k: cr.tensor([1.0, 2.0], **k),
    **{name: lambda name=name, **k: getattr(cr, name)(2, 3, **k) for name in ("zeros", "ones")},
    "empty": lambda **k: cr.empty(0, **k),
    "full": lambda **k: cr.full((2,), 3.0, **k),
    "eye": lambda **k: cr.eye(2, **k),
    "arange": lambda **k: cr.arange(3.0, **k),
    "linspace": lambda **k: cr.linspace(0, 1, 3, **k),
    "logspace": lambda **k: cr.logspace(0, 1, 3, **k),
    "scalar_tensor": lambda **k: cr.scalar_tensor(1.0, **k),
    **{
        name: lambda name=name, **k: getattr(cr, name)(cr.ones(2), **k)
        for name in ("zeros_like", "ones_like", "rand_like", "randn_like")
    },
    "empty_like": lambda **k: cr.empty_like(cr.ones(0), **k),
    "full_like": lambda **k: cr.full_like(cr.ones(2), 3, **k),
    "randint_like": lambda **k: cr.randint_like(cr.ones(2), 5, **k),
    "rand": lambda **k: cr.rand(2, **k),
    "randn": lambda **k: cr.randn(2, **k),
    "randint": lambda **k: cr.randint(0, 5, (2,), **k),
    "randperm": lambda **k: cr.randperm(4, **k),
    **{
        name: lambda name=name, **k: getattr(cr.ones(1), name)(2, **k)
        for name in ("new_zeros", "new_ones")
    },
    "new_empty": lambda **k: cr.ones(1).new_empty(0, **k),
    "new_full": lambda **k: cr.ones(1).new_full((2,), 3, **k),
    "new_tensor": lambda **k: cr.ones(1).new_tensor([1, 2], **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_options_of_memory_are_accepted_and_sparse_layouts_refused(name):
    cr.manual_seed(1)
    plain = MAKERS[name]()
    cr.manual_seed(1)
    for layout in (cr.strided, None):
        made = MAKERS[name](
            layout=layout, pin_memory=True, memory_format=cr.contiguous_format, dtype=plain.dtype
        )
        assert (made.dtype, made.shape) == (plain.dtype, plain.shape)
        if layout:
            np.testing.assert_array_equal(made, plain)
    with pytest.raises(cr.ArgumentError, match="new tensors are dense: say to_sparse"):
        MAKERS[name](layout=cr.sparse_coo)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        MAKERS[name](colour=1)


def test_asarray_makes_leaves_or_leaves_history_behind():
    a = np.ones(2)
    x = cr.asarray(a, requires_grad=True)
    assert x.is_leaf
    assert x.requires_grad
    assert np.shares_memory(x.detach().numpy(), a)
    y = x * 2
    assert cr.asarray(y) is y
    assert cr.asarray(y, requires_grad=True) is y
    assert not cr.asarray(y, requires_grad=False).requires_grad
    plain = cr.ones(2)
    assert cr.asarray(plain, requires_grad=True).requires_grad
    assert not plain.requires_grad
