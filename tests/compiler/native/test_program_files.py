"""Programs on the disk: what their keys contain, and what later processes read."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import emission
from chainrule.compiler.ir.program import Op, Program, Value, Write
from chainrule.compiler.native import code, disk_cache, gemm, program_files

needs_llvm = pytest.mark.skipif(
    not program_files.jit.is_installed(), reason="machine code needs LLVM"
)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, emitted_anew: None) -> Path:
    """Keep programs of any length in a folder of the test."""
    monkeypatch.setattr(program_files, "MIN_OPS", 1)
    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("loop_program_*"))


class _Emissions:
    """The number of programs that were emitted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, emit = 0, emission.emit

        def counted(*args: Any) -> Any:
            self.count += 1
            return emit(*args)

        patch.setattr(emission, "emit", counted)


@pytest.fixture
def emissions(monkeypatch: pytest.MonkeyPatch) -> _Emissions:
    return _Emissions(monkeypatch)


# --- programs that are read -----------------------------------------------------------------------


def small(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = cr.tanh(w @ x) + 0.25 * x
    return (x * x).sum()


def large(x: Any, w: Any) -> Any:
    y = cr.tanh(x * 2.0 + 0.5) * x
    return (y @ w).sin().sum() + y.exp().mean(axis=0).sum()


def solved(x: Any, w: Any) -> Any:
    a = w @ w.mT + cr.eye(6, dtype=cr.float64)
    return cr.linalg.solve(a, x).pow(2).sum() + cr.linalg.slogdet(a)[1]


def gathered(x: Any, w: Any) -> Any:
    index = np.array([3, 1, 0, 3])
    return (x[index] * w[index].sum(axis=1)).cumsum(0).sort().values.sum()


def complexes(x: Any, w: Any) -> Any:
    z = cr.complex(x, 2 * x) * cr.exp(cr.complex(0 * x, x))
    return (z.abs() + cr.fft.fft(z).real).sum() + w.sum()


def branches(x: Any, w: Any) -> Any:
    state, ys = cr.scan(lambda s, v: (cr.tanh(s + w @ v), (s * v).sum()), x, w)
    return state.sum() + cr.cond(ys.sum() > 0, lambda: ys.exp().sum(), lambda: ys.sum())


def many(x: Any, w: Any) -> Any:
    for k in range(24):
        x = cr.sin(x * (k + 1.5)) if k % 3 else cr.roll(x, k) / (1 + x * x) + cr.tanh(w @ x)
    return x.sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], str]] = {
    "one function": (small, (5,), (5, 5), "5"),
    "parts with products of matrices": (large, (200, 160), (160, 64), "5"),
    "linear systems, checked": (solved, (6,), (6, 6), "5"),
    "gathers and sorts": (gathered, (6,), (6, 6), "5"),
    "complex numbers": (complexes, (16,), (2,), "5"),
    "loops and branches": (branches, (6,), (6, 6), "5"),
    "a table of calls": (many, (6,), (6, 6), "0.4"),
    "NumPy alone": (lambda x, w: (x * w[0]).sum(), (6,), (6, 6), "5"),
}


@needs_llvm
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("outside", [False, True])
def test_a_program_from_the_disk_gives_the_same_bits(
    case: str,
    outside: bool,
    kept: Path,
    monkeypatch: pytest.MonkeyPatch,
    emissions: _Emissions,
) -> None:
    function, shape, matrix, seconds = CASES[case]
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", seconds)
    rng = np.random.default_rng(0)
    arrays = rng.uniform(0.1, 0.5, shape), rng.uniform(0.1, 0.5, matrix)

    def values() -> list[Any]:
        tensors = [cr.tensor(a, requires_grad=outside) for a in arrays]
        if not outside:
            loss, grads = cr.compile(cr.value_and_grad(function, (0, 1)))(*tensors)
            return [loss, *grads]
        loss = cr.compile(function)(*tensors)
        loss.backward()
        return [loss.detach(), *(t.grad for t in tensors)]

    first, made = values(), emissions.count
    assert files(kept)
    second = values()
    assert made > 0
    assert emissions.count == made  # none in addition
    for value, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(value, other)


