"""Results in single precision have NumPy's dtypes: beside numbers, scalars, lists and integers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy

EXPRESSIONS = """
    np.atleast_2d(x, (1, 2))
    np.atleast_1d(x, 3)
    np.meshgrid(x, [1, 2])
    np.broadcast_arrays(x, 1)
    np.diff(x, prepend=0)
    np.diff(x, append=i)
    np.vander(x)
    np.polyder(x)
    np.polyint(x, k=[1])
    np.polyval(x, 2)
    np.polyval([1, 2], x)
    np.polyadd(x, [1, 2])
    np.geomspace(x[0], 3, 3)
    np.linspace(x[0], 3, 3)
    np.logspace(0, x[1], 3)
    np.arange(x[0], 3)
    np.percentile(x, 50)
    np.percentile(x, [50, 20])
    np.quantile(x, np.float64(0.5))
    np.quantile(x, np.float32(0.5))
    np.nanquantile(x, [0.5], axis=0)
    np.average(x, weights=[1, 2, 3])
    np.trapezoid(x, dx=0.5)
    np.trapezoid(x, dx=np.float64(0.5))
    np.gradient(x, 2)
    np.gradient(x, i)
    np.interp(x, x, x)
    np.interp(0.5, [0, 1], np.stack([x[0], x[1]]))
    np.convolve(x, [1, 2])
    np.cov(x)
    np.bincount(i, x)
    np.histogram(x, weights=x)
    np.histogram2d(x, x, weights=x)
    np.where(x > 1, x, 0.0)
    np.where(x > 1, x, np.float64(1))
    np.select([x > 1], [x], 2)
    np.choose([0, 1, 0], [x, 1.0])
    np.clip(x, 0, 2.0)
    np.clip(x, np.float64(0), 1)
    np.append(x, 3)
    np.insert(x, 0, 3.0)
    np.array([x[0], 1.0])
    np.array([x, i])
    np.hstack([x, 1])
    np.block([x, 1])
    np.r_[x, 1]
    np.r_[x, 1.0, 2:3]
    np.r_[x, i]
    np.c_[x, i]
    np.full_like(i, x[0])
    np.full_like(x, 3)
    np.dot(x, [1, 2, 3])
    np.outer(x, [1, 2])
    np.cross(x, [1, 2, 3])
    np.einsum("i,i->i", x, [1, 2, 3])
    np.sum(x, initial=1)
    np.max(x, initial=0)
    np.sum([x[0], 1])
    np.sort_complex(x)
    np.average(x, weights=[1, 2, 3], returned=True)
    np.quantile(x, [0.5], method="nearest")
    np.histogram2d(x, i, 3, density=True)
    np.where(x, np.float32(1), i)
    np.linalg.lstsq(np.diag(x), i, rcond=None)
    np.fft.fftfreq(3, x[0])
