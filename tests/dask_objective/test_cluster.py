"""Imports, the extra, and local clusters, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

IMPORTS = """
import sys
import chainrule as cr

cr.distributed.is_available()
cr.distributed.Objective, cr.distributed.local_cluster
assert not {"dask", "distributed", "cloudpickle", "threadpoolctl"} & sys.modules.keys()

with cr.distributed.local_cluster(1, processes=False) as client:
    assert client.submit(abs, -2).result() == 2

import dask
assert dask.config.get("distributed.deploy.lost-worker-timeout") == "15s"
"""

MISSING = """
import sys
for name in ("dask", "distributed", "cloudpickle"):
    sys.modules[name] = None
import chainrule as cr

def local():
    with cr.distributed.local_cluster(1):
        pass

for function in (local, lambda: cr.distributed.Objective(abs, [int])):
    try:
        function()
    except cr.MissingExtraError as error:
        assert "pip install 'chainrule[distributed]'" in str(error)
    else:
        raise AssertionError
"""


@pytest.mark.parametrize("program", [IMPORTS, MISSING], ids=["imports", "missing"])
def test_dask_is_imported_when_it_is_used(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_example_finds_the_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    import logistic_on_dask

    distances = logistic_on_dask.main(4, 2000, n_workers=2, processes=False)
    assert np.abs(distances).max() < 4
