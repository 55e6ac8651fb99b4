"""Pickled functions: transforms, compiled and custom functions are found again, settings travel."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree
from chainrule.autograd import function_wrapper
from chainrule.compiler import build
from chainrule.kernels import threads
from helpers.processes import run_bytes

W = cr.tensor([1.0, -2.0, 3.0])
X = cr.tensor([0.5, 1.5, -1.0])


def loss(w: Any, x: Any = X) -> Any:
    return (cr.tanh(w * x) * 0.1 + w**3).sum()


def cube(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x**3


def cube_backward(ctx: Any, g: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x**2 * g


def cube_jvp(ctx: Any, t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x**2 * t


@cr.grad
def decorated_grad(w: Any) -> Any:
    """Return a cube."""
    return (w**3).sum()


@cr.vmap
def decorated_vmap(w: Any) -> Any:
    return w**2


@cr.compile
def decorated_compile(w: Any) -> Any:
    return w * 0.1


@cr.compile
@cr.grad
def decorated_twice(w: Any) -> Any:
    return (w**4).sum()


@cr.autograd_function
def decorated_custom(ctx: Any, x: Any) -> Any:
    return x * 3


@decorated_custom.backward
def _(ctx: Any, g: Any) -> Any:
    return g * 3


class Tripled(cr.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


class Energy:
    scale = 2.0

    @cr.compile
    def value(self, x: Any) -> Any:
        return (x * self.scale).sum()

    slope = cr.grad(lambda self, x: (x**2 * self.scale).sum(), "x")


def custom() -> Any:
    return cr.autograd_function(cube, cr.once_differentiable(cube_backward), jvp=cube_jvp)


MADE: dict[str, Callable[[], Any]] = {
    "grad": lambda: cr.grad(loss),
    "value_and_grad": lambda: cr.value_and_grad(loss, argnums=("w", "x")),
    "jacobian": lambda: cr.jacobian(cr.sin, mode="forward"),
    "hessian": lambda: cr.hessian(loss),
    "hvp": lambda: functools.partial(cr.hvp, loss, tangents=cr.ones(3)),
    "vmap": lambda: cr.vmap(cr.sin),
    "nested": lambda: cr.vmap(cr.grad(cr.grad(cr.sin))),
    "nested again": lambda: cr.jacobian(cr.grad(loss)),
    "partial": lambda: functools.partial(cr.grad(loss), x=cr.ones(3)),
    "compiled": lambda: cr.compile(loss),
    "compiled transform": lambda: cr.compile(cr.value_and_grad(loss), backend="numpy"),
    "transform of compiled": lambda: cr.grad(cr.compile(loss)),
    "custom": custom,
    "transform of custom": lambda: cr.vmap(custom()),
    "linear": lambda: cr.linearize(loss, W)[1],
    "pullback": lambda: cr.vjp(cr.sin, W)[1],
    "decorated grad": lambda: decorated_grad,
    "decorated vmap": lambda: decorated_vmap,
    "decorated compile": lambda: decorated_compile,
    "decorated twice": lambda: decorated_twice,
    "decorated custom": lambda: decorated_custom,
    "torch's form": lambda: Tripled.apply,
}
NAMED = [name for name in MADE if name.startswith(("decorated", "torch"))]


def dumped(name: str, x: Any) -> bytes:
    module = pytest.importorskip(name)
    written: bytes = module.dumps(x)
    return written


picklers = pytest.mark.parametrize("pickler", ["pickle", "cloudpickle"])


def assert_same(one: Any, other: Any) -> None:
    for _, a, b in pytree.zip_leaves(one, other):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.detach(), b.detach())


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the functions that are traced meanwhile."""
    found: list[str] = []
    trace_call = build.trace_call

    def counted(function: Any, *call: Any) -> Any:
        found.append(getattr(function, "__name__", "?"))
        return trace_call(function, *call)

    monkeypatch.setattr(build, "trace_call", counted)
    return found


# --- all kinds ------------------------------------------------------------------------------------


