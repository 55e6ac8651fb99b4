"""Write the names of CuPy that the stand-in of the tests has: `tests/cupy_stand_in/surface.txt`.

    python tools/cupy_surface.py

It needs CuPy (`pip install cupy-cuda12x`), but no card: nothing is computed. For each name the file
has its parameters, or for a ufunc the dtypes of its loops.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

TARGET = Path(__file__).parents[1] / "tests" / "cupy_stand_in" / "surface.txt"

MODULES = (
    *("cupy", "cupy.linalg", "cupy.fft", "cupy.lib.stride_tricks"),
    *("cupyx", "cupyx.scipy.linalg", "cupyx.scipy.special"),
)

LIBRARIES = ("cublas", "cusolver", "cusparse", "curand")
"""Libraries of CUDA that some modules load when they are imported: nobody calls them here."""


def main() -> None:
    cupy = importlib.import_module("cupy")
    libraries = importlib.import_module("cupy_backends.cuda.libs")
    for name in LIBRARIES:
        setattr(libraries, name, MagicMock())
    lines = [f"# Names of CuPy {cupy.__version__}, written by tools/cupy_surface.py."]
    for path in MODULES:
        module = importlib.import_module(path)
        lines += ["", f"[{path}]", *filter(None, (_line(module, name) for name in dir(module)))]
    lines += ["", "[cupy.ndarray]", *_methods(cupy.ndarray)]
    TARGET.write_text("\n".join(lines) + "\n")


def _line(module: ModuleType, name: str) -> str | None:
    value = getattr(module, name)
    if name.startswith("_") or isinstance(value, ModuleType):
        return None
    if isinstance(getattr(value, "types", None), list):
        loops = [loop for loop in value.types if "E" not in loop]  # bfloat16, which NumPy lacks
        return " ".join(["ufunc", name, *loops])
    if isinstance(value, int | float) or value is None:
        return f"constant {name} {value!r}"
    if isinstance(value, type):
        return f"class {name}"
    return " ".join(["function", name, *_parameters(value)]) if callable(value) else None


def _parameters(function: Any) -> list[str]:
    """Return the names of parameters, with `=` for those that have a default."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled: the first line of its docstring has them
        text = re.match(r"\w+\((.*?)\)", function.__doc__ or "")
        found = re.findall(r"(\*|/|\w+)\s*(=)?[^,]*", text[1]) if text else [("*arguments", "")]
        return [name + mark for name, mark in found]
    words, kinds = [], inspect.Parameter
    parameters = list(signature.parameters.values())
    for position, parameter in enumerate(parameters):
        if parameter.kind is kinds.KEYWORD_ONLY and "*" not in "".join(words):
            words.append("*")
        mark = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is kinds.empty else "="
        words.append(mark + parameter.name + default)
        following = parameters[position + 1 : position + 2]
        if parameter.kind is kinds.POSITIONAL_ONLY and (
            not following or following[0].kind is not kinds.POSITIONAL_ONLY
        ):
            words.append("/")
    return words


def _methods(cls: type) -> list[str]:
    return [f"method {name}" for name in dir(cls) if not name.startswith("_")]


if __name__ == "__main__":
    main()
