"""Scripts in the style of PyTorch's examples run to the end, and what they train learns."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.filterwarnings("ignore:dropout2d")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_trains(script: Path) -> None:
    if "sklearn" in script.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn")
    runpy.run_path(str(script), run_name="__main__")
