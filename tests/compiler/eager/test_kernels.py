"""Machine code for eager operations on large arrays, compiled by LLVM."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule.compiler import eager
from chainrule.compiler.eager.table import PRODUCTS, substitutes
from chainrule.compiler.native import jit
from chainrule.compiler.native.gemm import registers
from chainrule.compiler.native.threads.pool import Team
from chainrule.compiler.native.threads.tasks import Task
from chainrule.errors import MissingExtraError
from chainrule.kernels.elementwise import UPDATES
from chainrule.primitives import convolution

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(5)
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -1e30, 88.9, -104.5, 1.0]


def signed(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.1, 3.0, shape)


def numbers(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape)


N = 70_001  # odd, and more than one thread's part
ROWS = (307, 233)

Job = tuple[Callable[..., Any], list[np.ndarray]]


def layer_of(kind: str, *inputs: cr.Tensor) -> Any:
    """Return the outputs of an LSTM or a GRU, and the last states."""
    x, *parameters = inputs
    layer = getattr(cr.nn, kind)(x.shape[-1], parameters[1].shape[-1], dtype=x.dtype)
    named = dict(zip(dict(layer.named_parameters()), parameters, strict=True))
    return cr.func.functional_call(layer, named, (x,))


def recurrent(kind: str, *inputs: cr.Tensor) -> cr.Tensor:
    """Return all results of an LSTM or a GRU: outputs, and the last states."""
    out, last = layer_of(kind, *inputs, -0.5 * inputs[-1])
    return cr.cat([out, *(last if kind == "LSTM" else [last])])


def of_layer(n: int, gates: int) -> list[np.ndarray]:
    """Return an input of `n` steps, and parameters of a layer of ten units with these gates."""
    return [signed(n, 19, 6), *(0.3 * signed(10 * gates, k) for k in (6, 10)), signed(10 * gates)]


OPERATIONS: dict[str, Job] = {
    "add": (lambda x, y: x + y, [signed(N), signed(N)]),
    "add a number": (lambda x: x + 1.5, [signed(N)]),
    "subtract": (lambda x, y: x - y, [signed(*ROWS), signed(*ROWS)]),
    "subtract from a number": (lambda x: 1.5 - x, [signed(*ROWS)]),
    "multiply": (lambda x, y: x * y, [signed(N), signed(N)]),
    "multiply by itself": (lambda x: x * x, [signed(N)]),
    "divide": (lambda x, y: x / y, [signed(N), positive(N)]),
    "negative": (lambda x: -x, [signed(N)]),
    "abs": (lambda x: x.abs(), [signed(N)]),
    "reciprocal": (lambda x: x.reciprocal(), [positive(N)]),
    "sqrt": (lambda x: x.sqrt(), [positive(N)]),
    "square": (lambda x: x.square(), [signed(N)]),
    "maximum": (cr.maximum, [signed(N), signed(N)]),
    "minimum": (cr.minimum, [signed(N), signed(N)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [signed(N)]),
    "clamp above": (lambda x: x.clamp(max=0.0), [signed(*ROWS)]),
    "exp": (lambda x: x.exp(), [signed(N)]),
    "expm1": (lambda x: x.expm1(), [signed(N)]),
    "log": (lambda x: x.log(), [positive(N)]),
    "log1p": (lambda x: x.log1p(), [positive(N)]),
    "power": (lambda x: x.pow(1.5), [positive(N)]),
    "relu": (lambda x: x.relu(), [signed(N)]),
    "sigmoid": (lambda x: x.sigmoid(), [signed(*ROWS)]),
    "softplus": (F.softplus, [signed(N)]),
    "tanh": (lambda x: x.tanh(), [signed(N)]),
    "leaky_relu": (F.leaky_relu, [signed(N)]),
    "elu": (F.elu, [signed(N)]),
    "hardswish": (F.hardswish, [signed(N)]),
    "mish": (F.mish, [signed(N)]),
    "logsigmoid": (F.logsigmoid, [signed(N)]),
    "gelu": (F.gelu, [signed(*ROWS)]),
    "softmax": (lambda x: x.softmax(-1), [signed(*ROWS)]),
    "softmax, long rows": (lambda x: x.softmax(-1), [signed(3, 40_000)]),
    "log_softmax": (lambda x: x.log_softmax(-1), [signed(*ROWS)]),
    "standardize": (lambda x: F.layer_norm(x, x.shape[-1:]), [signed(*ROWS)]),
    "standardize, two axes": (lambda x: F.layer_norm(x, x.shape[-2:]), [signed(50, 30, 40)]),
    "cumulative_sum": (lambda x: x.cumsum(-1), [signed(*ROWS)]),
    "sum": (lambda x: x.sum(), [signed(*ROWS)]),
    "sum, kept": (lambda x: x.sum(keepdim=True), [signed(N)]),
    "sum of columns": (lambda x: x.sum(0), [signed(250, 300)]),
    "sum of many rows": (lambda x: x.sum(0), [signed(30_001, 3)]),
    "sum of rows": (lambda x: x.sum(-1, keepdim=True), [signed(*ROWS)]),
    "sum of the middle": (lambda x: x.sum(1), [signed(50, 30, 50)]),
    "mean": (lambda x: x.mean(), [signed(*ROWS)]),
    "mean of columns": (lambda x: x.mean((0, 1)), [signed(50, 30, 50)]),
    "mean of rows": (lambda x: x.mean(-1), [signed(*ROWS)]),
    "index": (lambda x, i: x[i], [signed(*ROWS), numbers(307, 400)]),
    "index, repeated": (lambda x, i: x[i], [signed(5000), numbers(9, 9000)]),
    "index, from the end": (lambda x, i: x[i], [signed(*ROWS), numbers(307, 400) - 307]),
    "index_select": (lambda x, i: x.index_select(1, i), [signed(*ROWS), numbers(233, 99)]),
    "take_along_axis": (lambda x, i: x.gather(1, i), [signed(*ROWS), numbers(233, *ROWS)]),
    "add_along_axis": (
        lambda x, i: cr.zeros_like(x).scatter_add(1, i, x),
        [signed(*ROWS), numbers(233, *ROWS)],
    ),
    "add_at": (
        lambda x, y, i: x.scatter_add(1, i, y),
        [signed(*ROWS), signed(*ROWS), numbers(233, *ROWS)],
    ),
    "add_at, rows": (
        lambda x, y, i: x.index_add(0, i, y),
        [signed(*ROWS), signed(9999, ROWS[1]), numbers(ROWS[0], 9999)],
    ),
    "concat": (lambda x, y: cr.cat((x, y)), [signed(N), signed(N - 999)]),
    "concat, columns": (lambda x, y: cr.cat((x, y), 1), [signed(*ROWS), signed(307, 5)]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), [signed(3, 7, 51, 50)]),
    "max_pool, apart": (lambda x: F.max_pool2d(x, 2, stride=3), [signed(3, 7, 51, 50)]),
    "max_pool, tall": (lambda x: F.max_pool2d(x, (3, 1)), [signed(3, 7, 51, 50)]),
    "matmul": (cr.matmul, [signed(70, 90), signed(90, 65)]),
    "matmul, stacks": (cr.matmul, [signed(6, 60, 50), signed(6, 50, 70)]),
    "contract": (
        lambda x, y: cr.einsum("abij,bjk->aibk", x, y),
        [signed(5, 6, 40, 30), signed(6, 30, 50)],
    ),
    "convolve": (
        lambda x, w: F.conv2d(x, w, padding=1),
        [signed(9, 5, 29, 31), signed(7, 5, 3, 3)],
    ),
    "convolve, strides": (
        lambda x, w: F.conv2d(x, w, stride=2, dilation=(1, 2), groups=2),
        [signed(9, 8, 39, 41), signed(10, 4, 3, 2)],
    ),
    "convolve_input": (F.conv_transpose2d, [signed(9, 5, 29, 31), signed(5, 7, 3, 3)]),
    "convolve_weight": (
        lambda x, y: convolution.convolve_weight.apply(
            x, y, size=(3, 3), window=((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
        ),
        [signed(9, 5, 31, 33), signed(9, 7, 29, 31)],
    ),
    "lstm": (functools.partial(recurrent, "LSTM"), of_layer(9, 4)),
    "gru": (functools.partial(recurrent, "GRU"), of_layer(9, 3)),
    "max_pool, meeting": (lambda x: F.max_pool2d(x, 3, stride=2), [signed(3, 7, 51, 50)]),
    "layer_normalize": (
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
        [signed(*ROWS), signed(ROWS[-1]), signed(ROWS[-1])],
    ),
    "layer_normalize, as many groups as elements": (
        lambda x, w, b: F.group_norm(x, 8, w, b),
        [signed(20, 32, 8), signed(32), signed(32)],
    ),
}
EXACT = (
    *("add", "subtract", "multiply", "divide", "negative", "abs", "reciprocal", "sqrt", "square"),
    *("maximum", "minimum", "clamp", "relu", "index", "take_along_axis", "max_pool", "concat"),
)
"""Operations that are exact to the bit. Gradients of `index` are sums."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    if "CHAINRULE_CACHE" not in os.environ:
        patch.setenv("CHAINRULE_CACHE", str(tmp_path_factory.mktemp("machine_code")))
    yield
    patch.undo()


