"""Numbers that change from call to call: compiled functions agree with eager ones, and keep up."""

from __future__ import annotations

import dataclasses
import math
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import chainrule as cr
from chainrule import nn, optim

# --- arithmetic -----------------------------------------------------------------------------------

FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e300, math.inf, -math.inf, math.nan]),
    st.floats(-4, 4),
)
NUMBERS = st.one_of(FLOATS, st.integers(-3, 7), FLOATS.map(np.float64))

UNARY = ["-{}", "+{}", "abs({})", "round({})", "float({})", "bool({})", "np.sin({})", "np.exp(-{})"]
UNARY += ["math.floor({})", "int({})", "({}).real", "np.float32({})", "min({}, 1)", "max(0.5, {})"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} ** {}"]
BINARY += ["min({}, {})", "np.hypot({}, {})", "({} if {} > 0.5 else 1)", "({} == {})", "({} < {})"]
BINARY += ["({} or {})", "divmod({}, {})[0]"]
OF_TENSORS = [
    "x + {}",
    "{} - x",
    "x * {}",
    "x / {}",
    "{} / x",
    "cr.where(x > {}, x, 0.5)",
    "x > {}",
]
OF_TENSORS += [
    "cr.maximum(x, {})",
    "x.clamp(max={})",
    "x.add(x, alpha={})",
    "cr.full((2,), {}) + x",
]
OF_TENSORS += ["x.masked_fill(x > 1, {})", "cr.tensor({}) * x", "x ** {}", "cr.lerp(x, x * x, {})"]


