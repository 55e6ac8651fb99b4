"""Pools of result memory: arrays are reused once they are unreferenced, and never before."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.codegen import run
from chainrule.compiler.codegen.run import ResultPool


def test_an_unreferenced_array_is_reused() -> None:
    memory = ResultPool((100,), np.float32)
    first = memory.empty()
    place = first.ctypes.data
    assert memory.empty().ctypes.data != place
    view = first[3:]
    del first
    assert memory.empty().ctypes.data != place
    del view
    assert place in [array.ctypes.data for array in (memory.empty(), memory.empty())]


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_an_array_that_callers_changed_is_not_reused() -> None:
    memory = ResultPool((100,), np.float64)
    kept = [memory.empty(), memory.empty()]
    kept[0].flags.writeable = False
    kept[1].dtype = np.int64
    kept.clear()
    again = memory.empty()
    assert again.flags.writeable
    assert again.dtype == np.float64


def test_pools_are_bounded_and_freed_with_their_owner() -> None:
    memory = ResultPool((100,), np.float32)
    held = [memory.empty() for _ in range(9)]
    known = [weakref.ref(array) for array in held]
    del held
    assert sum(array() is not None for array in known) == run.MAX_REMEMBERED
    del memory
    gc.collect()
    assert not any(array() is not None for array in known)


def test_threads_never_get_the_same_array() -> None:
    memory, clashes = ResultPool((64,), np.int64), []

    def work(number: int) -> None:
        for _ in range(3000):
            array = memory.empty()
            array[:] = number
            if (array != number).any():
                clashes.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes


def test_a_dropped_program_leaves_nothing_behind() -> None:
    def double(x: Any) -> Any:
        return x * 2 + 1

    compiled = cr.compile(double, backend="numpy")
    result = compiled(np.ones(100_000, "f4"))
    array = weakref.ref(result)
    del result
    assert array() is not None
    del compiled
    gc.collect()
    assert array() is None
