"""`cr.blas`: reports, switching of kernels, refusals, and correctness of products.

If OPENBLAS_CORETYPE is set for the test run, other kernels may crash on this machine, so tests that
choose kernels are skipped.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from chainrule import blas
from chainrule.blas import cpu, openblas, startup, tuning

MAY_CHOOSE = "OPENBLAS_CORETYPE" not in os.environ
REAL = openblas.loaded()
SWITCHABLE = tuning.obstacle(
    "other" if REAL is None else "OpenBLAS",
    bundled=REAL is not None and REAL.is_numpys_own,
    can_switch=REAL is not None and REAL.can_switch,
)

switches = pytest.mark.skipif(SWITCHABLE is not None, reason=str(SWITCHABLE))
chooses = pytest.mark.skipif(not MAY_CHOOSE, reason="OPENBLAS_CORETYPE says which kernels to use")


def run(program: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Library:
    """A fake OpenBLAS that computes nothing."""

    version = "1.2.3"
    file = "/site-packages/numpy.libs/libopenblas.so"
    threads = 2
    is_numpys_own = True
    can_switch = True

    def __init__(self, kernels: str) -> None:
        self.kernels = kernels
        self.built_in = {"Sandybridge", "Haswell", "SkylakeX"}
        self.deaf_to = ""

    def has(self, kernels: str) -> bool:
        return kernels in self.built_in

    def switch(self, kernels: str | None) -> None:
        if kernels != self.deaf_to:
            self.kernels = kernels or "its own choice"

    def is_correct(self) -> bool:
        return self.kernels != "SkylakeX"


AVX512 = cpu.AVX2 | cpu.AVX512


@pytest.fixture
def library(monkeypatch):
    """Return a fake library with AVX2 kernels on a processor with AVX-512."""
    made = Library("Haswell")
    monkeypatch.setattr(openblas, "loaded", lambda: made)
    monkeypatch.setattr(openblas, "features", lambda: AVX512)
    monkeypatch.setattr(openblas, "wrong_products", list)
    monkeypatch.setattr(tuning, "obstacle", lambda *facts, **more: None)
    monkeypatch.setattr(tuning, "_refuse_other_threads", lambda: None)
    monkeypatch.setattr(tuning, "_own_choices", [])
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    return made


# --- decisions ------------------------------------------------------------------------------------


def test_tune_switches_to_the_widest_kernels(library):
    assert blas.info().advice == "cr.blas.tune() switches to SkylakeX kernels"
    tuned = blas.tune()
    assert library.kernels == tuned.kernels == "SkylakeX"
    assert tuned.chosen_by == "chainrule"
    assert tuned.is_best
    assert tuned.advice == "nothing"


def test_tune_does_nothing_where_the_kernels_are_the_best(library, monkeypatch):
    library.kernels = "Cooperlake"
    monkeypatch.setattr(Library, "switch", None)
    assert blas.tune().kernels == blas.tune("SkylakeX").kernels == "Cooperlake"


def test_tune_switches_to_named_kernels(library):
    assert blas.tune("SANDYBRIDGE").kernels == "Sandybridge"
    assert blas.tune("skylakex").kernels == "SkylakeX"


def test_the_environment_is_obeyed_unless_kernels_are_named(library, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert blas.info().chosen_by == "OPENBLAS_CORETYPE=Zen"
    assert "start Python without it" in blas.info().advice
    with pytest.raises(blas.BlasError, match="if nothing needs OPENBLAS_CORETYPE=Zen"):
        blas.tune()
    assert library.kernels == "Haswell"
    assert blas.tune("SkylakeX").kernels == "SkylakeX"


def test_wrong_products_restore_the_old_kernels(library, monkeypatch):
    monkeypatch.setattr(openblas, "wrong_products", lambda: ["this", "that"])
    with pytest.raises(blas.BlasError, match=r"SkylakeX kernels computed wrong: this, that.*back"):
        blas.tune()
    assert library.kernels == "Haswell"
    assert blas.info().chosen_by == "OpenBLAS"


def test_a_switch_without_effect_is_an_error(library):
    library.deaf_to = "SkylakeX"
    with pytest.raises(blas.BlasError, match="SkylakeX kernels became Haswell"):
        blas.tune()


def test_kernels_that_were_not_built_in_are_refused(library):
    library.built_in.remove("SkylakeX")
    with pytest.raises(blas.BlasError, match="built without SkylakeX kernels"):
        blas.tune()


def test_kernels_that_the_processor_cannot_run_are_refused(library, monkeypatch):
    monkeypatch.setattr(openblas, "features", lambda: cpu.AVX2)
    assert blas.tune().kernels == "Haswell"
    with pytest.raises(blas.BlasError, match=r"can't run SkylakeX kernels \(AVX-512\)"):
        blas.tune("SkylakeX")


def test_unknown_kernels_are_refused_by_name(library):
    with pytest.raises(blas.BlasError, match="no kernels are called 'Skylark'; there are Prescott"):
        blas.tune("Skylark")


OWN = {"bundled": True, "can_switch": True, "system": "linux", "machine": "x86_64"}


def test_numpys_own_openblas_on_linux_may_be_switched():
    assert tuning.obstacle("OpenBLAS", **OWN, environment={}) is None


@pytest.mark.parametrize(
    ("library", "facts", "reason"),
    [
        ("mkl", {}, "mkl chooses its own kernels"),
        ("accelerate", {"system": "darwin", "machine": "arm64"}, "accelerate chooses its own"),
        ("OpenBLAS", {"bundled": False}, "not the one of NumPy's wheels"),
        ("OpenBLAS", {"can_switch": False}, "without a choice of kernels"),
        ("OpenBLAS", {"system": "win32"}, "on win32 with x86_64 OpenBLAS is left alone"),
        ("OpenBLAS", {"machine": "aarch64"}, "on linux with aarch64 OpenBLAS is left alone"),
        ("OpenBLAS", {"environment": {"CHAINRULE_BLAS": "off"}}, "CHAINRULE_BLAS=off tells"),
    ],
)
def test_everything_else_is_left_alone(library, facts, reason):
    found = tuning.obstacle(library, **{**OWN, "environment": {}, **facts})
    assert found is not None
    assert reason in found


def test_an_obstacle_is_mentioned_only_if_better_kernels_exist(library, monkeypatch):
    monkeypatch.setattr(tuning, "obstacle", lambda *facts, **more: "it is raining")
    assert blas.info().advice == "SkylakeX kernels would suit this processor, but it is raining"
    with pytest.raises(blas.BlasError, match="tune: it is raining"):
        blas.tune()
    library.kernels = "SkylakeX"
    assert blas.info().advice == "nothing"


def test_another_library_is_reported_under_the_name_of_numpys_build(monkeypatch):
    monkeypatch.setattr(openblas, "loaded", lambda: None)
    config = {"Build Dependencies": {"blas": {"name": "mkl-sdl", "version": "2026.1"}}}
    monkeypatch.setattr(np, "show_config", lambda mode: config)
    found = blas.info()
    assert (found.library, found.version, found.kernels) == ("mkl-sdl", "2026.1", None)
    assert found.is_best
    assert "chosen by mkl-sdl" in str(found)
    with pytest.raises(blas.BlasError):
        blas.tune()
    monkeypatch.setattr(np, "show_config", lambda mode: None)
    assert blas.info().library == "a BLAS that NumPy doesn't name"


# --- the library of this machine ------------------------------------------------------------------


def test_info_is_a_record_that_prints_as_a_table():
    found = blas.info()
    assert dataclasses.is_dataclass(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.kernels = "Haswell"
    titles = [line.split("  ")[0] for line in str(found).splitlines()]
    assert titles[:3] == ["library", "file", "kernels"]
    assert titles[-1] == "to do"
    assert found.library
    assert found.threads is None or found.threads >= 1


@pytest.mark.skipif(REAL is None, reason="NumPy is not linked with OpenBLAS")
def test_openblas_tells_its_version_kernels_and_file():
    found = blas.info()
    assert found.version is not None
    assert found.version[0].isdigit()
    assert found.kernels
    assert found.file is None or os.path.exists(found.file)


@pytest.mark.skipif(REAL is None, reason="NumPy is not linked with OpenBLAS")
def test_threads_are_those_of_the_environment():
    program = "import chainrule as cr; print(cr.blas.info().threads)"
    assert run(program, OPENBLAS_NUM_THREADS="1") == "1"


def test_products_of_this_blas_are_right():
    assert openblas.wrong_products() == []


class Off(np.ndarray):
    """Arrays whose large complex64 products have one element that is off by one."""

    def __matmul__(self, other):
        out = np.asarray(self) @ np.asarray(other)
        if out.dtype == "complex64" and out.size > 20_000:
            out[-1, -1] += 1
        return out


def test_one_wrong_element_is_noticed(monkeypatch):
    right = openblas._integers
    monkeypatch.setattr(openblas, "_integers", lambda *shape: right(*shape).view(Off))
    wrong = openblas.wrong_products()
    assert wrong
    assert all(name.endswith("of complex64") for name in wrong)


def test_off_disables_tune():
    program = """
