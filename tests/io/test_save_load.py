"""Files of `save`: everything comes back, a path is replaced at once, checkpoints resume."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
from collections import Counter, OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.io.safetensors import NAMES


def through_file(obj: Any, **settings: Any) -> Any:
    buffer = io.BytesIO()
    cr.save(obj, buffer)
    buffer.seek(0)
    return cr.load(buffer, **settings)


def same(a: Any, b: Any) -> bool:
    """Return whether two trees have the same types, structure and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(x, b[key]) for key, x in a.items())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, cr.Tensor):
        marks = [(x.requires_grad, isinstance(x, nn.Parameter), x.device) for x in (a, b)]
        return marks[0] == marks[1] and same(a.detach().numpy(), b.detach().numpy())
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return repr(a) == repr(b)


ROWS = cr.arange(12).reshape(3, 4)

TREES: dict[str, Any] = {
    "tensor": ROWS,
    "view with strides": ROWS.T[1:],
    "0-d": cr.tensor(2.0),
    "empty": cr.zeros(0, 3),
    "array": np.arange(3.0),
    "array in Fortran's order": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "reversed": np.arange(5)[::-1],
    "expanded": np.broadcast_to(np.float32(1), (2, 3)),
    "leaf": cr.ones(2, requires_grad=True),
    "parameter": nn.Parameter(cr.ones(2)),
    "frozen parameter": nn.Parameter(cr.ones(2), requires_grad=False),
    **{
        f"{kind.__name__} {dtype}": kind([0, 1, 1], dtype=dtype)
        for kind in (np.array, cr.tensor)
        for dtype in NAMES
    },
    "complex128 0-d": np.array(1 + 2j),
    "scalars": [np.float32(0.1), np.float64(0.1), np.int8(-1), np.bool_(True), np.complex64(1j)],
    "numbers": [0, -1, 2**63, 2**64 - 1, 2**64, -(10**40), 0.1, -0.0, 1e-320, 1 + 2j, True, None],
    "not finite": [float("nan"), float("inf"), -float("inf"), complex("nan+infj")],
    "strings": ["", "ä\u2202\0", "\ud800", "a.b"],
    "bytes": [b"", b"\0\xff", bytearray(b"ab")],
    "containers": ([], (), {}, [[]], ((),), {"a": []}, {1, 2}, frozenset("a")),
    "dicts": [OrderedDict(b=1, a=2), Counter("aab"), {1: "a", 2.5: "b", None: "c", (1, "x"): "d"}],
    "keys of all types": {True: 1, "True": 2, b"k": 3, 2j: 4, frozenset([1]): 5},
    "types": [cr.float32, cr.device("cpu"), np.dtype("bool")],
    "names that collide": {"a": {"b": cr.ones(1)}, "a.b": cr.zeros(1), "": cr.ones(2)},
    "a reserved name": {"__metadata__": cr.ones(1), "\ud800": cr.ones(1)},
    "100 lists in each other": (lambda f: f(f, 100))(lambda f, n: [f(f, n - 1)] if n else 1),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_tree_comes_back(tree: Any) -> None:
    assert same(through_file(tree), tree)


def test_arrays_of_another_byte_order_become_native() -> None:
    found = through_file(np.arange(3, dtype=">i4"))
    assert found.dtype == np.int32
    assert found.dtype.isnative
    assert found.tolist() == [0, 1, 2]


def test_dtypes_are_the_same_objects() -> None:
    """Fast paths compare dtypes by identity: other objects would round differently."""
    given = np.dtype("float32")
    assert through_file(cr.ones(2))._array.dtype is given
    assert pickle.loads(pickle.dumps(cr.ones(2)))._array.dtype is given
    other = pickle.loads(pickle.dumps(np.ones(2, np.float32)))
    assert other.dtype is not given  # NumPy's
    for make in (cr.from_numpy, cr.tensor, cr.asarray):
        assert make(other)._array.dtype is given
    assert np.shares_memory(cr.from_numpy(other)._array, other)


def test_shared_memory_is_in_the_file_once_and_shared_again() -> None:
    w = nn.Parameter(cr.ones(1000))
    buffer = io.BytesIO()
    cr.save({"a": w, "b": w, "c": w.detach()}, buffer)
    assert len(buffer.getvalue()) < 6000
    buffer.seek(0)
    found = cr.load(buffer)
    assert found["a"] is found["b"]
    with cr.no_grad():
        found["a"][0] = 5.0
    assert found["c"][0] == 5.0


def test_loaded_tensors_can_be_trained() -> None:
    w = through_file(cr.ones(2, requires_grad=True))
    assert w.is_leaf
    (w * w).sum().backward()
    cr.optim.SGD([w], lr=0.25).step()
    assert w.tolist() == [0.5, 0.5]


def cyclic() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def deep(n: int) -> Any:
    return [deep(n - 1)] if n else 1


Point = namedtuple("Point", "x y")

REFUSED: list[tuple[Any, type[Exception], str]] = [
    ({"o": cr.optim.SGD([cr.ones(1)], lr=1.0)}, TypeError, r"'o' is a SGD.*\.state_dict\(\)"),
    (cr.Generator(), TypeError, r"is a Generator.*get_state"),
    ({"a": [lambda x: x]}, TypeError, r"'a\.0' is a function.*lambda"),
    (Point(1, 2), TypeError, r"is a Point.*tuple\(x\)"),
    (defaultdict(int), TypeError, r"is a defaultdict.*dict\(x\)"),
    (np.str_("a"), TypeError, r"is a str_.*str\(x\)"),
    (np.array(["a"]), TypeError, r"ndarray of <U1.*tolist"),
    (np.array([None]), TypeError, r"ndarray of object"),
    (np.ma.array([1, 2], mask=[0, 1]), TypeError, "MaskedArray"),
    ({cr.ones(1): 1}, TypeError, "key of .* is a Tensor"),
    (cyclic(), cr.ArgumentError, "contains itself"),
    (deep(101), cr.ArgumentError, "more than 100 containers"),
]


@pytest.mark.parametrize(("obj", "error", "message"), REFUSED)
def test_what_no_file_can_contain_is_refused(
    obj: Any, error: type[Exception], message: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "a.pt"
    cr.save(1, path)
    with pytest.raises(error, match=message):
        cr.save(obj, path)
    assert cr.load(path) == 1
    assert os.listdir(tmp_path) == ["a.pt"]


def test_saving_in_a_compiled_function_is_refused() -> None:
    def f(x: Any) -> Any:
        cr.save(x, io.BytesIO())
        return x

    with pytest.raises(cr.CompileError, match=r"cr\.save: inside a compiled function"):
        cr.compile(f)(cr.ones(1))


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_save_leaves_the_former_file(
    error: type[BaseException], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.pt"
    cr.save({"a": 1}, path)

    def fail(*_: Any) -> None:
        raise error

    for module, name in ((os, "fsync"), (os, "replace"), (cr.io.safetensors, "write_all")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(error):
                cr.save({"a": cr.ones(3)}, path)
        assert os.listdir(tmp_path) == ["model.pt"]
        assert cr.load(path) == {"a": 1}


def test_paths(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pt"
    link = tmp_path / "link"
    link.symlink_to("model.pt")
    cr.save(1, str(link))
    assert link.is_symlink()
    assert cr.load(path) == 1
    path.chmod(0o600)
    cr.save(2, path)
    assert path.stat().st_mode & 0o777 == 0o600
    cr.save(3, os.devnull)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        cr.save(1, tmp_path / "missing" / "a.pt")
    with pytest.raises(IsADirectoryError):
        cr.save(1, tmp_path)
    with pytest.raises(FileNotFoundError):
        cr.load(tmp_path / "missing.pt")


def test_file_objects(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pt"
    with open(path, "wb") as file:
        file.write(b"before")
        cr.save(cr.ones(3), file)
    with open(path, "rb") as file:
        file.seek(6)
        assert cr.load(file).tolist() == [1, 1, 1]
    data = path.read_bytes()[6:]
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    with open(reading, "rb") as file:  # can't be positioned
        assert cr.load(file).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="open for text"), open(path) as text:
        cr.load(text)
    with pytest.raises(TypeError, match="open for text"):
        cr.save(1, io.StringIO())
    with pytest.raises(TypeError, match="must be a path or a binary file object, got int"):
        cr.load(3)


# --- devices --------------------------------------------------------------------------------------


def test_map_location() -> None:
    w = cr.ones(2)
    seen = []

    def function(tensor: cr.Tensor, location: str) -> cr.Tensor:
        seen.append(location)
        return tensor

    for where in ("cpu", cr.device("cpu"), {"cuda:0": "cpu"}, function, lambda *_: None):
        assert same(through_file(w, map_location=where), w)
    assert seen == ["cpu"]
    with pytest.raises(TypeError, match="map_location must be"):
        through_file(w, map_location=3)


@pytest.mark.skipif(cr.cuda.is_available(), reason="needs a machine without CUDA")
def test_tensors_of_a_missing_device(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr("chainrule.io.json_tree.device_of", lambda _: cr.device("cuda:1"))
        cr.save(cr.ones(1), buffer)
    buffer.seek(0)
    with pytest.raises(cr.DeviceError, match=r"saved on 'cuda:1'.*map_location='cpu'"):
        cr.load(buffer)
    for where in ("cpu", {"cuda:1": "cpu"}, lambda tensor, _: tensor):
        buffer.seek(0)
        assert cr.load(buffer, where).tolist() == [1]


# --- checkpoints ----------------------------------------------------------------------------------


class Training:
    """A small training with everything that has a state."""

    def __init__(self, optimizer: str, scheduler: str) -> None:
        self.model = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1)
        )
        kinds: dict[str, Any] = {
            "SGD": {"momentum": 0.9},
            "AdamW": {"amsgrad": True},
            "Adafactor": {},
            "LBFGS": {"max_iter": 3},
        }
        self.optimizer: Any = getattr(cr.optim, optimizer)(
            self.model.parameters(), lr=0.05, **kinds[optimizer]
        )
        self.scheduler: Any = {
            "StepLR": lambda o: cr.optim.lr_scheduler.StepLR(o, 2),
            "MultiStepLR": lambda o: cr.optim.lr_scheduler.MultiStepLR(o, [2, 4]),
            "OneCycleLR": lambda o: cr.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=8),
            "Plateau": lambda o: cr.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
        }[scheduler](self.optimizer)
        self.generator = cr.Generator().manual_seed(3)
        rows = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
        data = cr.utils.data.TensorDataset(cr.tensor(rows[:, :4]), cr.tensor(rows[:, 4:]))
        self.loader = cr.utils.data.DataLoader(
            data, batch_size=6, shuffle=True, generator=self.generator
        )
        self.losses: list[float] = []

    def epochs(self, count: int) -> None:
        for _ in range(count):
            for x, y in self.loader:

                def closure(x: Any = x, y: Any = y) -> Any:
                    self.optimizer.zero_grad()
                    loss = nn.functional.mse_loss(self.model(x), y)
                    loss.backward()
                    return loss

                self.losses.append(self.optimizer.step(closure).item())
            if isinstance(self.scheduler, cr.optim.lr_scheduler.ReduceLROnPlateau):
                self.scheduler.step(self.losses[-1])
            else:
                self.scheduler.step()

    def state(self) -> Any:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "generator": self.generator.get_state(),
            "rng": cr.get_rng_state(),
        }

    def resume(self, state: Any) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.generator.set_state(state["generator"])
        cr.set_rng_state(state["rng"])


@pytest.mark.parametrize(
    ("optimizer", "scheduler"),
    [
        ("SGD", "StepLR"),
        ("AdamW", "OneCycleLR"),
        ("Adafactor", "Plateau"),
        ("LBFGS", "MultiStepLR"),
    ],
)
def test_a_checkpoint_resumes_to_the_bit(
    optimizer: str, scheduler: str, tmp_path: pathlib.Path
) -> None:
    cr.manual_seed(0)
    whole = Training(optimizer, scheduler)
    start = whole.model.state_dict()
    cr.save(start, tmp_path / "start")
    rng = cr.get_rng_state()
    whole.epochs(6)

    first = Training(optimizer, scheduler)
    first.model.load_state_dict(cr.load(tmp_path / "start"))
    cr.set_rng_state(rng)
    first.epochs(3)
    cr.save(first.state(), tmp_path / "checkpoint.pt")
    cr.manual_seed(123)
    second = Training(optimizer, scheduler)
    second.resume(cr.load(tmp_path / "checkpoint.pt"))
    second.epochs(3)
    assert first.losses + second.losses == whole.losses
    assert same(second.state(), whole.state())
