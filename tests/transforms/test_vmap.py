"""vmap: dimensions, nesting, memory, random numbers, errors; compared with PyTorch and JAX."""

from __future__ import annotations

import operator
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp
from chainrule.transforms.vmap import batched_primitives

RNG = np.random.default_rng(8)
A, B = RNG.standard_normal((4, 3, 2)), RNG.standard_normal((4, 2))


def double(value: Any) -> cr.Tensor:
    return cr.tensor(value, dtype=cr.float64)


def one_by_one(function: Any, *args: Any, **settings: Any) -> Any:
    return cr.stack([function(*each) for each in zip(*args, strict=True)], **settings)


def same(found: Any, wanted: Any) -> None:
    arrays = [x.detach().numpy() if isinstance(x, cr.Tensor) else x for x in (found, wanted)]
    np.testing.assert_allclose(*arrays, atol=1e-12)


# --- dimensions -----------------------------------------------------------------------------------

DIMS: list[tuple[Any, Any]] = [(0, 0), ((1, 0), 1), ((2, None), -1), ((-3, 0), 0), ((None, 0), 0)]


@pytest.mark.parametrize(("in_dims", "out_dims"), DIMS)
def test_dimensions_are_pytorchs(in_dims: Any, out_dims: Any) -> None:
    torch = pytest.importorskip("torch")

    def f(xp: Any, a: Any, b: Any) -> Any:
        return xp.sin(a).sum(0) * xp.exp(b).sum() + a

    dims = in_dims if isinstance(in_dims, tuple) else (in_dims, in_dims)
    b = B if dims[1] == 0 else B[0]
    a = A if dims[0] in (0, -3, None) else np.moveaxis(A, 0, dims[0])
    if dims[1] == 0 and dims[0] is not None:
        b = RNG.standard_normal((a.shape[dims[0]], 2))
    wanted = torch.vmap(lambda *x: f(torch, *x), in_dims, out_dims)(*map(torch.from_numpy, (a, b)))
    found = cr.vmap(lambda *x: f(cr, *x), in_dims, out_dims)(double(a), double(b))
    assert found.shape == tuple(wanted.shape)
    same(found, wanted)


def test_containers_are_mapped_entry_by_entry() -> None:
    def f(p: dict[str, Any], x: Any) -> dict[str, Any]:
        return {"y": p["w"] @ x + p["b"], "both": (x.sum(), None)}

    w, b, x = double(A[0]), double(A[:, :, 0]), double(B)
    found = cr.vmap(f, ({"w": None, "b": 0}, 0), {"y": 1, "both": 0})({"w": w, "b": b}, x)
    same(found["y"], (x @ w.T + b).T)
    same(found["both"][0], x.sum(1))
    assert found["both"][1] is None


def test_arrays_and_numbers_may_be_passed_and_returned() -> None:
    found = cr.vmap(lambda x, k: (x * k, 2.0, np.ones(2)), (0, None))(B, 3)
    same(found[0], double(3 * B))
    assert found[1].tolist() == [2.0] * 4
    assert found[2].shape == (4, 2)
    constant = cr.vmap(lambda x: (x, cr.ones(3)), out_dims=(0, None))(B)[1]
    assert constant.tolist() == [1.0] * 3


def test_keywords_are_the_same_each_time() -> None:
    same(
        cr.vmap(lambda x, *, scale: x * scale)(double(B), scale=double([1.0, 2.0])),
        double(B * [1, 2]),
    )


def test_an_empty_batch_has_the_shapes_of_one_example() -> None:
    found = cr.vmap(lambda x: (x.sum(), cr.linalg.inv(x @ x.T), x[0], cr.cumsum(x, 0)))(
        cr.ones(0, 2, 2)
    )
    assert [t.shape for t in found] == [(0,), (0, 2, 2), (0, 2), (0, 2, 2)]


# --- nesting --------------------------------------------------------------------------------------


def test_vmaps_nest() -> None:
    table = cr.vmap(cr.vmap(lambda x, y: cr.dot(x, y), (None, 0)), (0, None))(double(B), double(B))
    same(table, double(B @ B.T))
    inner = cr.vmap(lambda a: a.sum() + cr.vmap(lambda row: (row * a.sum()).max())(a).sum())
    same(
        inner(double(A)),
        one_by_one(lambda a: a.sum() + sum((r * a.sum()).max() for r in a), double(A)),
    )


