"""Modules and other objects in files: made of classes that the program knows, or trusts."""

from __future__ import annotations

import io
import json
import sys
import threading
import zlib
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule import nn, serialization
from chainrule.io import safetensors


class Net(nn.Module):
    """Shared layers, tied weights, buffers, plain attributes, a reference to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.again = self.norm
        self.out = nn.Linear(3, 4, bias=False)
        self.out.weight = self.embed.weight
        self.rnn = nn.GRU(3, 3)
        self.shift = cr.ones(3)
        self.sizes = [1, (2, 3)]
        self.activation = F.relu
        self.owner = [self]

    def forward(self, x: Any) -> Any:
        y = self.activation(self.norm(self.embed(x)) + self.shift)
        return self.out(self.rnn(y)[0])


class Config:
    def __init__(self, width: int) -> None:
        self.width = width


class Names(dict):  # type: ignore[type-arg]
    pass


def double(x: Any) -> Any:
    return 2 * x


def saved(obj: Any) -> bytes:
    buffer = io.BytesIO()
    cr.save(obj, buffer)
    return buffer.getvalue()


def loaded(data: bytes, **settings: Any) -> Any:
    return cr.load(io.BytesIO(data), **settings)


def test_a_module_comes_back() -> None:
    net, x = Net(), cr.tensor([0, 1, 3])
    net(x).sum().backward()  # updates the running statistics
    copy = loaded(saved(net.eval()))
    assert type(copy) is Net
    assert repr(copy) == repr(net)
    assert not copy.training
    assert copy.norm.num_batches_tracked == 1
    assert (copy.sizes, copy.activation) == (net.sizes, F.relu)
    assert copy.again is copy.norm
    assert copy.out.weight is copy.embed.weight
    assert copy.owner[0] is copy
    assert all(isinstance(p, nn.Parameter) and p.grad is None for p in copy.parameters())
    np.testing.assert_array_equal(copy(x).detach(), net(x).detach())
    assert list(copy.state_dict()) == list(net.state_dict())


def test_arrays_have_the_names_of_the_state_dict() -> None:
    safe = pytest.importorskip("safetensors.numpy")
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 1)))
    assert set(safe.load(saved(net))) == set(net.state_dict())


def test_other_objects_need_trust() -> None:
    data = saved({"args": Namespace(rate=0.1), "config": Config(3), "names": Names(a=1)})
    with pytest.raises(cr.FormatError, match=r"argparse\.Namespace.*weights_only=False.*safe_glob"):
        loaded(data)
    found = loaded(data, weights_only=False)
    assert found["args"] == Namespace(rate=0.1)
    assert (type(found["config"]), found["config"].width) == (Config, 3)
    assert (type(found["names"]), found["names"]) == (Names, {"a": 1})
    with serialization.safe_globals([Namespace, Config, Names]):
        assert loaded(data)["config"].width == 3


def test_functions_of_the_program_need_trust() -> None:
    net = nn.Linear(1, 1)
    net.activation = double
    data = saved(net)
    with pytest.raises(cr.FormatError, match=r"test_objects\.double.*no nn\.Module"):
        loaded(data)
    assert loaded(data, weights_only=False).activation is double


def test_a_class_that_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from chainrule import nn\n\n\nclass Later(nn.Linear):\n    pass\n"
    (tmp_path / "later_on.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import later_on

    data = saved(later_on.Later(1, 1))
    monkeypatch.delitem(sys.modules, "later_on")
    with pytest.raises(cr.FormatError, match=r"later_on\.Later.*not imported"):
        loaded(data)
    assert "later_on" not in sys.modules
    assert type(loaded(data, weights_only=False)).__module__ == "later_on"
    monkeypatch.delitem(sys.modules, "later_on")
    (tmp_path / "later_on.py").unlink()
    with pytest.raises(cr.FormatError, match=r"later_on\.Later.*import or define it"):
        loaded(data, weights_only=False)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (lambda x: x, r"a function.*lambda.*state_dict"),
        (type("Local", (nn.Module,), {})(), r"a Local.*state_dict"),
        (cr.optim.SGD([cr.ones(1)], lr=1.0), r"a SGD.*state_dict"),
        (cr.Generator(), r"a Generator.*get_state"),
        (threading.Lock(), "a lock"),
    ],
)
def test_what_has_no_name_or_a_state_of_its_own_is_refused(obj: Any, message: str) -> None:
    net = nn.Module()
    net.extra = obj
    with pytest.raises(TypeError, match=f"'extra' is {message}"):
        saved(net)


def test_names_are_looked_up_without_running_code() -> None:
    """Modules that import on demand, as by ``__getattr__``, would run code of their own."""
    module = ModuleType("on_demand")
    module.__getattr__ = lambda name: pytest.fail(f"{name} was asked for")  # type: ignore[method-assign]
    sys.modules["on_demand"] = module
    try:
        with pytest.raises(cr.FormatError, match=r"on_demand\.Net.*not imported"):
            loaded(with_tree([{"global": ["on_demand", "Net"]}]))
    finally:
        del sys.modules["on_demand"]


# --- hostile files --------------------------------------------------------------------------------


def with_tree(tree: Any) -> bytes:
    """Return a file whose checksums are right."""
    text = json.dumps({"tree": tree, "arrays": {}})
    buffer = io.BytesIO()
    signed = f"{zlib.crc32(text.encode()):08x} {text}"
    safetensors.write(buffer, {}, {"chainrule": "1", "chainrule.tree": signed})
    return buffer.getvalue()


class Harmful:
    made: list[Any] = []  # noqa: RUF012

    def __new__(cls, *args: Any) -> Harmful:
        cls.made.append(args)
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        self.made.append(state)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"global": ["os", "system"]}, "names|not imported"),
        ({"global": ["builtins", "eval"]}, r"builtins\.eval.*no nn\.Module"),
        ({"global": ["chainrule.io", "save"]}, r"chainrule\.io\.save.*no nn\.Module"),
        ({"global": ["chainrule.nn.functional", "relu.__call__"]}, "not imported"),
        ({"global": ["chainrule.nn.modules", "Module"]}, "not imported"),  # under another name
        ({"global": ["subprocess", "Popen"]}, "names|not imported"),
        ({"global": [1, 2]}, "wrong global"),
        ({"global": "os.system"}, "wrong global"),
        ({"object": [__name__, "Harmful"], "number": 0, "state": 1}, r"Harmful.*no nn\.Module"),
        (
            {"object": ["chainrule.nn.functional.activations", "relu"], "number": 0},
            "wrong object: only classes",
        ),
        (
            {"object": ["chainrule.nn.modules.linear", "Linear"], "number": 0, "args": [1]},
            "wrong object: only classes",
        ),
        ({"object": ["chainrule.nn.modules.linear", "Linear"]}, "wrong object"),
        (
            {"object": ["chainrule.nn.modules.linear", "Linear"], "number": 0, "state": 1},
            "wrong object",
        ),
        (
            {"object": ["chainrule.nn.modules.linear", "Linear"], "number": 0, "items": [1]},
            "wrong object",
        ),
        ({"same": 0}, "wrong same"),
    ],
)
def test_hostile_trees(tree: Any, message: str) -> None:
    with pytest.raises(cr.FormatError, match=f"(?s){message}"):
        loaded(with_tree([tree]))
    assert not Harmful.made
