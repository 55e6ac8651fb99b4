"""Values and derivatives over partitions: those of the whole data in one process."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule.distributed import Objective
from chainrule.errors import ArgumentError, AutogradError

LENGTHS = (5, 3, 5, 1, 5, 3, 5, 1, 5, 5)  # more than are added at once


def arrays(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(LENGTHS[seed], 3)), rng.normal(size=LENGTHS[seed])


PARTS = [functools.partial(arrays, seed) for seed in range(len(LENGTHS))]
X, Y = (np.concatenate(each) for each in zip(*(part() for part in PARTS), strict=True))


def predictions(w: Any, x: Any, y: Any) -> Any:
    return cr.tanh(x @ w["slope"]) * w["scale"] + w["offset"][0]


def misfit(predicted: Any, x: Any, y: Any) -> Any:
    return cr.cosh(predicted - y).sum()


def loss(w: Any, x: Any, y: Any) -> Any:
    return misfit(predictions(w, x, y), x, y)


def whole(w: Any) -> Any:
    return loss(w, X, Y)


W = {"slope": np.array([0.5, -1.0, 0.25]), "scale": np.float64(1.5), "offset": [0.3]}
V = {"slope": np.array([1.0, 0.5, -2.0]), "scale": np.float64(-1.0), "offset": [0.7]}


def assert_close(found: Any, wanted: Any) -> None:
    assert str(cr.tree.flatten(found)[1]) == str(cr.tree.flatten(wanted)[1])
    for a, b in zip(cr.tree.leaves(found), cr.tree.leaves(wanted), strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-12)


QUANTITIES: dict[str, tuple[Callable[[Objective], Any], Callable[[], Any]]] = {
    "value": (lambda o: o.value(W), lambda: cr.value_and_grad(whole)(W)[0]),
    "value_and_grad": (lambda o: o.value_and_grad(W), lambda: cr.value_and_grad(whole)(W)),
    "hvp": (lambda o: o.hvp(W, V), lambda: cr.hvp(whole, W, V)),
    "gauss_newton_vp": (
        lambda o: o.gauss_newton_vp(W, V),
        lambda: cr.ggnvp(lambda w: predictions(w, X, Y), W, V, lambda p: misfit(p, X, Y)),
    ),
    "hessian": (lambda o: o.hessian(W), lambda: cr.hessian(whole)(W)),
}


HESSIAN = ("hessian", True)


@pytest.mark.parametrize(
    ("quantity", "is_compiled"),
    # The rows are computed by vmap, which does not go through a compiled part of a function.
    [(name, flag) for name in QUANTITIES for flag in (False, True) if (name, flag) != HESSIAN],
)
def test_partitions_give_what_the_whole_gives(
    client: Any, quantity: str, is_compiled: bool
) -> None:
    model = cr.compile(predictions) if is_compiled else predictions
    of_partitions, of_whole = QUANTITIES[quantity]
    found = of_partitions(Objective(misfit, PARTS, client=client, model=model))
    assert_close(found, of_whole())


def test_hessians_of_a_compiled_loss(client: Any) -> None:
    objective = Objective(cr.compile(loss), PARTS, client=client)
    assert_close(objective.hessian(W), cr.hessian(whole)(W))


class Line(NamedTuple):
    slope: Any
    offset: Any


PARAMETERS = {
    "array": X[0],
    "tensor": cr.tensor(X[0]),
    "tuple": (X[0], 2.0),
    "named tuple": Line(cr.tensor(X[0]), 1.0),
    "number": 2.5,
}


def spread(w: Any, x: Any, y: Any) -> Any:
    parts = [leaf for leaf in cr.tree.leaves(w)]
    return sum([((x * part - y[:, None]) ** 2).sum() for part in parts])


@pytest.mark.parametrize("kind", PARAMETERS)
def test_results_have_the_structure_and_kinds_of_the_parameters(client: Any, kind: str) -> None:
    w = PARAMETERS[kind]
    objective = Objective(spread, PARTS, client=client)
    wanted = cr.value_and_grad(lambda w: spread(w, X, Y))(w)
    assert_close(objective.value_and_grad(w), wanted)
    assert_close(objective.value(w), wanted[0])
    assert_close(objective.hvp(w, w), cr.hvp(lambda w: spread(w, X, Y), (w,), (w,))[0])


def test_one_partition(client: Any) -> None:
    objective = Objective(loss, PARTS[:1], client=client)
    assert_close(objective.value_and_grad(W), cr.value_and_grad(loss)(W, *PARTS[0]()))


def test_parameters_that_are_copied_to_the_workers_first(client: Any) -> None:
    """Both sides of the size from which they are."""
    for size in (7000, 9000):
        w = np.linspace(0, 1, size)
        parts = [lambda i=i, size=size: np.full(size, float(i)) for i in range(12)]
        objective = Objective(lambda w, x: ((w - x) ** 2).sum(), parts, client=client)
        value, gradient = objective.value_and_grad(w)
        differences = w - np.arange(12.0)[:, None]
        assert value == pytest.approx((differences**2).sum())
        np.testing.assert_allclose(gradient, 2 * differences.sum(0), rtol=1e-12)


# --- means ----------------------------------------------------------------------------------------


def mean_square(w: Any, x: Any, y: Any) -> Any:
    return ((x @ w - y) ** 2).mean()


def test_means_are_weighted_by_the_numbers_of_examples(client: Any) -> None:
    empty = [lambda: (np.ones((0, 3)), np.ones(0))]
    objective = Objective(mean_square, [*PARTS, *empty], client=client, reduction="mean")
    w = np.array([1.0, -2.0, 3.0])
    assert_close(objective.value_and_grad(w), cr.value_and_grad(mean_square)(w, X, Y))
    assert_close(objective.value(w), cr.value_and_grad(mean_square)(w, X, Y)[0])
    with pytest.raises(ArgumentError, match="mean is over no examples: all 2 partitions are empty"):
        Objective(mean_square, empty * 2, client=client, reduction="mean").value(w)
    with pytest.raises(ArgumentError, match="reduction is 'sum' or 'mean', got 'max'"):
        Objective(mean_square, PARTS, client=client, reduction="max")


# --- data -----------------------------------------------------------------------------------------


def squares(w: Any, x: Any, y: Any) -> Any:
    return ((x @ w - y) ** 2).sum()


POINT = np.array([1.0, -2.0, 3.0])
WANTED = cr.value_and_grad(squares)(POINT, X, Y)


def in_files(folder: Path) -> list[Path]:
    for seed, part in enumerate(PARTS):
        x, y = part()
        np.savez(folder / f"{seed}.npz", x=x, y=y)
    return sorted(folder.glob("*.npz"))


def from_dask(name: str) -> Any:
    dask_array = pytest.importorskip("dask.array")
    x, y = dask_array.from_array(X, chunks=(LENGTHS, -1)), dask_array.from_array(Y, chunks=LENGTHS)
    return {"arrays": (x, y), "arrays by name": {"y": y, "x": x}}[name]


def delayed() -> Any:
    dask = pytest.importorskip("dask")
    return [dask.delayed(arrays)(seed) for seed in range(len(LENGTHS))]


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "callables": lambda client, folder: PARTS,
    "by name": lambda client, folder: [
        lambda s=s: dict(zip("xy", arrays(s), strict=True)) for s in range(10)
    ],
    "paths": lambda client, folder: in_files(folder),
    "names of files": lambda client, folder: map(str, in_files(folder)),
    "dask arrays": lambda client, folder: from_dask("arrays"),
    "dask arrays by name": lambda client, folder: from_dask("arrays by name"),
    "delayed": lambda client, folder: delayed(),
    "futures": lambda client, folder: client.map(arrays, range(10)),
}


@pytest.mark.parametrize("persist", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_sources(client: Any, tmp_path: Path, source: str, persist: bool) -> None:
    parts = SOURCES[source](client, tmp_path)
    objective = Objective(squares, parts, client=client, persist=persist)
    for _ in range(2):
        assert_close(objective.value_and_grad(POINT), WANTED)


def test_partitions_that_are_kept_are_loaded_once(client: Any, tmp_path: Path) -> None:
    parts = in_files(tmp_path)
    objective = Objective(squares, parts, client=client, persist=True)
    assert_close(objective.value_and_grad(POINT), WANTED)
    for path in parts:
        path.unlink()
    assert_close(objective.value_and_grad(POINT), WANTED)


def test_single_arrays_and_bags(client: Any, tmp_path: Path) -> None:
    bag = pytest.importorskip("dask.bag")
    np.save(tmp_path / "x.npy", X)
    objective = Objective(lambda w, x: (x @ w).sum(), [tmp_path / "x.npy"], client=client)
    assert objective.value(POINT) == pytest.approx((X @ POINT).sum())
    words = bag.from_sequence([{"x": 1.0}, {"x": 2.0}, {"x": 4.0}], npartitions=2)

    def of_records(w: Any, records: Any) -> Any:
        return sum([w * each["x"] for each in records]) / len(records)

    objective = Objective(of_records, words, client=client, reduction="mean")
    assert objective.value_and_grad(3.0) == pytest.approx((7.0, 7 / 3))


def test_columns_of_parquet_and_zarr(client: Any, tmp_path: Path) -> None:
    pandas, zarr = pytest.importorskip("pandas"), pytest.importorskip("zarr")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"x": Y, "y": Y + 1}).to_parquet(tmp_path / "a.parquet")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, values in {"x": Y, "y": Y + 1}.items():
        group.create_array(name, data=values)
    parts = [tmp_path / "a.parquet", tmp_path / "a.zarr"]
    objective = Objective(lambda w, x, y: (w * x * y).sum(), parts, client=client)
    assert objective.value(2.0) == pytest.approx(4 * (Y * (Y + 1)).sum())


# --- parts of larger computations -----------------------------------------------------------------


def test_the_value_is_a_recorded_term_of_a_larger_function(client: Any) -> None:
    objective = Objective(squares, PARTS, client=client)
    w = cr.tensor(POINT, requires_grad=True)

    def regularized(value: Callable[[Any], Any], w: Any) -> Any:
        return cr.log(value(w * 2)) + (w**2).sum()

    regularized(objective.value, w).backward()
    wanted = cr.grad(lambda w: regularized(lambda w: squares(w, X, Y), w))(POINT)
    np.testing.assert_allclose(w.grad, wanted, rtol=1e-12)
    assert_close(cr.value_and_grad(objective.value)(POINT), WANTED)
    with pytest.raises(AutogradError, match="once_differentiable"):
        cr.autograd_grad(cr.grad(objective.value)(w).sum(), w)


def test_derivatives_without_history_are_refused_where_one_is_expected(client: Any) -> None:
    objective = Objective(squares, PARTS, client=client)
    w = cr.tensor(POINT, requires_grad=True)
    with pytest.raises(AutogradError, match=r"hvp: the parameters require grad.*w\.detach\(\)"):
        objective.hvp(w, POINT)
    with cr.no_grad():
        value, gradient = objective.value_and_grad(w)
    assert not value.requires_grad
    assert not gradient.requires_grad
    np.testing.assert_allclose(gradient, WANTED[1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-ncg", "trust-exact"])
def test_problems_are_minimised(client: Any, method: str) -> None:
    minimize = pytest.importorskip("scipy") and cr.scipy.optimize.minimize
    objective = Objective(loss, PARTS, client=client)
    start = {"slope": np.zeros(3), "scale": 1.0, "offset": [0.0]}
    found = minimize(x0=start, **objective.problem(method))
    wanted = minimize(whole, start, method=method)
    assert found.success
    for a, b in zip(cr.tree.leaves(found.x), cr.tree.leaves(wanted.x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert found.fun == pytest.approx(wanted.fun)


def test_gauss_newton_needs_a_model(client: Any) -> None:
    with pytest.raises(ArgumentError, match=r"Objective\(loss, parts, model=model\)"):
        Objective(loss, PARTS, client=client).gauss_newton_vp(W, V)
