"""NumPy's and SciPy's ufuncs, called on tensors."""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import operation
from chainrule.ops.ufuncs import METHODS, REFUSED, WITHOUT_GRADIENT
from chainrule.scipy.special.ufunc import UFUNCS as DECLARED

UFUNCS = {u.__name__: u for u in vars(np).values() if type(u) is np.ufunc}
RECORDED = {UFUNCS[name] for name in operation.UFUNCS if name in UFUNCS}

_INTEGERS = ("gcd", "lcm", "left_shift", "right_shift", "bitwise_count")
_TRUTHS = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert")
_MATRICES = {"matmul": ((2, 3), (3, 2)), "matvec": ((2, 3), (3,)), "vecmat": ((2,), (2, 3))}


def _inputs(ufunc: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    name = ufunc.__name__
    if name in _INTEGERS:
        return [rng.integers(1, 6, 4) for _ in range(ufunc.nin)]
    if name in _TRUTHS:
        return [rng.integers(0, 2, 4) > 0 for _ in range(ufunc.nin)]
    shapes = _MATRICES.get(name, ((2, 3),) * ufunc.nin)
    low = 1.2 if name == "arccosh" else 0.2
    arrays = [rng.uniform(low, low + 0.7, shape) for shape in shapes]
    if name == "ldexp":
        arrays[1] = rng.integers(-3, 3, (2, 3))
    return arrays


def test_every_ufunc_of_numpys_has_one_entry():
    tables = [set(RECORDED), set(WITHOUT_GRADIENT), set(REFUSED)]
    assert set(UFUNCS.values()) == set.union(*tables)
    assert sum(map(len, tables)) == len(UFUNCS)


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_a_ufunc_on_a_tensor_gives_numpys_values(name):
    ufunc = UFUNCS[name]
    if ufunc in REFUSED:
        with pytest.raises(TypeError, match=f"np.{name} on a Tensor: {REFUSED[ufunc]}"):
            ufunc(cr.ones(2))
        return
    arrays = _inputs(ufunc)
    wanted = ufunc(*arrays)
    got = ufunc(*[cr.tensor(a) for a in arrays])
    for ours, theirs in zip(
        got if ufunc.nout > 1 else (got,), wanted if ufunc.nout > 1 else (wanted,), strict=True
    ):
        assert isinstance(ours, cr.Tensor)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)
        assert (ours.dtype.kind == "b") == (theirs.dtype.kind == "b")


@pytest.mark.parametrize(
    "name", sorted(n for n, u in UFUNCS.items() if u in RECORDED and n not in _INTEGERS + _TRUTHS)
)
def test_a_recorded_ufunc_has_its_derivative(name):
    ufunc = UFUNCS[name]
    arrays = _inputs(ufunc)
    leaves = [cr.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    got = ufunc(*leaves)
    outputs = got if ufunc.nout > 1 else (got,)
    if not any(out.requires_grad for out in outputs):
        assert all(out.dtype.kind in "biu" for out in outputs)
        return
    kept = [i for i, out in enumerate(outputs) if out.requires_grad]

    def function(*xs: cr.Tensor) -> tuple[cr.Tensor, ...]:
        result = ufunc(*xs)
        return tuple(result[i] for i in kept) if ufunc.nout > 1 else (result,)

    assert cr.gradcheck(function, tuple(leaves), fast_mode=True)


def test_piecewise_constant_ufuncs_carry_no_gradient():
    x = cr.tensor([1.0, 3.0], requires_grad=True)
    assert not np.spacing(x).requires_grad
    assert np.spacing(x).dtype == cr.float32
    assert np.bitwise_count(cr.tensor([3, 4])).tolist() == [2, 1]


# --- methods --------------------------------------------------------------------------------------

X = np.random.default_rng(1).uniform(0.5, 2, (2, 3, 2))


@pytest.mark.parametrize(
    ("ufunc", "settings"),
    [
        (ufunc, settings)
        for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp)
        for settings in ({}, {"axis": 1}, {"axis": None}, {"axis": (0, 2)}, {"keepdims": True})
    ],
    ids=lambda value: value.__name__ if isinstance(value, np.ufunc) else str(value),
)
def test_reductions(ufunc, settings):
    x = cr.tensor(X, requires_grad=True)
    out = ufunc.reduce(x, **settings)
    np.testing.assert_allclose(out.detach().numpy(), ufunc.reduce(X, **settings), rtol=1e-13)
    assert cr.gradcheck(lambda t: ufunc.reduce(t, **settings), x, fast_mode=True)


def test_reductions_of_truths():
    x = cr.tensor([[True, False], [True, True]])
    assert np.logical_and.reduce(x).tolist() == [True, False]
    assert np.logical_or.reduce(x, axis=1).tolist() == [True, True]


