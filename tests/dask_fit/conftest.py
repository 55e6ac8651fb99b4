"""Clusters of threads of this process, and one of processes, for each module."""

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
    """The client of two workers that are processes, without Dask's profiler.

    It may hold the frames of a trace, and the call is traced once more.
    """
    import dask

    settings = {
        "distributed.worker.profile.enabled": False,
        "distributed.scheduler.allowed-failures": 10,
        "distributed.scheduler.active-memory-manager.interval": "20ms",  # drops copies
    }
    with dask.config.set(settings), cr.distributed.local_cluster(2) as client:
        yield client


@pytest.fixture(autouse=True, scope="module")
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions of the test by value: workers import neither it nor pytest."""
    import cloudpickle

    module = sys.modules[request.module.__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)
