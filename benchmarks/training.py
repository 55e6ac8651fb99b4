"""Training steps of networks and optimisers, an epoch of a data loader: beside PyTorch and JAX.

All libraries run in one process, with two threads each.
"""

from __future__ import annotations

from typing import Any

import harness
import numpy as np
from programs import networks

import chainrule as cr
from chainrule.compiler.eager import using_kernels
from chainrule.utils.data import DataLoader, TensorDataset

try:
    import torch
except ImportError:
    torch = None

SIZES = {"100 tensors of 10,000": (100, (100, 100)), "100 tensors of 100": (100, (10, 10))}
OPTIMISERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD, momentum": {"momentum": 0.9},
    **{name: {} for name in ("ASGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop")},
    **{name: {} for name in ("Adagrad", "Adadelta", "Rprop", "Adafactor", "Muon")},
}
BARS = {"Adam, 100 tensors of 10,000": 0.7}


def step_of(library: Any, name: str, count: int, shape: tuple[int, ...]) -> harness.Job:
    """Return the step of an optimiser with gradients that stay as they are."""
    rng = np.random.default_rng(0)
    params = []
    for _ in range(count):
        value = rng.standard_normal(shape).astype(np.float32)
        param = library.tensor(value, requires_grad=True)
        param.grad = library.tensor(0.1 * value)
        params.append(param)
    kind = getattr(library.optim, name.partition(",")[0])
    return kind(params, lr=1e-3, **OPTIMISERS[name]).step  # type: ignore[no-any-return]


def epoch_of(loader: Any, dataset: Any, shuffle: bool) -> harness.Job:
    """Return a pass over all batches of 64."""

    def epoch() -> None:
        for _ in loader(dataset, batch_size=64, shuffle=shuffle):
            pass

    return epoch


def rows() -> list[harness.Row]:
    """Measure all rows."""
    libraries = [("chainrule", cr), *([("PyTorch", torch)] if torch else [])]
    measured = []
    for title, (count, shape) in SIZES.items():
        for name in OPTIMISERS:
            jobs = {label: step_of(library, name, count, shape) for label, library in libraries}
            row = f"{name}, {title}"
            measured.append(harness.measure(row, jobs, {"PyTorch": BARS.get(row, 1)}))
    x = np.random.default_rng(0).standard_normal((60_000, 784)).astype(np.float32)
    y = np.arange(60_000)
    for shuffle in (False, True):
        ours = TensorDataset(cr.from_numpy(x), cr.from_numpy(y))
        jobs = {"chainrule": epoch_of(DataLoader, ours, shuffle)}
        if torch:
            tools = torch.utils.data
            theirs = tools.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
            jobs["PyTorch"] = epoch_of(tools.DataLoader, theirs, shuffle)
        name = f"DataLoader, 60,000 × 784, batch 64{', shuffled' if shuffle else ''}"
        measured.append(harness.measure(name, jobs, {"PyTorch": 0.5}, rounds=7))
    return measured


def network_rows() -> list[harness.Row]:
    """Measure the networks: eager steps, also with native kernels, and compiled ones."""
    measured = []
    for name, (*_, bar) in networks.PROGRAMS.items():
        jobs = networks.jobs(name)
        compiled = jobs.pop("compiled")
        eager = {label: job for label, job in jobs.items() if label != "JAX jit"}
        row = harness.measure(f"{name}, eager", eager, {"PyTorch": bar}, rounds=15, rest=0.002)
        measured.append(row)
        with using_kernels("native"):
            title = f"{name}, eager with native kernels"
            measured.append(harness.measure(title, eager, {"PyTorch": bar}, rounds=15, rest=0.002))
        bars = {"PyTorch": 0.7, "JAX jit": 0.9}
        jobs["chainrule"] = compiled
        row = harness.measure(f"{name}, compiled", jobs, bars, rounds=15, rest=0.002)
        measured.append(row)
    return measured


def main() -> str:
    """Return the tables."""
    if torch:
        torch.set_num_threads(2)
    libraries = ["chainrule", *(["PyTorch"] if torch else [])]
    tables = [
        harness.table(network_rows(), [*libraries, "JAX jit"]),
        harness.table(rows(), libraries),
    ]
    return "\n\n".join(tables).replace("µs, forward + backward", "µs")


if __name__ == "__main__":
    print(main())
