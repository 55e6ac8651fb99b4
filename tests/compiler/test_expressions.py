"""Random expressions with special values and constants: compiled forms give the eager bits.

Signs of zeros count. Machine code rounds powers otherwise. `fmax` and `fmin` are left out: whether
NumPy takes 0.0 or -0.0 depends on the position in the array.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import native
from chainrule.compiler.native import fusion_groups, jit
from helpers.expression_trees import MACHINE_DTYPES, Expressions, differences, names

Function = Callable[[dict[str, Any]], list[Any]]
pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values")
ROUNDING = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def demand(source: Expressions, trees: Any, run: Any, rounds: bool = False) -> None:
    """Compile all trees in one function; `run` returns its results as arrays."""
    used = sorted(set[str]().union(*(names(tree) for tree, _ in trees)))
    tensors = {name: source.leaves[name] for name in used}

    def function(tensors: dict[str, Any]) -> list[Any]:
        return [source.evaluate(tree, tensors) for tree, _ in trees]

    found = run(function, tensors)
    wrong = []
    for got, (tree, wanted) in zip(found, trees, strict=True):
        rtol = ROUNDING.get(wanted.dtype.name, 1e-12) if rounds else 0.0
        text = differences(got, wanted, rtol)
        wrong += [f"{tree}: {text}"] if text else []
    assert not wrong, "\n".join(wrong)


def compiled(backend: str) -> Callable[[Function, dict[str, Any]], list[Any]]:
    def run(function: Function, tensors: dict[str, Any]) -> list[Any]:
        program = cr.compile(function, backend=backend)
        return [result.numpy() for result in program(tensors)]

    return run


@pytest.mark.parametrize("seed", range(4))
def test_numpy_source_gives_the_eager_bits(seed: int) -> None:
    source = Expressions(seed)
    demand(source, list(source.take(60, depth=3)), compiled("numpy"))


def test_an_exported_module_gives_the_eager_bits(tmp_path: Path) -> None:
    def run(function: Function, tensors: dict[str, Any]) -> Any:
        file = cr.export(function, tmp_path / "module.py", tensors)
        return runpy.run_path(str(file))["function"]({k: t.numpy() for k, t in tensors.items()})

    source = Expressions(10)
    demand(source, list(source.take(60, depth=3)), run)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("whole", [True, False])
def test_loops_give_the_eager_bits(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not whole:
        monkeypatch.setattr(native, "_emit_whole", lambda program: None)
        monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)
    source = Expressions(20 + whole, MACHINE_DTYPES)
    demand(source, list(source.take(40, depth=2)), compiled("native"), rounds=True)


def test_machine_code_gives_the_eager_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the test runs machine code, not the NumPy source
    if not jit.is_installed():
        pytest.skip("machine code needs LLVM")
    source = Expressions(30, MACHINE_DTYPES)
    demand(source, list(source.take(20, depth=2)), compiled("native"), rounds=True)


@pytest.mark.parametrize("transform", ["gradient", "vmap", "scan"])
def test_transformed_expressions_give_the_eager_bits(transform: str) -> None:
    """The constants of a rule, of a batched function and of a loop's body are the same ones."""
    source = Expressions(40, ("float64", "float32"), views=False)
    apply = {"gradient": gradient, "vmap": mapped, "scan": scanned}[transform]
    done = 0
    for tree, _ in source.take(200, depth=2):
        used = sorted(names(tree))
        tensors = {name: source.leaves[name] for name in used}

        def function(tensors: dict[str, Any], tree: Any = tree) -> Any:
            return apply(lambda t: source.evaluate(tree, t), tensors)

        if not all(name.endswith("_x") for name in used):
            continue
        try:
            wanted = function(tensors)
        except (cr.AutogradError, RuntimeError, TypeError):
            continue  # nothing to differentiate
        got = cr.compile(function, backend="numpy")(tensors)
        assert not differences(got.numpy(), wanted.numpy()), tree
        done += 1
    assert done > 15


def gradient(evaluate: Any, tensors: dict[str, Any]) -> Any:
    own = {name: t.detach().clone().requires_grad_() for name, t in tensors.items()}
    out = evaluate(own)
    return cr.autograd_grad(out, list(own.values()), cr.ones_like(out))[0]


def mapped(evaluate: Any, tensors: dict[str, Any]) -> Any:
    return cr.vmap(lambda *parts: evaluate(dict(zip(tensors, parts, strict=True))))(
        *tensors.values()
    )


def scanned(evaluate: Any, tensors: dict[str, Any]) -> Any:
    def step(carry: Any, parts: Any) -> Any:
        return carry, evaluate(dict(zip(tensors, parts, strict=True)))

    return cr.scan(step, cr.zeros(1), tuple(tensors.values()))[1]


