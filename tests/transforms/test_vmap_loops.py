"""What vmap runs for one example after the other is told once, by name, or refused."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

SEQUENCES = cr.tensor([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [1.0, 2.0, 3.0]])
VALUES = cr.tensor([[0.5, 2.5], [0.5, 2.5], [0.5, 2.5]])
POSITIONS = [[1, 3], [1, 2], [0, 2]]


def searching() -> Callable[..., Any]:
    """Return a new function, of which nothing was told yet."""

    def search(sequence: Any, values: Any) -> Any:
        return cr.searchsorted(sequence, values)

    return search


def pickled_search(sequence: Any, values: Any) -> Any:
    return cr.searchsorted(sequence, values)


def recorded(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [each for each in found if each.category is cr.PerformanceWarning]


def test_a_loop_is_told_once_at_the_users_line() -> None:
    mapped = cr.vmap(searching())
    (found,) = recorded(lambda: mapped(SEQUENCES, VALUES))
    assert not recorded(lambda: mapped(SEQUENCES, VALUES))
    text = str(found.message)
    assert text.startswith("vmap(searching.<locals>.search (")
    assert "searchsorted runs for each of 3 examples in turn, since it has no batching" in text
    assert text.endswith("as in (sequence < value[..., None]).sum(-1)")
    with open(__file__) as file:
        line = file.read().splitlines()[found.lineno - 1].strip()
    assert (found.filename, line) == (__file__, "return cr.searchsorted(sequence, values)")
    assert line in text


def test_what_the_warning_says_to_write_gives_the_same() -> None:
    def counted(sequence: Any, values: Any) -> Any:
        return (sequence < values[..., None]).sum(-1)

    def isin(x: Any, values: Any) -> Any:
        return (x[..., None] == values).any(-1)

    assert not recorded(lambda: cr.vmap(counted, strict=True)(SEQUENCES, VALUES))
    assert cr.vmap(counted)(SEQUENCES, VALUES).tolist() == POSITIONS
    with pytest.warns(cr.PerformanceWarning, match=r"isin .* write \(x\[..., None\] == values\)"):
        wanted = cr.vmap(lambda x, v: cr.isin(x, v))(SEQUENCES, SEQUENCES[:, 1:])
    assert cr.vmap(isin, strict=True)(SEQUENCES, SEQUENCES[:, 1:]).tolist() == wanted.tolist()


def test_strict_refuses_before_the_operation_runs() -> None:
    mapped = cr.vmap(searching(), strict=True)
    for _ in range(2):
        with pytest.raises(cr.MissingRuleError, match=r"^strict=True: vmap\(.*searchsorted runs"):
            mapped(SEQUENCES, VALUES)
    assert mapped(SEQUENCES[:1], VALUES[:1]).tolist() == POSITIONS[:1]  # one example: no loop
    nested = cr.vmap(cr.vmap(searching()), strict=True)  # also of what runs inside
    with pytest.raises(cr.MissingRuleError, match="searchsorted"):
        nested(SEQUENCES[None], VALUES[None])


def test_strict_travels_in_pickles() -> None:
    again = pickle.loads(pickle.dumps(cr.vmap(pickled_search, strict=True)))
    with pytest.raises(cr.MissingRuleError, match="searchsorted"):
        again(SEQUENCES, VALUES)
    with pytest.warns(cr.PerformanceWarning, match="searchsorted"):
        pickle.loads(pickle.dumps(cr.vmap(pickled_search)))(SEQUENCES, VALUES)


def test_an_error_in_the_place_of_the_warning_leaves_everything_usable() -> None:
    mapped = cr.vmap(searching())
    x = cr.tensor(SEQUENCES.numpy(), requires_grad=True)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", cr.PerformanceWarning)
            with pytest.raises(cr.PerformanceWarning, match="searchsorted"):
                mapped(x, VALUES)
    assert cr.vmap(lambda x: x * 2)(VALUES).tolist() == (VALUES * 2).tolist()
    (x * 2).sum().backward()
    assert x.grad.tolist() == np.full((3, 3), 2.0).tolist()
    assert recorded(lambda: mapped(x, VALUES))  # it was not told yet
    assert mapped(x, VALUES).tolist() == POSITIONS


def test_filters_by_module_and_class_apply() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="another_module")
        warnings.filterwarnings("ignore", category=cr.PerformanceWarning, module=__name__)
        cr.vmap(searching())(SEQUENCES, VALUES)
    assert not found


def test_several_threads_are_told_once() -> None:
    mapped, count = cr.vmap(searching()), 8
    barrier = threading.Barrier(count)

    def call() -> None:
        barrier.wait()
        mapped(SEQUENCES, VALUES)

    def run() -> None:
        threads = [threading.Thread(target=call) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(recorded(run)) == 1


def test_each_operation_and_each_function_is_told() -> None:
    def both(sequence: Any, values: Any) -> Any:
        return cr.searchsorted(sequence, values), cr.isin(values, sequence)

    found = recorded(lambda: cr.vmap(both)(SEQUENCES, VALUES))
    assert [str(each.message).split(": ")[1].split()[0] for each in found] == [
        "searchsorted",
        "isin",
    ]
    assert recorded(lambda: cr.vmap(searching())(SEQUENCES, VALUES))


def test_random_numbers_that_are_drawn_one_by_one_are_told() -> None:
    x = cr.full((400, 3), 8.0)
    with pytest.warns(cr.PerformanceWarning, match=r"random\.permutation .*: draw outside of vmap"):
        cr.vmap(lambda x: x[cr.randperm(3)], randomness="different")(x)


DRAWS: dict[str, tuple[Callable[[Any], Any], float]] = {  # with their mean
    "rand": (lambda x: cr.rand(3), 0.5),
    "complex": (lambda x: cr.randn(3, dtype=cr.complex64).abs() ** 2, 1.0),
    "dropout": (lambda x: cr.nn.functional.dropout(x, 0.3), 8.0),
    "randint": (lambda x: cr.randint(0, 9, (3,)).to(cr.float32), 4.0),
    "exponential": (lambda x: cr.empty(3).exponential_(0.5), 2.0),
    "geometric": (lambda x: cr.empty(3).geometric_(0.25), 4.0),
    "log_normal": (lambda x: cr.empty(3).log_normal_(0.0, 0.1), 1.005),
    "poisson of each": (lambda x: cr.poisson(x), 8.0),
    "poisson": (lambda x: cr.poisson(cr.tensor([8.0, 8.0, 8.0])), 8.0),
    "binomial": (lambda x: cr.binomial(x, cr.tensor(0.5)), 4.0),
    "bernoulli": (lambda x: cr.bernoulli(x / 16), 0.5),
    "normal": (lambda x: cr.normal(x, 1.0), 8.0),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_random_numbers_of_all_examples_are_one_draw(kind: str) -> None:
    function, mean = DRAWS[kind]
    x = cr.full((400, 3), 8.0)
    found = cr.vmap(function, randomness="different", strict=True)(x).numpy()
    assert found.shape == (400, 3)
    assert len(np.unique(found, axis=0)) > 1
    assert abs(found.mean() - mean) < 6 * found.std() / 1200**0.5
    nested = cr.vmap(cr.vmap(function, randomness="different"), randomness="different", strict=True)
    assert len(np.unique(nested(x.reshape(2, 200, 3)).numpy(), axis=0)) == 2


def test_jacobians_name_the_users_function() -> None:
    @cr.autograd_function
    def sorted_positions(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x * 2

    @sorted_positions.backward
    def _(ctx: Any, g: Any) -> Any:
        return g * 2 + 0 * cr.searchsorted(g.detach(), ctx.saved_variables.x)

    def function(x: Any) -> Any:
        return sorted_positions(x)

    x = cr.tensor([1.0, 2.0, 3.0])
    with pytest.warns(cr.PerformanceWarning, match=r"jacobian\(.*function .*: searchsorted runs"):
        found = cr.jacobian(function, mode="reverse")(x)
    assert found.tolist() == (2 * cr.eye(3)).tolist()


def test_other_loops_over_passes_are_told() -> None:
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(cr.PerformanceWarning, match=r"pass for each of 2 rows: .*cr\.vmap\(pull\)"):
        (found,) = cr.autograd_grad(x * x, x, cr.eye(2), is_grads_batched=True)
    _, pull = cr.vjp(lambda x: x * x, x.detach())
    assert cr.vmap(pull)(cr.eye(2)).tolist() == found.tolist()
    with pytest.warns(cr.PerformanceWarning, match=r"in spite of vectorize=True: cr\.jacobian"):
        cr.autograd.functional.jacobian(lambda x: x * x, x, vectorize=True)


def test_an_index_out_of_bounds_is_an_error_also_if_strict() -> None:
    index = cr.tensor([[0, 1], [1, 9]])
    with pytest.raises(IndexError, match="out of bounds"):
        cr.vmap(lambda x, i: x[i], strict=True)(SEQUENCES[:2], index)


# --- writes at index arrays and masks -------------------------------------------------------------

WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "numbers": lambda x, i, v: (slice(None), i[0]),
    "one array": lambda x, i, v: i,
    "two arrays": lambda x, i, v: (i, i[0]),
    "an array behind": lambda x, i, v: (slice(None), i),
    "arrays apart": lambda x, i, v: (i, slice(1, 3), i),
    "a new axis": lambda x, i, v: (None, i, slice(None), 0),
    "a shared array": lambda x, i, v: np.array([0, 2, 0]),
    "a shared mask": lambda x, i, v: np.array([True, False, True, True]),
    "a shared mask behind": lambda x, i, v: (slice(None), np.array([True, False, True, True])),
    "a mask of each": lambda x, i, v: x > 0.5,
    "a mask of rows": lambda x, i, v: x[:, 0, 0] > 0.5,
}


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_writes_are_those_of_each_example(kind: str, scalar: bool, compiled: bool) -> None:
    rng = np.random.default_rng(5)
    xs = cr.tensor(rng.uniform(size=(3, 4, 4, 4)))
    indices = cr.tensor(rng.integers(0, 4, (3, 3)))
    values = cr.tensor(rng.uniform(size=3))

    def write(x: Any, i: Any, v: Any) -> Any:
        out, key = x.clone(), WRITES[kind](x, i, v)
        masked = "mask of" in kind
        out[key] = v if scalar or masked else v * cr.ones(x[key].shape, dtype=cr.float64)
        return out * out

    def loss(x: Any, i: Any, v: Any) -> Any:
        return (write(x, i, v) * cr.arange(64.0, dtype=cr.float64).reshape(4, 4, 4)).sum()

    if compiled and kind.startswith("a shared mask"):
        pytest.skip("a mask is a symbol there, whose elements are not known: it is told")
    # The gradient of a value is gathered at a mask: its shape would differ between examples.
    for function in (write,) if "mask of" in kind else (write, cr.grad(loss, (0, 2))):
        mapped = cr.vmap(function, strict=True)
        mapped = cr.compile(mapped) if compiled else mapped
        found = mapped(xs, indices, values)
        for k in range(3):
            wanted = function(xs[k], indices[k], values[k])
            pairs = [(found, wanted)] if function is write else zip(found, wanted, strict=True)
            for many, one in pairs:
                np.testing.assert_allclose(many[k].numpy(), one.numpy(), rtol=1e-12)
