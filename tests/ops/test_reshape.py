"""Reshaping and permuting; joining and splitting."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch


def data():
    return np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda t: t.reshape(6, 4), lambda x: x.reshape(6, 4)),
        (lambda t: t.reshape((4, -1)), lambda x: x.reshape(4, -1)),
        (lambda t: cr.reshape(t, [24]), lambda x: x.reshape(24)),
        (lambda t: t.view(-1, 4), lambda x: x.reshape(-1, 4)),
        (lambda t: t.view(2, 2, 6), lambda x: x.reshape(2, 2, 6)),
        (lambda t: t.flatten(), lambda x: x.reshape(-1)),
        (lambda t: t.flatten(1), lambda x: x.reshape(2, 12)),
        (lambda t: cr.flatten(t, 0, 1), lambda x: x.reshape(6, 4)),
        (lambda t: t.unsqueeze(0), lambda x: x[None]),
        (lambda t: t.unsqueeze(-1), lambda x: x[..., None]),
        (lambda t: cr.expand_dims(t, axis=1), lambda x: x[:, None]),
        (lambda t: t.unsqueeze(1).squeeze(), lambda x: x),
        (lambda t: t.unsqueeze(1).squeeze(1), lambda x: x),
        (lambda t: t.unsqueeze(1).squeeze(0), lambda x: x[:, None]),
        (lambda t: cr.squeeze(t[None, :, None], axis=(0, 2)), lambda x: x),
        (lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
        (lambda t: t.permute((-1, 0, 1)), lambda x: x.transpose(2, 0, 1)),
        (lambda t: cr.permute_dims(t, (1, 0, 2)), lambda x: x.transpose(1, 0, 2)),
        (lambda t: t.transpose(0, -1), lambda x: x.swapaxes(0, 2)),
        (lambda t: t[0].t(), lambda x: x[0].T),
        (lambda t: t.T, lambda x: x.T),
        (lambda t: t.mT, lambda x: x.swapaxes(1, 2)),
        (lambda t: cr.matrix_transpose(t), lambda x: x.swapaxes(1, 2)),
        (lambda t: t.movedim(0, -1), lambda x: np.moveaxis(x, 0, -1)),
        (lambda t: t.movedim((0, 1), (1, 2)), lambda x: np.moveaxis(x, (0, 1), (1, 2))),
        (lambda t: t[:, :1].expand(-1, 3, 4), lambda x: np.broadcast_to(x[:, :1], (2, 3, 4))),
        (lambda t: t.expand(5, -1, -1, -1), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
        (lambda t: t[:, :1].expand_as(t), lambda x: np.broadcast_to(x[:, :1], (2, 3, 4))),
        (lambda t: cr.broadcast_to(t[0, 0], (3, 4)), lambda x: np.broadcast_to(x[0, 0], (3, 4))),
        (lambda t: t.flip(0), lambda x: np.flip(x, 0)),
        (lambda t: t.flip((0, -1)), lambda x: np.flip(x, (0, 2))),
        (lambda t: cr.flip(t), lambda x: np.flip(x)),
        (lambda t: t.roll(1, 0), lambda x: np.roll(x, 1, 0)),
        (lambda t: t.roll((1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2))),
        (lambda t: cr.roll(t, 5), lambda x: np.roll(x, 5)),
        (lambda t: t.tril(), lambda x: np.tril(x)),
        (lambda t: t.triu(1), lambda x: np.triu(x, 1)),
        (lambda t: t[0].diag(), lambda x: np.diag(x[0])),
        (lambda t: t[0].diag(-2), lambda x: np.diag(x[0], -2)),
        (lambda t: t[0].diag(9), lambda x: np.diag(x[0], 9)),
        (lambda t: t[0, 0].diag(2), lambda x: np.diag(x[0, 0], 2)),
        (lambda t: t.permute(2, 0, 1).reshape(-1), lambda x: x.transpose(2, 0, 1).reshape(-1)),
        (lambda t: t.mT.contiguous().view(-1), lambda x: x.swapaxes(1, 2).reshape(-1)),
        (lambda t: t.reshape_as(cr.zeros(6, 4)), lambda x: x.reshape(6, 4)),
        (lambda t: t.view_as(cr.zeros(6, 4)), lambda x: x.reshape(6, 4)),
    ],
)
def test_values_and_gradients(ours, numpys):
    x = cr.tensor(data(), requires_grad=True)
    result, expected = ours(x), numpys(data())
    np.testing.assert_array_equal(result.detach().numpy(), expected)
    # Each element's gradient is the sum of the weights of its copies: count them by their value.
    weight = np.random.default_rng(0).random(expected.shape)
    (result * weight).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), _copies(numpys, weight))


def _copies(function, weight):
    total = np.zeros(24)
    for i in range(24):
        unit = np.zeros(24)
        unit[i] = 1
        total[i] = (function(unit.reshape(2, 3, 4)) * weight).sum()
    return total.reshape(2, 3, 4)


@pytest.mark.parametrize(
    "shape",
    [
        lambda t: t.reshape(6, 4),
        lambda t: t.view(24),
        lambda t: t.flatten(),
        lambda t: t.squeeze(),
        lambda t: t.unsqueeze(0),
        lambda t: t.permute(2, 0, 1),
        lambda t: t.transpose(0, 1),
        lambda t: t.T,
        lambda t: t.mT,
        lambda t: t.movedim(0, 1),
        lambda t: t.mT.reshape(2, 4, 3, 1),
    ],
)
def test_views_share_memory(shape):
    x = cr.tensor(data())
    shape(x).fill_(-1)
    assert (x == -1).all()


def test_reshape_copies_where_no_view_is_possible():
    x = cr.tensor(data())
    y = x.mT.reshape(-1)
    y.fill_(-1)
    assert (x == cr.tensor(data())).all()
    with pytest.raises(cr.ShapeError, match=r"view size is not compatible.*Use .reshape"):
        x.mT.view(-1)


def test_expanded_tensors_can_not_be_written_to():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        cr.ones(3).expand(2, 3).sin_()


def test_shapes_that_do_not_fit():
    x = cr.zeros(2, 3)
    cases = {
        (4,): r"shape '\[4\]' is invalid for input of size 6",
        (-1, 4): r"shape '\[-1, 4\]' is invalid for input of size 6",
        (-1, -1): "only one dimension can be inferred",
        (-2, 3): "invalid shape dimension -2",
    }
    for shape, message in cases.items():
        for method in (x.reshape, x.view):
            with pytest.raises(cr.ShapeError, match=message):
                method(*shape)
    with pytest.raises(cr.ShapeError, match="is ambiguous"):
        cr.zeros(0).reshape(-1, 0)
    with pytest.raises(TypeError, match="sizes must be ints"):
        x.reshape(2.0, 3)


def test_dimensions_that_do_not_fit():
    x = cr.zeros(2, 3)
    with pytest.raises(cr.ShapeError, match=r"The expanded size of the tensor \(4\) must match"):
        x.expand(2, 4)
    with pytest.raises(cr.ShapeError, match="must be greater or equal to the number of dimensions"):
        x.expand(3)
    with pytest.raises(cr.ShapeError, match="-1 is not allowed in a leading"):
        x.expand(-1, 2, 3)
    with pytest.raises(ValueError, match="must contain each of the tensor's 2 dimensions once"):
        x.permute(0, 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.transpose(0, 2)
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 3"):
        x.unsqueeze(3)
    with pytest.raises(cr.ShapeError, match=r"t\(\) expects a tensor with <= 2 dimensions"):
        cr.zeros(1, 1, 1).t()
    with pytest.raises(cr.ShapeError, match="mT is only supported on matrices"):
        _ = cr.zeros(2).mT
    with pytest.raises(ValueError, match="start_dim cannot come after end_dim"):
        x.flatten(1, 0)
    with pytest.raises(ValueError, match="same number of dims as destination"):
        x.movedim((0, 1), 0)
    with pytest.raises(ValueError, match="shifts and dims must align"):
        x.roll((1, 2), 0)
    with pytest.raises(cr.ShapeError, match="at least 2 dimensions"):
        cr.zeros(2).tril()
    with pytest.raises(cr.ShapeError, match=r"Supports 1D or 2D tensors\. Got 3D"):
        cr.zeros(1, 1, 1).diag()


def test_scalars_and_vectors_transpose_to_themselves():
    for x in (cr.tensor(2.0), cr.ones(3)):
        assert x.t().shape == x.T.shape == x.shape
    assert cr.tensor(2.0).transpose(0, -1).shape == ()
    assert cr.tensor(2.0).flatten().shape == (1,)
    assert cr.tensor(2.0).reshape(()).shape == ()


def test_contiguous_returns_itself_where_it_is_so():
    x = cr.zeros(2, 3)
    assert x.contiguous() is x
    assert x.T.contiguous().is_contiguous()
    assert x.T.contiguous().shape == (3, 2)


def test_shapes_of_the_expansion_of_one_element():
    x = cr.tensor([2.0], requires_grad=True)
    x.expand(3).sum().backward()
    assert x.grad.tolist() == [3]


# --- joining --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_and_stack(dim):
    x, y = data(), -data()
    for cat in (cr.cat, cr.concat):
        np.testing.assert_array_equal(
            cat([cr.tensor(x), cr.tensor(y)], dim).numpy(), np.concatenate([x, y], dim)
        )
    np.testing.assert_array_equal(
        cr.stack((cr.tensor(x), cr.tensor(y)), axis=dim).numpy(), np.stack([x, y], dim)
    )


def test_joining_promotes_like_arithmetic():
    parts = [cr.tensor([1, 2]), cr.tensor([0.5])]
    assert cr.cat(parts).dtype == cr.float32
    assert cr.stack([cr.tensor(1), cr.tensor(0.5)]).dtype == cr.float32


def test_joining_passes_each_its_gradient():
    x, y = cr.tensor([1.0, 2.0], requires_grad=True), cr.tensor([3.0], requires_grad=True)
    (cr.cat([x, y, x]) * cr.arange(5.0)).sum().backward()
    assert x.grad.tolist() == [3, 5]
    assert y.grad.tolist() == [2]


def test_tensors_that_can_not_be_joined():
    with pytest.raises(cr.ShapeError, match="expected a non-empty list of Tensors"):
        cr.cat([])
    with pytest.raises(cr.ShapeError, match="Sizes of tensors must match except in dimension 0"):
        cr.cat([cr.zeros(2, 3), cr.zeros(2, 4)])
    with pytest.raises(cr.ShapeError, match="must have same number of dimensions: got 2 and 1"):
        cr.cat([cr.zeros(2, 3), cr.zeros(2)])
    with pytest.raises(cr.ShapeError, match="zero-dimensional tensor"):
        cr.cat([cr.tensor(1.0), cr.tensor(2.0)])
    with pytest.raises(cr.ShapeError, match="stack expects each tensor to be equal size"):
        cr.stack([cr.zeros(2), cr.zeros(3)])
    with pytest.raises(IndexError, match="Dimension out of range"):
        cr.stack([cr.zeros(2)], dim=2)


# --- taking apart ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        lambda m, t: m.split(t, 2),
        lambda m, t: m.split(t, [1, 0, 4]),
        lambda m, t: t.split(2, dim=-1),
        lambda m, t: m.chunk(t, 2),
        lambda m, t: t.chunk(3, -1),
        lambda m, t: t.chunk(9),
        lambda m, t: m.unbind(t),
        lambda m, t: t.unbind(1),
        lambda m, t: tuple(t),
    ],
)
def test_parts_are_pytorchs(parts):
    torch = pytest.importorskip("torch")
    x = np.arange(20.0).reshape(5, 4)
    ours, theirs = (m.tensor(x, requires_grad=True) for m in (cr, torch))
    mine, reference = parts(cr, ours), parts(torch, theirs)
    assert isinstance(mine, tuple)
    assert [part.shape for part in mine] == [tuple(part.shape) for part in reference]
    for part, other in zip(mine, reference, strict=True):
        np.testing.assert_array_equal(part.detach().numpy(), other.detach().numpy())
    (mine[0] * mine[0]).sum().backward()
    (reference[0] * reference[0]).sum().backward()
    np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())


@pytest.mark.parametrize("take", [lambda t: t.split(2), lambda t: t.chunk(2), lambda t: t.unbind()])
def test_parts_refuse_to_be_written_to_while_recording(take):
    x = cr.ones(4, requires_grad=True) * 1
    with pytest.raises(cr.InPlaceError, match="output of a function that returns multiple views"):
        take(x)[0].add_(1)
    with cr.no_grad():
        part = take(x)[0]
        part.add_(1)
    assert x[0].item() == 2


def test_a_part_follows_a_write_to_its_base():
    x = cr.ones(4, requires_grad=True)
    y = x * 1
    _, second = y.split(2)
    y.mul_(3)
    assert second.tolist() == [3, 3]
    (gradient,) = cr.autograd_grad(second.sum(), [x])
    assert gradient.tolist() == [0, 0, 3, 3]


def test_tensors_that_can_not_be_split():
    with pytest.raises(cr.ShapeError, match="split_sizes to sum exactly to 4"):
        cr.zeros(4).split([1, 2])
    with pytest.raises(cr.ShapeError, match="split_size to be positive"):
        cr.zeros(4).split(0)
    with pytest.raises(ValueError, match="`chunks` to be greater than 0"):
        cr.zeros(4).chunk(0)
    for method in ("split", "chunk"):
        with pytest.raises(cr.ShapeError):
            getattr(cr.tensor(1.0), method)(1)
    with pytest.raises(cr.OutOfBoundsError, match="no dimensions"):
        cr.tensor(1.0).unbind()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_ignores_empty_vectors(dim):
    compare_with_torch(
        lambda lib, x, y: lib.cat([lib.zeros(0, dtype=lib.float64), x, y[:0], x], dim),
        *(np.ones((2, 3)), np.ones(3)),
    )
    assert cr.cat([cr.zeros(0), cr.zeros(0)]).shape == (0,)


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 3), (0, 3), (2, 0)])
def test_empty_vectors_that_are_joined_have_gradients(shape):
    nothing, x = cr.zeros(0, requires_grad=True), cr.ones(shape, requires_grad=True)
    cr.cat([nothing, x, nothing]).sum().backward()
    assert nothing.grad.shape == (0,)
    assert x.grad.shape == shape


def test_empty_vectors_do_not_hide_a_0d_tensor():
    with pytest.raises(cr.ShapeError, match=r"zero-dimensional tensor \(at position 1\)"):
        cr.cat([cr.zeros(0), cr.tensor(1.0)])


def test_one_dimension_flattened_is_the_tensor_itself():
    x = cr.ones(2, 3)
    assert x.flatten(1, 1) is x
    assert cr.flatten(x, 0, 0) is x
    assert cr.tensor(1.0).flatten().shape == (1,)


def test_ravel_is_contiguous():
    x = cr.arange(6.0)
    assert x.reshape(2, 3).ravel()._base is x
    assert x[::2].ravel().is_contiguous()
    beside = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    beside[::2].ravel().backward(cr.tensor([1.0, 5.0]))
    assert beside.grad.tolist() == [1.0, 0.0, 5.0]
