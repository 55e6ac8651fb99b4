"""`chainrule.imported`: libraries of plain NumPy run anew on arrays that record."""

from __future__ import annotations

import importlib
import pickle
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr

for needed in ("scipy", "autograd.numpy"):  # `tests/autograd` has the name `autograd`, too
    pytest.importorskip(needed)

LAYERS = """
import cmath
import math
import pkgutil
import sys
import numpy
import numpy as np
import numpy.linalg as la
import opticks.units
from math import exp, log
from numpy import asarray, pi
from numpy.typing import ArrayLike, NDArray
from numba import guvectorize, njit, prange, vectorize
from autograd import value_and_grad
import autograd.numpy as anp
from scipy import optimize, special, stats
from scipy.linalg import block_diag
from . import fast, units
from .units import METRE as M

def atleast(x: ArrayLike | None) -> NDArray | np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.atleast_1d(np.asarray(x, float))

def arrays(x):
    out = np.zeros((2, len(x)))
    out[0] = np.ascontiguousarray(x, dtype=float) * M
    out[1] = numpy.array([x[0], float(x[1])]) + opticks.units.shift(x)
    return out.sum() + asarray(x)[0] ** 2

def numbers(x):
    first, second = float(x[0]), x[1]
    phase = cmath.exp(1j * first * pi)
    return exp(first) * math.sqrt(second) + log(second, 3) + math.atan2(first, second) + abs(phase)

def as_scalars(x):
    first = np.float64(x[0])
    listed = x[1:].tolist()[0] * np.stack([x, x]).tolist()[1][0]
    return first * x[1:].sum().item() + np.ma.isMaskedArray(x) + of_elements(x).sum() + listed

@vectorize
def of_elements(x):
    return x**2 if x > 0.5 else 0.0

@guvectorize(["f8[:], f8[:]"], "(n)->()")
def written_to(x, out):
    out[0] = x.sum()

def functions(x):
    x = atleast(x)
    upper = stats.norm._cdf(x) + stats.norm.sf(x, scale=2.0) + special.gamma(x) + special.expit(x)
    matrix = block_diag(1.0, 2.0) + np.outer(x, x)
    return upper.sum() + la.det(matrix) + math.lgamma(x[0])

@njit
def summed(x):
    total = 0.0
    for i in prange(x.shape[0]):
        total += x[i] ** 2
    return total

@njit("f8(f8[:])", cache=True)
def signed(x):
    return summed(x) * x[0]

class Layer:
    def __init__(self, thickness):
        self.thickness = np.array(thickness, dtype=float)
        if not isinstance(self.thickness, np.ndarray):
            raise TypeError

    def passed(self):
        return self.thickness.prod()

def solved(x):
    friction = optimize.brentq(lambda f: f**3 + f - float(x[0]), 0.0, 5.0)
    return friction + optimize.fsolve(lambda z, c: np.array([z[0] ** 3 - c]), [1.0], (x[1],))[0]

def checked(x):
    first, whole = x[0], 2
    if not (isinstance(first, float) and isinstance(first, (int, np.floating))):
        raise TypeError("the first must be a number")
    if isinstance(first, int) or isinstance(x, float) or not isinstance(whole, int):
        raise TypeError("kinds are wrong")
    metre = sys.modules["opticks.units"].METRE
    sys.modules["opticks.names"] = sys.modules[__name__]
    root, report = optimize.newton(
        func=lambda f, c: f**3 + f - c, x0=1.0, args=[first], full_output=True
    )
    return metre * root * round(x[1], 1) + x[1] * report.converged

def terms(x):
    # an expansion of as many terms as the argument asks for
    count = int(3.0 * x[0] + 2.0) + math.floor(x[1]) + math.ceil(x[0]) - math.trunc(x[1])
    return sum(x[0] ** k / (k + x[1]) for k in range(count)) + (x[1] - int(x[1])) ** 2

def counted(count):
    # of compiled code, for which SciPy takes differences
    target = lambda p: fast.double(np.asarray(p, float))[1].sum() ** 2 + np.sum((p - 1.0) ** 2)
    return optimize.minimize(target, np.zeros(count)).x

def of_hips(x):
    return float(value_and_grad(lambda v: anp.sum(anp.sin(v)))(x)[0])

def of_class(x):
    return Layer(x).passed()

def table():
    return pkgutil.get_data(__name__, "index.txt").decode()

def plain(x):
    return isinstance(float(x), float) and float("2") == 2.0 and math.floor(2.5) == 2
"""
UNITS = """
import numpy as np
METRE = 2.0

def shift(x):
    return np.array([x[0] * METRE, 0.0])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Yield the library as Python imports it."""
    folder: Path = tmp_path_factory.mktemp("installed") / "site-packages"
    package = folder / "opticks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from opticks.layers import Layer\n")
    (package / "layers.py").write_text(LAYERS)
    (package / "units.py").write_text(UNITS)
    (folder / "lenses.py").write_text("from opticks.units import shift\n")
    (package / "index.txt").write_text("1.5")
    (package / "fast.py").write_text("def double(x):\n    return x.__class__, 2 * x\n")
    py_compile.compile(str(package / "fast.py"), str(package / "fast.pyc"))
    (package / "fast.py").unlink()
    sys.path.insert(0, str(folder))
    # The library asks for Numba, which need not be there to import the library anew.
    numba: Any = ModuleType("numba")
    numba.prange, numba.njit = range, lambda f, **_: f if callable(f) else lambda f: f
    numba.vectorize, numba.guvectorize = np.vectorize, lambda *_, **__: lambda f: f
    before = dict(sys.modules)
    sys.modules["numba"] = numba
    try:
        yield importlib.import_module("opticks.layers")
    finally:
        sys.path.remove(str(folder))
        for name in [*sys.modules.keys() - before.keys()]:
            if "opticks" in name or "lenses" in name:
                del sys.modules[name]
        sys.modules.pop("numba")
        if "numba" in before:
            sys.modules["numba"] = before["numba"]


