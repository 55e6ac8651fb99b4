"""Guards on captured objects: globals, closures and attributes that change between calls."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import types
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree

SCALE = 2.0
SETTINGS = types.ModuleType("settings")
SETTINGS.rate = 0.5  # type: ignore[attr-defined]


def scaled(x: Any) -> Any:
    return x * SCALE


def helper(x: Any) -> Any:
    return x + 1


class Layer:
    """A layer with parameters and settings."""

    def __init__(self, weight: float) -> None:
        self.weight = cr.tensor(weight)
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        return self.activate(x * self.weight * 0.1)

    def activate(self, x: Any) -> Any:
        return x.exp()


class Quiet(Layer):
    """A subclass with another method."""

    def activate(self, x: Any) -> Any:
        return x * SCALE


class Slotted:
    """A class with slots and without dict."""

    __slots__ = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = rate


class Case(NamedTuple):
    """A function that closes over something, and what changes that."""

    function: Callable[[Any], Any]
    change: Callable[[], Any]


def a_tensor() -> Case:
    w = cr.tensor(2.0)

    def change() -> None:
        nonlocal w
        w = cr.tensor(3.0)

    return Case(lambda x: x * w, change)


def a_number_of_another_type() -> Case:
    n: Any = 2

    def change() -> None:
        nonlocal n
        n = 2.0

    return Case(lambda x: cr.arange(3) * n + x.long(), change)


def a_list() -> Case:
    parts: list[Any] = [cr.tensor(1.0)]
    return Case(lambda x: sum(parts, x), lambda: parts.append(cr.tensor(2.0)))


def a_long_list() -> Case:
    numbers = list(range(100))
    return Case(lambda x: x * sum(numbers), lambda: numbers.__setitem__(50, 0))


def a_dict() -> Case:
    options = {"rate": 0.5, "nested": {"on": True}}
    return Case(
        lambda x: x * 2 if options["nested"]["on"] else x,  # type: ignore[index]
        lambda: options["nested"].update(on=False),  # type: ignore[attr-defined]
    )


def a_dict_by_tensors() -> Case:
    key = cr.tensor(1.0)
    state = {key: {"seen": 1}}
    return Case(lambda x: x * state[key]["seen"], lambda: state.update({key: {"seen": 3}}))


def an_object() -> Case:
    layer = Layer(2.0)
    return Case(lambda x: layer(x), lambda: setattr(layer, "weight", cr.tensor(3.0)))


def an_object_in_a_list() -> Case:
    layers = [Layer(2.0), Layer(0.5)]
    return Case(
        lambda x: functools.reduce(lambda y, f: f(y), layers, x),
        lambda: layers.__setitem__(1, Quiet(0.5)),
    )


def one_object_twice() -> Case:
    shared = Layer(2.0)
    layers = {"a": shared, "b": shared}
    return Case(lambda x: layers["b"](layers["a"](x)), lambda: layers.update(b=Layer(3.0)))


def slots() -> Case:
    options = Slotted(1.0)
    return Case(lambda x: x * options.rate, lambda: setattr(options, "rate", 3.0))


def a_partial() -> Case:
    held = [functools.partial(cr.mul, other=2.0)]
    return Case(
        lambda x: held[0](x), lambda: held.__setitem__(0, functools.partial(cr.mul, other=3.0))
    )


def a_numpy_array_rebound() -> Case:
    a = np.ones(3, np.float32)

    def change() -> None:
        nonlocal a
        a = np.full(3, 2.0, np.float32)

    return Case(lambda x: x * a, change)


def a_numpy_array_written_to() -> Case:
    a = np.ones(3, np.float32)
    return Case(lambda x: x * a, lambda: a.__setitem__(1, 5.0))


def a_part_of_a_numpy_array() -> Case:
    a = np.ones(10, np.float32)
    return Case(lambda x: x * a[3:6] + cr.tensor(a[:3]), lambda: a.fill(5.0))


def a_tensor_of_a_numpy_array() -> Case:
    a = np.ones(3, np.float32)
    return Case(lambda x: x * cr.tensor(a) + cr.from_numpy(a), lambda: a.fill(5.0))


def a_mask() -> Case:
    mask = np.array([True, False, True])
    return Case(lambda x: x[mask], lambda: mask.fill(True))


def a_ufunc() -> Case:
    held = [np.sin]
    return Case(lambda x: held[0](x), lambda: held.__setitem__(0, np.cos))


def a_numpy_scalar() -> Case:
    held = [np.float32(2)]
    return Case(lambda x: x * held[0], lambda: held.__setitem__(0, np.float32(3)))


def a_default() -> Case:
    def function(x: Any, options: Any = {"rate": 2.0}) -> Any:  # noqa: B006
        return x * options["rate"]

    return Case(function, lambda: function.__defaults__[0].update(rate=3.0))  # type: ignore[index]


def an_attribute_by_its_name_in_a_string() -> Case:
    options = Slotted(1.0)
    return Case(lambda x: x * getattr(options, "rate"), lambda: setattr(options, "rate", 3.0))  # noqa: B009


def the_learning_rate_behind_many_tensors() -> Case:
    many = {f"w{i}": cr.tensor(float(i)) for i in range(1000)}
    options = {"lr": 0.5}

    def function(x: Any) -> Any:
        return x * many["w7"] * options["lr"]

    return Case(function, lambda: options.update(lr=3.0))


def a_set() -> Case:
    names = {"a", "b"}
    return Case(lambda x: x * len(names), lambda: names.add("c"))


def a_deque() -> Case:
    numbers = deque([1.0, 2.0])
    return Case(lambda x: x * sum(numbers), lambda: numbers.append(3.0))


def a_fraction() -> Case:
    held = [Fraction(1, 2)]
    return Case(lambda x: x * float(held[0]), lambda: held.__setitem__(0, Fraction(3, 2)))


def an_object_that_nobody_can_look_into() -> Case:
    held: list[Any] = [slice(0, 1), memoryview(b"\x02")]
    return Case(
        lambda x: x * held[1][0] + x[held[0]], lambda: held.__setitem__(1, memoryview(b"\x03"))
    )


def a_class() -> Case:
    class Options:
        rate = 2.0

    return Case(lambda x: x * Options.rate, lambda: setattr(Options, "rate", 3.0))


def a_class_attribute() -> Case:
    class Options:
        rate = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.rate

    return Case(Options(), lambda: setattr(Options, "rate", 3.0))


def a_class_attribute_that_an_object_has_for_itself() -> Case:
    class Options:
        rate = 2.0

    options = Options()
    return Case(lambda x: x * options.rate, lambda: setattr(options, "rate", 3.0))


def a_method() -> Case:
    class Model:
        def run(self, x: Any) -> Any:
            return x * 2

    model = Model()
    return Case(lambda x: model.run(x), lambda: setattr(Model, "run", lambda self, x: x * 3))


def a_method_of_one_object() -> Case:
    layer = Layer(2.0)
    return Case(lambda x: layer(x), lambda: setattr(layer, "activate", lambda x: x + 1))


def a_static_method() -> Case:
    class Model:
        @staticmethod
        def run(x: Any) -> Any:
            return x * 2

    def change() -> None:
        Model.run = staticmethod(lambda x: x * 3)  # type: ignore[method-assign, assignment]

    return Case(lambda x: Model.run(x), change)


def the_code_of_a_function() -> Case:
    def inner(x: Any) -> Any:
        return x * 2

    return Case(lambda x: inner(x), lambda: setattr(inner, "__code__", (lambda x: x * 3).__code__))


def other_defaults() -> Case:
    def function(x: Any, rate: float = 2.0) -> Any:
        return x * rate

    return Case(function, lambda: setattr(function, "__defaults__", (3.0,)))


def other_keyword_defaults() -> Case:
    def function(x: Any, *, rate: float = 2.0) -> Any:
        return x * rate

    return Case(function, lambda: setattr(function, "__kwdefaults__", {"rate": 3.0}))


def an_attribute_by_a_getter() -> Case:
    options = Slotted(1.0)
    get = operator.attrgetter("".join(["ra", "te"]))
    return Case(lambda x: x * get(options), lambda: setattr(options, "rate", 3.0))


class Doubling:
    """A descriptor."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return instance.half * 2


