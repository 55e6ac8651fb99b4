"""Fit a logistic regression to files of data on all cores, with standard errors.

The files stand for data that don't fit into memory: each is read by a worker, and only parameters,
values and derivatives travel. The fit is by Newton's method in a trust region, with Hessian-vector
products from the workers; the standard errors are from the Hessian at the solution. Replace
`local_cluster` by `distributed.Client("tcp://…")`, and the same program runs on many machines.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.distributed import Objective, local_cluster

TRUE = np.array([0.5, 1.0, -0.5, 0.25, 0.0])  # the offset, and a slope for each feature


def write(folder: Path, files: int, rows: int) -> list[Path]:
    """Write files of samples whose labels are drawn from the true parameters."""
    paths = [folder / f"{i}.npz" for i in range(files)]
    for seed, path in enumerate(paths):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows, len(TRUE) - 1))
        odds = np.exp(x @ TRUE[1:] + TRUE[0])
        np.savez(path, x=x, label=rng.random(rows) < odds / (1 + odds))
    return paths


def loss(w: Any, x: Any, label: Any) -> Any:
    """Return the negative log likelihood of the samples of a file, by the names of its arrays."""
    score = x @ w[1:] + w[0]
    return cr.nn.functional.softplus(np.where(label, -score, score)).sum()


def main(files: int = 16, rows: int = 50_000, **cluster: Any) -> Any:
    """Print the parameters, and return their distances from the true ones in standard errors."""
    with tempfile.TemporaryDirectory() as folder, local_cluster(**cluster) as client:
        objective = Objective(loss, write(Path(folder), files, rows), client=client)
        problem = objective.problem("trust-ncg")
        fit = cr.scipy.optimize.minimize(x0=np.zeros(len(TRUE)), **problem, options={"gtol": 1e-3})
        errors = np.sqrt(np.diag(np.linalg.inv(objective.hessian(fit.x))))
    print(f"{files * rows} samples in {files} files, {fit.nit} iterations, {fit.message.lower()}")
    for found, error, true in zip(fit.x, errors, TRUE, strict=True):
        print(f"{found:7.4f} ± {error:.4f}, drawn with {true}")
    return (fit.x - TRUE) / errors


if __name__ == "__main__":
    main()
