"""Signatures: calls that an existing program serves, and calls that need a new trace."""

from __future__ import annotations

import functools
import gc
import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree


def traces(function: Callable[..., Any], *calls: tuple[Any, ...]) -> list[int]:
    """Return the number of traces so far after each call."""
    compiled = cr.compile(function)
    found = []
    for args in calls:
        compiled(*args)
        found.append(len(compiled.signatures))
    return found


def _doubled(x: Any) -> Any:
    return [leaf * 2 for _, leaf in pytree.leaves(x)]


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        (cr.ones(3), cr.zeros(3), False),
        (cr.ones(3), cr.ones(4), True),
        (cr.ones(3), cr.ones(3, dtype=cr.float64), True),
        (cr.ones(3), cr.ones(3, requires_grad=True), True),
        (cr.ones(3), np.ones(3, np.float32), True),
        (2.0, 2.0, False),
        (2.0, 3.0, True),
        (1, True, True),
        (0.0, float("nan"), True),
        (0.0, -0.0, True),
        (0.0, 0.0, False),
        (float("nan"), float("nan"), False),
        ({"a": cr.ones(2)}, {"a": cr.zeros(2)}, False),
        ({"a": cr.ones(2)}, {"b": cr.zeros(2)}, True),
        ([cr.ones(2)], (cr.ones(2),), True),
        ([cr.ones(2)], [cr.ones(2), cr.ones(2)], True),
    ],
)
def test_arguments(first: Any, second: Any, again: bool) -> None:
    assert traces(_doubled, (first,), (second,)) == [1, 1 + again]


class _Weighted:
    scale = 2.0

    def total(self, x: Any, w: Any) -> Any:
        return (self.scale * np.sin(x) * w).sum()

    __call__ = total


def _total(x: Any, w: Any = 1.0) -> Any:
    return (np.sin(x) * w).sum()


@functools.wraps(_total)
def _doubled_total(*args: Any, **kwargs: Any) -> Any:
    return 2 * _total(*args, **kwargs)


@pytest.mark.parametrize("transform", [cr.grad, cr.value_and_grad, cr.jacobian, cr.hessian])
@pytest.mark.parametrize("argnums", ["w", ("w", "x"), (0, 1), -1])
def test_transforms_with_chosen_arguments_are_traced_once(transform: Any, argnums: Any) -> None:
    x, model = np.array([0.5, 2.0]), _Weighted()
    functions = [_total, model.total, model, _doubled_total, functools.partial(_total, x)]
    for function in functions:
        args = (x,) if isinstance(function, functools.partial) else (x, x + 1)
        if len(args) == 1 and not isinstance(argnums, int | str):
            continue
        assert traces(transform(function, argnums), *[args] * 3) == [1, 1, 1]


def test_it_names_each_tensor_once() -> None:
    weight = cr.ones(2)
    compiled = cr.compile(lambda x, y: x * y["a"] * weight)
    compiled(cr.ones(3, 2), {"a": cr.ones(2)})
    assert compiled.signatures[0] == {
        "x": "float32 [3, 2]",
        "y['a']": "float32 [2]",
        "weight": "float32 [2]",
        "the grad mode": "on",
        "the default dtype": "float32",
    }


def test_an_array_that_operations_take_is_no_constant() -> None:
    array = np.arange(3.0)
    compiled = cr.compile(lambda x: array * (y := x) + y)
    x = cr.ones(3, dtype=cr.float64)
    for first in (0.0, 7.0):
        array[0] = first
        assert compiled(x).tolist() == [first + 1, 2.0, 3.0]
    assert len(compiled.signatures) == 1


def test_the_grad_mode_and_the_default_dtype_belong_to_it() -> None:
    @cr.compile
    def made(x: Any) -> Any:
        return x * cr.tensor(2.0)

    x = cr.ones(2, requires_grad=True)
    assert made(x).requires_grad
    with cr.no_grad():
        assert not made(x).requires_grad
    cr.set_default_dtype(cr.float64)
    try:
        assert made(x).dtype == cr.float64
    finally:
        cr.set_default_dtype(cr.float32)
    assert made(x).dtype == cr.float32