@st.composite
def bodies(draw: Any) -> str:
    """Return the source of a function body that computes with numbers, and then with tensors."""
    names, lines = ["a", "b", "2", "0.25"], []
    for i in range(draw(st.integers(0, 4))):
        form = draw(st.sampled_from(UNARY + BINARY))
        parts = [draw(st.sampled_from(names)) for _ in range(form.count("{}"))]
        lines.append(f"    n{i} = {form.format(*parts)}")
        names.append(f"n{i}")
    for _ in range(draw(st.integers(1, 3))):
        form = draw(st.sampled_from(OF_TENSORS))
        lines.append(f"    x = {form.format(draw(st.sampled_from(names)))}")
    shown = draw(st.sampled_from(names))
    return "\n".join([*lines, f"    return x, {shown}"])


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return a comparable result of a call: its bits, or the class of its error."""
    with np.errstate(all="ignore"):
        try:
            x, number = function(*args)
        except Exception as error:
            return type(error)
    array = np.asarray(x)
    return array.dtype, np.nan_to_num(array, nan=123.0).tolist(), type(number), repr(number)


def faults(body: str, x: Any, a: Any, b: Any) -> Iterator[type]:
    """Yield the errors of a function, leaving out each statement that has raised one."""
    lines = body.splitlines()
    while True:
        space = {"cr": cr, "np": np, "math": math}
        exec("\n".join(["def function(x, a, b):", *lines]), space)
        function: Any = space["function"]
        try:
            with np.errstate(all="ignore"):
                function(x, a, b)
            return
        except Exception as error:
            trace = error.__traceback__
            assert trace is not None
            assert trace.tb_next is not None
            yield type(error)
            del lines[trace.tb_next.tb_lineno - 2]


@settings(deadline=None, max_examples=60)
@given(bodies(), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=5))
def test_any_arithmetic_of_numbers_is_pythons(body: str, calls: list[tuple[Any, Any]]) -> None:
    space = {"cr": cr, "np": np, "math": math}
    exec(f"def function(x, a, b):\n{body}", space)
    function: Any = space["function"]
    compiled = cr.compile(function, backend="numpy")
    x = np.array([0.5, 2.0], np.float32)
    for a, b in calls:
        wanted = outcome(function, cr.tensor(x), a, b)
        got = outcome(compiled, cr.tensor(x), a, b)
        if isinstance(wanted, type) and got != wanted:  # of two errors, either is told
            assert got in {cr.CompileError, *faults(body, cr.tensor(x), a, b)}, (body, a, b)
        else:
            assert got == wanted or got is cr.CompileError, (body, a, b)


@pytest.mark.parametrize("text", ["a / b", "a // b", "a % b", "b ** -a", "round(a / b)"])
def test_an_operation_that_nothing_uses_raises(text: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def function(x, a, b):\n    n = {text}\n    return x * a, a", space)
    function: Any = space["function"]
    compiled = cr.compile(function, backend="numpy")
    x = cr.tensor([0.5, 2.0])
    for a, b in ((1.0, 2.0), (2.0, 4.0), (1.0, 3.0), (3.0, 0.0), (2.0, 1.0)):
        assert outcome(compiled, x, a, b) == outcome(function, x, a, b)
    assert outcome(compiled, x, 1.0, 0.0) is ZeroDivisionError


# --- places ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Settings:
    rate: float = 0.1


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float = 0.1


class Slotted:
    __slots__ = ("rate",)


RATE = 0.1


def places() -> Iterator[tuple[str, Callable[..., Any], Callable[[Any], tuple[Any, Any]]]]:
    """Yield functions of a number in some place, and a function that puts another one there."""
    yield "argument", lambda x, rate: x * rate, lambda r: ((r,), {})
    yield "keyword", lambda x, *, rate: x * rate, lambda r: ((), {"rate": r})
    yield "in a dict", lambda x, s: x * s["rate"], lambda r: (({"rate": r, "other": 1},), {})
    yield "in a list", lambda x, s: x * s[1], lambda r: (([0, r],), {})
    yield "in a tuple", lambda x, s: x * s[0], lambda r: (((r, 0),), {})
    yield "in a dataclass", lambda x, s: x * s.rate, lambda r: ((Settings(r),), {})

    def set_global(r: Any) -> tuple[Any, Any]:
        globals()["RATE"] = r
        return (), {}

    yield "global", lambda x: x * RATE, set_global
    rate = 0.1

    def set_cell(r: Any) -> tuple[Any, Any]:
        nonlocal rate
        rate = r
        return (), {}

    yield "closure", lambda x: x * rate, set_cell
    options: dict[str, Any] = {"rate": 0.1, "pair": (0.1, "b"), "list": [1, [0.1]]}

    def set_item(name: str, wrap: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
        def change(r: Any) -> tuple[Any, Any]:
            options[name] = wrap(r)
            return (), {}

        return change

    yield "item", lambda x: x * options["rate"], set_item("rate", lambda r: r)
    yield "tuple in a dict", lambda x: x * options["pair"][0], set_item("pair", lambda r: (r, "b"))
    yield (
        "list in a list",
        lambda x: x * options["list"][1][0],
        set_item("list", lambda r: [1, [r]]),
    )
    for thing in (Settings(), Frozen(), nn.Identity()):

        def set_attribute(r: Any, thing: Any = thing) -> tuple[Any, Any]:
            vars(thing)["rate"] = r
            return (), {}

        vars(thing)["rate"] = 0.1
        yield f"attribute of {type(thing).__name__}", lambda x, t=thing: x * t.rate, set_attribute


PLACES = {name: (function, change) for name, function, change in places()}


@pytest.mark.parametrize("name", PLACES)
def test_a_number_that_changes_needs_two_programs(name: str) -> None:
    function, change = PLACES[name]
    compiled = cr.compile(function)
    x = cr.ones(3)
    for value in (0.5, 0.25, 3.0, -1.5, 1e-3):
        args, kwargs = change(value)
        assert compiled(x, *args, **kwargs).tolist() == function(x, *args, **kwargs).tolist()
    assert len(compiled.signatures) == 2
    assert "any float" in compiled.signatures[-1].values()


def test_places_that_cannot_be_set_stay_constants() -> None:
    thing = Slotted()

    def with_default(x: Any, rate: float = 0.5) -> Any:
        return x * rate

    for function, change in (
        (lambda x: x * thing.rate, lambda r: setattr(thing, "rate", r)),
        (with_default, lambda r: setattr(with_default, "__defaults__", (r,))),
    ):
        compiled = cr.compile(function)
        for value in (0.5, 0.25, 3.0):
            change(value)
            assert compiled(cr.ones(2)).tolist() == [value, value]


def test_everything_is_as_before_after_a_trace() -> None:
    options = {"rate": 0.5, "pair": (0.5, 1)}
    seen = []

    def function(x: Any) -> Any:
        if options["rate"] > 2:
            raise RuntimeError("too large")
        seen.append(options["rate"])
        return x * options["rate"] * options["pair"][0]

    compiled = cr.compile(function)
    for rate in (0.5, 0.25, 0.125):
        options.update(rate=rate, pair=(rate, 1))
        assert compiled(cr.ones(1)).item() == rate**2
        assert [type(v) for v in (*options.values(), *options["pair"])] == [
            float,
            tuple,
            float,
            int,
        ]
    options["rate"] = 3.0
    with pytest.raises(RuntimeError, match="too large"):
        compiled(cr.ones(1))
    assert options == {"rate": 3.0, "pair": (0.125, 1)}
    kept = seen[1]  # the trace left it behind
    assert kept == 0.25
    assert pickle.loads(pickle.dumps(kept)) == 0.25
    assert kept * 2 + 1 == 1.5


def test_a_function_that_changes_its_number() -> None:
    options = {"rate": 0.5}

    def function(x: Any) -> Any:
        options["rate"] = options["rate"] * 0.5
        return x * options["rate"]

    compiled, results = cr.compile(function), []
    for _ in range(4):
        results.append(compiled(cr.ones(1)).item())
        assert type(options["rate"]) is float
    assert results == [0.25, 0.125, 0.0625, 0.03125]


def test_a_tuple_that_the_function_replaces_has_plain_numbers() -> None:
    options: dict[str, Any] = {"pair": (0.5, 1), "rate": 0.5}

    def function(x: Any) -> Any:
        if options["rate"] < 0.2:
            options["pair"] = (options["pair"][0] * 0.5, 2)
        return x * options["pair"][0] * options["rate"]

    compiled = cr.compile(function)
    for rate in (0.5, 0.25, 0.125, 0.125):
        options["rate"] = rate
        expected = options["pair"][0] * (0.5 if rate < 0.2 else 1) * rate
        assert compiled(cr.ones(1)).item() == expected
        assert [*map(type, options["pair"])] == [float, int]


def test_a_number_that_is_gone() -> None:
    options: dict[str, Any] = {"rate": 0.5, "list": [0.5, 0.5]}
    compiled = cr.compile(lambda x: x * options.get("rate", 2.0) * sum(options["list"]))
    for change in ({"rate": 0.25}, {"list": [0.25, 0.5]}, {"rate": 0.125}, {"list": [0.125]}):
        options.update(change)
        wanted = options["rate"] * sum(options["list"])
        assert compiled(cr.ones(1)).item() == wanted
    del options["rate"]
    assert compiled(cr.ones(1)).item() == 0.25


def test_other_threads_find_a_number_during_a_trace() -> None:
    options = {"rate": 0.5}
    found = []

    def look() -> None:
        rate = options["rate"]
        found.append(
            (rate * 2, rate > 0.1, f"{rate:.2f}", math.sqrt(rate), isinstance(rate, float))
        )

    def function(x: Any) -> Any:
        rate = options["rate"]
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return x * rate

    compiled = cr.compile(function)
    for rate in (0.25, 0.5, 0.75):
        options["rate"] = rate
        assert compiled(cr.ones(1)).item() == rate
    for double, *others in found:
        assert others == [True, f"{double / 2:.2f}", math.sqrt(double / 2), True]


# --- what depends on a value ----------------------------------------------------------------------

READS: dict[str, Callable[[Any], Any]] = {
    "math.sqrt": lambda a: math.sqrt(a),
    "int": lambda a: int(a),
    "index": lambda a: [5, 6, 7, 8, 9][int(a)],
    "text": lambda a: len(f"{a}"),
    "hash": lambda a: {1.0: 3, 2.0: 4}.get(a, 5),
    "array": lambda a: float(np.array([a, 1.0])[0]),
    "struct": lambda a: np.full((), a).item(),
    "membership": lambda a: 1 if a in (1.0, 2.5) else 0,
    "is_integer": lambda a: 1 if a.is_integer() else 0,
    "range": lambda a: sum(range(round(a))),
}


@pytest.mark.parametrize("name", READS)
def test_a_value_that_is_read_is_checked(name: str) -> None:
    read = READS[name]
    compiled = cr.compile(lambda x, a: x + read(a))
    for a in (1.0, 2.0, 2.5, 1.0, 3.0, 4.0):
        assert compiled(cr.zeros(1), a).item() == pytest.approx(read(a))


def test_a_branch_needs_a_program_for_each_outcome() -> None:
    @cr.compile
    def function(x: Any, a: float) -> Any:
        if 0 < a < 1:
            return x * a
        return x / a if a else x

    for a in (0.5, 0.25, 3.0, 4.0, 0.0, 0.75, 5.0, 0.0):
        wanted = a if 0 < a < 1 else 1 / a if a else 1
        assert function(cr.ones(1, dtype=cr.float64), a).item() == wanted
    assert len(function.signatures) == 4


def test_a_division_by_zero_raises_as_in_python() -> None:
    function = cr.compile(lambda x, a: x * (1 / a))
    assert [function(cr.ones(1), a).item() for a in (1.0, 2.0, 4.0)] == [1, 0.5, 0.25]
    with pytest.raises(ZeroDivisionError):
        function(cr.ones(1), 0.0)
    assert function(cr.ones(1), np.float64(8.0)).item() == 0.125


def test_integers_beyond_a_dtype_are_refused_as_eagerly() -> None:
    def function(x: Any, a: int) -> Any:
        return x + a

    compiled, x = cr.compile(function), cr.tensor([1, 2], dtype=cr.int8)
    for a in (1, 2, 3):
        assert compiled(x, a).tolist() == [1 + a, 2 + a]
    for call in (function, compiled):
        with pytest.raises(OverflowError):
            call(x, 300)


# --- derivatives, loops, transforms ---------------------------------------------------------------


def test_derivatives_use_the_number_of_their_call() -> None:
    compiled = cr.compile(lambda x, a: (x * a).sin().sum() * a)
    results = []
    for a in (0.5, 0.25, 2.0):
        x = cr.tensor([1.0, 2.0], dtype=cr.float64, requires_grad=True)
        results.append((x, a, compiled(x, a)))
    for x, a, result in results:
        (first,) = cr.autograd_grad(result, x, create_graph=True)
        (second,) = cr.autograd_grad(first.sum(), x)
        values = x.detach().numpy()
        np.testing.assert_allclose(first.detach(), a * a * np.cos(a * values))
        np.testing.assert_allclose(second, -(a**3) * np.sin(a * values))


def loop(x: Any, a: float) -> Any:
    return cr.scan(lambda carry, _: (carry * a + a / 2, carry), x, length=4)


def branch(x: Any, a: float) -> Any:
    return cr.cond(x.sum() > a, lambda: x * a, lambda: x - a)


@cr.autograd_function
def scaled(ctx: Any, x: Any, a: float) -> Any:
    ctx.a = a
    return x * a


@scaled.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return grad_output * ctx.a


INSIDE: dict[str, Callable[..., Any]] = {
    "scan": loop,
    "cond": branch,
    "vmap": cr.vmap(lambda x, a: x * a + a, in_dims=(0, None)),
    "grad": cr.grad(lambda x, a: (x * a).sin().sum()),
    "grad by the number": cr.grad(lambda x, a: (x * a).sin().sum(), 1),
    "custom": cr.grad(lambda x, a: scaled(x, a).sum()),
    "Python loop": lambda x, a: [x := x * a + i * a for i in range(5)][-1],
    "array": lambda x, a: np.asarray([1.0, 2.0, 3.0]) * a + x,
    "dropout": lambda x, a: nn.functional.leaky_relu(-x, a),
}


@pytest.mark.parametrize("backend", ["numpy", None])
@pytest.mark.parametrize("name", INSIDE)
def test_inside_of_loops_and_transforms(name: str, backend: Any) -> None:
    function = INSIDE[name]
    compiled = cr.compile(function, backend=backend)
    x = cr.tensor([1.0, -2.0, 3.0], dtype=cr.float64)
    for a in (0.5, 0.25, 0.75, -1.0):
        got, wanted = (cr.tree.leaves(call(x, a)) for call in (compiled, function))
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert len(compiled.signatures) == 2


# --- optimisers -----------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: optim.RAdam(p, lr=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.1),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.1),
}
SCHEDULES: dict[str, Callable[..., Any]] = {
    "ExponentialLR": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9),
    "OneCycleLR": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=8),
}
PAIRS = [(o, "ExponentialLR") for o in OPTIMIZERS]
PAIRS += [(o, "OneCycleLR") for o in ("SGD", "Adam", "NAdam", "RMSprop")]


@pytest.mark.parametrize(("name", "schedule"), PAIRS)
def test_a_training_step_with_a_schedule_is_compiled_twice(name: str, schedule: str) -> None:
    def train(compile: Callable[..., Any]) -> tuple[Any, Any]:
        w = cr.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=cr.float64, requires_grad=True)
        optimizer = OPTIMIZERS[name]([w])
        scheduler = SCHEDULES[schedule](optimizer)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (w @ x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step, losses = compile(step), []
        for _ in range(7):
            losses.append(step(cr.ones(2, 3, dtype=cr.float64)).item())
            scheduler.step()
        return step, losses

    compiled, losses = train(cr.compile)
    _, wanted = train(lambda step: step)
    np.testing.assert_allclose(losses, wanted, rtol=1e-9)
    assert len(compiled.signatures) <= 3  # the state is new, the rate is, and then any rate