class Half:
    """A class with computed attributes."""

    doubled = Doubling()

    def __init__(self, half: float) -> None:
        self.half = half

    @functools.cached_property
    def tripled(self) -> Any:
        return self.half * 3


class Meta(type):
    """A metaclass."""

    @property
    def rate(cls) -> Any:
        return cls.of_class


def a_descriptor() -> Case:
    half = Half(1.0)
    return Case(lambda x: x * half.doubled, lambda: setattr(half, "half", 2.0))


def a_cached_property() -> Case:
    half = Half(1.0)

    def change() -> None:
        half.half = 2.0
        del half.tripled

    return Case(lambda x: x * half.tripled, change)


def a_property_of_a_class() -> Case:
    class Rated(metaclass=Meta):
        of_class = 2.0

    return Case(lambda x: x * Rated.rate, lambda: setattr(Rated, "of_class", 3.0))


def the_order_of_a_dict() -> Case:
    options = {"a": 2.0, "b": 3.0}
    return Case(
        lambda x: x * next(iter(options.values())),
        lambda: options.update(a=options.pop("a")),
    )


def an_attribute_that_there_was_not() -> Case:
    half = Half(1.0)
    return Case(lambda x: x * getattr(half, "other", 2.0), lambda: setattr(half, "other", 3.0))


