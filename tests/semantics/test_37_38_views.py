"""SEMANTICS 37–38: writing through views, views that refuse, and detaching."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import equal, leaf, share_memory
from helpers.torch_comparison import raises_runtime_error, same_as_torch

SEVERAL = "This view is the output of a function that returns multiple views"
NO_GRAD = "created in no_grad mode"

VIEWS = {
    "select": lambda y: y[1],
    "select -1": lambda y: y[-1],
    "element": lambda y: y[1, 2],
    "slice": lambda y: y[0:2],
    "step": lambda y: y[:, ::2],
    "ellipsis": lambda y: y[..., 1],
    "none": lambda y: y[None],
    "reshape": lambda y: y.reshape(2, 6),
    "view": lambda y: y.view(-1),
    "flatten": lambda y: y.flatten(),
    "T": lambda y: y.T,
    "mT": lambda y: y.mT,
    "transpose": lambda y: y.transpose(0, 1),
    "swapaxes": lambda y: y.swapaxes(0, 1),
    "permute": lambda y: y.permute(1, 0),
    "movedim": lambda y: y.movedim(0, 1),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "squeeze": lambda y: y[:1].squeeze(0),
    "slice of T": lambda y: y.T[1:3],
    "T of slice": lambda y: y[1:].T,
    "reshape of slice": lambda y: y[1:].reshape(-1),
    "slice of reshape": lambda y: y.reshape(-1)[::5],
    "three deep": lambda y: y.T[1:].unsqueeze(0)[..., 1],
    "four deep": lambda y: y.view(2, 6)[1].view(3, 2).T[0],
}
views = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


# --- 37: writing through views --------------------------------------------------------------------


@views
def test_s37_a_write_through_a_view_changes_the_history_of_the_base(view):
    def program(lib):
        x = lib.leaf(np.arange(1.0, 13.0).reshape(3, 4))
        y = x * 2
        v = view(y)
        v.mul_(5)
        names = [y.grad_fn.name().split("::")[-1], v.requires_grad, v.grad_fn is not None]
        return [y, v, names, *lib.grad((y * y).sum() + (v * 3).sum(), x)]

    same_as_torch(program)


@views
def test_s37_differences_agree(view):
    x = leaf(np.random.default_rng(0).normal(size=(3, 4)))

    def program(x):
        y = x * x
        view(y).exp_()
        view(y).add_(y.sum())
        return y.sin()

    assert gradcheck(program, (x,))


@views
def test_s37_second_order_through_a_write_to_a_view(view):
    x = leaf(np.random.default_rng(0).normal(size=(3, 4)))

    def program(x):
        y = x * 1
        view(y).pow_(2).mul_(x.mean())
        return (y * y).sum()

    assert gradgradcheck(program, (x,))


@views
def test_s37_the_other_views_follow_a_write_to_the_base(view):
    x = leaf(np.ones((3, 4)))
    y = x * 1
    v = view(y)
    before = v.grad_fn
    y.mul_(5)
    assert v.grad_fn is not before
    v.sum().backward()
    assert x.grad.sum().item() == 5.0 * v.numel()


@views
def test_s37_the_base_may_be_plain_until_something_is_written(view):
    x = leaf(3.0, "float64")
    base = cr.zeros((3, 4), dtype="float64")
    v, other = view(base), base[:2]
    v.add_(x)
    assert base.requires_grad
    assert v.requires_grad
    assert other.requires_grad
    base.sum().backward()
    assert x.grad.item() == v.numel()


def test_s37_the_node_is_called_copy_slices():
    y = leaf([1.0, 2.0]) * 1
    y[0:1].mul_(2)
    assert y.grad_fn.name == "CopySlices"
    assert "grad_fn=<CopySlices>" in repr(y)


def test_s37_views_regenerate_their_node_only_when_there_was_a_write():
    y = leaf([1.0, 2.0]) * 1
    v, w = y[0:1], y[1:]
    node, other = v.grad_fn, w.grad_fn
    assert v.grad_fn is node
    v.mul_(2)
    assert v.grad_fn is not node
    assert w.grad_fn is not other
    assert v.grad_fn is v.grad_fn


def test_s37_the_view_that_was_written_keeps_its_object(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    v = y[0:1]
    assert v.mul_(3) is v


def test_s37_a_view_sees_what_was_written_through_another(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    y = x * 1
    first, rest, whole = y[:2], y[1:], y.view(3, 1)
    first.mul_(10)
    rest.add_(x[:2])
    assert whole.flatten().tolist() == y.tolist() == [10.0, 21.0, 5.0]
    whole.sum().backward()
    assert x.grad.tolist() == [11.0, 11.0, 1.0]


def test_s37_nested_views_see_each_other(lib):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    row = y[0]
    element = row[1]
    row.mul_(2)
    element.mul_(5)
    y.mul_(3)
    assert element.item() == 60.0
    (element + row.sum()).backward()
    assert x.grad.tolist() == [[6.0, 60.0], [0.0, 0.0]]


def test_s37_earlier_consumers_of_the_base_keep_the_old_history(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    early = y + 0
    y[0:1].mul_(10)
    (early + y).sum().backward()
    assert x.grad.tolist() == [11.0, 2.0]


def test_s37_earlier_consumers_of_a_view_keep_the_old_history(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    v = y[0:1]
    early = v + 0
    y.mul_(10)
    (early + v).sum().backward()
    assert x.grad.tolist() == [11.0, 0.0]


def test_s37_the_value_that_is_written_may_be_a_view_of_the_same_base(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y[0:1].copy_(y[1:])
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]


def test_s37_a_view_outlives_its_base(lib):
    x = lib.leaf([1.0, 2.0])
    v = (x * 2)[0:1]
    v.mul_(3)
    v.sum().backward()
    assert x.grad.tolist() == [6.0, 0.0]


def test_s37_retain_grad_of_a_view_goes_along(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    view = y[:2]
    view.retain_grad()
    y.mul_(2)
    (view.sum() * 3).backward()
    assert view.grad.tolist() == [3.0, 3.0]
    assert x.grad.tolist() == [6.0, 6.0, 0.0]


def test_s37_retain_grad_of_the_base_goes_along(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y.retain_grad()
    y[0:1].mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [3.0, 1.0]


def test_s37_a_write_of_another_shape_leaves_everything_alone(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    node, v = y.grad_fn, y[0:1]
    with pytest.raises(RuntimeError, match="output with shape"):
        v.add_(lib.ones(3))
    assert (y.grad_fn is node, y._version, y.tolist()) == (True, 0, [1.0, 2.0])


RESULTS = {
    **VIEWS,
    "flip": lambda y: y.flip(0),
    "flip both": lambda y: y.flip((0, 1)),
    "roll": lambda y: y.roll(0, 0),
    "real": lambda y: y.real,
    "diag": lambda y: y[:, :3].diag(),
    "tril": lambda y: y.tril(9),
    "clone": lambda y: y.clone(),
    "same dtype": lambda y: y.to(y.dtype),
    "contiguous": lambda y: y.contiguous(),
    "contiguous T": lambda y: y.T.contiguous(),
    "reshape of T": lambda y: y.T.reshape(-1),
    "positive": lambda y: +y,
    "times one": lambda y: y * 1,
    "abs": lambda y: y.abs(),
    "clamp": lambda y: y.clamp(min=-99.0),
    "where": lambda y: cr.where(y > -99, y, y),
    "masked_fill": lambda y: y.masked_fill(y < -99, 0.0),
    "sum of one": lambda y: y[:1].sum(0),
    "max of one": lambda y: y[:1].max(0).values,
    "sort": lambda y: y[:1].sort(0).values,
    "cumsum": lambda y: y[:1].cumsum(0),
    "softmax": lambda y: y.softmax(1),
    "cat": lambda y: cr.cat([y]),
    "stack": lambda y: cr.stack([y]),
    "list": lambda y: y[[0, 1, 2]],
    "mask": lambda y: y[y > -99],
    "gather": lambda y: y.gather(1, cr.tensor([[0], [1], [2]])),
    "index_select": lambda y: y.index_select(0, cr.tensor([0, 1, 2])),
    "asarray": lambda y: cr.asarray(y),
    "expand": lambda y: y.expand(3, 4),
}
results = pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS.keys())


@results
def test_s37_a_result_that_is_written_changes_its_operand_only_with_its_history(make):
    x = leaf(np.random.default_rng(0).uniform(1, 2, (3, 4)))

    def program(x):
        y = x * x
        make(y).mul_(3)
        return y * 2

    assert gradcheck(program, (x,))


@results
def test_s37_an_operand_that_is_written_changes_its_result_only_with_its_history(make):
    x = leaf(np.random.default_rng(0).uniform(1, 2, (3, 4)))

    def program(x):
        y = x * x
        z = make(y)
        y.mul_(3)
        return z * 2

    if make in (RESULTS["abs"], RESULTS["clamp"]):  # which save their operand
        with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
            program(x).sum().backward()
    else:
        assert gradcheck(program, (x,))


PARTS = {"real": lambda z: z.real, "imag": lambda z: z.imag, "conj": lambda z: z.conj()}


@pytest.mark.parametrize("first", ["operand", "result"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_s37_parts_of_complex_tensors_change_only_with_their_history(part, first):
    x = leaf([1 + 2j, 3 - 1j], "complex128")

    def program(x):
        y = x * x
        z = part(y)
        (y if first == "operand" else z).mul_(3)
        return y * 2, z * 2

    assert gradcheck(program, (x,))


def test_s37_a_write_to_a_detached_view_leaves_the_history_alone(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    node = y.grad_fn
    y.detach()[0:1].mul_(5)
    assert y.grad_fn is node
    assert y.tolist() == [5.0, 2.0]


SPLITTERS = {
    "unbind": lambda y: y.unbind(),
    "unbind(1)": lambda y: y.unbind(1),
    "chunk": lambda y: y.chunk(2),
    "split": lambda y: y.split(1),
    "split by sizes": lambda y: y.split([1, 2], 1),
    "iteration": lambda y: tuple(y),
}
splitters = pytest.mark.parametrize("split", SPLITTERS.values(), ids=SPLITTERS.keys())

WRITES = {
    "mul_": lambda v: v.mul_(2),
    "zero_": lambda v: v.zero_(),
    "setitem": lambda v: v.__setitem__(..., 1.0),
    "view": lambda v: v.unsqueeze(0).mul_(2),
    "element": lambda v: v[0].mul_(2),
}
writes = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())


@writes
@splitters
def test_s37_one_of_several_views_refuses(lib, split, write):
    y = lib.leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) * 1
    node = y.grad_fn
    for part in split(y):
        with pytest.raises(RuntimeError, match=SEVERAL):
            write(part)
    assert y.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (y._version, y.grad_fn is node) == (0, True)


@splitters
def test_s37_one_of_several_views_of_a_leaf_refuses(lib, split):
    x = lib.leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(RuntimeError, match=SEVERAL):
        split(x)[0].add_(1)
    assert x.tolist()[0] == [1.0, 2.0, 3.0]


@splitters
def test_s37_one_of_several_views_of_a_plain_tensor_takes_plain_values(lib, split):
    y = lib.ones(2, 3)
    for part in split(y):
        part.zero_()
    assert y.sum().item() == 0
    assert y._version == len(split(y))


@splitters
def test_s37_one_of_several_views_of_a_plain_tensor_refuses_values_with_grad(split):
    y, w = cr.ones(2, 3), leaf(2.0)
    with pytest.raises(RuntimeError, match=SEVERAL):
        split(y)[0].mul_(w)
    assert equal(y, np.ones((2, 3), np.float32))


@splitters
def test_s37_one_of_several_views_may_be_written_under_no_grad(lib, split):
    y = lib.leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) * 1
    with lib.no_grad():
        for part in split(y):
            part.zero_()
    assert y.sum().item() == 0


@splitters
def test_s37_the_gradients_of_several_views_find_their_places(lib, split):
    x = lib.leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    parts = split(x * x)
    for number, part in enumerate(parts):
        (part * (number + 1)).sum().backward(retain_graph=True)
    expected = [split(x.grad)[i] / (split(2 * x)[i] * (i + 1)) for i in range(len(parts))]
    assert {value for part in expected for value in part.flatten().tolist()} == {1.0}


@writes
def test_s37_a_view_made_under_no_grad_refuses_in_grad_mode(lib, write):
    y = lib.leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    with lib.no_grad():
        v = y[0:1]
    with pytest.raises(RuntimeError, match=NO_GRAD):
        write(v)
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert y._version == 0


def test_s37_a_view_of_a_view_made_under_no_grad_refuses_too(lib):
    y = lib.leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    with lib.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match=NO_GRAD):
        v[0:1].mul_(2)


def test_s37_a_view_of_a_leaf_made_under_no_grad_refuses(lib):
    x = lib.leaf([1.0, 2.0])
    with lib.no_grad():
        v = x[0:1]
    with pytest.raises(RuntimeError, match=f"{NO_GRAD}|a view of a leaf Variable"):
        v.mul_(2)
    assert x.tolist() == [1.0, 2.0]


def test_s37_a_view_made_under_no_grad_may_be_written_there(lib):
    x = lib.leaf([1.0, 2.0])
    with lib.no_grad():
        v = x[0:1]
        v.mul_(10)
    assert x.tolist() == [10.0, 2.0]
    assert x._version == 1


def test_s37_a_view_of_a_plain_tensor_made_under_no_grad_stays_writable(lib):
    y = lib.ones(2)
    with lib.no_grad():
        v = y[0:1]
    v.mul_(5)
    assert y.tolist() == [5.0, 1.0]


def test_s37_a_view_made_in_grad_mode_may_be_written_under_no_grad(lib):
    x = lib.leaf([1.0, 2.0])
    y = x + 1
    v = y[0:1]
    with lib.no_grad():
        v.mul_(10)
    (y.sum() + v.sum()).backward()
    assert y.tolist() == [20.0, 3.0]
    assert x.grad.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.add_(1),
        lambda v: v.add_(cr.tensor([1.0, 2.0, 3.0])),
        lambda v: v.__setitem__(0, 1),
    ],
    ids=["number", "tensor", "setitem"],
)
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("shape", [(1,), (2, 1)])
def test_s37_an_expanded_tensor_refuses(shape, tracked, write):
    y = cr.ones(shape, requires_grad=tracked) * 1
    v = y.expand(2, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        write(v)
    assert equal(y, np.ones(shape, np.float32))
    assert y._version == 0


def test_s37_a_write_to_the_base_of_an_expanded_view_shows_in_it(lib):
    x = lib.leaf([1.0])
    y = x * 1
    v = y.expand(3)
    y.mul_(5)
    v.sum().backward()
    assert v.tolist() == [5.0, 5.0, 5.0]
    assert x.grad.tolist() == [15.0]


# --- 38: detaching --------------------------------------------------------------------------------


def test_s38_detach_gives_a_plain_leaf_of_the_same_memory(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    d = y.detach()
    assert d is not y
    assert (d.requires_grad, d.is_leaf, d.grad_fn, d.grad) == (False, True, None, None)
    d[0] = 7.0
    assert y.tolist() == [7.0, 2.0]
    assert (d._version, y._version) == (1, 1)


def test_s38_detach_shares_memory():
    x = leaf([1.0, 2.0])
    assert share_memory(x, x.detach())
    assert share_memory(x[1:], x[1:].detach())


def test_s38_detach_stops_gradients(lib):
    x = lib.leaf([3.0])
    (x * x.detach()).backward()
    assert x.grad.tolist() == [3.0]


def test_s38_a_detached_leaf_may_start_a_graph_of_its_own(lib):
    x = lib.leaf([3.0])
    d = x.detach().requires_grad_()
    (d * x).backward()
    assert d.grad.tolist() == [3.0]
    assert x.grad.tolist() == [3.0]


def test_s38_views_may_be_detached(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    d = y[0:1].detach()
    d.add_(1)
    assert (d.requires_grad, y.requires_grad, y.tolist()) == (False, True, [2.0, 2.0])


def test_s38_detach_in_place_returns_self_as_a_leaf(lib):
    x = lib.leaf([1.0])
    y = x * 2
    z = y * 3
    assert y.detach_() is y
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)
    z.backward()
    assert x.grad.tolist() == [6.0]


@pytest.mark.parametrize("tracked", [False, True])
@views
def test_s38_detach_in_place_raises_on_a_view(lib, view, tracked):
    y = lib.leaf(np.ones((3, 4))) * 1 if tracked else lib.ones(3, 4)
    v = view(y)
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place. Use detach\(\) instead"):
        v.detach_()
    assert v.requires_grad == tracked


@splitters
def test_s38_detach_in_place_raises_on_one_of_several_views(lib, split):
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        split(lib.leaf(np.ones((2, 3))) * 1)[0].detach_()


@views
def test_s38_detaching_the_base_does_not_detach_a_view(lib, view):
    x = lib.leaf(np.ones((3, 4)))
    y = x * 2
    v = view(y)
    node = v.grad_fn
    y.detach_()
    assert (y.requires_grad, v.requires_grad) == (False, True)
    assert v.grad_fn is node
    v.sum().backward()
    assert x.grad.sum().item() == 2.0 * v.numel()


def test_s38_detaching_a_leaf_ends_its_requires_grad(lib):
    x = lib.leaf([1.0])
    assert x.detach_().requires_grad is False


# --- any sequence of views and writes -------------------------------------------------------------


def random_program(seed, steps=10):
    """Return a program of views, writes and reads in a random order, the same in each library."""
    rng = np.random.default_rng(seed)
    plan = [tuple(int(n) for n in rng.integers(0, 1000, 3)) for _ in range(steps)]

    def look(y, n):
        if y.ndim == 2:
            views = [
                "y[-1]",
                "y[:, 0]",
                "y[0:1]",
                "y.T",
                "y.view(-1) if y.is_contiguous() else y[:, 1:]",
            ]
        elif y.ndim == 1:
            views = ["y[0]", "y[-2:]", "y[::2]", "y.unsqueeze(0)", "y.view(-1, 1)"]
        else:
            views = ["y[None]", "y.view(1)"]
        return eval(views[n % len(views)], {"y": y})

    def write(y, n, value):
        writes = [
            lambda: y.mul_(2),
            lambda: y.add_(value),
            lambda: y.mul_(value),
            lambda: y.neg_(),
            lambda: y.copy_(value * value),
            lambda: y.__setitem__(..., value),
            lambda: y.zero_(),
            lambda: y.sub_(y.clone()),
            lambda: y.pow_(2),
        ]
        writes[n % len(writes)]()

    def program(lib, data):
        x = lib.leaf(data)
        pool, total = [x * 1], 0.0
        for kind, which, how in plan:
            y = pool[which % len(pool)]
            if kind % 3 == 0:
                pool.append(look(y, how))
            elif kind % 3 == 1:
                write(y, how, x.sum() * (0.1 + how % 7))
            else:
                z = y if how % 9 == 0 else y.clone()  # a later write to y changes what is saved
                total = total + (z * z).sum()
        for y in pool:
            total = total + (y * 3).sum()
        return x, total

    return program


@pytest.mark.parametrize("seed", range(150))
def test_s37_random_programs_of_views_and_writes_are_pytorchs(seed):
    program = random_program(seed)
    data = np.random.default_rng(seed).normal(size=(2, 3))

    def run(lib):
        x, total = program(lib, data)
        failed = raises_runtime_error(lambda: lib.grad(total, x, retain_graph=True))
        return [total, failed, None if failed else lib.grad(total, x)]

    same_as_torch(run, rtol=1e-9)


@pytest.mark.parametrize("seed", range(150, 220))
def test_s37_random_programs_of_views_and_writes_agree_with_differences(lib, seed):
    program = random_program(seed)
    data = np.random.default_rng(seed).normal(size=(2, 3))
    direction = np.random.default_rng(seed + 1).normal(size=(2, 3))
    x, total = program(lib, data)
    if raises_runtime_error(lambda: lib.grad(total, x, retain_graph=True)):
        return  # what was saved was written: SEMANTICS 33
    step = 1e-6
    ahead, behind = (program(lib, data + h * direction)[1].item() for h in (step, -step))
    slope = (lib.grad(total, x)[0].numpy() * direction).sum()
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-4)


def test_s37_the_texts_that_people_search_for_stand_together():
    class Alias(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError, match=r"is being modified inplace\. This view is the output of"
    ):
        (x * 1).unbind()[0].add_(1)
    with pytest.raises(
        RuntimeError, match=r"is being modified inplace\. This view was created ins"
    ):
        Alias.apply(x * 1).add_(1)
    with pytest.raises(RuntimeError, match=r"The operation was mul_\."):
        Alias.apply(x * 1).mul_(2)


def test_s37_a_tensor_says_whether_it_is_a_view():
    x = cr.ones(2, 3)
    assert not x._is_view()
    assert x[0]._is_view()
    assert not x[0].clone()._is_view()


def test_s37_a_view_that_forward_made_of_a_constant_refuses_what_would_track_it():
    class Alias(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    view = Alias.apply(cr.ones(2))
    with pytest.raises(cr.InPlaceError, match="This view was created inside a custom Function"):
        view.add_(leaf([1.0, 2.0]))
    view.add_(1)


def test_s37_views_that_one_function_made_together_are_told_of_as_that():
    class Both(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, a, b):
            return cr.cat([a, b])

    first, _ = Both.apply(leaf([1.0, 2.0]) * 1)
    with pytest.raises(cr.InPlaceError, match=f"Output 0 of Both is a view .*{SEVERAL}"):
        first.add_(1)