@needs_llvm
def test_texts_of_a_program_from_the_disk_are_those_of_a_new_one() -> None:
    def texts() -> list[Any]:
        x, w = (cr.full(s, 0.25, dtype=cr.float64, requires_grad=True) for s in ((5,), (5, 5)))
        compiled = cr.compile(small)
        compiled(x, w).backward()
        rows = cr.profile(compiled, x, w).rows
        return [compiled.source, compiled.source_native, str(compiled.program), len(rows)]

    assert texts() == texts()


@needs_llvm
@pytest.mark.parametrize("seconds", ["5", "0.4"])
def test_writes_to_arguments_and_results_of_numpy_where_machine_code_cannot(
    seconds: str, monkeypatch: pytest.MonkeyPatch, emissions: _Emissions
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", seconds)  # a table of calls if it is short

    def step(w: Any, b: Any) -> Any:
        w.mul_(0.5).add_(1.0)
        return cr.linalg.solve(w, b) + 0 * many(b, w)

    for _ in range(2):
        compiled = cr.compile(step)
        w = cr.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=cr.float64)
        expected = w.numpy() * 0.5 + 1
        b = cr.ones(2, dtype=cr.float64)
        np.testing.assert_allclose(compiled(w, b), np.linalg.solve(expected, b.numpy()))
        np.testing.assert_array_equal(w, expected)
        with pytest.raises(Exception, match=r"[Ss]ingular"):
            compiled(cr.ones(2, 2, dtype=cr.float64), b)
    assert emissions.count == 1


@needs_llvm
def test_what_is_told_has_no_file(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "0")
    for _ in range(2):
        compiled = cr.compile(many)
        compiled(cr.ones(6), cr.ones(6, 6))
        assert "CHAINRULE_COMPILE_SECONDS" in compiled.signatures[0].remarks[0].text
    assert not files(kept)


ANOTHER_PROCESS = """
import sys
import numpy as np
from chainrule.compiler import emission
from chainrule.compiler.native import program_files
program_files.MIN_OPS = 1
if sys.argv[1] == "second":
    emission.emit = None
sys.path.insert(0, sys.argv[2])
import chainrule as cr
from test_program_files import large, many, solved
matrices = (6,), (6, 6)
for function, shapes in (large, ((200, 160), (160, 64))), (many, matrices), (solved, matrices):
    arrays = [cr.tensor(np.linspace(0.1, 0.5, int(np.prod(s))).reshape(s)) for s in shapes]
    loss, grads = cr.compile(cr.value_and_grad(function, (0, 1)))(*arrays)
    print([t.numpy().tobytes().hex() for t in (loss, *grads)])
"""


@needs_llvm
def test_another_process_gets_the_same_bits_and_emits_nothing(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "0.4")
    results = []
    for turn in ("first", "second"):
        command = [sys.executable, "-c", ANOTHER_PROCESS, turn, str(Path(__file__).parent)]
        found = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert found.returncode == 0, found.stderr
        results.append(found.stdout)
    assert results[0] == results[1]


# --- files that can't be used ---------------------------------------------------------------------


def loss_of(scale: float = 1.5) -> Any:
    return cr.compile(lambda x: (cr.tanh(x * scale) - x).pow(2).sum(), backend="native")


@needs_llvm
@pytest.mark.filterwarnings("ignore:machine code in")
def test_a_damaged_or_foreign_file_is_made_again(kept: Path, emissions: _Emissions) -> None:
    x = cr.linspace(-1, 1, 9)
    expected = loss_of()(x)
    (file,) = files(kept)
    whole = file.read_bytes()
    loss_of(2.5)(x)
    (other,) = {*files(kept)} - {file}
    hostile = pickle.dumps(pytest.fail)
    for broken in (b"", whole[:-9], whole[:50] + b"?" + whole[51:], other.read_bytes(), hostile):
        file.write_bytes(broken)
        before = emissions.count
        np.testing.assert_array_equal(loss_of()(x), expected)
        assert emissions.count == before + 1
        assert file.read_bytes() == whole


