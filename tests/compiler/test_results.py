"""Results of compiled functions: memory of their own, in the containers of the function."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import pickle
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree


def leaf(*values: float) -> cr.Tensor:
    return cr.tensor(values, requires_grad=True)


def plain(x: Any) -> Any:
    return x.numpy(force=True) if isinstance(x, cr.Tensor) else x


def arrays_of(result: Any) -> list[np.ndarray]:
    return [t.numpy(force=True) for t in result]


def test_results_share_memory_with_nothing() -> None:
    w, constant = leaf(1.0, 2.0), np.array([1.0, 2.0], np.float32)

    @cr.compile
    def function(x: Any) -> Any:
        y = x.exp()
        with cr.no_grad():
            w.mul_(2.0)
        return y, y.clone(), y.detach().clone(), y * 1, x.clone(), w.clone(), cr.tensor(constant)

    x = leaf(1.0, 2.0)
    results = [function(x) for _ in range(3)]
    arrays = [a for result in results for a in arrays_of(result)]
    arrays += [x.numpy(force=True), w.numpy(force=True), constant]
    for i, a in enumerate(arrays):
        for b in arrays[:i]:
            assert not np.shares_memory(a, b)
    before = [a.copy() for a in arrays_of(results[1])]
    for t in results[0]:
        t.detach().fill_(7.0)
    for a, b in zip(arrays_of(results[1]), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert function(x)[0].tolist() == pytest.approx(np.exp([1.0, 2.0]))


def test_large_results_share_memory_with_nothing() -> None:
    function = cr.compile(lambda x: [(x + 1).exp(), (x + 2).tanh() * 3, x + 2, x[:50]])
    x = cr.ones(100, 100)
    arrays = [a for _ in range(3) for a in arrays_of(function(x))] + [x.numpy()]
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[:i])


def test_one_tensor_returned_twice_is_one_tensor() -> None:
    @cr.compile
    def function(x: Any) -> Any:
        y = x * 2
        return y, {"y": y}

    for _ in range(2):
        first, second = function(leaf(1.0))
        assert first is second["y"]


def test_a_result_that_is_written_to_is_not_differentiated_silently() -> None:
    function = cr.compile(lambda x: x.exp())
    for _ in range(2):
        x = leaf(1.0)
        y = function(x)
        loss = (y * 2).sum()
        with cr.no_grad():
            y.mul_(2.0)
        with pytest.raises(cr.InPlaceError, match="saved value 0 of"):
            loss.backward()


def test_an_argument_that_is_written_to_is_not_differentiated_silently() -> None:
    function = cr.compile(lambda x, s: (x * s).sum())
    x, s = leaf(1.0), cr.tensor([2.0])
    y = function(x, s)
    s.mul_(2.0)
    with pytest.raises(cr.InPlaceError):
        y.backward()


@dataclasses.dataclass
class Pair:
    """Two of something."""

    a: Any
    b: Any = None


class Named(NamedTuple):
    """Has names."""

    one: Any
    two: Any


def test_copies_of_a_dataclass_need_no_new_trace() -> None:
    @dataclasses.dataclass
    class Own:
        a: Any

    compiled = cr.compile(lambda x: Own(x.a * 2))
    compiled(Own(cr.ones(2)))
    copy.copy(Own(cr.ones(2)))
    compiled(Own(cr.ones(2)))
    assert len(compiled.signatures) == 1
    Own.a = 3
    compiled(Own(cr.ones(2)))
    assert len(compiled.signatures) == 2


def test_containers_in_and_out() -> None:
    def function(tree: Any, *rest: Any, **named: Any) -> Any:
        x = tree["pair"].a + tree["list"][0] + tree["named"].two
        return {
            "pair": Pair(x, [x * 2, (x * 3,)]),
            "named": Named(rest[0] * 2, named["y"]),
            "n": 5,
            "none": None,
            "text": "text",
            3: (),
            "nan": float("nan"),
            "array": np.ones(2),
            "given": tree["list"][0],
        }

    tree = {
        "pair": Pair(leaf(1.0), 3),
        "list": [cr.tensor([2.0]), "text"],
        "named": Named(None, np.array([4.0], np.float32)),
    }
    compiled = cr.compile(function)
    for _ in range(3):
        wanted = function(tree, cr.ones(2), y=True)
        got = compiled(tree, cr.ones(2), y=True)
        assert list(got) == list(wanted)
        assert type(got["pair"]) is Pair
        assert got["pair"].a.tolist() == wanted["pair"].a.tolist()
        assert got["pair"].b[1][0].tolist() == wanted["pair"].b[1][0].tolist()
        assert type(got["named"]) is Named
        assert got["named"].two is True
        assert (got["n"], got["none"], got["text"], got[3]) == (5, None, "text", ())
        assert np.isnan(got["nan"])
        assert got["array"].tolist() == [1.0, 1.0]
        assert got["given"] is tree["list"][0]
        assert got["pair"].a.requires_grad
    assert len(compiled._entries) == 1


def test_numpy_arrays_and_numpys_functions() -> None:
    def function(a: Any, t: Any) -> Any:
        b = np.sin(a) + a.sum() + np.where(a > 0, a, 0).reshape(-1, 1).T
        joined = np.concatenate([a, a]), np.concatenate([a, 2 * a], 0), np.stack([a, a], 1)
        return b, t * cr.tensor(a[:1]), *joined, np.dot(a, a), a.mean()

    compiled = cr.compile(function)
    for value in (1.0, 2.0):
        a, t = np.array([value, -3.0, 0.5]), leaf(2.0)
        for got, wanted in zip(compiled(a, t), function(a, t), strict=True):
            assert type(got) is type(wanted) or np.ndim(wanted) == 0
            got, wanted = (
                x.numpy(force=True) if isinstance(x, cr.Tensor) else x for x in (got, wanted)
            )
            np.testing.assert_allclose(got, wanted)
    assert len(compiled._entries) == 1


def test_a_tensor_from_outside_that_is_returned_or_set_as_grad() -> None:
    outside, w = cr.tensor([1.0]), leaf(2.0)

    def function(x: Any) -> Any:
        w.grad = outside
        return outside, x, w

    compiled = cr.compile(function)
    for _ in range(2):
        x, w.grad = cr.ones(1), None
        got = compiled(x)
        assert got[0] is outside
        assert got[1] is x
        assert got[2] is w
        assert w.grad is outside


def test_backward_detects_saved_values_that_the_function_overwrote() -> None:
    w = leaf(2.0)

    def function(x: Any) -> Any:
        y = (x * w.detach()).sum()
        with cr.no_grad():
            w.mul_(3.0)
        return y

    compiled = cr.compile(function)
    for wanted in (2.0, 6.0, 18.0):
        found = compiled(leaf(1.0))
        assert found.item() == wanted
        with pytest.raises(cr.AutogradError, match="modified by an inplace operation"):
            found.backward()


def test_tensors_combined_with_numpy_arrays_keep_their_history() -> None:
    def function(t: Any, a: Any) -> Any:
        parts = [t * a, a * t, a @ t, np.add(a, t), np.sin(t) + a, np.dot(a, t), cr.sin(a) * t]
        parts += [np.maximum(t, a), a - t, a / t, a**t, a > t, t > a]
        return sum(part.sum() for part in parts)

    a = np.array([0.5, 2.0], np.float32)
    compiled = cr.compile(function)
    for _ in range(2):
        x, y = leaf(1.0, 3.0), leaf(1.0, 3.0)
        function(x, a).backward()
        compiled(y, a).backward()
        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-5)


def test_results_that_are_views_need_no_new_trace() -> None:
    compiled = cr.compile(lambda x: [(x * 2)[:1], (x * 3).reshape(1, -1).T, *cr.exp(x).unbind()])
    for _ in range(3):
        x = leaf(1.0, 2.0)
        cr.autograd_backward([out.sum() for out in compiled(x)])
    assert len(compiled._entries) == 1


def test_a_view_whose_base_was_written_to_is_returned_as_it_is_then() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        first, flat = y[:1], y.view(-1)
        y.mul_(3)
        flat[1:].add_(1)
        return first, flat, y

    compiled = cr.compile(function)
    for _ in range(2):
        a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
        for got, wanted in zip(compiled(a), function(b), strict=True):
            assert got.tolist() == wanted.tolist()
            (got * got).sum().backward(retain_graph=True)
            (wanted * wanted).sum().backward(retain_graph=True)
            assert a.grad.tolist() == b.grad.tolist()


def test_a_gradient_that_was_retained_comes_with_the_result() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.retain_grad()
        (y * y).sum().backward()
        return y

    compiled = cr.compile(function)
    for _ in range(3):
        assert compiled(leaf(1.0, 2.0)).grad.tolist() == [4.0, 8.0]
    assert len(compiled._entries) == 1


def test_bits_as_another_dtype() -> None:
    compiled = cr.compile(lambda x: x.view(cr.int32) + 1)
    x = cr.tensor([1.0, -2.0])
    assert compiled(x).tolist() == (x.view(cr.int32) + 1).tolist()


@dataclasses.dataclass
class Doubled:
    """What its constructor does must happen once."""

    value: Any
    calls: int = dataclasses.field(default=1, init=False)

    def __post_init__(self) -> None:
        self.value = self.value * 2


class Stack(list[Any]):
    """A list that takes its parts one by one."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(parts)


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "make",
    [
        Doubled,
        lambda x: Stack(x, 2 * x),
        lambda x: Named(x, time.struct_time(range(9))),
        lambda x: collections.defaultdict(list, {"a": x}),
        lambda x: collections.Counter({"a": x}),
        lambda x: {Colour.RED: x, (1, "a"): x * 3, float("inf"): x, cr.float32: x},
    ],
)
def test_containers_are_remade_without_their_constructors(make: Any) -> None:
    x = leaf(1.0, 2.0)
    expected = make(x)
    compiled = cr.compile(make)
    found = [compiled(x) for _ in range(2)]
    found += [cr.compile(lambda c: c)(expected), cr.compile(lambda c, d: d)(expected, expected)]
    found += [cr.jvp(make, x, x)[0]]
    for result in found:
        assert type(result) is type(expected)
        pairs = zip(pytree.leaves(result), pytree.leaves(expected), strict=True)
        for (path, ours), (wanted_path, wanted) in pairs:
            assert path == wanted_path
            np.testing.assert_array_equal(plain(ours), plain(wanted))
    carried, _ = cr.scan(lambda c, _: (c, None), expected, length=3)
    np.testing.assert_array_equal(
        plain(next(pytree.leaves(carried))[1]), plain(next(pytree.leaves(expected))[1])
    )


