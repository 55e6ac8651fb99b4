"""Tensors on a device: transfers, errors, files, random numbers and what `cr.cuda` has.

They run on the stand-in for CuPy; `pytest --backend cuda` runs the other tests on it.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from cupy_stand_in import installed, transfers
from cupy_stand_in.session import on_device


@pytest.fixture(autouse=True)
def _stand_in() -> Iterator[None]:
    with installed():
        yield


def cuda(*values: float, **settings: Any) -> cr.Tensor:
    return cr.tensor(values, device="cuda", **settings)


# --- transfers ------------------------------------------------------------------------------------


def test_tensors_go_to_the_device_and_back() -> None:
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    there = x.to("cuda")
    assert there.device == cr.device("cuda:0") == there.cuda().device
    assert there.cuda() is there
    (there * 3).sum().cpu().backward()
    assert x.grad is not None
    assert x.grad.device == cr.device("cpu")
    assert x.grad.tolist() == [3.0, 3.0]
    assert x.to("cuda", non_blocking=True).pin_memory().device.type == "cuda"
    assert there.to("cuda:1").device == "cuda:1"


def test_gradients_stay_on_the_device_and_second_ones_too() -> None:
    x = cuda(1.0, 2.0, requires_grad=True)
    (first,) = cr.autograd_grad((x**3).sum(), [x], create_graph=True)
    (second,) = cr.autograd_grad(first.sum(), [x])
    assert second.device == x.device
    assert second.tolist() == [6.0, 12.0]


def test_a_training_step_copies_nothing_to_the_host() -> None:
    with cr.device("cuda"):
        model = cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.GELU(), cr.nn.Linear(8, 1))
        optimizer = cr.optim.Adam(model.parameters())
        x, y = cr.randn(16, 4), cr.randn(16, 1)
        before = transfers.to_host
        for _ in range(3):
            optimizer.zero_grad()
            loss = cr.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        assert transfers.to_host == before
        assert np.isfinite(loss.item())
        assert transfers.to_host == before + 1


INDICES, STARTS = [[1, 1, 4], [0, 4, 2]], [0, 1, 1]
NETWORK_FUNCTIONS = {
    "embedding, by frequency": lambda F, w, i, _: F.embedding(i, w, scale_grad_by_freq=True),
    "embedding, shortened": lambda F, w, i, _: F.embedding(i, w.clone(), max_norm=0.5),
    "embedding, with padding": lambda F, w, i, _: F.embedding(i, w, padding_idx=4),
    "mean of bags": lambda F, w, i, starts: F.embedding_bag(i.ravel(), w, starts),
    "maximum of bags": lambda F, w, i, starts: F.embedding_bag(i.ravel(), w, starts, mode="max"),
    "bags with padding": lambda F, w, i, _: F.embedding_bag(i, w, padding_idx=4),
    "weighted bags with padding": lambda F, w, i, _: F.embedding_bag(
        i, w, mode="sum", padding_idx=4, per_sample_weights=w[:3, :2].T
    ),
    "classes to ignore": lambda F, w, i, _: F.cross_entropy(w[:3], i[0], ignore_index=4),
    "no class that counts": lambda F, w, i, _: F.cross_entropy(w[:1], i[0, :1], ignore_index=1),
    "samples": lambda F, w, i, _: F.grid_sample(w[None, None], w[None, :, :4].reshape(1, 5, 2, 2)),
    "reflected samples": lambda F, w, i, _: F.grid_sample(
        w[None, None], 3 * w[None, :, :4].reshape(1, 5, 2, 2), "bicubic", "reflection"
    ),
    "affine grid": lambda F, w, i, _: F.affine_grid(w[None, :2, :3], (1, 1, 4, 3)),
    "variance as a number": lambda F, w, i, _: F.gaussian_nll_loss(w, w * 2, 0.5),
}


@pytest.mark.parametrize("name", NETWORK_FUNCTIONS)
def test_functions_of_networks_are_those_of_the_cpu(name: str) -> None:
    found = {}
    for device in ("cpu", "cuda"):
        w = cr.linspace(-1, 2, 25, dtype=cr.float64).reshape(5, 5).sin().to(device)
        w.requires_grad_()
        indices, starts = (cr.tensor(numbers, device=device) for numbers in (INDICES, STARTS))
        y = NETWORK_FUNCTIONS[name](cr.nn.functional, w, indices, starts)
        (y**2).sum().backward()
        assert w.grad is not None
        assert y.device.type == w.grad.device.type == device
        found[device] = y.tolist(), w.grad.tolist()
    for expected, got in zip(*found.values(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


STATISTICS = {
    "median": lambda x: [cr.median(x), *cr.median(x, 1), cr.nanmedian(x)],
    "kthvalue, mode": lambda x: [*cr.kthvalue(x, 2, dim=0), *cr.mode(x.round(), dim=1)],
    "quantile": lambda x: [cr.quantile(x, 0.3), cr.nanquantile(x, x[0, :2].detach() ** 2, dim=1)],
    "unique": lambda x: [*cr.unique(x.round(), return_counts=True), cr.unique_consecutive(x)],
    "histograms": lambda x: [cr.histc(x, 4), *cr.histogram(x, 3, weight=x.detach() ** 2)],
    "counts": lambda x: [cr.bincount((2 * x).long().ravel().abs(), x.ravel())],
    "positions": lambda x: [cr.searchsorted(x.detach().ravel().sort().values, x)],
    "all of unique": lambda x: [*cr.unique_all(x.round())],
    "topk of many": lambda x: [*cr.topk(x.ravel().repeat(50) + cr.arange(1250.0).to(x), 9)],
    "repetitions": lambda x: [cr.repeat_interleave(x, cr.arange(5, device=x.device), 0)],
    "means without nan": lambda x: [cr.nanmean(cr.where(x > 0, x, cr.nan), 1)],
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_that_choose_by_value_are_those_of_the_cpu(name: str) -> None:
    found = {}
    for device in ("cpu", "cuda"):
        x = cr.linspace(-1, 5, 25, dtype=cr.float64).reshape(5, 5).sin().to(device)
        x.requires_grad_()
        results = STATISTICS[name](x)
        tracked = [y.sum() for y in results if y.requires_grad]
        grads = cr.autograd_grad(tracked, [x]) if tracked else []
        assert {y.device.type for y in (*results, *grads)} == {device}
        found[device] = [y.tolist() for y in (*results, *grads)]
    for expected, got in zip(*found.values(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_hooks_keep_the_device() -> None:
    x = cuda(1.0, requires_grad=True)
    x.register_hook(lambda g: g.cpu())
    with pytest.raises(cr.DeviceError, match="changed the device of value: got cpu, expected cuda"):
        x.sum().backward()
    assert x.grad is None


def test_numbers_are_gradients_and_elements() -> None:
    x = cuda(1.0, requires_grad=True)
    (x[0] * 3).backward(2.0)
    assert x.grad is not None
    assert (x.grad.device.type, x.grad.tolist()) == ("cuda", [6.0])
    assert cr.tensor([x.detach()[0], 2.0]).tolist() == [1.0, 2.0]


def test_numbers_are_no_copies_from_the_host() -> None:
    x = cuda(1.0, 2.0)
    before = transfers.to_device
    assert ((2 * x + 1) / 3 - 0.5).clamp(min=0.0).where(x > 1.5, 0.25).shape == (2,)
    assert transfers.to_device == before


# --- errors ---------------------------------------------------------------------------------------


def test_numpy_is_refused_with_the_mend() -> None:
    with pytest.raises(cr.ArgumentTypeError, match=r"Use Tensor\.cpu\(\)") as caught:
        cuda(1.0).numpy()
    assert "cuda:0" in str(caught.value)
    assert cuda(1.0).numpy(force=True).tolist() == [1.0]
    with pytest.raises(cr.ArgumentTypeError, match=r"Tensor\.cpu\(\)"):
        np.asarray(cuda(1.0))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, y: x + y,
        lambda x, y: x @ y,
        lambda x, y: cr.where(x > 0, x, y),
        lambda x, y: cr.cat([x, y]),
        lambda x, y: cr.nn.functional.mse_loss(x, y),
        lambda x, y: x.index_put((cr.tensor([0]),), y[:1]),
        lambda x, y: x.__setitem__(slice(None), y),
        lambda x, y: cr.linalg.solve(x.diag(), y),
        lambda x, y: cr.allclose(x, y),
        lambda x, y: x.clone().requires_grad_().mul(1).backward(y),
        lambda x, y: cr.autograd_grad((z := x.clone().requires_grad_()) * 1, [z], grad_outputs=[y]),
        lambda x, y: cr.vjp(lambda z: z * 1, x)[1](y),
        lambda x, y: cr.jvp(lambda z: z * 1, (x,), (y,)),
    ],
)
def test_tensors_of_two_devices_are_refused(mix: Any) -> None:
    on_host, there = cr.tensor([1.0, 2.0]), cuda(1.0, 2.0)
    for pair in ((on_host, there), (there, on_host)):
        with pytest.raises(cr.DeviceError, match=r"cpu and cuda:0.*\.to\(device\)"):
            mix(*pair)


def test_functions_of_scipy_that_make_arrays_say_where() -> None:
    x = cr.ones(6, 6, device="cuda")
    for call in (
        lambda: cr.scipy.ndimage.gaussian_filter(x, 1.0),
        lambda: cr.scipy.interpolate.CubicSpline(x[0].cumsum(0), x[0]),
    ):
        with pytest.raises(cr.DeviceError, match=r"chainrule.scipy make arrays on the CPU.*\.cpu"):
            call()
    assert cr.scipy.stats.norm.logpdf(x).device == "cuda"


def test_functions_that_cupy_lacks_are_refused_with_the_mend() -> None:
    x = cuda(0.5)
    for call in (
        lambda: cr.special.erfi(x),
        lambda: cr.special.gammainc(x.requires_grad_(), x).backward(),
    ):
        with pytest.raises(cr.DeviceError, match=r"\.cpu\(\)"):
            call()


def test_compiled_functions_refuse_the_device() -> None:
    function = cr.compile(lambda x: x * 2)
    there = cuda(1.0)
    for call in (
        lambda: function(there),
        lambda: cr.compile(lambda x: x * there)(cr.ones(1)),
        lambda: cr.compile(lambda x: x * cr.ones(1, device="cuda"))(cr.ones(1)),
    ):
        with pytest.raises(cr.CompileError, match=r"on cuda:0: call the function itself"):
            call()
    assert function(cr.ones(1)).tolist() == [2.0]
    cr.set_default_device("cuda")
    try:
        with pytest.raises(cr.CompileError, match=r"default device is cuda:0.*set_default_device"):
            function(cr.ones(1, device="cpu"))
    finally:
        cr.set_default_device("cpu")
    assert function(cr.ones(1)).tolist() == [2.0]


def test_expanded_memory_is_not_written_to() -> None:
    with pytest.raises(cr.AutogradError, match="expanded tensor"):
        cuda(1.0).expand(3).mul_(2)


# --- differences of CuPy that must not be seen ----------------------------------------------------


def test_the_last_of_values_written_to_one_place_counts() -> None:
    x = cr.zeros(3, device="cuda", requires_grad=True)
    values = cuda(1.0, 2.0, 3.0, requires_grad=True)
    y = x.clone()
    y[cr.tensor([1, 1, 0])] = values
    assert y.tolist() == [3.0, 2.0, 0.0]
    y.sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "float16"])
def test_sums_and_extrema_at_repeated_indices(dtype: str) -> None:
    base = np.array([1, 2, 3], dtype)
    index, value = [0, 0, 2], np.array([4, 5, 2], dtype)
    x = cr.from_numpy(base).cuda()
    key = (cr.tensor(index, device="cuda"),)
    there = cr.from_numpy(value).cuda()
    assert x.index_put(key, there, accumulate=True).tolist() == [10, 2, 5]
    for reduce, wanted in (("amax", [5, 2, 3]), ("amin", [1, 2, 2])):
        got = x.scatter_reduce(0, key[0], there, reduce, include_self=True)
        assert got.tolist() == wanted
    if base.dtype.kind == "i":
        smallest = cr.tensor([-5, -7, -1], dtype=base.dtype, device="cuda")
        assert x.scatter_reduce(0, key[0], smallest, "amin").tolist() == [-7, 2, -1]


@pytest.mark.parametrize(
    "key",
    [
        [0, 3],
        [-4],
        np.array([5]),
        (slice(None), [0, 2]),
        (..., [-3]),
        (None, [3]),
        ([True, False, True], [0, 2]),
        ([0], [0], [0]),
    ],
)
def test_indices_of_the_host_out_of_range_raise(key: Any) -> None:
    """CuPy wraps them around."""
    x = cr.ones(3, 2, device="cuda")
    message = "out of bounds for dimension|too many indices"
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=message):
        x[key] = 5.0
    if isinstance(key, list):
        with pytest.raises(IndexError, match=message):
            x.index_put_((cr.tensor(key),), x[0])
        with pytest.raises(IndexError, match=message):
            x.index_select(0, cr.tensor(key))
    assert x.tolist() == [[1.0, 1.0]] * 3
    with pytest.raises(IndexError, match="0-dim tensor: too many indices"):
        x[0, 0][..., [0]]


def test_indices_of_the_host_in_range() -> None:
    x = cr.arange(6.0).reshape(3, 2)
    for key in ([-3, 2], (..., [-2]), (None, [2], 1), (np.array([True, False, True]), [0, 1])):
        assert x.cuda()[key].tolist() == x[key].tolist()
    assert x.cuda()[cr.tensor([], dtype=cr.int64)].shape == (0, 2)


def test_indices_out_of_range_raise_where_the_function_checks_them() -> None:
    with pytest.raises(cr.OutOfBoundsError):
        cr.nn.functional.embedding(cr.tensor([5], device="cuda"), cr.ones(3, 2, device="cuda"))


def test_a_matrix_that_is_not_positive_definite_raises() -> None:
    with pytest.raises(cr.LinAlgError):
        cr.linalg.cholesky(-cr.eye(2, device="cuda"))


MAPPED = {
    "numbers": lambda x: cr.vmap(lambda a: (2 * a + 1.5).pow(2) / 3 - (a > 0) * 1)(x),
    "masks": lambda x: cr.vmap(lambda a: cr.where(a > 1, a, 0.0).clamp(max=1.5))(x),
    "shared numbers": lambda x: cr.vmap(lambda a, b: a * b, in_dims=(0, None))(x, 2.0),
    "gradients": lambda x: cr.vmap(cr.grad(lambda a: (a * (a > 0)).exp().sum() * 2))(x),
    "made inside": lambda x: cr.vmap(lambda a: cr.nn.functional.relu(a) + cr.zeros_like(a))(x),
    "densities": lambda x: cr.vmap(
        cr.grad(lambda a: cr.distributions.Normal(0.5, a.abs() + 1).log_prob(a).sum())
    )(x),
    "second derivatives": lambda x: cr.vmap(cr.hessian(lambda a: (a**3 * 2).sum()))(x),
    "indices": lambda x: cr.vmap(lambda a: a[[1, 0]] * a[-1])(x),
    "shared masks": lambda x: cr.vmap(lambda a: a[x[0] < 0])(x),
    "quantiles": lambda x: cr.vmap(lambda a: cr.quantile(a, 0.3))(x),
    "writes": lambda x: cr.vmap(_overwritten)(x),
    "gradients of writes": lambda x: cr.vmap(cr.grad(lambda a: (_overwritten(a) ** 2).sum()))(x),
    "writes to views": lambda x: cr.vmap(_written_through_a_view)(x),
}


def _overwritten(a: cr.Tensor) -> cr.Tensor:
    y = a.clone()
    y[a.argmax()] = 7.0
    y[0] += a.sum()
    return y


def _written_through_a_view(a: cr.Tensor) -> cr.Tensor:
    """Reshaping is a view of what is contiguous, else a copy, of which a write changes nothing."""
    zeros = cr.zeros(3, 2, dtype=a.dtype, device=a.device).add_(a.sum())
    rows = a[:, None] + zeros[:2]
    found = []
    for y in (zeros, rows[:, [1, 0]], rows + 0.0):
        y.reshape(-1)[1:3] = a.sum()
        found.append(y.reshape(-1))
    return cr.cat(found)


def test_draws_in_mapped_functions_are_those_of_the_cpu() -> None:
    def draws(device: str) -> list[Any]:
        cr.manual_seed(0)
        drop = cr.vmap(cr.nn.functional.dropout, randomness="different")
        noisy = cr.vmap(lambda a: a + cr.randn(2, device=device), randomness="different")
        return [f(cr.ones(3, 2, device=device)).tolist() for f in (drop, noisy)]

    assert draws("cuda") == draws("cpu")


def test_an_index_out_of_range_in_a_mapped_function_is_that_of_an_example() -> None:
    for key in (5, [5]):
        with pytest.raises(cr.OutOfBoundsError, match="5 is out of bounds for dimension 0"):
            cr.vmap(lambda a, key=key: a[key])(cr.ones(3, 2, device="cuda"))


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_functions_are_those_of_the_cpu(name: str) -> None:
    x = cr.linspace(-2, 2, 6, dtype=cr.float64).reshape(3, 2)
    there = MAPPED[name](x.cuda())
    assert there.device == "cuda"
    np.testing.assert_allclose(there.tolist(), MAPPED[name](x).tolist(), rtol=1e-12)


def test_a_mapped_function_of_two_devices_is_refused() -> None:
    with pytest.raises(cr.DeviceError, match="cpu and cuda:0"):
        cr.vmap(lambda a: a * cr.ones(2))(cr.ones(3, 2, device="cuda"))


def test_divergences_of_distributions_on_the_device() -> None:
    """Constants that the library makes are where the parameters are."""
    d = cr.distributions
    one = cuda(1.0)
    for p, q in (
        (d.Exponential(one), d.Gumbel(one, one)),
        (d.Pareto(one, one * 3), d.Exponential(one)),
        (d.Normal(one, one), d.Laplace(one, one)),
        (d.Beta(one, one), d.Uniform(one, one * 2)),
    ):
        assert d.kl_divergence(p, q).device == "cuda"


# --- making, printing, copying, files -------------------------------------------------------------


def test_singular_matrices_are_found_where_they_are_asked_for() -> None:
    """CuPy inverts them in silence."""
    good = cr.tensor([[2.0, 1.0], [1.0, 2.0]], device="cuda")
    bad = cr.tensor([[1.0, 2.0], [2.0, 4.0]], device="cuda")
    both = cr.stack([good, bad])
    assert cr.linalg.inv_ex(both).info.tolist() == [0, 2]
    assert cr.linalg.solve_ex(both, cr.ones(2, 2, device="cuda")).info.tolist() == [0, 2]
    assert cr.linalg.cholesky_ex(both).info.tolist() == [0, 2]
    assert cr.linalg.cond(both, 1).isinf().tolist() == [False, True]
    for refused in (
        lambda: cr.linalg.inv_ex(both, check_errors=True),
        lambda: cr.linalg.inv(both),
        lambda: cr.linalg.solve(both, cr.ones(2, 2, device="cuda")),
        lambda: cr.linalg.cholesky(both),
        lambda: cr.linalg.svd(bad * cr.nan),
    ):
        with pytest.raises(cr.errors.LinAlgError, match=r"linalg\.\w+: (\(Batch element 1\))?"):
            refused()


@pytest.mark.parametrize("dtype", [cr.float64, cr.float32, cr.float16])
def test_remainders_are_those_of_the_cpu(dtype: Any) -> None:
    """CuPy's are x - floor(x / y) y: 10 for 1 // 0.1, and nan for 1 % inf."""
    x = cr.tensor([1.0, -1.0, 7.5, -7.5, 0.0, -0.0, 1e4, cr.inf, cr.nan], dtype=dtype)
    for number in (0.1, -0.1, 2.0, cr.inf, -cr.inf, 0.0, -0.0, cr.nan):
        y = cr.tensor(number, dtype=dtype)
        for function in (cr.remainder, cr.floor_divide, cr.fmod):
            with np.errstate(all="ignore"):
                expected = function(x, y).numpy()
            found = function(x.cuda(), y.cuda()).numpy(force=True)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_factors_solve_on_the_device() -> None:
    a = cr.tensor([[0.0, 1.0], [2.0, 1.0]], device="cuda")
    b = cr.tensor([[1.0], [3.0]], device="cuda")
    factors, pivots = cr.linalg.lu_factor(a)
    for adjoint, matrix in ((False, a), (True, a.mT)):
        x = cr.linalg.lu_solve(factors, pivots, b.expand(3, 2, 1), adjoint=adjoint)
        assert cr.allclose(matrix @ x, b)
    assert cr.linalg.pinv(a, rtol=cr.tensor([0.1, 0.9], device="cuda")).shape == (2, 2, 2)


