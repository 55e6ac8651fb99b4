"""`cr.tree`: containers and their leaves, and users' classes in every transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

A = np.array([0.5, -1.5])


@cr.tree.register
class Line:
    def __init__(self, slope: Any, offset: Any) -> None:
        self.slope, self.offset = slope, offset

    def __call__(self, x: Any) -> Any:
        return self.slope * x + self.offset


class Power:
    def __init__(self, factor: Any, exponent: int) -> None:
        self.factor, self.exponent = factor, exponent


cr.tree.register(
    Power, lambda p: ([p.factor], p.exponent), lambda exponent, parts: Power(*parts, exponent)
)


def parts(line: Any) -> tuple[Any, Any]:
    assert type(line) is Line
    return line.slope, line.offset


def total(line: Line) -> Any:
    return (line(cr.tensor([1.0, 2.0]).double()) ** 2).sum()


def test_users_classes_in_every_transform() -> None:
    line = Line(A, 2.0)
    slope, offset = parts(cr.grad(total)(line))
    wanted = A * np.array([1.0, 2.0]) + 2.0
    np.testing.assert_allclose(slope, 2 * wanted * [1.0, 2.0])
    assert offset == pytest.approx(2 * wanted.sum())
    np.testing.assert_allclose(parts(cr.value_and_grad(total)(line)[1])[0], slope)
    np.testing.assert_allclose(parts(cr.vjp(total, line)[1](1.0))[0], slope)
    tangent = cr.jvp(total, (line,), (Line(np.ones(2), 0.0),))[1]
    assert tangent == pytest.approx(slope.sum())
    rows = cr.hessian(total)(line)
    assert parts(parts(rows)[0])[0].shape == (2, 2)
    product = cr.hvp(total, (line,), (Line(np.ones(2), 0.0),))[0]
    np.testing.assert_allclose(parts(product)[0], [2.0, 8.0])
    found = cr.vmap(lambda line: Line(line.slope * 2, line.offset))(Line(A, A))
    np.testing.assert_allclose(parts(found)[0], 2 * A)
    for _ in range(2):
        np.testing.assert_allclose(parts(cr.compile(cr.grad(total))(line))[0], slope)


def test_the_rest_of_an_object_is_part_of_the_signature_of_a_program() -> None:
    compiled = cr.compile(cr.grad(lambda p: (p.factor**p.exponent).sum()))
    for exponent in (2, 3, 2):
        for factor in (A, A + 1):
            found = compiled(Power(factor, exponent))
            assert (type(found), found.exponent) == (Power, exponent)
            np.testing.assert_allclose(found.factor, exponent * factor ** (exponent - 1))
    assert len(compiled.signatures) == 2


def test_map_leaves_flatten_unflatten() -> None:
    tree = {"a": [1.0, (2.0, None)], "b": Line(3.0, A)}
    assert cr.tree.leaves(tree)[:4] == [1.0, 2.0, None, 3.0]
    numbers, structure = cr.tree.flatten(tree)
    assert structure.num_leaves == 5
    back = cr.tree.unflatten(structure, numbers)
    assert back["a"] == tree["a"]
    assert back["b"].offset is A
    assert repr(cr.tree.flatten({"a": [1, 2]})[1]) == "TreeDef({'a': [*, *]})"
    assert cr.tree.map(lambda x, y: x + y, {"a": [1, 2]}, {"a": [3, 4]}) == {"a": [4, 6]}
    assert cr.tree.map(lambda x: 0, 5) == 0
    with pytest.raises(cr.ArgumentError, match=r"same structure: at \['a'\]"):
        cr.tree.map(lambda x, y: x, {"a": [1, 2]}, {"a": [3]})
    with pytest.raises(cr.ArgumentError, match="has 5 leaves, got 1"):
        cr.tree.unflatten(structure, [1])
    with pytest.raises(cr.ArgumentError, match="both flatten= and unflatten="):
        cr.tree.register(Line, lambda line: ((), None))


def test_labelled_data_is_flattened() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(A, {"t": [1, 2]}, ["t"])
    numbers, structure = cr.tree.flatten({"x": x})
    assert numbers[0] is x.data
    found = cr.tree.unflatten(structure, [2 * A])["x"]
    xarray.testing.assert_identical(found, 2 * x)
    vector, unravel = cr.tree.ravel({"x": x, "y": 1.0})
    assert vector.tolist() == [0.5, -1.5, 1.0]
    xarray.testing.assert_identical(unravel(2 * vector)["x"], 2 * x)


def test_ravel_and_back() -> None:
    matrix = np.arange(4.0, dtype=np.float32).reshape(2, 2)
    tree = {"w": matrix, "b": [3.0, None], "c": cr.tensor(1.0)}
    vector, unravel = cr.tree.ravel(tree)
    assert isinstance(vector, cr.Tensor)
    assert vector.tolist() == [0, 1, 2, 3, 3, 1]
    del tree["c"]
    vector, unravel = cr.tree.ravel(tree)
    assert type(vector) is np.ndarray
    assert vector.dtype == np.float64
    found = unravel(vector * 2)
    assert found["w"].dtype == np.float32
    np.testing.assert_array_equal(found["w"], 2 * tree["w"])
    assert found["b"] == [6.0, None]
    assert type(found["b"][0]) is float
    found["w"][:] = 0
    assert vector[1] == 1.0
    inner = unravel(cr.tensor(vector))
    assert isinstance(inner["w"], cr.Tensor)
    assert cr.tree.ravel({"a": None})[0].shape == (0,)
    with pytest.raises(cr.ShapeError, match=r"vector of 5 elements, got the shape \[3\]"):
        unravel(np.ones(3))
    with pytest.raises(cr.DTypeError, match=r"got int int64 at \['n'\]: write 2.0 for 2"):
        cr.tree.ravel({"n": 2})


def test_ravel_for_a_solver() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def loss(p: Any) -> Any:
        return ((p["w"] - 2.0) ** 2).sum() + (p["b"] + 1.0) ** 2

    vector, unravel = cr.tree.ravel({"w": np.zeros((2, 2)), "b": 0.0})
    for made in (lambda f: f, cr.compile):
        both = made(cr.value_and_grad(lambda v: loss(unravel(v))))
        found = unravel(optimize.minimize(both, vector, jac=True).x)
        np.testing.assert_allclose(found["w"], np.full((2, 2), 2.0), atol=1e-6)
        assert found["b"] == pytest.approx(-1.0)


class Late:
    """A class that is registered after its objects were leaves."""

    def __init__(self, x: Any) -> None:
        self.x = x


def test_a_class_may_be_registered_after_its_objects_were_leaves() -> None:
    late = Late(np.ones(2))
    assert cr.tree.leaves(late) == [late]
    cr.tree.register(Late)
    assert cr.grad(lambda p: (p.x**2).sum())(late).x.tolist() == [2.0, 2.0]