def an_attribute_instead_of_getattr() -> Case:
    class Open:
        def __getattr__(self, name: str) -> float:
            return 2.0

    held = Open()
    return Case(lambda x: x * held.rate, lambda: setattr(held, "rate", 3.0))


def a_name_that_there_was_not() -> Case:
    def function(x: Any) -> Any:
        try:
            return x * LATE  # type: ignore[name-defined]
        except NameError:
            return x

    globals().pop("LATE", None)
    return Case(function, lambda: globals().update(LATE=3.0))


def a_cell_that_was_empty() -> Case:
    def function(x: Any) -> Any:
        try:
            return x * rate
        except NameError:
            return x

    def change() -> None:
        nonlocal rate
        rate = 3.0

    if False:
        rate = 1.0
    return Case(function, change)


def a_global_named_as_a_builtin() -> Case:
    globals()["input"] = 2.0
    return Case(lambda x: x * input, lambda: globals().update(input=3.0))  # type: ignore[operator]


def a_number_in_a_numpy_array() -> Case:
    a = np.array([2.0, 3.0])
    return Case(lambda x: x * float(a[0]), lambda: a.__setitem__(0, 5.0))


CASES = [
    a_set,
    a_deque,
    a_fraction,
    an_object_that_nobody_can_look_into,
    a_class,
    a_class_attribute,
    a_class_attribute_that_an_object_has_for_itself,
    a_method,
    a_method_of_one_object,
    a_static_method,
    the_code_of_a_function,
    other_defaults,
    other_keyword_defaults,
    an_attribute_by_a_getter,
    a_descriptor,
    a_cached_property,
    a_property_of_a_class,
    the_order_of_a_dict,
    an_attribute_that_there_was_not,
    an_attribute_instead_of_getattr,
    a_name_that_there_was_not,
    a_cell_that_was_empty,
    a_global_named_as_a_builtin,
    a_number_in_a_numpy_array,
    a_tensor,
    a_number_of_another_type,
    a_list,
    a_long_list,
    a_dict,
    a_dict_by_tensors,
    an_object,
    an_object_in_a_list,
    one_object_twice,
    slots,
    a_partial,
    a_numpy_array_rebound,
    a_numpy_array_written_to,
    a_part_of_a_numpy_array,
    a_tensor_of_a_numpy_array,
    a_mask,
    a_ufunc,
    a_numpy_scalar,
    a_default,
    an_attribute_by_its_name_in_a_string,
    the_learning_rate_behind_many_tensors,
]


