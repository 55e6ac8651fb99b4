"""Files of tensors: `save` and `load`, for checkpoints and exchange with PyTorch."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from operator import itemgetter
from typing import Any

from chainrule.errors import FormatError
from chainrule.io import pytorch, safetensors
from chainrule.io.files import FileLike, Source, opened, written
from chainrule.io.json_tree import Decoder, Encoder
from chainrule.io.placement import MapLocation, Placement

__all__ = ["load", "save"]

_VERSION = "1"


def save(
    obj: Any,
    f: FileLike,
    *,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save a tree of tensors, arrays, numbers and strings, such as a state dict, or a module.

    Parameters
    ----------
    obj : Tensor, array, number, str, None, or containers of them
        Lists, tuples, dicts with any keys, `OrderedDict`, `Counter`, sets; bytes, dtypes and
        devices. All come back from `load` as they were: with their types, dtypes, ``requires_grad``
        and device. Gradients are not saved. What is in the tree more than once, or shares all its
        memory, is in the file once, and shared again when loaded.

        Modules, and other objects with attributes, are saved as the name of their class and their
        attributes: the class isn't in the file. A state dict is the better choice, which doesn't
        depend on names and attributes that change.
    f : str, PathLike or binary file object
        The file. A path is replaced when the new contents are on the disk: an error, an interrupt
        or a power failure before leaves the former file as it was.
    pickle_module, pickle_protocol, _use_new_zipfile_serialization
        For PyTorch's scripts: without effect.

    Raises
    ------
    TypeError
        If the tree contains something else: an optimiser, a lambda, an object of a class without a
        name in its module.
    ArgumentError
        If a container contains itself, or more than 100 are in each other.

    See Also
    --------
    load

    Notes
    -----
    The format is safetensors [1]_, whatever the file is called, with the tree in its metadata:
    other programs read the tensors of a state dict by their names
    (``safetensors.torch.load_file``), tensors in containers by dotted ones such as
    ``"model.weight"``. complex128, which the format lacks, is a pair of float64.

    References
    ----------
    .. [1] https://huggingface.co/docs/safetensors

    Examples
    --------
    A checkpoint, to go on with another day:

    >>> import tempfile, os
    >>> import chainrule as cr
    >>> model = cr.nn.Linear(3, 2)
    >>> optimizer = cr.optim.Adam(model.parameters())
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    >>> cr.save(
    ...     {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 5,
    ...      "rng": cr.get_rng_state()},
    ...     path,
    ... )
    >>> checkpoint = cr.load(path)
    >>> model.load_state_dict(checkpoint["model"])
    <All keys matched successfully>
    >>> optimizer.load_state_dict(checkpoint["optimizer"])
    >>> cr.set_rng_state(checkpoint["rng"])
    >>> checkpoint["epoch"]
    5
    """
    encoder = Encoder()
    tree = encoder.encode(obj)
    records = {name: safetensors.record_of(array) for name, array in encoder.arrays.items()}
    text = json.dumps({"tree": tree, "arrays": records}, separators=(",", ":"))
    metadata = {"format": "pt", "chainrule": _VERSION, "chainrule.tree": _signed(text)}
    with written(f) as file:
        safetensors.write(file, encoder.arrays, metadata)