@pytest.fixture
def native() -> Iterator[None]:
    before = cr.get_num_threads()
    cr.set_num_threads(2)
    cr.set_kernels("native")
    with np.errstate(all="ignore"):
        yield
    cr.set_kernels("numpy")
    cr.set_num_threads(before)


def run(function: Callable[..., Any], arrays: list[np.ndarray], dtype: str) -> list[np.ndarray]:
    """Return the value, the gradients and the gradients of these, of copies of the arrays."""
    copies = [a.astype(dtype) if a.dtype.kind == "f" else a.copy() for a in arrays]
    inputs = [cr.from_numpy(a) for a in copies]
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    out = function(*inputs)
    g = cr.from_numpy(np.random.default_rng(3).uniform(0.5, 1.5, out.shape).astype(dtype))
    out.backward(g, retain_graph=True)
    plain = [x.grad for x in leaves]
    first = cr.autograd_grad(out, leaves, g, create_graph=True)
    total = sum([(part * part).sum() for part in (*first, *leaves)])
    second = cr.autograd_grad(total, leaves)
    return [np.asarray(x.detach().numpy()) for x in (out, *plain, *first, *second)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_results_agree_with_numpy(name: str, dtype: str, native: None) -> None:
    function, arrays = OPERATIONS[name]
    found = run(function, arrays, dtype)
    cr.set_kernels("numpy")
    wanted = run(function, arrays, dtype)
    eps = np.finfo(dtype).eps
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        assert x.dtype == y.dtype
        if name.split(",")[0] in EXACT and (i == 0 or name == "max_pool"):
            np.testing.assert_array_equal(x, y)
        else:
            size = np.abs(y).max()
            np.testing.assert_allclose(x, y, rtol=64 * eps, atol=64 * eps * size)


def test_every_kernel_is_run(native: None, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    plain = Task.run

    def call(task: Task, *arguments: Any) -> None:
        texts.append(task.code.text)
        plain(task, *arguments)

    monkeypatch.setattr(Task, "run", call)
    forward_alone = ("concat", "concat, columns")
    back_alone = ("sum of many rows",)  # whose sums are products
    without = []
    for name, (function, arrays) in OPERATIONS.items():
        texts.clear()
        run(function, arrays, "float32")
        least = 1 if name in ("abs", *forward_alone, *back_alone) else 2
        products = registers() is not None and name.split(",")[0] in PRODUCTS
        if len(texts) < 6 if products else len(set(texts)) < least:
            without.append(name)
    assert not without
    names = {name.split(",")[0].split(" ")[0] for name in OPERATIONS}
    assert {primitive.name for primitive in substitutes()} <= names


ELEMENTWISE = [
    *("abs", "negative", "reciprocal", "sqrt", "square", "exp", "expm1", "log", "log1p", "power"),
    *("relu", "sigmoid", "softplus", "tanh", "gelu", "clamp", "add a number", "multiply by itself"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_special_values(name: str, dtype: str, native: None) -> None:
    function, _ = OPERATIONS[name]
    x = np.tile(np.array(SPECIAL), 7001)
    found = run(function, [x], dtype)[:2]
    cr.set_kernels("numpy")
    wanted = run(function, [x], dtype)[:2]
    for a, b in zip(found, wanted, strict=True):
        tiny = np.finfo(dtype).tiny  # below it, exponentials have fewer digits
        np.testing.assert_allclose(a, b, rtol=8 * np.finfo(dtype).eps, atol=tiny)
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "standardize", "cumulative_sum", "sum"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30])
def test_rows_with_special_values(name: str, value: float, native: None) -> None:
    function, (x,) = OPERATIONS[name]
    x = x.copy()
    x[3, 4] = x[5, 6] = x[5, 7] = value
    if (name, value) != ("standardize", 1e30):  # whose deviations are rounding errors alone
        x[7] = value
    found = run(function, [x], "float32")[:2]
    cr.set_kernels("numpy")
    for a, b in zip(found, run(function, [x], "float32")[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPERATIONS)
def test_other_byte_orders_run_in_numpy(name: str, native: None) -> None:
    function, arrays = OPERATIONS[name]
    arrays = [a if a.dtype.kind == "f" else a.astype(a.dtype.newbyteorder()) for a in arrays]
    swapped = np.dtype(np.float32).newbyteorder().str
    run(function, arrays, "float32")  # there is machine code now
    found = run(function, arrays, swapped)
    cr.set_kernels("numpy")
    for x, y in zip(found, run(function, arrays, swapped), strict=True):
        size = np.abs(y).max()
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients_of_recurrences_in_other_layouts(kind: str, native: None) -> None:
    arrays = of_layer(30, 4 if kind == "LSTM" else 3)
    arrays.append(-0.5 * arrays[-1])
    shape = (30, 19, 10)
    scattered = np.frombuffer(b"-" + signed(*shape).tobytes(), offset=1).reshape(shape)
    gradients = [
        cr.ones(1, dtype=cr.float64).expand(shape),
        cr.from_numpy(signed(10, 19, 30)).permute(2, 1, 0),
        cr.from_numpy(scattered.copy()),
        cr.from_numpy(scattered),  # unaligned, read-only
    ]
    for g in gradients:
        found = []
        for kernels in ("native", "numpy"):
            cr.set_kernels(kernels)
            strided = [np.repeat(x, 2, axis=-1)[..., ::2] for x in arrays]
            leaves = [cr.from_numpy(x).requires_grad_() for x in strided]
            out, _ = layer_of(kind, *leaves)
            found.append([out.detach(), *cr.autograd_grad(out, leaves, g)])
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "sum", "relu", "cumulative_sum", "mean of columns"])
def test_other_layouts_run_in_numpy(name: str, native: None) -> None:
    function, (x,) = OPERATIONS[name]
    strided = np.repeat(x, 2, axis=-1)[..., ::2]
    locked = x.copy()
    locked.setflags(write=False)
    empty = x[:0]
    for array in (strided, strided.T, locked, empty):
        found = function(cr.asarray(array)).numpy()
        cr.set_kernels("numpy")
        wanted = function(cr.asarray(array)).numpy()
        cr.set_kernels("native")
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


PICKED: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], int]] = {
    "index": (lambda x, i: x[i], ROWS, (400,), 307),
    "index, one dimension": (lambda x, i: x[i], (5000,), (90, 100), 5000),
    "index_select": (lambda x, i: x.index_select(0, i), ROWS, (400,), 307),
    "index_select, some wide rows": (lambda x, i: x.index_select(0, i), (50, 100), (90,), 50),
    "gather": (lambda x, i: x.gather(1, i), ROWS, ROWS, 233),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, x), ROWS, ROWS, 233),
    "scatter_add to zeros": (
        lambda x, i: cr.zeros_like(x).scatter_add(1, i, x),
        *(ROWS, ROWS, 233),
    ),
}
"""Functions of a tensor and an index, their shapes, and the number of valid indices."""


