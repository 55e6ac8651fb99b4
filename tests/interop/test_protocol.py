"""NumPy's functions on tensors: arguments, types, refusals, and no silent loss of gradients."""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest
from numpy.lib import recfunctions

import chainrule as cr
from chainrule.interop.binding import name_of
from chainrule.interop.table import ANSWERS, NEW, RULES

A = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])


@pytest.fixture
def x():
    return cr.tensor(A, requires_grad=True)


signatures = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="older NumPys have other parameters"
)


# --- arguments ------------------------------------------------------------------------------------


@signatures
@pytest.mark.parametrize(
    "rule",
    [rule for rule in RULES.values() if rule.has_own_names],
    ids=lambda rule: name_of(rule.function),
)
def test_defaults_are_numpys(rule):
    ours, theirs = (inspect.signature(f).parameters for f in (rule.ours, rule.function))
    for name in set(rule.taken()) & ours.keys() & theirs.keys():
        default = theirs[name].default
        if default is np._NoValue:
            assert ours[name].default in (None, False)
        elif name != "copy":
            assert ours[name].default == default


@signatures
@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: name_of(rule.function))
def test_a_rule_takes_parameters_of_numpys(rule):
    names = inspect.signature(rule.function).parameters
    takes_any = "kwargs" in names
    assert takes_any or {name.removeprefix("*") for name in rule.taken()} <= names.keys()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: np.sum(x, out=np.zeros(())), "out"),
        (lambda x: np.quantile(x, 0.5, weights=A), "method"),
        (lambda x: np.astype(x, float, device="cpu"), "device"),
    ],
)
def test_arguments_that_tensors_do_not_have_are_refused_by_name(x, call, name):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call(x)


def test_the_refusal_says_what_to_write_instead(x):
    with pytest.raises(
        TypeError,
        match=r"numpy\.sum on a Tensor takes no out= \(it takes a, axis, dtype, keepdims, initial, "
        r"where\)\. ",
    ):
        np.sum(x, out=np.zeros(()))


def test_arguments_that_say_the_default_are_no_arguments(x):
    result = np.sum(x, None, None, None, False, where=True)
    assert result.requires_grad
    assert result.item() == A.sum()


def test_lists_and_arrays_stand_beside_tensors(x):
    joined = np.concatenate([x, [[1, 2, 3]], A[:1]])
    assert joined.shape == (4, 3)
    assert joined.dtype == np.float64
    np.dot(joined, [1.0, 2.0, 3.0]).sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_a_list_of_tensors_is_recorded(x):
    result = np.dot(x, [x[0, 0], 2.0, x[1, 2]])
    assert result.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), A @ [A[0, 0], 2.0, A[1, 2]])


def test_numbers_take_the_dtype_of_the_tensors():
    x = cr.tensor(A.astype(np.float32), requires_grad=True)
    assert np.append(x, 1.0).dtype == np.float32
    assert np.where(A > 0, x, 0.5).dtype == np.float32
    assert np.gradient(x, 0.5, axis=1).dtype == np.float32


@pytest.mark.parametrize("name", ["sum", "mean", "std", "median", "gradient", "sort", "unwrap"])
def test_float32_stays(name):
    x = cr.tensor(A.astype(np.float32), requires_grad=True)
    result = getattr(np, name)(x)
    parts = result if isinstance(result, tuple) else (result,)
    assert {part.dtype for part in parts} == {np.dtype(np.float32)}


def test_integers_become_floats_where_numpys_do():
    x = cr.tensor([[1, 2], [3, 5]])
    assert np.mean(x).item() == 2.75
    assert np.median(x).item() == 2.5
    assert np.std(x, axis=0).tolist() == [1, 1.5]
    assert np.sum(x).dtype == np.int64


def test_values_are_inserted_where_a_mask_is_true(x):
    result = np.insert(x[0], np.array([True, False, True]), 9.0)
    assert result.tolist() == [9, 3, 1, 9, 2]


# --- types ----------------------------------------------------------------------------------------


class Sub(cr.Tensor):
    pass


class Foreign:
    def __array_function__(self, function, types, args, kwargs):
        return "theirs"


class OwnArray(np.ndarray):
    def __array_function__(self, function, types, args, kwargs):
        return "theirs"