def test_gradients_and_hessians_of_each_example() -> None:
    w = double(A[0])

    def loss(w: Any, x: Any) -> Any:
        return cr.tanh(w @ x).pow(2).sum()

    same(
        cr.vmap(cr.grad(loss), (None, 0))(w, B), cr.stack([cr.grad(loss)(w, x) for x in double(B)])
    )
    same(
        cr.vmap(cr.hessian(loss, 1), (None, 0))(w, B),
        cr.stack([cr.hessian(loss, 1)(w, x) for x in double(B)]),
    )
    same(cr.vmap(lambda x: cr.jvp(cr.sin, x, x)[1])(B), double(np.cos(B) * B))
    same(
        cr.jacobian(lambda w: cr.vmap(loss, (None, 0))(w, double(B)))(w),
        cr.vmap(cr.grad(loss), (None, 0))(w, B),
    )


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_pass_through_a_vmap_inside(mode: str) -> None:
    def f(w: Any) -> Any:
        inner = cr.vmap(cr.grad(lambda x: cr.exp(cr.dot(w, x))))(double(B))
        return (inner**2).sum()

    def plain(w: Any) -> Any:
        return ((cr.exp(double(B) @ w)[:, None] * w) ** 2).sum()

    w = double([0.3, -0.2])
    for order in (f, cr.grad(f)), (plain, cr.grad(plain)):
        assert order
    same(cr.jacobian(f, mode=mode)(w), cr.jacobian(plain, mode=mode)(w))
    same(cr.hessian(f, mode=mode)(w), cr.hessian(plain, mode=mode)(w))


def test_derivatives_of_a_nested_vmap_stay_in_its_level() -> None:
    def inner(x: Any) -> Any:
        return cr.vmap(lambda row: row * row.sum())(x)

    for f in (
        lambda x: cr.jvp(inner, x, x)[1],
        lambda x: cr.linearize(inner, x)[1](x),
        lambda x: cr.jacobian(inner, mode="forward")(x),
        lambda x: cr.jvp(cr.jacobian(lambda q: q * q.sum()), x[0], x[1])[1],
    ):
        same(cr.vmap(f)(double(A)), one_by_one(f, double(A)))


@pytest.mark.parametrize("shape", [(3, 5), (33, 33)], ids=["wide", "above-a-block"])
def test_lu_factors_of_each_example(shape: tuple[int, int]) -> None:
    x = double(np.random.default_rng(0).normal(size=(2, *shape)))
    for mine, others in zip(cr.vmap(cr.linalg.lu)(x), cr.linalg.lu(x), strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-12)


def test_numpys_take_and_factors_of_each_example() -> None:
    def f(x: Any, i: Any) -> Any:
        square = x.T @ x + cr.eye(2, dtype=cr.float64)
        factors = cr.linalg.lu_factor(square)
        taken = [np.take(x, i + 4, mode=mode) for mode in ("clip", "wrap")]
        return cr.linalg.lu_solve(*factors, x.T).sum() + np.take(x, i, axis=1).sum() + cr.cat(taken)

    x, i = double(A).requires_grad_(), cr.tensor([[0, 1], [1, 0], [1, 1], [-1, 0]])
    same(cr.vmap(f)(x, i), one_by_one(f, x, i))
    found, wanted = [
        cr.autograd_grad(of(x, i).sum(), x)[0] for of in (cr.vmap(f), lambda *a: one_by_one(f, *a))
    ]
    same(found, wanted)


def test_third_derivatives_by_indices_of_each_example() -> None:
    def f(x: Any, i: Any) -> Any:
        return (x[i].exp() * x[:2]).sum()

    i = cr.tensor([[0, 0], [1, 0], [1, 1], [0, 1]])
    of = cr.jacobian(cr.hessian(f))
    same(cr.vmap(of)(double(B), i), one_by_one(of, double(B), i))


def test_gradients_of_gradients_through_what_was_written() -> None:
    def f(x: Any, part: Any) -> Any:
        return (x.slice_scatter(part, 0, 1, 2) ** 3).sum()

    x, part = double(A).requires_grad_(), double(B[:, None]).requires_grad_()
    of = cr.grad(f, (0, 1))
    found = cr.autograd_grad(sum((g**2).sum() for g in cr.vmap(of)(x, part)), [x, part])
    each = [of(*one) for one in zip(x, part, strict=True)]
    wanted = cr.autograd_grad(sum((g**2).sum() for one in each for g in one), [x, part])
    for mine, other in zip(found, wanted, strict=True):
        same(mine, other)


def test_a_backward_pass_from_outside_reaches_closed_over_tensors() -> None:
    w, x = double(A[0]).requires_grad_(), double(B).requires_grad_()
    cr.vmap(lambda x: (w @ x).tanh().sum() + w.sum())(x).sum().backward()
    found = w.grad.clone(), x.grad.clone()
    w.grad = x.grad = None
    sum((w @ row).tanh().sum() + w.sum() for row in x).backward()
    same(found[0], w.grad)
    same(found[1], x.grad)


