"""Kind in, kind out: results of transforms have the kind of what is differentiated by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr

A = np.array([0.5, -1.5])


def same(found: Any, wanted: Any) -> None:
    """Check kinds and values of two trees."""
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            same(found[key], wanted[key])
    elif isinstance(wanted, list | tuple):
        for pair in zip(found, wanted, strict=True):
            same(*pair)
    elif isinstance(wanted, cr.Tensor):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.detach().numpy(), wanted.numpy())
    elif hasattr(wanted, "dtype"):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted)
    else:
        assert found == pytest.approx(wanted)


def square(x: Any) -> Any:
    return x * x


KINDS: dict[str, Any] = {
    "array": A,
    "array without dimensions": np.array(1.5),
    "float32 array": A.astype(np.float32),
    "complex array": A * 1j,
    "float": 1.5,
    "complex": 1.5 + 1j,
    "scalar": np.float64(1.5),
    "float32 scalar": np.float32(1.5),
    "tensor": cr.tensor(A),
    "tree": {"a": A, "b": [1.5, cr.tensor(2.5), None], "c": (np.float32(0.5),)},
}


def double(tree: Any) -> Any:
    """Return the derivative of the sum of squares, computed on leaves of their own kind."""
    if isinstance(tree, dict):
        return {key: double(part) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(map(double, tree))
    if tree is None:
        return None
    conj = tree.conj() if isinstance(tree, cr.Tensor) else np.conj(tree)
    found = 2 * conj if isinstance(tree, complex) or getattr(tree, "dtype", None) == "c16" else tree
    found = found if found is not tree else tree * 2
    kind = np.asarray if isinstance(tree, np.ndarray) else type(tree)
    return found if isinstance(tree, cr.Tensor) else kind(found)


def total(tree: Any) -> Any:
    parts = list(tree.values()) if isinstance(tree, dict) else tree
    if isinstance(parts, list | tuple):
        return sum(total(part) for part in parts if part is not None)
    found = (parts * parts).sum()
    return found.real if found.is_complex() else found


@pytest.mark.parametrize("x", KINDS.values(), ids=KINDS)
def test_a_gradient_has_the_kind_of_its_argument(x: Any) -> None:
    wanted = double(x)
    same(cr.grad(total)(x), wanted)
    same(cr.value_and_grad(total)(x)[1], wanted)
    _, vjp_fn = cr.vjp(total, x)
    value, _ = cr.vjp(total, x)
    same(vjp_fn(value * 0 + 1), wanted)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "tree"])
def test_values_are_tensors_only_for_tensors(name: str) -> None:
    x = KINDS[name]
    values = [
        cr.vjp(square, x)[0],
        cr.linearize(square, x)[0],
        cr.linearize(square, x)[1](x) / 2,
        cr.jvp(square, x, x)[0],
        cr.jvp(square, x, x)[1] / 2,
    ]
    wanted = np.float64(2.25) if name == "array without dimensions" else x * x
    for value in values:
        same(value, wanted)


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ((A, 2.0), np.float64),
        ((2.0, 3.0), float),
        ((2.0, 3j), complex),
        ((np.float64(2.0), 3.0), np.float64),
        ((cr.tensor(2.0), 3.0), cr.Tensor),
        ((cr.tensor(2.0), A), cr.Tensor),
    ],
)
def test_the_value_has_the_kind_of_all(args: Any, wanted: type) -> None:
    found = cr.vjp(lambda a, b: (a * b).sum(), *args)[0]
    assert type(found) is wanted


def test_jacobians_and_hessians_of_arrays_are_arrays() -> None:
    same(cr.jacobian(square)(A), np.diag(2 * A))
    same(cr.func.jacfwd(square)(A), np.diag(2 * A))
    same(cr.func.jacrev(square)(A), np.diag(2 * A))
    same(cr.hessian(lambda x: (x**3).sum())(A), np.diag(6 * A))
    same(cr.jacobian(lambda s: s * cr.tensor(A))(2.0), A)
    same(cr.hvp(lambda x: (x**3).sum(), A, A), 6 * A * A)
    same(cr.hvp(lambda x, y: x * x * y, (2.0, 3.0), (1.0, 0.0)), (6.0, 4.0))
    same(cr.jacobian(lambda x: {"y": x * 2, "label": "y"})(1.0), {"y": 2.0, "label": None})


def test_a_vmap_of_arrays_gives_arrays() -> None:
    x = np.arange(6.0).reshape(2, 3)
    same(cr.vmap(lambda row: (row.sum(), row * 2))(x), (x.sum(1), 2 * x))
    same(cr.vmap(lambda row, k: row * k, (0, None))(x, cr.tensor(2.0).double()), 2 * x)
    same(cr.vmap(cr.grad(lambda row: (row * row).sum()))(x), 2 * x)
    same(cr.vmap(cr.grad(lambda k, row: (k * row).sum()), (None, 0))(2.0, x), x.sum(1))


def test_auxiliary_tensors_have_the_kind_of_the_value() -> None:
    (value, aux), _ = cr.value_and_grad(lambda x: ((x * x).sum(), {"x": x, "n": 1}), has_aux=True)(
        A
    )
    same((value, aux), ((A * A).sum(), {"x": A, "n": 1}))


def test_what_has_a_history_stays_a_tensor() -> None:
    w = cr.tensor(2.0, requires_grad=True)
    value, slope = cr.value_and_grad(lambda x: (w * x * x).sum())(A)
    (value + slope.sum()).backward()
    assert w.grad.item() == pytest.approx((A * A + 2 * A).sum())

    def inner(k: Any) -> Any:
        slope = cr.grad(lambda x: (k * x * x).sum())(A)
        assert isinstance(slope, cr.Tensor)
        return slope.sum()

    assert cr.grad(inner)(1.0) == pytest.approx(2 * A.sum())
    assert cr.jvp(inner, 1.0, 1.0)[1] == pytest.approx(2 * A.sum())
    same(cr.vmap(inner)(np.ones(3)), np.full(3, 2 * A.sum()))


def test_what_does_not_depend_on_an_outer_transform_has_its_own_kind() -> None:
    def outer(k: Any) -> Any:
        same(cr.grad(square)(3.0), 6.0)
        same(cr.jacobian(square)(A), np.diag(2 * A))
        return k * cr.grad(square)(3.0)

    assert cr.grad(outer)(1.0) == 6.0


def test_without_recording_nothing_has_a_history() -> None:
    w = cr.tensor(2.0, requires_grad=True)
    with cr.no_grad():
        same(cr.grad(lambda x: (w.double() * x).sum())(A), np.full(2, 2.0))


def test_python_numbers_compute_in_double_precision() -> None:
    assert cr.grad(np.tanh)(1.0) == pytest.approx(1 / np.cosh(1.0) ** 2, rel=1e-15)
    assert cr.grad(cr.tanh)(1.0) == cr.grad(cr.tanh)(np.float64(1.0))
    seen = []
    cr.grad(lambda x: seen.append(x.dtype) or x)(1.0)
    cr.grad(lambda x: seen.append(x.dtype) or x.real)(1j)
    assert seen == [cr.float64, cr.complex128]


def test_arrays_of_a_graph_that_is_kept_are_its_own() -> None:
    x = A.copy()
    value, vjp_fn = cr.vjp(cr.exp, x)
    tangent_of = cr.linearize(cr.exp, x)[1]
    x[:] = 0
    value[:] = 0
    same(vjp_fn(np.ones(2)), np.exp(A))
    same(tangent_of(np.ones(2)), np.exp(A))


def test_gradients_are_writable_memory_of_their_own() -> None:
    x = A.copy()
    first, second = cr.grad(lambda x, y: (x + y).sum(), (0, 1))(x, x)
    first += 1
    x += 1
    same(second, np.ones(2))


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match=r"grad: .* a float at p\['n'\], got str"):
        cr.grad(lambda p: p["x"])({"x": 1.0, "n": "name"})


# --- compiled -------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": cr.grad(total),
    "value_and_grad": cr.value_and_grad(total),
    "jacobian": cr.jacobian(square),
    "hessian": cr.hessian(total),
    "jvp": lambda x: cr.jvp(square, x, x),
    "vjp": lambda x: cr.vjp(square, x)[1](x),
    "hvp": lambda x: cr.hvp(total, x, x),
    "vmap": cr.vmap(square),
}


@pytest.mark.parametrize("x", [A, A.astype(np.float32), cr.tensor(A)], ids=["f8", "f4", "tensor"])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_compiled_transforms_give_the_same_kinds(transform: Any, x: Any) -> None:
    compiled = cr.compile(transform)
    for _ in range(2):
        same(compiled(x), transform(x))


def test_compiled_gradients_by_numbers() -> None:
    compiled = cr.compile(cr.grad(lambda s, x: (s * s * x).sum()))
    same(compiled(2.0, A), 4 * A.sum().item())
    same(compiled(np.float64(2.0), A), 4 * A.sum())


# --- labels ---------------------------------------------------------------------------------------


def test_xarray_arrays_keep_their_labels() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(A, {"t": [10, 20], "k": ("t", ["a", "b"])}, ["t"], "x", {"unit": "m"})

    def f(d: Any) -> Any:
        return (d * d).sum("t") + d.sel(t=20)

    value, slope = cr.value_and_grad(f)(x)
    xarray.testing.assert_identical(slope, x.copy(data=2 * A + [0, 1]))
    xarray.testing.assert_allclose(value, f(x))
    assert type(value.data) is np.ndarray
    blocks = cr.hessian(f)(x)
    same(blocks, 2 * np.eye(2))
    value, slope = cr.jvp(lambda d: d * d, (x,), (x,))
    xarray.testing.assert_identical(slope, 2 * x * x)


def test_xarray_datasets_keep_their_labels() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.Dataset({"u": ("t", A), "v": ((), 3.0)}, {"t": [1, 2]})
    slope = cr.grad(lambda d: (d.u * d.v).sum())(x)
    xarray.testing.assert_identical(slope, x.copy(data={"u": np.full(2, 3.0), "v": A.sum()}))
    xarray.testing.assert_identical(cr.jacobian(lambda d: (d.u * d.v).sum())(x), slope)
    blocks = cr.hessian(lambda d: (d.u * d.v).sum())(x)
    for block in (blocks["u"]["v"], blocks["v"]["u"]):
        assert np.asarray(block).tolist() == [1, 1]
    assert cr.jacobian(lambda d: 2 * d)(x)["u"]["u"].tolist() == [[2, 0], [0, 2]]


def test_a_named_tuple_is_one_argument() -> None:
    class Point(NamedTuple):
        a: float
        b: float

    x = Point(2.0, 3.0)
    assert cr.jvp(lambda p: p.a * p.b, x, Point(1.0, 0.0)) == (6.0, 3.0)
    assert cr.hvp(lambda p: p.a * p.b, x, Point(1.0, 0.0)) == Point(0.0, 1.0)
    assert cr.ggnvp(lambda p: p.a * p.b, x, Point(1.0, 0.0)) == Point(9.0, 6.0)


def test_pandas_objects_keep_their_labels() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(A, ["a", "b"], name="s")
    frame = pandas.DataFrame({"x": A, "y": A + 1}, ["a", "b"])
    pandas.testing.assert_series_equal(cr.grad(total)(series), 2 * series)
    pandas.testing.assert_frame_equal(cr.grad(total)(frame), 2 * frame)
    value, slopes = cr.value_and_grad(lambda p: total(p["s"]) * p["k"])({"s": series, "k": 2.0})
    assert type(value) is np.float64
    pandas.testing.assert_series_equal(slopes["s"], 4 * series)
    assert slopes["k"] == pytest.approx((A * A).sum())
    same(cr.jacobian(square)(series), np.diag(2 * A))
    pandas.testing.assert_series_equal(cr.hvp(total, series, series), 2 * series)


def test_compiled_gradients_keep_the_labels_of_pandas_objects() -> None:
    pandas = pytest.importorskip("pandas")
    compiled = cr.compile(cr.value_and_grad(lambda p: total(p["s"]) * p["k"]))
    for labels in (["a", "b"], ["c", "d"]):
        series = pandas.Series(A, labels, name="s")
        for _ in range(2):
            value, slopes = compiled({"s": series, "k": 2.0})
            same(value, np.float64(2 * (A * A).sum()))
            pandas.testing.assert_series_equal(slopes["s"], 4 * series)
    frame = pandas.DataFrame({"x": A, "y": A + 1}, ["a", "b"])
    pandas.testing.assert_frame_equal(cr.compile(cr.grad(total))(frame), 2 * frame)


def test_compiled_gradients_by_arrays_without_dimensions_are_arrays() -> None:
    same(cr.compile(cr.grad(total))(np.array(2.0)), cr.grad(total)(np.array(2.0)))


points = np.array([1.0, 2.0, 4.0])

# Functions of a float and arrays of plain NumPy, whose methods differ from those of tensors.
OF_A_FLOAT: dict[str, Callable[[Any], Any]] = {
    "std of a product": lambda t: (points * t).std(),
    "var of a product from the left": lambda t: (t * points).var(),
    "std of a ufunc": lambda t: np.exp(points * t).std(),
    "std of a ufunc's outer": lambda t: np.multiply.outer(points, t).std(),
    "std of a stack of floats": lambda t: np.stack([t, t * t, 1.0 - t]).std(),
    "std of where": lambda t: np.where(points > 1.5, t, points).std(),
    "std of linspace": lambda t: np.linspace(0.0, t, 4).std(),
    "parts of a tuple": lambda t: sum([a.std() for a in np.meshgrid(points, t)]),
    "repeat": lambda t: (points - t).repeat(2)[1],
    "max along an axis": lambda t: (points / t).max(0),
    "dot of matrices": lambda t: (points[:, None] * t).dot(points[None]).std(),
    "mean of truth values": lambda t: (points > t).mean() * t,
    "mean of truth values from the left": lambda t: (t / 2 <= points / t).mean() * t,
    "elements of a mask": lambda t: points[t < points].std() * t,
    "comparison of a number": lambda t: ((t == points).sum() + (t < 2) * points).std() * t,
}


@pytest.mark.parametrize("name", OF_A_FLOAT)
def test_a_float_with_numpys_arrays_gives_what_behaves_as_they_do(name: str) -> None:
    f, t, h = OF_A_FLOAT[name], 1.7, 1e-6
    value, slope = cr.value_and_grad(f)(t)
    assert value == pytest.approx(f(t), rel=1e-14)
    assert slope == pytest.approx((f(t + h) - f(t - h)) / (2 * h), rel=1e-7, abs=1e-9)
    assert cr.jvp(f, (t,), (1.0,)) == pytest.approx((value, slope), rel=1e-12)
    assert cr.compile(cr.value_and_grad(f))(t) == pytest.approx((value, slope), rel=1e-12)


def test_a_float_with_tensors_gives_tensors() -> None:
    weights = cr.tensor(points)

    def spread(t: Any) -> Any:
        assert type(np.ones(3) * weights * t) is cr.Tensor
        return (weights * t).std()

    assert cr.grad(spread)(2.0) == pytest.approx(float(weights.std()))
    # Beside a tensor as another argument, the function is one of tensors.
    of_both = cr.value_and_grad(lambda t, x: (points * t).std() + x.sum(), argnums=(0, 1))
    assert float(of_both(2.0, weights)[0]) == pytest.approx(
        float((weights * 2).std()) + points.sum()
    )


def test_a_float_keeps_arrays_ones_of_numpy_in_nested_transforms_only() -> None:
    outer = cr.grad(lambda t: cr.grad(lambda s: (points * s * t).std())(t) * t)
    assert outer(2.0) == pytest.approx(2 * points.std() * 2.0)  # of points.std() t^2
    assert type(np.ones(3) * cr.tensor(1.0, requires_grad=True)) is cr.Tensor
