"""Scripts in the style of PyTorch's examples run to the end, learn, and give PyTorch's numbers."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
COMPARED = [path for path in SCRIPTS if "\nhistory = [" in path.read_text(encoding="utf-8")]
"""Scripts whose numbers don't depend on draws of the library: `history` has them."""


@pytest.fixture(autouse=True)
def restored_settings():
    yield
    cr.set_default_dtype(cr.float32)
    cr.set_default_device(None)


def run(script: Path) -> dict:
    return runpy.run_path(str(script), run_name="__main__")


@pytest.mark.filterwarnings("ignore:dropout2d", "ignore:divide by zero")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_trains(script: Path) -> None:
    if "sklearn" in script.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn")
    run(script)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", COMPARED, ids=lambda path: path.stem)
def test_a_script_gives_the_numbers_of_pytorch(script: Path, tmp_path: Path) -> None:
    """The lines that import are the only ones that change."""
    torch = pytest.importorskip("torch")
    text = script.read_text(encoding="utf-8")
    theirs = tmp_path / script.name
    theirs.write_text(
        text.replace("import chainrule as torch", "import torch").replace("chainrule", "torch"),
        encoding="utf-8",
    )
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)  # processes of the tests share the cores
    try:
        expected = run(theirs)["history"]
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)  # under one, PyTorch's weighted l1_loss ignores the weight
    np.testing.assert_allclose(run(script)["history"], expected, rtol=1e-3, atol=1e-5)
