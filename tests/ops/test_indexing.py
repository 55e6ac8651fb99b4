"""Reading and writing at indices."""

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp
from helpers.torch_comparison import same_as_torch

KEYS = [
    0,
    -1,
    np.int64(1),
    slice(None),
    slice(1, None, 2),
    slice(None, None, -1),
    Ellipsis,
    None,
    True,
    False,
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (..., 0),
    (0, ..., 1),
    (None, 0),
    (slice(None), None, 2),
    (),
    [0, 2],
    [[0, 1], [2, 0]],
    [True, False, True],
    [],
    (slice(None), [0, 3]),
    ([0, 1], [2, 3]),
    ([0, 1], slice(None), [2, 0]),
    (1, [0, 2]),
    np.array([2, 0, 2]),
    np.array([True, False, True]),
    range(2),
]


def data():
    return np.arange(60.0).reshape(3, 4, 5)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_reading_and_its_gradient(key):
    x = data()
    t = cr.tensor(x, requires_grad=True)
    result = t[key]
    np.testing.assert_array_equal(result.detach().numpy(), x[key])
    weight = np.random.default_rng(0).random(x[key].shape)
    (result * weight).sum().backward()
    expected = np.zeros_like(x)
    np.add.at(expected, key, weight)
    np.testing.assert_allclose(t.grad.numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_writing_a_number_an_array_and_a_tensor(key):
    part = data()[key]
    for value in (7, 2.5, -part, cr.tensor(-part)):
        x, t = data(), cr.tensor(data())
        x[key] = value.numpy() if isinstance(value, cr.Tensor) else value
        t[key] = value
        np.testing.assert_array_equal(t.numpy(), x)


def test_writing_is_recorded():
    base = cr.ones(4, requires_grad=True)
    value = cr.tensor(5.0, requires_grad=True)
    x = base * 2
    x[1:3] = value
    (x * cr.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert base.grad.tolist() == [2, 0, 0, 8]
    assert value.grad.item() == 5


@pytest.mark.parametrize(
    "key",
    [
        lambda c: c.tensor(1),
        lambda c: c.tensor([2, 0]),
        lambda c: c.tensor([True, False, True]),
        lambda c: (slice(None), c.tensor([0, 3])),
        lambda c: (c.tensor(0), c.tensor([1, 2])),
        lambda c: c.tensor([[0, 1], [1, 2]]),
        lambda c: c.tensor(True),
        lambda c: slice(c.tensor(0), c.tensor(2)),
        lambda c: (c.tensor([0, 1]), None, c.tensor([1, 1])),
    ],
)
def test_tensors_as_indices_are_pytorchs(key):
    torch = pytest.importorskip("torch")
    ours, theirs = cr.tensor(data()), torch.tensor(data())
    np.testing.assert_array_equal(ours[key(cr)].numpy(), theirs[key(torch)].numpy())
    ours[key(cr)] = -1
    theirs[key(torch)] = -1
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_names_of_the_nodes():
    x = cr.tensor(data(), requires_grad=True)
    assert x[0].grad_fn.name == "SelectBackward0"
    assert x[0, 1].grad_fn.name == "SelectBackward0"
    assert x[1:].grad_fn.name == "SliceBackward0"
    assert x[[0, 1]].grad_fn.name == "IndexBackward0"
    assert x[x > 3].grad_fn.name == "IndexBackward0"


@pytest.mark.parametrize("key", [0, (0, 1), slice(1), (..., 2), None, (0, 1, 2)], ids=repr)
def test_basic_indices_give_views(key):
    x = cr.tensor(data())
    x[key].fill_(-5)
    expected = data()
    expected[key] = -5
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_single_element_of_a_vector_is_a_view():
    x = cr.zeros(3)
    x[1].add_(4)
    for element in x:
        element.mul_(2)
    assert x.tolist() == [0, 8, 0]


def test_an_index_that_is_written_to_later_stays_as_it_was():
    x = cr.arange(3.0).requires_grad_()
    index = cr.tensor([0, 0])
    y = x[index]
    index.fill_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 0]


@pytest.mark.parametrize("key", [3, (0, 4), -4, [0, 3], np.array([5])], ids=repr)
def test_out_of_range(key):
    x = cr.zeros(3, 4)
    with pytest.raises(IndexError, match=r"index -?\d is out of bounds for dimension \d with size"):
        x[key]
    with pytest.raises(IndexError, match=r"index -?\d is out of bounds for dimension \d with size"):
        x[key] = 1
    assert x.sum().item() == 0


def test_the_text_of_a_plain_index_out_of_range():
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        cr.zeros(3)[3]


@pytest.mark.parametrize(
    "key", [1.5, "a", cr.tensor(1.5), [0.5], (0, 1.0), np.float64(1)], ids=repr
)
def test_invalid_indices(key):
    with pytest.raises(IndexError, match="only integers, slices"):
        cr.zeros(3, 4)[key]


def test_too_many_indices():
    with pytest.raises(IndexError, match="too many indices for tensor: tensor is 1-dimensional"):
        cr.zeros(3)[0, 0]


def test_a_value_that_does_not_fit():
    x = cr.zeros(3)
    with pytest.raises(cr.ShapeError, match="shape mismatch"):
        x[:2] = cr.ones(3)
    with pytest.raises(TypeError, match="expected a Tensor, an array or a number, got list"):
        x[:2] = [1, 2]
    assert x.tolist() == [0, 0, 0]


# --- functions that pick --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dim", "index"),
    [
        ((3, 4), 0, [[0, 2, 1, 0], [2, 2, 0, 1]]),
        ((3, 4), 1, [[3], [0], [1]]),
        ((3, 4), -1, [[3, 3, 0], [1, 0, 2]]),
        ((3, 4), 0, [[2]]),
        ((5,), 0, [4, 4, 0]),
        ((), 0, 0),
        ((3,), 0, 2),
        ((), 0, [0, 0]),
    ],
)
def test_gather_is_pytorchs(shape, dim, index):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).random(shape)
    ours, theirs = (m.tensor(x, requires_grad=True) for m in (cr, torch))
    picked, reference = (
        cr.gather(ours, dim, cr.tensor(index)),
        theirs.gather(dim, torch.tensor(index)),
    )
    np.testing.assert_array_equal(picked.detach().numpy(), reference.detach().numpy())
    (picked * picked).sum().backward()
    (reference * reference).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy())


