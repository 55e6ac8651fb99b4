"""Settings that travel: captured where a computation is asked for, applied where it runs."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

import chainrule
from chainrule.autograd.function_wrapper import settings as process_settings
from chainrule.autograd.modes import ModeContext, modes
from chainrule.compiler.eager import using_kernels
from chainrule.distributed.extra import threadpoolctl
from chainrule.errors import AutogradError
from chainrule.kernels.threads import using_threads


class Settings(NamedTuple):
    """The settings of a client that affect what its workers compute."""

    default_dtype: str
    grad: bool
    kernels: str
    num_threads: int  # of each task, for BLAS too
    version: str  # of chainrule

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run a block under these settings.

        Raises
        ------
        AutogradError
            If this process runs another version of chainrule.
        MissingExtraError
            If the kernels are native and llvmlite is not installed here.
        """
        if chainrule.__version__ != self.version:
            raise AutogradError(
                f"distributed: the client runs chainrule {self.version}, this worker "
                f"{chainrule.__version__}: install the same version in both environments"
            )
        with _PROCESS.holding(self.kernels, self.num_threads), _Modes(self):
            yield


def capture() -> Settings:
    """Return the settings in force, for the workers.

    The number of threads is what `set_num_threads` was called with, else one: as many tasks run
    at once as the workers have threads.

    Raises
    ------
    AutogradError
        In a mode that looks at each operation, which workers can't report to.
    """
    found = modes()
    for mode, on in {
        "detect_anomaly": found.anomaly is not None,
        "explain": found.explain is not None,
        "saved_tensors_hooks": found.saved_hooks is not None,
        "disable_saved_tensors_hooks": found.hooks_refused is not None,
    }.items():
        if on:
            raise AutogradError(
                f"distributed: {mode} is in force here and can't be on the workers: leave its "
                "block, or call the loss with one partition in this process"
            )
    own = process_settings()
    threads = own.num_threads or 1
    return Settings(own.default_dtype, found.grad, own.kernels, threads, chainrule.__version__)


class _Modes(ModeContext):
    """The modes of a client, in this thread."""

    def __init__(self, settings: Settings) -> None:
        dtype = np.dtype(settings.default_dtype)
        self._changes = {"default_dtype": dtype, "grad": settings.grad}


@functools.lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Return the thread pools of this process, such as BLAS, anew when modules were imported."""
    return threadpoolctl.ThreadpoolController()


class _Process:
    """Kernels and threads, which a process has once: tasks with other ones wait for their turn."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wanted: tuple[str, int] | None = None
        self._tasks = 0
        self._restore = ExitStack()

    @contextmanager
    def holding(self, kernels: str, num_threads: int) -> Iterator[None]:
        """Run a block with these kernels and threads, beside others that want the same."""
        wanted = kernels, num_threads
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks or self._wanted == wanted)
            if not self._tasks:
                with ExitStack() as stack:
                    stack.enter_context(using_kernels(kernels))
                    stack.enter_context(using_threads(num_threads))
                    stack.enter_context(_libraries(len(sys.modules)).limit(limits=num_threads))
                    self._restore = stack.pop_all()
                self._wanted = wanted
            self._tasks += 1
        try:
            yield
        finally:
            with self._changed:
                self._tasks -= 1
                if not self._tasks:
                    self._restore.close()
                    self._changed.notify_all()


_PROCESS = _Process()
