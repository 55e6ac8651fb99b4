"""Damaged and hostile files: one error, nothing executed, no memory but for what the file holds."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import chainrule as cr

MB = 1 << 20


def loaded(data: bytes) -> Any:
    return cr.load(io.BytesIO(data))


def saved(obj: Any) -> bytes:
    buffer = io.BytesIO()
    cr.save(obj, buffer)
    return buffer.getvalue()


def damaged(data: bytes, message: str = "") -> None:
    """Check that a file is refused, without memory for more than it contains."""
    tracemalloc.start()
    try:
        with pytest.raises(cr.FormatError, match=message):
            loaded(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * MB + 20 * len(data)
    finally:
        tracemalloc.stop()


# --- every bit and every length -------------------------------------------------------------------

TREE = {"w": cr.tensor([1.0, -2.0]), "b": np.array([True, False]), "n": [1, "x", (2.5,)]}


def flips(data: bytes, bits: range = range(8)) -> Iterator[bytes]:
    for i, byte in enumerate(data):
        for bit in bits:
            yield data[:i] + bytes([byte ^ 1 << bit]) + data[i + 1 :]


def test_any_flipped_bit_of_our_files_is_found_or_harmless() -> None:
    data, found = saved(TREE), 0
    for changed in flips(data):
        try:
            assert repr(loaded(changed)) == repr(TREE)
        except cr.FormatError:
            found += 1
    assert found > 0.9 * 8 * len(data)  # of what remains, most is the names of "format"


def test_any_cut_or_longer_file_is_refused() -> None:
    data = saved(TREE)
    for length in range(len(data)):
        with pytest.raises(cr.FormatError):
            loaded(data[:length])
    damaged(data + b"\0", "1 bytes follow the last array")


PLAIN = (lambda text: struct.pack("<Q", len(text)) + text + struct.pack("<2f2B", 1, 2, 0, 1))(
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"b":{"dtype":"BOOL","shape":[2],"data_offsets":[8,10]}}'
)


def of_torch(zipped: bool) -> bytes:
    torch = pytest.importorskip("torch")
    obj = {"w": torch.ones(2), "b": torch.tensor([True]), "n": [1, "x", (2.5, 2**40)]}
    buffer = io.BytesIO()
    torch.save(obj, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("make", "bits"),
    [
        (lambda: PLAIN, range(8)),
        (lambda: of_torch(False), range(8)),
        (lambda: of_torch(True), range(5, 8, 5)),
        pytest.param(lambda: of_torch(True), range(8), marks=pytest.mark.thorough),
    ],
    ids=["safetensors", "legacy", "zip", "zip, all bits"],
)
def test_any_flipped_bit_or_cut_of_other_files_gives_one_error(
    make: Callable[[], bytes], bits: range
) -> None:
    data = make()
    loaded(data)
    cuts = (data[:length] for length in range(len(data)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for changed in flips(data, bits):
            with suppress(cr.FormatError):
                loaded(changed)
        for changed in cuts:
            with pytest.raises(cr.FormatError):
                loaded(changed)


# --- headers of safetensors -----------------------------------------------------------------------


def entry(dtype: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


A = entry("U8", [4], 0, 4)

HEADERS: dict[str, tuple[Any, str]] = {
    "not JSON": (b"{]", "not JSON"),
    "not UTF-8": (b'{"\xff":1}', "not JSON"),
    "NaN": (b'{"a":NaN}', "NaN is not JSON"),
    "deep": (b'{"a":' + b"[" * 100_000, "nesting is too deep|not JSON"),
    "a long number": (b'{"a":' + b"1" * 10_000 + b"}", "not JSON"),
    "the same name twice": (
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        b'"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        "'a' occurs twice",
    ),
    "metadata": ({"__metadata__": [], "a": A}, "metadata"),
    "no object": ({"a": 3}, "'a' must have dtype, shape and data_offsets"),
    "a missing part": ({"a": {"dtype": "U8", "shape": [4]}}, "must have dtype"),
    "an unknown part": ({"a": {**A, "x": 1}}, "must have dtype"),
    "an unknown dtype": ({"a": entry("F8_E4M3", [4], 0, 4)}, r"'F8_E4M3'.*\.float\(\)"),
    "no dtype": ({"a": entry(["U8"], [4], 0, 4)}, "has the dtype"),
    "a negative size": ({"a": entry("U8", [-4], 0, 4)}, "shape of 'a'"),
    "sizes that cancel": ({"a": entry("U8", [-2, -2], 0, 4)}, "shape of 'a'"),
    "a size that is true": ({"a": entry("U8", [True, 4], 0, 4)}, "shape of 'a'"),
    "a float": ({"a": entry("U8", [4.0], 0, 4)}, "shape of 'a'"),
    "65 dimensions": ({"a": entry("U8", [1] * 64 + [4], 0, 4)}, "shape of 'a'"),
    "an overflow": ({"a": entry("U8", [2**32, 2**32, 4], 0, 4)}, "takes 4 bytes"),
    "a huge size of nothing": (
        {"a": entry("F64", [0, 2**62, 2**62], 0, 0), "b": A},
        "has the shape",
    ),
    "another size": ({"a": entry("F32", [4], 0, 4)}, "takes 4 bytes, not 16"),
    "one offset": ({"a": entry("U8", [4], 4)}, "data_offsets of 'a'"),
    "a reversed range": ({"a": entry("U8", [4], 4, 0)}, "takes -4 bytes"),
    "an overlap": ({"a": entry("U8", [3], 0, 3), "b": entry("U8", [2], 2, 4)}, "'b' overlaps"),
    "the same bytes twice": ({"a": A, "b": A}, "'b' overlaps"),
    "a gap": (
        {"a": entry("U8", [1], 0, 1), "b": entry("U8", [2], 2, 4)},
        "'b' begins behind a gap",
    ),
    "a gap at the beginning": ({"a": entry("U8", [3], 1, 4)}, "behind a gap"),
    "a misaligned array": (
        {"a": entry("U8", [1], 0, 1), "b": entry("U16", [1], 1, 3), "c": entry("U8", [1], 3, 4)},
        "'b' is misaligned",
    ),
    "beyond the end": ({"a": entry("U8", [5], 0, 5)}, "truncated: 5 bytes"),
    "far beyond the end": ({"a": entry("U8", [2**62], 0, 2**62)}, "truncated"),
    "bytes at the end": ({"a": entry("U8", [3], 0, 3)}, "1 bytes follow"),
    "no booleans": ({"a": entry("BOOL", [4], 0, 4)}, "neither 0 nor 1"),
}


@pytest.mark.parametrize(("header", "message"), HEADERS.values(), ids=HEADERS)
def test_headers(header: Any, message: str) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    damaged(struct.pack("<Q", len(text)) + text + b"\0\1\2\3", message)


@pytest.mark.parametrize("length", [0, 1, 500, 2**32, 2**55])
def test_the_length_of_the_header(length: int) -> None:
    damaged(struct.pack("<Q", length) + b"{}" + b" " * 100, "its header should have")


# --- trees ----------------------------------------------------------------------------------------


def with_tree(tree: Any, arrays: Any = None, version: str = "1") -> bytes:
    """Return a file whose checksums are right."""
    from chainrule.io import safetensors

    arrays = {"a": np.ones(2)} if arrays is None else arrays
    records = {name: safetensors.record_of(x) for name, x in arrays.items()}
    text = tree if isinstance(tree, str) else json.dumps({"tree": tree, "arrays": records})
    signed = f"{zlib.crc32(text.encode()):08x} {text}"
    buffer = io.BytesIO()
    safetensors.write(buffer, arrays, {"chainrule": version, "chainrule.tree": signed})
    return buffer.getvalue()


def nested(kind: str, depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = {kind: [tree]} if kind else [tree]
    return tree


WRONG_TREES: list[tuple[Any, str]] = [
    ({}, "contains a ''"),
    ({"lambda": 1}, "contains a 'lambda'.*later"),
    ({"tensor": "b"}, "wrong tensor"),
    ({"tensor": ["a"]}, "wrong tensor"),
    ({"tensor": "a", "dtype": "object"}, "wrong tensor: only pairs"),
    ({"array": "a", "dtype": []}, "wrong array"),
    ({"tensor": "a", "device": "nowhere"}, "damaged"),
    ({"device": "nowhere"}, "wrong device"),
    ({"numpy.dtype": "object"}, "wrong numpy.dtype"),
    ({"scalar": "float64", "value": [1.0]}, "wrong scalar"),
    ({"scalar": "object", "value": 1}, "wrong scalar"),
    ({"int": "12z"}, "wrong int"),
    ({"float": "one"}, "wrong float"),
    ({"complex": [1]}, "wrong complex"),
    ({"complex": ["1", 2]}, "wrong complex"),
    ({"bytes": "0"}, "wrong bytes"),
    ({"tuple": {"int": "0x1"}}, "wrong tuple"),
    ({"dict": [[1]]}, "wrong dict"),
    ({"dict": [[1, 2], [1, 3]]}, "wrong dict: a key occurs twice"),
    ({"dict": [[[], 2]]}, "wrong dict"),
    ({"set": [[]]}, "wrong set"),
    (nested("", 800), "too many containers"),
    ("[]", "damaged"),
    ("{", "damaged"),
    ('{"tree": 1}', "damaged"),
    ('{"tree": 1, "arrays": []}', "damaged"),
]


@pytest.mark.parametrize(("tree", "message"), WRONG_TREES)
def test_trees(tree: Any, message: str) -> None:
    damaged(with_tree(tree), message)


def test_a_later_version_is_refused() -> None:
    damaged(with_tree(1, version="2"), "version '2'.*update")


# --- archives and pickles -------------------------------------------------------------------------


def archive(pickled: bytes, compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr("a/data.pkl", pickled)
        for name, data in members.items():
            file.writestr(f"a/data/{name}", data)
    return buffer.getvalue()


class Op:
    """Opcodes of pickles, put together by hand."""

    proto, stop, mark, reduce = b"\x80\x02", b".", b"(", b"R"

    @staticmethod
    def name(module: str, name: str) -> bytes:
        return f"c{module}\n{name}\n".encode()

    @staticmethod
    def value(x: Any) -> bytes:
        return pickle.dumps(x, 2)[2:-1]

    @classmethod
    def storage(cls, kind: str, key: str, numel: int) -> bytes:
        parts = (cls.value("storage"), cls.name("torch", kind), cls.value(key), cls.value("cpu"))
        return cls.mark + b"".join(parts) + cls.value(numel) + b"tQ"

    @classmethod
    def tensor(
        cls, storage: bytes, offset: Any, size: Any, stride: Any, grad: Any = False
    ) -> bytes:
        rest = b"".join(map(cls.value, (offset, size, stride, grad, {})))
        function = cls.name("torch._utils", "_rebuild_tensor_v2")
        return cls.proto + function + cls.mark + storage + rest + b"t" + cls.reduce + cls.stop


FLOATS = Op.storage("FloatStorage", "s0", 4)

TENSORS: list[tuple[bytes, str]] = [
    (Op.tensor(FLOATS, 1, (4,), (1,)), "beyond its storage"),
    (Op.tensor(FLOATS, 0, (2, 2), (4, 1)), "beyond its storage"),
    (Op.tensor(FLOATS, -1, (2,), (1,)), "wrong shape"),
    (Op.tensor(FLOATS, 3, (2,), (-1,)), "wrong shape"),
    (Op.tensor(FLOATS, 0, (-2,), (1,)), "wrong shape"),
    (Op.tensor(FLOATS, 0, (2**62,), (1,)), "beyond its storage"),
    (Op.tensor(FLOATS, 0, (2**62, 2**62), (0, 0)), "damaged"),
    (Op.tensor(FLOATS, 0, (0, 2**62, 2**62), (1, 1, 1)), "damaged"),
    (Op.tensor(FLOATS, 0, (1,) * 65, (1,) * 65), "damaged"),
    (Op.tensor(FLOATS, 0, (2,), (1, 1)), "number of strides"),
    (Op.tensor(FLOATS, 0, [2], [1]), "wrong shape"),
    (Op.tensor(FLOATS, True, (2,), (1,)), "wrong shape"),
    (Op.tensor(Op.value(1), 0, (2,), (1,)), "without storage"),
    (Op.tensor(Op.storage("FloatStorage", "s0", 5), 0, (5,), (1,)), "has 16 bytes"),
    (Op.tensor(Op.storage("FloatStorage", "s0", 2**62), 0, (5,), (1,)), "wrong size"),
    (Op.tensor(Op.storage("FloatStorage", "s0", -4), 0, (4,), (1,)), "wrong size"),
    (Op.tensor(Op.storage("FloatStorage", "s1", 4), 0, (4,), (1,)), "damaged"),
    (Op.tensor(Op.storage("IntStorage", "s0", 4), 0, (4,), (1,), True), "cannot require grad"),
    (Op.tensor(Op.storage("BoolStorage", "s0", 16), 0, (4,), (1,)), "neither 0 nor 1"),
    (Op.tensor(Op.storage("Tensor", "s0", 4), 0, (4,), (1,)), r"torch\.Tensor"),
]

NUMPY = b"".join([Op.name("numpy.core.multiarray", "_reconstruct"), Op.value(()), Op.reduce])
DTYPE = b"".join([Op.name("numpy", "dtype"), Op.value(("f8",)), Op.reduce])

PICKLES: list[tuple[bytes, str]] = [
    *TENSORS,
    (b"", "damaged|truncated"),
    (b"\x80\x02", "damaged|truncated"),
    (b"\x80\x02.", "damaged"),
    (b"\x80\x02\xff.", "damaged"),
    (b"\x80\x02P1\n.", "unexpected operation PERSID"),
    (b"\x80\x02a.", "damaged"),
    (b"\x80\x02)a.", "damaged"),
    (b"\x80\x02t.", "damaged"),
    (b"\x80\x02Ka\x85R.", "damaged"),
    (b"\x80\x02Kah\x05.", "damaged"),
    (b"\x80\x02Kar\xff\xff\xff\xffh\x00.", "damaged"),  # a memo of 4,294,967,295 places
    (b"\x80\x02X\xff\xff\xff\x7fa.", "damaged"),  # text of 2 GB
    (b"\x80\x04\x8e\0\0\0\0\1\0\0\0a.", "damaged"),  # bytes of 4 GB
    (b"\x80\x02\x8b\xff\xff\xff\x7fa.", "damaged"),  # a number of 2 GB
    (b"\x80\x02]}K\1s.", "damaged"),
    (b"\x80\x02}]K\1s.", "a key that is a list"),
    (b"\x80\x02c" + b"a" * 100_000 + b"\nb\n.", "damaged"),
    (b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.", r"object of os\.system"),
    (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.", r"object of os\.system"),
    (b"\x80\x02cbuiltins\neval\nX\x01\0\0\0" + b"1\x85R.", r"object of builtins\.eval"),
    (b"\x80\x02ccollections\nOrderedDict.popitem\n)R.", "object of"),
    (b"\x80\x02K\1}b.", "a state for what has none"),
    (b"\x80\x02c__builtin__\nset\n](]e\x85R.", "damaged"),
    (b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "damaged"),  # 2 GB of zeros
    (b"\x80\x02X\1\0\0\0aQ.", "damaged"),
    (b"\x80\x02" + NUMPY + Op.value((1, (2**40,))) + b"b.", "damaged"),
    (
        b"\x80\x02" + NUMPY + b"(K\1" + Op.value((2**40,)) + DTYPE + b"\x89" + b"U\1at" + b"b.",
        "damaged",
    ),
    (b"\x80\x02cnumpy\ndtype\nX\1\0\0\0O\x85R.", "NumPy's dtype 'O'"),
]


@pytest.mark.parametrize(("pickled", "message"), PICKLES)
def test_pickles(pickled: bytes, message: str) -> None:
    damaged(archive(pickled, s0=struct.pack("<4f", 1, 2, 3, 4)), message)


def test_a_key_whose_hash_takes_forever_is_refused() -> None:
    pickled = b"\x80\x02})" + b"q\0h\0\x86" * 60 + b"K\1s."
    damaged(archive(pickled), "a key of too many parts")


def test_a_long_list_in_itself_and_shared_parts_are_read() -> None:
    assert loaded(archive(b"\x80\x02]q\0h\0a.", s0=b""))  # a list that contains itself


def test_archives() -> None:
    good = Op.tensor(FLOATS, 0, (4,), (1,))
    data = struct.pack("<4f", 1, 2, 3, 4)
    assert loaded(archive(good, s0=data)).tolist() == [1, 2, 3, 4]
    damaged(archive(good, zipfile.ZIP_DEFLATED, s0=bytes(100 * MB)[:16]), "is compressed")
    bomb = Op.tensor(Op.storage("ByteStorage", "s0", 50 * MB), 0, (1,), (1,))
    packed = archive(bomb, zipfile.ZIP_DEFLATED, s0=bytes(50 * MB))
    damaged(packed, "is compressed")
    stored = bytearray(archive(good, s0=data))
    for place in [stored.rindex(b"PK\1\2") + 20, stored.rindex(b"PK\1\2") + 24]:
        stored[place : place + 4] = struct.pack("<I", 2**31)
    damaged(bytes(stored), "overlap|damaged")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        buffer = io.BytesIO(archive(good, s0=data))
        with zipfile.ZipFile(buffer, "a") as file:
            file.writestr("a/data/s0", data)
    damaged(buffer.getvalue(), "same name")
    damaged(archive(good, s0=data).replace(data, data[::-1]), "Bad CRC")


def legacy(pickled: bytes, keys: Any, storages: bytes) -> bytes:
    head = [pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    return b"".join(head) + pickled + pickle.dumps(keys, 2) + storages


def test_files_from_before_1_6() -> None:
    good = Op.tensor(FLOATS, 0, (4,), (1,))
    data = struct.pack("<q4f", 4, 1, 2, 3, 4)
    assert loaded(legacy(good, ["s0"], data)).tolist() == [1, 2, 3, 4]
    damaged(legacy(good, [], b""), "list of storages")
    damaged(legacy(good, ["s0", "s0"], 2 * data), "list of storages")
    damaged(legacy(good, ["s0"], data[:-1]), "truncated")
    damaged(legacy(good, ["s0"], b"\5" + data[1:]), "has 5 numbers, not 4")
    huge = Op.tensor(Op.storage("FloatStorage", "s0", 2**40), 0, (1,), (1,))
    damaged(legacy(huge, ["s0"], struct.pack("<q", 2**40)), "truncated: its tensors need")