def test_the_same_tensor_twice_is_another_signature() -> None:
    @cr.compile
    def gradients(a: Any, b: Any) -> Any:
        return cr.autograd_grad((a * b).sum(), [a, b], allow_unused=True)

    a, b = cr.tensor([2.0], requires_grad=True), cr.tensor([3.0], requires_grad=True)
    assert [g.item() for g in gradients(a, b)] == [3, 2]
    assert [g.item() for g in gradients(a, a)] == [4, 4]
    assert [g.item() for g in gradients(b, a)] == [2, 3]


def test_another_captured_tensor_is_detected() -> None:
    weight = cr.tensor(2.0)

    @cr.compile
    def scaled(x: Any) -> Any:
        return x * weight

    assert scaled(cr.tensor(1.0)).item() == 2
    weight = cr.tensor(3.0)
    assert scaled(cr.tensor(1.0)).item() == 3
    weight.add_(1)
    assert scaled(cr.tensor(1.0)).item() == 4


def test_a_changed_number_is_detected() -> None:
    options = {"rate": 2.0, "shifts": [1.0]}

    @cr.compile
    def scaled(x: Any) -> Any:
        return x * options["rate"] + sum(options["shifts"])

    assert scaled(cr.tensor(1.0)).item() == 3
    options["rate"] = 5.0
    assert scaled(cr.tensor(1.0)).item() == 6
    options["shifts"].append(2.0)
    assert scaled(cr.tensor(1.0)).item() == 8


def test_changed_attributes_of_self_are_detected() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight, self.power = cr.tensor(2.0), 2

        @cr.compile
        def __call__(self, x: Any) -> Any:
            return (self.weight * x) ** self.power

    model, other = Model(), Model()
    assert model(cr.tensor(1.0)).item() == 4
    model.power = 3
    assert model(cr.tensor(1.0)).item() == 8
    model.weight = cr.tensor(1.0)
    assert model(cr.tensor(1.0)).item() == 1
    assert other(cr.tensor(1.0)).item() == 4


def test_views_of_one_memory_are_not_taken_for_two_memories() -> None:
    @cr.compile
    def moved(target: Any, source: Any) -> Any:
        target.add_(source)
        return source * 1

    assert moved(cr.ones(2), cr.ones(2)).tolist() == [1, 1]
    memory = cr.ones(3)
    with pytest.raises(cr.CompileError, match="memory that two tensors share"):
        moved(memory[:2], memory[1:])
    assert memory.tolist() == [1, 1, 1]


def test_a_gradient_that_is_there_is_another_signature() -> None:
    w = cr.tensor([1.0, 2.0], requires_grad=True)

    @cr.compile
    def backward() -> None:
        (w * w).sum().backward()

    backward()
    first = w.grad
    assert first.tolist() == [2, 4]
    backward()
    assert w.grad is first  # added to in place, as eagerly
    assert first.tolist() == [4, 8]
    w.grad = None
    backward()
    assert w.grad.tolist() == [2, 4]
    assert first.tolist() == [4, 8]


def test_dropped_programs_leave_nothing_behind() -> None:
    def compile_and_forget() -> None:
        cr.compile(lambda x: (x * 2).sum())(cr.ones(3, requires_grad=True)).backward()
        gc.collect()

    compile_and_forget()  # the rules that it takes stay
    before = len(linecache.cache)
    for _ in range(5):
        compile_and_forget()
    assert len(linecache.cache) <= before


def test_many_signatures_are_warned_of() -> None:
    function = cr.compile(lambda x, rate: x * math.sqrt(rate))
    for step in range(15):
        function(cr.ones(2), float(step))
    words = r"this time since rate is 15\.0, was 14\.0: pass what changes at each call as a tensor"
    with pytest.warns(UserWarning, match=words):
        function(cr.ones(2), 15.0)


