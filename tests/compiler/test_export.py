"""Golden files of generated NumPy source, run without chainrule and compared with eager mode."""

from __future__ import annotations

import inspect
import linecache
import pathlib
import runpy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree
from chainrule.backend.extensions import KERNELS
from chainrule.compiler.export import kernel_source
from chainrule.compiler.ir.program import Op
from chainrule.nn import functional
from helpers import exported_functions

EXAMPLES = {function.__name__: (function, args) for function, args in exported_functions.examples()}

RUN = """
import pickle, runpy, sys
sys.modules["chainrule"] = sys.modules["scipy"] = None  # importing them fails
args = pickle.load(sys.stdin.buffer)
result = runpy.run_path(sys.argv[1])[sys.argv[2]](*args)
pickle.dump(result, sys.stdout.buffer)
"""


def without_chainrule(file: pathlib.Path, name: str, *args: Any) -> Any:
    import pickle

    run = subprocess.run(
        [sys.executable, "-c", RUN, str(file), name],
        input=pickle.dumps(args),
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    return pickle.loads(run.stdout)


def array_of(leaf: Any) -> Any:
    return leaf.detach().numpy() if isinstance(leaf, cr.Tensor) else leaf


def assert_alike(got: Any, wanted: Any) -> None:
    pairs = zip(pytree.leaves(got), pytree.leaves(wanted), strict=True)
    for (path, a), (same_path, b) in pairs:
        assert path == same_path
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_source_is_the_golden_one(name: str, tmp_path: pathlib.Path) -> None:
    function, args = EXAMPLES[name]
    file = cr.export(function, tmp_path / f"{name}.py", *args)
    golden = exported_functions.FOLDER / f"{name}.py"
    assert file.read_text(encoding="utf-8") == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_source_runs_without_chainrule(name: str) -> None:
    function, args = EXAMPLES[name]
    arrays = pytree.map_leaves(args, array_of)
    result = without_chainrule(exported_functions.FOLDER / f"{name}.py", name, *arrays)
    assert_alike(result, pytree.map_leaves(function(*args), array_of))


def test_parameters_go_with_the_module(tmp_path: pathlib.Path) -> None:
    large, small = exported_functions.numbers(5, 100), exported_functions.numbers(100, seed=1)
    offset = exported_functions.numbers(3, seed=2)

    def model(x: Any) -> Any:
        return (x @ large * small).sum(-1, keepdim=True) + offset

    x = exported_functions.numbers(2, 5, seed=3)
    file = cr.export(model, tmp_path / "model.py", x)
    assert {path.name for path in tmp_path.iterdir()} == {"model.py", "model.npz"}
    assert_alike(without_chainrule(file, "model", x.numpy()), model(x).numpy())


def test_closed_over_arrays_go_with_the_module(tmp_path: pathlib.Path) -> None:
    scale = np.arange(3.0, dtype=np.float32)
    file = cr.export(lambda x: x * scale, tmp_path / "scaled.py", cr.ones(3))
    assert_alike(without_chainrule(file, "function", np.ones(3, np.float32)), scale)


def test_views_that_were_written_to_are_exported_as_they_end(tmp_path: pathlib.Path) -> None:
    def written(x: Any) -> Any:
        copy = x.clone()
        first = copy[0]
        copy.mul_(2)
        return first, copy

    x = exported_functions.numbers(2, 3)
    file = cr.export(written, tmp_path / "written.py", x)
    assert_alike(
        without_chainrule(file, "written", x.numpy()), pytree.map_leaves(written(x), array_of)
    )


def test_the_derivative_of_a_determinant_is_spelled_in_numpy(tmp_path: pathlib.Path) -> None:
    def slope(x: Any) -> Any:
        return cr.grad(lambda x: np.linalg.slogdet(x @ x.T + 1.0)[1])(x)

    rng = np.random.default_rng(0)
    file = cr.export(slope, tmp_path / "slope.py", rng.normal(size=(3, 3)))
    assert "np.linalg.inv(" in file.read_text(encoding="utf-8")
    x = rng.normal(size=(5, 5))
    np.testing.assert_allclose(without_chainrule(file, "slope", x), slope(x), rtol=1e-9)


def special_functions(x: Any) -> Any:
    def loss(x: Any) -> Any:
        return (cr.erf(x) * cr.special.xlogy(x, x) * cr.lgamma(x)).sum() + cr.linalg.norm(x, 3)

    return cr.grad(loss)(x), cr.logaddexp(x, 2 * x)


def layers(x: Any) -> Any:
    def loss(x: Any) -> Any:
        inner = functional.gelu(functional.conv1d(x, KERNEL))
        return functional.max_pool1d(inner, 2).square().mean()

    return cr.grad(loss)(x)


def matrices(x: Any) -> Any:
    return cr.grad(cr.linalg.det)(x), cr.linalg.matrix_exp(x), cr.complex(x, x)


KERNEL = cr.tensor(np.random.default_rng(0).normal(size=(2, 3, 3)))


@pytest.mark.parametrize(
    ("function", "shape", "other"),
    [
        (special_functions, (3,), (40,)),
        (layers, (2, 3, 6), (5, 3, 6)),
        (matrices, (2, 2), (3, 3)),
    ],
)
def test_kernels_go_with_the_module(
    function: Any, shape: Any, other: Any, tmp_path: pathlib.Path
) -> None:
    rng = np.random.default_rng(1)
    file = cr.export(function, tmp_path / "module.py", cr.tensor(rng.uniform(0.1, 1, shape)))
    for size in (shape, other):
        x = rng.uniform(0.1, 1, size)
        found = without_chainrule(file, function.__name__, x)
        assert_alike(found, pytree.map_leaves(function(cr.tensor(x)), array_of))


def test_every_kernel_has_a_copy_or_needs_scipy() -> None:
    need_scipy = {"gammainc_moment", "betainc_moment", "scipy_fft", "scipy_linalg"}
    need_scipy |= {*KERNELS["special"]} - {"erf", "erfc", "lgamma", "polygamma"}
    every = {name for names in KERNELS.values() for name in names}
    found = kernel_source.missing([Op(f"kernels.{name}", (), {}, ()) for name in every])
    assert found == {f"kernels.{name}" for name in need_scipy}
    source = kernel_source.kernel_source(every - need_scipy)
    scope: dict[str, Any] = {"np": np}
    exec(source, scope)
    assert vars(scope["kernels"]).keys() == every - need_scipy
    assert "chainrule" not in source


def test_kernels_whose_definitions_have_one_name_are_refused() -> None:
    copies = kernel_source._Copies()
    copies._define(("one", "scale"), "scale", "scale = 1")
    copies._define(("one", "scale"), "scale", "scale = 1")
    with pytest.raises(kernel_source.NotInNumpyError, match="scale"):
        copies._define(("other", "scale"), "scale", "scale = 2")
    assert copies.statements == ["scale = 1"]


def test_names_are_those_of_the_function_not_of_the_caller(tmp_path: pathlib.Path) -> None:
    def cubes(x: Any) -> Any:
        return (x**3).sum()

    first = cr.export(cr.grad(cubes), tmp_path / "first.py", np.ones(3))
    second = cr.export(cr.grad(cubes), tmp_path / "second.py", np.ones(3))
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")
    compiled = cr.compile(cr.grad(cubes), backend="numpy")
    some_result = compiled(np.ones(3))
    assert len(some_result) == 3
    assert "some_result" not in compiled.source


def test_a_module_updates_its_parameters(tmp_path: pathlib.Path) -> None:
    count = cr.zeros(1)

    def counted(x: Any) -> Any:
        count.add_(x)
        return count * 2

    file = cr.export(counted, tmp_path / "counted.py", cr.ones(1))
    assert count.item() == 0  # nothing was run
    scope: dict[str, Any] = {"__file__": str(file)}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    step = np.ones(1, np.float32)
    assert [float(scope["counted"](step)[0]) for _ in range(3)] == [2, 4, 6]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: cr.erfinv(x), "no spelling in NumPy alone"),
        (lambda x: cr.grad(lambda x: cr.digamma(x).sum())(x), "no spelling in NumPy alone"),
        (lambda x: x.sum().backward(), r"sets a tensor's \.grad"),
    ],
)
def test_what_cant_be_exported_is_refused(function: Any, words: str, tmp_path: Any) -> None:
    with pytest.raises(cr.CompileError, match=words):
        cr.export(function, tmp_path / "module.py", cr.ones(2, requires_grad=True))