@picklers
@pytest.mark.parametrize("kind", MADE)
def test_functions_are_found_again(kind: str, pickler: str) -> None:
    function = MADE[kind]()
    found = pickle.loads(dumped(pickler, function))
    again = pickle.loads(dumped(pickler, found))
    for each in (found, again):
        assert_same(each(W), function(W))
    assert found is function or kind not in NAMED


@pytest.mark.parametrize("kind", NAMED)
def test_copies_of_named_functions_are_themselves(kind: str) -> None:
    function = MADE[kind]()
    assert copy.copy(function) is copy.deepcopy([function])[0] is function


def test_custom_functions_keep_their_rules() -> None:
    found = pickle.loads(pickle.dumps(custom()))
    w = W.detach().requires_grad_()
    found(w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 12.0, 27.0]
    assert cr.jvp(found, W, cr.ones(3))[1].tolist() == [3.0, 12.0, 27.0]
    assert found.check(W.to(cr.float64)) is not False
    assert str(inspect.signature(found)) == "(x: 'Any') -> 'Any'"


def test_wrapped_functions_look_like_functions() -> None:
    assert decorated_grad.__doc__ == "Return a cube."
    assert decorated_grad.__name__ == "decorated_grad"
    assert str(inspect.signature(cr.grad(loss))) == str(inspect.signature(loss))
    assert repr(decorated_grad) == "<grad of decorated_grad>"
    loss_grad: Any = cr.grad(loss)
    loss_grad.note = "mine"
    assert cr.vmap(loss_grad).note == "mine"
    energy = Energy()
    assert energy.slope(cr.ones(2)).tolist() == [4.0, 4.0]
    assert pickle.loads(pickle.dumps(energy.value))(cr.ones(2)).item() == 4.0


def test_a_function_rebound_in_a_module_is_noticed_by_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = cr.compile(lambda w: decorated_grad(w) * 1.0)
    before = compiled(W)
    monkeypatch.setitem(globals(), "decorated_grad", cr.grad(loss))
    assert_same(compiled(W), cr.grad(loss)(W))
    assert before.tolist() != compiled(W).tolist()


def test_linear_functions_of_changed_points_are_refused() -> None:
    scale = cr.tensor(2.0)
    pickled = pytest.importorskip("cloudpickle").dumps

    def scaled(x: Any) -> Any:
        return x * scale

    _, jvp_fn = cr.linearize(scaled, W)
    _, vjp_fn = cr.vjp(scaled, W)
    assert_same(pickle.loads(pickled(jvp_fn))(cr.ones(3)), cr.full((3,), 2.0))
    assert_same(pickle.loads(pickled(vjp_fn))(cr.ones(3)), cr.full((3,), 2.0))
    scale.fill_(5.0)
    for function in (jvp_fn, vjp_fn):
        with pytest.raises(pickle.UnpicklingError, match="its value is another one now"):
            pickle.loads(pickled(function))


# --- programs are shared --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [cr.compile, lambda f: cr.compile(cr.vmap(cr.grad(f)))], ids=["compile", "transforms"]
)
def test_functions_of_modules_are_traced_once(wrap: Any, traces: list[str]) -> None:
    written = pickle.dumps(wrap(loss))
    for _ in range(3):
        found = pickle.loads(written)
        found(cr.ones(2, 3))
        del found
        gc.collect()
    assert traces == ["loss"]


def closure(scale: float, requires_grad: bool = False, *, keyed: bool = True) -> tuple[Any, Any]:
    """Return a function with tensors, also as keys, an array, a number, a function of its own."""
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad)
    array = np.arange(3.0, dtype="f4")
    scales = {w if keyed else "w": scale}

    def scaled(t: Any) -> Any:
        return t * next(iter(scales.values()))

    def inner(x: Any) -> Any:
        return (scaled(x) * w * array).sum()

    return inner, w


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "compile": cr.compile,
    "compile(grad)": lambda f: cr.compile(cr.grad(f)),
    "compile(vmap)": lambda f: cr.compile(cr.vmap(f, 0)),
    "compile(jacobian(grad))": lambda f: cr.compile(cr.jacobian(cr.grad(lambda x: f(x) ** 2))),
    "compile(partial)": lambda f: cr.compile(functools.partial(f)),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED.keys())