def test_changes_to_a_result_do_not_affect_the_next_call() -> None:
    @cr.compile
    def function(x: Any) -> Any:
        return x * 2, np.ones(2), {"a"}, bytearray(b"a")

    _, array, names, text = function(cr.ones(2))
    array += 1
    names.add("b")
    text += b"b"
    _, array, names, text = function(cr.ones(2))
    assert (array.tolist(), names, text) == ([1.0, 1.0], {"a"}, b"a")


def test_an_array_from_outside_is_returned_itself() -> None:
    array = np.ones(2, np.float32)
    function = cr.compile(lambda x: (x * array, array))
    assert function(cr.ones(2))[1] is array
    assert len(function.signatures) == 1


class Model:
    """Is changed, and returns itself."""

    def __init__(self) -> None:
        self.w = cr.ones(2)
        self.step = cr.compile(self._step)

    def _step(self, x: Any) -> Any:
        self.w.add_(x)
        return self

    @cr.compile
    def predict(self, x: Any) -> Any:
        return self.w * x


def test_an_existing_object_is_returned_itself() -> None:
    model = Model()
    assert all(model.step(cr.ones(2)) is model for _ in range(3))
    assert model.w.tolist() == [4.0, 4.0]


def test_a_generator_is_a_new_one_at_each_call() -> None:
    @cr.compile
    def function(x: Any) -> Any:
        for i in range(3):
            yield x * i

    for scale in (1.0, 2.0):
        assert [t.item() for t in function(cr.tensor(scale))] == [0.0, scale, 2 * scale]


