"""`save` and `load` of 256 MB beside safetensors, in turns, each file replaced as in training."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

import chainrule as cr

ROUNDS = 15


def synced(arrays: Any, path: str) -> None:
    """Save with safetensors, and wait for the disk, as `cr.save` does."""
    save_file(arrays, path)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def main() -> str:
    rng = np.random.default_rng(0)
    arrays = {f"w{i}": rng.random((1024, 4096), dtype=np.float32) for i in range(16)}
    tensors = {name: cr.from_numpy(x) for name, x in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = (os.path.join(folder, name) for name in ("ours", "theirs"))
        rows: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "save, on the disk": (lambda: cr.save(tensors, ours), lambda: synced(arrays, theirs)),
            "load": (lambda: cr.load(ours), lambda: load_file(ours)),
        }
        lines = ["| 256 MB | chainrule, s | safetensors, s | speed | bar |", "|" + " --- |" * 5]
        for name, pair in rows.items():
            taken: list[list[float]] = [[], []]
            for _ in range(ROUNDS):
                for function, times in zip(pair, taken, strict=True):
                    start = time.perf_counter()
                    function()
                    times.append(time.perf_counter() - start)
            us, them = map(statistics.median, taken)
            lines.append(f"| {name} | {us:.3f} | {them:.3f} | {them / us:.2f} | ≥ 0.8 |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