def test_other_array_types_take_precedence(x):
    assert np.concatenate([x, Foreign()]) == "theirs"
    assert np.concatenate([x, A.view(OwnArray)]) == "theirs"
    assert x.__array_function__(np.sum, (Foreign,), (x,), {}) is NotImplemented


def test_a_subclass_is_a_tensor():
    x = cr.tensor(A, requires_grad=True)
    sub = Sub.__new__(Sub)
    for name in ("_array", "_node", "_grad", "_view"):
        setattr(sub, name, getattr(x, name))
    assert np.sum(sub).item() == A.sum()
    assert np.concatenate([sub, x]).requires_grad


# --- no gradient is lost --------------------------------------------------------------------------


def test_a_function_without_a_rule_loses_no_gradient(x):
    with pytest.raises(
        TypeError,
        match=r"numpy\.is_busday has no derivative rule in chainrule \(tensors hold no dates\).*"
        r"chainrule\.autograd_function, whose forward calls numpy\.is_busday on x\.numpy\(\).*"
        r"x\.detach\(\)",
    ):
        np.is_busday(x)
    with pytest.raises(TypeError, match="tensors have no fields"):
        recfunctions.structured_to_unstructured(x)
    with pytest.raises(TypeError, match="upper has no derivative rule in chainrule"):
        x.__array_function__(np.strings.upper, (cr.Tensor,), (x,), {})


def test_a_gradient_of_an_argument_without_a_rule_is_not_lost(x):
    with pytest.raises(TypeError, match="percentile has no derivative rule for q in chainrule"):
        np.percentile(A, x[0, 1])
    with pytest.raises(TypeError, match="nan_to_num has no derivative rule for nan in chainrule"):
        np.nan_to_num(x, nan=x[0, 1])


def test_a_function_without_a_rule_computes_on_arrays_where_there_is_no_gradient(x):
    unstructured = recfunctions.unstructured_to_structured
    assert unstructured(x.detach())["f1"].tolist() == [1, -1]
    with cr.no_grad():
        assert unstructured(x)["f1"].tolist() == [1, -1]


def test_no_gradient_is_lost_into_an_array(x):
    for call in (
        lambda: np.copyto(np.zeros((2, 3)), x),
        lambda: np.put(np.zeros(3), [0], x[0, 0]),
        lambda: np.place(np.zeros(3), [True, False, False], x[0]),
        lambda: np.putmask(np.zeros(3), [True, False, False], x[0]),
        lambda: np.put_along_axis(np.zeros((2, 3)), np.array([[0], [1]]), x[:, :1], 1),
    ):
        with pytest.raises(RuntimeError, match=r"the ndarray that it would be .* records nothing"):
            call()
    with pytest.raises(RuntimeError, match="Can't call numpy"):  # NumPy asks only for the first one
        np.fill_diagonal(np.zeros((2, 2)), x[0, :2])
    target = np.zeros((2, 3))
    np.copyto(target, x.detach())
    assert target.tolist() == A.tolist()


def test_writing_is_recorded_and_leaves_refuse_it(x):
    with pytest.raises(RuntimeError, match="leaf"):
        np.fill_diagonal(x, 0.0)
    y = x * 2
    np.fill_diagonal(y, x[1, 0])
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 2], [4, 0, 2]]


def test_the_gradient_at_missing_values_is_zero():
    for name in ("nansum", "nanmean", "nanstd", "nanmax", "nanmin", "nanmedian", "nanprod"):
        x = cr.tensor([1.0, np.nan, 4.0], requires_grad=True)
        getattr(np, name)(x).backward()
        assert np.isfinite(x.grad.numpy()).all()
        assert x.grad[1] == 0
    x = cr.tensor([np.nan, np.nan], requires_grad=True)
    assert np.isnan(np.nanmean(x).item())
    assert np.isnan(np.nanmax(x).item())


# --- answers --------------------------------------------------------------------------------------