@cr.compile
def doubled(x: Any) -> Any:
    return x * 2


def tripled(x: Any) -> Any:
    return x * 3


def test_copies_and_pickles() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert copy.deepcopy(doubled) is doubled
    compiled = cr.compile(tripled, backend="numpy")
    compiled(cr.ones(2))
    for other in (pickle.loads(pickle.dumps(compiled)), copy.copy(compiled)):
        assert other is compiled
        assert other(cr.tensor(2.0)).item() == 6.0
        assert other.backend == "numpy"
    model = Model()
    model.step(cr.ones(2))
    other = copy.deepcopy(model)
    other.step(cr.ones(2))
    assert (model.w.tolist(), other.w.tolist()) == ([2.0, 2.0], [3.0, 3.0])
    assert other.predict(cr.ones(2)).tolist() == [3.0, 3.0]


def test_retain_grad_of_a_result_that_is_used_on_is_refused() -> None:
    def function(w: Any) -> Any:
        y = w * 2
        y.retain_grad()
        return y, (y * y).sum()

    with pytest.raises(cr.CompileError, match="retain_grad"):
        cr.compile(function)(leaf(1.0))

    def inside(w: Any) -> Any:
        y = w * 2
        y.retain_grad()
        (y * y).sum().backward()
        return y

    assert cr.compile(inside)(leaf(1.0)).grad.tolist() == [4.0]


def _steep(w: Any, v: Any) -> Any:
    return w.sqrt() * v, w * 2, (w + v).sin()


def _sums(w: Any, v: Any) -> Any:
    total = w * v
    return total.sqrt(), (total + w).sum(), cr.stack([w * 2, v.sqrt()])


def _rolled(w: Any, v: Any) -> Any:
    a, b = w, v
    for _ in range(20):
        a, b = (a * 0.5).sin(), (b * b).sqrt()
    return a, b