def test_signatures_list_what_changed() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight, self.rates = cr.ones(3, requires_grad=True), [0.5, 2.0]

    model, power = Model(), 2
    function = cr.compile(lambda x, scale=1.0: x * scale * model.weight**power * model.rates[0])

    def changes() -> list[str]:
        function(x)
        return function.signatures[-1].changes(function.signatures[-2])

    x = cr.ones(3)
    assert function(x) is not None
    assert str(function.signatures[0]).splitlines()[:2] == [
        "x: float32 [3]",
        "weight: float32 [3], requires grad",
    ]
    x = cr.ones(2, 3, dtype=cr.float64)
    assert changes() == ["x is float64 [2, 3], was float32 [3]"]
    power = 3
    assert changes() == ["power is 3, was 2"]
    model.rates[0] = 0.25
    assert changes() == ["model.rates[0] is any float, was 0.5"]
    model.rates.append(1.0)
    assert "len(model.rates) is 3, was 2" in changes()
    model.weight.grad = cr.ones(3)
    text = "float32 [3], requires grad"
    assert changes() == [f"weight is {text}, has .grad, was {text}"]
    model.weight = cr.ones(3, requires_grad=True)
    model.weight.grad = cr.ones(3)
    assert changes() == ["an object that it finds by name is another one of the same kind"]
    with cr.no_grad():
        assert changes() == ["the grad mode is off, was on"]


@pytest.mark.parametrize(
    "copied", [lambda x: x.T.reshape(-1), lambda x: x.contiguous()], ids=["reshape", "contiguous"]
)
def test_the_order_of_memory_where_it_matters(copied: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        copied(x).mul_(2)  # of a view in one order, of a copy in another
        return x.clone()

    compiled, only_read = cr.compile(function), cr.compile(lambda x: copied(x) * 2)
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(2):
        for order in ("C", "F"):
            found, wanted = (f(cr.from_numpy(x.copy(order))) for f in (compiled, function))
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())
            only_read(cr.from_numpy(x.copy(order)))
    assert (len(compiled.signatures), len(only_read.signatures)) == (2, 1)
    first, second = compiled.signatures
    assert second.changes(first) == [
        "x is float64 [2, 3] in memory by (8, 16), was float64 [2, 3] in memory by (24, 8)"
    ]


def _by_order(x: Any) -> Any:
    return x * 2 if x.is_contiguous() else x * 3


def _by_flags(x: Any) -> Any:
    return x.mT * 2 if x.numpy(force=True).flags.f_contiguous else x.mT * 3


def _itself_or_a_copy(x: Any) -> Any:
    return x.contiguous()


@pytest.mark.parametrize("function", [_by_order, _by_flags, _itself_or_a_copy])
def test_the_order_of_memory_where_the_function_reads_it(function: Callable[[Any], Any]) -> None:
    compiled = cr.compile(function)
    for _ in range(2):
        for order in ("C", "F"):
            x = cr.from_numpy(np.arange(6.0).reshape(2, 3).copy(order))
            found, wanted = compiled(x), function(x)
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())
            assert (found is x) == (wanted is x)
    assert len(compiled.signatures) == 2


def test_the_order_of_a_result_is_unknown() -> None:
    with pytest.raises(cr.CompileError, match=r"flags\.c_contiguous: in which order"):
        cr.compile(lambda x: (x.T + 1).is_contiguous())(cr.ones(2, 3))

    def written(x: Any) -> Any:
        y = x.T + 1
        return y.contiguous().add_(1), y

    with pytest.raises(cr.CompileError, match="may be a view or a copy"):
        cr.compile(written)(cr.ones(2, 3))
    assert cr.compile(lambda x: (x.T + 1).contiguous())(cr.ones(2, 3)).tolist() == [[2.0] * 2] * 3
