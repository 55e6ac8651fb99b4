"""Registration of operations: the spellings that follow from one line above a function."""

import re
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import operation
from chainrule.operation import ARRAY_API, NUMPY_FUNCTIONS, UFUNCS, inplace_form

SOURCE = Path(operation.__file__).parent
FILES = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


@pytest.fixture
def halve(request):
    """A new operation under every spelling; its methods are taken away afterwards."""
    spellings = ("halve", "bisect", "halve_", "bisect_", "__matmul__")
    kept = {name: vars(cr.Tensor).get(name) for name in spellings}

    @operation.operation(
        aliases="bisect",
        inplace=True,
        operators={"__matmul__": operation.reflected(lambda x, y: ("reflected", x, y))},
        ufunc="halve",
        scipy="halve",
        numpy="halve x",
        array_api=True,
    )
    def halve(input):
        return input / 2

    yield halve
    for name, method in kept.items():
        if method is None:
            delattr(cr.Tensor, name)
        else:
            setattr(cr.Tensor, name, method)
    for table in (UFUNCS, operation.SCIPY_UFUNCS, ARRAY_API):
        del table["halve"]
    NUMPY_FUNCTIONS.remove(("halve x", halve))
    for name in ("halve_", "bisect_"):
        del operation._IN_PLACE[halve, name]


def test_every_spelling_follows_from_one_line(halve):
    x = cr.tensor([2.0, 4.0])
    assert halve(x).tolist() == x.halve().tolist() == x.bisect().tolist() == [1, 2]
    assert UFUNCS["halve"] is operation.SCIPY_UFUNCS["halve"] is ARRAY_API["halve"] is halve
    assert ("halve x", halve) in NUMPY_FUNCTIONS
    assert x @ 3 == ("reflected", 3, x)
    assert x.halve_() is x
    assert inplace_form(halve)(x).tolist() == [0.5, 1]
    assert x.bisect_().tolist() == [0.25, 0.5]


def test_in_place_forms_have_names_docstrings_and_gradients(halve):
    form = inplace_form(halve, "bisect_")
    assert form.__name__ == "bisect_"
    assert form.__doc__ == "Do `halve` in place."
    x = cr.ones(2, requires_grad=True)
    y = x * 3
    form(y).sum().backward()
    assert x.grad.tolist() == [1.5, 1.5]


def test_an_in_place_form_writes_to_tensors_only():
    with pytest.raises(TypeError, match=r"exp_\(\): argument 'input' must be a Tensor, not list"):
        cr.exp_([1.0])
    with pytest.raises(TypeError, match=r"zero_\(\): argument 'input' must be a Tensor, not float"):
        cr.zero_(1.0)


def test_in_place_operators_return_notimplemented_for_foreign_operands():
    x = cr.ones(2)
    for name in ("__iadd__", "__ipow__", "__iand__"):
        assert getattr(x, name)(object()) is NotImplemented


def test_a_subset_of_names_can_be_methods():
    assert cr.Tensor.lt is cr.lt.without_out is UFUNCS["less"]
    assert cr.Tensor.eq is cr.eq.without_out is UFUNCS["equal"]
    assert cr.lt is cr.less
    assert not hasattr(cr.Tensor, "isclose_")


def test_every_registered_ufunc_is_one_of_numpys():
    missing = {name for name in UFUNCS if not isinstance(getattr(np, name, None), np.ufunc)}
    # Newer than the oldest NumPy, and one that NumPy calls by itself.
    assert missing <= {"vecdot", "matvec", "vecmat", "clip"}


@pytest.mark.parametrize("name", ["hypot", "exp2", "softplus", "fmod", "nextafter"])
def test_an_operation_stands_in_at_most_four_files(name):
    # Layers name their function, distributions compute with them as users do, and the backend
    # builds what CuPy lacks of CuPy's functions.
    clients = (SOURCE / "nn" / "modules", SOURCE / "distributions", SOURCE / "backend")
    named = [path for path, text in FILES.items() if re.search(rf"\b{name}\b", text)]
    found = [path for path in named if path.parent not in clients]
    places = sorted(str(path.relative_to(SOURCE)) for path in found)
    assert len(places) <= 4, f"{name} stands in {places}: let them ask a trait or the registration"


def test_the_count_of_files_sees_more_than_four():
    assert sum(bool(re.search(r"\bmatmul\b", text)) for text in FILES.values()) > 4


@pytest.mark.parametrize("package", ["autograd", "compiler"])
def test_engine_and_compiler_look_nothing_up_by_the_name_of_an_operation(package):
    table = re.compile(r"""\bTABLE\[["']|\.name (?:==|in) """)
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path, text in FILES.items()
        if path.relative_to(SOURCE).parts[0] == package
        for line in text.splitlines()
        if table.search(line) and "primitive" in line.lower()
    ]
    assert not found, f"ask a trait of the primitive (primitives.primitive.Traits): {found}"
