"""Random tensors: rand, randn, randint, randperm, normal, bernoulli."""

import numpy as np
import pytest

import chainrule as cr


def generator():
    return np.random.default_rng(0)


DRAWS = {
    "rand": lambda **k: cr.rand(2, 3, **k),
    "randn": lambda **k: cr.randn((2, 3), **k),
    "randint": lambda **k: cr.randint(0, 10, (2, 3), **k),
    "randperm": lambda **k: cr.randperm(6, **k),
    "normal": lambda **k: cr.normal(0.0, 1.0, (2, 3), **k),
    "bernoulli": lambda **k: cr.bernoulli(cr.full((2, 3), 0.5), **k),
    "rand_like": lambda **k: cr.rand_like(cr.zeros(2, 3), **k),
    "randn_like": lambda **k: cr.randn_like(cr.zeros(2, 3), **k),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_generator_gives_the_same_numbers(name):
    assert DRAWS[name](rng=generator()).equal(DRAWS[name](rng=generator()))
    rng = generator()
    assert not DRAWS[name](rng=rng).equal(DRAWS[name](rng=rng)) or name == "bernoulli"


@pytest.mark.parametrize("name", DRAWS)
def test_the_default_generator_is_seeded(name):
    first = cr.manual_seed(7)
    one = DRAWS[name]()
    assert cr.manual_seed(7) is first
    assert one.equal(DRAWS[name]())
    assert isinstance(first, np.random.Generator)


def test_manual_seed_gives_what_a_new_generator_would():
    cr.manual_seed(3)
    expected = np.random.default_rng(3).random(4, dtype=np.float32)
    np.testing.assert_array_equal(cr.rand(4).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_dtypes(name, dtype):
    t = getattr(cr, name)(3, 4, dtype=dtype, rng=generator())
    assert t.dtype == dtype
    assert t.shape == (3, 4)
    assert t.is_contiguous() or t.is_complex()


def test_single_precision_is_drawn_in_single_precision():
    expected = generator().standard_normal(5, dtype=np.float32)
    np.testing.assert_array_equal(cr.randn(5, rng=generator()).numpy(), expected)


def test_integers_are_not_drawn_by_rand():
    for draw in (cr.rand, cr.randn):
        with pytest.raises(cr.DTypeError, match=r"are drawn by randint\(\)"):
            draw(3, dtype=cr.int64)


def test_moments():
    x = cr.randn(100_000, rng=generator())
    assert x.mean().item() == pytest.approx(0, abs=0.02)
    assert x.std().item() == pytest.approx(1, abs=0.02)
    z = cr.randn(100_000, dtype=cr.complex64, rng=generator())
    assert z.var().item() == pytest.approx(1, abs=0.02)
    u = cr.rand(100_000, rng=generator())
    assert u.min().item() >= 0
    assert u.max().item() < 1
    assert u.mean().item() == pytest.approx(0.5, abs=0.01)


def test_randint():
    x = cr.randint(3, 6, (1000,), rng=generator())
    assert set(x.tolist()) == {3, 4, 5}
    assert x.dtype == cr.int64
    assert set(cr.randint(2, (1000,), rng=generator()).tolist()) == {0, 1}
    assert cr.randint(0, 5, (2,), dtype=cr.float32).dtype == cr.float32
    with pytest.raises(ValueError, match="randint expects low < high, but got: 3 >= 3"):
        cr.randint(3, 3, (2,))
    with pytest.raises(TypeError, match="needs a size"):
        cr.randint(3)


def test_randperm():
    x = cr.randperm(100, rng=generator())
    assert sorted(x.tolist()) == list(range(100))
    assert x.dtype == cr.int64
    assert cr.randperm(0).shape == (0,)


def test_normal_takes_tensors():
    mean, std = cr.tensor([0.0, 1000.0]), cr.tensor([[1.0], [0.0]])
    x = cr.normal(mean, std, rng=generator())
    assert x.shape == (2, 2)
    assert x[1].tolist() == [0, 1000]
    assert cr.normal(cr.zeros(2, dtype=cr.float64)).dtype == cr.float64
    assert not cr.normal(cr.zeros(2, requires_grad=True)).requires_grad
    with pytest.raises(ValueError, match=r"normal expects std >= 0\.0, but found -1\.0"):
        cr.normal(0.0, -1.0, (2,))


def test_bernoulli():
    p = cr.tensor([0.0, 0.25, 1.0]).expand(10_000, 3)
    x = cr.bernoulli(p, rng=generator())
    assert x.dtype == cr.float32
    assert x.mean(0).tolist() == pytest.approx([0, 0.25, 1], abs=0.02)
    with pytest.raises(ValueError, match=r"all probabilities to be in \[0, 1\]"):
        cr.bernoulli(cr.tensor([1.5]))
    with pytest.raises(cr.DTypeError, match="expects probabilities of a floating dtype"):
        cr.bernoulli(cr.tensor([1]))


def test_likes_take_shape_dtype_and_device():
    x = cr.zeros(2, 3, dtype=cr.float64)
    for like in (cr.rand_like, cr.randn_like):
        assert like(x).shape == (2, 3)
        assert like(x).dtype == cr.float64
        assert like(x, dtype=cr.float32, requires_grad=True).requires_grad


def test_a_negative_seed_is_one_of_the_large_ones():
    cr.manual_seed(-2)
    drawn = cr.rand(3)
    assert cr.initial_seed() == 2**64 - 2
    cr.manual_seed(2**64 - 2)
    assert cr.rand(3).equal(drawn)


@pytest.mark.parametrize(
    ("arguments", "settings", "bounds"),
    [
        ((3, (50,)), {}, (0, 2)),
        ((3,), {"size": (50,)}, (0, 2)),
        ((), {"high": 3, "size": (50,)}, (0, 2)),
        ((2, 4, (50,)), {}, (2, 3)),
        ((2, 4), {"size": (50,)}, (2, 3)),
        ((), {"low": 2, "high": 4, "size": [50]}, (2, 3)),
        ((-2, 0, (50,)), {}, (-2, -1)),
    ],
)
def test_bounds_of_integers_in_all_spellings(arguments, settings, bounds):
    cr.manual_seed(0)
    drawn = cr.randint(*arguments, **settings)
    assert drawn.shape == (50,)
    assert (drawn.min().item(), drawn.max().item()) == bounds


def test_integers_like_others_in_all_spellings():
    x = cr.zeros(50)
    for drawn in (cr.randint_like(x, 3), cr.randint_like(x, high=3), cr.randint_like(x, 0, 3)):
        assert (drawn.min().item(), drawn.max().item()) == (0, 2)


def test_integers_need_a_bound_and_a_size():
    for arguments in ((3,), ()):
        with pytest.raises(TypeError, match=r"randint\(\) needs a size and a bound"):
            cr.randint(*arguments)
    with pytest.raises(TypeError, match=r"randint\(\) needs a size and a bound"):
        cr.randint(size=(3,))
