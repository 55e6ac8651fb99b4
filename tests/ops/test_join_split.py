"""Joining, splitting, repeating and flipping, compared with PyTorch."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

A = np.arange(12.0).reshape(3, 4) / 5
B = np.arange(12.0, 24.0).reshape(3, 4) / 5
V = np.array([1.0, 2.0, 3.0])

FUNCTIONS = {
    "hstack": lambda lib, a, b, v: lib.hstack([a, b]),
    "hstack-vectors": lambda lib, a, b, v: lib.hstack((v, v[0], a[0])),
    "vstack": lambda lib, a, b, v: lib.vstack([a, b, a[0]]),
    "vstack-numbers": lambda lib, a, b, v: lib.vstack([v[0], v[1]]),
    "row_stack": lambda lib, a, b, v: lib.row_stack([v, v]),
    "dstack": lambda lib, a, b, v: lib.dstack([a, b]),
    "dstack-vectors": lambda lib, a, b, v: lib.dstack([v, v]),
    "column_stack": lambda lib, a, b, v: lib.column_stack([v, a, v]),
    "column_stack-numbers": lambda lib, a, b, v: lib.column_stack([v[0], v[1]]),
    "block_diag": lambda lib, a, b, v: lib.block_diag(a, v, v[0], b[:, :1]),
    "atleast_1d": lambda lib, a, b, v: lib.atleast_1d(v[0]),
    "atleast_2d": lambda lib, a, b, v: lib.atleast_2d(v[0], v, a),
    "atleast_3d": lambda lib, a, b, v: lib.atleast_3d((v[0], v, a)),
    "tensor_split": lambda lib, a, b, v: lib.tensor_split(a, 3, dim=1),
    "tensor_split-at": lambda lib, a, b, v: a.tensor_split((1, 3), 1),
    "tensor_split-back": lambda lib, a, b, v: a.tensor_split([2, 1, -1, 9], 1),
    "tensor_split-tensor": lambda lib, a, b, v: a.tensor_split(lib.tensor([1, 2])),
    "hsplit": lambda lib, a, b, v: a.hsplit(2),
    "hsplit-vector": lambda lib, a, b, v: lib.hsplit(v, [1, 2]),
    "vsplit": lambda lib, a, b, v: lib.vsplit(a, 3),
    "dsplit": lambda lib, a, b, v: lib.dsplit(lib.dstack([a, b]), 2),
    "split_with_sizes": lambda lib, a, b, v: a.split_with_sizes([1, 3], 1),
    "split": lambda lib, a, b, v: a.split(2, dim=1),
    "split-by-name": lambda lib, a, b, v: a.split(split_size=3, dim=1),
    "tile": lambda lib, a, b, v: lib.tile(a, (2, 1)),
    "tile-more": lambda lib, a, b, v: v.tile((2, 1, 2)),
    "tile-fewer": lambda lib, a, b, v: a.tile(2),
    "repeat": lambda lib, a, b, v: v.repeat(2, 3),
    "repeat-tuple": lambda lib, a, b, v: a.repeat((1, 2)),
    "repeat-never": lambda lib, a, b, v: a.repeat(0, 2),
    "repeat_interleave": lambda lib, a, b, v: lib.repeat_interleave(a, 2),
    "repeat_interleave-dim": lambda lib, a, b, v: a.repeat_interleave(3, dim=1),
    "repeat_interleave-each": lambda lib, a, b, v: lib.repeat_interleave(
        a, lib.tensor([2, 0, 1]), dim=0
    ),
    "repeat_interleave-one": lambda lib, a, b, v: lib.repeat_interleave(v, lib.tensor([2])),
    "meshgrid": lambda lib, a, b, v: lib.meshgrid(v, a[0], indexing="ij"),
    "meshgrid-xy": lambda lib, a, b, v: lib.meshgrid(v, a[0], v[0], indexing="xy"),
    "meshgrid-list": lambda lib, a, b, v: lib.meshgrid([v, v], indexing="xy"),
    "cartesian_prod": lambda lib, a, b, v: lib.cartesian_prod(v, a[0], v),
    "cartesian_prod-one": lambda lib, a, b, v: lib.cartesian_prod(v),
    "combinations": lambda lib, a, b, v: lib.combinations(a[0]),
    "combinations-3": lambda lib, a, b, v: lib.combinations(a[0], r=3, with_replacement=True),
    "combinations-none": lambda lib, a, b, v: lib.combinations(v, r=4),
    "fliplr": lambda lib, a, b, v: lib.fliplr(a),
    "flipud": lambda lib, a, b, v: v.flipud(),
    "rot90": lambda lib, a, b, v: lib.rot90(a),
    "rot90-2": lambda lib, a, b, v: a.rot90(2, [0, 1]),
    "rot90-back": lambda lib, a, b, v: lib.rot90(a, -1, (1, 0)),
    "rot90-4": lambda lib, a, b, v: a.rot90(4),
    "swapdims": lambda lib, a, b, v: lib.swapdims(a, 0, 1),
    "ravel": lambda lib, a, b, v: a.t().ravel(),
    "sum_to_size": lambda lib, a, b, v: a.sum_to_size(1, 4),
    "sum_to_size-lead": lambda lib, a, b, v: a.sum_to_size((4,)),
    "sum_to_size-same": lambda lib, a, b, v: a.sum_to_size(3, 4),
    "squeeze-several": lambda lib, a, b, v: a[None, :, None].squeeze((0, 1, 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    check_derivatives(FUNCTIONS[name], A, B, V)
    compare_with_torch(FUNCTIONS[name], A, B, V)


def test_how_often_each_index_is_repeated():
    assert cr.repeat_interleave(cr.tensor([1, 0, 2])).tolist() == [0, 2, 2]


def test_the_array_apis_repeat():
    x = cr.tensor(A)
    assert cr.repeat(x, 2).equal(x.repeat_interleave(2))
    assert cr.repeat(x, cr.tensor([1, 2, 0]), axis=0).shape == (3, 4)


def test_promotion_and_empty_tensors():
    assert cr.hstack([cr.tensor([1]), cr.tensor([1.0])]).dtype == cr.float32
    assert cr.block_diag(cr.zeros(0, 2), cr.ones(1, 1)).shape == (1, 3)
    compare_with_torch(lambda lib, x: lib.block_diag(x, x), np.zeros((2, 0)))
    compare_with_torch(lambda lib, x: x.repeat_interleave(2, 0), np.zeros((0, 2)))
    compare_with_torch(lambda lib, x: lib.tile(x, (2, 2)), np.zeros((0, 2)))


def test_parts_share_memory():
    x = cr.arange(4.0)
    cr.hsplit(x, 2)[1].fill_(9)
    assert x.tolist() == [0, 1, 9, 9]

    def function(lib, x):
        y = x * 1
        left, right = y.tensor_split(2)
        left.mul_(3)
        return y * y, left * right

    compare_with_torch(function, [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: cr.hstack([]), cr.ShapeError, "hstack expects a non-empty TensorList"),
        (lambda x: cr.block_diag(x[None]), cr.ShapeError, "2 or fewer dimensions"),
        (lambda x: x.sum().tensor_split(2), cr.ShapeError, "at least a 1-dimensional tensor"),
        (lambda x: x.tensor_split(0), ValueError, "must be larger than 0"),
        (lambda x: x.hsplit(4), cr.ShapeError, "not divisible by the split_size"),
        (lambda x: x[0].vsplit(1), cr.ShapeError, "at least 2 dimensions"),
        (lambda x: x[0, 0].hsplit(1), cr.ShapeError, "at least 1 dimension,"),
        (lambda x: x.split(), TypeError, "needs split_size_or_sections"),
        (lambda x: x.split([1, "a"]), TypeError, "each of split_size_or_sections must be an int"),
        (lambda x: x.split(1.5), TypeError, "split: split_size_or_sections must be an int"),
        (lambda x: x.hsplit("abc"), TypeError, "hsplit: indices_or_sections must be an int"),
        (lambda x: x.tensor_split([0.5]), TypeError, "each of indices_or_sections .* got 0.5"),
        (lambda x: x.repeat(2), cr.ShapeError, "can not be smaller than number of dimensions"),
        (lambda x: x.repeat(2, -1), cr.ShapeError, "negative number of times"),
        (lambda x: x.repeat_interleave(x), TypeError, "repeats has to be an int"),
        (lambda x: x.repeat_interleave(-1), cr.ShapeError, "can not be negative"),
        (
            lambda x: x.repeat_interleave(cr.tensor([1, 2]), 0),
            cr.ShapeError,
            "same size as input along dim",
        ),
        (lambda x: x.repeat_interleave(2, output_size=3), cr.ShapeError, "output_size is 3"),
        (lambda x: cr.meshgrid(), cr.ShapeError, "non-empty TensorList"),
        (lambda x: cr.meshgrid(x[0], indexing="ji"), ValueError, 'one of "xy" or "ij"'),
        (lambda x: cr.meshgrid(x), cr.ShapeError, "Expected 0D or 1D tensor"),
        (lambda x: cr.cartesian_prod(x), cr.ShapeError, "Expect a 1D vector"),
        (lambda x: cr.combinations(x), cr.ShapeError, "Expect a 1D vector"),
        (lambda x: cr.combinations(x[0], -1), ValueError, "Expect a non-negative number"),
        (lambda x: x[0].fliplr(), cr.ShapeError, "must be >= 2-d"),
        (lambda x: x.sum().flipud(), cr.ShapeError, "must be >= 1-d"),
        (lambda x: x.rot90(1, (0,)), ValueError, "total rotation dims == 2"),
        (lambda x: x.rot90(1, (0, -2)), ValueError, "rotation dims to be different"),
        (lambda x: x.sum_to_size(2, 3), cr.ShapeError, "not expandable to size"),
    ],
    ids=range(29),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3, 3))


@pytest.mark.parametrize("repeats", [3, np.int64(2), np.array([2, 0, 1])])
def test_known_repetitions_in_compiled_and_mapped_functions(repeats):
    x = cr.tensor(np.arange(24.0).reshape(2, 3, 4))

    def loss(x):
        return (cr.repeat_interleave(x, repeats, dim=-2) ** 3).sum()

    wanted = np.repeat(x.numpy(), repeats, axis=1) ** 3
    assert cr.compile(loss)(x).item() == wanted.sum()
    assert cr.vmap(loss)(x).tolist() == wanted.sum((1, 2)).tolist()
    assert cr.compile(cr.grad(loss))(x).equal(cr.grad(loss)(x))
