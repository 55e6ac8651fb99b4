"""A cluster of threads of this process, and one of processes, for each module."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import chainrule as cr

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """The client of two workers that are threads of this process."""
    with cr.distributed.local_cluster(2, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    """The client of two workers that are processes."""
    import dask

    # A profiler that samples a trace keeps its tensors alive, and the call is traced once more.
    # Results are not compared with eager ones there, since that calls the function, too.
    settings = {
        "distributed.worker.profile.enabled": False,
        "distributed.scheduler.allowed-failures": 1,
    }
    with (
        dask.config.set(settings),
        cr.distributed.local_cluster(2, env={"CHAINRULE_VERIFY": "off"}) as client,
    ):
        yield client


@pytest.fixture(autouse=True, scope="module")
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions of the test by value: workers can't import it."""
    import cloudpickle

    module = sys.modules[request.module.__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)