ANSWERED = {
    "all": lambda x: np.all(x),
    "allclose": lambda x: np.allclose(x, A),
    "any": lambda x: np.any(x, axis=0),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmin": lambda x: np.argmin(x),
    "argpartition": lambda x: np.argpartition(x, 1)[:, 1],
    "argsort": lambda x: np.argsort(x, axis=0),
    "argwhere": lambda x: np.argwhere(x > 1),
    "array2string": lambda x: np.array2string(x, precision=2),
    "array_equal": lambda x: np.array_equal(x, A),
    "array_equiv": lambda x: np.array_equiv(x, [A, A]),
    "array_repr": lambda x: np.array_repr(x),
    "array_str": lambda x: np.array_str(x),
    "can_cast": lambda x: np.can_cast(x.dtype, np.float32),
    "common_type": lambda x: np.common_type(x),
    "count_nonzero": lambda x: np.count_nonzero(x, axis=0),
    "diag_indices_from": lambda x: np.diag_indices_from(x[:, :2]),
    "digitize": lambda x: np.digitize(x, [0.0, 1.5]),
    "einsum_path": lambda x: np.einsum_path("ij,ij->i", x, A)[0],
    "flatnonzero": lambda x: np.flatnonzero(x > 1),
    "isclose": lambda x: np.isclose(x, 3),
    "iscomplex": lambda x: np.iscomplex(x),
    "iscomplexobj": lambda x: np.iscomplexobj(x),
    "isin": lambda x: np.isin(x, [1, 4]),
    "isneginf": lambda x: np.isneginf(x),
    "isposinf": lambda x: np.isposinf(x),
    "isreal": lambda x: np.isreal(x),
    "isrealobj": lambda x: np.isrealobj(x),
    "lexsort": lambda x: np.lexsort(x),
    "matrix_rank": lambda x: np.linalg.matrix_rank(x),
    "may_share_memory": lambda x: np.may_share_memory(x, A),
    "min_scalar_type": lambda x: np.min_scalar_type(x[0, 0]),
    "nanargmax": lambda x: np.nanargmax(x),
    "nanargmin": lambda x: np.nanargmin(x, axis=1),
    "ndim": lambda x: np.ndim(x),
    "nonzero": lambda x: np.nonzero(x),
    "packbits": lambda x: np.packbits(x > 1),
    "ravel_multi_index": lambda x: (
        np.ravel_multi_index(((x > 1).long()[0], (1, 2, 0)), (2, 3))
        if isinstance(x, cr.Tensor)
        else np.ravel_multi_index(((x > 1)[0].astype(int), (1, 2, 0)), (2, 3))
    ),
    "result_type": lambda x: np.result_type(x, np.float32),
    "searchsorted": lambda x: np.searchsorted([0.0, 2.0], x),
    "shape": lambda x: np.shape(x),
    "shares_memory": lambda x: np.shares_memory(x, np.zeros(3)),
    "size": lambda x: np.size(x, 1),
    "tril_indices_from": lambda x: np.tril_indices_from(x),
    "triu_indices_from": lambda x: np.triu_indices_from(x, 1),
    "unpackbits": lambda x: np.unpackbits((x > 1).astype(np.uint8)),
    "unravel_index": lambda x: np.unravel_index((x > 1).astype(np.int64), (2, 3)),
}


def test_every_function_answered_by_numpy_is_called():
    written = {"save", "savetxt", "savez", "savez_compressed"}
    assert {f.__name__ for f in ANSWERS} - {"in1d"} == ANSWERED.keys() | written


OF_NO_NUMBERS = {
    "save": lambda x, file: np.save(file, x),
    "savez": lambda x, file: np.savez(file, x=x),
    "savetxt": lambda x, file: np.savetxt(file, x),
    "array2string": lambda x, file: file.write(np.array2string(x).encode()),
    "array_repr": lambda x, file: file.write(str(np.array_repr(x)).encode()),
    "array_str": lambda x, file: file.write(str(np.array_str(x)).encode()),
    "min_scalar_type": lambda x, file: file.write(bytes(np.min_scalar_type(x[0, 0]).itemsize)),
}


@pytest.mark.parametrize("write", OF_NO_NUMBERS.values(), ids=OF_NO_NUMBERS)
def test_functions_that_need_numbers_get_none_of_a_stand_in(write):
    """They wrote ones and zeros, where a compiled function was traced, and mapped ones all."""
    file = io.BytesIO()

    def f(x):
        write(x, file)
        return x * file.tell()

    assert f(cr.tensor(A)).shape == A.shape
    file = io.BytesIO()
    with pytest.raises(cr.CompileError):
        cr.compile(f)(cr.tensor(A))
    if write is not OF_NO_NUMBERS["min_scalar_type"]:
        with pytest.raises(cr.AutogradError, match="differs between examples"):
            cr.vmap(f)(cr.tensor([A, A + 1]))
    assert not file.getvalue()