def test_gather_checks_its_arguments():
    x = cr.zeros(2, 3)
    with pytest.raises(cr.ShapeError, match="same number of dimensions"):
        x.gather(0, cr.tensor([0]))
    with pytest.raises(cr.ShapeError, match="Size does not match at dimension 1"):
        x.gather(0, cr.zeros(1, 4, dtype=cr.int64))
    with pytest.raises(TypeError, match="Expected dtype int64 for index"):
        x.gather(0, cr.zeros(1, 1))
    with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 2"):
        x.gather(0, cr.tensor([[2]]))


@pytest.mark.parametrize(("shape", "where"), [((3, 1), (1, 4)), ((3, 4), (1, 4)), ((3, 4), (3, 1))])
def test_take_along_dim_broadcasts(shape, where):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).random(shape)
    index = np.zeros(where, int)
    ours, theirs = (m.tensor(x, requires_grad=True) for m in (cr, torch))
    picked = ours.take_along_dim(cr.tensor(index), 0)
    reference = theirs.take_along_dim(torch.tensor(index), 0)
    np.testing.assert_array_equal(picked.detach().numpy(), reference.detach().numpy())
    picked.sum().backward()
    reference.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy())


def test_take_along_dim_forms():
    x = cr.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert cr.take_along_axis(x, cr.tensor([[1], [0]]), axis=1).tolist() == [[5], [7]]
    assert cr.take_along_dim(x, cr.tensor([3, 0])).tolist() == [2, 1]
    with pytest.raises(cr.ShapeError, match="same number of dimensions"):
        cr.take_along_dim(x, cr.tensor([0]), 0)


def test_a_mask_that_does_not_fit_and_an_index_of_a_number():
    x = cr.ones(4, 3)
    with pytest.raises(
        IndexError, match=r"The shape of the mask .* dimension 1 the mask has size 2"
    ):
        x[:, cr.tensor([True, False])]
    with pytest.raises(
        IndexError, match="The shape of the mask does not match the shape of the ind"
    ):
        x[cr.tensor([True])] = 0
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        cr.tensor(1.0)[0]