def test_copies_of_closures_share_programs(
    wrap: Any, requires_grad: bool, traces: list[str]
) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    x = cr.ones(2, 3)[0] if wrap is not WRAPPED["compile(vmap)"] else cr.ones(2, 3)
    functions = []
    for scale in (2.0, 3.0):
        function = wrap(closure(scale, requires_grad)[0])
        functions.append((pickled(function), function(x)))
        del function
    number = len(traces)
    for _ in range(3):
        for written, wanted in functions:
            assert_same(pickle.loads(written)(x), wanted)
    assert len(traces) <= number + 2  # the originals are gone: each is traced once more
    later = len(traces)
    for written, wanted in functions:
        assert_same(pickle.loads(written)(x), wanted)
    assert len(traces) == later


class Shifted:
    """An object with a tensor and a number, which is called."""

    def __init__(self) -> None:
        self.w, self.shift = cr.tensor([1.0, 2.0, 3.0], requires_grad=True), 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.w + self.shift

    def value(self, x: Any) -> Any:
        return self(x) * 2


class Inherited(Shifted):
    pass


OBJECTS: dict[str, Callable[[], Any]] = {
    "object": Shifted,
    "inherited": Inherited,
    "method": lambda: Shifted().value,
    "partial": lambda: functools.partial(Inherited()),
    "module": lambda: cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.Tanh()),
    "forward": lambda: cr.nn.Linear(3, 2).forward,
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_copies_of_objects_share_programs(kind: str, traces: list[str]) -> None:
    """A copy of a module, or of another object that is called, has parameters of its own."""
    compiled, x = cr.compile(OBJECTS[kind]()), cr.ones(2, 3)
    wanted = compiled(x)
    for _ in range(2):
        copied = pickle.loads(pickle.dumps(compiled))
        assert_same(copied(x), wanted)
    assert len(traces) == 1
    called = getattr(copied.function, "func", copied.function)
    called = getattr(called, "__self__", called)
    parameters = [called.w] if isinstance(called, Shifted) else list(called.parameters())
    with cr.no_grad():
        parameters[0].add_(1.0)
    assert_same(copied(x), copied.function(x))
    assert_same(compiled(x), wanted)
    assert not np.array_equal(copied(x).detach(), wanted.detach())
    gradients = [cr.autograd_grad(f(x).sum(), parameters) for f in (copied, copied.function)]
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)
    if isinstance(called, Shifted):
        called.shift = 5.0
        assert_same(copied(x), copied.function(x))


def test_decorated_compiled_functions_are_pickled() -> None:
    compiled = cr.compile(lambda x: x * 2)
    compiled.note = "kept"

    @functools.wraps(compiled)
    def doubled(x: Any) -> Any:
        return 2 * compiled(x)

    assert doubled(cr.ones(2)).tolist() == [4.0, 4.0]
    copied = pickle.loads(pytest.importorskip("cloudpickle").dumps(doubled))
    assert (copied(cr.ones(2)).tolist(), copied.note) == ([4.0, 4.0], "kept")


