"""The reference: every public name is on exactly one page, and described or listed there."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule import pytree

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool() -> Any:
    pytest.importorskip("scipy")
    spec = importlib.util.spec_from_file_location(
        "reference_pages", ROOT / "tools" / "reference_pages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference_pages"] = module
    spec.loader.exec_module(module)
    return module


def on_pages(tool: Any) -> Counter[str]:
    parts = [part for page in tool.pages() for part in page.sections]
    described = [name.path for part in parts for name in part.described]
    return Counter(described + [name.path for part in parts for name, _ in part.listed])


def test_no_name_is_on_two_pages(tool: Any) -> None:
    assert [name for name, count in on_pages(tool).items() if count > 1] == []


def test_every_name_of_chainrule_is_on_a_page(tool: Any) -> None:
    found = on_pages(tool)
    assert [name for name in cr.__all__ if f"chainrule.{name}" not in found] == []


def test_every_method_of_tensors_is_on_a_page(tool: Any) -> None:
    found = on_pages(tool)
    public = [name for name in dir(cr.Tensor) if not name.startswith("_")]
    assert [name for name in public if f"chainrule.Tensor.{name}" not in found] == []


def test_what_any_public_module_exports_is_on_a_page(tool: Any) -> None:
    """Under the module's own name, or, for the modules within a namespace, under that one's."""
    found = on_pages(tool)
    parts = [part for page in tool.pages() for part in page.sections]
    names = [name for part in parts for name in part.described]
    names += [name for part in parts for name, _ in part.listed]
    objects = {id(name.value) for name in names}
    missing = []
    for path in tool.public_modules():
        module = importlib.import_module(f"chainrule.{path}")
        for name in vars(module).get("__all__", ()):
            if f"chainrule.{path}.{name}" not in found and id(getattr(module, name)) not in objects:
                missing.append(f"{path}.{name}")
    assert missing == []


def test_each_object_is_described_once(tool: Any) -> None:
    parts = [part for page in tool.pages() for part in page.sections]
    counts = Counter(id(name.value) for part in parts for name in part.described)
    assert set(counts.values()) == {1}


def test_a_module_of_which_the_tool_knows_nothing_has_a_section(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise() -> None:
        """Return nothing."""

    surprise.__module__ = "chainrule.tree"
    monkeypatch.setattr(cr, "surprise", surprise, raising=False)
    monkeypatch.setattr(cr, "__all__", [*cr.__all__, "surprise"])
    monkeypatch.setattr(pytree, "surprises", lambda: surprise(), raising=False)
    monkeypatch.setattr(pytree, "__all__", ["surprises"], raising=False)
    for cached in (tool.names, tool.home, tool.pages):
        cached.cache_clear()
    try:
        assert on_pages(tool)["chainrule.surprise"] == 1
        assert on_pages(tool)["chainrule.pytree.surprises"] == 1
    finally:
        for cached in (tool.names, tool.home, tool.pages):
            cached.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return `x` times |y|.", r"Return ``x`` times \|y\|."),
        ("See ``a_b`` and c_d*", r"See ``a_b`` and c\_d\*"),
        ("An open `backtick", "An open ``backtick``…"),
    ],
)
def test_lines_of_tables_are_escaped(tool: Any, text: str, expected: str) -> None:
    if "open" in text:
        assert tool.escape(text).endswith("…")
    else:
        assert tool.escape(text) == expected


# --- names of torch for R -------------------------------------------------------------------------

NAMES_FOR_R = ROOT / "docs" / "coming-from" / "torch-for-r-names.md"


def names_for_r() -> list[tuple[str, str, str]]:
    text = NAMES_FOR_R.read_text(encoding="utf-8")
    return re.findall(r"(?m)^\| `([^`]+)` \| (–|`[^`]+`) \|(.*) \|$", text)


def test_every_name_of_torch_for_r_is_listed_once() -> None:
    names = [name for name, _, _ in names_for_r()]
    assert len(names) == len(set(names)) > 750


def test_the_counterparts_of_torch_for_r_exist(tool: Any) -> None:
    found = on_pages(tool)
    targets = [target.strip("`") for _, target, _ in names_for_r() if target != "–"]
    paths = [target.replace("cr.", "chainrule.", 1) for target in targets]
    assert [path for path in paths if path not in found and not resolves(path)] == []


def resolves(path: str) -> bool:
    """Return whether a path leads to a public attribute: a method, or a member of an object."""
    first, *names = path.split(".")
    value: Any = importlib.import_module(first)
    for name in names:
        value = getattr(value, name, None)
    return value is not None and not isinstance(value, types.ModuleType)


def test_a_name_without_a_counterpart_says_what_to_do() -> None:
    assert [name for name, target, remark in names_for_r() if target == "–" and not remark] == []
