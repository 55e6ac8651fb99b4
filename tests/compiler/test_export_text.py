"""Names, docstrings, keys and containers in exported modules: nothing of them is run as code."""

from __future__ import annotations

import ast
import collections
import dataclasses
import enum
import inspect
import keyword
import pathlib
import subprocess
import sys
import textwrap
import types
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import chainrule as cr
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.expression import literal
from chainrule.compiler.export import entry_checks

X = np.arange(1.0, 4.0, dtype=np.float32)
RESERVED = (*runtime.__all__, *entry_checks.__all__)

SETTINGS = hypothesis.settings(
    deadline=None,
    max_examples=12,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


def module_of(file: pathlib.Path) -> dict[str, Any]:
    module = types.ModuleType("exported")
    module.__file__ = str(file)
    sys.modules["exported"] = module  # dataclasses look for it
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))
    return vars(module)


def function_named(name: str, arguments: list[str], doc: str = "") -> Any:
    """Return a function that multiplies the first argument, with all arguments added."""
    body = f"({' + '.join(arguments)}) * 2" if arguments else "2"
    scope: dict[str, Any] = {}
    exec(f"def f({', '.join(arguments)}): return {body}", scope)
    function = scope["f"]
    function.__name__, function.__doc__ = name, doc
    return function


identifiers = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True),
    st.text(st.characters(categories=["Ll", "Lu", "Lo", "Nd"]), min_size=1, max_size=4),
    st.sampled_from([*RESERVED, "np", "PARAMETERS", "Path", "range", "reversed", "slice", "types"]),
    st.sampled_from(["isinstance", "len", "dict", "list", "print", "sizes", "n", "m", "t1", "x2"]),
).filter(lambda name: name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__")


def normal(names: list[str]) -> list[str]:
    import unicodedata

    return [unicodedata.normalize("NFKC", name) for name in names]


@SETTINGS
@hypothesis.given(
    name=identifiers, arguments=st.lists(identifiers, min_size=1, max_size=3).map(normal)
)
@hypothesis.example(name="np", arguments=["np", "range"])
@hypothesis.example(name="masked", arguments=["masked"])
@hypothesis.example(name="check_arrays", arguments=["check_arrays", "n"])
@hypothesis.example(name="isinstance", arguments=["tuple", "hasattr"])
@hypothesis.example(name="ValueError", arguments=["zip"])
@hypothesis.example(name="PARAMETERS", arguments=["PARAMETERS"])
@hypothesis.example(name="Größe", arguments=["ﬁ".replace("ﬁ", "fi"), "μ"])
def test_any_names_of_functions_and_arguments(
    name: str, arguments: list[str], tmp_path: Any
) -> None:
    hypothesis.assume(len(set(arguments)) == len(arguments))
    kept = cr.tensor(X)
    inner = function_named(name, arguments)

    def function(*args: Any) -> Any:
        return (inner(*args) * kept).relu()

    function.__name__ = name
    function.__signature__ = __import__("inspect").signature(inner)  # type: ignore[attr-defined]
    file = cr.export(function, tmp_path / "module.py", *[cr.tensor(X) for _ in arguments])
    scope = module_of(file)
    (found,) = normal([name])
    got = scope[found](**dict.fromkeys(arguments, X))
    np.testing.assert_allclose(got, X * X * 2 * len(arguments))
    with pytest.raises(ValueError, match=r"expected float32 \[3\], got float32 \[2\]"):
        scope[found](**dict.fromkeys(arguments, X[:2]))


@pytest.mark.parametrize("name", ["class", "<lambda>", "a b", "import os", "None", ""])
def test_names_that_are_none_in_python(name: str, tmp_path: Any) -> None:
    file = cr.export(function_named(name, ["x"]), tmp_path / "module.py", cr.tensor(X))
    assert module_of(file)["function"](X).tolist() == [2, 4, 6]


@SETTINGS
@hypothesis.given(doc=st.one_of(st.text(), st.text("\"\\'\n\r\t\0{}#N ")))
@hypothesis.example(doc='"""; import os; raise SystemExit; """')
@hypothesis.example(doc='ends with a quote"')
@hypothesis.example(doc="ends with a backslash\\")
@hypothesis.example(doc="\\N{BULLET} {x} \\x00 \ud800 \x0c")
def test_any_docstring(doc: str, tmp_path: Any) -> None:
    def settled(text: str) -> str:
        """Return a text as it stays when Python 3.13 cleans it, and `getdoc` again."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return inspect.cleandoc(inspect.cleandoc(text))

    function = function_named("f", ["x"], doc)
    file = cr.export(function, tmp_path / "module.py", cr.tensor(X))
    made = module_of(file)["f"]
    assert made(X).tolist() == [2, 4, 6]
    wanted = inspect.getdoc(function) or "f, of NumPy arrays."
    assert settled(inspect.getdoc(made) or "") == settled(wanted)


def test_readable_docstrings_stay_readable(tmp_path: Any) -> None:
    file = cr.export(
        function_named("f", ["x"], "First.\n\n    Second.\n"), tmp_path / "m.py", cr.ones(2)
    )
    assert '    """First.\n\n    Second."""\n' in file.read_text(encoding="utf-8")


keys = st.recursive(
    st.one_of(
        st.text(max_size=4), st.integers(-3, 3), st.booleans(), st.none(), st.binary(max_size=2)
    ),
    lambda inner: st.lists(inner, max_size=2).map(tuple),
    max_leaves=3,
)


@SETTINGS
@hypothesis.given(names=st.lists(keys, min_size=1, max_size=3, unique=True))
@hypothesis.example(names=[float("inf"), -float("inf"), -0.0, 1j, complex(0, 2)])
@hypothesis.example(names=["'", '"', "\\", "\n", "']; import os; x['"])
def test_any_keys_of_arguments_and_results(names: list[Any], tmp_path: Any) -> None:
    def f(given: Any) -> Any:
        return {key: value * 2 for key, value in given.items()}

    file = cr.export(f, tmp_path / "module.py", {name: cr.tensor(X) for name in names})
    got = module_of(file)["f"](dict.fromkeys(names, X))
    assert list(got) == names
    assert [type(key) for key in got] == [type(name) for name in names]
    assert all(value.tolist() == [2, 4, 6] for value in got.values())


class Colour(enum.Enum):
    RED = 1


class Word(enum.StrEnum):
    RED = "red"

    def __repr__(self) -> str:
        return "__import__('os').abort()"


class Odd(str):
    def __repr__(self) -> str:
        return "__import__('os').abort()"


class Number(enum.IntEnum):
    TWO = 2


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class State:
    weights: Any
    step: int = 0


@dataclasses.dataclass
class Box:
    state: State
    point: Point


@pytest.mark.parametrize("key", [Colour.RED, Word.RED, Odd("a"), Number.TWO, Point(1, 2)])
def test_keys_without_a_literal_are_refused(key: Any, tmp_path: Any) -> None:
    with pytest.raises(cr.CompileError, match="a key of type"):
        cr.export(lambda x: {key: x}, tmp_path / "module.py", cr.ones(3))
    with pytest.raises(cr.CompileError, match="a key of type"):
        cr.export(lambda x: x[key], tmp_path / "module.py", {key: cr.ones(3)})


@pytest.mark.parametrize(
    "result",
    [
        lambda x: Colour.RED,
        lambda x: (x, object()),
        lambda x: collections.defaultdict(list, a=x),
        lambda x: type("Items", (list,), {})([x]),
    ],
)
def test_results_without_a_spelling_are_refused(result: Any, tmp_path: Any) -> None:
    with pytest.raises(cr.CompileError, match="export: the function returns a"):
        cr.export(result, tmp_path / "module.py", cr.ones(3))


def test_results_keep_their_containers(tmp_path: Any) -> None:
    def f(x: Any) -> Any:
        point = Point(x, [x + 1, (x,)])
        return Box(State(x * 2, 3), point), point, collections.OrderedDict(b=x, a=-0.0), None, "'"

    scope = module_of(cr.export(f, tmp_path / "module.py", cr.ones(3)))
    box, point, ordered, nothing, quote = scope["f"](X)
    assert (type(box).__name__, type(box.state).__name__, type(point).__name__) == (
        "Box",
        "State",
        "Point",
    )
    assert box.state.weights.tolist() == [2, 4, 6]
    assert box.state.step == 3
    assert box.point.y[1][0].tolist() == point.x.tolist() == X.tolist()
    assert list(ordered) == ["b", "a"]
    assert (repr(ordered["a"]), nothing, quote) == ("-0.0", None, "'")


def test_dataclasses_and_named_tuples_as_arguments(tmp_path: Any) -> None:
    def f(state: Any, point: Any) -> Any:
        return state.weights * point.x + point.y

    scope = module_of(
        cr.export(f, tmp_path / "m.py", State(cr.tensor(X), 2), Point(cr.tensor(X), 1.5))
    )
    assert scope["f"](State(X, 2), Point(X, 1.5)).tolist() == (X * X + 1.5).tolist()
    with pytest.raises(ValueError, match=r"state.step: expected 2, a constant here, got 3"):
        scope["f"](State(X, 3), Point(X, 1.5))
    with pytest.raises(ValueError, match=r"point\[1\]: expected 1.5"):
        scope["f"](State(X, 2), Point(X, 2.5))


def test_constants_of_enums_are_the_numbers_and_strings_that_they_are(tmp_path: Any) -> None:
    assert literal(Number.TWO).text == "2"
    assert literal(Word.RED).text == "'red'"
    assert literal(Odd("a'b")).text == repr("a'b")
    module = module_of(cr.export(lambda x: x.sum(Number.TWO), tmp_path / "m.py", cr.ones(1, 2, 3)))
    assert module["function"](np.ones((1, 2, 3), np.float32)).tolist() == [[3, 3]]
    summed = cr.compile(lambda x: x.sum(Number.TWO))
    assert summed(cr.ones(1, 2, 3)).tolist() == [[3, 3]]


def test_parameters_are_the_same_to_the_bit(tmp_path: Any) -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 0.1, 1e-45], np.float32)
    pairs = np.array([complex(0.0, -0.0), complex(np.inf, np.nan), complex(-0.0, 1e-300)])
    for array in (values, pairs, np.array([], np.float16), np.array([True]), np.array([1, -1])):
        file = cr.export(lambda x, a=array: (x * 1, x, cr.from_numpy(a)), tmp_path / "m.py", X)
        got = module_of(file)["function"](X)[2]
        assert (got.dtype, got.tobytes()) == (array.dtype, array.tobytes())


@pytest.mark.parametrize(
    "stem", ["it's", 'a "quote"', "back\\slash", "ünïcode", "x'); import os; ('"]
)
def test_any_file_names(stem: str, tmp_path: Any) -> None:
    large = cr.arange(100.0)
    file = cr.export(lambda x: x * large, tmp_path / f"{stem}.py", cr.ones(100))
    assert module_of(file)["function"](np.ones(100, np.float32))[-1] == 99


def test_names_of_variables_that_are_the_same_to_python() -> None:
    scope: dict[str, Any] = {"cr": cr}
    source = "def f(x):\n    ﬁ = x + 1\n    fi2 = x + 2\n    range = ﬁ * fi2\n    return range * x"
    exec(source, scope)
    compiled = cr.compile(scope["f"], backend="numpy")
    assert compiled(cr.tensor(X)).tolist() == scope["f"](cr.tensor(X)).tolist()
    tensors = {"ﬁ": cr.ones(3), "fi": cr.ones(3) * 2, "x²": cr.ones(3) * 3, "class": cr.ones(3)}
    total = cr.compile(
        lambda given: sum(t * i for i, t in enumerate(given.values())), backend="numpy"
    )
    assert total(tensors).tolist() == [11, 11, 11]


@pytest.mark.parametrize("name", ["a b", "import os", "np", "class", "x; import os", "ﬁ", 3])
def test_objects_in_compiled_code_may_have_any_name(name: Any) -> None:
    doubled = cr.compile(lambda x: x * 2, backend="numpy")
    doubled(cr.ones(2))
    source = doubled._built().emitted.source
    found = source._object_name(types.SimpleNamespace(__name__=name))
    assert found.isidentifier()
    assert not keyword.iskeyword(found)
    assert found not in ("np", name)
    assert source._object_name(types.SimpleNamespace(__name__=name)) != found


@pytest.mark.parametrize("key", [Point(1, 2), Colour.RED, Word.RED, Odd("a"), 1.5, (1, Odd("b"))])
def test_data_in_scope_may_have_any_keys(key: Any) -> None:
    table = {key: 2.0}
    scaled = cr.compile(lambda x: {key: x * table[key]}, backend="numpy")
    for factor in (2.0, 3.0):
        table[key] = factor
        for _ in range(2):
            assert scaled(cr.ones(1))[key].item() == factor


RUN = """
import sys
sys.modules["chainrule"] = None  # importing it fails
import numpy as np, runpy
loaded = set(sys.modules)
scope = runpy.run_path(sys.argv[1])
print(scope["f"](np.ones(3, np.float32)).x.tolist())
"""


def test_the_module_runs_with_numpy_alone(tmp_path: Any) -> None:
    file = cr.export(function_named("f", ["x"]), tmp_path / "m.py", cr.ones(3))

    def f(x: Any) -> Any:
        """A docstring with \\ and \"\"\" in it."""
        return Point(x * 2, State(x))

    cr.export(f, file, cr.ones(3))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RUN), str(file)], capture_output=True, check=False
    )
    assert done.stdout.decode().strip() == "[2.0, 2.0, 2.0]", done.stderr.decode()


def test_a_module_has_definitions_only(tmp_path: Any) -> None:
    file = cr.export(lambda x: Point(x, State(x)), tmp_path / "m.py", cr.ones(3))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)
    assert all(isinstance(node, allowed) for node in tree.body)