def test_a_mask_chooses_between_numbers() -> None:
    mask = cr.tensor([True, False], device="cuda")
    for number in (2.0, np.float64(2.0)):
        found = cr.where(mask, 1.0, number)
        assert (found.device.type, found.tolist()) == ("cuda", [1.0, 2.0])
    with pytest.raises(cr.errors.DeviceError):
        cr.where(mask, np.ones(2), 1.0)


def test_the_default_device() -> None:
    assert cr.get_default_device() == "cpu"
    with cr.device("cuda"):
        assert cr.get_default_device() == "cuda"
        for made in (cr.ones(2), cr.tensor([1]), cr.rand(2), cr.arange(3), cr.eye(2)):
            assert made.device == "cuda"
        with cr.device("cpu"):
            on_host = cr.ones(2)
        assert on_host.device == cr.zeros_like(on_host).device == "cpu"
        assert cr.from_numpy(np.ones(2)).device == "cpu"
        assert cr.nn.Linear(2, 2).weight.device == "cuda"
    assert cr.ones(2).device == "cpu"
    try:
        cr.set_default_device("cuda:1")
        with cr.cuda.device(1):
            assert cr.ones(2).device == "cuda:1"
    finally:
        cr.set_default_device(None)


def test_they_print_with_their_device() -> None:
    assert repr(cuda(1.0)) == "tensor([1.], device='cuda:0')"
    assert repr(cuda(1.0, requires_grad=True)) == (
        "tensor([1.], device='cuda:0', requires_grad=True)"
    )
    assert f"{cuda(1.5)[0]:.2f}" == "1.50"


