"""``python -m chainrule doctor``: its report and its advice."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr
from chainrule import doctor
from chainrule.blas import Info
from chainrule.compiler.native.gemm import Registers

BEST = Info("OpenBLAS", "1.2", None, "SkylakeX", "OpenBLAS", "SkylakeX", 4, None, ())
NARROW = Info("OpenBLAS", "1.2", None, "Haswell", "OpenBLAS", "SkylakeX", 4, None, ())
OTHER = Info("mkl", "1.2", None, None, "mkl", None, None, "mkl chooses its own kernels", ())


def test_python_m_chainrule_doctor():
    run = subprocess.run(
        [sys.executable, "-m", "chainrule", "doctor"],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "CHAINRULE_BLAS": "off"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    for title in ("Versions", "Threads", "Variables", "Optional packages", "GPU", "What to do"):
        assert f"\n{title}\n" in f"\n{run.stdout}"
    assert cr.__version__ in run.stdout
    assert np.__version__ in run.stdout
    assert "CHAINRULE_BLAS            off " in run.stdout


@pytest.mark.parametrize("info", [BEST, OTHER])
def test_a_good_setup_needs_no_advice(info):
    assert list(doctor.advice(info, 4, 4, {})) == []


def test_report_of_compiled_products(monkeypatch):
    wide = Registers(64, (14, 8))
    for installed, found, words in [
        (True, wide, "AVX-512"),
        (True, None, "as"),
        (False, wide, "as"),
    ]:
        monkeypatch.setattr(doctor, "is_installed", lambda installed=installed: installed)
        monkeypatch.setattr(doctor, "registers", lambda found=found: found)
        (row,) = [row for row in doctor.report().splitlines() if row.startswith("  compiled ")]
        assert words in row


def test_advice_on_narrow_kernels_comes_first():
    first, *rest = doctor.advice(NARROW, 4, 4, {})
    assert first == "Kernels: cr.blas.tune() switches to SkylakeX kernels."
    assert not rest


def test_more_threads_than_cores():
    products, operations = doctor.advice(BEST, 4, 2, {})
    assert "Products run in 4 threads on 2 cores" in products
    assert "Operations on large arrays run in 4 threads" in operations
    assert "OMP_NUM_THREADS=2" in products


def test_fewer_threads_than_cores_if_the_environment_says_so():
    environment = {"OPENBLAS_NUM_THREADS": "4"}
    (products,) = doctor.advice(BEST, 8, 8, environment)
    assert "Products run in 4 of 8 possible threads, since OPENBLAS_NUM_THREADS=4" in products
    assert not list(doctor.advice(BEST, 8, 8, {}))  # a library may have reasons of its own


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((True, True, True), "device='cuda'"),
        ((False, True, True), "CuPy sees no device"),
        ((False, True, False), "pip install cupy-cuda13x"),
        ((False, False, True), "none is seen"),
    ],
)
def test_report_of_the_gpu(facts, words):
    assert words in doctor.gpu(*facts)


def test_missing_packages_are_reported(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"no-such-package-here": "nothing"})
    assert "no-such-package-here  missing     nothing" in doctor.report()
