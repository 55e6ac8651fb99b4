"""Views (narrow, select, unfold, unflatten, diagonals) and writes through them."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch, same_as_torch

X = np.arange(24.0).reshape(2, 3, 4) / 7

PARTS = {
    "narrow": lambda lib, x: x.narrow(1, 1, 2),
    "narrow-from-the-end": lambda lib, x: lib.narrow(x, -1, -2, 1),
    "select": lambda lib, x: x.select(1, -1),
    "select-function": lambda lib, x: lib.select(x, 0, 1),
    "unflatten": lambda lib, x: x.unflatten(2, (2, -1)),
    "diagonal": lambda lib, x: x.diagonal(),
    "diagonal-of": lambda lib, x: lib.diagonal(x, 1, -1, 1),
    "diagonal-below": lambda lib, x: lib.diagonal(x, -2, 1, 2),
    "diagonal-beyond": lambda lib, x: lib.diagonal(x, 9, 1, 2),
    "windows-apart": lambda lib, x: x.unfold(2, 2, 2),
    "windows-with-gaps": lambda lib, x: x.unfold(1, 1, 2),
}
OVERLAPPING = {
    "windows": lambda lib, x: x.unfold(2, 3, 1),
    "windows-of-the-first": lambda lib, x: x.unfold(0, 2, 1),
    "windows-of-windows": lambda lib, x: x.unfold(2, 3, 1).unfold(1, 2, 1),
}


@pytest.mark.parametrize("name", [*PARTS, *OVERLAPPING])
def test_values_and_gradients(name):
    function = (PARTS | OVERLAPPING)[name]
    check_derivatives(function, X)
    compare_with_torch(function, X)


@pytest.mark.parametrize("name", PARTS)
def test_they_share_memory_and_writes_reach_the_base(name):
    def function(lib, x, value):
        y = x * 1
        part = PARTS[name](lib, y)
        other = y.reshape(-1)
        part.mul_(value)
        part += 1
        return y * y, part * 2, other

    compare_with_torch(function, X, 3.0)
    y = cr.tensor(X)
    if PARTS[name](cr, y).numel():
        PARTS[name](cr, y).fill_(100)
        assert (y == 100).sum().item() == PARTS[name](cr, y).numel()


def test_a_narrow_copy_is_the_same_in_memory_of_its_own():
    compare_with_torch(lambda lib, x: lib.narrow_copy(x, 1, 1, 2) * x.narrow_copy(1, 0, 2), X)
    x = cr.tensor(X)
    assert not np.shares_memory(x.narrow_copy(0, 0, 1).numpy(), x.numpy())


def test_the_base_written_to_is_seen_in_a_diagonal():
    def function(lib, x):
        y = x * 1
        part = lib.diagonal(y, 0, 1, 2)
        y.mul_(y.detach() + 2)
        return part * part

    compare_with_torch(function, X)


def test_no_grad_views_refuse_writes_in_grad_mode():
    y = cr.ones(3, 3, requires_grad=True) * 1
    with cr.no_grad():
        part = y.diagonal()
    with pytest.raises(cr.InPlaceError, match="no_grad mode"):
        part.mul_(2)


def test_overlapping_windows_are_not_written_to():
    with pytest.raises(cr.InPlaceError, match="more than one element of the written-to tensor"):
        cr.arange(5.0).unfold(0, 3, 1).fill_(0)


def test_single_numbers():
    compare_with_torch(lambda lib, x: x.unfold(0, 1, 1), 2.5)
    compare_with_torch(lambda lib, x: x.unflatten(0, (1, 2)), [1.0, 2.0])


def test_locked_memory_stays_locked():
    array = np.zeros((2, 2))
    array.setflags(write=False)
    with pytest.raises(cr.InPlaceError, match="read-only"):
        cr.from_numpy(array).diagonal().fill_(1)


REPLACED = {
    "select_scatter": lambda lib, x, y: lib.select_scatter(x, y[0], 0, 1),
    "select_scatter-dim": lambda lib, x, y: x.select_scatter(y[:, 1], dim=1, index=-1),
    "slice_scatter": lambda lib, x, y: lib.slice_scatter(x, y[:, :2], 1, 1),
    "slice_scatter-step": lambda lib, x, y: x.slice_scatter(y[..., :2], dim=2, end=3, step=2),
    "diagonal_scatter-first": lambda lib, x, y: x.diagonal_scatter(y[0, :2].t(), 0, 0, 1),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_parts(name):
    check_derivatives(REPLACED[name], X, X * 2 + 1)
    compare_with_torch(REPLACED[name], X, X * 2 + 1)


def test_a_diagonal_of_matrices_replaced():
    def function(lib, x, y):
        return lib.diagonal_scatter(x, y, 1, 1, 2)

    check_derivatives(function, X, X[:, :, 0])
    compare_with_torch(function, X, X[:, :, 0])


def test_the_source_has_the_shape_of_the_part():
    with pytest.raises(cr.ShapeError, match="src to have a size equal to the slice of self"):
        cr.select_scatter(cr.zeros(2, 3), cr.zeros(2), 0, 0)


def test_strides_and_offsets():
    for part in (lambda x: x, lambda x: x[1, 1:], lambda x: x.mT):
        ours = part(cr.tensor(X))
        assert ours.stride(-1) == ours.stride()[-1]
        theirs = np.lib.stride_tricks.as_strided(
            X.reshape(-1)[ours.storage_offset() :], ours.shape, [8 * n for n in ours.stride()]
        )
        np.testing.assert_array_equal(ours.numpy(), theirs)


DIAGONALS = {
    "diag_embed": lambda lib, x: lib.diag_embed(x),
    "diag_embed-offset": lambda lib, x: x.diag_embed(-1, 0, 2),
    "diag_embed-swapped": lambda lib, x: x.diag_embed(1, -1, 1),
    "diagflat": lambda lib, x: lib.diagflat(x, 1),
    "trace": lambda lib, x: x[0].trace(),
    "diag-vector": lambda lib, x: lib.diag(x[0, 0], -1),
    "diag": lambda lib, x: x[1].diag(1),
    "tril": lambda lib, x: lib.tril(x, diagonal=1),
    "triu": lambda lib, x: x.triu(-1),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals(name):
    check_derivatives(DIAGONALS[name], X)
    compare_with_torch(DIAGONALS[name], X)


@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 5), (5, 3), (2, 4, 4), (1, 7), (7, 1), (0, 3), (3, 0)]
)
def test_triangles_up_to_every_diagonal(shape):
    x = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    for k in range(-9, 10):
        assert np.array_equal(cr.tril(cr.from_numpy(x), k).numpy(), np.tril(x, k))
        assert np.array_equal(cr.triu(cr.from_numpy(x), k).numpy(), np.triu(x, k))


def test_triangles_take_the_array_apis_k():
    x = cr.ones(3, 3)
    assert cr.tril(x, k=-1).equal(cr.tril(x, -1))
    assert cr.triu(x, k=1).equal(cr.triu(x, diagonal=1))


def test_the_trace_of_integers_is_int64():
    compare_with_torch(lambda lib, x: x.trace(), np.ones((2, 2), "int32"))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.narrow(0, 5, 1), IndexError, "start out of range"),
        (lambda x: x.narrow(0, 1, 4), cr.ShapeError, "exceeds dimension size"),
        (lambda x: x.narrow(0, 1, -1), cr.ShapeError, "length is negative"),
        (lambda x: x.sum().narrow(0, 0, 1), cr.ShapeError, "cannot be applied to a 0-dim tensor"),
        (lambda x: x.select(0, 3), IndexError, "out of range for tensor of size"),
        (lambda x: x.sum().select(0, 0), cr.ShapeError, "cannot be applied to a 0-dim tensor"),
        (lambda x: x.unfold(0, 4, 1), cr.ShapeError, "maximum size for tensor at dimension 0"),
        (lambda x: x.unfold(0, 1, 0), cr.ShapeError, "must be > 0"),
        (lambda x: x.unflatten(0, (2, 2)), cr.ShapeError, "don't multiply up to the size"),
        (lambda x: x.unflatten(0, (2, -1)), cr.ShapeError, "don't multiply up to the size"),
        (lambda x: x.unflatten(0, ()), cr.ShapeError, "don't multiply up to the size"),
        (lambda x: x.diagonal(0, 1, -1), ValueError, "dimensions cannot be identical"),
        (lambda x: x.diag_embed(0, 1, -2), ValueError, "dimensions cannot be identical"),
        (lambda x: x.sum().diag_embed(), cr.ShapeError, "at least 1 dimension"),
        (lambda x: x[0].trace(), cr.ShapeError, "expected a matrix"),
    ],
    ids=range(15),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3, 3))


# --- as_strided -----------------------------------------------------------------------------------

SOURCES = {
    "matrix": lambda x: x * 1,
    "transposed": lambda x: (x * 1).T,
    "rows": lambda x: (x * 1)[1:],
    "permuted": lambda x: (x * 1).reshape(2, 2, 3).permute(2, 0, 1),
}


@pytest.mark.parametrize(
    "arguments",
    [
        ((3, 2), (1, 1)),
        ((2, 3), (2, 0)),
        ((4,), (2,)),
        ((), ()),
        ((0, 2), (9, 9)),
        ((2, 2), (1, 4), 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_as_strided(source, arguments):
    def program(lib):
        x = lib.leaf(np.arange(1.0, 13.0).reshape(4, 3))
        y = source(x)
        z = y.as_strided(*arguments)
        return [z, lib.as_strided(y, *arguments), *lib.grad((z * z).sum() + x.sum() * 0, x)]

    same_as_torch(program)


def test_as_strided_refuses_memory_outside_the_tensor():
    x = cr.arange(12).reshape(3, 4)
    for call in (
        lambda: x.as_strided((4,), (4,)),
        lambda: x[:, :2].as_strided((3,), (1,)),
        lambda: x[1:].as_strided((2,), (1,), 0),
        lambda: cr.zeros(0).as_strided((1,), (1,)),
    ):
        with pytest.raises(
            cr.ShapeError, match="as_strided: setStorage: an offset is out of bounds"
        ):
            call()
    with pytest.raises(cr.ShapeError, match="mismatch in length of strides and shape"):
        x.as_strided((2, 2), (1,))
    with pytest.raises(cr.ShapeError, match="Negative strides and sizes are not supported"):
        x.as_strided((2,), (-1,))
    with pytest.raises(cr.InPlaceError, match="the memory is read-only"):
        x.as_strided((2,), (1,)).mul_(2)
    assert cr.tensor(3.0).as_strided((2,), (0,)).tolist() == [3.0, 3.0]


# --- elements by strides --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "offset"), [((2, 2), (1, 5), None), ((3,), (4,), 2), ((), (), 1)]
)
def test_elements_replaced_by_strides(shape, strides, offset):
    src = np.arange(np.prod(shape, dtype=int)).reshape(shape) - 9.0

    def program(lib):
        x, value = lib.tensor(X), lib.tensor(src)
        return lib.as_strided_scatter(x, value, shape, strides, offset)

    same_as_torch(program)
    # PyTorch's gradient by `x` is that of other elements.
    check_derivatives(
        lambda lib, x, value: lib.as_strided_scatter(x, value, shape, strides, offset), X, src
    )


def test_errors_of_elements_replaced_by_strides():
    with pytest.raises(ValueError, match=r"expected src of shape \[2\], got \[3\]"):
        cr.as_strided_scatter(cr.ones(4), cr.ones(3), (2,), (1,))


def test_elements_by_strides_of_each_example():
    x = cr.tensor(X)
    each = cr.vmap(lambda x: cr.as_strided(x, (2, 2), (1, 4)))(x)
    assert each.tolist() == [cr.as_strided(row, (2, 2), (1, 4)).tolist() for row in x]
    with pytest.raises(cr.AutogradError, match="leave out storage_offset"):
        cr.vmap(lambda x: cr.as_strided(x, (2,), (1,), 0))(x)


def test_memory_in_another_order():
    def program(lib):
        made = [
            lib.empty_strided((2, 3, 4), (1, 8, 2)),
            lib.empty_permuted((2, 3, 4), (2, 0, 1), dtype=lib.int64),
            lib.ones(2, dtype=lib.float64).new_empty_strided((3, 1), (1, 7)),
            lib.empty_strided((0, 3), (5, 5)),
        ]
        return [
            (*t.shape, *(t.stride() if t.numel() and 1 not in t.shape else ())) for t in made
        ], [t.new_zeros(()) for t in made]

    same_as_torch(program)
    with pytest.raises(ValueError, match="share memory or lie apart"):
        cr.empty_strided((2, 3), (0, 1))
    with pytest.raises(ValueError, match="mismatch in length"):
        cr.empty_strided((2, 3), (1,))
    with pytest.raises(ValueError, match="no permutation"):
        cr.empty_permuted((2, 3), (0, 0))