import chainrule as cr
assert cr.blas.info().obstacle == "CHAINRULE_BLAS=off tells chainrule to leave the BLAS alone"
try:
    cr.blas.tune("Prescott")
except cr.blas.BlasError as error:
    print(error)
"""
    assert run(program, CHAINRULE_BLAS="off").startswith("tune: CHAINRULE_BLAS=off")


@switches
def test_tune_refuses_while_other_threads_are_alive():
    program = """
import threading, _thread
import chainrule as cr
asleep, running = threading.Event(), threading.Semaphore(0)

def sleep():
    running.release()
    asleep.wait()

threading.Thread(target=sleep, name="sleeper", daemon=True).start()
_thread.start_new_thread(sleep, ())
for _ in range(2):
    running.acquire()
try:
    cr.blas.tune("Nehalem")
except cr.blas.BlasError as error:
    print(error)
"""
    assert "other threads are alive (sleeper, unnamed)" in run(program)


@switches
@pytest.mark.parametrize("kernels", ["numpy", "native"])
def test_tune_ignores_chainrules_own_threads(kernels):
    if kernels == "native":
        pytest.importorskip("llvmlite", reason="machine code needs LLVM")
    program = f"""
import threading
import chainrule as cr
from chainrule.kernels import threads
threads.usable_cores = lambda: 4
cr.set_num_threads(3)
cr.set_kernels({kernels!r})
cr.softmax(cr.ones(4000, 500), 1)
cr.softmax(cr.ones(4000, 500), 1)
assert threading.active_count() > 1, threading.enumerate()
cr.set_num_threads(2)  # the old ones end
cr.softmax(cr.ones(4000, 500), 1)
cr.blas.tune("Nehalem")
alive = threading.Event()
threading.Thread(target=alive.wait, name="chainrule-1", daemon=True).start()
try:
    cr.blas.tune("Prescott")
