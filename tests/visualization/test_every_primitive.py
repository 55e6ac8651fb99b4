"""Every primitive of the conformance table: its shapes in pictures, and its derivation."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from conformance import ROWS, cases_of
from conformance.checks import Subject, leaves

EXAMPLES = {
    row.primitive: case
    for row in ROWS
    for case in [next((c for c in cases_of(row) if c.dtype == "float64"), None)]
    if row.differentiable and case is not None
}


WITHOUT_LITERALS = ["resample"]
"""Primitives with settings that are objects."""


@pytest.mark.thorough
@pytest.mark.parametrize("primitive", EXAMPLES)
def test_derivations_agree_with_autograd(primitive: str) -> None:
    subject = Subject(EXAMPLES[primitive])
    points = leaves(subject.points)
    outputs = [t for t in subject(*points) if t.requires_grad]
    total = sum((t.real if t.is_complex() else t).sin().sum() for t in outputs)
    wanted = cr.autograd_grad(total, points, retain_graph=True, allow_unused=True)
    graph = cr.graph(total, names={f"r{i}": t for i, t in enumerate(outputs)})
    for i, vertex in enumerate(v for v in graph._recording.vertices if v.name.startswith("r")):
        assert None not in vertex.types, i
    for point, gradient in zip(points, wanted, strict=True):
        if gradient is None:
            continue
        d = cr.derivation(total, point)
        np.testing.assert_allclose(d.value.numpy(), gradient.numpy(), rtol=1e-7, atol=1e-9)
        assert str(d)
        if primitive in WITHOUT_LITERALS:
            with pytest.raises(cr.AutogradError, match="can't be written as literals"):
                _ = d.source
            continue
        scope: dict[str, object] = {}
        exec(d.source, scope)
        found = scope["gradient"](**d.arguments)  # type: ignore[operator]
        np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-7, atol=1e-9)
