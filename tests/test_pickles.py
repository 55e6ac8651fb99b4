"""Pickles: objects that users keep can be read, under former module names too."""

import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.backend import is_array

MATRIX = cr.tensor([[4.0, 1.0], [1.0, 3.0]])


def square(x: Any) -> Any:
    return (x * x).sum()


KEPT = {
    "chainrule.generators": cr.Generator().manual_seed(3),
    "chainrule.compiler.function": cr.compile(square),
    "chainrule.linalg.elimination": cr.linalg.lu(MATRIX),
    "chainrule.linalg.former": cr.svd(MATRIX),
    "chainrule.linalg.spectra": cr.linalg.eigh(MATRIX),
    "chainrule.linalg.unchecked": cr.linalg.inv_ex(MATRIX),
    "chainrule.ops.extrema": cr.max(MATRIX, 0),
    "chainrule.ops.histograms": cr.histogram(MATRIX, 3),
    "chainrule.ops.moments": cr.aminmax(MATRIX),
    "chainrule.ops.pairs": cr.frexp(MATRIX),
    "chainrule.ops.sets": cr.unique_counts(MATRIX),
}
"""Objects by the module that held their type in earlier versions."""


def content(kept: Any) -> Any:
    if isinstance(kept, cr.Generator):
        return kept.get_state()
    if isinstance(kept, tuple):
        return [content(part) for part in kept]
    if isinstance(kept, cr.Tensor):
        return kept.numpy()
    return kept(MATRIX).numpy()


def assert_same(got: Any, wanted: Any) -> None:
    if is_array(wanted) or isinstance(wanted, dict):
        np.testing.assert_equal(got, wanted)
    elif isinstance(wanted, list):
        assert len(got) == len(wanted)
        for pair in zip(got, wanted, strict=True):
            assert_same(*pair)
    else:
        assert_same(np.asarray(content(got)), np.asarray(content(wanted)))


@pytest.mark.parametrize("former", KEPT)
def test_pickles_of_earlier_versions_can_be_read(former: str) -> None:
    kept = KEPT[former]
    reduced = kept.__reduce_ex__(2)[0] if isinstance(kept, cr.Generator) else type(kept)
    written = pickle.dumps(kept, protocol=0)
    named = f"c{reduced.__module__}\n".encode()
    assert named in written
    read = pickle.loads(written.replace(named, f"c{former}\n".encode()))
    assert type(read) is type(kept)
    assert_same(content(read), content(kept))


def test_a_former_module_has_nothing_but_what_moved() -> None:
    import chainrule.generators as former  # as pickle imports it

    assert former.Generator is cr.Generator
    with pytest.raises(AttributeError, match="no_such_name"):
        former.no_such_name  # noqa: B018
