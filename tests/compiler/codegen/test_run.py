"""Memory of large results is used again when nobody holds it, and never while somebody does."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.compiler.codegen import run
from chainrule.compiler.codegen.run import Recycled


def test_an_array_is_handed_out_again_when_nobody_holds_it() -> None:
    memory = Recycled((100,), np.float32)
    first = memory.empty()
    place = first.ctypes.data
    assert memory.empty().ctypes.data != place
    view = first[3:]
    del first
    assert memory.empty().ctypes.data != place
    del view
    assert place in [array.ctypes.data for array in (memory.empty(), memory.empty())]


def test_what_holders_changed_is_not_handed_out() -> None:
    memory = Recycled((100,), np.float64)
    kept = [memory.empty(), memory.empty()]
    kept[0].flags.writeable = False
    kept[1].dtype = np.int64
    kept.clear()
    again = memory.empty()
    assert again.flags.writeable
    assert again.dtype == np.float64


def test_remembered_memory_is_bounded_and_goes_with_its_owner() -> None:
    memory = Recycled((100,), np.float32)
    held = [memory.empty() for _ in range(9)]
    known = [weakref.ref(array) for array in held]
    del held
    assert sum(array() is not None for array in known) == run.MOST
    del memory
    gc.collect()
    assert not any(array() is not None for array in known)


def test_threads_never_get_the_same_array() -> None:
    memory, clashes = Recycled((64,), np.int64), []

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


def test_a_program_that_is_dropped_leaves_nothing() -> None:
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