BOUNDS = (0.0, -0.0)
AT_ZERO = {
    **{name: getattr(cr.nn.functional, name) for name in ["relu", "relu6", "elu", "celu", "selu"]},
    **{name: getattr(cr.nn.functional, name) for name in ["hardshrink", "hardswish", "softsign"]},
    **{
        name: getattr(cr, name)
        for name in ["abs", "sign", "neg", "sqrt", "square", "floor", "round", "trunc"]
    },
    **{
        name: getattr(cr, name)
        for name in ["frac", "sin", "tanh", "asinh", "expm1", "log1p", "erf"]
    },
    "leaky_relu": lambda x: cr.nn.functional.leaky_relu(x, 0.0),
    "threshold": lambda x: cr.nn.functional.threshold(x, 0.0, -0.0),
    **{
        f"{name}({bound})": lambda x, name=name, bound=bound: getattr(cr, name)(
            x, cr.full_like(x, bound)
        )
        for name in ("maximum", "minimum", "copysign", "atan2", "fmod", "add", "sub")
        for bound in BOUNDS
    },
    **{f"clamp_min({b})": lambda x, b=b: cr.clamp(x, min=b) for b in BOUNDS},
    **{f"clamp_max({b})": lambda x, b=b: cr.clamp(x, max=b) for b in BOUNDS},
    **{f"clamp({b}, 1)": lambda x, b=b: cr.clamp(x, b, 1.0) for b in BOUNDS},
    **{f"clamp(-1, {b})": lambda x, b=b: cr.clamp(x, -1.0, b) for b in BOUNDS},
    **{f"where({b})": lambda x, b=b: cr.where(x > 0, x, b) for b in BOUNDS},
    **{f"x + {b}": lambda x, b=b: x + b for b in BOUNDS},
    **{f"{b} - x": lambda x, b=b: b - x for b in BOUNDS},
    **{f"x * {b}": lambda x, b=b: x * b for b in BOUNDS},
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [9, 1500])  # on both sides of what eager code does otherwise
def test_zeros_have_the_sign_of_eager_mode(dtype: str, size: int) -> None:
    elements = [0.0, -0.0, np.nan, 0.5, -0.5, 1.0, -1.0, -0.0, 0.0]
    if size == 9:
        x = cr.tensor(np.array(elements, dtype))
        small = {name: function(x).numpy() for name, function in AT_ZERO.items()}
        _compare_zeros(x, small)
    else:  # large arrays get the results of small ones
        x = cr.tensor(np.resize(np.array(elements, dtype), size))
        small = {name: function(x[:9]).numpy() for name, function in AT_ZERO.items()}
        for name, function in AT_ZERO.items():
            wanted = np.resize(small[name], size)
            assert not differences(function(x).numpy(), wanted, ROUNDING.get(dtype, 1e-12)), name


def _compare_zeros(x: Any, wanted: dict[str, Any]) -> None:
    rtol = ROUNDING.get(x.numpy().dtype.name, 1e-12)
    for backend in ("numpy", "native"):
        found = cr.compile(lambda x: {n: f(x) for n, f in AT_ZERO.items()}, backend=backend)(x)
        wrong = {n: text for n in AT_ZERO if (text := differences(found[n], wanted[n], rtol))}
        assert not wrong, (backend, wrong)


@pytest.mark.parametrize("size", [1, 9, 1500])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_relu_and_clamp_keep_a_zero_at_the_bound(dtype: str, size: int) -> None:
    torch = pytest.importorskip("torch")
    functions = [
        (cr.relu, torch.relu),
        (lambda x: cr.clamp(x, min=0.0), lambda x: torch.clamp(x, min=0.0)),
        (lambda x: cr.clamp(x, max=-0.0), lambda x: torch.clamp(x, max=-0.0)),
        (lambda x: cr.clamp(x, -0.0, 1.0), lambda x: torch.clamp(x, -0.0, 1.0)),
        (cr.nn.functional.elu, torch.nn.functional.elu),
    ]
    for zero in (0.0, -0.0):
        x = np.full(size, zero, dtype)
        for ours, theirs in functions:
            assert not differences(ours(cr.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy())


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "float32"])
@pytest.mark.usefixtures("interpreted")
def test_powers_of_negative_numbers(dtype: str, backend: str) -> None:
    exponents, x = cr.tensor(np.array([0, 1, 2, 3, 5], dtype)), cr.ones(5)

    def powers(n: Any, x: Any) -> Any:
        negative = cr.tensor(-2, dtype="int64")
        return ((-1.0) ** n * x).sum(), pow(-2.0, n), (-1) ** x, negative**n, -(x[1:].T ** 2)

    for got, wanted in zip(
        cr.compile(powers, backend=backend)(exponents, x), powers(exponents, x), strict=True
    ):
        assert not differences(got.numpy(), wanted.numpy())