def test_large_modules_do_not_keep_copies_from_sharing_programs(
    traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs use functions of NumPy, but not all that NumPy's modules contain."""
    monkeypatch.setitem(np.full.__globals__, "many", [[] for _ in range(60_000)])
    test_copies_of_closures_share_programs(cr.compile, True, traces)


def test_plain_functions_that_workers_compile_are_traced_once(traces: list[str]) -> None:
    written = pytest.importorskip("cloudpickle").dumps(closure(7.0)[0])
    for _ in range(3):
        assert cr.compile(pickle.loads(written))(cr.ones(3)).item() == 56.0
        gc.collect()
    assert traces == ["inner"]


def test_only_the_latest_functions_of_pickles_are_kept() -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    first = pickle.loads(pickled(cr.compile(closure(1.0)[0])))
    first(cr.ones(3))
    known = weakref.ref(first)
    del first
    gc.collect()
    assert known() is not None
    for number in range(16):
        pickle.loads(pickled(cr.compile(closure(float(number))[0])))
    gc.collect()
    assert known() is None


def test_copies_have_tensors_of_their_own(traces: list[str]) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    function, w = closure(2.0, requires_grad=True, keyed=False)
    original = cr.compile(function)
    x = cr.ones(3)
    original(x).backward()
    w.grad = None
    copies = [pickle.loads(pickled((original, w))) for _ in range(2)]
    with cr.no_grad():
        for number, (_, own) in enumerate(copies):
            own.copy_(cr.full((3,), 10.0 * (number + 1)))
    for number, (each, own) in enumerate(copies):
        value = each(x)
        assert value.item() == 60.0 * (number + 1)
        value.backward()
        assert own.grad is not None
        assert own.grad.tolist() == [0.0, 2.0, 4.0]
    assert traces == ["inner"]
    assert original(x).item() == 16.0


def test_second_derivatives_of_copies_use_their_tensors(traces: list[str]) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    w = cr.tensor(2.0)

    def cubed(x: Any) -> Any:
        return w * x**3

    compiled = cr.compile(cubed)
    x = cr.tensor(1.0, requires_grad=True)
    compiled(x)
    found, own = pickle.loads(pickled((compiled, w)))
    own.fill_(5.0)
    (slope,) = cr.autograd_grad(found(x), x, create_graph=True)
    assert slope.item() == 15.0
    assert cr.autograd_grad(slope, x)[0].item() == 30.0
    assert traces == ["cubed"]


def test_training_steps_of_copies_are_independent(traces: list[str]) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    w = cr.tensor([1.0, 1.0], requires_grad=True)

    def step(x: Any) -> Any:
        value = (w * x).sum()
        value.backward()
        with cr.no_grad():
            w.sub_(w.grad * 0.5)
        w.grad = None
        return value.detach()

    compiled = cr.compile(step)
    x = cr.ones(2)
    assert [compiled(x).item() for _ in range(2)] == [2.0, 1.0]
    written = pickled(compiled)
    for _ in range(2):
        found = pickle.loads(written)
        assert [found(x).item() for _ in range(2)] == [0.0, -1.0]
    assert compiled(x).item() == 0.0
    assert traces == ["step"]


def test_tensors_that_no_search_finds_are_those_of_the_copy() -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    w = [cr.tensor(float(i)) for i in range(6000)]  # more than the search visits

    def last(x: Any) -> Any:
        return x * w[-1]

    compiled = cr.compile(last)
    compiled(cr.ones(2))
    found, own = pickle.loads(pickled((compiled, w)))
    own[-1].fill_(3.0)
    assert found(cr.ones(2)).tolist() == [3.0, 3.0]


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "number": (2.0, 3.0),
    "sign of zero": (0.0, -0.0),
    "type": (1, 1.0),
    "list": ([1.0, 2.0], [1.0, 3.0]),
    "large array": (np.arange(9000.0), np.arange(9000.0) + 1),
    "read-only array": (read_only(np.arange(9.0)), read_only(np.arange(9.0) + 1)),
    "dict": ({"a": 1.0}, {"a": 2.0}),
    "dtype": (cr.ones(3), cr.ones(3, dtype=cr.float64)),
}


def value_of(kept: Any) -> Any:
    if isinstance(kept, np.ndarray):
        return float(kept[5])
    return kept if not isinstance(kept, list | dict) else [*getattr(kept, "values", kept.copy)()]