@needs_llvm
def test_a_program_whose_machine_code_is_gone_is_made_again(
    kept: Path, emissions: _Emissions
) -> None:
    x = cr.linspace(-1, 1, 9)
    expected = loss_of()(x)
    code.stored_code.cache_clear()
    for file in {*kept.glob("loop_*")} - {*files(kept)}:
        file.unlink()
    np.testing.assert_array_equal(loss_of()(x), expected)
    assert emissions.count == 2


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files.jit, "is_installed", lambda: True)
    program = example()
    assert program_files.key_of(program, None) is not None
    monkeypatch.setenv("CHAINRULE_CACHE", "")
    assert program_files.key_of(program, None) is None


# --- keys -----------------------------------------------------------------------------------------


def example(**changes: Any) -> Program:
    """Return a program with one of each kind of argument, in which some may be others."""
    given: dict[str, Any] = {
        "name": "f",
        "shape": (4, 3),
        "dtype": "f8",
        "constant": np.array([1.0, -0.0, 3.0]),
        "function": "np.add",
        "operands": (0, 1),
        "number": 1,
        "key": (slice(0, 4, 1), 1),
        "setting": "axis",
        "value": None,
        "carry": 2.0,
        "outputs": (0, 1),
        "writes": True,
    } | changes
    x, y = (Value(given["shape"], given["dtype"]) for _ in range(2))
    c = Value(given["constant"].shape, given["constant"].dtype)
    out, other, looped = (Value((4, 3), "f8") for _ in range(3))
    inner, step, made = Value((4, 3), "f8"), Value((), "i8"), Value((4, 3), "f8")
    region = Program(
        "body",
        [inner, step],
        {},
        [Op("np.multiply", (inner, given["carry"]), {}, (made,))],
        [made],
        [],
    )
    pair = x, y
    ops = [
        Op(given["function"], tuple(pair[i] for i in given["operands"]), {}, (out,)),
        Op("getitem", (out, given["key"]), {given["setting"]: given["value"]}, (other,)),
        Op("np.add", (other, given["number"]), {}, (last := Value((4, 3), "f8"),)),
        Op("for", ((last,), (range(3),)), {"length": 3}, (looped,), None, (region,)),
    ]
    results = [looped, out]
    writes = [Write(x, looped)] if given["writes"] else []
    outputs = [results[i] for i in given["outputs"]]
    return Program(given["name"], [x, y], {c: given["constant"]}, ops, outputs, writes)


CHANGES: list[dict[str, Any]] = [
    {"name": "g"},
    {"shape": (3, 4)},
    {"dtype": "f4"},
    {"dtype": ">f8"},
    {"constant": np.array([1.0, 0.0, 3.0])},
    {"constant": np.array([1.0, -0.0, 3.0], "f4")},
    {"constant": np.array([[1.0, -0.0, 3.0]])},
    {"constant": np.array([[1.0, -0.0], [3.0, 2.0]])},
    {"constant": np.array([[1.0, 3.0], [-0.0, 2.0]]).T},
    {"function": "np.subtract"},
    {"operands": (1, 0)},
    {"operands": (0, 0)},
    {"number": 1.0},
    {"number": True},
    {"number": 2},
    {"number": 1 + 0j},
    {"number": np.float64(1)},
    {"number": np.float32(1)},
    {"number": np.array(1)},
    {"number": "1"},
    {"number": (1,)},
    {"number": [1]},
    {"number": cr.Size([1])},
    {"number": -0.0},
    {"number": 0.0},
    {"number": float("nan")},
    {"number": range(1)},
    {"number": range(1, 2)},
    {"number": np.dtype("f4")},
    {"number": np.dtype("f8")},
    {"number": np.float32},
    {"number": float},
    {"key": (slice(0, 4, 2), 1)},
    {"key": [slice(0, 4, 1), 1]},
    {"key": (slice(0, 4, None), 1)},
    {"key": (..., 1)},
    {"setting": "dtype"},
    {"value": 0},
    {"value": False},
    {"carry": 3.0},
    {"outputs": (1, 0)},
    {"outputs": (0,)},
    {"writes": False},
]