def test_a_leaf_made_in_a_vmap_has_gradients_there() -> None:
    def f(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        (leaf**3).sum().backward()
        return leaf.grad

    same(cr.vmap(f)(double(B)), double(3 * B**2))


def test_compiled_vmaps_and_vmaps_of_compiled_functions() -> None:
    w = double(A[0])
    f = cr.vmap(lambda x: (w @ x).tanh())
    same(cr.compile(f)(double(B)), f(double(B)))
    same(cr.vmap(cr.compile(lambda x: (w @ x).tanh()))(double(B)), f(double(B)))
    same(
        cr.compile(cr.vmap(cr.grad(lambda x: (w @ x).sum().exp())))(double(B)),
        cr.vmap(cr.grad(lambda x: (w @ x).sum().exp()))(double(B)),
    )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "lt", "floordiv", "mod"])
def test_arrays_of_a_trace_meet_batched_arrays_inside_it(name: str) -> None:
    operate = getattr(operator, name)

    def f(x: Any) -> Any:
        def example(row: Any) -> Any:
            return operate(x._array, row._array)

        results = cr.vmap(lambda row: cr.asarray(example(row)).to(cr.float64))(double(abs(B)))
        return results.sum()

    same(cr.compile(f)(double(abs(B[0]))), f(double(abs(B[0]))))


def test_second_derivatives_of_powers_can_be_compiled() -> None:
    def f(x: Any) -> Any:
        return (x ** cr.tensor(3.0, dtype=cr.float64)).sum()

    same(cr.compile(cr.hessian(f))(double(B[0])), cr.hessian(f)(double(B[0])))


def test_custom_functions_scans_and_numpys_functions_are_vectorized() -> None:
    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_variables.x**2 * g

    def f(x: Any) -> Any:
        total, steps = cr.scan(
            lambda c, row: (c * row.sum(), c + row), cr.ones((), dtype=cr.float64), x
        )
        return (
            np.median(cube(x))
            + np.where(x > 0, x, 2 * x).sum()
            + total
            + steps.sum()
            + np.linalg.norm(x)
        )

    x = double(A).requires_grad_()
    same(cr.vmap(f)(x), one_by_one(f, x))
    (found,) = cr.autograd_grad(cr.vmap(f)(x).sum(), x)
    (wanted,) = cr.autograd_grad(one_by_one(f, x).sum(), x)
    same(found, wanted)


# --- memory ---------------------------------------------------------------------------------------


def test_writes_in_a_vmap_are_separate_for_each_example() -> None:
    def f(x: Any) -> Any:
        y = cr.zeros(4, dtype=cr.float64)  # shared by all, until something else is written
        first, even = y[0], y[::2]
        y[1] = x.sum()
        even.add_(x)
        first.mul_(x[0])
        y[x.argmax()] = 7.0
        return cr.cat([y, even, first.reshape(1)])

    x = double(B).requires_grad_()
    same(cr.vmap(f)(x), one_by_one(f, x))
    same(
        cr.autograd_grad(cr.vmap(f)(x).pow(2).sum(), x)[0],
        cr.autograd_grad(one_by_one(f, x).pow(2).sum(), x)[0],
    )


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_reshaping_an_example_is_a_view_where_possible(dim: int) -> None:
    def f(x: Any, w: Any) -> Any:
        written = []
        for y in (
            x.clone(),
            cr.zeros(3, 2, dtype=cr.float64).add_(w.sum()),
            cr.ones(2, 3, dtype=cr.float64).T.add_(w.sum()),
            x[:, [1, 0]],
            x[1:] + 1,
        ):
            flat = y.reshape(-1)
            flat[1:3] = w.sum()
            flat.mul_(2)
            written += [y, cr.tensor(float(y.is_contiguous()), dtype=cr.float64)]
        return cr.cat([y.reshape(-1) for y in written])

    x = double(A)
    found = cr.vmap(f, (dim, 0))(x.movedim(0, dim).contiguous(), double(B))
    same(found, one_by_one(f, x, double(B)))


def test_zero_dimensional_and_empty_tensors_can_be_written_to() -> None:
    def f(x: Any) -> Any:
        total, row = x.sum(), cr.zeros(2, dtype=cr.float64)
        total[total > 0] = 0.5
        row[1:].add_(total)
        return row * total

    same(cr.vmap(f)(double(B)), one_by_one(f, double(B)))
    kernels = cr.vmap(cr.grad(lambda w, x: cr.nn.functional.conv1d(x, w).sum()))
    assert kernels(cr.ones(0, 4, 3, 2), cr.ones(0, 5, 3, 6)).shape == (0, 4, 3, 2)
    assert cr.vmap(cr.grad(lambda x: f(x).sum()))(cr.ones(0, 2, dtype=cr.float64)).shape == (0, 2)


