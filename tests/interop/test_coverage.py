"""The page of NumPy's functions is current and complete."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.char
import numpy.fft
import numpy.lib.recfunctions
import numpy.polynomial
import numpy.strings
import pytest
from numpy.testing import overrides

from chainrule.interop.binding import name_of
from chainrule.interop.table import ANSWERS, NEW, REASONS, REASONS_OF_MODULES, RULES
from chainrule.operation import UFUNCS
from chainrule.ops.ufuncs import REFUSED, WITHOUT_GRADIENT

ROOT = Path(__file__).resolve().parents[2]
TABLES = {"recorded": RULES, "answered": ANSWERS, "new": NEW, "refused": REASONS}


def _tool():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "numpy_coverage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# By name: NumPy lists some functions twice, as they are called and as they dispatch.
FUNCTIONS = {name_of(f) for f in overrides.get_overridable_numpy_array_functions()}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_is_in_one_class(name):
    classes = [key for key, table in TABLES.items() if name in map(name_of, table)]
    if name.rpartition(".")[0] in REASONS_OF_MODULES:
        classes.append("refused as its module is")
    assert len(classes) == 1


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="older NumPys list fewer functions"
)
def test_nothing_else_is_in_the_tables():
    for table in TABLES.values():
        assert {name_of(function) for function in table} <= FUNCTIONS
    ufuncs = {getattr(np, name, None) for name in UFUNCS} - {None, np.clip}
    known = ufuncs | WITHOUT_GRADIENT | set(REFUSED)
    assert known <= set(overrides.get_overridable_numpy_ufuncs())


def test_the_page_is_current():
    tool = _tool()
    written = tool.PAGE.read_text(encoding="utf-8")
    if f"ufuncs of NumPy {tool.NUMPY} " not in written:
        pytest.skip(f"the page was written with another NumPy than {np.__version__}")
    assert written == tool.page(), "run python3 tools/numpy_coverage.py"


def test_the_tool_writes_the_page_and_checks_it(tmp_path, monkeypatch, capsys):
    tool = _tool()
    monkeypatch.setattr(tool, "PAGE", tmp_path / "numpy.md")
    assert tool.main(["--check"]) == 1
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    assert "numpy.md is out of date\nwrote numpy.md" in capsys.readouterr().out


def test_the_table_is_imported_with_the_first_call():
    code = (
        "import sys, numpy as np, chainrule as cr\n"
        "t = cr.ones(2)\n"
        "np.sin(t)\n"
        "assert 'chainrule.interop' not in sys.modules\n"
        "np.sum(t)\n"
        "assert 'chainrule.interop' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