@pytest.mark.parametrize("kind", [np.asmatrix, np.ma.asarray, lambda a: a.view(np.recarray)])
def test_arrays_with_operations_of_their_own_are_refused(kind: Any, tmp_path: Any) -> None:
    """The product of matrices is none of elements, and sums of masked arrays leave some out."""

    def f(x: Any) -> Any:
        return (x * x).sum(0)

    module = runpy.run_path(str(cr.export(f, tmp_path / "f.py", cr.ones(2, 2))))
    a = np.arange(4, dtype="f4").reshape(2, 2)
    with pytest.raises(TypeError, match=r"x: expected an array, got \w+: pass numpy\.asarray"):
        module["f"](kind(a))
    path = tmp_path / "numbers"
    np.memmap(path, "f4", "w+", shape=(2, 2))[:] = a
    for numbers in (a, np.memmap(path, "f4", "r", shape=(2, 2))):
        assert module["f"](numbers).tolist() == [4, 10]


def test_tracebacks_and_inspect_show_the_source() -> None:
    @cr.compile
    def inverse(x: Any) -> Any:
        y = x * 2
        return cr.linalg.inv(y)

    inverse(cr.eye(2))
    with pytest.raises(np.linalg.LinAlgError) as info:
        inverse(cr.zeros(2, 2))
    entry = next(e for e in info.traceback if e.frame.code.raw.co_name == "inverse")
    code = entry.frame.code.raw
    assert inspect.getsource(code) == inverse.source
    assert "np.linalg.inv(y)" in linecache.getline(code.co_filename, entry.lineno + 1)


