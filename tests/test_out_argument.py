"""The argument `out` of PyTorch's functions: each name beside PyTorch's own."""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

X = np.array([[0.5, 0.25], [0.125, 0.75]], np.float32)
SPD = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
I = np.array([[6, 4], [3, 8]])  # noqa: E741
B = np.array([[True, False], [True, True]])
AT = np.array([[0, 1], [1, 0]])
V = np.array([0.5, 2.0], np.float32)
V3 = np.array([1.0, 2.0, 3.0], np.float32)
LU = np.array([[2.0, 0.5], [0.25, 0.875]], np.float32), np.array([1, 2], np.int32)

# Arguments, and the names of functions that are called with them. Where none is listed, a function
# takes one matrix.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addcdiv addcmul": (X, SPD, SPD),
    "addmm": (X, SPD, SPD),
    "addbmm": (X, X[None], SPD[None]),
    "baddbmm": (X[None], X[None], SPD[None]),
    "addmv": (V, X, V),
    "addr": (X, V, V),
    "arctan2 atan2 copysign float_power floor_divide fmax fmin fmod heaviside hypot igamma igammac "
    "inner kron ldexp logaddexp logaddexp2 nextafter remainder xlogy isin true_divide eq equal ge "
    "greater greater_equal gt le less less_equal lt ne not_equal special.xlogy special.xlog1py "
    "special.gammainc special.gammaincc linalg.vecdot linalg.solve linalg.solve_ex "
    "linalg.lstsq vecdot": (SPD, X),
    "special.zeta": (SPD + 1, X),
    "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm": (
        I,
        I // 2,
    ),
    "bitwise_not bitwise_invert": (I,),
    "logical_and logical_or logical_xor": (B, X),
    "complex polar": (X, SPD),
    "ger outer linalg.outer vdot": (V, V),
    "cross linalg.cross": (V3, V3[::-1].copy()),
    "acosh arccosh": (SPD + 1,),
    "bucketize": (X, V),
    "searchsorted": (V, X),
    "chain_matmul": (X, SPD),
    "linalg.multi_dot": ([X, SPD],),
    "cholesky cholesky_inverse": (SPD,),
    "cholesky_solve": (X, np.linalg.cholesky(SPD)),
    "triangular_solve": (X, SPD),
    "clamp_max clamp_min": (X, 0.3),
    "renorm": (X, 2, 0, 0.5),
    "column_stack dstack hstack row_stack vstack": ([X, SPD],),
    "cummax cummin cumprod cumsum logcumsumexp softmax log_softmax special.softmax "
    "special.log_softmax special.logsumexp logsumexp "
    "median nanmedian mode amax amin std var mean sum nansum prod all any argmax argmin "
    "sort topk kthvalue": (X, 1),
    "msort": (X,),
    "gather": (X, 1, AT),
    "take_along_dim": (X, AT, 1),
    "take": (X, AT),
    "scatter scatter_add": (X, 1, AT, SPD),
    "scatter_reduce": (X, 1, AT, SPD, "sum"),
    "index_add index_copy": (X, 0, AT[0], SPD),
    "index_reduce": (X, 0, AT[0], SPD, "prod"),
    "index_select": (X, 0, AT[0]),
    "slice_scatter": (X, SPD),
    "masked_select": (X, B),
    "narrow_copy": (X, 0, 0, 1),
    "tensordot linalg.tensordot": (X, SPD),
    "lerp": (X, SPD, 0.5),
    "matrix_power linalg.matrix_power": (X, 2),
    "mvlgamma special.multigammaln": (X + 2, 2),
    "polygamma special.polygamma": (1, X),
    "quantile nanquantile": (X, 0.5),
    "norm": (X, 2, 1),
    "linalg.matrix_rank linalg.cholesky linalg.cholesky_ex linalg.eigh linalg.eigvalsh": (SPD,),
    "lu_solve": (X, *LU),
    "linalg.lu_solve": (*LU, X),
    "lu_unpack": LU,
    "linalg.householder_product orgqr": (X, V),
    "ormqr": (X, V, X),
    "linalg.solve_triangular": (SPD, X),
    "linalg.tensorinv": (SPD.reshape(2, 1, 2), 2),
    "linalg.tensorsolve": (SPD, V),
    "bernoulli": (X,),
    "multinomial": (V, 1),
    "normal": (X, X),
    "histc histogram": (X, 4),
    "fft.fftfreq fft.rfftfreq": (4,),
}
GIVEN = {name: arguments for names, arguments in ARGUMENTS.items() for name in names.split()}
THEIRS = {  # other names, which go along
    "bitwise_invert": "bitwise_not",
    "conj": "conj_physical",
    "linalg.outer": "outer",
    "linalg.tensordot": "tensordot",
    "vecdot": "linalg.vecdot",
    "det": "linalg.det",
    "linalg.inverse": "linalg.inv",
    "special.softmax": "softmax",
    "special.log_softmax": "log_softmax",
}
OPTIONS = {"linalg.solve_triangular": {"upper": True}, "argsort": {"stable": True, "dim": 1}}
RANDOM = {"bernoulli", "multinomial", "normal"}
NAMES = sorted(
    f"{module.__name__}.{name}".removeprefix("chainrule.")
    for module in (cr, cr.linalg, cr.special, cr.fft)
    for name in module.__all__
    if hasattr(getattr(module, name), "without_out")
)
OF_NUMPY = {"isfinite", "isinf", "isnan"}  # these have no `out` in PyTorch


