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

PICTURES = ["confusion", "digits", "learning_curve"]


def check_pictures(folder: Path) -> None:
    expected = {f"{name}.{suffix}" for name in PICTURES for suffix in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == {*expected, "network.safetensors"}
    for name in PICTURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")


@pytest.mark.thorough
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
    assert time.perf_counter() - start < 60
    assert "swish: no problems" in run.stdout
    assert re.search(r"^ +loss \d\.\d+, held out \d\.\d+: \d+\.\d %", run.stdout, re.MULTILINE)
    assert re.search(r"epoch 15: +(45/45|100%)", run.stderr)
    found = re.search(r"(\d+\.\d) % of the held-out digits are read correctly", run.stdout)
    assert found is not None
    assert float(found[1]) >= 98
    assert "the same to the bit" in run.stdout
    assert "The pictures are in chainrule-demo" in run.stdout
    check_pictures(tmp_path / "chainrule-demo")


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    monkeypatch.setattr(demo, "EPOCHS", 2)
    history = demo.main(tmp_path / "here" / "pictures")
    assert history.training[1] < history.training[0]
    assert len(history.held_out) == len(history.accuracy) == 2
    check_pictures(tmp_path / "here" / "pictures")


@pytest.mark.parametrize("package", ["sklearn", "matplotlib"])
def test_a_missing_extra_is_named_at_once(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(cr.MissingExtraError, match=rf"{package}.*pip install 'chainrule\[demo\]'"):
        demo.run(["--out", str(tmp_path / "pictures")])
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["demo", "doctor", "--version", "import chainrule as cr"]),
        (["demo", "--help"], ["--out FOLDER"]),
        (["--version"], [f"chainrule {cr.__version__}\n"]),
    ],
)
def test_help(arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        demo.run(arguments)
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.run(["train"])
    assert "choose from" in capsys.readouterr().err
