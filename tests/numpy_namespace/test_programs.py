"""Programs written in plain NumPy: the same values, and the derivatives of central differences.

They assign into arrays, write through views and build arrays from lists of results. One line of
each is changed, the import.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

FILES = sorted((Path(__file__).parent / "programs").glob("*.py"))


def loaded(file: Path, numpys: str) -> Any:
    text = file.read_text().replace("import numpy as np", f"import {numpys} as np")
    module = types.ModuleType(file.stem)
    exec(compile(text, str(file), "exec"), vars(module))
    return module


def differences(module: Any) -> list[Any]:
    """Return the central differences of the program by each argument."""
    gradients = []
    for position, argument in enumerate(module.ARGUMENTS):
        gradient = np.zeros(np.shape(argument))
        for index in np.ndindex(gradient.shape):
            values = []
            step = 1e-6 * max(1.0, abs(np.asarray(argument)[index]))
            for sign in (1, -1):
                changed = np.array(argument, float)
                changed[index] += sign * step
                arguments = [np.copy(a) if np.ndim(a) else a for a in module.ARGUMENTS]
                arguments[position] = changed if changed.ndim else float(changed)
                values.append(float(module.program(*arguments)))
            gradient[index] = (values[0] - values[1]) / (2 * step)
        gradients.append(gradient)
    return gradients


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_gradients_of_programs_equal_differences(file: Path) -> None:
    plain, ours = loaded(file, "numpy"), loaded(file, "chainrule.numpy")
    arguments = [np.copy(a) if np.ndim(a) else a for a in plain.ARGUMENTS]
    every = tuple(range(len(arguments)))
    value, gradients = cr.value_and_grad(ours.program, every)(*arguments)
    wanted = differences(plain)
    np.testing.assert_allclose(value, plain.program(*arguments), rtol=1e-12)
    scale = max([np.abs(gradient).max() for gradient in wanted])
    for argument, gradient, expected in zip(arguments, gradients, wanted, strict=True):
        assert type(gradient) is type(argument)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=2e-6 * scale)
    for argument, original in zip(arguments, plain.ARGUMENTS, strict=True):
        np.testing.assert_array_equal(argument, original)  # the caller's arrays are not written to


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_forward_mode_agrees(file: Path) -> None:
    ours = loaded(file, "chainrule.numpy")
    arguments = ours.ARGUMENTS
    gradients = cr.grad(ours.program, tuple(range(len(arguments))))(*arguments)
    tangents = tuple([np.cos(np.arange(np.size(a))).reshape(np.shape(a)) for a in arguments])
    _, tangent = cr.jvp(ours.program, arguments, tangents)
    expected = sum([np.sum(g * t) for g, t in zip(gradients, tangents, strict=True)])
    np.testing.assert_allclose(tangent, expected, rtol=1e-8, atol=1e-10)