@pytest.mark.parametrize("name", PICKED)
def test_indices_of_any_dtype_and_layout(name: str, native: None) -> None:
    function, shape, places, n = PICKED[name]
    x, index = signed(*shape), numbers(n, *places)
    index.flat[0], index.flat[-1] = 0, n - 1
    from_end = index - n * numbers(2, *places)
    apart = np.repeat(index, 2, axis=-1)[..., ::2]
    indices = [index, from_end, apart, index.astype("i4"), index.astype("i2"), index.astype(">i8")]
    if index.ndim == 1:
        indices += [index[:0], index[:1]]
    for i in indices:
        found = run(function, [x, i], "float64")
        cr.set_kernels("numpy")
        for a, b in zip(found, run(function, [x, i], "float64"), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        cr.set_kernels("native")


@pytest.mark.parametrize("kernels", ["numpy", "native"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", PICKED)
def test_errors_name_an_index_out_of_bounds(
    name: str, last: bool, kernels: str, native: None
) -> None:
    cr.set_kernels(kernels)
    function, shape, places, n = PICKED[name]
    x = cr.from_numpy(signed(*shape))
    for wrong in (n, -n - 1):
        index = numbers(n, *places)
        index.flat[-last] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension"):
            function(x, cr.from_numpy(index))


@pytest.mark.parametrize("number", [-308, 307, 1 << 40])
def test_out_of_bounds_raises_as_in_numpy(number: int, native: None) -> None:
    x, i = cr.from_numpy(signed(*ROWS)), numbers(307, 400)
    i[17] = number
    with pytest.raises(IndexError, match="out of bounds"):
        x[cr.from_numpy(i)]
    j = numbers(233, *ROWS)
    j[17, 3] = number
    with pytest.raises(IndexError):
        x.gather(1, cr.from_numpy(j))
    with pytest.raises(IndexError):
        x.scatter_add(1, cr.from_numpy(j), x)


def test_too_many_indices_raise_as_in_numpy(native: None) -> None:
    x, i = cr.from_numpy(signed(*ROWS)), cr.from_numpy(numbers(307, 400))
    with pytest.raises(IndexError, match="too many indices"):
        x[i, :, :]
    with pytest.raises(IndexError, match="single ellipsis"):
        x[i, ..., ...]
    np.testing.assert_array_equal(x[i, ..., :].numpy(), x.numpy()[i.numpy()])


def test_bounds_of_either_sign_of_zero(native: None) -> None:
    x = cr.from_numpy(np.full(5000, -1.0))
    for low in (0.0, -0.0):
        assert (np.signbit(x.clamp(low).numpy()) == np.signbit(low)).all()


def test_many_settings_run_in_numpy(native: None) -> None:
    x = signed(5000)
    for low in np.linspace(-1, 1, 30):
        found = cr.from_numpy(x).clamp(float(low)).numpy()
        np.testing.assert_array_equal(found, np.maximum(x, low))


# --- threads --------------------------------------------------------------------------------------


THREADED = [
    *("tanh", "softmax", "sum", "sum of columns", "sum of many rows", "index, repeated", "concat"),
    *("matmul, stacks", "convolve"),
]


@pytest.mark.parametrize("name", THREADED)
def test_results_dont_depend_on_threads(name: str, native: None) -> None:
    function, arrays = OPERATIONS[name]
    arrays = [np.concatenate([a] * 9) for a in arrays]
    found = []
    for count in (1, 2, 3):
        cr.set_num_threads(count)
        found.append([run(function, arrays, "float32") for _ in range(3)])
    for again in (*found[0], *found[1], *found[2]):
        for a, b in zip(again, found[0][0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_several_threads_call_at_once(native: None) -> None:
    xs = [signed(400_000) for _ in range(4)]
    wrong: list[int] = []
    gate = threading.Barrier(len(xs))

    def work(i: int) -> None:
        x = cr.from_numpy(xs[i])
        gate.wait()
        for _ in range(200):
            if not np.array_equal((x * float(i)).numpy(), xs[i] * i):
                wrong.append(i)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


def test_a_team_that_is_stopped_while_it_starts_leaves_no_thread(
    native: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(2)
    if not team.helper_count:
        pytest.skip("there is one core")
    start = team.helper_threads.start

    def slowly(*arguments: Any) -> None:
        start(*arguments)
        time.sleep(0.05)  # the thread sleeps now
        team.stop()

    monkeypatch.setattr(team.helper_threads, "start", slowly)
    team.wake(large=False)
    (member,) = team.helper_threads.threads
    member.join(5.0)
    assert not member.is_alive()


def test_threads_go_to_sleep(native: None) -> None:
    x = cr.from_numpy(signed(1_000_000))
    for _ in range(5):
        _ = -x
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


FORKED = """
import os, sys, warnings
import numpy as np
import chainrule as cr

warnings.simplefilter("ignore", DeprecationWarning)  # Python's of forks beside threads
cr.set_num_threads(2)
cr.set_kernels("native")
array = np.linspace(-2, 2, 1_000_000, dtype="f4")
x = cr.from_numpy(array)
before = x.tanh().numpy()
child = os.fork()
if child == 0:
    code = 1
    try:
        for _ in range(20):
            np.testing.assert_array_equal(x.tanh().numpy(), before)
        np.testing.assert_allclose(x.exp().numpy(), np.exp(array), rtol=1e-6)
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
np.testing.assert_array_equal(x.tanh().numpy(), before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cr.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


# --- set_kernels ----------------------------------------------------------------------------------


def test_get_kernels_returns_the_setting(native: None) -> None:
    assert cr.get_kernels() == "native"
    cr.set_kernels("native")
    cr.set_kernels("numpy")
    assert cr.get_kernels() == "numpy"
    assert not eager._installed
    with pytest.raises(ValueError, match="set_kernels expects 'numpy' or 'native', but got 'gpu'"):
        cr.set_kernels("gpu")


def test_numpy_kernels_are_restored(native: None) -> None:
    x = np.linspace(-3, 3, 100_000, dtype="f4")
    cr.set_kernels("numpy")
    found = cr.from_numpy(x).tanh()
    np.testing.assert_array_equal(found.numpy(), np.tanh(x))


def test_without_llvm_set_kernels_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jit, "is_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"pip install 'chainrule\[native\]'"):
        cr.set_kernels("native")
    assert cr.get_kernels() == "numpy"


def test_compiled_functions_are_unaffected(native: None) -> None:
    x = signed(100, 100)

    def function(x: Any) -> Any:
        return (x.tanh() * 2).softmax(-1).sum(0)

    found = cr.compile(function, backend="numpy")(cr.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, function(cr.from_numpy(x)).numpy(), rtol=1e-12)


LOOPS = {  # whether the step is one loop
    "SGD": True,
    "SGD momentum": True,
    "Adam": True,
    "Adam amsgrad": True,
    "AdamW weight_decay": True,
    "Adamax": True,
    "NAdam": True,
    "RAdam": True,
    "RMSprop": True,
    "RMSprop centered momentum": True,
    "RMSprop momentum": True,
    "Adagrad": True,
    "Adadelta": True,
    "Rprop": False,
    "Adafactor": False,
}


def trained(name: str, dtype: str) -> list[np.ndarray]:
    """Return parameters of several sizes and layouts after three steps, and their states."""
    rng = np.random.default_rng(0)
    kind, *options = name.split()
    shapes = [(300, 301), (5, 7), (70_001,), ()]
    params = [cr.tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    params.append(cr.from_numpy(rng.standard_normal((300, 290)).astype(dtype).T))
    params.append(cr.tensor(rng.standard_normal(5000).astype("complex64")))
    params = params[:-1] if kind == "Adafactor" else params
    for param in params:
        param.requires_grad_()
    given: dict[str, Any] = dict.fromkeys(options, True) | {"lr": 0.01}
    given |= {option: 0.9 for option in options if option in ("momentum", "weight_decay")}
    optimizer = getattr(cr.optim, kind)(params, **given)
    for step in range(3):
        for i, param in enumerate(params):
            late = i == 2 and not step  # a step behind the others
            values = rng.standard_normal(param.shape).astype(param.numpy(force=True).dtype)
            param.grad = None if late else cr.tensor(values)
        optimizer.step()
    states = [state.numpy() for param in params for state in optimizer.state[param].values()]
    return [*[param.detach().numpy() for param in params], *states]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOOPS)
def test_steps_of_optimisers_have_the_bits_of_numpy(name: str, dtype: str, native: None) -> None:
    found = trained(name, dtype)
    loops = UPDATES[0].known
    assert any(loops.values()) == LOOPS[name]
    cr.set_kernels("numpy")
    for x, y in zip(found, trained(name, dtype), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_gradient_in_the_memory_of_its_parameter(native: None) -> None:
    memory = np.arange(100_001.0)
    w = cr.from_numpy(memory[1:]).requires_grad_()
    w.grad = cr.from_numpy(memory[:-1])
    cr.optim.SGD([w], lr=1.0).step()
    np.testing.assert_array_equal(w.detach().numpy(), 1.0)


def test_a_step_by_machine_code_is_an_in_place_write(native: None) -> None:
    w = cr.ones(100_000, requires_grad=True)
    optimizer = cr.optim.Adam([w], lr=0.5)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    assert w.max() == 0.5
    with pytest.raises(RuntimeError, match=r"Adam\.step"):
        loss.backward()
