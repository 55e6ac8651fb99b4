"""Generators, their state, discrete distributions, and in-place draws."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf


def generator(seed=0):
    return cr.Generator().manual_seed(seed)


FLOATS = lambda: cr.zeros(2000, dtype="float64")  # noqa: E731
DRAWS = {
    "multinomial": lambda **k: cr.multinomial(cr.tensor([0.2, 0.3, 0.5]), 2000, True, **k),
    "multinomial rows": lambda **k: cr.multinomial(cr.ones(50, 9), 4, **k),
    "poisson": lambda **k: cr.poisson(cr.full((2000,), 3.0), **k),
    "binomial": lambda **k: cr.binomial(cr.full((2000,), 10.0), cr.tensor(0.3), **k),
    "randint_like": lambda **k: cr.randint_like(cr.zeros(2000), 2, 7, **k),
    "bernoulli": lambda **k: FLOATS().bernoulli(0.3, **k),
    "bernoulli_": lambda **k: FLOATS().bernoulli_(0.3, **k),
    "exponential_": lambda **k: FLOATS().exponential_(2.0, **k),
    "geometric_": lambda **k: FLOATS().geometric_(0.25, **k),
    "cauchy_": lambda **k: FLOATS().cauchy_(1.0, 2.0, **k),
    "log_normal_": lambda **k: FLOATS().log_normal_(0.0, 0.5, **k),
    "random_": lambda **k: FLOATS().random_(5, 9, **k),
    "normal_": lambda **k: FLOATS().normal_(**k),
    "uniform_": lambda **k: FLOATS().uniform_(**k),
    "rand": lambda **k: cr.rand(5, **k),
    "randn": lambda **k: cr.randn(5, **k),
    "randint": lambda **k: cr.randint(0, 27, (32,), **k),
    "randperm": lambda **k: cr.randperm(30, **k),
    "normal": lambda **k: cr.normal(0.0, 1.0, (5,), **k),
    "bernoulli function": lambda **k: cr.bernoulli(cr.full((200,), 0.5), **k),
    "rand_like": lambda **k: cr.rand_like(cr.zeros(5), **k),
    "randn_like": lambda **k: cr.randn_like(cr.zeros(5), **k),
}
draws = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())


@draws
def test_the_same_seed_gives_the_same_numbers_under_both_names(draw):
    one = draw(generator=generator())
    assert one.equal(draw(rng=generator()))
    assert one.equal(draw(rng=np.random.default_rng(0)))
    assert not one.equal(draw(generator=generator(1)))
    cr.manual_seed(0)
    assert one.equal(draw())


# name: the mean, by how much it may be off (5 standard deviations of 2000 draws)
MEANS = {
    "multinomial": (1.3, 0.09),
    "poisson": (3.0, 0.2),
    "binomial": (3.0, 0.17),
    "randint_like": (4.0, 0.16),
    "bernoulli": (0.3, 0.06),
    "bernoulli_": (0.3, 0.06),
    "exponential_": (0.5, 0.06),
    "geometric_": (4.0, 0.4),
    "log_normal_": (np.exp(0.125), 0.07),
    "random_": (6.5, 0.13),
}


@pytest.mark.parametrize("name", MEANS)
def test_means(name):
    mean, off = MEANS[name]
    drawn = DRAWS[name](generator=generator()).to(cr.float64)
    assert abs(drawn.mean().item() - mean) < off
    assert drawn.std().item() > 0.3


def test_the_median_and_the_quartiles_of_cauchy():
    drawn = DRAWS["cauchy_"](generator=generator())
    assert abs(drawn.median().item() - 1.0) < 0.4
    assert abs(drawn.quantile(0.75).item() - 3.0) < 0.7


# --- multinomial ----------------------------------------------------------------------------------


def test_draws_without_replacement_are_distinct_and_ordered_by_weight():
    weights = cr.tensor([[0.0, 1.0, 2.0, 3.0]]).repeat(3000, 1)
    drawn = cr.multinomial(weights, 3, generator=generator())
    assert drawn.shape == (3000, 3)
    assert drawn.dtype == cr.int64
    assert (drawn.sort(1).values == cr.tensor([1, 2, 3])).all()
    first = drawn[:, 0].bincount(minlength=4) / 3000
    np.testing.assert_allclose(first.numpy(), [0, 1 / 6, 2 / 6, 3 / 6], atol=0.05)
    # The second, given that 3 came first: 1 to 2.
    second = drawn[drawn[:, 0] == 3][:, 1]
    assert abs((second == 2).to(cr.float64).mean().item() - 2 / 3) < 0.07


def test_with_replacement_frequencies_are_the_weights():
    weights = cr.tensor([[1.0, 0.0, 3.0], [0.0, 8.0, 8.0]])
    drawn = cr.multinomial(weights, 4000, replacement=True, generator=generator())
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn.numpy()]) / 4000
    np.testing.assert_allclose(counts, [[0.25, 0, 0.75], [0, 0.5, 0.5]], atol=0.04)
    assert counts[0, 1] == counts[1, 0] == 0


def test_huge_and_tiny_weights():
    for weights in ([1e308, 1e308], [5e-324, 5e-324]):
        drawn = cr.multinomial(
            cr.tensor(weights, dtype="float64"), 100, True, generator=generator()
        )
        assert 0 < drawn.sum().item() < 100


class _Ends:
    """A generator of numbers at the ends of their range."""

    def __init__(self, value):
        self.value = value

    def random(self, shape):
        return np.full(shape, self.value)


@pytest.mark.parametrize(("value", "category"), [(0.0, 1), (1.0, 2)])
def test_the_ends_of_the_range_are_categories_of_weight(value, category):
    drawn = cr.multinomial(cr.tensor([0.0, 1.0, 2.0, 0.0]), 2, True, rng=_Ends(value))
    assert drawn.tolist() == [category, category]


def test_shapes_and_gradients():
    weights = leaf(np.ones(4))
    drawn = cr.multinomial(weights, 2)
    assert drawn.shape == (2,)
    assert not drawn.requires_grad
    assert cr.ones(3, 4).multinomial(4).shape == (3, 4)
    assert cr.multinomial(cr.ones(0, 4), 2, True).shape == (0, 2)
    assert cr.multinomial(cr.ones(0, 4), 2).shape == (0, 2)


MULTINOMIAL_ERRORS = {
    "ints": (lambda: cr.multinomial(cr.tensor([1, 2]), 1), "only supports floating-point dtypes"),
    "dims": (lambda: cr.multinomial(cr.ones(1, 2, 3), 1), "prob_dist must be 1 or 2 dim"),
    "number": (lambda: cr.multinomial(cr.ones(3), 0), "cannot sample n_sample <= 0 samples"),
    "negative": (lambda: cr.multinomial(cr.tensor([-1.0, 2.0]), 1), "element < 0"),
    "nan": (lambda: cr.multinomial(cr.tensor([cr.nan, 2.0]), 1), "either `inf`, `nan`"),
    "zeros": (lambda: cr.multinomial(cr.zeros(3), 1), r"sum of probabilities <= 0"),
    "too many": (lambda: cr.multinomial(cr.tensor([1.0, 0.0]), 2), "not enough non-negative"),
}


@pytest.mark.parametrize("name", MULTINOMIAL_ERRORS)
def test_multinomial_errors(name):
    call, text = MULTINOMIAL_ERRORS[name]
    with pytest.raises((ValueError, cr.DTypeError, cr.ShapeError), match=text):
        call()
    torch = pytest.importorskip("torch")
    weights = {
        "ints": torch.tensor([1, 2]),
        "dims": torch.ones(1, 2, 3),
        "number": torch.ones(3),
        "negative": torch.tensor([-1.0, 2.0]),
        "nan": torch.tensor([torch.nan, 2.0]),
        "zeros": torch.zeros(3),
    }
    if name in weights:
        with pytest.raises(RuntimeError):
            torch.multinomial(weights[name], 0 if name == "number" else 1)


# --- the others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_are_kept(dtype):
    p = cr.full((3,), 0.5, dtype=dtype)
    for drawn in (cr.poisson(p), cr.binomial(p * 8, p), cr.randint_like(p, 3), p.bernoulli()):
        assert drawn.dtype == dtype
        assert drawn.shape == (3,)
    assert cr.randint_like(p, 3, dtype=cr.int64).dtype == cr.int64
    for name in ("exponential_", "cauchy_", "log_normal_", "bernoulli_", "random_"):
        x = p.clone()
        assert getattr(x, name)() is x
        assert x.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "float32"])
def test_random_without_bounds_covers_the_dtype(dtype):
    drawn = cr.zeros(5000, dtype=dtype).random_(generator=generator()).to(cr.float64)
    largest = {"bool": 1, "float16": 2**11, "float32": 2**24}.get(dtype) or np.iinfo(dtype).max
    assert drawn.min().item() >= 0
    assert 0.9 * largest <= drawn.max().item() <= largest
    assert cr.zeros(50, dtype="int64").random_(3).max().item() <= 2


def test_bernoulli_takes_probabilities_of_each_element():
    x = cr.zeros(2, 3, dtype="int64")
    assert x.bernoulli_(cr.tensor([0.0, 1.0, 1.0])).tolist() == [[0, 1, 1]] * 2
    assert cr.tensor([0.0, 1.0]).bernoulli().tolist() == [0.0, 1.0]
    assert cr.zeros(2).bernoulli(1.0).tolist() == [1.0, 1.0]


def test_filling_is_a_write():
    x = leaf([1.0, 2.0])
    y = x * 1
    version = y._version
    y.exponential_()
    assert y._version == version + 1
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    with pytest.raises(cr.InPlaceError, match="a leaf Variable that requires grad"):
        x.random_(3)


ERRORS = {
    "poisson": (lambda: cr.poisson(cr.tensor([-1.0])), "expected rate to be non-negative"),
    "poisson ints": (lambda: cr.poisson(cr.tensor([1])), "poisson only supports floating-point"),
    "trials": (lambda: cr.binomial(cr.tensor([-1.0]), cr.tensor([0.5])), "that are not negative"),
    "chance": (lambda: cr.binomial(cr.tensor([1.0]), cr.tensor([1.5])), r"to be in \[0, 1\]"),
    "exponential": (lambda: cr.zeros(1).exponential_(0), "expects lambda > 0.0"),
    "exponential ints": (lambda: cr.zeros(1, dtype=int).exponential_(), "exponential_ is only"),
    "geometric": (lambda: cr.zeros(1).geometric_(1.0), r"expects p to be in \(0, 1\)"),
    "cauchy": (lambda: cr.zeros(1).cauchy_(0, -1), "cauchy_ expects sigma > 0.0"),
    "log_normal": (lambda: cr.zeros(1).log_normal_(0, 0), "log_normal_ expects std > 0.0"),
    "random": (lambda: cr.zeros(1).random_(3, 3), "expects 'from' to be less than 'to'"),
    "state": (lambda: cr.set_rng_state(3), r"expected the result of get_state\(\), but got int"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises((ValueError, TypeError, RuntimeError), match=text):
        call()


# --- generators -----------------------------------------------------------------------------------


def test_the_state_of_the_default_generator():
    cr.manual_seed(5)
    cr.rand(3)
    state = cr.get_rng_state()
    one = cr.rand(3)
    cr.manual_seed(6)
    cr.set_rng_state(state)
    assert cr.initial_seed() == 5
    assert cr.rand(3).equal(one)
    assert cr.seed() == cr.initial_seed()
    assert cr.seed() != cr.seed()


def test_the_state_is_a_copy():
    g = generator()
    state = g.get_state()
    one = g.random(5)
    g.set_state(state)
    np.testing.assert_array_equal(g.random(5), one)
    g.set_state(state)
    np.testing.assert_array_equal(g.random(5), one)


def test_generators_are_numpys():
    g = generator(3)
    assert isinstance(g, np.random.Generator)
    assert (g.initial_seed(), str(g.device)) == (3, "cpu")
    np.testing.assert_array_equal(g.random(4), np.random.default_rng(3).random(4))
    assert cr.Generator(device="cpu").initial_seed() != cr.Generator().initial_seed()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_continues_from_the_same_state(copied):
    g = generator(4)
    g.random(7)
    other = copied(g)
    assert other.initial_seed() == 4
    np.testing.assert_array_equal(other.random(3), g.random(3))


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "randint_like"])
def test_like_functions_take_a_device(name):
    bounds = (3,) if name == "randint_like" else ()
    drawn = getattr(cr, name)(cr.zeros(2), *bounds, dtype=cr.float64, device="cpu")
    assert (drawn.shape, drawn.dtype, str(drawn.device)) == ((2,), cr.float64, "cpu")
