"""Files of other programs: safetensors, PyTorch's of both kinds, torch for R; and the reverse."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn


def safetensors_file(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def loaded(data: bytes, **settings: Any) -> Any:
    return cr.load(io.BytesIO(data), **settings)


def saved(obj: Any) -> bytes:
    buffer = io.BytesIO()
    cr.save(obj, buffer)
    return buffer.getvalue()


# --- safetensors ----------------------------------------------------------------------------------


def test_bfloat16_becomes_float32_with_the_same_values() -> None:
    halves = [0x3FC0, 0xC020, 0x0001, 0x7F80, 0x7F7F]  # from the definition: upper halves
    data = struct.pack("<5H", *halves)
    found = loaded(safetensors_file({"a": entry("BF16", [5], 0, 10)}, data))["a"]
    assert found.dtype == cr.float32
    largest = (2 - 2.0**-7) * 2.0**127
    assert found.tolist() == [1.5, -2.5, 2.0**-133, float("inf"), largest]


def test_a_header_of_odd_length_and_an_order_of_its_own() -> None:
    header = {
        "z": entry("I32", [], 4, 8),
        "a": entry("F32", [1], 0, 4),
        "e": entry("U8", [0], 8, 8),
    }
    text = json.dumps(header).encode()
    text += b" " * (1 - len(text) % 2)
    found = loaded(safetensors_file(text, struct.pack("<fi", 1.5, -3)))
    assert [*found] == ["z", "a", "e"]
    assert [x.tolist() for x in found.values()] == [-3, [1.5], []]


def test_round_trip_with_safetensors() -> None:
    pytest.importorskip("safetensors")
    from safetensors.numpy import load as their_load
    from safetensors.numpy import save as their_save

    rng = np.random.default_rng(0)
    arrays = {
        f"{dtype}.{shape}": np.asarray(rng.normal(size=shape) * 50).astype(dtype)
        for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "?")
        for shape in ((), (3,), (2, 3), (0, 2))
    }
    found = loaded(their_save(arrays))
    assert sorted(found) == sorted(arrays)
    theirs = their_load(saved({name: cr.tensor(x) for name, x in arrays.items()}))
    for name, x in arrays.items():
        for other in (found[name].numpy(), theirs[name]):
            assert (other.dtype, other.shape, other.tobytes()) == (x.dtype, x.shape, x.tobytes())


def test_state_dicts_and_safetensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    st = pytest.importorskip("safetensors.torch")
    ours, theirs = nn.Linear(3, 2), torch.nn.Linear(3, 2)
    theirs.load_state_dict(st.load(saved(ours.state_dict())))
    assert theirs.weight.tolist() == ours.weight.tolist()
    assert loaded(st.save(theirs.state_dict()))["bias"].tolist() == ours.bias.tolist()
    half = torch.tensor([1.5, -(2.0**-14)], dtype=torch.bfloat16)
    found = loaded(st.save({"b": half, "h": half.half()}))
    assert found["b"].dtype == cr.float32
    assert found["h"].dtype == cr.float16
    assert found["b"].tolist() == found["h"].tolist() == half.tolist()


# --- PyTorch --------------------------------------------------------------------------------------

TORCH_DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex64", "complex128", "bfloat16"),
]

torch_formats = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])


def by_torch(obj: Any, zipped: bool, **settings: Any) -> bytes:
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    torch.save(obj, buffer, _use_new_zipfile_serialization=zipped, **settings)
    return buffer.getvalue()


@torch_formats
@pytest.mark.parametrize("protocol", [2, 4])
def test_containers_and_tensors_of_pytorch(zipped: bool, protocol: int) -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(12.0)
    obj = {
        "t": base.reshape(3, 4).t(),
        "part": base[2:4],
        "expanded": torch.ones(1).expand(3),
        "0-d": torch.tensor(3),
        "empty": torch.zeros(0, 2),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "dtypes": [torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in TORCH_DTYPES],
        1: (None, True, -5, 2**40, -(2**70), 0.1, "ä", b"\xff", 1j, {1, 2}, frozenset([3])),
        ("a", 2): OrderedDict(b=[1], a={}),
        "numpy": [np.float64(0.1), np.arange(6.0).reshape(2, 3).T, np.int32(2)],
        "torch": [torch.float32, torch.device("cpu"), torch.Size([2, 3])],
        "shared": base,
    }
    found = loaded(by_torch(obj, zipped, pickle_protocol=protocol))
    assert [*found] == [*obj]
    for name in ("t", "part", "expanded", "0-d", "empty", "leaf", "parameter"):
        assert found[name].tolist() == obj[name].tolist()
        assert found[name].shape == tuple(obj[name].shape)
    for ours, theirs in zip(found["dtypes"], obj["dtypes"], strict=True):
        assert ours.tolist() == theirs.tolist()
        name = str(theirs.dtype).removeprefix("torch.")
        assert ours.dtype.name == {"bfloat16": "float32"}.get(name, name)
    assert found[1] == obj[1]
    assert found["a", 2] == obj["a", 2]
    assert type(found["a", 2]) is OrderedDict
    assert [repr(x) for x in found["numpy"]] == [repr(x) for x in obj["numpy"]]
    assert found["torch"] == [cr.float32, cr.device("cpu"), (2, 3)]
    assert found["leaf"].requires_grad
    assert isinstance(found["parameter"], nn.Parameter)
    assert not found["parameter"].requires_grad
    found["shared"][3] = 50.0  # memory is shared as it was in PyTorch
    assert found["part"].tolist() == [2, 50]
    assert found["t"][3, 0] == 50


def test_a_lazily_conjugated_tensor_and_dtypes_without_storage_class() -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j])
    unsigned = torch.tensor([1, 2], dtype=torch.uint16)[1:]
    other = torch.tensor([1 + 2j])
    found = loaded(by_torch([z, z.conj(), other.conj().imag, unsigned], True))
    assert [x.tolist() for x in found] == [[1 + 2j], [1 - 2j], [-2.0], [2]]
    assert found[3].dtype == cr.uint16


@torch_formats
def test_a_checkpoint_of_pytorch_goes_on_here(zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)

    def steps(lib: Any, model: Any, optimizer: Any, schedule: Any, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            (model(lib.tensor(x)) ** 2).mean().backward()
            optimizer.step()
            schedule.step()

    def made(lib: Any, rate: float) -> Any:
        model = lib.nn.Linear(3, 2)
        optimizer = lib.optim.Adam(model.parameters(), lr=rate)
        return model, optimizer, lib.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])

    theirs = made(torch, 0.1)
    steps(torch, *theirs, 3)
    data = by_torch([part.state_dict() for part in theirs], zipped)
    ours = made(cr, 0.5)
    for part, state in zip(ours, loaded(data), strict=True):
        part.load_state_dict(state)
    steps(torch, *theirs, 3)
    steps(cr, *ours, 3)
    np.testing.assert_allclose(ours[0].weight.tolist(), theirs[0].weight.tolist(), rtol=1e-5)


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("executed",)


@torch_formats
def test_objects_of_pytorch_are_refused(zipped: bool, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    refused: list[tuple[Any, str]] = [
        (torch.nn.Linear(1, 1), r"Linear|module.*state_dict" if zipped else "module"),
        (Harmful(), r"object of (builtins|__builtin__)\.print.*state_dict\(\)"),
        ({"a": torch.eye(2).to_sparse()}, r"torch\._utils\._rebuild_sparse_tensor"),
    ]
    for obj, message in refused:
        with pytest.raises(cr.FormatError, match=message):
            loaded(by_torch(obj, zipped), weights_only=False)
    assert "executed" not in capsys.readouterr().out


# --- torch for R, and others ----------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [False, True])
def test_files_of_torch_for_r(as_text: bool) -> None:
    def file(description: Any, names: list[str], rest: bytes = b"") -> bytes:
        header: Any = {name: entry("F32", [1], 4 * i, 4 * i + 4) for i, name in enumerate(names)}
        header["__metadata__"] = {"..r": json.dumps(description) if as_text else description}
        return safetensors_file(header, struct.pack(f"<{len(names)}f", *range(len(names))) + rest)

    grad = {"version": 3, "requires_grad": {"...unnamed...": True}, "special_dtype": []}
    tensor = loaded(file({"type": "tensor", **grad}, ["...unnamed..."]))
    assert tensor.tolist() == [0]
    assert tensor.requires_grad
    module = {"type": ["module"], "version": [3], "requires_grad": []}
    found = loaded(file(module, ["weight", "bias"], b"X\n\0\0object of R"))
    assert {name: x.tolist() for name, x in found.items()} == {"weight": [0], "bias": [1]}
    for wrong in ({"type": "list"}, {"type": "tensor", "special_dtype": {"a": {}}}, {}, [], 3, "{"):
        with pytest.raises(cr.FormatError, match=r"torch for R.*safe_save_file"):
            loaded(file(wrong, ["a"]))


def packed(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def by_numpy(save: Any, *args: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *args)
    return buffer.getvalue()


FOREIGN = {
    "npy": (by_numpy(np.save, np.ones(2)), r"numpy\.load"),
    "npz": (by_numpy(np.savez, np.ones(2)), r"numpy\.load"),
    "pickle": (pickle.dumps(Harmful()), r"a pickle .* execute"),
    "gzip": (gzip.compress(b"RDX3\n"), r"torch for R before .*gzip\.open"),
    "bzip2": (bz2.compress(b""), r"bz2\.open"),
    "xz": (lzma.compress(b""), r"lzma\.open"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", "h5py"),
    "R": (b"X\n\0\0\0\3", "saveRDS"),
    "zip": (packed(a=b"1"), r"not one of torch\.save"),
    "TorchScript": (
        packed(**{"a/data.pkl": b"", "a/constants.pkl": b""}),
        r"TorchScript.*torch\.jit\.load",
    ),
    "Keras": (packed(**{"model.weights.h5": b""}), "Keras"),
    "text": (b"hello, world", r"not a file of cr\.save.*b'hello"),
    "empty": (b"", "not a file"),
}


@pytest.mark.parametrize(("data", "message"), FOREIGN.values(), ids=FOREIGN)
def test_files_of_other_programs_are_refused_with_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(cr.FormatError, match=message):
        loaded(data)


def test_a_compressed_file_object_is_read() -> None:
    data = gzip.compress(saved({"a": cr.ones(2)}))
    with gzip.open(io.BytesIO(data)) as file:
        assert cr.load(file)["a"].tolist() == [1, 1]