@pytest.mark.parametrize("case", CASES)
def test_changes_are_detected(case: Callable[[], Case]) -> None:
    function, change = case()
    compiled = cr.compile(function)
    x = cr.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        got, wanted = compiled(x), function(x)
        assert got.dtype == wanted.dtype
        assert got.equal(wanted)
    before = wanted
    change()
    wanted = function(x)
    assert wanted.dtype != before.dtype or not wanted.equal(before)
    for _ in range(2):
        got = compiled(x)
        assert got.dtype == wanted.dtype
        assert got.equal(wanted)


@pytest.mark.parametrize("name", ["SCALE", "helper"])
def test_globals_of_functions_that_it_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cr.compile(lambda x: Quiet(1.0)(helper(scaled(x))))
    x = cr.tensor([1.0, 2.0])
    assert compiled(x).tolist() == pytest.approx([0.6, 1.0])
    monkeypatch.setitem(globals(), name, 3.0 if name == "SCALE" else lambda x: x - 1)
    wanted = [1.2, 2.1] if name == "SCALE" else [0.2, 0.6]
    assert compiled(x).tolist() == pytest.approx(wanted)


def test_names_in_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cr.compile(lambda x: x * SETTINGS.rate * math.pi)
    x = cr.tensor(1.0)
    assert compiled(x).item() == pytest.approx(math.pi / 2)
    monkeypatch.setattr(SETTINGS, "rate", 2.0)
    assert compiled(x).item() == pytest.approx(math.pi * 2)


class Trainer:
    """A trainer that counts its steps."""

    def __init__(self) -> None:
        self.layer, self.epoch = Layer(2.0), 0

    @cr.compile
    def step(self, x: Any) -> Any:
        return self.layer(x)

    def fit(self, x: Any) -> None:
        for _ in range(30):
            self.step(x)
            self.epoch += 1
            self.layer.calls += 1


def test_unused_attributes_may_change(recwarn: pytest.WarningsRecorder) -> None:
    Trainer().fit(cr.tensor(1.0))
    assert not recwarn


def test_slices_of_one_array_may_be_written_to() -> None:
    a, b = np.arange(4.0), np.arange(4.0)

    def function(array: Any) -> None:
        cr.from_numpy(array[1:]).add_(cr.from_numpy(array[:3]))
        cr.from_numpy(array[::2]).mul_(2.0)

    compiled = cr.compile(lambda: function(a))
    for _ in range(3):
        compiled()
        function(b)
        np.testing.assert_array_equal(a, b)


def test_a_write_to_memory_of_two_tensors_is_refused() -> None:
    a = np.ones(4, np.complex64)

    def function() -> None:
        cr.from_numpy(a.real).add_(cr.from_numpy(a.imag))

    with pytest.raises(cr.CompileError, match="memory that two tensors share"):
        cr.compile(function)()


def test_which_arguments_share_memory_is_part_of_the_signature() -> None:
    @cr.compile
    def function(a: Any, b: Any, c: Any) -> Any:
        total = a + b
        c.mul_(10.0)
        return total + b

    def given(a: Any, b: Any, c: Any) -> list[Any]:
        return [cr.from_numpy(x) for x in (a, b, c)]

    one, other = np.ones(2), np.full(2, 5.0)
    assert function(*given(one, one, other)).tolist() == [3.0, 3.0]
    with pytest.raises(cr.CompileError, match="memory that two tensors share"):
        function(*given(one, other, other))


def test_a_tensor_of_a_numpy_arrays_memory_writes_to_it() -> None:
    a = np.ones(2, np.float32)
    compiled = cr.compile(lambda: cr.from_numpy(a).mul_(2.0).sum())
    assert [compiled().item() for _ in range(3)] == [4.0, 8.0, 16.0]
    assert a.tolist() == [8.0, 8.0]
    copied = cr.compile(lambda: cr.tensor(a).mul_(2.0).sum())
    assert [copied().item() for _ in range(2)] == [32.0, 32.0]


def test_an_iterator_goes_on_at_each_call() -> None:
    rates = iter([1.0, 2.0, 3.0])
    compiled = cr.compile(lambda x: x * next(rates))
    assert [compiled(cr.tensor(1.0)).item() for _ in range(3)] == [1.0, 2.0, 3.0]