def test_copies_pickles_and_files_keep_the_device(tmp_path: Path) -> None:
    x = cuda(1.0, 2.0, requires_grad=True)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.device == x.device
        assert again.requires_grad
        assert again.tolist() == x.tolist()
    cr.save({"x": x}, tmp_path / "x.pt")
    assert cr.load(tmp_path / "x.pt")["x"].device == x.device
    assert cr.load(tmp_path / "x.pt", map_location="cpu")["x"].device == "cpu"
    assert cr.load(tmp_path / "x.pt", map_location={"cuda:0": "cuda:1"})["x"].device == "cuda:1"


def test_memory_is_shared_through_dlpack() -> None:
    x = cuda(1.0, 2.0)
    y = cr.from_dlpack(x)
    y.mul_(2)
    assert x.tolist() == [2.0, 4.0]
    assert cr.from_dlpack(x, device="cpu").device == "cpu"


def test_arrays_of_cupy_are_operands() -> None:
    x = cuda(1.0, 2.0)
    assert (x * x._array).tolist() == [1.0, 4.0]
    assert cr.asarray(x._array).device == "cuda"


def test_copy_takes_the_values_of_another_device() -> None:
    x = cr.zeros(2, device="cuda")
    x.copy_(cr.tensor([1.0, 2.0]))
    x[0] = np.array(5.0)
    assert x.tolist() == [5.0, 2.0]