@pytest.mark.parametrize("kind", DIFFERENT)
def test_functions_with_other_closures_are_traced_anew(kind: str) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps

    def made(kept: Any) -> Any:
        def function(x: Any) -> Any:
            parts = value_of(kept)
            for part in parts if isinstance(parts, list) else [parts]:
                x = cr.copysign(x, x * part) * part + part
            return x

        return function

    x = cr.ones(3)
    compiled = [cr.compile(made(kept)) for kept in DIFFERENT[kind]]
    copies = [pickle.loads(pickled(each)) for each in compiled]
    for each in (*copies, *reversed(copies)):
        each(x)
    for each, kept in zip(copies, DIFFERENT[kind], strict=True):
        found, wanted = each(x), made(kept)(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
        np.testing.assert_array_equal(found, wanted)


def test_functions_whose_tensors_are_not_the_same_ones_are_traced_anew() -> None:
    """A program has one input for a tensor that a closure has twice."""
    pickled = pytest.importorskip("cloudpickle").dumps

    def made(a: Any, b: Any) -> Any:
        return cr.compile(lambda x: (x * a + b) * a)

    one, other, x = cr.tensor([2.0, 3.0]), cr.tensor([5.0, 7.0]), cr.ones(2)
    pairs = [(one, one), (one, other), (other, other)]
    for a, b in (*pairs, *reversed(pairs)):
        copied = pickle.loads(pickled(made(a, b)))
        np.testing.assert_array_equal(copied(x), (x * a + b) * a)


ARRAYS = {
    "float32": np.array([1.0, 2.0, 3.0], "f4"),
    "float64": np.array([1.0, 2.0, 3.0]),
    "other elements": np.array([4.0, 5.0, 6.0], "f4"),
    "row": np.array([[1.0, 2.0, 3.0]], "f4"),
    "one": np.array([7.0], "f4"),
    "read-only": read_only(np.array([1.0, 3.0, 5.0], "f4")),
    "read-only, other elements": read_only(np.array([1.0, 3.0, 6.0], "f4")),
}


def scaled_by_size(array: Any) -> Any:
    return lambda x: x * array * array.nbytes


def scaled_by_element(array: Any) -> Any:
    return lambda x: x * array * float(array.flat[-1])


@pytest.mark.parametrize("made", [scaled_by_size, scaled_by_element])
def test_functions_with_other_arrays(made: Any) -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    x = cr.ones(3)
    copies = [pickle.loads(pickled(cr.compile(made(array)))) for array in ARRAYS.values()]
    for each in (*copies, *reversed(copies)):
        each(x)
    for each, array in zip(copies, ARRAYS.values(), strict=True):
        assert_same(each(x), made(array)(x))


def test_transforms_with_other_settings_are_traced_anew() -> None:
    pickled = pytest.importorskip("cloudpickle").dumps

    def inner(a: Any, b: Any) -> Any:
        return a["x"] * b

    a, b = {"x": cr.tensor([[1.0, 2.0], [3.0, 4.0]])}, cr.tensor([1.0, 10.0])
    for axis in (0, 1, 0):
        compiled = cr.compile(cr.vmap(inner, ({"x": axis}, None)))
        assert_same(
            pickle.loads(pickled(compiled))(a, b), cr.vmap(inner, ({"x": axis}, None))(a, b)
        )
    for argnums in (0, 1, ("b",)):
        total = cr.grad(lambda a, b: (a**2 * b).sum(), argnums)
        found = pickle.loads(pickled(cr.compile(total)))
        assert_same(found(b, b * 2), total(b, b * 2))


def test_generators_of_copies_are_their_own() -> None:
    pickled = pytest.importorskip("cloudpickle").dumps
    generator = cr.Generator().manual_seed(3)

    def noisy(x: Any) -> Any:
        return x + cr.rand(3, generator=generator)

    compiled = cr.compile(noisy)
    written = pickled(compiled)
    first = compiled(cr.zeros(3))
    for _ in range(2):
        assert_same(pickle.loads(written)(cr.zeros(3)), first)


# --- settings -------------------------------------------------------------------------------------


@pytest.fixture
def float32() -> Iterator[None]:
    before = cr.get_default_dtype()
    cr.set_default_dtype(cr.float32)
    yield
    cr.set_default_dtype(before)


def tenth(w: Any) -> Any:
    return (w * cr.tensor(0.1)).sum()


@cr.compile
def compiled_tenth(w: Any) -> Any:
    return w * cr.tensor(0.1)


SETTINGS: dict[str, Callable[[], Any]] = {
    "grad": lambda: cr.grad(tenth),
    "compiled": lambda: cr.compile(tenth),
    "compiled transform": lambda: cr.compile(cr.grad(tenth)),
    "transform of compiled": lambda: cr.grad(cr.compile(tenth)),
    "named": lambda: compiled_tenth,
    "vmap": lambda: cr.vmap(one_tenth),
}


def one_tenth(w: Any) -> Any:
    return w * cr.tensor(0.1)


@picklers
@pytest.mark.parametrize("kind", SETTINGS)
def test_the_default_dtype_travels(kind: str, pickler: str, float32: None) -> None:
    function = SETTINGS[kind]()
    cr.set_default_dtype(cr.float64)
    point = cr.tensor([1.0, 2.0])
    wanted = function(point)
    assert wanted.dtype == cr.float64
    written = dumped(pickler, function)
    cr.set_default_dtype(cr.float32)
    found = pickle.loads(written)
    assert function(point.to(cr.float32)).dtype == cr.float32
    for each in (found, pickle.loads(written), pickle.loads(dumped(pickler, found))):
        for _ in range(2):
            assert_same(each(point), wanted)
            assert cr.get_default_dtype() == cr.float32
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(found(point)))
    thread.start()
    thread.join()
    assert_same(results[0], wanted)