def load(
    f: FileLike,
    map_location: MapLocation = None,
    weights_only: bool | None = True,
    *,
    pickle_module: Any = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Load what `save` saved, a file of PyTorch, or any safetensors file.

    Parameters
    ----------
    f : str, PathLike or binary file object
        The file. Its format is known by its contents, not by its name: files of `save`, of
        safetensors, of PyTorch (``torch.save``, also of before 1.6), and of torch for R (modules
        and tensors, since 0.11).
    map_location : device, str, dict or callable, optional
        The device for all tensors; or devices by those that they were saved on,
        ``{"cuda:0": "cpu"}``; or a function of a tensor on the CPU and the name of its device, that
        returns the tensor where it shall be or None. Without, tensors return to their devices.
    weights_only : bool, default True
        Of objects that `save` saved: True makes modules of classes that the program has imported,
        and objects of the classes in `serialization.add_safe_globals`. False, for files that you
        trust, imports the classes and functions that the file names. Code in a file is never
        executed.
    pickle_module, mmap, encoding
        For PyTorch's scripts: without effect.

    Returns
    -------
    tree of tensors
        What was saved. Of other safetensors files, a dict of tensors by name; of a module that
        torch for R saved, its state dict.

    Raises
    ------
    FormatError
        If the file is damaged, in its numbers too where it has checksums; of another format; or
        contains objects other than tensors, numbers, strings and containers, and no module of
        `save`.
    DeviceError
        If a tensor was saved on a device that this machine lacks: give `map_location`.

    See Also
    --------
    save

    Notes
    -----
    bfloat16, which NumPy lacks, becomes float32 with the same values. Tensors of a PyTorch file
    that share memory share it again. Headers and sizes are checked before memory is reserved.

    Examples
    --------
    >>> import io
    >>> import chainrule as cr
    >>> buffer = io.BytesIO()
    >>> cr.save({"weight": cr.ones(2), "names": ("a", "b")}, buffer)
    >>> _ = buffer.seek(0)
    >>> cr.load(buffer)
    {'weight': tensor([1., 1.]), 'names': ('a', 'b')}
    """
    placement = Placement(map_location)
    trusted = weights_only is not None and not weights_only
    with opened(f) as source:
        start = source.read(min(pytorch.HEAD, source.size))
        source.seek(0)
        try:
            if pytorch.looks_like_zip(start):
                return pytorch.read_zip(source, placement)
            if pytorch.looks_like_legacy(start):
                return pytorch.read_legacy(source, placement)
            if safetensors.looks_like_safetensors(start):
                return _read_safetensors(source, placement, trusted)
        except RecursionError:
            raise FormatError("cr.load: the file has too many containers in each other") from None
    raise FormatError(_unknown(start))


def _read_safetensors(source: Source, placement: Placement, trusted: bool) -> Any:
    arrays, records, metadata = safetensors.read(source)
    if "..r" in metadata:
        return _of_r(arrays, metadata["..r"], placement)
    text = metadata.get("chainrule.tree")
    if (text is None) != ("chainrule" not in metadata):
        raise FormatError("cr.load: the file is damaged: its metadata lacks the tree or its mark")
    if text is None:
        return {name: placement.tensor(x, "cpu", False, False) for name, x in arrays.items()}
    if metadata["chainrule"] != _VERSION:
        raise FormatError(
            f"cr.load: the file has version {metadata['chainrule']!r} of the format, this "
            f"chainrule reads {_VERSION}: update it"
        )
    try:
        if not isinstance(text, str) or text != _signed(text[9:]):
            raise ValueError("its checksum is another one")
        tree, saved = itemgetter("tree", "arrays")(safetensors.parse_json(text[9:]))
        if not isinstance(saved, dict):
            raise ValueError("it doesn't describe the arrays")
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"cr.load: the tree in the file is damaged: {error}") from None
    for name in saved.keys() | records.keys():
        if saved.get(name) != records.get(name):
            raise FormatError(
                f"cr.load: the file is damaged: {name!r} is not what was saved (dtype, shape and "
                f"checksum {records.get(name)}, saved {saved.get(name)})"
            )
    return Decoder(arrays, placement, trusted).decode(tree)


def _signed(text: str) -> str:
    """Return a text behind its checksum."""
    return f"{zlib.crc32(text.encode(errors='backslashreplace')):08x} {text}"


def _of_r(arrays: dict[str, Any], description: Any, placement: Placement) -> Any:
    """Return the tensors of a file that ``torch_save`` of torch for R (since 0.11) wrote.

    Its metadata tell the kind of object, in JSON or a string of it; an object of R that follows
    the tensors is left unread: https://github.com/mlverse/torch, R/save.R.
    """
    if isinstance(description, str):
        with suppress(ValueError):
            description = safetensors.parse_json(description)
    kind = description.get("type") if isinstance(description, dict) else None
    kind = kind[0] if isinstance(kind, list) and len(kind) == 1 else kind  # a vector of R
    if kind not in ("tensor", "module", "state_dict") or description.get("special_dtype"):
        raise FormatError(
            f"cr.load: torch for R saved a {kind} here, of which the structure is R's own, or "
            "complex numbers. In R, save the tensors alone: "
            "safetensors::safe_save_file(list(name = tensor), path)"
        )
    grads = description.get("requires_grad")
    tensors = {
        name: placement.tensor(x, "cpu", isinstance(grads, dict) and name in grads, False)
        for name, x in arrays.items()
    }
    return next(iter(tensors.values()), None) if kind == "tensor" else tensors


_OTHERS = {
    b"\x93NUMPY": "NumPy wrote this file: read it with numpy.load",
    b"\x1f\x8b": "the file is compressed with gzip. If torch_save of torch for R before 0.11 wrote "
    "it, load and save it again there with a newer version; else give load gzip.open(path)",
    b"BZh": "the file is compressed with bzip2: give load bz2.open(path)",
    b"\xfd7zXZ": "the file is compressed with xz: give load lzma.open(path)",
    b"\x89HDF": "the file is HDF5, as Keras writes: read it with h5py",
    b"\x80": "the file is a pickle that torch.save did not write. Reading it would execute what "
    "it says: if you trust it, read it with pickle, and save tensors and arrays with cr.save",
    b"X\n": "R wrote this file with saveRDS or serialize: in R, save the tensors with "
    "safetensors::safe_save_file(list(name = tensor), path)",
}


def _unknown(start: bytes) -> str:
    for mark, meaning in _OTHERS.items():
        if start.startswith(mark):
            return f"cr.load: {meaning}"
    return (
        "cr.load: not a file of cr.save, safetensors or PyTorch, or a damaged one: it begins with "
        f"{start[:16]!r}"
    )