def test_states_load_across_devices() -> None:
    there, here = cr.nn.Linear(2, 2, device="cuda"), cr.nn.Linear(2, 2)
    there.load_state_dict(here.state_dict())
    assert there.weight.device == "cuda"
    assert there.weight.tolist() == here.weight.tolist()
    assert here.to("cuda").weight.device == "cuda"


def test_a_loader_gives_batches_for_the_device() -> None:
    data = cr.utils.data.TensorDataset(cr.arange(4.0))
    loader = cr.utils.data.DataLoader(data, batch_size=2, pin_memory=True)
    found = [batch.to("cuda", non_blocking=True).tolist() for (batch,) in loader]
    assert found == [[0.0, 1.0], [2.0, 3.0]]


# --- random numbers -------------------------------------------------------------------------------


def test_a_seed_gives_the_same_on_every_device() -> None:
    def draws(device: str) -> list[Any]:
        cr.manual_seed(3)
        p = cr.full((4,), 0.5, device=device)
        drawn = [cr.rand(2, device=device), cr.bernoulli(p), cr.poisson(p), cr.multinomial(p, 2)]
        drawn += [cr.zeros(2, device=device).normal_(), cr.nn.functional.dropout(p)]
        assert {x.device.type for x in drawn} == {device}
        return [x.tolist() for x in drawn]

    assert draws("cuda") == draws("cpu")
    generator = cr.Generator(device="cuda").manual_seed(3)
    assert generator.device == "cuda"
    on_host = cr.Generator().manual_seed(3)
    drawn = cr.randn(2, generator=generator, device="cuda")
    assert drawn.tolist() == cr.randn(2, generator=on_host).tolist()
    state = cr.cuda.get_rng_state()
    first = cr.rand(2).tolist()
    cr.cuda.set_rng_state(state)
    assert cr.rand(2).tolist() == first