def test_index_select_and_take():
    x = cr.tensor(data(), requires_grad=True)
    result = x.index_select(1, cr.tensor([3, 0, 3]))
    np.testing.assert_array_equal(result.detach().numpy(), data()[:, [3, 0, 3]])
    result.sum().backward()
    assert x.grad[0, :, 0].tolist() == [1, 0, 0, 2]
    assert cr.take(x, cr.tensor([[0, 59]])).tolist() == [[0, 59]]
    assert cr.take(x, cr.tensor([1]), axis=-1).shape == (3, 4, 1)
    assert cr.index_select(cr.tensor(5.0), 0, cr.tensor([0])).tolist() == 5
    with pytest.raises(IndexError, match="supposed to be a vector"):
        x.index_select(0, cr.tensor([[0]]))
    with pytest.raises(IndexError, match="out of bounds"):
        x.index_select(0, cr.tensor([3]))


def test_index_select_of_a_single_number():
    x = cr.tensor(2.0, requires_grad=True)
    out = cr.index_select(x, 0, cr.tensor([0]))
    assert out.shape == ()
    out.mul_(3).backward()
    assert x.item() == 2
    assert x.grad == 3
    with pytest.raises(IndexError, match="can have only 1 value, got 2 value"):
        cr.index_select(x, 0, cr.tensor([0, 0]))


def test_masked_select_broadcasts():
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    picked = x.masked_select(cr.tensor([True, False]))
    assert picked.tolist() == [1, 3]
    picked.sum().backward()
    assert x.grad.tolist() == [[1, 0], [1, 0]]
    assert cr.masked_select(cr.tensor([1.0, 2.0]), x.detach() > 2).tolist() == [1, 2]
    with pytest.raises(TypeError, match="expected BoolTensor for mask"):
        x.masked_select(cr.tensor([1, 0]))


def test_a_list_of_tensors_is_one_of_dimensions_as_in_pytorch():
    rows, columns = [0, 1], [2, 0]

    def program(lib):
        x = lib.tensor(np.arange(9.0).reshape(3, 3))
        key = [lib.tensor(rows), lib.tensor(columns)]
        found = [x[key], x[[lib.tensor(1), lib.tensor(2)]], x[[lib.tensor(rows), 1]]]
        x[key] = -1.0
        return *found, x

    with pytest.warns(UserWarning, match=r"write x\[tuple\(indices\)\]"):
        same_as_torch(program)


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("values", [[[1, 0, 2], [0, 1, 0]], [1, 0]])
def test_a_tensor_of_bytes_is_a_mask_as_in_pytorch(values):
    def program(lib):
        x, mask = lib.arange(6.0).reshape(2, 3), lib.tensor(values).byte()
        y = x.clone()
        y[mask] = y[mask] * 10
        return x[mask], x.T[mask.T] if mask.ndim == 2 else x.T[:, mask], y

    same_as_torch(program)


def test_bytes_that_are_positions():
    x = cr.arange(6.0).reshape(2, 3)
    assert x[np.array([1, 0], np.uint8)].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert cr.index_select(x, 0, cr.tensor([1], dtype=cr.uint8)).tolist() == [[3, 4, 5]]
    with (
        pytest.warns(UserWarning, match=r"uint8 is a mask, .* convert positions with .long\(\)"),
        pytest.raises(IndexError, match="mask has size 1 and the tensor size 2"),
    ):
        x[cr.tensor([1], dtype=cr.uint8)]


def test_an_empty_index_may_have_any_number_of_dimensions():
    def program(lib):
        index = lib.zeros(2, 0, dtype=lib.int64)
        return lib.gather(lib.ones(3), 0, index), lib.scatter(lib.ones(3), 0, index, 2.0)

    same_as_torch(program)


def test_a_list_that_is_no_matrix_of_indices_is_refused():
    x = cr.ones(3, 3)
    for key in ([[0, 1], slice(None)], [[0, 1], [0]]):
        with pytest.raises(IndexError, match=r"write a tuple .*x\[tuple\(indices\)\]"):
            x[key]
        with pytest.raises(IndexError, match="a list as an index must be an array"):
            x[key] = 0
    with pytest.raises(RuntimeError, match="Expected dtype int64 for index, got bool"):
        x.gather(0, cr.ones(3, 3, dtype=cr.bool))