def test_tensors_from_outside_cannot_be_written_to() -> None:
    outside, x = cr.zeros(2, dtype=cr.float64), double(B)
    for write in (
        lambda x: outside.add_(x),
        lambda x: outside.add_(1),
        lambda x: x.mul_(2),
        lambda x: x[0].zero_(),
    ):
        with pytest.raises(cr.InPlaceError, match=r"in a mapped function.*clone\(\)"):
            cr.vmap(write)(x)
    assert outside.tolist() == [0.0, 0.0]
    assert np.array_equal(x, B)


def test_results_share_no_memory_with_arguments_or_each_other() -> None:
    x = double(B)
    results = [
        cr.vmap(lambda x: x)(x),
        *cr.vmap(lambda x: (y := x * 2, y, y[:1], y.reshape(1, 2)))(x),
    ]
    arrays = [x.numpy(), *[r.numpy() for r in results]]
    for i, first in enumerate(arrays):
        assert not any(np.shares_memory(first, other) for other in arrays[i + 1 :])


def test_a_write_to_a_result_that_a_vmap_saved_is_noticed() -> None:
    x = double(B).requires_grad_()
    y = cr.vmap(cr.exp)(x)
    y.mul_(2)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        y.sum().backward()


# --- random numbers -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_random_numbers_follow_the_randomness_argument() -> None:
    x = cr.zeros(50, 3)
    with pytest.raises(cr.AutogradError, match="called random operation while in randomness error"):
        cr.vmap(lambda x: x + cr.randn(3))(x)
    alike = cr.vmap(lambda x: x + cr.randn(3), randomness="same")(x).numpy()
    assert np.all(alike == alike[0])
    for draw in (
        lambda x: x + cr.randn(3),
        lambda x: x + cr.randperm(3),
        lambda x: cr.normal(x, 1.0),
    ):
        apart = cr.vmap(draw, randomness="different")(x).numpy()
        assert len(np.unique(apart, axis=0)) > 1
    kept = cr.vmap(lambda x: cr.dropout(x + 1, 0.5, True), randomness="different")(x)
    assert set(np.unique(kept.numpy())) == {0.0, 2.0}
    with pytest.raises(cr.AutogradError, match='depends on the example: say "different"'):
        cr.vmap(lambda x: cr.poisson(x), randomness="same")(x)
    with pytest.raises(cr.ArgumentError, match='"error", "different" or "same"'):
        cr.vmap(cr.sin, randomness="random")


def test_draws_from_numpys_module_are_told_where_examples_would_share_them() -> None:
    x = cr.zeros(3)
    draws: list[Callable[[], Any]] = [
        np.random.random,
        lambda: np.random.permutation(5)[0],
        lambda: np.random.uniform(size=624).sum(),  # the position among 624 numbers is the same
    ]
    for draw in draws:
        np.random.seed(0)
        for randomness in ("error", "different"):
            mapped = cr.vmap(lambda x, draw=draw: x + draw(), randomness=randomness)
            with pytest.warns(UserWarning, match=r"from numpy\.random.*all examples") as told:
                mapped(x)
            assert told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alike = cr.vmap(lambda x, draw=draw: x + draw(), randomness="same")(x)
            cr.jacobian(lambda x, draw=draw: x * draw())(x)  # one function, for all directions
            cr.laplacian(lambda x, draw=draw: (x**3).sum() * draw())(x)
        assert np.ptp(alike.numpy()) == 0


