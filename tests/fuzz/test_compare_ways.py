"""Random functions of fixed seeds, in all ways; and that the fuzzer finds what is planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.compiler.codegen import numpy_source
from fuzz.compare_ways import failure_of
from helpers.random_programs import ways
from helpers.random_programs.functions import Function

pytestmark = pytest.mark.no_verify("the fuzzer compares with the eager function itself")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_all_ways_agree(seed: int) -> None:
    text = failure_of(seed, native=False)
    assert not text, text


def test_a_wrong_program_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Function(
        {"x0": np.array([0.5, -1.25]), "x1": np.array([2.0, 1.0])},
        {},
        ("t0 = x0 * 2", "t1 = x1.sin()", "t2 = t0.tanh()", "t3 = t2 + x1"),
        "{'a': t3, 'b': t1}",
    )
    # Not with `function`: compiled functions of equal code share their programs.
    ways.check(function._replace(statements=("t0 = x0 * 3", *function.statements[1:])))
    original = numpy_source.Source.__init__

    def wrong(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.body = [line.replace("np.tanh", "np.sinh") for line in self.body]

    monkeypatch.setattr(numpy_source.Source, "__init__", wrong)
    with pytest.raises(ways.Disagreement):
        ways.check(function)
    smallest, text = ways.minimal(function)
    assert smallest.statements == ("t0 = x0 * 2", "t2 = t0.tanh()")
    assert smallest.returned == "t2"
    assert text.startswith("values, numpy: result 0[0] is")
    assert "x1" not in str(smallest)