@pytest.mark.parametrize("values", [[2, 0, 2], [True, False, True]])
def test_a_series_of_pandas_is_an_index(values):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(values, index=[7, 8, 9])
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert x[series].tolist() == x.detach().numpy()[series].tolist()
    x[series].sum().backward()
    wanted = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    wanted[values].sum().backward()
    assert x.grad.tolist() == wanted.grad.tolist()
    y = cr.zeros(3)
    y[series] = 5.0
    assert y.tolist() == [5.0, 0.0, 5.0]
    with pytest.raises(IndexError, match="are valid indices"):
        x[pandas.Series(["a", "b", "c"])]


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), [2, 0], slice(None)),
        (slice(None), [2, 0], slice(1, 3)),
        (..., [2, 0]),
        (slice(None), [True, False, True, True]),
        (slice(None), [2, 0], [1, 1]),
        (None, slice(None), [2, 0]),
        (slice(None), 1, [2, 0]),
    ],
    ids=str,
)
def test_what_an_index_selects_is_in_c_order(key):
    array = data()
    key = tuple([np.array(part) if isinstance(part, list) else part for part in key])
    found = cr.tensor(array)[key]
    assert found.view(-1).tolist() == array[key].ravel().tolist()  # a view: contiguous
    columns = cr.tensor(np.stack([array, array], -1))[..., 0]  # ordered, and not contiguous
    assert columns[key].view(-1).tolist() == array[key].ravel().tolist()


def test_an_index_keeps_the_order_of_dimensions_of_a_transposed_tensor():
    x = cr.tensor(data()).permute(2, 0, 1)
    assert x[:, cr.tensor([2, 0])].tolist() == x.numpy()[:, [2, 0]].tolist()
    assert x[..., cr.tensor([2, 0]), :].shape == (5, 2, 4)


KEYS_APART = [  # with what PyTorch's are equal to
    ((0, slice(None), [1, 3, 0]), lambda x: x[0][:, [1, 3, 0]]),
    (([1, 2], slice(None), -1), lambda x: x[..., -1][[1, 2]]),
    ((1, slice(None), [True, False] * 2 + [True]), lambda x: x[1][:, [True, False] * 2 + [True]]),
    ((1, None, [2, 0]), lambda x: x[1][None, [2, 0]]),
    ((1, ..., [2, 0]), lambda x: x[1][..., [2, 0]]),
    ((0, slice(1, 3), [[1], [0]]), lambda x: x[0, 1:3][:, [[1], [0]]]),
]


@pytest.mark.parametrize(("key", "apart"), KEYS_APART, ids=[str(key) for key, _ in KEYS_APART])
def test_ints_that_are_apart_from_arrays_select_first(key, apart):
    """As in PyTorch; for NumPy, `x[0, :, i]` has the dimension of i in front."""
    x = cr.tensor(data(), requires_grad=True)
    wanted = apart(data())
    assert x[key].tolist() == wanted.tolist()
    weights = np.arange(wanted.size, dtype=float).reshape(wanted.shape)
    (x[key] * weights).sum().backward()
    y, by_hand = cr.zeros(3, 4, 5, dtype=cr.float64), np.zeros((3, 4, 5))
    y[key] = weights
    numbers = apart(np.arange(60).reshape(3, 4, 5))
    by_hand.reshape(-1)[numbers] = weights
    assert y.tolist() == by_hand.tolist() == x.grad.tolist()
    assert cr.vmap(lambda row: row[key])(x[None])[0].tolist() == wanted.tolist()
    assert cr.compile(lambda row: row[key] * 2)(x.detach()).tolist() == (wanted * 2).tolist()
    assert xp.array(data())[key].tolist() == data()[key].tolist()


def test_an_ellipsis_of_no_dimensions_does_not_separate_arrays():
    x = cr.tensor(data())
    found = x[:, cr.tensor([0, 2, 1]), ..., cr.tensor([1, 1, 4])]
    assert found.tolist() == data()[:, [0, 2, 1], [1, 1, 4]].tolist()