def test_whatever_a_program_says_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files.jit, "is_installed", lambda: True)
    key = program_files.key_of(example(), None)
    assert key == program_files.key_of(example(), None)
    keys = [program_files.key_of(example(**change), None) for change in CHANGES]
    assert None not in keys
    assert len({key, *keys}) == 1 + len(CHANGES)


def test_names_of_variables_and_lines_do_not_change_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program_files.jit, "is_installed", lambda: True)
    program = example()
    program.inputs[0].hint = "weights"
    assert program_files.key_of(program, None) == program_files.key_of(example(), None)


@pytest.mark.parametrize(
    "setting", [object(), len, np.arange(6)[::2], np.random.default_rng(0), np.str_("x")]
)
def test_settings_that_are_not_plain_have_no_key(
    setting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_files.jit, "is_installed", lambda: True)
    assert program_files.key_of(example(number=setting), None) is None


def _seconds(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("CHAINRULE_COMPILE_SECONDS", "4")


def _threads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(program_files, "get_num_threads", lambda: 77)


def _registers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(program_files, "registers", lambda: gemm.Registers(16, (2, 1)))


def _processor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disk_cache, "environment_key", lambda: b"another processor, or llvmlite")


def _numpy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(np, "__version__", "0.1")


def _python(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "version", "4.0")


def _scipy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disk_cache, "version_key", lambda *_: b"0.1")


def _source(patch: pytest.MonkeyPatch) -> None:
    found = program_files.sources()
    patch.setattr(program_files, "sources", lambda: found[1:])


IMPORT = re.compile(r"^ *(?:from|import) chainrule[\w.]*", re.MULTILINE)

SURROUNDINGS = [_seconds, _threads, _registers, _processor, _numpy, _python, _scipy, _source]


@pytest.fixture
def fresh_environment() -> Iterator[None]:
    program_files._environment.cache_clear()
    yield
    program_files._environment.cache_clear()


@pytest.mark.parametrize("change", SURROUNDINGS)
def test_what_emitters_read_elsewhere_changes_the_key(
    change: Callable[[pytest.MonkeyPatch], None],
    fresh_environment: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program_files.jit, "is_installed", lambda: True)
    before = program_files.key_of(example(), None)
    assert before != program_files.key_of(example(), "native")
    program_files._environment.cache_clear()
    change(monkeypatch)
    assert program_files.key_of(example(), None) != before


def test_the_sources_of_all_that_decides_what_is_emitted_are_part_of_the_key() -> None:
    root = Path(cr.__file__).parent
    sources = {*program_files.sources()}
    emitting = [root / "compiler" / name for name in ("codegen", "ir", "native", "passes")]
    files = [root / "compiler/emission.py", *(f for path in emitting for f in path.rglob("*.py"))]
    used = {line.split()[1] for file in files for line in IMPORT.findall(file.read_text())}
    others = set()
    for name in used:
        path = root.joinpath(*name.split(".")[1:])
        if not {path.with_suffix(".py"), path / "__init__.py"} & sources:
            others.add(name)
    # These don't decide: interrupts, errors, and the text of remarks.
    assert others == {
        "chainrule",
        "chainrule.autograd.location",
        "chainrule.autograd.references",
        "chainrule.autograd.remarks",
        "chainrule.autograd.size",
        "chainrule.errors",
        "chainrule.interrupts",
    }
