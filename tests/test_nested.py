"""Nested tensors: parts, padding, methods and operators of all parts."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import nested


def test_padding_and_its_gradient() -> None:
    x, y = cr.ones(2, 3, requires_grad=True), cr.ones(1, 2, requires_grad=True)
    nt = nested.as_nested_tensor([x, y])
    padded = nt.to_padded_tensor(-1.0, (2, 3, 4))
    assert padded.shape == (2, 3, 4)
    assert padded[1].tolist() == [[1, 1, -1, -1], [-1] * 4, [-1] * 4]
    (2 * padded).sum().backward()
    assert x.grad.tolist() == [[2] * 3] * 2
    with pytest.raises(cr.ShapeError, match="output_size"):
        nested.to_padded_tensor(nt, 0.0, (2, 1, 4))


def test_parts_sizes_and_offsets() -> None:
    nt = nested.nested_tensor([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], dtype=cr.float64)
    assert (nt.is_nested, cr.ones(1).is_nested, nt.dtype) == (True, False, cr.float64)
    assert (nt.size(0), nt.size(-1), nt.dim(), len(nt), nt.numel()) == (2, 2, 3, 2, 6)
    with pytest.raises(cr.ShapeError, match="irregular"):
        nt.size(1)
    again = nested.nested_tensor_from_jagged(nt.values(), nt.offsets())
    assert [part.tolist() for part in again] == [part.tolist() for part in nt.unbind()]
    by_lengths = nested.nested_tensor_from_jagged(nt.values(), lengths=cr.tensor([1, 2]))
    assert by_lengths[1].tolist() == nt[1].tolist()
    assert "nested_tensor([" in repr(nt)


def test_methods_and_operators_of_all_parts() -> None:
    nt = nested.nested_tensor([[1.0, -2.0], [3.0]])
    assert [part.tolist() for part in (1 - nt.abs() * nt)] == [[0, 5], [-8]]
    assert [part.tolist() for part in nt.sum(0)] == [-1, 3]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nt.nothing()
    with pytest.raises(cr.ShapeError, match="as many dimensions"):
        nested.nested_tensor([[1.0], [[2.0]]])