@pytest.fixture(scope="module")
def anew(library: ModuleType) -> ModuleType:
    return importlib.import_module("chainrule.imported.opticks.layers")


NAMES = [
    "arrays",
    "as_scalars",
    "numbers",
    "functions",
    "signed",
    "of_class",
    "solved",
    "checked",
    "of_hips",
    "terms",
]
COMPILED = [name for name in NAMES[:-4] if name != "as_scalars"]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_library(
    name: str, library: ModuleType, anew: ModuleType
) -> None:
    x, step = np.array([0.4, 0.7]), 1e-6
    original, ours = getattr(library, name), getattr(anew, name)
    steps = step * np.eye(2)
    expected = [(original(x + h) - original(x - h)) / (2 * step) for h in steps]
    assert np.allclose(ours(x), original(x))
    assert np.allclose(cr.grad(ours)(x), expected, rtol=1e-6)
    assert np.allclose(cr.jvp(ours, (x,), (np.ones(2),))[1], np.sum(expected), rtol=1e-6)
    if name in COMPILED:
        assert np.allclose(cr.compile(cr.grad(ours))(x), expected, rtol=1e-6)
    gradient = cr.grad(ours)
    expected = [(gradient(x + h) - gradient(x - h)) / (2 * step) for h in steps]
    assert np.allclose(cr.hessian(ours)(x), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["arrays", "numbers", "of_class"])
def test_the_library_itself_is_unchanged_and_names_the_mend(
    name: str, library: ModuleType, anew: ModuleType
) -> None:
    with pytest.raises(cr.AutogradError, match=r"chainrule\.imported\.opticks"):
        cr.grad(lambda x: getattr(library, name)(x))(np.array([0.4, 0.7]))
    assert library.np is np
    assert type(library.arrays(np.ones(2))) is np.float64
    assert sys.modules["opticks.layers"] is library


def test_modules_are_packages_of_one_copy(library: ModuleType, anew: ModuleType) -> None:
    package = importlib.import_module("chainrule.imported.opticks")
    assert package.Layer is anew.Layer is not library.Layer
    assert anew.opticks.units is anew.units is not library.units
    assert anew.table() == "1.5"
    assert anew.plain("2")
    assert pickle.loads(pickle.dumps(anew.Layer)) is anew.Layer
    assert anew.arrays.__code__.co_filename == library.arrays.__code__.co_filename


def test_a_library_that_another_depends_on_is_the_copy_if_that_was_there_first(
    library: ModuleType,
) -> None:
    copies = {name: m for name, m in sys.modules.items() if ".imported.opticks" in name}
    for name in copies:
        del sys.modules[name]
    lenses = importlib.import_module("chainrule.imported.lenses")
    assert lenses.shift is library.units.shift
    del sys.modules["chainrule.imported.lenses"]
    sys.modules.update(copies)
    units = importlib.import_module("chainrule.imported.opticks.units")
    lenses = importlib.import_module("chainrule.imported.lenses")
    assert lenses.shift is units.shift is not library.units.shift


def test_modules_are_found_by_their_names(library: ModuleType, anew: ModuleType) -> None:
    anew.checked(np.ones(2))
    assert anew.sys.modules["opticks.names"] is anew
    assert sys.modules.get("opticks.names") is not anew
    del anew.sys.modules["opticks.names"]
    assert "opticks.names" not in anew.sys.modules
    assert len(anew.sys.modules) == len(list(anew.sys.modules)) == len(sys.modules)
    limit = sys.getrecursionlimit()
    assert anew.sys.getrecursionlimit() == limit
    anew.sys.opticks = 1
    assert sys.__dict__.pop("opticks") == 1


def test_solvers_without_derivatives_are_scipys(library: ModuleType, anew: ModuleType) -> None:
    assert np.array_equal(anew.counted(3), library.counted(3))


def test_compiled_code_gets_numbers_or_refuses(library: ModuleType) -> None:
    fast = importlib.import_module("chainrule.imported.opticks.fast")
    kind, doubled = fast.double(cr.numpy.array([1.0, 2.0]))
    assert kind is np.ndarray
    assert doubled.tolist() == [2.0, 4.0]
    with pytest.raises(cr.AutogradError, match=r"double is compiled code.*cr\.wrap"):
        cr.grad(lambda x: fast.double(x)[1].sum())(np.ones(2))


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"chainrule\.imported\.no_such_library"):
        importlib.import_module("chainrule.imported.no_such_library")
    with pytest.raises(ModuleNotFoundError, match=r"import chainrule\.numpy"):
        importlib.import_module("chainrule.imported.numpy")


def test_functions_that_numba_compiles_to_write_to_their_arguments(anew: ModuleType) -> None:
    total = np.zeros(1)
    anew.written_to(np.array([1.0, 2.0]), total)
    assert total[0] == 3
    with pytest.raises(cr.AutogradError, match="written_to is compiled code"):
        cr.grad(lambda x: anew.written_to(x, total))(np.ones(2))
