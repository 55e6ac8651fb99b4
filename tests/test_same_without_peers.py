"""The choice of tests that CI leaves out of its second run."""

from pathlib import Path

import pytest

from helpers.same_without_peers import Notes, names_of_peers

SOURCE = """
import numpy as np
from helpers.torch_comparison import close
torch = pytest.importorskip("torch")
FASTEST = "native" if find_spec("llvmlite") else "numpy"

def backend():
    return FASTEST

@pytest.fixture
def fast():
    return backend()

def test_directly(): assert torch.ones(1)
def test_through_a_function(): assert backend()
def test_by_a_fixture(fast): assert fast
def test_close(): assert close(1, 1)
def test_neither(): assert np.ones(1)

class TestAll:
    def test_one(self): assert FASTEST
"""


def test_names_that_lead_to_a_peer() -> None:
    found = names_of_peers(SOURCE)
    own = {name for name in found if name.startswith(("test_", "Test"))}
    through = {"test_through_a_function", "test_by_a_fixture", "test_close"}
    assert own == {"test_directly", "TestAll", "test_one"} | through
    assert {"torch", "FASTEST", "backend", "fast"} <= found
    assert found.isdisjoint({"np", "pytest", "test_neither"})


@pytest.mark.parametrize(("name", "noted"), [("jax.numpy", False), ("jaxtyping", True)])
def test_tests_that_import_a_peer_are_not_noted(name: str, noted: bool, tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    assert notes.find_spec(name) is None
    assert notes._depends is not noted