# --- cr.cuda --------------------------------------------------------------------------------------


def test_what_there_is() -> None:
    assert cr.cuda.is_available()
    assert cr.cuda.is_initialized()
    assert cr.cuda.device_count() == 2
    assert cr.cuda.current_device() == 0
    with cr.cuda.device(1):
        assert cr.cuda.current_device() == 1
        with cr.cuda.device_of(cuda(1.0)), cr.cuda.device(None):
            assert cr.cuda.current_device() == 0
    found = cr.cuda.get_device_properties("cuda:1")
    assert (found.name, found.total_memory) == (cr.cuda.get_device_name(1), 1 << 30)
    assert cr.cuda.get_device_capability() == (found.major, found.minor) == (9, 0)
    cr.cuda.init()
    cr.cuda.synchronize()
    cr.cuda.ipc_collect()


def test_memory_is_counted() -> None:
    cr.cuda.reset_peak_memory_stats()
    before = cr.cuda.memory_allocated()
    x = cr.zeros(1000, device="cuda")
    assert cr.cuda.memory_allocated() == before + 4000
    del x
    assert cr.cuda.memory_allocated() == before
    assert cr.cuda.max_memory_allocated() == before + 4000
    assert cr.cuda.memory_reserved() >= before + 4000
    cr.cuda.empty_cache()
    assert cr.cuda.memory_reserved() == before
    cr.cuda.reset_peak_memory_stats()
    assert cr.cuda.max_memory_allocated() == before
    free, total = cr.cuda.mem_get_info()
    assert free == total - before
    assert cr.cuda.memory_stats()["allocated_bytes.all.current"] == before
    assert "allocated_bytes" in cr.cuda.memory_summary()