@pytest.mark.parametrize(
    "ufunc",
    [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp],
    ids=lambda ufunc: ufunc.__name__,
)
def test_running_reductions(ufunc):
    x = cr.tensor(X, requires_grad=True)
    for settings in ({}, {"axis": -1}):
        out = ufunc.accumulate(x, **settings)
        np.testing.assert_allclose(out.detach().numpy(), ufunc.accumulate(X, **settings))
        assert cr.gradcheck(lambda t, s=settings: ufunc.accumulate(t, **s), x, fast_mode=True)


@pytest.mark.parametrize("ufunc", [np.add, np.hypot, np.greater], ids=["add", "hypot", "greater"])
def test_outer(ufunc):
    a, b = X[0], X[1, :2, 0]
    got = ufunc.outer(cr.tensor(a), cr.tensor(b))
    np.testing.assert_allclose(got.numpy(), ufunc.outer(a, b))
    mixed = ufunc.outer(a, cr.tensor(b))
    np.testing.assert_allclose(mixed.numpy(), ufunc.outer(a, b))


def test_methods_without_a_rule_say_so():
    x = cr.ones(3)
    for method, _ in METHODS:
        assert method in RECORDED
    with pytest.raises(TypeError, match=r"np\.add\.reduceat has no derivative rule"):
        np.add.reduceat(x, [0, 1])
    with pytest.raises(TypeError, match=r"np\.matmul\.outer has no derivative rule|signature"):
        np.matmul.outer(x, x)
    with pytest.raises(TypeError, match=r"np\.add\.at writes into an array.*index_add"):
        np.add.at(np.zeros(3), [0, 0], x[:2])
    with pytest.raises(TypeError, match=r"np\.add\.at writes into an array"):
        np.add.at(x, [0], 1.0)
    with pytest.raises(TypeError, match="cannot reduce on a scalar"):
        np.add.reduce(cr.tensor(1.0))


# --- keywords -------------------------------------------------------------------------------------


def test_refused_keywords_say_what_to_do_instead():
    x, room = cr.ones(2), np.zeros(2)
    with pytest.raises(
        TypeError, match=r"np\.exp on a Tensor takes no out: .*chainrule\.exp.*copy_"
    ):
        np.exp(x, out=room)
    with pytest.raises(TypeError, match=r"takes no where: .*chainrule\.where"):
        np.add(x, x, where=np.array([True, False]))
    with pytest.raises(TypeError, match=r"takes no dtype: .*astype"):
        np.add(x, x, dtype=np.float64)
    with pytest.raises(TypeError, match=r"add\.reduce .* takes no initial: call chainrule\.sum,"):
        np.add.reduce(x, initial=3.0)
    with pytest.raises(TypeError, match="takes no out"):
        operator.iadd(room, x)
    assert room.tolist() == [0, 0]


def test_keywords_with_their_default_are_accepted():
    x = cr.ones(2)
    assert np.add(x, x, where=True).tolist() == [2, 2]
    assert np.add.reduce(x, out=None, dtype=None, keepdims=False).item() == 2


# --- SciPy's --------------------------------------------------------------------------------------

special = pytest.importorskip("scipy.special")

_NAMED = sorted(
    name
    for name in operation.SCIPY_UFUNCS
    if type(getattr(special, name, None)) is np.ufunc and name not in DECLARED
)


def test_the_table_names_ufuncs_that_there_are():
    assert set(operation.SCIPY_UFUNCS) - set(_NAMED) - set(DECLARED) <= {"_zeta"}


@pytest.mark.parametrize("name", _NAMED)
def test_scipys_ufuncs_are_recorded(name):
    ufunc = getattr(special, name)
    rng = np.random.default_rng(7)
    low, high = (1.0, 2.0) if name[0] in "yk" else (0.2, 0.8)
    arrays = [rng.uniform(low, high, 4) for _ in range(ufunc.nin)]
    leaves = [cr.tensor(a, requires_grad=True) for a in arrays]
    out = ufunc(*leaves)
    np.testing.assert_allclose(out.detach().numpy(), ufunc(*arrays), rtol=1e-12)
    assert cr.gradcheck(ufunc, tuple(leaves), fast_mode=True)
    assert cr.gradgradcheck(ufunc, tuple(leaves), fast_mode=True)


def test_scipys_zeta_and_sinc_are_found_too():
    x = cr.tensor([0.3, 1.5], dtype=cr.float64, requires_grad=True)
    np.testing.assert_allclose(special.zeta(2.0, x).detach().numpy(), special.zeta(2.0, [0.3, 1.5]))
    assert cr.gradcheck(special.sinc, x, fast_mode=True)


def test_a_derivative_of_scipys_that_is_missing_says_so():
    x = cr.tensor([2.5], requires_grad=True)
    with pytest.raises(cr.AutogradError, match=r"derivative of zeta for x is not implemented"):
        special.zeta(x, 1.0).sum().backward()


def test_scipy_is_not_imported_for_this():
    code = """
import sys
import numpy as np
import chainrule as cr
x = cr.tensor([0.5])
np.sin(x), np.hypot(x, x)
mine = np.frompyfunc(abs, 1, 1)
try:
    mine(x)
except TypeError as error:
    assert "has no derivative rule" in str(error)
assert "scipy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