@dataclasses.dataclass
class Counter:
    """A state that counts steps, passed as an argument."""

    total: Any
    steps: int = 0

    def step(self, x: Any) -> Any:
        self.steps += 1
        self.total = self.total + x
        return self.total * self.steps


def _counted(f: Any) -> Any:
    counter = Counter(cr.ones(2))
    step = f(Counter.step)
    return [step(counter, cr.ones(2)).tolist() for _ in range(3)], counter.steps, counter.total


def _of_fresh_objects(f: Any) -> Any:
    def function(x: Any, state: Any) -> Any:
        state.rate += 1
        return x * state.rate

    states, step = [Slotted(1.0) for _ in range(3)], f(function)
    return [step(cr.ones(2), state).tolist() for state in states], [s.rate for s in states]


def _in_arguments(f: Any) -> Any:
    def function(options: Any, found: Any) -> Any:
        options["n"] += 1
        found.append(options["x"] * options["n"])

    step, found = f(function), []
    for _ in range(3):
        options = {"n": 1, "x": cr.ones(2)}
        step(options, found)
        assert options["n"] == 2
    return [t.tolist() for t in found]


def _in_globals(f: Any) -> Any:
    def function(x: Any) -> Any:
        SETTINGS.rate += 1
        return x * SETTINGS.rate

    step, found = f(function), []
    for _ in range(3):
        SETTINGS.rate = 0.5
        found.append((step(cr.ones(2)).tolist(), SETTINGS.rate))
    return found


def _in_a_numpy_array(f: Any) -> Any:
    array = np.zeros(2)

    def function(x: Any) -> Any:
        array[:] = array + 1
        return x * cr.tensor(array)

    step = f(function)
    return [step(cr.ones(2)).tolist() for _ in range(3)], array.tolist()


def _made_by_numpy(f: Any) -> Any:
    array = np.zeros(2)
    step, found = f(lambda x: x * cr.tensor(np.sqrt(array))), []
    for _ in range(3):
        found.append(step(cr.ones(2)).tolist())
        array[0] += 1
    return found


@pytest.mark.parametrize(
    "run",
    [_counted, _of_fresh_objects, _in_arguments, _in_globals, _in_a_numpy_array, _made_by_numpy],
)
def test_side_effects_happen_at_each_call(run: Callable[[Any], Any]) -> None:
    found, wanted = run(cr.compile), run(lambda function: function)
    assert pytree.map_leaves(found, _plain) == pytree.map_leaves(wanted, _plain)


def _plain(leaf: Any) -> Any:
    return leaf.tolist() if isinstance(leaf, cr.Tensor) else leaf


def test_a_change_to_an_argument_that_cannot_be_passed_on_is_refused() -> None:
    def function(state: Any) -> Any:
        state["n"] += 1
        return cr.tensor(state["a"]) * state["n"]

    with pytest.raises(cr.CompileError, match="return what is new, or pass tensors"):
        cr.compile(function)({"n": 1, "a": np.ones(2)})


def test_a_function_that_is_traced_at_each_call_is_warned_of() -> None:
    found: list[Any] = []
    compiled = cr.compile(lambda x: found.append(x * 2))
    for _ in range(15):
        compiled(cr.ones(2))
    with pytest.warns(UserWarning, match="was traced anew at each of 16 calls: it keeps a tensor"):
        compiled(cr.ones(2))
    compiled(cr.ones(2))
    assert len(found) == 17


def test_an_iterator_among_the_arguments_goes_on() -> None:
    compiled = cr.compile(lambda x, rates: x * sum(rates))
    rates, options = iter([1.0, 2.0]), {"a": 1.0}
    assert [compiled(cr.tensor(1.0), rates).item() for _ in range(2)] == [3.0, 0.0]
    found = options.values()
    assert compiled(cr.tensor(1.0), found).item() == 1.0
    options["b"] = 4.0
    assert compiled(cr.tensor(1.0), found).item() == 5.0


def test_lookups_that_would_raise_are_in_sight() -> None:
    def doubled(x: Any) -> Any:
        if x.ndim > 3:
            getattr()  # type: ignore[call-overload]
        return x * 2

    assert cr.compile(doubled)(cr.ones(2)).tolist() == [2, 2]