def test_streams_and_events() -> None:
    start, end = (cr.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    other = cr.cuda.Stream()
    other.wait_stream(cr.cuda.current_stream())
    with cr.cuda.stream(other), cr.cuda.stream(None):
        assert cr.cuda.current_stream()._stream is other._stream
        cr.ones(3, device="cuda")
    assert cr.cuda.current_stream()._stream is cr.cuda.default_stream()._stream
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert other.query()
    assert other.record_event().query()
    with other as current:
        assert cr.cuda.current_stream().cuda_stream == current.cuda_stream != 0


def test_memory_that_another_stream_uses_is_kept_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[Any] = []
    monkeypatch.setattr(cr.cuda.Stream, "synchronize", lambda self: waits.append(self))
    other = cr.cuda.Stream()
    x = cr.ones(3, device="cuda")
    y = x[1:]
    y.record_stream(other)
    del x
    assert not waits
    del y
    assert waits == [other]
    cr.ones(3).record_stream(other)  # nothing to wait for
    assert waits == [other]


def test_seeds_and_errors_of_the_device() -> None:
    cr.cuda.manual_seed_all(7)
    assert cr.cuda.initial_seed() == cr.initial_seed() == 7
    cr.cuda.seed_all()
    assert cr.initial_seed() != 7
    assert issubclass(MemoryError, cr.cuda.OutOfMemoryError)
    for name in ("memory_cached", "CUDAGraph", "nvtx", "FloatTensor", "comm"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*(say|call|move)"):
            getattr(cr.cuda, name)


@pytest.mark.parametrize("N", [None, 2])
def test_powers_are_on_the_device(N: int | None) -> None:
    assert cr.vander(cuda(1.0, 2.0, 3.0), N).device == "cuda"


def test_another_device_needs_to_be_the_current_one() -> None:
    x = cuda(1.0).to("cuda:1")
    with cr.cuda.device_of(x):
        assert (x * 2).sum().item() == 2.0
    with pytest.raises(cr.DeviceError, match=r"with cr\.cuda\.device\(1\):"):
        x * 2


def test_reads_by_tests_are_not_those_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_device(monkeypatch):
        x = cr.ones(2)
        assert x.device == "cuda"
        assert x.numpy().tolist() == np.asarray(x).tolist() == [1.0, 1.0]
        with pytest.raises(cr.AutogradError, match="requires grad"):
            cr.ones(2, requires_grad=True).numpy()