def test_values_have_the_users_names() -> None:
    @cr.compile
    def named(x: Any, scale: Any) -> Any:
        shifted = x + 1
        scaled = shifted * scale
        return scaled.exp()

    named(cr.ones(3), cr.ones(3))
    assert "shifted = x + 1" in named.source
    assert "scaled = shifted * scale" in named.source
    assert "# f4[3]" in named.source


def test_names_that_are_no_names_in_python_are_not_taken() -> None:
    @cr.compile
    def plain(x: Any) -> Any:
        return x * 2

    scope = {"plain": plain, "x": cr.ones(2)}
    code = compile("y = plain(x)", "<asserted>", "exec")
    names = tuple("@y" if name == "y" else name for name in code.co_names)
    exec(code.replace(co_names=names), scope)
    assert "@" not in plain.source


def test_parameters_have_the_names_that_lead_to_them() -> None:
    class Model:
        def __init__(self) -> None:
            self.layers = [cr.nn.Linear(3, 2)]

        def __call__(self, x: Any) -> Any:
            return self.layers[0](x)

    model = Model()

    @cr.compile
    def called(x: Any) -> Any:
        return model(x)

    called(cr.ones(1, 3))
    assert "x @ layers_0_weight.T" in called.source
    assert "+ layers_0_bias" in called.source


def test_a_long_list_of_arguments_is_wrapped() -> None:
    tensors = {f"a_tensor_of_number_{i}": cr.ones(3) * i for i in range(12)}

    @cr.compile
    def total(tensors: Any) -> Any:
        return sum(tensors.values())

    assert total(tensors).tolist() == [66, 66, 66]
    assert max(map(len, total.source.splitlines())) <= 100
    assert total.source.startswith("def total(\n    ")