except cr.blas.BlasError as error:
    print(error)
"""
    assert "other threads are alive (chainrule-1)" in run(program)


@switches
def test_no_signal_handler_runs_during_a_switch():
    program = """
import os, signal
import numpy as np
from chainrule.blas import openblas

library = openblas.loaded()
kernels, environment = library.kernels, dict(os.environ)
a, handled = np.ones((8, 8)), 0

def multiply(*_):
    global handled
    handled += 1
    assert (a @ a == 8).all()

signal.signal(signal.SIGALRM, multiply)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
while handled < 300:
    library.switch(kernels)
signal.setitimer(signal.ITIMER_REAL, 0)
assert library.kernels == kernels
assert dict(os.environ) == environment
print(openblas.wrong_products())
"""
    assert run(program) == "[]"


@switches
@chooses
def test_products_are_right_after_switches_in_a_running_process():
    program = """
import os
import numpy as np
import chainrule as cr

rng = np.random.default_rng(0)
cases = [
    (rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype))
    for m, k, n in [(1, 1, 1), (5, 3, 7), (64, 1000, 100), (301, 299, 157)]
    for dtype in "fdFD"
]
wide = {"f": np.longdouble, "c": np.clongdouble}
products = [a.astype(wide[a.dtype.kind]) @ b.astype(wide[a.dtype.kind]) for a, b in cases]
best = cr.blas.info().suitable
for kernels in ("Sandybridge", best, "Haswell", "Nehalem", best):
    assert cr.blas.tune(kernels).kernels == kernels, kernels
    for (a, b), product in zip(cases, products, strict=True):
        bound = 1e-3 if a.dtype.char in "fF" else 1e-11
        error = abs(a @ b - product).max()
        assert error < bound, (kernels, a.dtype, error)
assert cr.blas.tune().kernels == best
assert "OPENBLAS_CORETYPE" not in os.environ
if not os.fork():
    assert cr.blas.tune("Nehalem").kernels == "Nehalem"
    os._exit(0)
_, status = os.wait()
assert status == 0
print(cr.blas.info().kernels == best)
"""
    assert run(program) == "True"


# --- choice at import -----------------------------------------------------------------------------

FAKED = """
import builtins, io, os, sys
real = builtins.open
def fake(path, *arguments, **settings):
    if path != "/proc/cpuinfo":
        return real(path, *arguments, **settings)
    if {fails}:
        raise PermissionError(path)
    text = real(path).read().split("\\n\\n")[0].splitlines()
    said = {{"vendor_id": "GenuineIntel", "cpu family": "19", "model": "1"}}
    lines = (line.split(":", 1) for line in text)
    said = [f"{{name}}: {{said.get(name.strip(), value)}}" for name, value in lines]
    return io.BytesIO("\\n".join(said).encode())
builtins.open = fake
before = dict(os.environ)
{first}
import chainrule as cr
assert dict(os.environ) == before
chosen = cr.blas.startup.chosen
print(chosen == cr.blas.info().suitable, chosen, cr.blas.info().chosen_by)
"""


@switches
@chooses
def test_at_import_kernels_are_chosen_for_a_processor_that_is_misjudged():
    out = run(FAKED.format(first="", fails=False))
    assert out.startswith("True")
    assert out.endswith("chainrule")


@pytest.mark.parametrize(
    ("first", "fails", "variables"),
    [
        ("import numpy", False, {}),
        ("", True, {}),
        ("", False, {"CHAINRULE_BLAS": "off"}),
    ],
    ids=["numpy is loaded", "/proc can't be read", "off"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="nothing is chosen on other systems")
def test_at_import_nothing_is_chosen(first, fails, variables):
    out = run(FAKED.format(first=first, fails=fails), **variables)
    assert " None " in out
    assert not out.endswith("chainrule")


def test_wrong_products_at_import_restore_the_choice_of_openblas():
    wrong, right = Library("SkylakeX"), Library("Haswell")
    assert startup.keep_if_correct("SkylakeX", wrong) is None
    assert wrong.kernels == "its own choice"
    assert startup.keep_if_correct("Haswell", right) == right.kernels == "Haswell"
    assert startup.keep_if_correct("Haswell", None) == "Haswell"