def arguments_of(name: str) -> tuple[Any, ...]:
    return (X, 2) if "polynomial" in name else GIVEN.get(name, (X,))


def function(library: Any, name: str) -> Any:
    for part in (THEIRS.get(name, name) if library is not cr else name).split("."):
        library = getattr(library, part)
    return library


def converted(library: Any, argument: Any, grad: bool = False) -> Any:
    if isinstance(argument, list):
        return [converted(library, each, grad) for each in argument]
    if not isinstance(argument, np.ndarray):
        return argument
    made = library.tensor(argument.tolist(), dtype=getattr(library, argument.dtype.name))
    return made.requires_grad_() if grad and argument.dtype.kind == "f" else made


def call(library: Any, name: str, grad: bool = False, **settings: Any) -> Any:
    given = [converted(library, each, grad) for each in arguments_of(name)]
    settings |= OPTIONS.get(name, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(library, name)(*given, **settings)


def each_of(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_written_to_out_and_returned(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (cr,) if name in OF_NUMPY else (torch, cr):
        results = call(library, name)
        # Wider ones first: PyTorch takes them for some functions, and chainrule for all.
        for widen in (True, False):
            out = tuple(
                library.empty(0, dtype=library.float64)
                if widen and result.dtype == library.float32
                else library.empty(0, dtype=result.dtype)
                for result in each_of(results)
            )
            try:
                given = out if isinstance(results, tuple) else out[0]
                returned = each_of(call(library, name, out=given))
            except RuntimeError:
                assert library is torch
                assert widen
                continue
            for target, same, result in zip(out, returned, each_of(results), strict=True):
                assert same is target
                assert same.shape == result.shape
                if library is cr and name not in RANDOM:
                    np.testing.assert_array_equal(same.numpy(), result.numpy())
        found.append(out)
    for theirs, ours in zip(found[0], found[-1], strict=True):
        assert theirs.numpy().dtype == ours.numpy().dtype
        assert theirs.shape == ours.shape
        if name not in RANDOM:
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_out_is_refused_where_a_gradient_would_be_recorded(name: str) -> None:
    results = call(cr, name, grad=True)
    out = tuple(cr.empty(0, dtype=result.dtype) for result in each_of(results))
    given = out if isinstance(results, tuple) else out[0]
    if any(result.requires_grad for result in each_of(results)):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            call(cr, name, grad=True, out=given)
    with cr.no_grad():
        assert each_of(call(cr, name, grad=True, out=given))[0] is out[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_with_out_is_found_by_pickle_and_has_its_help(name: str) -> None:
    found = function(cr, name)
    assert pickle.loads(pickle.dumps(found)) is found
    assert found.__doc__
    assert "out" in inspect.signature(found).parameters


def test_an_out_of_another_shape_is_resized_with_a_warning() -> None:
    x = cr.tensor([1.0, 2.0])
    out = cr.empty(3)
    with pytest.warns(UserWarning, match=r"had shape \[3\].* shape \[2\]") as warned:
        assert cr.cosh(x, out=out) is out
    assert warned[0].filename == __file__
    assert out.equal(cr.cosh(x))
    with pytest.raises(cr.ShapeError, match=r"cosh\(\): .*a view"):
        cr.cosh(x, out=cr.empty(3, 3)[0])


def test_an_out_that_cannot_hold_the_results_is_refused() -> None:
    x = cr.tensor([1.0, 2.0])
    with pytest.raises(cr.DTypeError, match=r"cosh\(\): .*float32 can't be cast to .*int64"):
        cr.cosh(x, out=cr.empty(2, dtype=cr.int64))
    with pytest.raises(cr.ArgumentTypeError, match=r"cosh\(\): `out` must be a Tensor"):
        cr.cosh(x, out=np.empty(2))  # type: ignore[call-arg]
    values = cr.zeros(2)
    for out in (values, (values,)):
        with pytest.raises(cr.ArgumentError, match=r"sort\(\): `out` .* 2 tensors for values, ind"):
            cr.sort(x, out=out)  # type: ignore[call-arg]
    with pytest.raises(cr.DTypeError, match=r"float32\)$|int64"):
        cr.sort(x, out=(values, cr.empty(2, dtype=cr.bool)))  # type: ignore[call-arg]
    assert values.tolist() == [0, 0]  # none was written to


def test_out_may_be_an_argument_and_a_part_of_a_tensor() -> None:
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert cr.cumsum(x[0], 0, out=x[1]).tolist() == [1, 3]
    assert cr.flip(x, (0,)).tolist() == [[1, 3], [1, 2]]
    cr.lerp(x, x.T, 1.0, out=x)
    assert x.tolist() == [[1, 1], [2, 3]]


def test_functions_with_out_compile() -> None:
    def f(x: cr.Tensor) -> cr.Tensor:
        found = cr.empty(2)
        cr.cosh(x, out=found)
        return cr.amax(found * cr.atan(x), 0)

    x = cr.tensor([1.0, 2.0])
    assert cr.compile(f)(x).equal(f(x))


def test_a_function_that_only_calls_another_is_not_called_on_the_way() -> None:
    assert "_function" not in cr.atan.__code__.co_freevars
    assert "_function" in cr.amax.__code__.co_freevars


def test_methods_have_no_out() -> None:
    with pytest.raises(TypeError, match="out"):
        cr.ones(2).cosh(out=cr.ones(2))  # type: ignore[call-arg]