WRITING = {
    "put": lambda a, v: np.put(a, [1, 0], v),
    "place": lambda a, v: np.place(a, [True, True], v),
    "putmask": lambda a, v: np.putmask(a, [True, False], v),
    "put_along_axis": lambda a, v: np.put_along_axis(a, np.array([1, 0]), v, 0),
    "copyto": lambda a, v: np.copyto(a, v),
}


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
@pytest.mark.parametrize("write", WRITING.values(), ids=WRITING)
def test_writes_to_arrays_of_numpys_own_keep_each_examples_values(write):
    """Or raise; all examples got what the last one had written."""

    def into(new):
        def f(v):
            a = new(v)
            write(a, v)
            return v * cr.tensor(a)

        return f

    rows = cr.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    own = into(lambda v: np.zeros(2))
    expected = np.stack([own(row.numpy()) for row in rows])
    for transform in (cr.vmap, cr.compile):
        with pytest.raises(cr.CompileError, match="records nothing"):
            transform(own)(rows if transform is cr.vmap else rows[0])
    shared = into(lambda v: np.zeros_like(v.numpy() if isinstance(v, cr.Tensor) else v))
    arrays = cr.vmap(lambda v: shared(v.numpy()))(rows)
    np.testing.assert_array_equal(arrays, expected)
    tensors = cr.vmap(into(lambda v: cr.zeros(2)))(rows)
    np.testing.assert_array_equal(tensors, expected)


@pytest.mark.parametrize("ask", ANSWERED.values(), ids=ANSWERED.keys())
def test_functions_without_a_derivative_give_numpys_results(x, ask):
    answer, expected = ask(x), ask(A)
    assert type(answer) is type(expected)
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(answer, expected)
    elif isinstance(expected, tuple):
        for part, wanted in zip(answer, expected, strict=True):
            np.testing.assert_array_equal(part, wanted)
    elif ask is not ANSWERED["may_share_memory"]:
        assert answer == expected


def test_tensors_are_written_to_files(x):
    for save in (np.save, np.savetxt):
        file = io.BytesIO()
        save(file, x)
        file.seek(0)
        np.testing.assert_array_equal({np.save: np.load, np.savetxt: np.loadtxt}[save](file), A)
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, x=x)
        file.seek(0)
        np.testing.assert_array_equal(np.load(file)["x"], A)


# --- new tensors ----------------------------------------------------------------------------------

CREATED = {
    "empty": lambda x: np.empty(3, like=x),
    "empty_like": lambda x: np.empty_like(x),
    "eye": lambda x: np.eye(2, k=1, like=x),
    "frombuffer": lambda x: np.frombuffer(A.tobytes(), like=x),
    "fromfile": None,
    "fromstring": lambda x: np.fromstring("1 2", sep=" ", like=x),
    "genfromtxt": lambda x: np.genfromtxt(["1 2"], like=x),
    "identity": lambda x: np.identity(2, like=x),
    "loadtxt": lambda x: np.loadtxt(["1 2"], like=x),
    "ones": lambda x: np.ones((2, 3), like=x),
    "ones_like": lambda x: np.ones_like(x, np.int64),
    "tri": lambda x: np.tri(3, k=-1, like=x),
    "zeros": lambda x: np.zeros(3, np.float32, like=x),
    "zeros_like": lambda x: np.zeros_like(x, shape=4),
}


def test_each_creation_is_called():
    assert {f.__name__ for f in NEW} == CREATED.keys()


@pytest.mark.parametrize("name", [name for name, create in CREATED.items() if create is not None])
def test_creation_functions_return_tensors(x, name):
    made, expected = CREATED[name](x), CREATED[name](A)
    assert type(made) is cr.Tensor
    assert not made.requires_grad
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    if "empty" not in name:
        np.testing.assert_array_equal(made.numpy(), expected)