@pytest.mark.parametrize("function", [_steep, _sums, _rolled])
@pytest.mark.parametrize("chosen", [(0,), (1,), (2,), (0, 1), (1, 2)])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_only_results_that_are_differentiated_have_gradients(
    function: Any, chosen: tuple[int, ...], backend: str
) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")

    def grads(f: Any) -> list[Any]:
        w, v = leaf(0.0, 1.0), leaf(2.0, 0.0)
        found = f(w, v)
        with np.errstate(all="ignore"):
            sum((found[i % len(found)] * (i + 2)).sum() for i in chosen).backward()
        return [w.grad, v.grad]

    compiled = cr.compile(function, backend=backend)
    for _ in range(2):
        for got, wanted in zip(grads(compiled), grads(function), strict=True):
            assert (got is None) == (wanted is None)
            if wanted is not None:
                np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-6)
    assert len(compiled.signatures) == 1


def test_second_derivatives_of_one_of_the_results() -> None:
    def second(f: Any) -> list[Any]:
        w = leaf(0.0, 1.0)
        _, doubled, _ = f(w, leaf(2.0, 0.0))
        (g,) = cr.autograd_grad((doubled * doubled).sum(), w, create_graph=True)
        return [g.tolist(), cr.autograd_grad(g.sum(), w)[0].tolist()]

    assert second(cr.compile(_steep)) == second(_steep)


def test_a_saved_value_that_no_pass_needs_may_be_written_to() -> None:
    function = cr.compile(lambda w: (w.exp(), w * 2))
    w = leaf(1.0)
    first, second = function(w)
    with cr.no_grad():
        first.zero_()
    second.sum().backward()
    assert w.grad.tolist() == [2.0]


def test_numpys_scalars_and_other_arrays() -> None:
    function = cr.compile(lambda x: (x.sum(), x * 2))
    for _ in range(2):
        total, doubled = function(np.ones(3))
        assert type(total) is np.float64
        assert (total, doubled.tolist()) == (3.0, [2.0] * 3)
    for other in (np.ma.masked_array([1.0, 2.0], [0, 1]), np.ones(2).view(np.recarray)):
        with pytest.raises(cr.CompileError, match=r"pass numpy\.asarray\(\) of it"):
            function(other)


def test_arrays_of_a_file(tmp_path: Path) -> None:
    function = cr.compile(lambda x: x * 2)
    array = np.memmap(tmp_path / "numbers", dtype=np.float32, mode="w+", shape=(3,))
    for value in (1.0, 2.0):
        array[:] = value
        assert np.asarray(function(array)).tolist() == [2 * value] * 3
    assert len(function.signatures) == 1


@pytest.mark.no_verify("the function keeps a frame of each trace")
def test_frames_of_the_backward_pass_may_be_held_by_others() -> None:
    """A profiler that samples the stack keeps the tensors of frames alive."""
    frames = []

    @cr.autograd_function
    def double(ctx: Any, x: Any) -> Any:
        return x * 2

    @double.backward
    def _(ctx: Any, g: Any) -> Any:
        gradient = g * 2
        frames.append(sys._getframe())
        return gradient

    compiled = cr.compile(lambda x: (double(x) * x).sum())
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    for count in (1, 2):
        compiled(x).backward()
        np.testing.assert_array_equal(x.grad, [4.0 * count, 8.0 * count])
    assert frames


FAILING: dict[str, tuple[Any, Any]] = {
    "an inverse": (cr.linalg.inv, np.zeros((2, 2))),
    "a factor": (cr.linalg.cholesky, -np.eye(2)),
    "an index": (lambda x: cr.arange(3.0)[x], np.array([5])),
    "a scatter": (lambda x: cr.zeros(3).scatter_add(0, x, cr.ones(1)), np.array([9])),
    "a power": (lambda x: cr.tensor([2]) ** x, np.array([-1])),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_numpy_are_those_of_eager_mode(name: str) -> None:
    function, wrong = FAILING[name]
    with pytest.raises((ValueError, IndexError)) as eager:
        function(cr.tensor(wrong))
    compiled = cr.compile(function, backend="numpy")
    for _ in range(2):  # the first call, and one of the program that is there
        with pytest.raises(eager.type, match=r"compile\(.*test_results.py") as raised:
            compiled(cr.tensor(wrong))
        assert raised.type is eager.type


def test_errors_of_the_user_are_the_users() -> None:
    class Settings:
        is_wrong = True

        @property
        def rate(self) -> float:
            if self.is_wrong:
                raise ValueError("no rate")
            return 2.0

    settings = Settings()
    scaled = cr.compile(lambda x: x * settings.rate)
    for _ in range(2):  # in the trace, and then in the guards of a program
        settings.is_wrong = True
        with pytest.raises(ValueError, match=r"^no rate$") as raised:
            scaled(leaf(1.0))
        assert raised.type is ValueError
        settings.is_wrong = False
        assert scaled(leaf(1.0)).item() == 2
