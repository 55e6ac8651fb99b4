"""The demo: it classifies digits, prints its progress, and saves figures."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

import chainrule as cr
from chainrule import __main__ as demo

PICTURES = ["digits", "learning_curve", "linear_approximation"]


def check_pictures(folder: Path) -> None:
    expected = {f"{name}.{suffix}" for name in PICTURES for suffix in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == expected
    for name in PICTURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")


def test_python_m_chainrule(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-m", "chainrule"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert time.perf_counter() - start < 30
    assert "relu: no problems" in run.stdout
    assert re.search(r"^ +1 +\d\.\d+ +\d\.\d+ +\d+\.\d %$", run.stdout, re.MULTILINE)
    found = re.search(r"(\d+\.\d) % of the held-out digits are read correctly", run.stdout)
    assert found is not None
    assert float(found[1]) >= 95
    assert "The pictures are in chainrule-demo" in run.stdout
    check_pictures(tmp_path / "chainrule-demo")


def test_the_folder_can_be_chosen(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    progress = demo.main(["--out", str(tmp_path / "here" / "pictures")])
    assert progress.accuracy[-1] >= 0.95
    assert progress.training[-1] < 0.1 < 1 < progress.training[0]
    check_pictures(tmp_path / "here" / "pictures")


@pytest.mark.parametrize("package", ["sklearn", "matplotlib"])
def test_a_missing_extra_is_named_at_once(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(cr.MissingExtraError, match=rf"{package}.*pip install 'chainrule\[demo\]'"):
        demo.main(["--out", str(tmp_path / "pictures")])
    assert not (tmp_path / "pictures").exists()