def test_compiled_functions_stay_compiled_with_another_default_dtype(
    float32: None, traces: list[str]
) -> None:
    cr.set_default_dtype(cr.float64)
    written = pickle.dumps(cr.compile(tenth))
    cr.set_default_dtype(cr.float32)
    found = [pickle.loads(written) for _ in range(2)]
    assert found[0] is found[1]
    found[0](cr.ones(2))
    assert "def tenth" in found[0].source
    assert len(traces) == 1


def settings_of(monkeypatch: pytest.MonkeyPatch, chosen: bool, **changes: Any) -> bytes:
    """Return a pickle written under other settings, to be read where some are chosen or not."""
    own = function_wrapper.settings()._replace(**changes)
    with monkeypatch.context() as patch:
        patch.setattr(function_wrapper, "settings", lambda: own)
        written = pickle.dumps(cr.grad(loss))
    monkeypatch.setattr(threads, "has_chosen", lambda: chosen)
    import chainrule.compiler.eager as eager

    monkeypatch.setattr(eager, "has_chosen", lambda: chosen)
    return written


def test_other_settings_of_the_process_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    number = cr.get_num_threads()
    wanted = r"grad|loss was pickled where num_threads is 9, but .*cr.set_num_threads\(9\)"
    with pytest.raises(pickle.UnpicklingError, match=wanted):
        pickle.loads(settings_of(monkeypatch, True, num_threads=9))
    with pytest.raises(pickle.UnpicklingError, match=r"kernels is 'native'.*cr.set_kernels"):
        pickle.loads(settings_of(monkeypatch, True, kernels="native"))
    assert (cr.get_num_threads(), cr.get_kernels()) == (number, "numpy")
    pickle.loads(settings_of(monkeypatch, True, num_threads=number))


CLIENT = """
import pickle, sys
import cloudpickle
import chainrule as cr

cr.set_default_dtype(cr.float64)
cr.set_num_threads(3)
{kernels}
W = cr.tensor([1.0, 2.0])

@cr.compile
def value(x):
    return (W * x * cr.tensor(0.1)).sum()

def loss(x):
    return value(x) + cr.softmax(x * cr.tensor(0.3), 0).sum()

x = cr.tensor([0.1, 0.7])
function = cr.value_and_grad(loss)
sys.stdout.buffer.write(cloudpickle.dumps((function, value, x, function(x))))
"""

WORKER = """
import pickle, sys
import numpy as np
import chainrule as cr

function, value, x, wanted = pickle.loads(sys.stdin.buffer.read())
for a, b in zip(function(x), wanted):
    assert a.dtype == b.dtype == cr.float64
    np.testing.assert_array_equal(a, b)
assert value(x).dtype == cr.float64 and type(value).__module__ == "chainrule.compiler.api"
print(cr.get_num_threads(), cr.get_kernels(), cr.get_default_dtype())
"""


def test_a_fresh_worker_computes_what_its_client_would() -> None:
    pytest.importorskip("cloudpickle")
    import importlib.util

    native = importlib.util.find_spec("llvmlite") is not None
    kernels = "cr.set_kernels('native')" if native else ""
    written = run_bytes(CLIENT.format(kernels=kernels), b"")
    found = run_bytes(WORKER, written).decode().split()
    assert found == ["3", "native" if native else "numpy", "float32"]