def test_other_generators_are_not_watched() -> None:
    state = np.random.mtrand._rand._bit_generator
    try:
        np.random.set_bit_generator(np.random.PCG64(0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cr.vmap(lambda x: x + np.random.random())(cr.zeros(3))
    finally:
        np.random.set_bit_generator(state)
    with pytest.warns(UserWarning, match=r"numpy\.random"):
        cr.vmap(lambda x: x + np.random.random())(cr.zeros(3))


# --- what it refuses, and what it leaves ----------------------------------------------------------


def test_what_does_not_fit_is_named() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y

    with pytest.raises(
        cr.ShapeError, match=r"same size in the mapped.* 3 at argument \[0\], 2 at argument"
    ):
        cr.vmap(f)(cr.ones(3), cr.ones(2))
    with pytest.raises(cr.ShapeError, match=r"argument \[1\] has the shape \[\].*no dimension 0"):
        cr.vmap(f)(cr.ones(3), 1.0)
    with pytest.raises(cr.ArgumentError, match="nothing to map over"):
        cr.vmap(f, None)(cr.ones(3), cr.ones(3))
    with pytest.raises(cr.ArgumentError, match=r"in_dims=\(0, 0, 0\).*of which there are 2"):
        cr.vmap(f, (0, 0, 0))(cr.ones(3), cr.ones(3))
    with pytest.raises(cr.ArgumentError, match=r"out_dims says None for result, which differs"):
        cr.vmap(f, 0, None)(cr.ones(3), cr.ones(3))
    with pytest.raises(cr.ShapeError, match="out_dims is 2 for result, which has 1"):
        cr.vmap(f, 0, 2)(cr.ones(3), cr.ones(3))
    with pytest.raises(TypeError, match=r"expected tensors, arrays or numbers.*str at result"):
        cr.vmap(lambda x: "label")(cr.ones(3))
    with pytest.raises(TypeError, match=r"str at argument \[1\]: say None in in_dims"):
        cr.vmap(lambda x, mode: x)(cr.ones(3), "mode")
    with pytest.raises(
        cr.ArgumentError, match=r"in_dims has \['a'\], \['b'\] where.*\['x'\], \['y'\]"
    ):
        cr.vmap(lambda p: p["x"], ({"a": 0, "b": None},))({"x": cr.ones(3), "y": 1.0})


def test_an_index_out_of_bounds_is_reported_for_one_example() -> None:
    x, i = double(A), cr.tensor([0, 1, 2, 3])
    for asks in (
        lambda x, i: x[5],
        lambda x, i: x[i],
        lambda x, i: x.clone().index_fill_(0, i.reshape(1), 0.0),
        lambda x, i: x.gather(0, i.expand(1, 2) + 3),
    ):
        with pytest.raises(cr.OutOfBoundsError, match="out of bounds for dimension 0 with size 3"):
            cr.vmap(asks)(x, i)
    with pytest.raises(cr.OutOfBoundsError, match="tensor is 2-dimensional, but 3 were indexed"):
        cr.vmap(lambda x, i: x[0, 0, 0])(x, i)


def test_a_check_of_values_is_made_for_every_example() -> None:
    matrices = cr.stack([cr.eye(3), cr.zeros(3, 3)])
    with pytest.raises(cr.LinAlgError, match=r"inv: \(Batch element 1\).*is singular"):
        cr.vmap(cr.linalg.inv)(matrices)
    with pytest.raises(cr.OutOfBoundsError, match="index out of range"):
        cr.vmap(lambda i: cr.nn.functional.embedding(i, cr.ones(3, 2)))(cr.tensor([[1], [3]]))

    with pytest.raises(cr.OutOfBoundsError, match="Target 7 is out of bounds"):
        cr.vmap(cr.nn.functional.cross_entropy)(cr.ones(2, 3), cr.tensor([1, 7]))

    def slope(x: Any) -> Any:
        with cr.autograd.detect_anomaly():
            return cr.grad(lambda y: (y.sqrt() * 0).sum())(x)

    with pytest.warns(UserWarning, match="Anomaly"):
        assert cr.vmap(slope)(cr.ones(2, 3)).tolist() == [[0.0] * 3] * 2
    with (
        pytest.warns(UserWarning, match="Anomaly"),
        pytest.raises(cr.AutogradError, match="returned nan values"),
    ):
        cr.vmap(slope)(cr.tensor([[1.0], [0.0]]))


def test_values_that_all_examples_share_can_be_read() -> None:
    w, mask = double(A[0]), cr.tensor([True, False, True])

    def f(x: Any) -> Any:
        y = x[mask].sum() if w.sum() > float(w.sum()) - 1 else x[0, 0]
        y = y + x.repeat_interleave(2, 0).sum() + (x @ np.asarray(w[0])).sum() * int(cr.tensor(3))
        return y + x[mask.nonzero()[:, 0]].sum() + cr.unique(w[0]).sum() + x[cr.tensor(1)].sum()

    same(cr.vmap(f)(double(A)), one_by_one(f, double(A)))
    shared = cr.vmap(lambda x: x * np.percentile(w, 30) + x * w.gather(0, cr.tensor([[0]])).item())
    same(shared(double(B)), double(B) * (np.percentile(w, 30) + w[0, 0]))
    shown = cr.vmap(lambda x: x * len(f"{w}"))(double(B))
    same(shown, double(B) * len(f"{w}"))


def test_none_is_passed_through() -> None:
    same(cr.vmap(lambda x, y: x if y is None else y)(double(B), None), double(B))


def test_values_and_shapes_that_differ_are_refused_with_a_mend() -> None:
    x = double(B)
    for asks in (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
    ):
        with pytest.raises(cr.AutogradError, match=r"vmap: a value was asked for.*where\(\)"):
            cr.vmap(asks)(x)
    with pytest.raises(cr.AutogradError, match=r"depends on values"):
        cr.vmap(lambda x: x.nonzero())(x)
    with pytest.raises(cr.AutogradError, match=r"depends on values"):
        cr.vmap(lambda x: x[x > 0])(x)
    with (
        pytest.warns(cr.PerformanceWarning, match="nonzero"),
        pytest.raises(cr.AutogradError, match=r"depends on values"),
    ):
        cr.vmap(lambda x: x[np.where(x > 0)[0]])(x)


def test_tensors_kept_from_a_finished_vmap_are_refused() -> None:
    kept = []
    cr.vmap(lambda x: kept.append(x * 2))(double(B))
    for asks in (lambda x: x.tolist(), lambda x: bool((x + 1 > 0).all()), np.asarray):
        with pytest.raises(cr.AutogradError, match=r"was kept.*Return it from the function"):
            asks(kept[0])


def test_a_backward_pass_in_a_vmap_does_not_reach_leaves_outside() -> None:
    w = double([1.0, 2.0]).requires_grad_()
    with pytest.raises(cr.AutogradError, match=r"a tensor from outside.*on what vmap returned"):
        cr.vmap(lambda x: (w * x).sum().backward())(double(B))
    per_example = cr.vmap(lambda x: cr.autograd_grad((w * w * x).sum(), w)[0])(double(B))
    same(per_example, double(2 * B * [1.0, 2.0]))
    assert w.grad is None


def test_gradients_of_a_graph_from_outside_by_a_batch_of_cotangents() -> None:
    """The rows of a Jacobian, as PyTorch's tutorials compute them."""
    x, w = double([1.0, -2.0]).requires_grad_(), double([3.0, 0.5]).requires_grad_()
    y = x**3 * w.sum() + x.sum() * w
    eye = double(np.eye(2))
    keep: Any = {"retain_graph": True}

    def rows(*of: cr.Tensor) -> Any:
        return cr.vmap(lambda v: cr.autograd_grad(y, of, v, **keep))(eye)

    by_hand = [cr.autograd_grad(y, (x, w), v, **keep) for v in eye]
    for found, wanted in zip(rows(x, w), zip(*by_hand, strict=True), strict=True):
        same(found, cr.stack(wanted))
    product = cr.vmap(lambda v, u: cr.autograd_grad([y * u, y], x, [v, v], **keep)[0])
    same(product(eye, double([2.0, 3.0])), cr.stack([3 * by_hand[0][0], 4 * by_hand[1][0]]))
    nested = cr.vmap(lambda u: cr.vmap(lambda v: cr.autograd_grad(y, x, u * v, **keep)[0])(eye))
    same(nested(eye), cr.stack([cr.stack([u * v @ rows(x)[0] for v in eye]) for u in eye]))
    (gradient,) = cr.autograd_grad(y.sum(), x, create_graph=True)
    hessian = cr.vmap(lambda v: cr.autograd_grad(gradient, x, v, create_graph=True)[0])(eye)
    same(hessian, np.diag(6 * x.detach().numpy() * 3.5))
    same(cr.autograd_grad(hessian.sum(), x, **keep)[0], double([21.0, 21.0]))
    same(cr.vmap(lambda u: u * cr.autograd_grad(y.sum(), x, **keep)[0])(eye).sum(0), gradient)
    unused = cr.vmap(lambda v: v * (cr.autograd_grad(y, eye2, v, **keep, **none)[0] is None))
    eye2, none = double([1.0, 2.0]).requires_grad_(), {"allow_unused": True}
    same(unused(eye), eye)
    with pytest.raises(cr.ShapeError, match="Mismatch in shape"):
        cr.vmap(lambda v: cr.autograd_grad(y, x, v[:1])[0])(eye)


def test_an_exception_leaves_nothing_behind() -> None:
    class Stop(Exception):
        pass

    def f(x: Any) -> Any:
        raise Stop

    slots = vars(cr.Tensor)["_array"]
    with pytest.raises(Stop):
        cr.vmap(cr.vmap(f))(double(B))
    assert vars(cr.Tensor)["_array"] is slots
    same(cr.vmap(cr.sin)(double(B)), cr.sin(double(B)))


def test_another_thread_sees_tensors_as_they_are() -> None:
    outside = double(B)
    seen = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: seen.append((outside * 2).numpy()))
        thread.start()
        thread.join()
        return x + outside.sum()

    same(cr.vmap(f)(double(B)), double(B + B.sum()))
    assert np.array_equal(seen[0], 2 * B)


def test_a_vmap_has_the_name_and_docstring_of_its_function() -> None:
    def wave(x: Any) -> Any:
        """Return a wave."""
        return cr.sin(x)

    assert cr.vmap(wave).__name__ == "wave"
    assert cr.vmap(wave).__doc__ == "Return a wave."


def test_vmaps_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")

    def f(xp: Any, a: Any, b: Any) -> Any:
        return (xp.cumsum(a, 0)[::-1] @ b)[xp.argsort(a[:, 0])] / xp.linalg.det(a.T @ a)

    with jax.enable_x64(True):
        wanted = jax.vmap(lambda a, b: f(jax.numpy, a, b))(A, B)
        slopes = jax.vmap(jax.jacrev(lambda a, b: f(jax.numpy, a, b), (0, 1)))(A, B)
    np.testing.assert_allclose(cr.vmap(lambda a, b: f(cr, a, b))(A, B), wanted, rtol=1e-9)
    found = cr.vmap(cr.jacobian(lambda a, b: f(cr, a, b), (0, 1)))(A, B)
    for mine, other in zip(found, slopes, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("columns", [1, 2])
def test_one_matrix_times_columns_of_each_example(columns: int) -> None:
    rng = np.random.default_rng(0)
    matrix, each = rng.normal(size=(4, 3)), rng.normal(size=(5, 3, columns))
    found = cr.vmap(lambda b: matrix @ b)(each)
    np.testing.assert_allclose(found, matrix @ each, rtol=1e-12)
    one = cr.vmap(lambda b: cr.tensor(matrix) @ b)(cr.tensor(each[:1]))
    np.testing.assert_allclose(one.numpy(), matrix @ each[:1], rtol=1e-12)


def _scaled(v: Any) -> Any:
    d = v * 2.0
    norm = xp.sqrt((d * d).sum(axis=1, keepdims=True))
    d *= 3.0 / norm
    return (d**3).sum()


def _limited(v: Any) -> Any:
    d = v * 2.0
    s = xp.sin(d)
    d = xp.multiply(d, s, out=d, where=s > 0.1)
    return (d * s).sum()


def _rows(v: Any) -> Any:
    a = xp.ones((4, 2))  # shared by the examples, until it is written to
    t = []
    for i in range(4):
        t.append(xp.sin(a).sum())
        a[i] = v[i] * (a[i - 1] + 1)
    return sum(t) * a.sum()


def _view(v: Any) -> Any:
    a = v * 2.0
    row = a[0]
    s = xp.sin(row)
    row *= 3.0
    return (s * row).sum() + (a**2).sum()


def test_writes_over_what_a_gradient_needs() -> None:
    """NumPy's arrays keep it, as one example does; a tensor's gradient is an error."""
    batch = np.random.default_rng(0).normal(size=(3, 4, 2))
    for f in (_scaled, _limited, _rows, _view):
        each = np.stack([cr.grad(f)(x) for x in batch])
        np.testing.assert_allclose(cr.vmap(cr.grad(f))(batch), each, rtol=1e-12)
        nested = cr.vmap(cr.vmap(cr.grad(f)))(batch[None])
        np.testing.assert_allclose(nested[0], each, rtol=1e-12)
        total = cr.grad(lambda x, f=f: cr.vmap(f)(x).sum())(batch)
        np.testing.assert_allclose(total, each, rtol=1e-12)

    def stale(v: Any) -> Any:
        d = v * 2.0
        s = cr.sin(d)
        d.mul_(3.0)
        return (s + d).sum()

    for function in (cr.grad(stale), cr.vmap(cr.grad(stale))):
        with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
            function(cr.tensor(batch))


@pytest.mark.parametrize("size", [1, 2, 7, 9])
def test_chunks_of_examples_are_joined(size: int) -> None:
    calls = []

    def f(w: cr.Tensor, x: cr.Tensor) -> dict[str, cr.Tensor | None]:
        calls.append(1)
        return {"a": (w * x).sum(), "b": x * 2, "c": None}

    w, x = cr.arange(3.0), cr.tensor(np.random.default_rng(0).normal(size=(3, 7)))
    dims = {"a": 0, "b": 1, "c": None}
    expected = cr.vmap(f, (None, 1), dims)(w, x)
    calls.clear()
    leaf = x.clone().requires_grad_()
    found = cr.vmap(f, (None, 1), dims, chunk_size=size)(w, leaf)
    assert len(calls) == -(-7 // size)
    assert found["a"].equal(expected["a"])
    assert found["b"].equal(expected["b"])
    found["a"].sum().backward()
    assert leaf.grad.equal(w[:, None].expand(3, 7).to(leaf.dtype))
    assert isinstance(cr.vmap(cr.sum, chunk_size=size)(x.numpy()), np.ndarray)


def test_a_chunk_has_at_least_one_example() -> None:
    with pytest.raises(ValueError, match="chunk_size is a positive int or None, got 0"):
        cr.vmap(cr.sum, chunk_size=0)


BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: y - x,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "maximum": cr.maximum,
    "hypot": cr.hypot,
    "xlogy": cr.xlogy,
    "complex": lambda x, y: cr.complex(x, y).abs(),
}


def check_shared(mapped: Callable[..., cr.Tensor], batch: cr.Tensor, c: cr.Tensor) -> None:
    """Compare values and gradients by what all examples share with those of a loop."""

    def loop(c: cr.Tensor) -> cr.Tensor:
        return cr.stack([mapped(x, c) for x in batch]).sum()

    def argument(c: cr.Tensor) -> cr.Tensor:
        return cr.vmap(mapped, (0, None))(batch, c).sum()

    def by_name(c: cr.Tensor) -> cr.Tensor:
        return cr.vmap(lambda x: mapped(x, c))(batch).sum()

    wanted = cr.value_and_grad(loop)(c)
    for found in (cr.value_and_grad(argument)(c), cr.value_and_grad(by_name)(c)):
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", BINARY)
def test_operands_that_examples_share_have_the_gradients_of_a_loop(name: str) -> None:
    function = BINARY[name]
    batch = cr.tensor(np.random.default_rng(0).uniform(0.5, 2.0, (4, 2, 3)))
    shared = np.random.default_rng(1).uniform(0.5, 2.0, (2, 3))

    def one(x: cr.Tensor, c: cr.Tensor) -> cr.Tensor:
        each, alike = function(x, c), function(x.mean(1, keepdim=True), c)
        return (each * function(c, c)).sum() + (alike**2).sum()

    def gradients(x: cr.Tensor, c: cr.Tensor) -> cr.Tensor:
        return (cr.grad(one)(x, c) ** 2).sum() + cr.grad(one, 1)(x, c).sum()

    for c in (cr.tensor(shared), cr.tensor(shared[0]), cr.tensor(1.3, dtype=cr.float64)):
        check_shared(one, batch, c)
        check_shared(gradients, batch, c)


UNARY = ["tanh", "log", "log1p", "sigmoid", "relu", "sqrt", "abs", "neg", "sin", "square"]


@pytest.mark.parametrize("limit", [1, 1 << 18])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_what_examples_share_have_the_jacobian_of_a_loop(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a Jacobian share what the function saved, on both sides of the kernels' size."""
    monkeypatch.setattr(batched_primitives, "PARTS_MIN_ELEMENTS", limit)
    function = getattr(cr, name)
    batch = cr.tensor(np.random.default_rng(0).uniform(0.2, 2.0, (4, 2, 3)))

    def loop(x: cr.Tensor) -> cr.Tensor:
        y = function(x) * x
        rows = [cr.autograd_grad(part, x, retain_graph=True)[0] for part in y.flatten()]
        return cr.stack(rows).reshape(2, 3, 2, 3)

    wanted = [loop(x.clone().requires_grad_()) for x in batch]
    jacobian = cr.jacobian(lambda x: function(x) * x)
    same(jacobian(batch[0]), wanted[0])
    same(cr.vmap(jacobian)(batch), cr.stack(wanted))


@pytest.mark.filterwarnings("ignore:.*atleast_3d runs for each")
def test_numpys_functions_of_single_examples_in_a_compiled_function() -> None:
    def f(x: Any) -> Any:
        array = np.atleast_3d(x._array)  # has no batching rule
        return (cr.Tensor(array.reshape(-1)) * x).sum() + np.atleast_1d(x._array).sum()

    x = double(A)[..., 0]
    wanted = one_by_one(f, x)
    np.testing.assert_allclose(cr.vmap(f)(x), wanted)
    np.testing.assert_allclose(cr.compile(cr.vmap(f))(x), wanted)


def test_the_ctc_loss_of_each_example_can_be_compiled() -> None:
    scores = double(np.random.default_rng(0).normal(size=(2, 5, 3, 4))).log_softmax(-1)
    labels, times, lengths = cr.tensor([[1, 2], [3, 3], [1, 1]]), cr.tensor([5, 4, 5]), [2, 2, 1]

    def loss(scores: Any) -> Any:
        return cr.nn.functional.ctc_loss(scores, labels, times, cr.tensor(lengths))

    wanted = one_by_one(loss, scores)
    np.testing.assert_allclose(cr.vmap(loss)(scores), wanted)
    np.testing.assert_allclose(cr.compile(cr.vmap(loss))(scores), wanted)