""".strip().splitlines()


def dtypes(result: Any) -> Any:
    """Return the dtypes of the parts of a result."""
    if isinstance(result, tuple | list):
        return [dtypes(part) for part in result]
    return result.dtype


@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS])
def test_single_precision_has_numpys_dtypes(expression):
    found = []
    for np, x in [(numpy, numpy.float32([1, 2, 3])), (chainrule.numpy, chainrule.numpy.ones(3))]:
        x = np.array(x, np.float32)
        if np is not numpy:
            x = np.copy(x.requires_grad_())
        found.append(dtypes(eval(expression, {"np": np, "x": x, "i": numpy.arange(3)})))
    assert found[1] == found[0]


def test_tensors_keep_single_precision():
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for result in (numpy.vander(x), numpy.polyder(x), numpy.append(x, 3), numpy.cov(x)):
        assert result.dtype == numpy.float32


@pytest.mark.parametrize(
    ("x", "xp", "fp", "slopes"),
    [
        (0.5, [-numpy.inf, numpy.inf], [10.0, 10.0], [1, 0]),
        (0.5, [-numpy.inf, 1.0], [0.0, 10.0], [0, 1]),
        (0.5, [0.0, numpy.inf], [0.0, 10.0], [1, 0]),
        (4.0, [1.0, 3.0, 4.0], [0.0, numpy.inf, 4.0], [0, 0, 1]),
        (1.0, [1.0, 3.0, 4.0], [2.0, numpy.inf, 4.0], [1, 0, 0]),
        (0.5, [0.0, 1.0], [0.0, numpy.inf], None),
        (0.5, [0.0, 1.0], [-numpy.inf, numpy.inf], None),
        (numpy.nan, [0.0, 1.0], [2.0, 2.0], None),
        (0.5, [0.0, 1.0], [complex(0, 1), complex(numpy.inf, 2)], None),
    ],
)
def test_interp_beside_infinite_points(x, xp, fp, slopes):
    def f(fp):
        return chainrule.numpy.interp(x, xp, fp)

    expected = numpy.interp(x, xp, fp)
    for function in (f, cr.compile(f)):
        result = function(cr.numpy.array(fp).requires_grad_())
        numpy.testing.assert_array_equal(numpy.asarray(cr.tensor(result).detach()), expected)
    if slopes:
        assert cr.grad(f)(numpy.array(fp)).tolist() == slopes


@pytest.mark.parametrize("p", [None, -2, 1, "fro"])
def test_the_condition_of_zeros_is_infinite(p):
    zeros = chainrule.numpy.zeros((2, 2, 2)).requires_grad_()
    found = chainrule.numpy.linalg.cond(zeros, p)
    assert found.tolist() == numpy.linalg.cond(numpy.zeros((2, 2, 2)), p).tolist()
    with pytest.raises(numpy.linalg.LinAlgError, match=r"cond is not defined on empty arrays"):
        chainrule.numpy.linalg.cond(zeros[:, :0])


@pytest.mark.parametrize("name", ["multiply", "divide", "maximum", "logaddexp"])
def test_ufuncs_at_repeated_places_take_their_turns(name):
    def f(a, x):
        a = chainrule.numpy.array(a)
        getattr(chainrule.numpy, name).at(a, [1, 0, 1, 1], x)
        return a

    a, x = numpy.array([1.5, 0.8]), numpy.array([0.7, 2.0, 1.3, 2.5])
    expected = a.copy()
    getattr(numpy, name).at(expected, [1, 0, 1, 1], x)
    numpy.testing.assert_array_equal(f(a, x), expected)
    assert cr.gradcheck(f, [cr.tensor(each, requires_grad=True) for each in (a, x)])


def test_ufuncs_at_keep_real_numbers_real():
    def f(x):
        a = chainrule.numpy.ones(2)
        chainrule.numpy.multiply.at(a, [0], 1j * x)
        return a.sum()

    with pytest.raises(TypeError, match=r"got Double and ComplexDouble"):
        cr.grad(f)(2.0)


def test_elements_at_the_edges_are_counted_as_numpy_does():
    x = numpy.array([1.0, 3.0, 2.0, 0.0, 3.0, 1.5, 4.5])
    recorded = chainrule.numpy.copy(chainrule.numpy.array(x).requires_grad_())
    for bins in range(1, 16):
        counts, edges = numpy.histogram(x, bins)
        found = chainrule.numpy.histogram(recorded, bins)
        numpy.testing.assert_array_equal(found[0], counts)
        numpy.testing.assert_array_equal(found[1].detach().numpy(), edges)


def test_an_axis_by_position_is_no_out_argument():
    np, x = chainrule.numpy, numpy.ones((2, 2))
    slopes = cr.grad(lambda a: (np.concatenate((x, a), 1) ** 2).sum())(x)
    assert slopes.tolist() == [[2, 2], [2, 2]]
    into = np.empty((2, 4))
    assert np.concatenate((x, x), 1, into) is into


def test_unsigned_coordinates_and_integer_values():
    np = chainrule.numpy
    x = np.copy(np.array([1.0, 2.0, 4.0]).requires_grad_())
    assert np.gradient(x, numpy.array([3, 2, 1], "u1")).tolist() == [-1, -1.5, -2]
    assert np.delete(x, ()).tolist() == [1, 2, 4]
    np.add.at(x, [0, 0], 1)
    np.subtract.at(x, [1, 1], numpy.array([1, 2]))
    assert x.tolist() == [3, -1, 4]


def test_frequencies_by_the_sample_spacing():
    np = chainrule.numpy
    assert cr.grad(lambda d: np.fft.fftfreq(4, d)[1])(0.5) == -1.0
    assert cr.grad(lambda d: np.fft.rfftfreq(4, d=d)[2])(0.5) == -2.0