def test_arrays_read_from_a_file_are_tensors(x, tmp_path):
    A.tofile(tmp_path / "a")
    made = np.fromfile(tmp_path / "a", like=x)
    assert type(made) is cr.Tensor
    assert made.tolist() == A.ravel().tolist()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: np.reshape(x, 6, order="Z"), ValueError, "'C', 'F' or 'A', got 'Z'"),
        (lambda x: np.rollaxis(x, 0, 5), np.exceptions.AxisError, "'start' must lie in -2 … 2"),
        (
            lambda x: np.lib.stride_tricks.sliding_window_view(x, 2),
            ValueError,
            "expected one length for each axis, got 1 lengths for 2 axes",
        ),
        (
            lambda x: np.pad(x, 1, "reflect", reflect_type="odd"),
            NotImplementedError,
            "no rule in chainrule: the modes",
        ),
        (lambda x: np.block([x, []]), ValueError, "block: lists can.t be empty"),
        (
            lambda x: np.block([x, [x]]),
            ValueError,
            "block: all lists must have the same depth",
        ),
        (lambda x: np.split(x, 2, axis=1), cr.ShapeError, "does not result in an equal division"),
        (lambda x: np.linspace(x, 1, -1), ValueError, "can't be negative, got -1"),
        (lambda x: np.geomspace(-x, x), ValueError, "real, not zero and of one sign"),
        (lambda x: np.fromiter(x[0], float, 9, like=x), ValueError, "Expected 9 but iterator had"),
        (lambda x: np.select([A > 0], [x, x]), ValueError, "as many conditions as choices"),
        (lambda x: np.piecewise(x, [A > 0], [1, 2, 3]), ValueError, "either 1 or 2 functions"),
        (lambda x: np.apply_along_axis(np.sum, 0, x[:, :0]), ValueError, "iteration dimensions"),
        (
            lambda x: np.apply_over_axes(lambda x, axis: x[None, None], x, 0),
            ValueError,
            "not returning an array of the correct shape",
        ),
        (lambda x: np.copyto((x * 1).float(), x * 1j), TypeError, "Cannot cast array data from"),
        (lambda x: np.average(x, weights=A * 0), ZeroDivisionError, "Weights sum to zero"),
        (lambda x: np.average(x, axis=0, weights=[1.0]), ValueError, "expected weights of the"),
        (lambda x: np.average(x, weights=np.float64(2)), ValueError, "or an axis of theirs; got"),
        (lambda x: np.quantile(x, 2.0), ValueError, r"quantile: q must be in the range \[0, 1\]"),
        (lambda x: np.percentile(x, -1), ValueError, r"must be in the range \[0, 100\]"),
        (lambda x: np.cov(x[None]), ValueError, "cov: m and y can have two dimensions at most"),
        (lambda x: np.diff(x, -1), ValueError, "order must be non-negative but got -1"),
        (lambda x: np.diff(x[0, 0]), ValueError, "expects input to be at least one-dimensional"),
        (lambda x: np.gradient(x, 1.0, 2.0, 3.0), TypeError, "one for each of the 2 axes, got 3"),
        (lambda x: np.gradient(x, edge_order=3), ValueError, "'edge_order' greater than 2"),
        (lambda x: np.gradient(x[:1]), ValueError, "too small to calculate a numerical gradient"),
        (lambda x: np.gradient(x, [1.0, 2.0, 3.0], axis=0), ValueError, "or 2 coordinates along"),
        (lambda x: np.interp(x, [1.0, 2.0], [1.0]), ValueError, "expected xp and fp to be 1-d"),
        (lambda x: np.interp(x, [1.0], [1.0], period=0), ValueError, "period must be a non-zero"),
        (
            lambda x: np.convolve(x, x),
            ValueError,
            "convolve: expected two vectors that are not empty",
        ),
        (lambda x: np.correlate(x[0], x[0], "all"), ValueError, "mode must be one of 'valid'"),
        (lambda x: np.polyder(x[0], -1), ValueError, "Order of derivative must be positive"),
        (lambda x: np.polyint(x[0], -1), ValueError, "Order of integral must be positive"),
        (lambda x: np.polyint(x[0], 3, [1.0, 2.0]), ValueError, "k must be a scalar or a rank-1"),
        (lambda x: np.poly(x), ValueError, "input must be 1d or non-empty square 2d array"),
        (lambda x: np.histogramdd(x, [2, 2]), ValueError, "have 3 coordinates, but .* bins for 2"),
        (lambda x: np.histogram2d(x[0], x[0, :2]), ValueError, "must have the same length"),
        (lambda x: np.roots(x), ValueError, "Input must be a rank-1 array"),
        (lambda x: np.polyfit(x[0], x[1], [1, 2]), TypeError, "deg must be an int, got list"),
        (lambda x: np.linalg.qr(x, "raw"), NotImplementedError, "the modes are reduced, complete"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(x, call, kind, words):
    with pytest.raises(kind, match=words):
        call(x)
